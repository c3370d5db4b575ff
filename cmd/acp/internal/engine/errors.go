package engine

import (
	"errors"
	"fmt"
)

// Errors that callers distinguish with [errors.Is].
var (
	// ErrNotFound reports that there is no such session.
	ErrNotFound = errors.New("not found")
	// ErrDeleted reports that a session was deleted; its id is never used again. It wraps [ErrNotFound].
	ErrDeleted = fmt.Errorf("deleted: %w", ErrNotFound)
	// ErrUnpurged reports that a session is deleted, though some of its records are not yet. They are once it is deleted
	// again, or the database is opened.
	ErrUnpurged = errors.New("deleted, but not all of its records")
	// ErrExists reports that the id of a new session is in use.
	ErrExists = errors.New("exists already")
	// ErrInvalid reports a value that is not accepted: too large, not UTF-8, not JSON, or with a NUL.
	ErrInvalid = errors.New("invalid value")
	// ErrOwned reports that another node, whose lease has not lapsed, owns the session.
	ErrOwned = errors.New("owned by another node")
	// ErrLapsed reports that the lease of this node has lapsed: its sessions may have new owners.
	ErrLapsed = errors.New("the lease has lapsed")
	// ErrFenced reports that the session has a newer epoch. The handle is of no further use. Nothing
	// that failed with it was acknowledged, though records of an append whose outcome was in doubt
	// may be in the log.
	ErrFenced = errors.New("another owner has taken the session")
	// ErrReleased reports that a handle was used after its Release.
	ErrReleased = errors.New("the session was released")
	// ErrLost is inside a [*DamageError] if acknowledged records at the end of a log are missing.
	ErrLost = errors.New("acknowledged records are lost")
	// ErrChain is inside a [*DamageError] if a record is not the one that was written, or is missing.
	ErrChain = errors.New("the chain of hashes is broken")
	// ErrCorrupt is what a Database returns if the database itself says that its data is damaged.
	ErrCorrupt = errors.New("the database is damaged")
	// ErrUnknown reports that the caller gave up, or the engine was closed, while a commit was under
	// way: the records may or may not be in the log.
	ErrUnknown = errors.New("the outcome is unknown")
	// ErrFull reports that the disk, or the space the database may use, is full. Nothing was written.
	ErrFull = errors.New("no space left for the log")
	// ErrReadOnly reports that the database does not accept writes.
	ErrReadOnly = errors.New("the database is read-only")
	// ErrStale reports that the server that answered has less than another one that is the primary. It
	// passes.
	ErrStale = errors.New("a server of the database has answered that is behind")
	// ErrBeyond reports that a position is after the end of the log.
	ErrBeyond = errors.New("after the end of the log")
	// ErrTooMany reports that a bound on a number of things is reached.
	ErrTooMany = errors.New("too many")
	// ErrConflict reports that a session was updated by others ten times in a row meanwhile.
	ErrConflict = errors.New("conflict")
	// ErrClosed reports that the engine was closed.
	ErrClosed = errors.New("the engine is closed")
)

// A DamageError reports that the log of a session is damaged or has lost records. The session stays
// marked; it can be read up to the damage, and deleted, but not appended to, unless it is repaired and
// [Engine.Verify] finds it whole.
type DamageError struct {
	Session string
	// Seq is the first record that is not as it was written, or the last one that was acknowledged
	// if the end is missing. It is 0 if that is not known.
	Seq uint64
	// Err wraps ErrChain, ErrLost or ErrCorrupt, or says what was found earlier.
	Err error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("session %q is damaged at record %d: %v", e.Session, e.Seq, e.Err)
}

// Unwrap returns Err.
func (e *DamageError) Unwrap() error { return e.Err }
