package gateway

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
)

// A diary is an observer that writes down what it gets.
type diary struct {
	mu    sync.Mutex
	lines []string
	open  int
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) Begin(ctx context.Context, s Span) (context.Context, func(string)) {
	t, _ := acp.TraceFrom(ctx)
	d.mu.Lock()
	d.open++
	d.mu.Unlock()
	once := sync.OnceFunc(func() { d.mu.Lock(); d.open--; d.mu.Unlock() })
	if s.Kind == SpanTurn {
		t.Parent = "00-0af7651916cd43dd8448eb211c80319c-00000000000000aa-01"
		ctx = acp.WithTrace(ctx, t)
	}
	return ctx, func(outcome string) {
		once()
		if s.Kind != SpanAppend {
			d.add("%s %s%s: %s in %s%s", s.Kind, s.Agent, s.Tool, outcome, t.Parent, t.Baggage)
		}
	}
}

func (d *diary) Happened(e Event) { d.add("%s %s %s", e.Kind, e.Agent, e.Why) }

// TestObserve: an observer sees turns, tools, questions and ends, in the trace of the client, and the agent gets
// the trace without the client's baggage.
func TestObserve(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		traces := make(chan acp.Trace, 10)
		a := &acp.Agent{Prompt: func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
			t, _ := acp.TraceFrom(ctx)
			traces <- t
			_ = turn.Say("secret words")
			call := turn.ToolCall(acp.ToolCall{Title: "secret words", Kind: acp.ToolKindRead})
			if _, err := turn.Ask(acp.Permission{Title: "secret words"}); err != nil {
				return "", err
			}
			return acp.StopEndTurn, call.Complete()
		}}
		r := newRig(t, a)
		r.max = agent
		d := new(diary)
		r.g.cfg.Observer = d
		c := r.connect(version, func(c *acp.Client) {
			c.RequestPermission = func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
				return acp.SelectPermission(r.Options[0].OptionID), nil
			}
		})
		s := c.new(t)
		ctx := acp.WithTrace(t.Context(), acp.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", State: "a=b", Baggage: "secret=words"})
		if _, err := s.Prompt(ctx, acp.Text("secret words")).Wait(); err != nil {
			t.Fatal(err)
		}
		want := acp.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-00000000000000aa-01", State: "a=b"}
		if got := <-traces; got != want {
			t.Errorf("the agent got %+v", got)
		}
		for r.g.Stats().Running > 0 { // the client has its answer a little before
			runtime.Gosched()
		}
		if st := r.g.Stats(); st.Sessions != 1 || st.Agents != 1 || st.Watchers != 1 || st.Running+st.Asking != 0 || st.Lease <= 0 {
			t.Errorf("%+v", st)
		}
		if err := r.g.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		_ = c.conn.Close()
		r.close()
		in := "in 00-0af7651916cd43dd8448eb211c80319c-"
		got := d.lines
		if i := slices.IndexFunc(got, func(l string) bool { return strings.Contains(l, "secret") }); i >= 0 {
			t.Errorf("content: %s", got[i])
		}
		wanted := []string{
			"claim  ok", "agent_start test: ok in ", "join  new",
			"first_update test ", "permission : allow_once " + in + "00000000000000aa-01", "tool testread: completed " + in + "00000000000000aa-01",
			"turn test: end_turn " + in + "00000000000000aa-01",
			"agent_exit test stopped",
		}
		slices.Sort(wanted)
		slices.Sort(got)
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Error(diff)
		}
		if d.open != 0 {
			t.Errorf("%d spans have no end", d.open)
		}
	})
}

// TestReady: a gateway that is closed, or has no lease, gets no clients.
func TestReady(t *testing.T) {
	r := newRig(t, talking(nil))
	if err := r.lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.g.Ready(t.Context()); err == nil {
		t.Error("ready without a lease")
	}
	r.close()
}
