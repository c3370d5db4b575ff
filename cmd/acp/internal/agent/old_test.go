package agent

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

const goodHeader = `{"acpSession":1,"id":"s1","cwd":"/x","created":"2026-01-02T03:04:05Z"}` + "\n"

func oldLine(text string) string {
	return fmt.Sprintf(`{"at":"2026-01-02T03:04:05.000Z","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":%q}}}`+"\n", text)
}

func TestReadOld(t *testing.T) {
	title := `{"at":"2026-01-02T03:04:05.000Z","update":{"sessionUpdate":"session_info_update","title":"Mine"}}` + "\n"
	for name, test := range map[string]struct {
		data string
		want []string
		err  string
	}{
		"whole":         {goodHeader + oldLine("a") + oldLine("b"), []string{"a", "b"}, ""},
		"only a header": {goodHeader, nil, ""},
		"torn":          {goodHeader + oldLine("a") + oldLine("b")[:30], []string{"a"}, ""},
		"no break":      {goodHeader + strings.TrimSuffix(oldLine("a"), "\n"), nil, ""},
		"garbage":       {goodHeader + oldLine("a") + "\x00\x00\x00\n{}\nnull\n[]\n\n" + oldLine("b"), []string{"a", "b"}, ""},
		"unknown":       {goodHeader + `{"update":{"sessionUpdate":"from_the_future"}}` + "\n" + oldLine("b"), []string{"b"}, ""},
		"other kinds":   {goodHeader + `{"session":{"title":"x"}}` + "\n" + `{"gap":{}}` + "\n" + oldLine("b"), []string{"b"}, ""},
		"title":         {goodHeader + title + oldLine("b"), []string{"b"}, ""},
		"empty":         {"", nil, "empty"},
		"torn header":   {goodHeader[:20], nil, "empty"},
		"no header":     {oldLine("a"), nil, "no header"},
		"other id":      {strings.Replace(goodHeader, "s1", "s2", 1), nil, "no header"},
		"no JSON":       {"hello\n", nil, "no header"},
		"newer":         {`{"acpSession":3,"id":"s1"}` + "\n", nil, "newer version"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			var a about
			err := readOld("s1", strings.NewReader(test.data), func(d journal.Draft) error {
				a.see(d)
				seen(d, func(e entry) { got = append(got, blockText(e.update.(*acp.AgentMessageChunk).Content)) })
				return nil
			})
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if err == nil && (a.Cwd != "/x" || (a.Title == "Mine") != (name == "title")) {
				t.Errorf("%+v", a)
			}
		})
	}
}

func FuzzReadOld(f *testing.F) {
	f.Add([]byte(goodHeader + oldLine("a") + oldLine("b")[:20]))
	f.Add([]byte(goodHeader + "\x00\n{\"update\":{}}\n"))
	f.Add([]byte(`{"acpSession":1e0,"id":"s1","cwd":"/"}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = readOld("s1", strings.NewReader(string(data)), func(d journal.Draft) error {
			if _, ok := parseEntry(d); !ok && d.Kind != journal.KindSession {
				t.Errorf("%s %s is no entry", d.Kind, d.Data)
			}
			return nil
		})
	})
}

// oldSessions copies the sessions that a commit has kept, and calls each with the directory and what has to be in it.
func oldSessions(t *testing.T, each func(t *testing.T, dir string, want map[acp.SessionID]oldSession)) {
	for _, name := range []string{"51d05fd", "served"} {
		t.Run(name, func(t *testing.T) {
			dir, from := t.TempDir(), filepath.Join("testdata", "old", name)
			if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(dir, "want.json"))
			want := map[acp.SessionID]oldSession{}
			if err = errors.Join(err, json.Unmarshal(data, &want)); err != nil {
				t.Fatal(err)
			}
			each(t, dir, want)
		})
	}
}

// An oldSession is what an earlier version made of a session that it had kept.
type oldSession struct {
	Cwd, Title string
	Blank      bool
	// Messages are those for a model, settled, and Updates those of a replay, as hashes of their lines.
	Messages, Updates string
}

// check compares a session with what an earlier version made of it.
func (o oldSession) check(t *testing.T, read func(each func(entry)) error) {
	t.Helper()
	var messages, updates []string
	var u unsettled
	each, flush := joined(func(u acp.SessionUpdate) error {
		data, err := u.AppendJSON(nil)
		updates = append(updates, string(data))
		return err
	})
	err := read(func(e entry) {
		if u.see(e); e.update != nil {
			if err := each(e.update); err != nil {
				t.Error(err)
			}
		}
	})
	if err := errors.Join(err, flush()); err != nil {
		t.Fatal(err)
	}
	u.settle(func(string) (string, error) { return "", nil })
	for _, m := range u.messages {
		data, err := m.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, string(data))
	}
	if o.Messages != "" && hashText(strings.Join(messages, "\n")) != o.Messages {
		t.Errorf("the messages for a model differ:\n%s", strings.Join(messages, "\n"))
	}
	if o.Updates != "" && hashText(strings.Join(updates, "\n")) != o.Updates {
		t.Errorf("a replay differs:\n%s", strings.Join(updates, "\n"))
	}
}

// TestTakenOver: sessions that an earlier version has kept are listed with others, and have the same contents, to the byte,
// once they are taken over: opened, forked or read. The old files are gone then, and the times in the list stay.
func TestTakenOver(t *testing.T) {
	oldSessions(t, func(t *testing.T, dir string, want map[acp.SessionID]oldSession) {
		s := stored(dir)
		at := time.Unix(1e9, 0)
		list := func() (all []acp.SessionInfo) {
			page, err := s.list(new(acp.SessionQuery), pageSize)
			if err != nil {
				t.Fatal(err)
			}
			return page.Sessions
		}
		for id, w := range want {
			if w.Blank {
				continue
			}
			if err := os.Chtimes(s.oldPath(id), at, at); err != nil {
				t.Fatal(err)
			}
		}
		before := list()
		for _, info := range before {
			w := want[info.SessionID]
			if w.Blank || info.Title != w.Title || info.Cwd != w.Cwd {
				t.Errorf("listed %+v", info)
			}
		}
		if len(before) != len(want)-1 {
			t.Errorf("listed %+v", before)
		}
		for id, w := range want {
			if w.Blank {
				var options []acp.SessionConfigOption
				if s.exists(id) || !s.readBlank(id, func(e entry) { options = e.update.(*acp.ConfigOptionUpdate).ConfigOptions }) {
					t.Error("the session without a prompt is lost")
				}
				if data, _ := json.Marshal(options); !strings.Contains(string(data), `"currentValue":"read-only"`) {
					t.Errorf("its options are %s", data)
				}
				continue
			}
			w.check(t, func(each func(entry)) error {
				fork, err := s.copyOf(id, "fork", about{Cwd: "/"}, each)
				if err == nil && fork.about.Parent != id {
					t.Errorf("the fork is %+v", fork.about)
				}
				return errors.Join(err, fork.drop())
			})
			for range 2 {
				w.check(t, func(each func(entry)) error {
					k, err := s.open(id, each)
					return errors.Join(err, k.close())
				})
			}
			w.check(t, func(each func(entry)) error {
				return s.read(id, func(d journal.Draft) error { seen(d, each); return nil })
			})
			if left, _ := filepath.Glob(filepath.Join(dir, string(id)+".*")); len(left) != 1 || left[0] != s.path(id) {
				t.Errorf("there are %q", left)
			}
		}
		for i, info := range list() {
			if was := before[i]; info.SessionID != was.SessionID || info.UpdatedAt != was.UpdatedAt || was.Title != "" && info.Title != was.Title {
				t.Errorf("listed %+v, before %+v", info, was)
			}
		}
	})
}

// TestTakeOverKilled: the program may be killed at any time while it takes a session over, and an old file may come back
// after a loss of power.
func TestTakeOverKilled(t *testing.T) {
	oldSessions(t, func(t *testing.T, dir string, want map[acp.SessionID]oldSession) {
		s := stored(dir)
		const id = "sess_DEAD"
		old, err := os.ReadFile(s.oldPath(id))
		if err != nil {
			t.Fatal(err)
		}
		reopen := func(add ...journal.Draft) {
			t.Helper()
			want[id].check(t, func(each func(entry)) error {
				k, err := s.open(id, each)
				return errors.Join(err, k.add(add...), k.close())
			})
			if isRegular(s.oldPath(id)) {
				t.Error("the old file is still there")
			}
		}
		back := func() {
			t.Helper()
			if err := os.WriteFile(s.oldPath(id), old, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		reopen()
		whole, err := os.ReadFile(s.path(id))
		if err != nil {
			t.Fatal(err)
		}
		for cut := 0; cut <= len(whole); cut += 211 {
			back()
			if err := os.WriteFile(s.path(id), whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			if page, err := s.list(new(acp.SessionQuery), pageSize); err != nil || len(page.Sessions) != len(want)-1 {
				t.Errorf("cut at %d: listed %+v, %v", cut, page, err)
			}
			reopen()
		}
		// What was added since then stays.
		added := journal.Draft{Kind: journal.KindUpdate, Data: []byte(`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"since"}}`)}
		reopen(added)
		back()
		found := false
		err = s.read(id, func(d journal.Draft) error { found = found || strings.Contains(string(d.Data), "since"); return nil })
		if err != nil || !found || isRegular(s.oldPath(id)) {
			t.Errorf("what was added is there: %t, %v", found, err)
		}
		back()
		if err := s.remove(id); err != nil || s.exists(id) {
			t.Errorf("removed: %v", err)
		}
	})
}

// TestTakeOverBusy: a session that is open in an earlier version is left alone. It can be forked.
func TestTakeOverBusy(t *testing.T) {
	oldSessions(t, func(t *testing.T, dir string, want map[acp.SessionID]oldSession) {
		s := stored(dir)
		const id = "sess_DEAD"
		f, err := os.OpenFile(s.oldPath(id), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if ok, err := filelock.TryLock(f, true); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if _, err := s.own(id, nil); !errors.As(err, new(*journal.OwnedError)) {
			t.Errorf("error %v", err)
		}
		want[id].check(t, func(each func(entry)) error {
			fork, err := s.copyOf(id, "fork", about{Cwd: "/"}, each)
			if err == nil {
				err = errors.Join(fork.lost, fork.drop())
			}
			return err
		})
		if !isRegular(s.oldPath(id)) || isRegular(s.path(id)) {
			t.Error("it was taken over")
		}
	})
}

// TestTakeOverLong: an old file within the bound is taken over although it is longer as a journal. Nothing can be added then.
func TestTakeOverLong(t *testing.T) {
	s := stored(t.TempDir())
	s.most = 20 << 10
	putOld(t, s, "s1", goodHeader+strings.Repeat(oldLine("a"), 100))
	for range 2 {
		n := 0
		k, err := s.open("s1", func(entry) { n++ })
		if err != nil || n != 100 || k.bytes() <= s.most {
			t.Fatalf("%d entries, %v", n, err)
		}
		if err := k.add(saying(1)); !errors.Is(err, errFull) {
			t.Errorf("added to it: %v", err)
		}
		if err := k.close(); err != nil {
			t.Error(err)
		}
	}
}

// putOld makes the file that an earlier version has kept of a session.
func putOld(t *testing.T, s *store, id acp.SessionID, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(s.dir, 0o700), os.WriteFile(s.oldPath(id), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestTakeOverLeaves: an old file that has come back does not harm a journal that cannot be read, for whatever reason.
func TestTakeOverLeaves(t *testing.T) {
	old := goodHeader + oldLine("a")
	check := func(t *testing.T, s *store, text, why string) {
		t.Helper()
		putOld(t, s, "s1", old)
		_, err := s.open("s1", nil)
		if f, ok := errors.AsType[*acp.Failure](err); !ok || f.Reason != "session_unreadable" || !strings.Contains(f.Message, why) {
			t.Errorf("opened: %v", err)
		}
		err = s.read("s1", func(journal.Draft) error { return nil })
		if strings.HasPrefix(why, "kind") {
			if err != nil {
				t.Errorf("read: %v", err) // such a journal can be read
			}
		} else if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("read: %v", err)
		}
		for name, want := range map[string]string{s.path("s1"): text, s.oldPath("s1"): old} {
			if got, err := os.ReadFile(name); err != nil || string(got) != want {
				t.Errorf("%s has %.80q now, %v", name, got, err)
			}
		}
	}
	// made makes a journal, and returns what is in it.
	made := func(t *testing.T, s *store, last journal.Draft) string {
		t.Helper()
		k, err := s.create("s1", about{Cwd: "/x"})
		if err == nil {
			err = errors.Join(k.w.Keep(t.Context(), last), k.close()) // killed behind it
		}
		data, readErr := os.ReadFile(s.path("s1"))
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, change := range map[string]func(text string) string{
		"lines": func(text string) string { return strings.ReplaceAll("\n"+text, "\n{", "\n"+`{"v":4,`)[1:] },
		"noise": func(string) string { return "noise\n" },
	} {
		t.Run(name, func(t *testing.T) {
			s := stored(t.TempDir())
			text := change(made(t, s, saying(10)))
			if err := os.WriteFile(s.path("s1"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			check(t, s, text, "no record that this version of the program can read")
		})
	}
	for why, records := range later {
		t.Run(why, func(t *testing.T) {
			s := stored(t.TempDir())
			text := putLater(t, s, "s1", records...)
			check(t, s, text, why)
		})
	}
	for _, broken := range []error{syscall.EIO, syscall.EMFILE} {
		t.Run(broken.Error(), func(t *testing.T) {
			s := stored(t.TempDir())
			text := made(t, s, saying(3*farAfter))
			whole := s.c
			s.c = file.Open(s.dir, file.Options{Options: journal.Options{GiveUp: true}, Disk: badDisk{at: suffix, err: broken}})
			check(t, s, text, broken.Error())
			s.c = whole
			n := 0
			k, err := s.open("s1", func(entry) { n++ })
			if err != nil || n != 1 || isRegular(s.oldPath("s1")) {
				t.Errorf("opened when that was over: %d entries, %v", n, err)
			}
			_ = k.close()
		})
	}
}

// A badDisk opens no file whose name ends so.
type badDisk struct {
	file.System
	at  string
	err error
}

func (d badDisk) Open(name string, flag int) (file.File, error) {
	if strings.HasSuffix(name, d.at) {
		return nil, &os.PathError{Op: "open", Path: name, Err: d.err}
	}
	return d.System.Open(name, flag)
}

// later is what a later version may write, by what the error says of it.
var later = map[string][]string{
	"format 9":     {`"session","data":{"format":9,"cwd":"/x"}`},
	`kind "later"`: {`"session","data":{"format":3,"cwd":"/x"}`, `"later","data":{}`},
}

// putLater makes the journal of a later version, and returns what is in it.
func putLater(t *testing.T, s *store, id acp.SessionID, ends ...string) (text string) {
	t.Helper()
	name := string(id) + part
	var hash [sha256.Size]byte
	for i, end := range ends {
		body := `{"at":"2026-01-02T03:04:05Z","kind":` + end + "}"
		b := append([]byte("acp log 3\n"), hash[:]...)
		b = binary.BigEndian.AppendUint64(b, uint64(i+1))
		b = binary.BigEndian.AppendUint32(b, 1)
		b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
		hash = sha256.Sum256(append(append(b, name...), body...))
		text += fmt.Sprintf(`{"seq":%d,"epoch":1,"hash":"%x","record":%s}`+"\n", i+1, hash, body)
	}
	if err := errors.Join(os.MkdirAll(s.dir, 0o700), os.WriteFile(s.path(id), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestLaterBlank: a session in which nothing was said is left alone, too, if a later version has kept it.
func TestLaterBlank(t *testing.T) {
	for why, records := range later {
		t.Run(why, func(t *testing.T) {
			s := stored(t.TempDir())
			text := putLater(t, s.blanks, "s1", records...)
			if err := s.setBlank("s1", about{Cwd: "/x"}, new(acp.ConfigOptionUpdate)); err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("changed: %v", err)
			}
			if got, err := os.ReadFile(s.blanks.path("s1")); err != nil || string(got) != text {
				t.Errorf("there is %q now, %v", got, err)
			}
			_, opened := s.open("s1", nil)
			_, copied := s.copyOf("s1", "s2", about{Cwd: "/x"}, func(entry) {})
			for _, err := range []error{opened, copied} {
				if err == nil || !strings.Contains(err.Error(), why) {
					t.Errorf("error %v", err)
				}
			}
		})
	}
}
