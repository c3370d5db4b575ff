//go:build unix

package backend

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// sessionsOf lists the conversations in a store, and fails the test if the log of one begins anew.
func sessionsOf(t *testing.T, st *store.Store) (list []store.Match) {
	t.Helper()
	list, err := st.List(t.Context(), store.Query{Limit: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		for e, err := range st.Events(t.Context(), m.Conversation) {
			if err != nil || e.Kind == journal.KindReset {
				t.Errorf("event %+v, %v", e, err)
			}
		}
	}
	return list
}

// asks is an agent that asks for permission in each turn, and fails turns that are to. It resumes the
// sessions that it knows.
func asks(knows func(acp.SessionID) bool, greets bool) *acp.Agent {
	a := &acp.Agent{
		Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
			turn.ToolCall(acp.ToolCall{Title: "Edit " + turn.Text(), Kind: acp.ToolKindEdit}).Permit(acp.Permission{Title: "Edit " + turn.Text()})
			if turn.Text() == "refuse" {
				return acp.StopRefusal, nil
			}
			return acp.StopEndTurn, turn.Say("re: " + turn.Text())
		},
		ResumeSession: func(_ context.Context, s *acp.AgentSession, _ bool) error {
			if !knows(s.ID()) {
				return acp.SessionNotFound(s.ID())
			}
			return nil
		},
	}
	if greets {
		a.NewSession = func(_ context.Context, s *acp.AgentSession) error { return s.Say("Hello.") }
	}
	return a
}

// TestForgotten: a conversation of which the agent has forgotten the session goes on in its log, with all
// that was in it, and is found by either id.
func TestForgotten(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		for _, greets := range []bool{false, true} {
			t.Run(map[bool]string{false: "silent", true: "greets"}[greets], func(t *testing.T) {
				nothing := func(acp.SessionID) bool { return false }
				cfg := configKept(t, version, asks(nothing, false))
				cfg.Front.Ask = allow
				was, key := talkOnce(t, cfg, "one", "refuse", "one")
				before := shown(t, cfg.Store, key)
				if strings.Count(before, "answered:") != 3 || !strings.Contains(before, "refused to continue") {
					t.Fatalf("shown:\n%s", before)
				}

				cfg.BuiltIn = asks(nothing, greets)
				h, s, how := restored(t, cfg, was)
				if how != acp.RestoredNew || s.ID() == was || s.journal.conversationID() != key {
					t.Fatalf("%v, session %s in conversation %s", how, s.ID(), s.journal.conversationID())
				}
				prompt(t, s, "two")
				now := s.ID()
				if other, ok := h.Session(now); !ok || other != s {
					t.Error("the session is not found by its id")
				}
				if _, ok := h.Session(was); ok {
					t.Error("the forgotten session is still there")
				}
				_ = h.Close()
				after := shown(t, cfg.Store, key)
				if lost := missing(before, after); len(lost) > 0 {
					t.Errorf("%q is gone from\n%s", lost, after)
				}
				if got := strings.Count(after, "answered:"); got != 4 {
					t.Errorf("%d questions in\n%s", got, after)
				}
				if got := len(ends(stored(t, cfg.Store, key))); got != 4 {
					t.Errorf("%d ends of turns", got)
				}
				if got := strings.Count(after, "Hello."); got != map[bool]int{true: 1}[greets] {
					t.Errorf("the greeting is there %d times in\n%s", got, after)
				}
				if list := sessionsOf(t, cfg.Store); len(list) != 1 || list[0].ID != string(now) || !slices.Equal(list[0].Earlier, []string{string(was)}) {
					t.Errorf("sessions %+v", list)
				}

				cfg.BuiltIn = asks(func(id acp.SessionID) bool { return id == now }, false)
				for _, id := range []acp.SessionID{was, now, acp.SessionID(key)} {
					h, s, how := restored(t, cfg, id)
					if how != acp.RestoredResumed || s.ID() != now || s.journal.conversationID() != key {
						t.Errorf("restored by %s: %v, %s", id, how, s.ID())
					}
					_ = h.Close()
				}
				if diff := cmp.Diff(after, shown(t, cfg.Store, key)); diff != "" {
					t.Errorf("resumed (-before +after):\n%s", diff)
				}
			})
		}
	})
}

// A full is a disk on which the log of one conversation cannot grow any more.
type full struct {
	file.System
	log     atomic.Pointer[string] // nil while there is room
	removed atomic.Int32           // journals
}

// Remove implements [file.Disk].
func (d *full) Remove(name string) error {
	if filepath.Ext(name) == ".jsonl" {
		d.removed.Add(1)
	}
	return d.System.Remove(name)
}

// Open implements [file.Disk].
func (d *full) Open(name string, flag int) (file.File, error) {
	f, err := d.System.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return &fullFile{f, d, filepath.Base(name)}, nil
}

// Lock implements [file.Disk].
func (d *full) Lock(f file.File, shared bool) (bool, error) {
	return d.System.Lock(f.(*fullFile).File, shared)
}

type fullFile struct {
	file.File
	d    *full
	name string
}

func (f *fullFile) Write(b []byte) (int, error) {
	if log := f.d.log.Load(); log != nil && strings.HasPrefix(f.name, *log) {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(b)
}

// TestForgottenOnFullDisk: what the agent has said in the session that takes the place of a forgotten one
// stays in its log as long as it cannot be written to the other.
func TestForgottenOnFullDisk(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		dir := filepath.Join(t.TempDir(), "kept")
		disk := new(full)
		st, err := store.Open(t.Context(), store.Options{Path: dir, Disk: disk})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		nothing := func(acp.SessionID) bool { return false }
		cfg := config(t, version, asks(nothing, false))
		cfg.Store = st
		cfg.Front.Ask = allow
		was, key := talkOnce(t, cfg, "one")
		disk.log.Store(&key)
		cfg.BuiltIn = asks(nothing, true)
		_, s, how := restored(t, cfg, was)
		if how != acp.RestoredNew || s.journal.conversationID() != key {
			t.Fatalf("%v, conversation %s", how, s.journal.conversationID())
		}

		// What is on the disk now is what is left when the program is killed.
		left := openStore(t, dir)
		greetings := 0
		for _, m := range sessionsOf(t, left) {
			greetings += strings.Count(shown(t, left, m.Conversation), "Hello.")
		}
		// If the agent was slow, the greeting came when the session had taken the other's place, and waits
		// in memory for room on the disk.
		if removed := disk.removed.Load(); greetings > 1 || greetings == 0 && removed > 0 {
			t.Errorf("the greeting is on the disk %d times, and %d files were removed", greetings, removed)
		}
		disk.log.Store(nil)
	})
}

// TestForgottenQuestion: a question that is asked in the session that takes the place of a forgotten one,
// and the answer that comes after that, are in the conversation that stays.
func TestForgottenQuestion(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		nothing := func(acp.SessionID) bool { return false }
		cfg := configKept(t, version, asks(nothing, false))
		cfg.Front.Ask = allow
		was, key := talkOnce(t, cfg, "one")

		asked, answer := make(chan struct{}), make(chan struct{})
		cfg.Front.Ask = func(ctx context.Context, s *Session, req acphost.Request) (acp.PermissionOptionID, error) {
			if strings.Contains(req.Title, "early") {
				close(asked)
				<-answer
			}
			return allow(ctx, s, req)
		}
		agent := asks(nothing, false)
		agent.NewSession = func(_ context.Context, s *acp.AgentSession) error {
			go func() {
				s.ToolCall(acp.ToolCall{Title: "Edit early", Kind: acp.ToolKindEdit}).Permit(acp.Permission{Title: "Edit early"})
				_ = s.Say("Thanks.")
			}()
			return nil
		}
		cfg.BuiltIn = agent
		h, s, how := restored(t, cfg, was)
		if how != acp.RestoredNew {
			t.Fatal(how)
		}
		<-asked
		close(answer)
		prompt(t, s, "two")
		_ = h.Close()
		after := shown(t, cfg.Store, key)
		if got := strings.Count(after, "answered:"); got != 3 {
			t.Errorf("%d answered questions in\n%s", got, after)
		}
	})
}

// TestForgottenWhileOpen: the same of an agent that was started again for a login.
func TestForgottenWhileOpen(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		cfg := child(t, version, "v")
		cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
		cfg.Front.Ask = allow
		h := open(t, cfg)
		s := talk(t, h, "terminal", "hi")
		was, key := s.ID(), s.journal.conversationID()
		before := shown(t, cfg.Store, key)
		questions := 0
		for e := range s.Snapshot().Entries() {
			if _, ok := e.(*transcript.Permission); ok {
				questions++
			}
		}
		if questions == 0 && version == 1 { // agents of version 2 have terminals of their own
			t.Fatalf("nothing was asked in\n%s", before)
		}
		if err := h.restart(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if s.ID() == was {
			t.Fatal("the agent has not forgotten the session")
		}
		prompt(t, s, "hi")
		for what, snap := range map[string]*transcript.Snapshot{"shown": s.Snapshot(), "kept": stored(t, cfg.Store, key)} {
			got := 0
			for e := range snap.Entries() {
				if _, ok := e.(*transcript.Permission); ok {
					got++
				}
			}
			if got != questions || len(ends(snap)) != 3 {
				t.Errorf("%s: %d questions, want %d; ends %+v", what, got, questions, ends(snap))
			}
		}
		if lost := missing(before, shown(t, cfg.Store, key)); len(lost) > 0 {
			t.Errorf("%q is gone", lost)
		}
		now := s.ID()
		_ = h.Close()
		if list := sessionsOf(t, cfg.Store); len(list) != 1 || list[0].ID != string(now) || list[0].Conversation != key {
			t.Errorf("sessions %+v", list)
		}
	})
}
