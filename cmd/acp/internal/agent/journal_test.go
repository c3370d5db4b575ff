package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/jsonrpc"
)

// stored returns a store that says nothing.
func stored(dir string) *store { return newStore(dir, slog.New(slog.DiscardHandler)) }

// kept calls each with what was kept of a session.
func (k *talk) kept(id acp.SessionID, each func(entry)) {
	k.t.Helper()
	if err := stored(k.dir).read(id, func(d journal.Draft) error { seen(d, each); return nil }); err != nil {
		k.t.Fatal(err)
	}
}

// TestJoined checks that pieces are joined and nothing else is changed.
func TestJoined(t *testing.T) {
	text := func(id acp.MessageID, s string) acp.SessionUpdate {
		return &acp.AgentMessageChunk{MessageID: id, Content: acp.Text(s)}
	}
	thought := func(id acp.MessageID, s string) acp.SessionUpdate {
		return &acp.AgentThoughtChunk{MessageID: id, Content: acp.Text(s)}
	}
	image := &acp.AgentMessageChunk{MessageID: "a", Content: &acp.ImageContent{MIMEType: "image/png"}}
	marked := &acp.AgentMessageChunk{MessageID: "a", Content: acp.Text("x"), Meta: []byte(`{"a":1}`)}
	plan := &acp.PlanRemoved{PlanID: "p"}
	var got []acp.SessionUpdate
	each, flush := joined(func(u acp.SessionUpdate) error { got = append(got, u); return nil })
	for _, u := range []acp.SessionUpdate{
		text("a", "1"), text("a", "2"), text("b", "3"), thought("b", "4"), thought("b", "5"), plan, text("b", "6"), image, marked, text("a", "7"),
	} {
		if err := each(u); err != nil {
			t.Fatal(err)
		}
	}
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	want := []acp.SessionUpdate{text("a", "12"), text("b", "3"), thought("b", "45"), plan, text("b", "6"), image, marked, text("a", "7")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	stop := errors.New("stop")
	each, flush = joined(func(acp.SessionUpdate) error { return stop })
	if err := each(plan); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	if err := errors.Join(each(text("a", "1")), flush()); !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
}

// TestEntries makes records and parses them again; what a client has sent with line breaks in it stays as it is.
func TestEntries(t *testing.T) {
	user := &acp.UserMessage{MessageID: "m", Content: acp.Set([]acp.ContentBlock{
		&acp.TextContent{Text: "a\nb", Meta: []byte("{\n  \"x\": 1\n}")},
	})}
	for _, u := range []acp.SessionUpdate{user, &acp.AgentMessageChunk{MessageID: "m", Content: acp.Text("c\n")}} {
		d, err := updateDraft(u)
		if err != nil {
			t.Fatal(err)
		}
		e, ok := parseEntry(d)
		if !ok {
			t.Fatalf("%s is no entry", d.Data)
		}
		if again, err := updateDraft(e.update); err != nil || !bytes.Equal(again.Data, d.Data) {
			t.Errorf("%s became %s, %v", d.Data, again.Data, err)
		}
	}
	m := &model.Message{Role: model.User, Parts: []model.Part{&model.Text{Text: "<a> & b"}}}
	d, err := recordDraft(journal.KindMessage, m)
	if err != nil || !strings.Contains(string(d.Data), "<a> & b") {
		t.Errorf("%s, %v", d.Data, err)
	}
	if e, ok := parseEntry(d); !ok || messageText(e.message) != messageText(m) {
		t.Errorf("%+v", e)
	}
}

// FuzzEntry parses records of any kind; what was parsed can be kept and parsed again.
func FuzzEntry(f *testing.F) {
	f.Add("update", []byte(`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"a"}}`))
	f.Add("update", []byte(`{"sessionUpdate":"from_the_future"}`))
	f.Add("message", []byte(`{"role":"assistant","parts":[{"type":"text","text":"<"}]}`))
	f.Add("compacted", []byte(`{"messages":[null]}`))
	f.Add("mended", []byte(`{"from":-1}`))
	f.Add("usage", []byte("null"))
	f.Add("session", []byte("{}"))
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		e, ok := parseEntry(journal.Draft{Kind: journal.Kind(kind), Data: data})
		if !ok {
			return
		}
		var d journal.Draft
		var err error
		if e.update != nil {
			d, err = updateDraft(e.update)
		} else {
			d, err = recordDraft(journal.Kind(kind), json.RawMessage(data))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := parseEntry(d); !ok {
			t.Errorf("%s became %s", data, d.Data)
		}
	})
}

// TestTorn opens sessions that a crash has left in the middle of a line.
func TestTorn(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		k.tell("hello")
		k.tell("second prompt")
		name := filepath.Join(k.dir, string(k.session.ID())+suffix)
		if err := k.conn.Close(); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
		first := bytes.IndexByte(whole, '\n') + 1
		for cut := len(whole); cut > last; cut-- {
			if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			j, err := stored(k.dir).open(k.session.ID(), nil)
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			if info, err := os.Stat(name); err != nil || info.Size() != int64(last) && info.Size() != int64(len(whole)) {
				t.Errorf("cut at %d: size %d, %v", cut, info.Size(), err)
			}
			if err := j.close(); err != nil {
				t.Error(err)
			}
		}
		for cut := range first {
			if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := stored(k.dir).open(k.session.ID(), nil); err == nil {
				t.Fatalf("cut at %d: opened", cut)
			}
		}
		// After that the session goes on, and says what it knew.
		if err := os.WriteFile(name, whole[:len(whole)-2], 0o600); err != nil {
			t.Fatal(err)
		}
		k.connect()
		k.taken()
		s, err := k.conn.Load(t.Context(), k.session.ID(), acp.SessionConfig{Cwd: k.cwd})
		if err != nil {
			t.Fatal(err)
		}
		k.session = s
		contains(t, k.taken(), "hello", "second prompt")
		contains(t, k.tell("/usage"), "Prompts in this session: 3")
	})
}

// TestPages lists more sessions than a page has.
func TestPages(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		s := stored(dir)
		n := 2*pageSize + 1
		for i := range n {
			cwd := []string{"/even", "/odd"}[i%2]
			j, err := s.create(acp.SessionID(fmt.Sprint("s", i)), about{Cwd: cwd})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(j.set(func(a *about) { a.Title = fmt.Sprint("title ", i) }), j.close()); err != nil {
				t.Fatal(err)
			}
			at := time.Unix(int64(1000+i), 0)
			if dir == "" {
				l := s.mem[j.id]
				l.updated = at
				s.mem[j.id] = l
			} else if err := os.Chtimes(s.path(j.id), at, at); err != nil {
				t.Fatal(err)
			}
		}
		if dir != "" {
			for name, text := range map[string]string{
				"torn" + oldSuffix: goodHeader[:10], "other" + oldSuffix: goodHeader, "noise" + suffix: "x\n", "empty" + suffix: "",
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		for cwd, want := range map[string]int{"": n, "/even": pageSize + 1, "/odd": pageSize, "/none": 0} {
			q := &acp.SessionQuery{Cwd: cwd}
			var got []acp.SessionInfo
			for pages := 0; ; pages++ {
				page, err := s.list(q, pageSize)
				if err != nil || pages > n {
					t.Fatal(err, pages)
				}
				got = append(got, page.Sessions...)
				if page.NextCursor == nil {
					break
				}
				q.Cursor = page.NextCursor
			}
			if len(got) != want {
				t.Errorf("%q: %d sessions", cwd, len(got))
			}
			for i, g := range got {
				if g.Title != "title "+strings.TrimPrefix(string(g.SessionID), "s") || i > 0 && g.UpdatedAt > got[i-1].UpdatedAt {
					t.Errorf("%q: %+v", cwd, g)
				}
			}
		}
		for _, c := range []string{"", "nonsense", "01000000000000000000", "01000000000000000000 ", "1 s1", "+1000000000000000000x s1"} {
			if page, err := s.list(&acp.SessionQuery{Cursor: new(acpv2.SessionListCursor(c))}, pageSize); !errors.Is(err, jsonrpc.ErrInvalidParams) {
				t.Errorf("the cursor %q, which nobody gave: %v, %v", c, page, err)
			}
		}
	}
}

// TestBounds fills journals.
func TestBounds(t *testing.T) {
	s := stored("")
	j, err := s.create("s", about{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.close() }()
	chunk := journal.Draft{Kind: journal.KindUpdate, Data: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)}
	for err == nil {
		err = j.add(chunk)
	}
	if !errors.Is(err, errFull) || j.bytes() > maxMemory || j.bytes() < maxMemory-2<<20 {
		t.Errorf("%v with %d bytes", err, j.bytes())
	}
	if err := j.add(journal.Draft{Kind: journal.KindUpdate}); !errors.Is(err, errFull) {
		t.Errorf("something was added behind a gap: %v", err)
	}
	for i := range maxInMemory + 10 {
		other, err := s.create(acp.SessionID(fmt.Sprint("other", i)), about{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if err := other.close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.mem) > maxInMemory || !s.exists("s") {
		t.Errorf("%d sessions, the open one is there: %t", len(s.mem), s.exists("s"))
	}
	d := stored(t.TempDir())
	for name, fill := range map[string]func(*keeper) journal.Draft{
		"journal": func(k *keeper) journal.Draft { k.size = maxJournal - 10; return chunk },
		"record": func(*keeper) journal.Draft {
			return journal.Draft{Kind: journal.KindUpdate, Data: make([]byte, maxData+1)}
		},
	} {
		j, err := d.create(acp.SessionID(name), about{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.add(fill(j)); !errors.Is(err, errFull) {
			t.Errorf("beyond the bound of a %s: %v", name, err)
		}
		if err := j.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestProcesses uses one session in two programs.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	s := stored(dir)
	j, err := s.create("s1", about{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	try := func() string {
		cmd := exec.Command(self(t))
		cmd.Env = append(os.Environ(), tryVariable+"="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	contains(t, try(), fmt.Sprintf("session s1 is open in process %d: close it there first", os.Getpid()))
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if got := try(); got != "opened" {
		t.Errorf("after it was closed: %s", got)
	}
	if err := s.remove("s1"); err != nil {
		t.Fatal(err)
	}
	if err := s.remove("s1"); !errors.Is(err, jsonrpc.ErrResourceNotFound) {
		t.Errorf("removed twice: %v", err)
	}
}

// newer is a journal of a later format.
func newer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	c := file.Open(dir, file.Options{})
	w, err := c.Create(t.Context(), "newer"+part, journal.Draft{Kind: journal.KindSession, Data: []byte(`{"format":9,"cwd":"/newer"}`)})
	if err == nil {
		err = w.Release(t.Context())
	}
	data, readErr := os.ReadFile(filepath.Join(dir, "newer"+suffix))
	if err := errors.Join(err, readErr, c.Close()); err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestUnreadable opens what is no session, and leaves it alone.
func TestUnreadable(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		k.tell("hello")
		for id, file := range map[acp.SessionID][2]string{
			"noise": {suffix, "noise\n"}, "empty": {suffix, ""}, "newer": {suffix, newer(t)},
			"old-noise": {oldSuffix, "noise\n"}, "old-empty": {oldSuffix, ""}, "old-newer": {oldSuffix, `{"acpSession":9,"id":"old-newer","cwd":"/"}` + "\n"},
		} {
			name, text := filepath.Join(k.dir, string(id)+file[0]), file[1]
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := k.conn.Resume(t.Context(), id, acp.SessionConfig{Cwd: k.cwd})
			if f, ok := errors.AsType[*acp.Failure](err); !ok || f.Reason != "session_unreadable" {
				t.Errorf("resumed %s: %v", id, err)
			}
			_, err = k.conn.Fork(t.Context(), id, acp.SessionConfig{Cwd: k.cwd})
			if f, ok := errors.AsType[*acp.Failure](err); !ok || f.Reason != "session_unreadable" {
				t.Errorf("forked %s: %v", id, err)
			}
			if got, err := os.ReadFile(name); err != nil || string(got) != text {
				t.Errorf("%s was changed: %q, %v", id, got, err)
			}
			if left, _ := filepath.Glob(filepath.Join(k.dir, string(id)+".*")); len(left) != 1 {
				t.Errorf("of %s there are %q", id, left)
			}
		}
		if got := k.listed(""); len(got) != 2 { // the newer one, too
			t.Errorf("listed %+v", got)
		}
		if left, _ := filepath.Glob(filepath.Join(k.dir, "sess_*"+suffix)); len(left) != 1 {
			t.Errorf("there are %q", left)
		}
	})
}
