package interop

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// hung are the updates of a turn that was cancelled while it hung.
func hung(version int) []string {
	if version == 1 {
		return framed(1, "!hang", "idle cancelled", "say hanging", "say late-update-after-cancel")
	}
	return framed(2, "!hang", "idle cancelled", "say hanging", "say +late")
}

// hang cancels the session while a turn hangs; then the session is as good as
// before.
func hang(t *testing.T, p *peer) {
	ctx, cancel := context.WithTimeout(t.Context(), talkLimit)
	defer cancel()
	s := p.open(t)
	reply := s.Prompt(ctx, acp.Text("!hang"))
	p.await(t, s, "say hanging")
	if err := s.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	ends(t, read(reply), acp.StopCancelled, hung(p.version))
	if err := s.Cancel(ctx); err != nil { // nothing runs
		t.Error(err)
	}
	if o := say(t, s, "next"); o.said() != "echo:next" || o.err != nil {
		t.Errorf("afterwards %q, %v", o.said(), o.err)
	}
}

// hangWithdrawn ends the context of the prompt instead.
func hangWithdrawn(t *testing.T, p *peer) {
	ctx, cancel := context.WithCancel(t.Context())
	s := p.open(t)
	reply := s.Prompt(ctx, acp.Text("!hang"))
	p.await(t, s, "say hanging")
	cancel()
	o := read(reply)
	if !errors.Is(o.err, context.Canceled) || o.result == nil || o.result.StopReason != acp.StopCancelled {
		t.Errorf("result %+v, error %v", o.result, o.err)
	}
	if o := say(t, s, "next"); o.said() != "echo:next" || o.err != nil {
		t.Errorf("afterwards %q, %v", o.said(), o.err)
	}
}

// hold cancels the session while the agent holds a prompt back.
func hold(t *testing.T, p *peer) {
	ctx, cancel := context.WithTimeout(t.Context(), talkLimit)
	defer cancel()
	s := p.open(t)
	reply := s.Prompt(ctx, acp.Text("!hold"))
	p.settle(t) // the agent misses what comes too early
	if err := s.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	ends(t, read(reply), acp.StopCancelled, nil)
}

// holdWithdrawn takes the prompt back.
func holdWithdrawn(t *testing.T, p *peer) {
	ctx, cancel := context.WithCancel(t.Context())
	reply := p.open(t).Prompt(ctx, acp.Text("!hold"))
	p.settle(t)
	cancel()
	if o := read(reply); !errors.Is(o.err, context.Canceled) || o.result != nil || o.list != nil {
		t.Errorf("result %+v, updates %q, error %v", o.result, o.list, o.err)
	}
}

func toolCancel(t *testing.T, p *peer) {
	ctx, cancel := context.WithTimeout(t.Context(), talkLimit)
	defer cancel()
	s := p.open(t)
	if err := s.CancelToolCall(ctx, "tcA"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("before it is known: %v", err)
	}
	reply := s.Prompt(ctx, acp.Text("!tool tcA"))
	const begins, over = "tool title=Long status=in_progress capabilities", "tool status=cancelled capabilities=null"
	p.await(t, s, begins)
	if err := s.CancelToolCall(ctx, "tcA"); err != nil {
		t.Fatal(err)
	}
	ends(t, read(reply), acp.StopEndTurn, framed(2, "!tool tcA", "idle end_turn", begins, over))
	if err := s.CancelToolCall(ctx, "tcA"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("after its end: %v", err)
	}
}

// terminalCancel ends a command that has outlived its turn.
func terminalCancel(t *testing.T, p *peer) {
	ctx, cancel := context.WithTimeout(t.Context(), talkLimit)
	defer cancel()
	s := p.open(t)
	ends(t, say(t, s, "!terminal btA"), acp.StopEndTurn,
		framed(2, "!terminal btA", "idle end_turn, 1 in the background", "TerminalUpdate"))
	work := s.Background()
	if terminal, ok := work[0].(*acpv2.BackgroundTerminal); len(work) != 1 || !ok || terminal.TerminalID != "btA" {
		t.Errorf("in the background: %+v", work)
	}
	if err := s.CancelTerminal(ctx, "btA"); err != nil {
		t.Fatal(err)
	}
	p.await(t, s, "idle, 0 in the background")
	if work := s.Background(); work == nil || len(work) != 0 {
		t.Errorf("in the background afterwards: %+v", work)
	}
	told := p.toldOf(s)
	if i := slices.Index(told, "idle end_turn, 1 in the background"); i < 0 || !slices.Equal(told[i+1:], []string{"TerminalUpdate", "idle, 0 in the background"}) {
		t.Errorf("told %q", told)
	}
	if err := s.CancelTerminal(ctx, "btA"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("after its end: %v", err)
	}
}
