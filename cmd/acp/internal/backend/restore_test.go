//go:build unix

package backend

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/transcript"
)

// TestRestore: a conversation goes on in another process, whatever the agent knows of it.
func TestRestore(t *testing.T) {
	say := func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		return acp.StopEndTurn, turn.Say("re: " + turn.Text())
	}
	tests := []struct {
		name   string
		resume func(ctx context.Context, s *acp.AgentSession, replay bool) error
		how    acp.Restored
		want   string
		v2     string // if it is another
	}{
		// What is kept need not be told: the agent is not asked for it, and what it tells is added.
		{"told", func(_ context.Context, s *acp.AgentSession, replay bool) error {
			if replay {
				return errors.New("a replay was asked for")
			}
			for _, u := range []acp.SessionUpdate{
				&acp.UserMessageChunk{MessageID: "h1", Content: acp.Text("as the agent")},
				&acp.AgentMessageChunk{MessageID: "h2", Content: acp.Text("remembers it")},
			} {
				if err := s.Send(u); err != nil {
					return err
				}
			}
			return nil
		}, acp.RestoredResumed, "user: one|agent: re: one|user: as the agent|agent: remembers it", ""},
		{"told nothing", func(context.Context, *acp.AgentSession, bool) error { return nil }, acp.RestoredResumed, "user: one|agent: re: one", ""},
		{"told what is known", func(_ context.Context, s *acp.AgentSession, _ bool) error {
			if err := s.Send(&acp.UserMessageChunk{MessageID: "h1", Content: acp.Text("one")}); err != nil {
				return err
			}
			return s.Send(&acp.AgentMessageChunk{MessageID: "h2", Content: acp.Text("re: one")})
		}, acp.RestoredResumed, "user: one|agent: re: one", ""},
		{"unknown", func(_ context.Context, s *acp.AgentSession, _ bool) error { return acp.SessionNotFound(s.ID()) }, acp.RestoredNew, "user: one|agent: re: one", ""},
		{"cannot", nil, acp.RestoredNew, "user: one|agent: re: one", ""},
	}
	versions(t, func(t *testing.T, version int) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				cfg := configKept(t, version, &acp.Agent{Prompt: say})
				id, _ := talkOnce(t, cfg, "one")

				cfg.BuiltIn = &acp.Agent{Prompt: say, ResumeSession: tt.resume}
				h, again, how := restored(t, cfg, id)
				if how != tt.how {
					t.Fatalf("Restore: %v", how)
				}
				if (again.ID() == id) != (how != acp.RestoredNew) {
					t.Errorf("id %s, was %s", again.ID(), id)
				}
				check := func(what, want string, snap *transcript.Snapshot) {
					t.Helper()
					if got := strings.Join(messages(snap), "|"); got != want {
						t.Errorf("%s: %s, want %s", what, got, want)
					}
				}
				again.settle()
				again.journal.sync()
				check("shown", tt.want, again.Snapshot())
				prompt(t, again, "two")
				want := tt.want + "|user: two|agent: re: two"
				check("shown then", want, again.Snapshot())
				check("stored then", want, stored(t, cfg.Store, again.journal.conversationID()))
				if _, ok := h.Session(again.ID()); !ok {
					t.Error("it is not found by its id")
				}
			})
		}
	})
}

// TestRestoreFails: nothing is taken away when the agent fails while it tells the history.
func TestRestoreFails(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		cfg := configKept(t, version, &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, turn.Say("kept")
		}})
		id, conversation := talkOnce(t, cfg, "one")
		cfg.BuiltIn = &acp.Agent{Logger: logtest.New(t), Prompt: cfg.BuiltIn.Prompt, ResumeSession: func(_ context.Context, s *acp.AgentSession, _ bool) error {
			if err := s.Send(&acp.AgentMessageChunk{MessageID: "x", Content: acp.Text("half")}); err != nil {
				return err
			}
			time.Sleep(100 * time.Millisecond) // the agent takes longer than late history is gathered
			return errors.New("the rest is gone")
		}}
		h := open(t, cfg)
		if _, _, err := h.Restore(t.Context(), id); err == nil {
			t.Fatal("it was restored")
		}
		_ = h.Close()
		if got := strings.Join(messages(stored(t, cfg.Store, conversation)), "|"); got != "user: one|agent: kept" {
			t.Errorf("stored %s", got)
		}
	})
}

// failing is a file system in which nothing can be written while it fails.
type failing struct {
	file.System
	fails atomic.Bool
}

func (f *failing) Open(name string, flag int) (file.File, error) {
	if f.fails.Load() {
		return nil, syscall.ENOSPC
	}
	file, err := f.System.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return failingFile{file, f}, nil
}

func (f *failing) Lock(file file.File, exclusive bool) (bool, error) {
	return f.System.Lock(file.(failingFile).File, exclusive)
}

type failingFile struct {
	file.File
	f *failing
}

func (f failingFile) Write(b []byte) (int, error) {
	if f.f.fails.Load() {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, syscall.ENOSPC
	}
	return f.File.Write(b)
}

// TestStoreFails: a disk that is full is told of once, the conversation goes on, and all of it is
// written when there is room again, which is told, too.
func TestStoreFails(t *testing.T) {
	cfg := config(t, 2, &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		return acp.StopEndTurn, turn.Say("re " + turn.Text())
	}})
	disk := new(failing)
	st, err := store.Open(t.Context(), store.Options{Path: t.TempDir(), Disk: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	cfg.Store = st
	var n notes
	cfg.Front.Note = n.add
	h := open(t, cfg)
	s, err := h.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := ""
	for i, text := range []string{"one", "two", "three"} {
		disk.fails.Store(i > 0)
		if _, err := s.Prompt(t.Context(), acp.Text(text)); err != nil {
			t.Fatal(err)
		}
		want += "|user: " + text + "|agent: re " + text
	}
	if got := "|" + strings.Join(messages(s.Snapshot()), "|"); got != want {
		t.Errorf("shown %s", got)
	}
	if got := n.text(NoteStore); len(got) != 1 || !strings.Contains(got[0], "no space") {
		t.Errorf("notes %q", got)
	}
	disk.fails.Store(false)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if got := n.text(NoteStore); len(got) != 2 || !strings.Contains(got[1], "nothing of it is missing") {
		t.Errorf("notes %q", got)
	}
	stored, damage, err := st.Snapshot(t.Context(), s.journal.conversationID(), transcript.Config{})
	if err != nil || damage != nil {
		t.Fatal(damage, err)
	}
	if got := "|" + strings.Join(messages(stored), "|"); got != want {
		t.Errorf("stored %s", got)
	}
}

// TestBurst: many updates come in few calls, in order, and none is missing.
func TestBurst(t *testing.T) {
	many := 50_000
	if raceEnabled {
		many = 2000 // the detector makes it very slow
	}
	versions(t, func(t *testing.T, version int) {
		cfg := config(t, version, &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
			for i := range many {
				if err := turn.Say(fmt.Sprintf("%d,", i)); err != nil {
					return "", err
				}
			}
			return acp.StopEndTurn, nil
		}})
		cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
		var mu sync.Mutex
		var calls int
		var told strings.Builder
		cfg.Front.Changed = func(_ *Session, changes []transcript.Change) {
			mu.Lock()
			defer mu.Unlock()
			calls++
			for _, ch := range changes {
				if ch.Kind == transcript.KindMessage && strings.Contains(ch.Text, ",") {
					told.WriteString(ch.Text)
				}
			}
		}
		h := open(t, cfg)
		s, err := h.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Prompt(t.Context(), acp.Text("go")); err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for i := range many {
			fmt.Fprintf(&want, "%d,", i)
		}
		mu.Lock()
		defer mu.Unlock()
		if told.String() != want.String() || s.Snapshot().Text() != want.String() {
			t.Errorf("told %d bytes, shown %d, want %d", told.Len(), len(s.Snapshot().Text()), want.Len())
		}
		if calls > many/2 {
			t.Errorf("%d calls", calls)
		}
	})
}

// TestLent: writing and running is asked about once.
func TestLent(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.txt")
	var deny bool
	var asked []string
	agent := &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		if turn.Text() == "edit" {
			call := turn.ToolCall(acp.ToolCall{Title: "edit x", Kind: acp.ToolKindEdit, Locations: []acp.ToolCallLocation{{Path: file}}})
			if !call.Permit(acp.Permission{Title: "edit x"}) {
				return acp.StopEndTurn, turn.Say("refused")
			}
		}
		if err := turn.WriteFile(file, "text"); err != nil {
			return acp.StopEndTurn, turn.Say("failed")
		}
		return acp.StopEndTurn, turn.Say("written")
	}}
	cfg := config(t, 1, agent)
	cfg.Cwd = dir
	cfg.Front.Ask = func(_ context.Context, _ *Session, req acphost.Request) (acp.PermissionOptionID, error) {
		asked = append(asked, req.Title)
		if req.Of == nil || len(req.Of.Options) == 0 {
			t.Error("there is nothing to show")
		}
		if deny {
			return req.Reject(), nil
		}
		return req.Allow(), nil
	}
	h := open(t, cfg)
	s, err := h.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		prompt, says, asked string
		deny                bool
	}{
		{"edit", "written", "edit x", false},
		{"write", "written", "Write " + file, false},
		{"write", "failed", "Write " + file, true},
	} {
		asked, deny = nil, step.deny
		if _, err := s.Prompt(t.Context(), acp.Text(step.prompt)); err != nil {
			t.Fatal(err)
		}
		if got := s.Snapshot().Text(); got != step.says || strings.Join(asked, "|") != step.asked {
			t.Errorf("%+v: says %q, asked %q", step, got, asked)
		}
	}
}

// TestNobody: without anybody to ask, what no rule allows is denied, and told.
func TestNobody(t *testing.T) {
	cfg := config(t, 2, &acp.Agent{Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		ok := turn.ToolCall(acp.ToolCall{Title: "x", Kind: acp.ToolKindEdit}).Permit(acp.Permission{Title: "x"})
		return acp.StopEndTurn, turn.Say(fmt.Sprint(ok))
	}})
	var recs []acphost.Record
	cfg.Front.Decided = func(_ *Session, rec acphost.Record, _ acphost.Request) { recs = append(recs, rec) }
	h := open(t, cfg)
	s, err := h.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), acp.Text("go")); err != nil {
		t.Fatal(err)
	}
	if s.Snapshot().Text() != "false" || len(recs) != 1 || recs[0].Effect != acphost.EffectDeny {
		t.Errorf("%q, %+v", s.Snapshot().Text(), recs)
	}
}

func TestOptions(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		cfg := config(t, version, &acp.Agent{
			Prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
			NewSession: func(_ context.Context, s *acp.AgentSession) error {
				return s.SetOptions(acp.SessionConfigOption{ConfigID: "speed", Name: "Speed", Kind: &acpv2.SessionConfigSelect{
					CurrentValue: "slow", Options: acpv2.SessionConfigSelectOptionList{{Value: "slow", Name: "Slow"}, {Value: "fast", Name: "Fast"}},
				}})
			},
		})
		h := open(t, cfg)
		s, err := h.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		value := func() string { return fmt.Sprintf("%+v", s.Snapshot().Session().ConfigOptions) }
		if !strings.Contains(value(), "speed") {
			t.Fatalf("options %s", value())
		}
		if err := s.SetOption(t.Context(), "speed", &acp.SessionConfigOptionValueID{Value: "fast"}); err != nil {
			t.Fatal(err)
		}
		sel := s.Snapshot().Session().ConfigOptions[0].Kind.(*acpv2.SessionConfigSelect)
		if sel.CurrentValue != "fast" {
			t.Errorf("options %s", value())
		}
	})
}

func TestName(t *testing.T) {
	if _, err := Open(t.Context(), Config{Agent: roster.Agent{Name: "builtin", Builtin: true}, Cwd: t.TempDir()}); err == nil {
		t.Error("it opened")
	}
}

// TestCloseWhileOpening: an agent that does not answer holds nothing up.
func TestCloseWhileOpening(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		asked := make(chan struct{})
		cfg := config(t, version, &acp.Agent{
			Prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
			NewSession: func(ctx context.Context, _ *acp.AgentSession) error {
				close(asked)
				<-ctx.Done()
				return ctx.Err()
			},
		})
		h := open(t, cfg)
		result := make(chan error, 1)
		go func() {
			_, err := h.NewSession(context.Background())
			result <- err
		}()
		<-asked
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-result; err == nil {
			t.Error("there is a session")
		}
	})
}
