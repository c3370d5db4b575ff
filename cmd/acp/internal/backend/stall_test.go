//go:build unix

package backend

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// A stalling is a file system whose writes block while it is stalled.
type stalling struct {
	file.System
	mu    sync.Mutex
	stall chan struct{} // nil if writes go through
}

// set has writes block, or lets all of them go.
func (d *stalling) set(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stall != nil {
		close(d.stall)
		d.stall = nil
	}
	if on {
		d.stall = make(chan struct{})
	}
}

func (d *stalling) wait() {
	d.mu.Lock()
	stall := d.stall
	d.mu.Unlock()
	if stall != nil {
		<-stall
	}
}

// Open implements [file.Disk].
func (d *stalling) Open(name string, flag int) (file.File, error) {
	f, err := d.System.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return &stallingFile{f, d}, nil
}

// Lock implements [file.Disk].
func (d *stalling) Lock(f file.File, exclusive bool) (bool, error) {
	return d.System.Lock(f.(*stallingFile).File, exclusive)
}

type stallingFile struct {
	file.File
	d *stalling
}

func (f *stallingFile) Write(b []byte) (int, error) { f.d.wait(); return f.File.Write(b) }
func (f *stallingFile) Sync() error                 { f.d.wait(); return f.File.Sync() }

// A window is a host with a store of its own, as each process has one.
type window struct {
	disk stalling
	host *Host
	s    *Session

	mu    sync.Mutex
	notes []error // of kind NoteStore
	text  string  // of each message
}

const streamPiece = 64 << 10

// openWindow opens a window on a directory that others use, too. The agent says, for each prompt, as many
// pieces as it has letters.
func openWindow(t *testing.T, dir string) *window {
	t.Helper()
	w := &window{text: strings.Repeat("x", streamPiece-1) + " "}
	st, err := store.Open(t.Context(), store.Options{Path: dir, Disk: &w.disk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	cfg := config(t, 0, &acp.Agent{Prompt: func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
		for i := range len(turn.Text()) {
			say := turn.Say
			if i/256%2 == 1 {
				say = turn.Think // a message longer than 32 MiB is not shown as a whole
			}
			if ctx.Err() != nil {
				return acp.StopCancelled, nil
			}
			if err := say(w.text); err != nil {
				return "", err
			}
		}
		return acp.StopEndTurn, nil
	}})
	cfg.Store = st
	cfg.Front.Note = func(n Note) {
		if n.Kind == NoteStore {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.notes = append(w.notes, n.Err)
		}
	}
	w.host = open(t, cfg)
	if w.s, err = w.host.NewSession(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// pieces returns how many pieces of the agent's words are shown.
func (w *window) pieces() int {
	n := 0
	for _, m := range messages(w.s.Snapshot()) {
		if !strings.HasPrefix(m, "user: ") {
			n += len(m)
		}
	}
	return n / streamPiece // but for the roles
}

// inLog returns the same in the log.
func (w *window) inLog(t *testing.T) (n int) {
	t.Helper()
	for e, err := range w.host.cfg.Store.Events(t.Context(), w.s.journal.conversationID()) {
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Data) > streamPiece {
			n++
		}
	}
	return n
}

func (w *window) noted() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]error(nil), w.notes...)
}

// TestStalledStreams: the disk of one of four windows, or of all, does not answer while they stream. All is shown,
// the turns end, lists are made, and when the disk answers again nothing is missing in the logs.
func TestStalledStreams(t *testing.T) {
	const windows, pieces = 4, 100 // 6 MiB each
	for _, stalled := range []int{1, windows} {
		t.Run(fmt.Sprint(stalled), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "kept")
			synctest.Test(t, func(t *testing.T) {
				var all []*window
				for range windows {
					w := openWindow(t, dir)
					if _, err := w.s.Prompt(t.Context(), acp.Text("x")); err != nil {
						t.Fatal(err)
					}
					all = append(all, w)
				}
				for _, w := range all[:stalled] {
					w.disk.set(true)
				}
				var group sync.WaitGroup
				for _, w := range all {
					group.Go(func() {
						if _, err := w.s.Prompt(t.Context(), acp.Text(strings.Repeat("x", pieces))); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
				time.Sleep(time.Minute)
				for i, w := range all {
					if n := w.pieces(); n != pieces+1 {
						t.Errorf("window %d shows %d pieces of %d", i, n, pieces+1)
					}
					notes := w.noted()
					if is := len(notes) == 1 && errors.Is(notes[0], ErrUnwritten); is != (i < stalled) {
						t.Errorf("window %d: notes %v", i, notes)
					}
					if i >= stalled && w.inLog(t) != pieces+1 {
						t.Errorf("window %d has %d pieces in its log", i, w.inLog(t))
					}
					if found, err := w.host.cfg.Store.List(t.Context(), store.Query{}); err != nil || len(found) != windows {
						t.Errorf("window %d lists %d sessions, %v", i, len(found), err)
					}
				}
				for _, w := range all {
					w.disk.set(false)
				}
				time.Sleep(time.Minute)
				for i, w := range all {
					if n := w.inLog(t); n != pieces+1 {
						t.Errorf("window %d has %d pieces in its log in the end", i, n)
					}
					if notes := w.noted(); i < stalled && (len(notes) != 2 || notes[1] != nil) {
						t.Errorf("window %d: notes %v in the end", i, notes)
					}
					if err := w.host.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestStalledBound: at the bound of what waits in memory the agent waits. It can be cancelled, other
// windows go on, and all of it arrives when the disk answers again.
func TestStalledBound(t *testing.T) {
	const most = (journal.MaxBacklog + maxQueued) / streamPiece
	for _, end := range []string{"answers", "close"} {
		t.Run(end, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "kept")
			synctest.Test(t, func(t *testing.T) {
				w, other := openWindow(t, dir), openWindow(t, dir)
				if _, err := w.s.Prompt(t.Context(), acp.Text("x")); err != nil {
					t.Fatal(err)
				}
				w.disk.set(true)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, err := w.s.Prompt(t.Context(), acp.Text(strings.Repeat("x", 3*most)))
					if err != nil && end != "close" {
						t.Error(err)
					}
				}()
				time.Sleep(time.Minute)
				select {
				case <-ended:
					t.Error("the agent did not wait at the bound")
				default:
				}
				shown := w.pieces()
				if shown < journal.MaxBacklog*9/10/streamPiece || shown > most {
					t.Errorf("%d pieces are shown, the bound is %d", shown, most)
				}
				if _, err := other.s.Prompt(t.Context(), acp.Text("xxx")); err != nil || other.inLog(t) != 3 {
					t.Errorf("the other window: %v", err)
				}
				if err := w.s.Cancel(t.Context()); err != nil {
					t.Error(err)
				}
				if end == "close" {
					begin := time.Now()
					_ = w.host.Close()
					<-ended
					if took := time.Since(begin); took > time.Minute {
						t.Errorf("Close took %v", took)
					}
					if notes := w.noted(); len(notes) != 2 || !errors.Is(notes[1], store.ErrUnsaved) {
						t.Errorf("notes: %v", notes)
					}
					w.disk.set(false)
					return
				}
				w.disk.set(false)
				<-ended
				time.Sleep(time.Minute)
				if n := w.inLog(t); n < shown || n != w.pieces() {
					t.Errorf("%d pieces in the log, %d were shown, and %d are", n, shown, w.pieces())
				}
				_ = w.host.Close()
			})
		})
	}
}
