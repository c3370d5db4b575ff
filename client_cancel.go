package acp

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// session/cancel names a session, not a prompt: it stops whatever the agent works on
// when it arrives. A cancellation meant for a prompt that has just ended would stop the
// next one. So whether there is still something to stop is decided in the step that
// sends the message (jsonrpc.SendIf): a prompt that is sent once the reply before it has
// ended always comes after that cancellation.

// Cancel asks the agent to stop what it is doing in the session. It returns when
// the request has been sent; prompts in flight end as the agent ends them. Cancel
// applies to the prompts that were sent before it. Nothing is sent if those that
// were in flight have ended in the meantime, or if there were none and a prompt
// is sent first.
//
// In version 1 all permission requests and elicitations of the session that are
// waiting are answered as cancelled. So are later ones, until these prompts are
// answered or another one is sent, for at most [Client.CancelGrace]. In version 2
// the agent withdraws its own requests.
//
// The agent may take any time to stop. A program whose user insists, for example
// with a second Ctrl-C, cancels the ctx of the prompt, which waits for at most
// [Client.CancelGrace].
func (s *ClientSession) Cancel(ctx context.Context) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.cancelAll(ctx)
}

// cancelAll cancels the prompts in flight. If there are none, there may be
// something else to cancel.
func (s *ClientSession) cancelAll(ctx context.Context) error {
	s.mu.Lock()
	sent := s.sent
	targets := slices.DeleteFunc(slices.Clone(s.replies), func(r *Reply) bool { return !r.inFlight() })
	s.mu.Unlock()
	return s.cancel(ctx, func() bool {
		if len(targets) == 0 {
			return s.sent == sent
		}
		return slices.ContainsFunc(targets, (*Reply).inFlight)
	})
}

// cancel sends session/cancel, unless aim reports that there is nothing left to
// stop. aim is called with mu held, when no prompt can come between its result
// and the message.
func (s *ClientSession) cancel(ctx context.Context, aim func() bool) error {
	proto := s.conn.proto()
	var asks []*clientAsk // of mu, since middleware may send from elsewhere
	err := proto.cancelSession(ctx, s.id, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !aim() {
			return false
		}
		s.steering.cancels++
		for _, r := range s.replies { // before the agent can answer
			if r.call.sent() {
				r.stop.cancelling.Store(true)
			}
		}
		if proto.version() == 1 {
			s.withdrawn = time.Now()
			asks = slices.AppendSeq(asks, maps.Keys(s.asked))
		}
		return true
	})
	s.mu.Lock()
	withdraw := asks
	s.mu.Unlock()
	for _, ask := range withdraw {
		ask.cancel()
	}
	if errors.Is(err, jsonrpc.ErrNotSent) {
		return nil
	}
	return s.conn.explain(err)
}

// withdraw answers all waiting questions as cancelled.
func (s *ClientSession) withdraw() {
	s.mu.Lock()
	asks := slices.Collect(maps.Keys(s.asked))
	s.mu.Unlock()
	for _, ask := range asks {
		ask.cancel()
	}
}

// sending records that the prompt is being sent now.
func (r *Reply) sending() bool {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	r.stop.number = s.sent
	r.call.state.Store(callSent)
	return true
}

// sent reports whether the request is on its way, or was.
func (c *replyCall) sent() bool { return c.state.Load() != callUnsent }

// inFlight reports whether, as far as is known, the agent may still work on the
// prompt or is about to receive it.
func (r *Reply) inFlight() bool { return !r.over.Load() && r.call.state.Load() != callAnswered }

// first reports whether no older prompt of the session is in flight.
func (r *Reply) first() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for _, o := range r.s.replies {
		if o == r {
			break
		}
		if o.inFlight() {
			return false
		}
	}
	return true
}

// interrupt asks the agent to stop, because the prompt's ctx is done.
func (r *Reply) interrupt() {
	s := r.s
	r.mu.Lock()
	if r.over.Load() {
		r.mu.Unlock()
		return
	}
	r.stop.giveUp = time.AfterFunc(s.conn.client.CancelGrace, r.gaveUp)
	accepted := r.turn.accepted.Load()
	r.mu.Unlock()
	r.buffer.poke()
	if s.conn.Version() == 1 && r.call.sent() && r.first() || accepted {
		r.cancelSession()
	} else {
		r.call.cancel(r.ctxErr())
	}
	r.hurry()
}

// cancelSession sends session/cancel for a prompt whose ctx is done.
func (r *Reply) cancelSession() {
	ctx, cancel := context.WithTimeout(r.s.conn.ctx, r.s.conn.client.CancelGrace)
	defer cancel()
	_ = r.s.cancel(ctx, r.aim) // a failure is reported by the prompt itself
}

// aim reports, once, whether there is something to cancel for the prompt: it is
// in flight, or was given up here and is the latest. It is called with the
// session's mu held.
func (r *Reply) aim() bool {
	s := r.s
	if s.closed != nil || r.stop.told {
		return false
	}
	r.stop.told = r.inFlight() || r.stop.abandoned && r.stop.number == s.sent
	return r.stop.told
}

// gaveUp ends a prompt whose agent does not end it although it was asked to.
func (r *Reply) gaveUp() {
	r.call.cancel(r.ctxErr())
	if r.s.conn.Version() != 1 {
		r.abandon(r.ctxErr())
	}
}
