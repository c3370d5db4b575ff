package gateway

import (
	"context"

	"github.com/goacp/acp"
)

// resolve sends again, to where the session is now, the prompts whose place is gone. It does so in the order in which they
// came, and once the client was sent everything that was in the log when the next place had been found: what was begun has
// its end in the log, too, and nothing else runs. What no place has queued is sent at once. The caller holds w.mu.
func (w *watcher) resolve() {
	var all []*ownTurn
	if w.ctx.Err() != nil {
		return // the client has left
	}
	for _, o := range w.own {
		if !o.waitsForPlace() {
			continue
		}
		if o.sending || o.at == w.at || !o.isUnsent() && w.sent < w.last {
			break // it waits, and so do those behind it
		}
		o.lost, o.unsent, o.sending, o.at = false, false, true, w.at
		all = append(all, o)
	}
	if len(all) == 0 {
		return
	}
	p := w.at
	w.g.work.Go(func() {
		for _, o := range all {
			w.again(p, o)
		}
	})
}

// waitsForPlace reports whether the prompt is not known to be queued where the session is now. The caller holds the
// watcher's lock.
func (o *ownTurn) waitsForPlace() bool {
	return !o.begun && !o.cancelled && !o.refused && (o.lost || o.sending)
}

// isUnsent reports whether the place that the prompt was sent to last has not queued it. The caller holds the watcher's lock.
func (o *ownTurn) isUnsent() bool {
	if o.again != nil {
		return o.unsent || o.again.unqueued.Load()
	}
	return o.unsent || o.sent.unqueued.Load()
}

// hand hands a prompt of the client to a place, as t. It reports whether the prompt is unsent, because the session moves:
// then it is sent to the next place, which the watcher may have entered already.
func (w *watcher) hand(ctx context.Context, p place, o *ownTurn, t *turn) (runs *turn, unsent bool, err error) {
	runs, err = p.submit(ctx, t)
	unsent = isMoving(err)
	if err != nil && t != o.sent {
		select {
		case <-p.gone():
			unsent = true
		default:
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o.sending, o.unsent = false, unsent
	switch {
	case unsent:
		o.lost = true
	case err != nil:
		o.refused = true
	case t != o.sent:
		o.again = runs
		if runs.id != "" && runs.id != o.id && !o.begun {
			o.first, o.repeat = runs.id, true
		}
	case runs != t: // it was sent before, and runs or has ended
		o.turn, o.repeat, o.first = runs, true, runs.id
	}
	if o.cancelled && err == nil { // meanwhile
		runs.cancel(&stopError{w.who.name()})
	}
	w.resolve() // others may have waited for it
	return runs, unsent, err
}

// again sends a prompt to a place that was sent to one before. If that place goes, too, the prompt is sent to the next
// one.
func (w *watcher) again(p place, o *ownTurn) {
	t := &turn{
		id: o.sent.id, by: o.sent.by, from: o.sent.from, rank: o.sent.rank, content: o.sent.content, operation: o.sent.operation, trace: o.sent.trace,
		cancel: func(error) {}, done: make(chan struct{}),
	}
	runs, unsent, err := w.hand(w.ctx, p, o, t)
	switch {
	case unsent:
		return
	case err != nil:
		w.settle(o, turnEnd{err: err, refused: true})
		return
	}
	w.queued(o, p.before(runs))
	w.g.work.Go(func() { w.await(p, o, runs) })
}

// await waits for the end of a prompt that was sent again, as runs.
func (w *watcher) await(p place, o *ownTurn, runs *turn) {
	var written <-chan struct{}
	if runs.id != o.id {
		written = runs.written // otherwise the log says to the client that it begins
	}
	for {
		select {
		case <-written:
			if written = nil; runs.begun > 0 {
				w.catchesUp(o, runs)
			}
			continue
		case <-runs.done:
		case <-w.over:
			return
		case <-p.gone():
			select {
			case <-runs.done: // before
			default:
				return
			}
		}
		w.settle(o, runs.turnEnd)
		return
	}
}

// setOption changes an option of the agent, wherever the session runs.
func (w *watcher) setOption(ctx context.Context, id acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
	for {
		p, err := w.here(ctx)
		if err != nil {
			return err
		}
		if err := p.setOption(ctx, id, v); !isMoving(err) {
			return err
		}
		select {
		case <-p.gone(): // soon
		case <-w.over: // and the place may stay
			return w.ended()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
