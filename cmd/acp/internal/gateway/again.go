package gateway

import (
	"context"

	"github.com/goacp/acp"
)

// resolve sends again, to where the session is now, the prompts whose place is gone. It does so in the order in which
// they came, and once the client was sent everything that was in the log when the next place had been found: what was
// begun has its end in the log, too, and nothing else runs. What no place has queued is sent at once. What the client
// has cancelled, and has not begun by then, is over. The caller holds w.mu.
func (w *watcher) resolve() {
	if w.ctx.Err() != nil {
		return // the client has left
	}
	var again, over []*ownPrompt
	for _, o := range w.own {
		if o.state == ownSending {
			break // so those behind it wait, too
		}
		if o.state != ownUnsent && o.state != ownLost {
			continue
		}
		moved := o.at != w.at
		known := o.isUnsent() || moved && w.sent >= w.last
		if o.cancelled && known {
			over = append(over, o)
		}
		if o.cancelled {
			continue
		}
		if !moved || !known {
			break
		}
		o.state, o.at, o.runs = ownSending, w.at, nil
		again = append(again, o)
	}
	p := w.at
	if len(over) > 0 {
		w.g.work.Go(func() {
			for _, o := range over {
				w.tellEnd(o, turnEnd{stop: acp.StopCancelled, refused: true}, o.sent.id)
			}
		})
	}
	if len(again) > 0 {
		w.g.work.Go(func() {
			for _, o := range again {
				if err := w.hand(w.ctx, p, o); err != nil {
					w.tellEnd(o, turnEnd{err: err, refused: true}, o.sent.id)
				}
			}
		})
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
