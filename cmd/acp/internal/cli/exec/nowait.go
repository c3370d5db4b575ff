package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// stay makes a frontend notice that the gateway has the prompt, and leave the agent's questions to others.
func (t *turn) stay(front *backend.Frontend) {
	t.kept = make(chan struct{}, 1)
	note := front.Note
	front.Note = func(n backend.Note) {
		if n.Kind == backend.NoteQueued {
			select {
			case t.kept <- struct{}{}:
			default:
			}
			return
		}
		note(n)
	}
	front.Aside = func() bool { return true }
}

// leave sends the prompt, and ends once the gateway has it.
func (t *turn) leave(ctx context.Context) error {
	err := t.send(ctx)
	if err == nil {
		t.report.leave()
	}
	if t.host != nil {
		_ = t.host.Close() // that the answer is lost is what the user wants
	}
	if err == nil && !t.o.JSON {
		_, err = fmt.Fprintln(t.o.App.Out, safetext.Line(string(t.session.ID()), 200))
	}
	return t.report.finish(t.session, nil, err)
}

func (t *turn) send(ctx context.Context) error {
	blocks, done, err := t.prepare(ctx)
	if err != nil {
		return err
	}
	defer done()
	if has, err := t.steer(ctx, blocks); has || err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { // until the host is closed
		_, err := t.session.Prompt(context.WithoutCancel(ctx), blocks...)
		ended <- err
	}()
	select {
	case <-t.kept:
		return nil
	case err := <-ended: // it was refused, or has ended already
		return err
	case <-ctx.Done():
		return exitcode.With(exitcode.Cancelled, errors.Join(context.Cause(ctx), errors.New("whether the gateway has the prompt is not known")))
	}
}
