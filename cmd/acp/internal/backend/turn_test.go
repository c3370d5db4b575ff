//go:build unix

package backend

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// ends returns how the turns of a conversation ended.
func ends(s *transcript.Snapshot) (list []transcript.TurnEnd) {
	for e := range s.Entries() {
		if end, ok := e.(*transcript.TurnEnd); ok {
			list = append(list, transcript.TurnEnd{StopReason: end.StopReason, By: end.By, Said: end.Said, Error: end.Error, Others: end.Others})
		}
	}
	return list
}

// TestTurnEnds: how a turn ended is shown at its place, and is in the store.
func TestTurnEnds(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		for _, tt := range []struct {
			name   string
			prompt func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error)
			stop   func(s *Session, cancel context.CancelCauseFunc) // once something was said
			want   transcript.TurnEnd
		}{
			{name: "done", want: transcript.TurnEnd{StopReason: acpv2.StopReasonEndTurn, By: transcript.EndedByAgent},
				prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil }},
			{name: "tokens", want: transcript.TurnEnd{StopReason: acpv2.StopReasonMaxTokens, By: transcript.EndedByAgent},
				prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopMaxTokens, nil }},
			{name: "refused", want: transcript.TurnEnd{StopReason: acpv2.StopReasonRefusal, By: transcript.EndedByAgent},
				prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopRefusal, nil }},
			{name: "failed", want: transcript.TurnEnd{By: transcript.EndedByAgent, Said: "no quota"},
				prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) {
					return "", jsonrpc.Errorf(-32603, "no quota")
				}},
			{name: "by the user", want: transcript.TurnEnd{StopReason: acpv2.StopReasonCancelled, By: transcript.EndedByUser},
				stop: func(s *Session, _ context.CancelCauseFunc) { go func() { _ = s.Cancel(context.Background()) }() }},
			{name: "by its context", want: transcript.TurnEnd{StopReason: acpv2.StopReasonCancelled, By: transcript.EndedByUser},
				stop: func(_ *Session, cancel context.CancelCauseFunc) { cancel(nil) }},
			{name: "by a limit", want: transcript.TurnEnd{StopReason: acpv2.StopReasonCancelled, By: transcript.EndedByTimeout, Error: "the time limit of 2s was reached"},
				stop: func(_ *Session, cancel context.CancelCauseFunc) {
					cancel(exitcode.Errorf(exitcode.Timeout, "the time limit of 2s was reached"))
				}},
			{name: "by its cost", want: transcript.TurnEnd{StopReason: acpv2.StopReasonCancelled, By: transcript.EndedByClient, Error: "it has cost enough"},
				stop: func(_ *Session, cancel context.CancelCauseFunc) {
					cancel(exitcode.Errorf(exitcode.Cost, "it has cost enough"))
				}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if tt.prompt == nil {
					tt.prompt = func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
						turn.ToolCall(acp.ToolCall{Title: "work"})
						if err := turn.Say("begun"); err != nil {
							return "", err
						}
						<-ctx.Done()
						return acp.StopCancelled, nil
					}
				}
				cfg := config(t, version, &acp.Agent{Prompt: tt.prompt})
				cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				stop := tt.stop
				cfg.Front.Changed = func(s *Session, _ []transcript.Change) {
					if stop != nil && s.Snapshot().Text() == "begun" {
						stop(s, cancel)
						stop = nil
					}
				}
				h := open(t, cfg)
				s, err := h.NewSession(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_, _ = s.Prompt(ctx, acp.Text("go"))
				stored, _, err := cfg.Store.Snapshot(t.Context(), s.journal.conversationID(), store.Bounds())
				if err != nil {
					t.Fatal(err)
				}
				for name, snap := range map[string]*transcript.Snapshot{"shown": s.Snapshot(), "stored": stored} {
					list := ends(snap)
					if len(list) != 1 {
						t.Fatalf("%s: ends %+v", name, list)
					}
					got := list[0]
					if tt.want.Said != "" && strings.Contains(got.Said, tt.want.Said) {
						got.Said, got.StopReason = tt.want.Said, ""
					}
					if got != tt.want {
						t.Errorf("%s: %+v, want %+v", name, got, tt.want)
					}
					for e := range snap.Entries() {
						if c, ok := e.(*transcript.ToolCall); ok && !c.Ended() && !history.Unfinished(snap, c) {
							t.Errorf("%s: the tool call is %s", name, c.Status)
						}
					}
					if history.InTurn(snap) {
						t.Errorf("%s: it goes on", name)
					}
				}
			})
		}
	})
}

// TestInterrupted: a turn in which the agent, or the program, ended is known as such for ever.
func TestInterrupted(t *testing.T) {
	cfg := child(t, 1, "replays everything")
	cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
	h := open(t, cfg)
	s, err := h.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), acp.Text("one")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prompt(t.Context(), acp.Text("die")); err == nil {
		t.Fatal("it did not fail")
	}
	_ = h.Close()
	key := s.journal.conversationID()
	list := ends(s.Snapshot())
	if len(list) != 2 || list[1].By != transcript.EndedByCrash || !strings.Contains(list[1].Error, "exited with status 1") {
		t.Errorf("ends %+v", list)
	}

	// A program that was killed has written no end.
	h = open(t, cfg)
	if s, _, err = h.Restore(t.Context(), s.ID()); err != nil {
		t.Fatal(err)
	}
	s.put(&acp.UserMessage{MessageID: "killed", Content: acp.Set([]acp.ContentBlock{acp.Text("go on")})})
	s.put(&acpv2.RunningStateUpdate{})
	s.put(&acp.ToolCallUpdate{ToolCallID: "open", Title: acp.Set("Open")})
	_ = h.Close()
	before := shown(t, cfg.Store, key)
	if !strings.Contains(before, history.NotEnded) || !strings.Contains(before, "Open (other, not finished)") {
		t.Errorf("shown:\n%s", before)
	}
	for range 2 {
		h = open(t, cfg)
		if s, _, err = h.Restore(t.Context(), s.ID()); err != nil {
			t.Fatal(err)
		}
		_ = h.Close()
	}
	after := shown(t, cfg.Store, key)
	if lost := missing(before, after); len(lost) > 0 {
		t.Errorf("%q is gone", lost)
	}
	list = ends(s.Snapshot())
	if len(list) != 3 || list[2] != (transcript.TurnEnd{By: transcript.EndedByClient}) || !errors.Is(h.Err(), ErrClosed) {
		t.Errorf("ends %+v", list)
	}
	if !strings.Contains(after, "the program ended in the middle") {
		t.Errorf("shown:\n%s", after)
	}
}
