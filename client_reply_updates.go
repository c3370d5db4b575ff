package acp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Updates yields the updates of the turn as they arrive, and ends with it. If
// the turn failed, the last pair is its error: that of [Reply.Wait], which is
// also where the result is. Breaking out of the loop discards the rest of the
// updates; the turn keeps running. A later loop waits for the end and yields no
// updates.
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

// maxReplyText bounds what Text returns, in bytes.
const maxReplyText = 16 << 20

// Text waits until the turn has ended and returns the agent's answer as text, and
// what [Reply.Wait] returns. It takes the place of Updates and Wait; what was read
// before is not part of it.
//
// The answer is what [Update.Text] returns for each update: the text of the
// agent's messages, but not its thoughts, tool calls, images and the like. A turn
// may have several messages, such as one before and one after a tool call; they are
// separated by a blank line. At most 16 MiB are returned. If there is more, or if
// updates were lost, and the turn has not failed otherwise, the error wraps
// [ErrUpdatesLost].
func (r *Reply) Text() (string, *Result, error) {
	var text strings.Builder
	var message string
	var lost error
	full := false
	for u, err := range r.Updates() {
		if err != nil {
			if lost == nil && errors.Is(err, ErrUpdatesLost) {
				lost = err
			}
			continue
		}
		more := u.Text()
		if more == "" {
			continue
		}
		_, _, id := describeUpdate(u.Update)
		if text.Len() > 0 && id != message {
			more = "\n\n" + more
		}
		message = id
		if full = full || text.Len()+len(more) > maxReplyText; !full {
			text.WriteString(more)
		}
	}
	res, err := r.Wait()
	switch {
	case err != nil:
	case lost != nil:
		err = lost
	case full:
		err = errLongText
	}
	return text.String(), res, err
}

var errLongText = fmt.Errorf("%w: the answer is too long", ErrUpdatesLost)

// unreadWait is how long a reply that is full and that nobody reads holds up its
// session if [Client.Update] gets the updates: whoever sent the prompt may be about to
// read.
const unreadWait = time.Second

// push gives a reply an update of its session. It waits for room if the reply
// holds up its session.
func (r *Reply) push(ctx context.Context, u *Update, seq uint64) {
	if r.buffer.unread.Load() {
		return
	}
	h := heldUpdate{u: u, seq: seq}
	var late <-chan time.Time
	for {
		room := r.buffer.push(&h, r.yields)
		if room == nil {
			return
		}
		if r.ctx.Err() != nil || ctx.Err() != nil || r.s.conn.ctx.Err() != nil {
			r.buffer.lose()
			return
		}
		if late == nil && r.s.conn.client.Update != nil {
			timer := time.NewTimer(unreadWait)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-room:
		case <-late:
			r.buffer.ignored.Store(true)
		case <-r.ctx.Done():
		case <-ctx.Done():
		case <-r.s.conn.ctx.Done():
		}
	}
}

// yields reports whether the reply, when it is full, loses updates rather than
// holding up its session: a call about the session waits for an answer that may
// be behind them, or nobody reads this reply while there are others, or nobody is going
// to.
func (r *Reply) yields(read bool) bool {
	return !read && (r.buffer.ignored.Load() || !r.alone()) || r.s.waiting.Load() > 0
}

// alone reports whether no other prompt of the session is in flight.
func (r *Reply) alone() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return len(r.s.replies) <= 1
}
