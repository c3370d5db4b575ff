package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/transcript"
)

// openTest opens a store in a file that is closed with the test.
func openTest(t *testing.T, path string) *Store {
	t.Helper()
	s, damage, err := Open(t.Context(), Options{Path: path, Normal: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if damage != nil {
		t.Fatalf("damage: %v", damage)
	}
	return s
}

// stores runs f with a store in a file and one in memory.
func stores(t *testing.T, f func(t *testing.T, s *Store)) {
	t.Run("file", func(t *testing.T) { f(t, openTest(t, filepath.Join(t.TempDir(), "d", "st?re #1%20.db"))) })
	t.Run("memory", func(t *testing.T) { f(t, openTest(t, "")) })
}

func chunk(role, id, text string) Event {
	t, _ := json.Marshal(text)
	return Event{Kind: EventUpdate, Data: json.RawMessage(fmt.Sprintf(
		`{"sessionUpdate":"%s_message_chunk","messageId":%q,"content":{"type":"text","text":%s}}`, role, id, t))}
}

func replayed(e Event) Event {
	e.Kind = EventReplayed
	return e
}

func appendTo(t *testing.T, s *Store, k Key, events ...Event) []Event {
	t.Helper()
	if err := s.Append(t.Context(), k, events); err != nil {
		t.Fatal(err)
	}
	return events
}

func all(t *testing.T, s *Store, k Key, after int64) []Event {
	t.Helper()
	var got []Event
	for e, err := range s.Events(t.Context(), k, after) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	return got
}

// texts returns the messages of the conversation in the store.
func texts(t *testing.T, s *Store, k Key) []string {
	t.Helper()
	snapshot, err := s.Snapshot(t.Context(), k, transcript.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e := range snapshot.Entries() {
		if m, ok := e.(*transcript.Message); ok {
			got = append(got, string(m.Role)+": "+m.Text())
		}
	}
	return got
}

func TestAppendAndRead(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		k := Key{"gemini", "s1"}
		at := time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.UTC)
		first := appendTo(t, s, k, Event{Kind: EventUpdate, Data: json.RawMessage(`{"a":1}`), Time: at}, Event{Kind: EventTurn, Time: at.Add(time.Second)})
		if first[0].Seq != 1 || first[1].Seq != 2 {
			t.Fatalf("numbers %d, %d, want 1, 2", first[0].Seq, first[1].Seq)
		}
		second := appendTo(t, s, k, Event{Kind: EventUpdate, Data: json.RawMessage(`{"b":2}`), Time: at})
		appendTo(t, s, Key{"other", "s1"}, Event{Kind: EventUpdate, Data: json.RawMessage(`{}`)})
		want := append(first, second...)
		want[1].Data = json.RawMessage("null")
		if diff := cmp.Diff(want, all(t, s, k, 0)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want[2:], all(t, s, k, 2)); diff != "" {
			t.Error(diff)
		}
		if got := all(t, s, Key{"gemini", "none"}, 0); got != nil {
			t.Errorf("events of no session: %v", got)
		}
		got, err := s.Find(t.Context(), "gemini", "s1")
		if err != nil {
			t.Fatal(err)
		}
		if got.Turns != 1 || got.Events != 3 || !got.Updated.After(at) {
			t.Errorf("session %+v, want 1 turn and 3 events", got)
		}
	})
}

func TestPut(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
		v := Session{Key: Key{"a", "x"}, Command: []string{"a", "--acp"}, Cwd: "/p", Title: "One", Protocol: 2, Created: at, Updated: at.Add(time.Hour), Turns: 3}
		if err := s.Put(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), Session{Key: v.Key, Title: "Two"}); err != nil {
			t.Fatal(err)
		}
		v.Title = "Two"
		got, err := s.Session(t.Context(), v.Key)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, got); diff != "" {
			t.Error(diff)
		}
		if _, err := s.Session(t.Context(), Key{"b", "x"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("error %v, want ErrNotFound", err)
		}
	})
}

func TestReset(t *testing.T) {
	k := Key{"a", "x"}
	reset := func(from int64) Event {
		data, _ := json.Marshal(Reset{From: from})
		return Event{Kind: EventReset, Data: data}
	}
	tests := []struct {
		name   string
		events []Event
		want   []string
		kept   int
	}{
		{"none", []Event{chunk("user", "1", "q"), chunk("agent", "2", "a"), chunk("agent", "2", "b")}, []string{"user: q", "agent: ab"}, 3},
		{"broken off", []Event{chunk("user", "1", "q"), replayed(chunk("user", "1", "q")), chunk("agent", "2", "a")}, []string{"user: q", "agent: a"}, 3},
		{"complete", []Event{chunk("user", "1", "old"), replayed(chunk("user", "1", "new")), reset(2), chunk("agent", "2", "a")}, []string{"user: new", "agent: a"}, 3},
		{"live in between", []Event{chunk("user", "1", "old"), replayed(chunk("user", "1", "n")), chunk("agent", "9", "l"), replayed(chunk("user", "1", "ew")), reset(2)}, []string{"user: new", "agent: l"}, 4},
		{"broken off after complete", []Event{replayed(chunk("user", "1", "new")), reset(1), replayed(chunk("user", "1", "x"))}, []string{"user: new"}, 3},
		{"broken off, then complete", []Event{replayed(chunk("user", "1", "x")), chunk("user", "1", "y"), replayed(chunk("user", "1", "new")), reset(3)}, []string{"user: new"}, 2},
		{"empty history", []Event{chunk("user", "1", "old"), reset(2)}, []string{"user: old"}, 2},
		{"all anew", []Event{chunk("user", "1", "old"), {Kind: EventReset}, chunk("user", "1", "new")}, []string{"user: new"}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, together := range []bool{true, false} {
				s := openTest(t, filepath.Join(t.TempDir(), "s.db"))
				if together {
					appendTo(t, s, k, tt.events...)
				} else {
					for _, e := range tt.events {
						appendTo(t, s, k, e)
					}
				}
				if diff := cmp.Diff(tt.want, texts(t, s, k)); diff != "" {
					t.Errorf("together %v: %s", together, diff)
				}
				got, err := s.Session(t.Context(), k)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(all(t, s, k, 0)); n != tt.kept || got.Events != int64(n) {
					t.Errorf("together %v: %d events are kept, the session says %d, want %d", together, n, got.Events, tt.kept)
				}
			}
		})
	}
}

func TestSearch(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		k := Key{"a", "x"}
		appendTo(t, s, k, chunk("user", "1", "Please fix the flaky tes"), chunk("user", "1", "ts in café mod"), Event{Kind: EventTurn})
		appendTo(t, s, Key{"a", "y"}, chunk("agent", "1", "something else 東京都の天気"))
		if err := s.Put(t.Context(), Session{Key: Key{"a", "y"}, Title: "Weather report"}); err != nil {
			t.Fatal(err)
		}
		find := func(words string) string {
			t.Helper()
			found, err := s.List(t.Context(), Query{Text: words})
			if err != nil {
				t.Fatal(err)
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
		appendTo(t, s, k, chunk("user", "1", "ule"))
		if got := find("module"); got != "x" {
			t.Errorf("a word cut between two turns finds %q", got)
		}
		if err := s.Delete(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		if got := find("flaky"); got != "" {
			t.Errorf("a deleted session is found: %q", got)
		}
		if err := s.Delete(t.Context(), k); !errors.Is(err, ErrNotFound) {
			t.Errorf("error %v, want ErrNotFound", err)
		}
		if err := s.Put(t.Context(), Session{Key: Key{"a", "y"}, Title: "Climate"}); err != nil {
			t.Fatal(err)
		}
		if got := find("weather"); got != "" {
			t.Errorf("an old title finds %q", got)
		}
	})
}

func TestFind(t *testing.T) {
	s := openTest(t, "")
	for _, k := range []Key{{"a", "abc"}, {"a", "abd"}, {"b", "abc"}, {"a", "ab"}, {"a", "%_x"}} {
		appendTo(t, s, k, Event{Kind: EventTurn})
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
		{"", "%", Key{"a", "%_x"}, 0},
		{"", "z", Key{}, -1},
		{"", "", Key{}, -1},
		{"c", "abc", Key{}, -1},
	}
	for _, tt := range tests {
		got, err := s.Find(t.Context(), tt.agent, tt.id)
		if got.Key != tt.want {
			t.Errorf("%q %q: %v, want %v", tt.agent, tt.id, got.Key, tt.want)
		}
		var many *AmbiguousError
		switch {
		case tt.n == 0 && err == nil:
		case tt.n < 0 && errors.Is(err, ErrNotFound):
		case tt.n > 0 && errors.Is(err, ErrAmbiguous) && errors.As(err, &many) && len(many.Candidates) == tt.n:
		default:
			t.Errorf("%q %q: error %v", tt.agent, tt.id, err)
		}
	}
}

func TestSetAside(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		k := Key{"a", "s1"}
		if free, err := s.SetAside(t.Context(), k); free != "" || err != nil {
			t.Errorf("nothing there: %q, %v", free, err)
		}
		appendTo(t, s, Key{"b", "s1"}, chunk("user", "m", "of another"))
		for i, want := range []string{"s1~1", "s1~2"} {
			text := fmt.Sprint("text", i)
			appendTo(t, s, k, chunk("user", "m", text))
			if free, err := s.SetAside(t.Context(), k); free != want || err != nil {
				t.Errorf("set aside: %q, %v, want %q", free, err, want)
			}
			if got := texts(t, s, Key{"a", want}); len(got) != 1 || got[0] != "user: "+text {
				t.Errorf("%s has %q, want %q", want, got, text)
			}
			if _, err := s.Session(t.Context(), k); !errors.Is(err, ErrNotFound) {
				t.Errorf("the id is not free: %v", err)
			}
		}
		if got := texts(t, s, Key{"b", "s1"}); len(got) != 1 {
			t.Errorf("the session of another agent: %q", got)
		}
	})
}

// TestChild keeps the sessions of subagents with the session they belong to.
func TestChild(t *testing.T) {
	stores(t, func(t *testing.T, s *Store) {
		child, parent := Key{"a", "child"}, Key{"a", "parent"}
		appendTo(t, s, child, chunk("agent", "m", "from below"))
		for range 2 {
			if err := s.Put(t.Context(), Session{Key: child, Parent: parent.ID}); err != nil {
				t.Fatal(err)
			}
		}
		appendTo(t, s, parent, chunk("agent", "m", "from above"))
		for _, text := range []string{"", "from"} {
			found, err := s.List(t.Context(), Query{Text: text})
			if err != nil || len(found) != 1 || found[0].Key != parent {
				t.Errorf("%q: listed %v, %v", text, found, err)
			}
		}
		if _, err := s.Find(t.Context(), "", "chi"); err != nil {
			t.Errorf("it is not found by its id: %v", err)
		}
		if err := s.Delete(t.Context(), parent); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Session(t.Context(), child); !errors.Is(err, ErrNotFound) {
			t.Errorf("it is not deleted with its parent: %v", err)
		}
	})
}
