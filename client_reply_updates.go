package acp

import (
	"context"
	"iter"
	"slices"
)

// Updates yields the updates of the turn as they arrive, and ends with it. If
// the turn failed, the last pair is its error: that of [Reply.Wait], which is
// also where the result is. Leaving the loop early discards what follows; the
// turn goes on. The next loop goes on where the last one ended.
func (r *Reply) Updates() iter.Seq2[*Update, error] {
	return func(yield func(*Update, error) bool) {
		r.mu.Lock()
		if r.reading == clientHolds {
			r.reading = clientReads
		}
		r.mu.Unlock()
		if r.awaitsItself() {
			yield(nil, errAwaitsItself)
			return
		}
		for {
			u, err, ok := r.next()
			if !ok {
				if r.err != nil {
					yield(nil, r.err)
				}
				return
			}
			if !yield(u, err) {
				r.mu.Lock()
				r.discard()
				r.mu.Unlock()
				return
			}
		}
	}
}

// next waits for the next update. ok is false at the end.
func (r *Reply) next() (u *Update, err error, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if r.started || r.ended {
			switch {
			case r.lost:
				r.lost = false
				return nil, errNobodyRead, true
			case r.unreadable != nil:
				err := r.unreadable
				r.unreadable = nil
				return nil, err, true
			case r.head < len(r.held):
				return r.pop(), nil, true
			case r.ended:
				return nil, nil, false
			}
		}
		r.waiting = true
		if r.wake == nil {
			r.wake = make(chan struct{}, 1)
		}
		wake := r.wake
		r.mu.Unlock()
		<-wake
		r.mu.Lock()
	}
}

// push gives a reply an update of its session, waiting for room if it is its
// turn to wait.
func (r *Reply) push(ctx context.Context, u *Update, seq uint64) {
	if r.unread.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	size := 0
	for !r.ended && r.reading != clientDiscards {
		switch {
		case r.fits(&size, u):
			if len(r.held) == cap(r.held) && r.head > 0 {
				n := copy(r.held, r.held[r.head:])
				clear(r.held[n:])
				r.held, r.head = r.held[:n], 0
			}
			r.held = append(r.held, clientHeld{u, seq, size})
			r.bytes += size
			r.wakeReader()
			return
		case !r.started || r.reading == clientHolds && !r.alone() || r.s.waiting.Load() > 0:
			r.pop()
			r.lost = true
		case r.ctx.Err() != nil || ctx.Err() != nil || r.s.conn.ctx.Err() != nil:
			r.lost = true
			return
		default:
			if r.room == nil {
				r.room = make(chan struct{})
			}
			room := r.room
			r.mu.Unlock()
			select {
			case <-room:
			case <-r.ctx.Done():
			case <-ctx.Done():
			case <-r.s.conn.ctx.Done():
			}
			r.mu.Lock()
		}
	}
}

// alone reports whether no other prompt of the session is in flight.
func (r *Reply) alone() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return len(r.s.replies) <= 1
}

// misses has the reader learn of an update that could not be read.
func (r *Reply) misses(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended && r.reading != clientDiscards {
		r.unreadable = err
		r.wakeReader()
	}
}

// poke has push look again.
func (r *Reply) poke() {
	r.mu.Lock()
	r.wakeRoom()
	r.mu.Unlock()
}

// The following are called with mu held.

// fits reports whether there is room for an update. Its size is found out when
// it is needed.
func (r *Reply) fits(size *int, u *Update) bool {
	if *size == 0 {
		*size = clientHeldSize(u)
	}
	n := len(r.held) - r.head
	return n == 0 || n < maxHeld && r.bytes+*size <= maxHeldBytes
}

func (r *Reply) pop() *Update {
	h := &r.held[r.head]
	u := h.u
	r.bytes -= h.size
	*h = clientHeld{}
	if r.head++; r.head == len(r.held) {
		r.held, r.head = r.held[:0], 0
	}
	r.wakeRoom()
	return u
}

func (r *Reply) discard() {
	r.reading = clientDiscards
	r.unread.Store(true)
	r.held, r.head, r.bytes, r.lost, r.unreadable = nil, 0, 0, false, nil
	r.wakeRoom()
}

func (r *Reply) wakeRoom() {
	if r.room != nil {
		close(r.room)
		r.room = nil
	}
}

func (r *Reply) wakeReader() {
	if r.waiting && (r.started || r.ended) {
		r.waiting = false
		r.wake <- struct{}{} // empty, since the reader waits
	}
}

// keep drops the held updates for which f is false.
func (r *Reply) keep(f func(h clientHeld) bool) {
	kept := slices.DeleteFunc(slices.Clone(r.held[r.head:]), func(h clientHeld) bool { return !f(h) })
	r.held, r.head, r.bytes = kept, 0, 0
	for _, h := range kept {
		r.bytes += h.size
	}
	r.wakeRoom()
}

// clientHeldSize returns about how many bytes an update takes.
func clientHeldSize(u *Update) int {
	const item = 256
	if c, ok := u.Update.(*AgentMessageChunk); ok { // by far the most
		if t, ok := c.Content.(*TextContent); ok && t.Annotations == nil {
			return item + len(t.Text) + len(t.Meta) + len(t.Unknown) + len(c.Meta) + len(c.Unknown)
		}
	}
	text, _ := u.Update.AppendJSON(nil)
	return item + len(text)
}
