package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

const goodHeader = `{"acpSession":1,"id":"s1","cwd":"/x","created":"2026-01-02T03:04:05Z"}` + "\n"

func line(text string) string {
	return fmt.Sprintf(`{"at":"2026-01-02T03:04:05.000Z","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":%q}}}`+"\n", text)
}

// texts reads a journal and returns the texts in it.
func texts(data string) (all []string, c *contents, err error) {
	c, err = readJournal(strings.NewReader(data), func(u acp.SessionUpdate) error {
		if chunk, ok := u.(*acp.AgentMessageChunk); ok {
			all = append(all, blockText(chunk.Content))
		} else {
			all = append(all, fmt.Sprintf("%T", u))
		}
		return nil
	})
	return all, c, err
}

func TestReadJournal(t *testing.T) {
	for name, test := range map[string]struct {
		data  string
		want  []string
		bad   int
		whole int
		err   string
	}{
		"whole":         {goodHeader + line("a") + line("b"), []string{"a", "b"}, 0, 0, ""},
		"only a header": {goodHeader, nil, 0, 0, ""},
		"torn":          {goodHeader + line("a") + line("b")[:30], []string{"a"}, 0, len(goodHeader + line("a")), ""},
		"no break":      {goodHeader + strings.TrimSuffix(line("a"), "\n"), nil, 0, len(goodHeader), ""},
		"garbage":       {goodHeader + line("a") + "\x00\x00\x00\n{}\nnull\n[]\n\n" + line("b"), []string{"a", "b"}, 5, 0, ""},
		"unknown":       {goodHeader + `{"update":{"sessionUpdate":"from_the_future"}}` + "\n" + line("b"), []string{"b"}, 1, 0, ""},
		"empty":         {"", nil, 0, 0, "empty"},
		"torn header":   {goodHeader[:20], nil, 0, 0, "empty"},
		"no header":     {line("a"), nil, 0, 0, "no header"},
		"no JSON":       {"hello\n", nil, 0, 0, "no header"},
		"newer":         {`{"acpSession":3,"id":"s1"}` + "\n", nil, 0, 0, "newer version"},
	} {
		t.Run(name, func(t *testing.T) {
			got, c, err := texts(test.data)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				return
			}
			if test.whole == 0 {
				test.whole = len(test.data)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || c.bad != test.bad || c.whole != int64(test.whole) {
				t.Errorf("bad %d, whole %d, %s", c.bad, c.whole, diff)
			}
		})
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

// TestEntries writes entries and reads them again; what a client has sent with
// line breaks in it stays one line.
func TestEntries(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	user := &acp.UserMessage{MessageID: "m", Content: acp.Set([]acp.ContentBlock{
		&acp.TextContent{Text: "a\nb", Meta: []byte("{\n  \"x\": 1\n}")},
	})}
	data := []byte(goodHeader)
	for _, u := range []acp.SessionUpdate{user, &acp.AgentMessageChunk{MessageID: "m", Content: acp.Text("c\n")}} {
		var err error
		if data, err = appendEntry(data, at, u); err != nil {
			t.Fatal(err)
		}
	}
	if n := bytes.Count(data, []byte("\n")); n != 3 {
		t.Errorf("%d lines", n)
	}
	got, c, err := texts(string(data))
	if diff := cmp.Diff([]string{"*acpv2.UserMessage", "c\n"}, got); diff != "" || err != nil || c.bad > 0 {
		t.Error(diff, err)
	}
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(goodHeader + line("a") + line("b")[:20]))
	f.Add([]byte(goodHeader + "\x00\n{\"update\":{}}\n"))
	f.Add([]byte(`{"acpSession":1e0,"id":"s"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		again := []byte(goodHeader)
		n := 0
		each, flush := joined(func(u acp.SessionUpdate) error {
			var err error
			again, err = appendEntry(again, time.Unix(0, 0), u)
			n++
			return err
		})
		c, err := readJournal(bytes.NewReader(data), each)
		if err != nil {
			return
		}
		if err := flush(); err != nil {
			t.Fatal(err)
		}
		if c.whole > int64(len(data)) {
			t.Errorf("%d of %d bytes", c.whole, len(data))
		}
		// What was read can be written and read again.
		m := 0
		c, err = readJournal(bytes.NewReader(again), func(acp.SessionUpdate) error { m++; return nil })
		if err != nil || c.bad > 0 || m != n {
			t.Errorf("%d updates became %d, %d bad, %v", n, m, c.bad, err)
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
		for cut := len(whole); cut > last-3; cut-- {
			if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			j, c, err := newStore(k.dir).open(k.session.ID(), nil)
			if err != nil || c.bad > 0 {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			info, err := os.Stat(name)
			if err != nil || info.Size() > int64(cut) || c.whole != info.Size() {
				t.Errorf("cut at %d: size %d, whole %d, %v", cut, info.Size(), c.whole, err)
			}
			if err := j.close(); err != nil {
				t.Error(err)
			}
		}
		for cut := range first {
			if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := newStore(k.dir).open(k.session.ID(), nil); err == nil {
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
		s := newStore(dir)
		n := 2*pageSize + 1
		for i := range n {
			cwd := []string{"/even", "/odd"}[i%2]
			j, err := s.create(&header{Version: 1, ID: acp.SessionID(fmt.Sprint("s", i)), Cwd: cwd, Created: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(j.setTitle(fmt.Sprint("title ", i)), j.close()); err != nil {
				t.Fatal(err)
			}
			at := time.Unix(int64(1000+i), 0)
			if dir == "" {
				s.mem[j.id].updated = at
			} else if err := os.Chtimes(s.path(j.id), at, at); err != nil {
				t.Fatal(err)
			}
		}
		if dir != "" {
			for name, text := range map[string]string{"torn": goodHeader[:10], "other": goodHeader, "noise": "x\n"} {
				if err := os.WriteFile(filepath.Join(dir, name+suffix), []byte(text), 0o600); err != nil {
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
	s := newStore("")
	j, err := s.create(&header{Version: 1, ID: "s", Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	chunk := &acp.AgentMessageChunk{MessageID: "m", Content: acp.Text(strings.Repeat("x", 1<<20))}
	for err == nil {
		err = j.add(chunk)
	}
	if !errors.Is(err, errFull) || j.bytes() > maxMemory || j.bytes() < maxMemory-2<<20 {
		t.Errorf("%v with %d bytes", err, j.bytes())
	}
	if err := j.add(&acp.PlanRemoved{PlanID: "small"}); !errors.Is(err, errFull) {
		t.Errorf("something was added behind a gap: %v", err)
	}
	for i := range maxInMemory + 10 {
		other, err := s.create(&header{Version: 1, ID: acp.SessionID(fmt.Sprint("other", i)), Cwd: "/"})
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
	d := newStore(t.TempDir())
	j, err = d.create(&header{Version: 1, ID: "s", Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.close() }()
	j.size = maxJournal - 10
	if err := j.add(chunk); !errors.Is(err, errFull) {
		t.Errorf("beyond the bound: %v", err)
	}
}

// TestProcesses uses one session in two programs.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	s := newStore(dir)
	j, err := s.create(&header{Version: 1, ID: "s1", Cwd: "/"})
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
	contains(t, try(), "open in another place")
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

// TestUnreadable opens what is no session, and leaves it alone.
func TestUnreadable(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		k.tell("hello")
		for id, text := range map[acp.SessionID]string{"noise": "noise\n", "newer": `{"acpSession":9,"id":"newer","cwd":"/"}` + "\n", "empty": ""} {
			name := filepath.Join(k.dir, string(id)+suffix)
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
		}
		if got := k.listed(""); len(got) != 1 {
			t.Errorf("listed %+v", got)
		}
		if left, _ := filepath.Glob(filepath.Join(k.dir, "sess_*"+suffix)); len(left) != 1 {
			t.Errorf("there are %q", left)
		}
	})
}
