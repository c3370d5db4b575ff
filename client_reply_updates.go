package acp

import (
	"context"
	"iter"
)

// Updates yields the updates of the turn as they arrive, and ends with it. If
// the turn failed, the last pair is its error: that of [Reply.Wait], which is
// also where the result is. Leaving the loop early discards what follows; the
// turn goes on. The next loop goes on where the last one ended.
func (r *Reply) Updates() iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		r.buffer.read()
		if r.awaitsItself() {
			yield(nil, errAwaitsItself)
			return
		}
		for {
			u, err, ok := r.buffer.next()
			if !ok {
				if r.err != nil {
					yield(nil, r.err)
				}
				return
			}
			if !yield(u, err) {
				r.buffer.leave(false)
				return
			}
		}
	}
}

// push gives a reply an update of its session, waiting for room if it is its
// turn to wait.
func (r *Reply) push(ctx context.Context, u *Update, seq uint64) {
	if r.buffer.unread.Load() {
		return
	}
	h := heldUpdate{u: u, seq: seq}
	for {
		room := r.buffer.push(&h, r.yields)
		if room == nil {
			return
		}
		if r.ctx.Err() != nil || ctx.Err() != nil || r.s.conn.ctx.Err() != nil {
			r.buffer.lose()
			return
		}
		select {
		case <-room:
		case <-r.ctx.Done():
		case <-ctx.Done():
		case <-r.s.conn.ctx.Done():
		}
	}
}

// yields reports whether the reply, when it is full, loses updates rather than
// hold up its session: a call about the session waits for an answer that may be
// behind them, or nobody reads this reply while there are others.
func (r *Reply) yields(read bool) bool {
	return !read && !r.alone() || r.s.waiting.Load() > 0
}

// alone reports whether no other prompt of the session is in flight.
func (r *Reply) alone() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return len(r.s.replies) <= 1
}
