//go:build unix

package backend

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// readable is a disk on which what is there can be read, and nothing can be owned.
type readable struct {
	file.System
	err error
}

func (d readable) Open(name string, flag int) (file.File, error) {
	if flag&os.O_CREATE != 0 && d.err != nil {
		if _, err := os.Stat(name); err != nil {
			return nil, d.err
		}
	}
	return d.System.Open(name, flag)
}

func (d readable) Lock(f file.File, exclusive bool) (bool, error) {
	if d.err == nil {
		return false, errors.ErrUnsupported
	}
	return d.System.Lock(f, exclusive)
}

// TestRestoreReadable: a conversation that can be read is shown, whether it can be continued or not, and the user learns what
// becomes of what follows.
func TestRestoreReadable(t *testing.T) {
	for what, c := range map[string]struct {
		disk  readable
		lost  bool   // at once
		tells string // how it begins
	}{
		"full":     {readable{err: syscall.ENOSPC}, false, "the conversation is not written at the moment, and kept in memory until it can be"},
		"no locks": {readable{}, true, "a part of the conversation is lost: what is said from now on is not kept"},
	} {
		t.Run(what, func(t *testing.T) {
			cfg := config(t, 2, &acp.Agent{
				Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
					return acp.StopEndTurn, turn.Say("re " + turn.Text())
				},
				ResumeSession: func(context.Context, *acp.AgentSession, bool) error { return nil },
			})
			dir := filepath.Join(t.TempDir(), "kept")
			cfg.Store = openStore(t, dir)
			id, _ := talkOnce(t, cfg, "one")
			st, err := store.Open(t.Context(), store.Options{Path: dir, Disk: c.disk})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			cfg.Store = st
			var n notes
			cfg.Front.Note = n.add
			h, s, _ := restored(t, cfg, id)
			prompt(t, s, "two")
			if got := strings.Join(messages(s.Snapshot()), "|"); got != "user: one|agent: re one|user: two|agent: re two" {
				t.Errorf("shown is %q", got)
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			said := n.text(NoteStore)
			if len(said) != 3 || !strings.Contains(said[0], "can be read and not continued") || !strings.HasPrefix(said[1], c.tells) || !strings.HasPrefix(said[2], ErrUnkept.Error()) {
				t.Errorf("the user is told %q", said)
			}
		})
	}
}

// TestLeave: a session that the user leaves, and the sessions of its subagents, can be continued by other programs. One in
// which something runs is not left.
func TestLeave(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		began, hold := make(chan struct{}), make(chan struct{})
		agent := helped(nil)
		does := agent.Prompt
		agent.Prompt = func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
			if turn.Text() == "wait" {
				close(began)
				<-hold
			}
			return does(ctx, turn)
		}
		agent.CloseSession = func(context.Context, *acp.AgentSession) error { return nil }
		cfg := configKept(t, version, agent)
		h := open(t, cfg)
		s := talk(t, h, "go")
		ended := make(chan error, 1)
		go func() {
			_, err := s.Prompt(t.Context(), acp.Text("wait"))
			ended <- err
		}()
		<-began
		if err := s.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(hold)
		if err := <-ended; err != nil {
			t.Fatalf("the turn has ended with %v", err)
		}
		child, ok := h.Session("child")
		for !ok && t.Context().Err() == nil { // what it says may come after the end of the turn
			runtime.Gosched()
			child, ok = h.Session("child")
		}
		child.journal.sync()
		if err := s.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		for what, of := range map[string]*Session{"the session": s, "the subagent's": child} {
			if is, err := cfg.Store.Writing(t.Context(), of.journal.conversationID()); is || err != nil {
				t.Errorf("%s is owned: %v, %v", what, is, err)
			}
		}
		cfg.BuiltIn = helped(nil)
		_, again, _ := restored(t, cfg, s.ID()) // another program
		if got := strings.Join(messages(again.Snapshot()), "|"); got != "user: go|agent: from above|user: wait|agent: from above" {
			t.Errorf("shown elsewhere is %q", got)
		}
	})
}
