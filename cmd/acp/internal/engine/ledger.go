package engine

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// OperationTTL is how long an operation is remembered after it has begun, by the clock of the
// database.
const OperationTTL = 24 * time.Hour

// An OperationState says how far an operation has come.
type OperationState string

const (
	// OperationNew means that the caller is the one to do the operation.
	OperationNew OperationState = "new"
	// OperationRunning means that somebody has begun it and has not finished it: it is being done,
	// or whoever did it has died, and then its outcome is unknown.
	OperationRunning OperationState = "running"
	// OperationDone means that it was done; there is a receipt.
	OperationDone OperationState = "done"
)

// An Operation is something that a principal wants done once, such as a prompt, however often its
// client sends it.
type Operation struct {
	Principal, ID string
	// Fingerprint identifies what is to be done, so that an id that is used twice is noticed.
	Fingerprint []byte
	State       OperationState
	// Receipt is what Finish was given.
	Receipt []byte
}

// Begin enters an operation, unless it was entered within the last 24 hours. The state of what it
// returns says whether the caller is the one to do it: only for [OperationNew], which exactly one of
// all callers gets. [ErrConflict] reports that the id was used with another fingerprint.
func (e *Engine) Begin(ctx context.Context, principal, id string, fingerprint []byte) (Operation, error) {
	for _, f := range [...]struct{ what, text string }{{"principal", principal}, {"operation id", id}} {
		if err := checkName(f.what, f.text, true); err != nil {
			return Operation{}, err
		}
	}
	if len(fingerprint) > MaxName {
		return Operation{}, fmt.Errorf("%w: fingerprint of %d bytes, at most %d", ErrInvalid, len(fingerprint), MaxName)
	}
	op := Operation{Principal: principal, ID: id, Fingerprint: fingerprint, State: OperationNew}
	got, err := e.db.Begin(ctx, op, OperationTTL)
	if err == nil && !bytes.Equal(got.Fingerprint, fingerprint) {
		err = fmt.Errorf("%w: the id was used for something else", ErrConflict)
	}
	if err != nil {
		return Operation{}, fmt.Errorf("operation %q of %q: %w", id, principal, err)
	}
	return got, nil
}

// Finish stores the receipt of an operation that has begun; Begin returns it from then on. To finish
// it again with the same receipt is not an error, with another one it is [ErrConflict]. An operation
// that is not known, or has expired, fails with [ErrNotFound].
func (e *Engine) Finish(ctx context.Context, principal, id string, receipt []byte) error {
	if err := checkValue("receipt", receipt); err != nil {
		return err
	}
	got, err := e.db.Finish(ctx, principal, id, receipt)
	if err == nil && !bytes.Equal(got.Receipt, receipt) {
		err = fmt.Errorf("%w: it was finished with another receipt", ErrConflict)
	}
	if err != nil {
		return fmt.Errorf("finish operation %q of %q: %w", id, principal, err)
	}
	return nil
}
