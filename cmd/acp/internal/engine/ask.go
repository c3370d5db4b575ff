package engine

import (
	"context"
	"fmt"
	"time"
)

// maxAsks bounds the pending asks of a session.
const maxAsks = 1000

// An AskState says what became of an ask.
type AskState string

// The states of an ask. All but the first are final.
const (
	AskPending  AskState = "pending"
	AskAnswered AskState = "answered"
	AskExpired  AskState = "expired"
)

// An Ask is a question of an agent to people, such as a permission.
type Ask struct {
	// ID is unique within the session.
	ID string
	// Epoch is that of the owner whose agent asks.
	Epoch   uint32
	Created time.Time
	// Data is the question; the engine does not look into it.
	Data  []byte
	State AskState
	// Decision is the answer, if State is AskAnswered.
	Decision Decision
}

// A Decision is an answer to an ask.
type Decision struct {
	// By is the principal who decided.
	By   string
	Time time.Time
	// Data is the answer; the engine does not look into it.
	Data []byte
}

// Ask stores a question of the agent and returns it. It fails with [ErrFenced], with [ErrExists] if
// the id was used in this session before, and with [ErrTooMany] if 1,000 are pending.
func (o *Owned) Ask(ctx context.Context, id string, data []byte) (Ask, error) {
	if err := checkName("ask id", id, true); err != nil {
		return Ask{}, err
	}
	if err := checkValue("ask", data); err != nil {
		return Ask{}, err
	}
	a := Ask{ID: id, Epoch: o.epoch, Created: time.Unix(0, time.Now().UnixNano()).UTC(), Data: data, State: AskPending}
	if err := o.e.db.PutAsk(ctx, o.id, a, maxAsks); err != nil {
		return Ask{}, fmt.Errorf("ask %q of session %q: %w", id, o.id, err)
	}
	return a, nil
}

// Expire expires the questions that owners before this one have left pending, whose agents are gone,
// and returns them. Call it after a claim.
func (o *Owned) Expire(ctx context.Context) ([]Ask, error) {
	all, err := o.e.db.ExpireAsks(ctx, o.id, o.epoch)
	if err != nil {
		return nil, fmt.Errorf("expire asks of session %q: %w", o.id, err)
	}
	return all, nil
}

// Answer decides a question. Of all answers, on all nodes, exactly one succeeds; the others get an
// [*AnsweredError] with the decision that won. It fails with [ErrExpired] or [ErrNotFound]. Time is set
// if it is zero.
func (e *Engine) Answer(ctx context.Context, session, id string, d Decision) error {
	if err := checkName("principal", d.By, false); err != nil {
		return err
	}
	if err := checkValue("decision", d.Data); err != nil {
		return err
	}
	if d.Time.IsZero() {
		d.Time = time.Now()
	}
	if d.Time.Before(minTime) || d.Time.After(maxTime) {
		return fmt.Errorf("%w: time %v", ErrInvalid, d.Time)
	}
	a, won, err := e.db.Answer(ctx, session, id, d)
	switch {
	case err != nil:
	case won:
		return nil
	case a.State == AskAnswered:
		return &AnsweredError{Session: session, ID: id, Decision: a.Decision}
	default:
		err = ErrExpired
	}
	return fmt.Errorf("answer %q of session %q: %w", id, session, err)
}

// Pending returns the pending questions of a session, oldest first.
func (e *Engine) Pending(ctx context.Context, session string) ([]Ask, error) {
	all, err := e.db.PendingAsks(ctx, session, maxAsks)
	if err != nil {
		return nil, fmt.Errorf("asks of session %q: %w", session, err)
	}
	return all, nil
}
