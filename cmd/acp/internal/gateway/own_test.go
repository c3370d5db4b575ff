package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// send sends a prompt at once, as clients may that do not wait for the end of another one. It returns how it is
// answered.
func (c *client) send(t *testing.T, id acp.SessionID, text string) (wait func() (acp.StopReason, error)) {
	t.Helper()
	if c.conn.Version() == 1 {
		call, err := acpv1.MethodSessionPrompt.Start(t.Context(), c.conn.Conn(), &acpv1.PromptRequest{
			SessionID: acpv1.SessionID(id), Prompt: []acpv1.ContentBlock{&acpv1.TextContent{Text: text}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return func() (acp.StopReason, error) {
			res, err := call.Wait()
			if err != nil {
				return "", err
			}
			return acp.StopReason(res.StopReason), nil
		}
	}
	call, err := acpv2.MethodSessionPrompt.Start(t.Context(), c.conn.Conn(), &acpv2.PromptRequest{
		SessionID: id, Prompt: []acp.ContentBlock{acp.Text(text)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() (acp.StopReason, error) {
		_, err := call.Wait()
		if jerr := (*jsonrpc.Error)(nil); errors.As(err, &jerr) && jerr.Code == jsonrpc.ErrRequestCancelled.Code {
			return acp.StopCancelled, nil
		}
		return "", err // the end of the turn is an update
	}
}

// TestOwnQueue: prompts of one client are kept while earlier ones of its run, in their place among those of others,
// also at another node. They run although the client leaves.
func TestOwnQueue(t *testing.T) {
	for version := 1; version <= 2; version++ {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("version %d, away %v", version, away), func(t *testing.T) {
				goOn := make(chan struct{})
				dir := t.TempDir()
				a, b := newMember(t, dir, "a", talking(goOn)), newMember(t, dir, "b", talking(nil))
				at := a
				if away {
					at = b
				}
				other := a.connect(1)
				theirs := other.new(t)
				id := theirs.ID()
				hears, asHearer := hears(false)
				c := at.connect(version, asHearer)
				c.load(t, id)
				c.send(t, id, "wait one")
				other.seen.until(t, "agent: waiting")
				c.send(t, id, "two")
				c.send(t, id, "three")
				a.queued(id, 3)
				for range 3 {
					<-hears.queued
				}
				theirs.Prompt(t.Context(), acp.Text("four"))
				a.queued(id, 4)
				want := []string{"wait one", "two", "three", "four"}
				for i := range 10 {
					want = append(want, fmt.Sprint("p", i))
					c.send(t, id, want[len(want)-1])
				}
				a.queued(id, len(want))
				if err := c.conn.Close(); err != nil {
					t.Fatal(err)
				}
				close(goOn)
				other.seen.until(t, "agent: p9")
				if got := prompts(t, a.rig, id); got != strings.Join(want, "|") {
					t.Errorf("%q have run, want %q", got, want)
				}
			})
		}
	}
}

// TestCancelOwn: a client that cancels a session cancels all prompts of its own, and no others. What it cancels later
// is the turn of another one, if it has none.
func TestCancelOwn(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		c, other := r.connect(version), r.connect(1)
		s := c.new(t)
		id := s.ID()
		theirs := other.load(t, id)
		gs := r.g.session(string(id))
		for round := range 3 {
			name := fmt.Sprint("r", round)
			first := c.send(t, id, name+"-own wait")
			other.seen.until(t, "agent: "+name+"-own")
			second, third := c.send(t, id, name+"-two"), c.send(t, id, name+"-three")
			queued(gs, 3)
			last := theirs.Prompt(t.Context(), acp.Text(name+"-other wait"))
			queued(gs, 4)
			if err := s.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			if stop, err := first(); err != nil || version == 1 && stop != acp.StopCancelled {
				t.Error(stop, err)
			}
			for _, wait := range []func() (acp.StopReason, error){second, third} {
				if stop, err := wait(); err != nil || stop != acp.StopCancelled {
					t.Error(stop, err)
				}
			}
			other.seen.until(t, "agent: "+name+"-other") // it runs
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if res, err := last.Wait(); err != nil || res.StopReason != acp.StopCancelled {
					t.Error(res, err)
				}
			}()
			for over := false; !over; { // one that comes while the answer to its own is on the way is about that
				if err := s.Cancel(t.Context()); err != nil {
					t.Fatal(err)
				}
				select {
				case <-ended:
					over = true
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
		if got := prompts(t, r, id); strings.Contains(got, "-t") {
			t.Errorf("%q have run", got)
		}
	})
}

// TestOwnQueueMoves: prompts of one client that wait when the node that has the session dies run at the next one, in
// order, and so does one that comes meanwhile.
func TestOwnQueueMoves(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			dir := t.TempDir()
			a, b := newMember(t, dir, "a", talking(nil)), newMember(t, dir, "b", talking(nil))
			id := a.connect(1).new(t).ID()
			c := b.connect(version)
			c.load(t, id)
			c.send(t, id, "wait")
			c.seen.until(t, "agent: waiting")
			want := []string{"wait"}
			for i := range 5 {
				want = append(want, fmt.Sprint("p", i))
				c.send(t, id, want[i+1])
			}
			a.queued(id, len(want))
			a.die()
			a.dead = true
			want = append(want, "late")
			last := c.send(t, id, "late")
			a.lapse()
			if _, err := last(); err != nil {
				t.Error(err)
			}
			c.seen.until(t, "agent: late")
			if got := prompts(t, b.rig, id); got != strings.Join(want, "|") {
				t.Errorf("%q have run, want %q", got, want)
			}
		})
	}
}

// TestLeavesBeforeTurn: a prompt whose client leaves when it is accepted, and before the library has begun its turn,
// is not cancelled.
func TestLeavesBeforeTurn(t *testing.T) {
	r := newRig(t, talking(nil))
	id := r.connect(1).new(t).ID()
	other := r.connect(1)
	other.load(t, id)
	for i := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		c := r.connectIn(ctx, 1+i%2)
		c.load(t, id)
		text := fmt.Sprint("p", i)
		c.send(t, id, text)
		other.seen.until(t, "user: "+text)
		_ = c.conn.Close()
		cancel()
		other.seen.until(t, "agent: "+text)
	}
}

// TestRepeatedMeanwhile: a client of version 2 that sends a prompt again that has ended, while a turn of another one
// runs, does not take the session for idle.
func TestRepeatedMeanwhile(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	asked := make(chan struct{})
	c, wire := r.wired(2, asking(func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
		<-ctx.Done()
		return acp.CancelPermission(), ctx.Err()
	}))
	other := r.connect(1, asking(func(ctx context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
		<-asked
		return req.Allow(), nil
	}))
	s := c.new(t)
	theirs := other.load(t, s.ID())
	if _, err := sendOperation(t, s, "one", "op-1").Wait(); err != nil {
		t.Fatal(err)
	}
	running := theirs.Prompt(t.Context(), acp.Text("wait ask"))
	c.seen.until(t, "agent: waiting")
	params := fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"one"}],"_meta":{%q:{"operationId":"op-1"}}}`, s.ID(), metaKey)
	if err := c.conn.Conn().Call(t.Context(), "session/prompt", json.RawMessage(params), nil); err != nil {
		t.Fatal(err)
	}
	c.seen.until(t, "end: end_turn") // its own, once more
	close(goOn)
	c.seen.until(t, "agent: wait")
	if _, idle := s.State().(*acp.IdleStateUpdate); idle {
		t.Errorf("%T while a turn runs", s.State())
	}
	for _, u := range wire.updates(t, 0) { // or a client that resumes there lacks a part of the record
		if strings.Contains(string(u.Update), "running") && strings.Contains(u.Position, `"part":1`) {
			t.Errorf("what is said once more is a part of a record: %s", u.Position)
		}
	}
	close(asked)
	if _, err := running.Wait(); err != nil {
		t.Error(err)
	}
}

// TestNamedOvertakes: a prompt without a name that has to be sent again, and is behind one with a name then, holds up
// nothing that the client is sent.
func TestNamedOvertakes(t *testing.T) {
	goOn := make(chan struct{})
	a, b, first, s := pair(t, goOn)
	id := s.ID()
	c := b.connect(2)
	theirs := c.load(t, id)
	s.Prompt(t.Context(), acp.Text("wait one"))
	first.seen.until(t, "agent: waiting")
	c.send(t, id, "two")
	a.queued(id, 2)
	sendOperation(t, theirs, "three", "op-3")
	a.queued(id, 3)
	b.cut()
	owned := a.g.session(string(id))
	for again := false; !again; runtime.Gosched() {
		owned.mu.Lock()
		again = len(owned.queue) == 3 && owned.queue[1].operation == "op-3"
		owned.mu.Unlock()
	}
	close(goOn)
	first.seen.until(t, "agent: two")
	say(t, s, "four")
	c.seen.until(t, "agent: four")
}

// TestCloseLeaves: a client that closes a session leaves it: its own turn, and what the agent asks, go on without it,
// and what it has queued runs.
func TestCloseLeaves(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		waits := make(chan struct{}, 2)
		c := r.connect(version, asking(func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
			waits <- struct{}{}
			<-ctx.Done()
			return acp.CancelPermission(), ctx.Err()
		}))
		s := c.new(t)
		allow := make(chan struct{})
		other := r.connect(2, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
			<-allow
			return req.Allow(), nil
		}))
		other.load(t, s.ID())
		c.send(t, s.ID(), "one ask")
		<-waits
		c.send(t, s.ID(), "two")
		queued(r.g.session(string(s.ID())), 2)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(allow)
		got := other.seen.until(t, "agent: two")
		want := []string{"user: one ask", "agent: one", "agent: …", "end: end_turn", "user: two", "agent: two"}
		want[2] = got[2] // the name of the option
		if !cmp.Equal(got, want) || !strings.HasSuffix(got[2], "true") {
			t.Errorf("%q", got)
		}
	})
}

// own returns the prompts of clients of a session that have come to a state.
func (r *rig) own(id acp.SessionID, state ownState) (n int) {
	r.g.present.mu.Lock()
	defer r.g.present.mu.Unlock()
	for w := range r.g.present.in[string(id)] {
		w.mu.Lock()
		for _, o := range w.own {
			if o.state == state {
				n++
			}
		}
		w.mu.Unlock()
	}
	return n
}

// TestRepeatedWhileOwn: a client of version 2 that sends a prompt again that has ended, while another one of its own
// runs, does not take the end of the one for that of the other.
func TestRepeatedWhileOwn(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	c := r.connect(2)
	s := c.new(t)
	if _, err := sendOperation(t, s, "one", "op-1").Wait(); err != nil {
		t.Fatal(err)
	}
	running := sendOperation(t, s, "wait", "op-2")
	c.seen.until(t, "agent: waiting")
	again := startOperation(t, c, s.ID(), "one", "op-1")
	for r.own(s.ID(), ownEnded) == 0 {
		runtime.Gosched()
	}
	select {
	case <-running.Done():
		t.Error("the turn that runs has ended for its client")
	default:
	}
	close(goOn)
	if res, err := running.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
		t.Error(res, err)
	}
	if res, err := again.Wait(); err != nil || !hasPrompt(t, r, s.ID(), res.MessageID) {
		t.Error(res, err)
	}
}

// TestRepeatedTwice: a client may send a prompt twice while that runs: both have its end, and the next one has its
// own.
func TestRepeatedTwice(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		one, two := make(chan struct{}), make(chan struct{})
		r := newRig(t, &acp.Agent{Prompt: func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
			goOn, stop := one, acp.StopEndTurn
			if turn.Text() == "two" {
				goOn, stop = two, acp.StopRefusal
			}
			_ = turn.Say("run " + turn.Text())
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return stop, nil
		}})
		r.max = agent
		c := r.connect(version)
		s := c.new(t)
		first := sendOperation(t, s, "one", "op-1")
		c.seen.until(t, "agent: run one")
		again := sendOperation(t, s, "one", "op-1")
		for r.own(s.ID(), ownBegun) != 2 {
			runtime.Gosched()
		}
		next := sendOperation(t, s, "two", "op-2")
		queued(r.g.session(string(s.ID())), 2)
		close(one)
		for _, reply := range []*acp.Reply{first, again} {
			if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
				t.Error(res, err)
			}
		}
		c.seen.until(t, "agent: run two")
		select {
		case <-next.Done():
			t.Error("the turn that runs has ended for its client")
		default:
		}
		close(two)
		if res, err := next.Wait(); err != nil || res.StopReason != acp.StopRefusal {
			t.Error(res, err)
		}
	})
}

// TestCloseWhileMoving: a client may close a session that has no place, and in which a prompt of its own waits for
// one.
func TestCloseWhileMoving(t *testing.T) {
	for version := 1; version <= 2; version++ {
		r := newRig(t, talking(nil))
		s := r.connect(version).new(t)
		say(t, s, "one") // the watcher is there
		over := make(chan struct{})
		close(over)
		var w *watcher
		r.g.present.mu.Lock()
		for w = range r.g.present.in[string(s.ID())] {
		}
		r.g.present.mu.Unlock()
		w.mu.Lock()
		was := w.at
		w.at = &nowhere{r.g, string(s.ID()), over}
		w.mu.Unlock()
		was.leave(w)
		reply := s.Prompt(t.Context(), acp.Text("two"))
		if err := s.Close(t.Context()); err != nil { // and not after moveTime
			t.Error(err)
		}
		if res, err := reply.Wait(); err == nil && res.StopReason != acp.StopCancelled {
			t.Error(res, err)
		}
		<-w.over
		if _, err := w.adds(newOwnPrompt(newOwnRequest(t), &turn{id: "late"}, was)); err == nil {
			t.Error("a prompt is taken that nobody would answer")
		}
	}
}
