package store

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/transcript"
)

// openTest opens a store that is closed with the test.
func openTest(t testing.TB, dir string) *Store {
	t.Helper()
	return openWith(t, Options{Path: dir, Normal: true})
}

func openWith(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func chunk(role, id, text string) Event {
	t, _ := json.Marshal(text)
	return Event{Kind: journal.KindUpdate, Data: json.RawMessage(fmt.Sprintf(
		`{"sessionUpdate":"%s_message_chunk","messageId":%q,"content":{"type":"text","text":%s}}`, role, id, t))}
}

// write adds events to a conversation and returns its id.
func write(t testing.TB, s *Store, session Session, events ...Event) string {
	t.Helper()
	o := RecordOptions{Trouble: func(_ string, err error) {
		if err != nil && !errors.Is(err, ErrStalled) { // a disk that is slow for a while loses nothing
			t.Errorf("trouble: %v", err)
		}
	}}
	rec := s.Record(session, o)
	if id := session.Conversation; id != "" {
		was, err := s.Resume(t.Context(), id, o, func(*transcript.Snapshot) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		rec = was.Recorder
		rec.Put(session)
	}
	rec.Append(events...)
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	return rec.Conversation()
}

func all(t testing.TB, s *Store, id string) []Event {
	t.Helper()
	var got []Event
	for e, err := range s.Events(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	return got
}

// messages returns the messages of the conversation in the store.
func messages(t testing.TB, s *Store, id string) (got []string, damage *journal.DamageError) {
	t.Helper()
	snapshot, damage, err := s.Snapshot(t.Context(), id, transcript.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for e := range snapshot.Entries() {
		if m, ok := e.(*transcript.Message); ok {
			got = append(got, string(m.Role)+": "+m.Text())
		}
	}
	return got, damage
}

var key = Key{"gemini", "s1"}

func TestAppendAndRead(t *testing.T) {
	s := openTest(t, filepath.Join(t.TempDir(), "d", "st?re #1%20"))
	at := time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.UTC)
	id := write(t, s, Session{Key: key, Created: at, Cwd: "/p", Command: []string{"a", "--acp"}, Title: "One", Protocol: 2},
		Event{Kind: journal.KindUpdate, Data: json.RawMessage(`{"a":1}`), At: at},
		Event{Kind: journal.KindAsked, Data: json.RawMessage("{\n\"b\": 2}"), At: at.Add(time.Second)})
	if got := write(t, s, Session{Conversation: id, Key: key, Title: "Two"}, Event{Kind: journal.KindEnd, At: at.Add(2 * time.Second)}); got != id {
		t.Fatalf("conversation %s, want %s", got, id)
	}
	other := write(t, s, Session{Key: Key{"other", "s1"}}, chunk("user", "1", "q"))
	want := []Event{
		{At: at, Kind: journal.KindUpdate, Data: json.RawMessage(`{"a":1}`)},
		{At: at.Add(time.Second), Kind: journal.KindAsked, Data: json.RawMessage(`{"b":2}`)},
		{At: at.Add(2 * time.Second), Kind: journal.KindEnd, Data: json.RawMessage("null")},
	}
	if diff := cmp.Diff(want, all(t, s, id)); diff != "" {
		t.Error(diff)
	}
	if got := all(t, s, records.NewID()); got != nil {
		t.Errorf("events of no conversation: %v", got)
	}
	got, err := s.Find(t.Context(), "gemini", "s1")
	if err != nil {
		t.Fatal(err)
	}
	session := Session{Key: key, Conversation: id, Title: "Two", Created: at, Turns: 1, Events: 3, State: records.StateIdle}
	if diff := cmp.Diff(session, got, cmpopts.IgnoreFields(Session{}, "Updated")); diff != "" {
		t.Error(diff)
	}
	if fresh, err := s.Session(t.Context(), id); err != nil || !cmp.Equal(fresh, got) {
		t.Errorf("the log says %+v, %v", fresh, err)
	}
	if _, err := s.Session(t.Context(), records.NewID()); !errors.Is(err, ErrNotFound) {
		t.Errorf("no conversation: %v", err)
	}
	if _, err := s.Session(t.Context(), "../"+other); !errors.Is(err, ErrNotFound) {
		t.Errorf("no id: %v", err)
	}
}

func TestReset(t *testing.T) {
	s := openTest(t, t.TempDir())
	id := write(t, s, Session{Key: key}, chunk("user", "1", "old"), Event{Kind: journal.KindEnd}, Event{Kind: journal.KindReset}, chunk("user", "1", "new"))
	if got, _ := messages(t, s, id); !cmp.Equal(got, []string{"user: new"}) {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]int{"old": 0, "new": 1} {
		if found, err := s.List(t.Context(), Query{Text: text}); err != nil || len(found) != want {
			t.Errorf("%s: %+v, %v", text, found, err)
		}
	}
	if v, err := s.Session(t.Context(), id); err != nil || v.Turns != 1 || v.Events != 2 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestPermission(t *testing.T) {
	s := openTest(t, t.TempDir())
	id := write(t, s, Session{Key: key},
		Event{Kind: journal.KindAsked, Data: json.RawMessage(`{"id":"a","request":{"sessionId":"s1","title":"first","subject":{"type":"tool_call","toolCall":{"toolCallId":"c"}},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}`)},
		Event{Kind: journal.KindAsked, Data: json.RawMessage(`{"id":"b","request":{"sessionId":"s1","title":"second","subject":{"type":"tool_call","toolCall":{"toolCallId":"d"}},"options":[{"optionId":"y","name":"Y","kind":"allow_once"}]}}`)},
		Event{Kind: journal.KindDecided, Data: json.RawMessage(`{"id":"b","outcome":{"outcome":"selected","optionId":"y"}}`)})
	snapshot, _, err := s.Snapshot(t.Context(), id, transcript.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var got []bool
	for e := range snapshot.Entries() {
		if p, ok := e.(*transcript.Permission); ok {
			got = append(got, p.Outcome != nil)
		}
	}
	if !cmp.Equal(got, []bool{false, true}) {
		t.Errorf("answered %v", got)
	}
}

func TestSearch(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	x := write(t, s, Session{Key: Key{"a", "x"}}, chunk("user", "1", "Please fix the flaky tes"), chunk("user", "1", "ts in café mod"), Event{Kind: journal.KindEnd})
	y := write(t, s, Session{Key: Key{"a", "y"}, Title: "Weather report"}, chunk("agent", "1", "something else 東京都の天気"))
	find := func(words string) string {
		t.Helper()
		found, err := s.List(t.Context(), Query{Text: words})
		if err != nil {
			t.Fatal(err)
		}
		without, err := s.listLogs(t.Context(), Query{Limit: -1}, searchWords(words))
		if err != nil || len(searchWords(words)) > 0 && len(without) != len(found) {
			t.Errorf("%q: without the index %d, with it %d, %v", words, len(without), len(found), err)
		}
		if n, err := s.Count(t.Context(), Query{Text: words, Limit: 1}); err != nil || n != len(found) {
			t.Errorf("%q: %d are counted of %d, %v", words, n, len(found), err)
		}
		ids := ""
		for _, m := range found {
			if m.Snippet == "" {
				t.Errorf("%q: no snippet", words)
			}
			ids += m.ID
		}
		return ids
	}
	for words, want := range map[string]string{
		"tests": "x", "FLAKY cafe": "x", "flaky nothing": "", "weath": "y", "天気": "y", "else weather": "y", `"`: "", "no*": "",
		"OR": "", "fix AND": "", "module": "",
	} {
		if got := find(words); got != want {
			t.Errorf("%q finds %q, want %q", words, got, want)
		}
	}
	write(t, s, Session{Key: Key{"a", "x"}, Conversation: x}, chunk("user", "1", "ule"))
	if got := find("module"); got != "x" {
		t.Errorf("a word cut between two turns finds %q", got)
	}
	if err := s.Delete(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if got := find("flaky"); got != "" {
		t.Errorf("a deleted session is found: %q", got)
	}
	if err := s.Delete(t.Context(), x); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	write(t, s, Session{Key: Key{"a", "y"}, Conversation: y, Title: "Climate"}, Event{Kind: journal.KindEnd})
	if got := find("weather"); got != "" {
		t.Errorf("an old title finds %q", got)
	}
	if got := find("climate"); got != "y" {
		t.Errorf("the new title finds %q", got)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.ToLower(string(data)), "flaky") {
			t.Errorf("%s has what was deleted", e.Name())
		}
	}
}

// TestSearchLong: text that fills many pieces is found wherever it is, whole or at the cuts.
func TestSearchLong(t *testing.T) {
	s := openTest(t, t.TempDir())
	var text strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&text, "word%05d ", i)
	}
	id := write(t, s, Session{Key: key}, chunk("agent", "m", text.String()))
	steps := 3
	if !long.All() {
		steps = 1
	}
	for step := range steps {
		for _, word := range []string{"word00000", "word29999", "word06553", "word06554", "word06555", "word13107", "word19660"} {
			if found, err := s.List(t.Context(), Query{Text: word}); err != nil || len(found) != 1 || !strings.Contains(found[0].Snippet, word) {
				t.Errorf("step %d: %s: %+v, %v", step, word, found, err)
			}
		}
		write(t, s, Session{Key: key, Conversation: id}, chunk("agent", "m", text.String()))
	}
	write(t, s, Session{Key: key, Conversation: id}, chunk("agent", "m2", strings.Repeat("x", 3*maxChunk)))
	if _, err := s.List(t.Context(), Query{Text: "xx"}); err != nil {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	s := openTest(t, t.TempDir())
	ids := map[Key]string{}
	for _, k := range []Key{{"a", "abc"}, {"a", "abd"}, {"b", "abc"}, {"a", "ab"}, {"a", "%_x"}, {"a", "%_x"}} {
		ids[k] = write(t, s, Session{Key: k}, Event{Kind: journal.KindEnd})
	}
	twice := Key{"a", "%_x"}
	older, err := s.listLogs(t.Context(), Query{Limit: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		agent, id string
		want      Key
		n         int // candidates
	}{
		{"a", "abc", Key{"a", "abc"}, 0},
		{"", "abd", Key{"a", "abd"}, 0},
		{"", "ab", Key{"a", "ab"}, 0},
		{"", "abc", Key{}, 2},
		{"", "a", Key{}, 4},
		{"a", "a", Key{}, 3},
		{"", "%", twice, 0},
		{"", "0", Key{}, -1},
		{"", "", Key{}, -1},
		{"c", "abc", Key{}, -1},
		{"", ids[Key{"a", "abd"}], Key{"a", "abd"}, 0},
		{"b", ids[Key{"a", "abd"}], Key{}, -1},
		{"", ids[Key{"a", "abd"}][:12], Key{"a", "abd"}, 0},
	}
	for _, tt := range tests {
		got, err := s.Find(t.Context(), tt.agent, tt.id)
		if got.Key != tt.want {
			t.Errorf("%q %q: %v, want %v", tt.agent, tt.id, got.Key, tt.want)
		}
		var many *AmbiguousError
		switch {
		case tt.n == 0 && err == nil && got.Conversation == ids[tt.want]:
		case tt.n < 0 && errors.Is(err, ErrNotFound):
		case tt.n > 0 && errors.Is(err, ErrAmbiguous) && errors.As(err, &many) && len(many.Candidates) >= tt.n:
		default:
			t.Errorf("%q %q: %+v, error %v", tt.agent, tt.id, got, err)
		}
	}
	names, err := s.Names(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range older {
		name := names.Of(m.Session)
		if got, err := s.Find(t.Context(), m.Agent, name); err != nil || got.Conversation != m.Conversation {
			t.Errorf("%q finds %+v, %v, want %s", name, got, err, m.Conversation)
		}
	}
}

// TestChild keeps the sessions of subagents with the session they belong to.
func TestChild(t *testing.T) {
	s := openTest(t, t.TempDir())
	parent := write(t, s, Session{Key: Key{"a", "parent"}}, chunk("agent", "m", "from above"))
	child := write(t, s, Session{Key: Key{"a", "child"}, Parent: parent}, chunk("agent", "m", "from below"))
	for _, text := range []string{"", "from"} {
		found, err := s.List(t.Context(), Query{Text: text})
		if err != nil || len(found) != 1 || found[0].Conversation != parent {
			t.Errorf("%q: listed %v, %v", text, found, err)
		}
	}
	if _, err := s.Find(t.Context(), "", "chi"); err != nil {
		t.Errorf("it is not found by its id: %v", err)
	}
	if v, err := s.Child(t.Context(), parent, "child"); err != nil || v.Conversation != child {
		t.Errorf("it is not found by its parent: %+v, %v", v, err)
	}
	if err := s.Delete(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Session(t.Context(), child); !errors.Is(err, ErrNotFound) {
		t.Errorf("it is not deleted with its parent: %v", err)
	}
}

// namedID returns an id of a conversation that is the same each time.
func namedID(of, name string) string {
	sum := sha256.Sum256([]byte(of + "\x00" + name))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:16])
}
