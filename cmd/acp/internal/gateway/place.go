package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/internal/sleep"
	"github.com/goacp/acp/jsonrpc"
)

// A place is where a session runs: a [*session] of this process, or a [*visit] to the node that owns it. A [*nowhere]
// is one that is gone.
// Watchers move when a place is gone. Its methods may be called from any goroutine.
type place interface {
	// gone is closed when the session does not run here any more.
	gone() <-chan struct{}
	// enter adds a watcher, unless the place is gone; leave removes it.
	enter(w *watcher) error
	leave(w *watcher)
	// greeting returns what a client is sent that comes.
	greeting(ctx context.Context) (greeting, error)
	// last returns the number of the last record.
	last(ctx context.Context) (uint64, error)

	// submit queues a prompt. A turn that was refused, or that was sent before and has ended or runs, is
	// returned instead.
	submit(ctx context.Context, t *turn) (*turn, error)
	// steer has the agent take a message into the turn that runs. It returns the record of the message, if there is one.
	steer(ctx context.Context, m *steering) (acp.SteerOutcome, uint64, error)
	// before returns how many turns run or wait before one that was queued, as far as that is known.
	before(t *turn) int
	// cancelRunning cancels the turn that runs, if the user may do that and it is the one with the ID, if there is one.
	// from is what others see of the user.
	cancelRunning(by, from string, only acp.MessageID)
	// setOption changes an option of the agent.
	setOption(ctx context.Context, id acp.SessionConfigID, v acp.SessionConfigOptionValue) error

	// change changes something else about the session.
	change(ctx context.Context, c change) error

	// files returns files of the session's directory.
	files(ctx context.Context, query string, limit int) ([]string, error)

	// question returns a question that is open, or nil; questions returns those that were asked up to a
	// record.
	question(id string) *ask
	questions(upTo uint64) []*ask
	// asking is called before a client is asked, and answered or unanswered when it is not any more.
	asking(a *ask)
	answered(a *ask, d decision)
	unanswered(a *ask)
}

// A greeting is what a client is sent that comes to a session.
type greeting struct {
	Options   []acp.SessionConfigOption
	Commands  []acp.AvailableCommand
	Suggested []acpv2.PromptSuggestion
	Title     string
	Running   bool // a turn runs
}

// moveTime is how long a client waits for a session that moves to another node, before its calls fail.
const moveTime = 30 * time.Second

// moveAgain is how long a watcher waits before it looks again where its session is.
const moveAgain = 250 * time.Millisecond

// place returns where the session of the watcher runs, or has run last.
func (w *watcher) place() place {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// here returns where the session of the watcher runs. While it moves, that takes time.
func (w *watcher) here(ctx context.Context) (place, error) {
	timer := time.NewTimer(moveTime)
	defer timer.Stop()
	for {
		w.mu.Lock()
		p, moved := w.at, w.moved
		w.mu.Unlock()
		select {
		case <-p.gone():
		default:
			return p, nil
		}
		select {
		case <-moved:
		case <-w.over:
			return nil, w.ended()
		case <-timer.C:
			return nil, errMoving
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// move waits until the session runs somewhere again, and has the watcher enter that place. It fails if there is no such
// place.
func (w *watcher) move(ctx context.Context) error {
	for told := false; ; told = true {
		err := w.moveOnce(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil, errors.Is(err, ErrClosed), errors.Is(err, engine.ErrClosed), errors.Is(err, engine.ErrNotFound):
			return err
		}
		if !told {
			w.g.logger(w.id).Info("gateway: the session has no place yet", "error", err)
		}
		if !sleep.For(ctx, moveAgain) {
			return context.Cause(ctx)
		}
	}
}

// damagedTitle is the title of the notice that something of a session cannot be read.
const damagedTitle = "Part of this session is damaged."

// damaged tells the client that something is left out.
func (w *watcher) damaged(damage *engine.DamageError) {
	_ = w.session.Notice(acp.NoticeSeverityError, damagedTitle, damage.Summary())
}

// ended returns what a client is answered once nothing more is sent to it: w.over is closed.
func (w *watcher) ended() error {
	switch {
	case errors.Is(w.why, engine.ErrNotFound):
		return errDeleted
	case w.g.closing():
		return &jsonrpc.Failure{Message: "the server is about to end", Reason: "closing", RetryAfter: 5 * time.Second}
	}
	return ErrClosed // whom nobody can answer any more
}

// errDeleted and errMoving are why a session cannot be used.
var (
	errMoving  error = &jsonrpc.Failure{Message: "the session has no place at present", Reason: "moving", RetryAfter: 5 * time.Second}
	errDeleted error = &jsonrpc.Failure{Message: "the session was deleted", Reason: "deleted"}
)

func (w *watcher) moveOnce(ctx context.Context) error {
	p, err := w.g.open(ctx, w.id)
	if err != nil {
		return err
	}
	last, err := p.last(ctx)
	if err != nil {
		return err
	}
	if err := p.enter(w); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.own {
		if o.state == ownBegun && o.cancelled && o.at != p { // at a place that was gone, perhaps
			w.cancelAt(p, o.id)
		}
	}
	w.at, w.last = p, last
	close(w.moved)
	w.moved = make(chan struct{})
	return nil
}

// outcomeUnknown is the answer to a prompt of which it is not known what became.
func outcomeUnknown() error {
	return &jsonrpc.Failure{Message: "the prompt was sent before, and " + jsonrpc.ErrOutcomeUnknown.Error(), Reason: "outcome_unknown"}
}

// A turnEnd is how a turn has ended.
type turnEnd struct {
	stop    acp.StopReason
	err     error
	refused bool          // it has not begun: err says why, or it was cancelled
	seq     uint64        // of its last record
	first   acp.MessageID // what the log calls it, if another node knows that it was sent before
	by      string        // who has stopped it, as others see it
	meta    json.RawMessage
}

// settle ends a turn, unless it has ended.
func (t *turn) settle(end turnEnd) {
	t.once.Do(func() {
		t.turnEnd = end
		close(t.done)
	})
}

// errGone is why a place cannot be used.
var errGone = fmt.Errorf("the session has moved: %w", engine.ErrFenced)

// isMoving reports whether an error says that a session is about to run at another place.
func isMoving(err error) bool {
	return errors.Is(err, engine.ErrFenced) || errors.Is(err, engine.ErrLapsed) || errors.Is(err, engine.ErrOwned)
}

// closes reports whether a turn is cancelled because the gateway ends.
func (s *session) closes(t *turn) bool {
	return errors.Is(context.Cause(t.ctx), ErrClosed) && s.g.closing()
}

// closing reports whether the gateway ends.
func (g *Gateway) closing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// unavailable returns what a client is answered whose prompt was refused with an error of the log.
func (s *session) unavailable(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || isMoving(err) || errors.Is(err, ErrClosed) ||
		errors.As(err, new(*jsonrpc.Failure)) || errors.As(err, new(*jsonrpc.Error)) {
		return err
	}
	s.logger().Warn("gateway: a prompt is refused, since the log is not available", "error", err)
	if errors.Is(err, engine.ErrFull) {
		return unkept(err)
	}
	why := "sessions are not available at present"
	if errors.Is(err, engine.ErrReadOnly) {
		why = readOnly
	}
	return &jsonrpc.Failure{Message: "the prompt did not run: " + why, Reason: "unavailable", RetryAfter: 5 * time.Second}
}

// readOnly is what clients get to read when the log is.
const readOnly = "the server cannot write what it keeps"

// unkeptSession returns what a client is answered whose session could not be made with an error of the log.
func unkeptSession(err error) error {
	switch {
	case errors.Is(err, engine.ErrFull):
		return &jsonrpc.Failure{Message: "there is no room to keep the session: the disk is full", Reason: "full", RetryAfter: 10 * time.Second}
	case errors.Is(err, engine.ErrReadOnly):
		return &jsonrpc.Failure{Message: "the session was not made: " + readOnly, Reason: "unavailable", RetryAfter: 5 * time.Second}
	}
	return fmt.Errorf("keep the session: %w", err)
}
