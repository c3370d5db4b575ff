package agent

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

// saying is an update with a text of a size.
func saying(size int) journal.Draft {
	const update = `{"kind":"session","data":{"cwd":"/wrong","title":"wrong"},"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"`
	return journal.Draft{Kind: journal.KindUpdate, Data: []byte(update + strings.Repeat("x", size) + `"}}`)}
}

// TestNewest: the list has the title that a session got last, however much follows it, also if the program was killed
// before it could bring it to the end.
func TestNewest(t *testing.T) {
	s := stored(t.TempDir())
	k, err := s.create("s", about{Cwd: "/here", Roots: []string{"/there"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = k.close() }()
	want := func(what, title string) {
		t.Helper()
		page, err := s.list(new(acp.SessionQuery), pageSize)
		if err != nil || len(page.Sessions) != 1 {
			t.Fatal(page, err)
		}
		if got := page.Sessions[0]; got.Title != title || got.Cwd != "/here" || fmt.Sprint(got.AdditionalDirectories) != "[/there]" {
			t.Errorf("%s: %+v", what, got)
		}
	}
	// far is how far the last record about the session is behind the end.
	far := func() int {
		data, err := os.ReadFile(s.path("s"))
		if err != nil {
			t.Fatal(err)
		}
		return len(data) - strings.LastIndex(string(data), `,"kind":"session","data":{"cwd":"/here"`)
	}
	want("new", "")
	for i := range 3 {
		title := fmt.Sprint("title ", i)
		if err := k.set(func(a *about) { a.Title = title }); err != nil {
			t.Fatal(err)
		}
		want("named", title)
		for range 500 {
			if err := k.add(saying(1000)); err != nil {
				t.Fatal(err)
			}
		}
		want("after small records", title)
		if got := far(); got > farAfter+8<<10 {
			t.Errorf("%d bytes from the end", got)
		}
		if err := k.sync(); err != nil {
			t.Fatal(err)
		}
		want("after a turn", title)
		if got := far(); got > nearAfter {
			t.Errorf("%d bytes from the end after a turn", got)
		}
		if err := k.w.Keep(t.Context(), saying(3*farAfter)); err != nil { // killed behind it
			t.Fatal(err)
		}
		want("after a large record", title)
	}
}

// A fullDisk has no room from some time on.
type fullDisk struct {
	file.System
	full *atomic.Bool
}

type fullFile struct {
	file.File
	full *atomic.Bool
}

func (d fullDisk) Open(name string, flag int) (file.File, error) {
	f, err := d.System.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return fullFile{f, d.full}, nil
}

func (d fullDisk) Lock(f file.File, exclusive bool) (bool, error) {
	return d.System.Lock(f.(fullFile).File, exclusive)
}

func (f fullFile) Write(b []byte) (int, error) {
	if f.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(b)
}

// TestFullDisk: a session whose disk gets full says so once and goes on. What was kept before is there later, and nothing
// that follows a gap.
func TestFullDisk(t *testing.T) {
	k, v := grab(t)
	var full atomic.Bool
	s := v.agent.store
	s.c = file.Open(s.dir, file.Options{Options: journal.Options{GiveUp: true}, Disk: fullDisk{full: &full}})
	lacks(t, k.tell("hello"), "cannot be saved")
	full.Store(true)
	contains(t, k.tell("/read main.go"), "package main", "cannot be saved: no space left on device")
	full.Store(false)
	lacks(t, k.tell("/read doc/notes.txt"), "cannot be saved")
	if err := k.session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	k.kept(k.session.ID(), func(e entry) {
		if data, err := e.update.AppendJSON(nil); err != nil {
			t.Error(err)
		} else {
			kept.Write(data)
		}
	})
	contains(t, kept.String(), "hello")
	lacks(t, kept.String(), "main.go", "notes.txt")
}
