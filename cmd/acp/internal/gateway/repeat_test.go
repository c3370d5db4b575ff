package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// startOperation sends a prompt under a name, and returns what its answer will be: in version 2, that its turn begins.
func startOperation(t *testing.T, c *client, id acp.SessionID, text, operation string) *jsonrpc.Pending[acpv2.PromptResponse] {
	t.Helper()
	call, err := acpv2.MethodSessionPrompt.Start(t.Context(), c.conn.Conn(), &acpv2.PromptRequest{
		SessionID: id, Prompt: []acp.ContentBlock{acp.Text(text)}, Meta: ownmeta.Of(map[string]string{"operationId": operation}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// hasPrompt reports whether a log has a prompt of a name.
func hasPrompt(t *testing.T, r *rig, session acp.SessionID, id acp.MessageID) (has bool) {
	t.Helper()
	err := r.log.Read(t.Context(), string(session), 0, func(rec engine.Record) error {
		if rec.Kind != kindPrompt {
			return nil
		}
		p, err := records.DecodePrompt(rec.Data)
		has = has || p.ID == string(id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return has
}

// fromTheStart resumes a session and is sent everything.
func (c *client) fromTheStart(t *testing.T, id acp.SessionID) *acp.ClientSession {
	t.Helper()
	s, err := c.conn.Resume(t.Context(), id, acp.SessionConfig{Cwd: "/", Meta: json.RawMessage(`{"github.com/goacp/acp":{"cursor":0}}`)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRepeatedBehind: a client of version 2 that sends a prompt again while it is still being sent what it has missed does not
// take the end of another turn for that of its own, whether that runs, ends meanwhile or has ended, here or at another node.
func TestRepeatedBehind(t *testing.T) {
	for _, tt := range []struct {
		name                string
		before, then, after bool // when the turn is cancelled: before others and the repetition, after that and before others, at the end
	}{
		{name: "runs", after: true},
		{name: "ends meanwhile", then: true},
		{name: "has ended", before: true},
	} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/away=%t", tt.name, away), func(t *testing.T) {
				dir := t.TempDir()
				a, at := newMember(t, dir, "a", talking(nil)), (*member)(nil)
				if at = a; away {
					at = newMember(t, dir, "b", talking(nil))
				}
				first := a.connect(2)
				s := first.new(t)
				others := func() {
					for i := range 30 {
						say(t, s, fmt.Sprint(i))
					}
				}
				if !tt.before {
					others()
				}
				own := sendOperation(t, s, "wait", "op-1")
				first.seen.until(t, "agent: waiting")
				cancel := func() {
					if err := s.Cancel(t.Context()); err != nil {
						t.Fatal(err)
					}
					if res, err := own.Wait(); err != nil || res.StopReason != acp.StopCancelled {
						t.Fatal(res, err)
					}
				}
				if tt.before {
					cancel()
					others()
				}
				back := at.connect(2)
				again := sendOperation(t, back.fromTheStart(t, s.ID()), "wait", "op-1")
				if tt.then {
					cancel()
					others()
				}
				if tt.after {
					back.seen.until(t, "agent: waiting")
					cancel()
				}
				if res, err := again.Wait(); err != nil || res.StopReason != acp.StopCancelled {
					t.Error(res, err)
				}
			})
		}
	}
}

// TestRepeatedPositions: what the library says of a turn that had begun is not part of the record that is being sent, so that
// a client that resumes there lacks nothing.
func TestRepeatedPositions(t *testing.T) {
	r := newRig(t, talking(nil))
	first := r.connect(2)
	s := first.new(t)
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "x%d ", i)
	}
	text.WriteString("wait")
	sendOperation(t, s, text.String(), "op-1")
	first.seen.until(t, "agent: waiting")
	kinds, _ := r.records(s.ID())
	before := fmt.Sprintf(`"cursor":%d,`, slices.Index(kinds, kindPrompt)) // its record
	for range 5 {
		back, wire := r.wired(2)
		sendOperation(t, back.fromTheStart(t, s.ID()), text.String(), "op-1")
		back.seen.until(t, "agent: waiting")
		for _, u := range wire.updates(t, 0) {
			said := strings.Contains(u.Update, "user_message") || strings.Contains(u.Update, "state_update")
			if strings.Contains(u.Position, `"part":1`) && said && !strings.Contains(u.Position, before) {
				t.Errorf("a part of the record after %s: %.80s", u.Position, u.Update)
			}
		}
	}
}

// TestRepeatedPlaceLost: a prompt that is sent again, and waits for its turn as the session is given up, is the one that runs:
// its message is in the log.
func TestRepeatedPlaceLost(t *testing.T) {
	r := newRig(t, talking(nil))
	first := r.connect(2)
	s := first.new(t)
	s.Prompt(t.Context(), acp.Text("wait"))
	first.seen.until(t, "agent: waiting")
	queuer := r.connect(2)
	startOperation(t, queuer, queuer.load(t, s.ID()).ID(), "two", "op-two")
	gs := r.g.session(string(s.ID()))
	queued(gs, 2)
	_ = queuer.conn.Close()
	second := r.connect(2)
	mine := second.load(t, s.ID())
	call := startOperation(t, second, mine.ID(), "two", "op-two")
	for known := false; !known; { // that it is one that was sent before
		r.g.present.mu.Lock()
		for w := range r.g.present.in[string(s.ID())] {
			w.mu.Lock()
			known = known || len(w.own) > 0 && w.own[0].id != w.own[0].sent.id
			w.mu.Unlock()
		}
		r.g.present.mu.Unlock()
	}
	gs.abandon(errors.New("lapsed"))
	res, err := call.Wait()
	if err != nil {
		t.Fatal(err)
	}
	second.seen.until(t, "agent: two")
	if !hasPrompt(t, r, s.ID(), res.MessageID) {
		t.Errorf("the log has no message %s", res.MessageID)
	}
}

// breakable is a network of nodes on which nobody can be reached for a while.
type breakable struct {
	Nodes
	down atomic.Bool
}

func (n *breakable) Dial(ctx context.Context, info json.RawMessage) (jsonrpc.Stream, error) {
	if n.down.Load() {
		return nil, errors.New("the network is down")
	}
	return n.Nodes.Dial(ctx, info)
}

// TestRepeatedCut: a client whose prompts run while its node has no connection to the owner is sent everything, also if the
// first one was sent before.
func TestRepeatedCut(t *testing.T) {
	for _, repeated := range []bool{false, true} {
		dir, goOn := t.TempDir(), make(chan struct{})
		network := new(breakable)
		a := newMember(t, dir, "a", talking(goOn))
		b := newMember(t, dir, "b", talking(nil), func(c *Config) { network.Nodes = c.Nodes; c.Nodes = network })
		first := a.connect(1)
		s := first.new(t)
		s.Prompt(t.Context(), acp.Text("wait zero"))
		first.seen.until(t, "agent: waiting")
		if repeated {
			sendOperation(t, a.connect(1).load(t, s.ID()), "one", "op-1")
			a.queued(s.ID(), 2)
		}
		c := b.connect(2)
		c.load(t, s.ID())
		one := startOperation(t, c, s.ID(), "one", "op-1")
		a.queued(s.ID(), 2)
		two := startOperation(t, c, s.ID(), "two", "op-2")
		a.queued(s.ID(), 3)
		network.down.Store(true)
		b.cut()
		close(goOn)
		first.seen.until(t, "agent: two")
		network.down.Store(false)
		for _, call := range []*jsonrpc.Pending[acpv2.PromptResponse]{one, two} {
			if res, err := call.Wait(); err != nil || !hasPrompt(t, a.rig, s.ID(), res.MessageID) {
				t.Error(res, err)
			}
		}
		c.seen.until(t, "agent: two")
	}
}

// TestRepeatedCancelled: a prompt that is sent again and waits for its turn does not run if the client cancels it, and neither
// does the one behind it.
func TestRepeatedCancelled(t *testing.T) {
	for _, away := range []bool{false, true} {
		dir, goOn := t.TempDir(), make(chan struct{})
		a, b := newMember(t, dir, "a", talking(goOn)), newMember(t, dir, "b", talking(nil))
		first := a.connect(1)
		s := first.new(t)
		s.Prompt(t.Context(), acp.Text("wait"))
		first.seen.until(t, "agent: waiting")
		sendOperation(t, a.connect(1).load(t, s.ID()), "one", "op-1")
		a.queued(s.ID(), 2)
		at := a
		if away {
			at = b
		}
		c := at.connect(2)
		mine := c.load(t, s.ID())
		one := startOperation(t, c, s.ID(), "one", "op-1")
		two := startOperation(t, c, s.ID(), "two", "op-2")
		a.queued(s.ID(), 3)
		if err := mine.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, call := range []*jsonrpc.Pending[acpv2.PromptResponse]{one, two} {
			if _, err := call.Wait(); !errors.Is(err, jsonrpc.ErrRequestCancelled) {
				t.Error(err)
			}
		}
		a.queued(s.ID(), 1)
		close(goOn)
		say(t, s, "end")
		if got := prompts(t, a.rig, s.ID()); got != "wait|end" {
			t.Errorf("%q have run", got)
		}
	}
}
