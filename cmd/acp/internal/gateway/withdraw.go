package gateway

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/goacp/acp"
)

// A beginning says whether a turn has begun.
type beginning struct {
	stage   atomic.Int32
	written chan struct{} // closed when it is known whether the log has the prompt
	begun   uint64        // then; a record not before it, or 0 if it never will
}

// Stages of a turn.
const (
	turnWaits int32 = iota
	turnBegun
	turnWithdrawn
	turnDropped // its client has cancelled it
)

// begins is called when the turn is about to run. It reports false if the turn was withdrawn.
func (b *beginning) begins() bool { return b.stage.CompareAndSwap(turnWaits, turnBegun) }

// withdraw keeps a turn from running, unless it has begun. When it returns, the log has the prompt, or it never will.
func (s *session) withdraw(t *turn) {
	s.mu.Lock()
	waits := t.stage.CompareAndSwap(turnWaits, turnWithdrawn)
	if waits {
		if i := slices.Index(s.queue, t); i > 0 { // runTurns removes the first one
			s.queue = slices.Delete(s.queue, i, i+1)
			close(t.ran)
		}
	}
	s.mu.Unlock()
	if waits {
		t.cancel(errGone)
		t.settle(turnEnd{err: errGone, refused: true})
		return
	}
	select {
	case <-t.written:
	case <-t.ran:
	case <-s.ctx.Done():
	}
}

// drop is called when the context with which a turn waits is done. One that waits behind others ends at once: it must not keep its place until they
// have ended.
func (s *session) drop(ctx context.Context, t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !errors.Is(context.Cause(ctx), errCancelled) || slices.Index(s.queue, t) <= 0 || !t.stage.CompareAndSwap(turnWaits, turnDropped) {
		return // runTurns deals with the first one
	}
	s.g.work.Go(func() { // which runTurns still keeps from ending
		end := turnEnd{stop: acp.StopCancelled}
		s.finish(t, end) // whoever sends it again meanwhile must find it in the queue
		t.settle(end)
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.queue, t); i > 0 {
			s.queue = slices.Delete(s.queue, i, i+1)
			close(t.ran)
		}
	})
}
