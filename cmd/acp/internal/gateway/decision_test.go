package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/transcript"
)

// touching is an agent that asks about a tool call that it has not announced.
func touching() *acp.Agent {
	return &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		_ = t.Say("before.")
		call := acp.ToolCallUpdate{
			ToolCallID: "t1", Title: acp.Set("touch x"), Kind: acp.Set(acpv2.ToolKindExecute), RawInput: json.RawMessage(`{"command":"touch x"}`),
		}
		answer, err := t.Ask(acp.Permission{Title: "touch x", Subject: &acp.ToolCallPermissionSubject{ToolCall: call}})
		if err != nil {
			return "", err
		}
		if answer.Allowed {
			if err := t.Send(&acp.ToolCallUpdate{ToolCallID: "t1", Title: call.Title, Kind: call.Kind, Status: acp.Set(acpv2.ToolCallStatusCompleted)}); err != nil {
				return "", err
			}
		}
		t.EndMessage()
		return acp.StopEndTurn, t.Say("after.")
	}}
}

// TestDecisions: what a question said of a tool call, and how it was decided, by whom and when, stays with the call, in its
// place: in the log, for clients that load or watch, and in the history.
func TestDecisions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		allow  bool
		status acp.ToolCallStatus
		want   string
	}{
		{"allowed", true, acpv2.ToolCallStatusCompleted, "allowed once by laptop"},
		{"rejected", false, acpv2.ToolCallStatusCancelled, "rejected by laptop"},
	} {
		for agent := 1; agent <= 2; agent++ {
			t.Run(fmt.Sprintf("%s, agent %d", tt.name, agent), func(t *testing.T) {
				r := newRig(t, touching())
				r.max = agent
				r.g.cfg.Who = func(context.Context) Who { return Who{User: local, Name: "laptop", Rights: MayPrompt | MayApprove} }
				audited := make(chan string, 1)
				r.g.cfg.Audit.Decided = func(_, by string, d *history.Decision) { audited <- by + ": " + d.Title + ": " + d.String() }
				c := r.connect(2, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
					if tt.allow {
						return req.Allow(), nil
					}
					return req.Reject(), nil
				}))
				s := c.new(t)
				said := transcript.New(transcript.Config{})
				changed := make(chan struct{}, 100)
				watching := r.connect(2, func(c *acp.Client) {
					c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
						said.Apply(u.Update)
						if idle, ok := u.Update.(*acp.IdleStateUpdate); ok && idle.StopReason != "" {
							changed <- struct{}{}
						}
					}
				})
				watching.load(t, s.ID())
				say(t, s, "go")
				<-changed
				checkDecision(t, "live", said.Snapshot(), tt.status, tt.want)
				if got, want := <-audited, local+": touch x: "+tt.want; got != want {
					t.Errorf("audited %q", got)
				}
				past := records.NewFold(transcript.Config{})
				if err := Past(s.ID(), pageOf(t, watching), func(u *PastUpdate) error { return u.Apply(past) }); err != nil {
					t.Fatal(err)
				}
				checkDecision(t, "history", past.Conversation.Snapshot(), tt.status, tt.want)

				loaded := transcript.New(transcript.Config{})
				for version := 1; version <= 2; version++ {
					last := r.connect(version, func(c *acp.Client) {
						loaded = transcript.New(transcript.Config{})
						c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) { loaded.Apply(u.Update) }
					})
					last.load(t, s.ID())
					status := tt.status
					if version == 1 && status == acpv2.ToolCallStatusCancelled {
						status = acpv2.ToolCallStatusFailed // there is no such status
					}
					checkDecision(t, fmt.Sprint("loaded by version ", version), loaded.Snapshot(), status, tt.want)
				}
			})
		}
	}
}

// checkDecision checks that a conversation has a call with its title, what it does and how it was decided, between the texts.
func checkDecision(t *testing.T, where string, s *transcript.Snapshot, status acp.ToolCallStatus, want string) {
	t.Helper()
	var got []string
	for e := range s.Entries() {
		switch e := e.(type) {
		case *transcript.Message:
			got = append(got, e.Text())
		case *transcript.ToolCall:
			text := fmt.Sprintf("%s %s %s %s", e.Title, e.Kind, e.RawInput, e.Status)
			d := history.DecisionOf(e.Meta)
			if d == nil || d.Time.IsZero() || !strings.HasPrefix(d.String(), want+", ") {
				t.Errorf("%s: decided %q", where, d)
			}
			got = append(got, text)
		}
	}
	all := []string{"go", "before.", `touch x execute {"command":"touch x"} ` + string(status), "after."}
	if !cmp.Equal(got, all) {
		t.Errorf("%s: %s", where, cmp.Diff(all, got))
	}
}

// TestCallsBounded: of an agent that has more and more tool calls a bounded number is remembered, and what is not known is
// kept once more.
func TestCallsBounded(t *testing.T) {
	var c calls
	u := &acp.ToolCallUpdate{ToolCallID: "0", Title: acp.Set("one")}
	c.note("", u, 10)
	if c.isNews("", u) || !c.isNews("", &acp.ToolCallUpdate{ToolCallID: "0", Title: acp.Set("two")}) || !c.isNews("child", u) {
		t.Error("it is not known what a call said")
	}
	for i := range 2 * maxCalls {
		c.note("", &acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(fmt.Sprint(i + 1))}, 10)
	}
	if len(c.by) > maxCalls || !c.isNews("", u) {
		t.Errorf("%d calls are remembered", len(c.by))
	}
	c = calls{}
	c.note("", u, maxCallBytes)
	if c.isNews("", u) {
		t.Error("a call is forgotten within the bound")
	}
	c.note("", &acp.ToolCallUpdate{ToolCallID: "1"}, 1)
	if !c.isNews("", u) || c.bytes != 1 {
		t.Errorf("%d bytes are remembered", c.bytes)
	}
	if c.note("", u, maxCallBytes+1); len(c.by) != 0 || c.bytes != 0 {
		t.Errorf("what is larger than the bound is remembered: %d calls, %d bytes", len(c.by), c.bytes)
	}
}

// TestNotAboutCalls: the decision on what is about no tool call is a notice.
func TestNotAboutCalls(t *testing.T) {
	r := newRig(t, &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		_, err := t.Ask(acp.Permission{Title: "Run it?", Subject: &acp.CommandPermissionSubject{Command: "make"}})
		return acp.StopEndTurn, err
	}})
	c := r.connect(2, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
		return req.Allow(), nil
	}))
	s := c.new(t)
	say(t, s, "ask")
	again := r.connect(2)
	again.load(t, s.ID())
	if got := again.seen.take(); !slices.ContainsFunc(got, func(l string) bool { return strings.HasPrefix(l, "notice: Run it?: allowed once by local") }) {
		t.Errorf("%q", got)
	}
}
