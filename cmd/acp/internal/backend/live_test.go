//go:build unix

package backend

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
)

// helped is an agent whose turns have a subagent say something. With each session that it resumes it
// calls resumed.
func helped(resumed func(*acp.AgentSession)) *acp.Agent {
	return &acp.Agent{
		Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
			s := turn.Session()
			child := "child"
			if strings.HasPrefix(turn.Text(), "child") {
				child = turn.Text()
			}
			_ = s.Send(&acp.SubagentUpdate{SessionID: acp.SessionID(child), Title: acp.Set("Helper")})
			_ = s.Child(acp.SessionID(child)).Say("from below")
			return acp.StopEndTurn, turn.Say("from above")
		},
		ResumeSession: func(_ context.Context, s *acp.AgentSession, _ bool) error {
			if resumed != nil {
				resumed(s)
			}
			return nil
		},
	}
}

// heardOf counts how often a session has words. What is told in a session of a subagent may come after the
// end of the turn, so it is called in a bubble.
func heardOf(t *testing.T, h *Host, id acp.SessionID, words string) int {
	t.Helper()
	s, ok := h.Session(id)
	if !ok {
		t.Fatalf("session %s is not known", id)
	}
	synctest.Wait()
	s.settle()
	s.journal.sync()
	return strings.Count(strings.Join(messages(s.Snapshot()), "|"), words)
}

// TestChildIsLive: what a restored subagent says after a prompt is shown, also if it said the same before.
func TestChildIsLive(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		synctest.Test(t, func(t *testing.T) {
			cfg := configKept(t, version, helped(nil))
			id, _ := talkOnce(t, cfg, "go")
			cfg.BuiltIn = helped(nil)
			h, s, _ := restored(t, cfg, id)
			prompt(t, s, "again")
			if got := heardOf(t, h, "child", "from below"); got != 2 {
				t.Errorf("the child's words are there %d times, want 2", got)
			}
		})
	})
}

// TestChildOfAnother: a prompt in one session does not end the history of another one's subagents.
func TestChildOfAnother(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		synctest.Test(t, func(t *testing.T) {
			cfg := configKept(t, version, helped(nil))
			one, _ := talkOnce(t, cfg, "child-1")
			two, _ := talkOnce(t, cfg, "child-2")
			var agent *acp.AgentSession
			cfg.BuiltIn = helped(func(s *acp.AgentSession) { agent = s })
			h, first, _ := restored(t, cfg, one)
			if got := heardOf(t, h, "child-1", "from below"); got != 1 {
				t.Fatalf("the restored child has its words %d times", got)
			}
			if _, _, err := h.Restore(t.Context(), two); err != nil {
				t.Fatal(err)
			}
			prompt(t, first, "child-1")
			if err := agent.Child("child-2").Say("from below"); err != nil { // late history
				t.Fatal(err)
			}
			if got := heardOf(t, h, "child-1", "from below"); got != 2 {
				t.Errorf("the prompted session's child has its words %d times, want 2", got)
			}
			if got := heardOf(t, h, "child-2", "from below"); got != 1 {
				t.Errorf("the other session's child has its words %d times, want 1", got)
			}
		})
	})
}

// TestChildRecalledInTurn: the history of a subagent that is brought back while a turn runs is over.
func TestChildRecalledInTurn(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		synctest.Test(t, func(t *testing.T) {
			cfg := configKept(t, version, helped(nil))
			id, _ := talkOnce(t, cfg, "go")
			cfg.BuiltIn = helped(nil)
			h, s, _ := restored(t, cfg, id)
			say := cfg.BuiltIn.Prompt
			cfg.BuiltIn.Prompt = func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
				child, _ := h.Session("child")
				h.forget(child)
				h.family(ctx, s)
				return say(ctx, turn)
			}
			prompt(t, s, "again")
			if got := heardOf(t, h, "child", "from below"); got != 2 {
				t.Errorf("the child's words are there %d times, want 2", got)
			}
		})
	})
}
