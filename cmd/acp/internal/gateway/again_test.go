package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// A slowEnd is a way to an agent that takes its time to end.
type slowEnd struct {
	jsonrpc.Stream
	begins func()
	end    <-chan struct{}
}

func (s *slowEnd) Close() error {
	s.begins()
	<-s.end
	return s.Stream.Close()
}

// slowlyEnding has the agents of a node end when end is closed. The first one that begins to closes ends.
func slowlyEnding(m *member) (ends, end chan struct{}) {
	ends, end = make(chan struct{}), make(chan struct{})
	begins := sync.OnceFunc(func() { close(ends) })
	start := m.g.cfg.Start
	m.g.cfg.Start = func(ctx context.Context, name, cwd string) (acp.Transport, error) {
		if _, err := start(ctx, name, cwd); err != nil {
			return nil, err
		}
		return acp.Over(&slowEnd{m.last, begins, end}), nil
	}
	return ends, end
}

// unsentPrompt waits until a client of the node has a prompt that no place has queued.
func (m *member) unsentPrompt(t *testing.T, id acp.SessionID) {
	t.Helper()
	for {
		m.g.present.mu.Lock()
		watchers := slices.Collect(maps.Keys(m.g.present.in[string(id)]))
		m.g.present.mu.Unlock()
		for _, w := range watchers {
			w.mu.Lock()
			unsent := slices.ContainsFunc(w.own, (*ownPrompt).isUnsent)
			w.mu.Unlock()
			if unsent {
				return
			}
		}
		if t.Context().Err() != nil {
			t.Fatal("no prompt waits")
		}
		runtime.Gosched()
	}
}

// TestPromptWhileStopping: a prompt that comes while a session that is given up stops its agent runs at the next place,
// once.
func TestPromptWhileStopping(t *testing.T) {
	for _, test := range []struct {
		name    string
		version int
		away    bool // through the node that does not own the session
		meta    string
	}{
		{"version 1", 1, false, ""},
		{"version 2", 2, false, ""},
		{"named", 1, false, `{"github.com/goacp/acp":{"operationId":"op-1"}}`},
		{"through another node", 1, true, ""},
		{"named, through another node", 2, true, `{"github.com/goacp/acp":{"operationId":"op-1"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			a, b := newMember(t, dir, "a", talking(nil)), newMember(t, dir, "b", talking(nil))
			ends, end := slowlyEnding(a)
			s := a.connect(test.version).new(t)
			at := a
			if test.away {
				at = b
				s = b.connect(test.version).load(t, s.ID())
			}
			say(t, s, "one")
			drained := make(chan error, 1)
			go func() { drained <- a.g.Drain(t.Context()) }()
			<-ends
			reply := s.PromptRequest(t.Context(), &acpv2.PromptRequest{Prompt: []acp.ContentBlock{acp.Text("two")}, Meta: json.RawMessage(test.meta)})
			at.unsentPrompt(t, s.ID())
			close(end)
			if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
				t.Errorf("%v, %v", res, err)
			}
			if err := <-drained; err != nil {
				t.Error(err)
			}
			if got, want := prompts(t, b.rig, s.ID()), "one|two"; got != want {
				t.Errorf("%q have run, want %q", got, want)
			}
			if n := b.starts.Load(); n != 1 { // a node that drains does not take it again
				t.Errorf("%d starts on the other node", n)
			}
		})
	}
}

// An elsewhere is a place that is gone, and has refused a prompt for that reason.
type elsewhere struct {
	place
	over chan struct{}
}

func (e elsewhere) gone() <-chan struct{}                      { return e.over }
func (elsewhere) submit(context.Context, *turn) (*turn, error) { return nil, errGone }

// An ownRequest is what a client has asked for, in the place of an [acp.QueuedPrompt].
type ownRequest struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	ended  chan acp.TurnEnd
}

func newOwnRequest(t *testing.T) *ownRequest {
	r := &ownRequest{ended: make(chan acp.TurnEnd, 1)}
	r.ctx, r.cancel = context.WithCancelCause(t.Context())
	return r
}

func (r *ownRequest) Context() context.Context { return r.ctx }
func (r *ownRequest) Begin(acp.MessageID)      {}
func (r *ownRequest) End(e acp.TurnEnd)        { r.ended <- e }

// TestPromptAfterMove: a prompt that a place refuses since it is gone runs, also if the client is at the next place
// before it is known; not if the client has cancelled it.
func TestPromptAfterMove(t *testing.T) {
	for _, operation := range []string{"", "op-1"} {
		for _, cancelled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%q, %v", operation, cancelled), func(t *testing.T) {
				r := newRig(t, talking(nil))
				s := r.connect(1).new(t)
				w := r.watcher(s.ID())
				e := elsewhere{over: make(chan struct{})}
				close(e.over)
				req := newOwnRequest(t)
				o := newOwnPrompt(req, &turn{id: "m", by: local, content: []acp.ContentBlock{acp.Text("two")}, operation: operation}, e)
				if later, err := w.adds(o); later || err != nil {
					t.Fatal(later, err)
				}
				want := "two|three"
				stop := acp.StopEndTurn
				if cancelled {
					want, stop = "three", acp.StopCancelled
					req.cancel(acp.ErrCancelled)
					w.cancels(o)
				}
				if err := w.hand(t.Context(), e, o); err != nil {
					t.Fatal(err)
				}
				if end := <-req.ended; end.Err != nil || end.Stop != stop {
					t.Errorf("%+v", end)
				}
				say(t, s, "three")
				if got := prompts(t, r, s.ID()); got != want {
					t.Errorf("%q have run, want %q", got, want)
				}
			})
		}
	}
}

// prompts returns the prompts that a log has.
func prompts(t *testing.T, r *rig, id acp.SessionID) string {
	t.Helper()
	var all []string
	err := r.log.Read(t.Context(), string(id), 0, func(r engine.Record) error {
		if r.Kind != kindPrompt {
			return nil
		}
		p, err := records.DecodePrompt(r.Data)
		for _, block := range p.Content {
			all = append(all, block.(*acp.TextContent).Text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "|")
}

// watcher returns the only client of a session.
func (r *rig) watcher(id acp.SessionID) (w *watcher) {
	r.g.present.mu.Lock()
	defer r.g.present.mu.Unlock()
	for w = range r.g.present.in[string(id)] {
	}
	return w
}

// TestBeginsBefore: a prompt that the client has sent again begins for it while its turn runs, as far as the client was
// sent the log, and not afterwards.
func TestBeginsBefore(t *testing.T) {
	r := newRig(t, talking(nil))
	s := r.connect(2).new(t)
	say(t, s, "one")
	w := r.watcher(s.ID())
	for runs, want := range map[uint64]ownState{0: ownQueued, 7: ownBegun, 10: ownBegun, 12: ownQueued} {
		o := newOwnPrompt(newOwnRequest(t), &turn{id: "again"}, w.place())
		o.state = ownQueued
		w.telling.Lock()
		w.turn = runs
		w.telling.Unlock()
		if w.beginsBefore(o, 10); o.state != want {
			t.Errorf("the turn of record %d runs: state %d, want %d", runs, o.state, want)
		}
	}
	w.telling.Lock()
	w.turn = 0
	w.telling.Unlock()
}

// TestRepeatedAdopted: a prompt that is sent again to a gateway that has adopted the agent with the turn begins at
// once.
func TestRepeatedAdopted(t *testing.T) {
	goOn := make(chan struct{})
	r, sims := heldRig(t, talking(goOn), 1, nil)
	c := r.connect(2)
	s := c.new(t)
	sendOperation(t, s, "wait two", "op-1")
	c.seen.until(t, "agent: waiting")
	old := r.takeOver((*sims)[0])
	d := r.connect(2)
	d.load(t, s.ID())
	res, err := startOperation(t, d, s.ID(), "wait two", "op-1").Wait()
	if err != nil || !hasPrompt(t, r, s.ID(), res.MessageID) {
		t.Error(res, err)
	}
	close(goOn)
	d.seen.until(t, "end: end_turn")
	_ = c.conn.Close()
	_ = old.Close()
}

// TestEndAgain: a client of version 2 that returns with the position behind the end of a turn, and sends its prompt
// again before it was sent what follows, is sent that end for the prompt. So it is if more was sent behind the end
// then.
func TestEndAgain(t *testing.T) {
	for part := 1; part <= 2; part++ {
		r := newRig(t, talking(nil))
		c := r.connect(2)
		s := c.new(t)
		say(t, s, "one")
		var before, end engine.Record
		if err := r.log.Read(t.Context(), string(s.ID()), 0, func(rec engine.Record) error {
			before, end = end, rec
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		e, err := records.DecodeEnd(end.Data)
		if err != nil {
			t.Fatal(err)
		}
		w := r.watcher(s.ID())
		req := newOwnRequest(t)
		o := newOwnPrompt(req, &turn{id: acp.MessageID(e.Prompt)}, w.place())
		o.state = ownQueued
		w.telling.Lock() // it was sent everything
		w.mu.Lock()
		w.own = append(w.own, o)
		w.mu.Unlock()
		w.telling.Unlock()
		w.pos.resume(before.Seq, part, markOf(&before))
		if err := w.tell(&end); err != nil {
			t.Fatal(err)
		}
		if end := <-req.ended; end.Err != nil || end.Stop != acp.StopEndTurn {
			t.Errorf("%+v", end)
		}
		say(t, s, "two")
		if got := slices.DeleteFunc(c.seen.take(), func(s string) bool { return s != "end: end_turn" }); len(got) != 3 {
			t.Errorf("part %d: it was sent %d ends, want 3", part, len(got))
		}
	}
}

// TestRepeatedDeleted: a prompt that is sent again, and whose end waits for that of the turn that runs, is over when
// nothing more of the log comes.
func TestRepeatedDeleted(t *testing.T) {
	goOn := make(chan struct{})
	defer close(goOn)
	r := newRig(t, talking(goOn))
	s := r.connect(2).new(t)
	if _, err := sendOperation(t, s, "one", "op-1").Wait(); err != nil {
		t.Fatal(err)
	}
	c := r.connect(2)
	sendOperation(t, s, "wait", "op-2")
	theirs := c.load(t, s.ID())
	c.seen.until(t, "agent: waiting")
	again := startOperation(t, c, theirs.ID(), "one", "op-1")
	for r.own(s.ID(), ownEnded) == 0 {
		runtime.Gosched()
	}
	if _, err := r.log.Delete(t.Context(), string(s.ID())); err != nil {
		t.Fatal(err)
	}
	if res, err := again.Wait(); err != nil {
		t.Error(res, err)
	}
}
