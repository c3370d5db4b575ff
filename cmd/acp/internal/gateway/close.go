package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// close stops the agent, waits for what is being written and gives the session up.
func (s *session) close() error { return s.closeWith(s.release) }

// closeWith is close with another way to give the session up. It does not call that if the session is given up already.
func (s *session) closeWith(leave func() error) error {
	<-s.opened
	s.mu.Lock()
	if s.closed || s.log == nil {
		failed := s.log == nil || s.idle == nil
		s.mu.Unlock()
		if !failed {
			select {
			case <-s.over:
			case <-s.ctx.Done():
			}
		}
		return nil
	}
	s.closed = true
	s.idle.Stop()
	queue := slices.Clone(s.queue)
	s.mu.Unlock()
	for _, t := range queue {
		t.cancel(ErrClosed)
	}
	s.starting <- struct{}{} // what is being started ends at once
	return s.finishClose(queue, leave)
}

// finishClose is close once nothing new can begin. The caller holds s.starting.
func (s *session) finishClose(queue []*turn, leave func() error) error {
	defer close(s.over)
	s.mu.Lock()
	b := s.agent
	s.mu.Unlock()
	if b != nil {
		b.stop()
	}
	<-s.starting
	for _, t := range queue {
		<-t.ran
	}
	s.g.forget(s)
	err := leave()
	s.cancel(ErrClosed)
	return err
}

// release gives the session up to whoever claims it next.
func (s *session) release() error {
	err := s.g.release(s.own)
	switch {
	case errors.Is(err, engine.ErrFenced):
		return nil
	case errors.Is(err, journal.ErrUnsaved):
		return fmt.Errorf("session %s: what was said last could not be written, and is lost; nobody has seen it: %w", s.id, err)
	}
	return err
}

// giveUpTime is how long a session may take to be given up once a gateway that closes has tried for long enough to keep what it
// could not keep, or any other session.
const giveUpTime = 2 * time.Second

// release gives a session up. A disk that does not answer does not keep the gateway from ending.
func (g *Gateway) release(own *engine.Owned) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(g.ending, func() { time.AfterFunc(giveUpTime, cancel) })()
	return own.Release(ctx)
}

// rest is called when nothing has happened for a while: the agent is stopped, and a session that nobody
// watches is given up.
func (s *session) rest() {
	select {
	case s.starting <- struct{}{}: // prompts that come meanwhile wait, and start the agent again
	default:
		return
	}
	s.mu.Lock()
	if s.closed || s.busy() {
		s.mu.Unlock()
		<-s.starting
		return
	}
	b := s.agent
	s.closed = len(s.watchers) == 0 && len(s.guests) == 0
	unwatched := s.closed
	if b != nil {
		b.why.CompareAndSwap(nil, new("stopped")) // whoever needs its place may wait for that
	}
	s.mu.Unlock()
	if unwatched {
		if err := s.finishClose(nil, s.release); err != nil {
			s.logger().Warn("gateway: an idle session cannot be given up", "error", err)
		}
		return
	}
	if b != nil {
		b.stop()
	}
	<-s.starting
}

// abandon gives the session up, whatever it does, and kills its agent.
func (s *session) abandon(err error) {
	s.mu.Lock()
	b := s.agent
	s.mu.Unlock()
	s.cancel(err)
	s.g.forget(s)
	if b != nil {
		s.g.work.Go(b.kill)
	}
}

// yield gives the session up if it does nothing.
func (s *session) yield() {
	select {
	case <-s.opened:
	default:
		return
	}
	select {
	case s.starting <- struct{}{}:
	default:
		return
	}
	s.mu.Lock()
	busy := s.closed || s.busy() || s.idle == nil
	if !busy {
		s.closed = true
		s.idle.Stop()
	}
	s.mu.Unlock()
	if busy {
		<-s.starting
		return
	}
	s.leaveNode()
}

// yields is called between two turns on a node that drains. Whatever waits is given back to whoever has sent it, for the
// next owner: a session that is never idle would stay for ever. It reports whether the session is to be given up. The
// caller holds s.mu.
func (s *session) yields() bool {
	if s.closed || len(s.asks) > 0 || s.idle == nil || s.ctx.Err() != nil {
		return false
	}
	s.closed = true
	s.idle.Stop()
	for _, t := range s.queue {
		if t.stage.CompareAndSwap(turnWaits, turnWithdrawn) {
			t.unqueued.Store(true)
		}
	}
	return true
}

// leaveNode gives the session up for another node. The caller has closed it, and holds s.starting.
func (s *session) leaveNode() {
	if err := s.finishClose(nil, s.release); err != nil {
		s.logger().Warn("gateway: the session cannot be given up", "error", err)
	}
}
