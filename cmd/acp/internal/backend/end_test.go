//go:build unix

package backend

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// TestStubborn: a process that does not want to end has ended when Close returns; Kill does not ask
// it first, also where Close does.
func TestStubborn(t *testing.T) {
	t.Parallel()
	t.Run("close", func(t *testing.T) {
		t.Parallel()
		cfg := child(t, 1, "stubborn")
		h := open(t, cfg)
		pid := pidOf(t, h)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if syscall.Kill(pid, 0) == nil {
			t.Error("the process runs")
		}
		if !exists(filepath.Join(cfg.Agent.Env[place], "asked")) {
			t.Error("it was not asked to end")
		}
	})
	for _, closing := range []bool{false, true} {
		t.Run(map[bool]string{false: "kill", true: "kill while closing"}[closing], func(t *testing.T) {
			t.Parallel()
			cfg := child(t, 1, "stubborn")
			h := open(t, cfg)
			pid := pidOf(t, h)
			closed := make(chan error, 1)
			if closing {
				go func() { closed <- h.Close() }()
				<-h.Conn().Done()
			} else {
				closed <- nil
			}
			h.Kill()
			h.Kill()
			<-h.Done()
			if err := errors.Join(<-closed, h.Close()); err != nil {
				t.Error(err)
			}
			if syscall.Kill(pid, 0) == nil {
				t.Error("the process runs")
			}
			if exists(filepath.Join(cfg.Agent.Env[place], "asked")) {
				t.Error("it was asked to end")
			}
			h.Kill() // does nothing
		})
	}
}

// pidOf asks an agent for the number of its process.
func pidOf(t *testing.T, h *Host) int {
	t.Helper()
	s, err := h.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), acp.Text("pid")); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(s.Snapshot().Text())
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestEndWhileStarting: an agent that is being started anew for a login, and says nothing, is not
// waited for by those who end it.
func TestEndWhileStarting(t *testing.T) {
	for name, end := range map[string]func(*Host){
		"close": func(h *Host) { _ = h.Close() },
		"kill":  func(h *Host) { h.Kill(); <-h.Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := child(t, 2, "needs-terminal silent-later")
			cfg.Agent.Auth = "setup"
			cfg.Front.RunInTerminal = runHere
			silent := make(chan struct{})
			cfg.Front.Note = func(n Note) {
				if n.Kind == NoteStderr && strings.Contains(n.Text, "waiting for the moon") {
					close(silent)
				}
			}
			h := open(t, cfg)
			opened := make(chan error, 1)
			go func() {
				_, err := h.NewSession(context.Background())
				opened <- err
			}()
			<-silent
			end(h)
			if err := <-opened; !errors.Is(err, context.Canceled) {
				t.Errorf("NewSession: %v", err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestJournalCloses: what is put while the journal is being closed is written or dropped, and the
// writer does not outlive close.
func TestJournalCloses(t *testing.T) {
	for range 5 {
		s := openStore(t, t.TempDir())
		k := &keeper{store: s, note: func(n Note) { t.Errorf("note: %+v", n) }}
		j := &recording{
			keeper: k, rec: k.record(),
			about:  func() store.Session { return store.Session{Key: store.Key{Agent: "a", ID: "s"}} },
			killed: make(chan struct{}), conv: transcript.New(transcript.Config{}),
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range 1000 {
				u := &acp.AgentMessage{MessageID: "m", Content: acp.Set([]acp.ContentBlock{acp.Text("x")})}
				j.put(item{update: u, event: updateEvent(u)})
			}
		}()
		j.sync()
		j.close()
		j.mu.Lock()
		if j.writer != nil || len(j.queue) > 0 {
			t.Error("close has returned and the writer runs")
		}
		j.mu.Unlock()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	}
}

// TestTroubleEnds: what a conversation lost when it was closed is told once, and does not keep what
// happens to others from being told.
func TestTroubleEnds(t *testing.T) {
	var notes []string
	s, err := store.Open(t.Context(), store.Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k := &keeper{store: s, note: func(n Note) { notes = append(notes, n.Text) }}
	rec := k.record()
	k.trouble(rec.Conversation(), errors.New("disk full"))
	k.closed(rec)
	k.trouble("other", errors.New("disk full"))
	k.trouble("other", nil)
	again := "the conversation is written again, and nothing of it is missing"
	waits := "the conversation is not written at the moment, and kept in memory until it can be: disk full"
	if want := []string{waits, again, waits, again}; !slices.Equal(notes, want) {
		t.Errorf("%q, want %q", notes, want)
	}
}
