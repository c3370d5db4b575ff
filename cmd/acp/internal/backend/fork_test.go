package backend

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// TestFork: the agent says where its session can be forked, and a copy has what was said up to there, also in the store. A
// restored session, whose agent replays it, has its cursors again.
func TestFork(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		var forked []string
		cursor := func(n int) acp.SessionUpdate {
			return &acpv2.CursorUpdate{CursorID: acpv2.CursorID(fmt.Sprint("c", n)), Capabilities: acpv2.Set(acpv2.CursorCapabilities{Fork: new(acpv2.CursorForkCapabilities)}),
				Anchor: &acpv2.CursorAgentMessageAnchor{MessageID: acp.MessageID(fmt.Sprint("a", n)), Position: acpv2.CursorAnchorPositionAfter}}
		}
		answer := func(n int) acp.SessionUpdate {
			return &acp.AgentMessage{MessageID: acp.MessageID(fmt.Sprint("a", n)), Content: acp.Set([]acp.ContentBlock{acp.Text(fmt.Sprint("answer ", n))})}
		}
		turns := map[acp.SessionID]int{}
		agent := &acp.Agent{
			Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				id := turn.Session().ID()
				turns[id]++
				_ = turn.Send(answer(turns[id]))
				return acp.StopEndTurn, turn.Send(cursor(turns[id]))
			},
			ResumeSession: func(_ context.Context, s *acp.AgentSession, replay bool) error {
				for n := 1; replay && n <= turns[s.ID()]; n++ {
					_ = s.Send(&acp.UserMessage{MessageID: acp.MessageID(fmt.Sprint("u", n)), Content: acp.Set([]acp.ContentBlock{acp.Text(fmt.Sprint("prompt ", n))})})
					_ = s.Send(answer(n))
					_ = s.Send(cursor(n))
				}
				return nil
			},
			ForkSession: func(_ context.Context, _ *acp.AgentSession, _ acp.SessionID) error {
				forked = append(forked, "all")
				return nil
			},
			ForkSessionAt: func(_ context.Context, _ *acp.AgentSession, _ acp.SessionID, at acpv2.CursorID) error {
				forked = append(forked, string(at))
				return nil
			},
		}
		cfg := config(t, version, agent)
		cfg.Front.Cursors = true
		h := open(t, cfg)
		s, err := h.NewSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 3; n++ {
			if _, err := s.Prompt(t.Context(), acp.Text(fmt.Sprint("prompt ", n))); err != nil {
				t.Fatal(err)
			}
		}
		if all := s.Cursors(); len(all) != 3 {
			t.Errorf("cursors %+v", all)
		}
		fork, err := s.Fork(t.Context(), "c2")
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"prompt 1", "answer 1", "prompt 2", "answer 2"}
		if diff := cmp.Diff(want, texts(fork.Snapshot())); diff != "" {
			t.Error(diff)
		}
		if _, err := fork.Prompt(t.Context(), acp.Text("prompt 3")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append(want, "prompt 3", "answer 1"), texts(fork.Snapshot())); diff != "" {
			t.Error(diff) // the agent has used an id again
		}
		all, err := s.Fork(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := texts(all.Snapshot()); len(got) != 6 {
			t.Errorf("%q", got)
		}
		if diff := cmp.Diff([]string{"c2", "all"}, forked); diff != "" {
			t.Error(diff)
		}
		again := config(t, version, agent)
		again.Front.Cursors = true
		back, _, err := open(t, again).Restore(t.Context(), s.ID())
		if err != nil {
			t.Fatal(err)
		}
		if before, found := back.Anchor("c2"); !found {
			t.Errorf("a restored session has the cursors %+v", back.Cursors())
		} else if m, ok := back.Snapshot().Entry(before - 1).(*transcript.Message); !ok || m.Text() != "answer 2" {
			t.Errorf("the cursor is behind %v", m)
		}
	})
}

// texts returns what was said in a conversation.
func texts(s *transcript.Snapshot) (all []string) {
	for e := range s.Entries() {
		if m, ok := e.(*transcript.Message); ok {
			all = append(all, strings.TrimSpace(m.Text()))
		}
	}
	return all
}
