package tui

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// TestQueueOrder holds that a prompt that was queued when a turn was cancelled goes out before one that is
// typed later.
func TestQueueOrder(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.run(r.keys("one", "enter"))
	r.run(r.keys("queued", "enter"))
	r.keys("ctrl+c")
	r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopCancelled}})
	r.run(r.keys("later", "enter"))
	r.run(r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopEndTurn}}))
	var got []string
	for _, p := range r.talk.sent() {
		got = append(got, p[0].(*acpv2.TextContent).Text)
	}
	if diff := cmp.Diff([]string{"one", "queued", "later"}, got); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// steered presses Ctrl+S on a text and returns what becomes of it.
func (r *rig) steered(text string, steers func(string) (acp.SteerOutcome, error)) {
	r.t.Helper()
	r.talk.steers = steers
	r.keys(text)
	r.run(r.keys("ctrl+s"))
}

func outcome(o acp.SteerOutcome, err error) func(string) (acp.SteerOutcome, error) {
	return func(string) (acp.SteerOutcome, error) { return o, err }
}

// sentTexts are the texts of the prompts so far.
func (r *rig) sentTexts() (texts []string) {
	for _, p := range r.talk.sent() {
		texts = append(texts, p[0].(*acpv2.TextContent).Text)
	}
	return texts
}

// TestSteer: what becomes of a message that is sent with Ctrl+S while a turn runs. It is sent once, or kept.
func TestSteer(t *testing.T) {
	refused := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "busy")
	for _, tc := range []struct {
		name    string
		outcome acp.SteerOutcome
		err     error
		wants   string
		sent    []string // while the turn runs
		queue   []string
		input   string
	}{
		{"injected", acp.SteerInjected, nil, "includes it in the running turn", []string{"one"}, nil, ""},
		{"a turn of its own", acp.SteerStartedNewTurn, nil, "has begun a turn with it", []string{"one"}, nil, ""},
		{"the turn has ended", acp.SteerPromptRequired, nil, "", []string{"one", "two"}, nil, ""},
		{"queued", acp.SteerQueued, nil, "queued: the agent decides", []string{"one", "two"}, nil, ""},
		{"refused", "", refused, "sent when the turn has ended", []string{"one"}, []string{"two"}, ""},
		{"failed", acp.SteerFailed, errors.New("its outcome is failed"), "its outcome is failed", []string{"one"}, nil, "two"},
		{"unknown", "teleported", errors.New("its outcome is teleported"), "teleported", []string{"one"}, nil, "two"},
		{"no answer", "", fmt.Errorf("x: %w", acp.ErrOutcomeUnknown), "does not say whether it has your message", []string{"one"}, nil, "two"},
		{"cancelled", "", fmt.Errorf("x: %w", acp.ErrCancelled), "", []string{"one"}, nil, "two"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, 160, 24, nil).start()
			r.run(r.keys("one", "enter"))
			r.steered("two", outcome(tc.outcome, tc.err))
			if tc.wants != "" {
				r.wants(tc.wants)
			}
			if diff := cmp.Diff(tc.sent, r.sentTexts()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.queue, r.m.queue, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if got := r.m.input.value(); got != tc.input {
				t.Errorf("the input is %q", got)
			}
			r.run(r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopEndTurn}, text: "one"}))
			if want := append(tc.sent, tc.queue...); !slices.Equal(r.sentTexts(), want) {
				t.Errorf("after the turn: %q, want %q", r.sentTexts(), want)
			}
		})
	}
}

// TestSteerRefusedPrompt: a second prompt that the agent refuses while it works is sent again when the turn has ended.
func TestSteerRefusedPrompt(t *testing.T) {
	r := newRig(t, 160, 24, nil).start()
	r.run(r.keys("one", "enter"))
	r.steered("two", nil)
	r.wants("⋯ queued  two")
	r.run(r.send(turnMsg{attempt: 1, talk: r.talk, err: jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "busy"), text: "two", behind: true}))
	r.wants("⋯ queued  two", "sent when the turn has ended")
	r.run(r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopEndTurn}, text: "one"}))
	if diff := cmp.Diff([]string{"one", "two", "two"}, r.sentTexts()); diff != "" {
		t.Error(diff)
	}
}

// TestSteerKept: what is typed meanwhile is not replaced by a message that the agent has not taken, which is an earlier input;
// neither is a message lost whose agent has exited.
func TestSteerKept(t *testing.T) {
	r := newRig(t, 160, 24, nil).start()
	r.run(r.keys("one", "enter"))
	r.talk.steers = outcome("", fmt.Errorf("x: %w", acp.ErrOutcomeUnknown))
	r.keys("two")
	cmd := r.keys("ctrl+s")
	r.keys("three")
	r.run(cmd)
	r.wants("↑ brings it back")
	if got := r.m.input.value(); got != "three" {
		t.Errorf("the input is %q", got)
	}
	r.m.input.clear()
	r.send(steeredMsg{attempt: 0, talk: r.talk, err: acp.ErrOutcomeUnknown, text: "two"})
	if got := r.m.input.value(); got != "two" {
		t.Errorf("the input is %q", got)
	}
}

// TestSteeredShown: a message that was sent while a turn runs is on the screen until the agent has it.
func TestSteeredShown(t *testing.T) {
	for _, taken := range []bool{true, false} {
		r := newRig(t, 80, 24, nil).start()
		r.run(r.keys("one", "enter"))
		r.talk.steers = outcome(acp.SteerInjected, nil)
		r.keys("and also this")
		cmd := r.keys("ctrl+s")
		r.wants("⋯ sent    and also this")
		if taken {
			r.said(&acpv2.UserMessage{MessageID: "2", Content: acpv2.Set([]acpv2.ContentBlock{acp.Text("and also this")})})
			r.run(cmd)
		} else {
			r.send(steeredMsg{attempt: 1, talk: r.talk, err: errors.New("no"), text: "and also this"})
		}
		r.lacks("⋯ sent")
	}
}
