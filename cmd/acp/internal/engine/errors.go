package engine

import (
	"errors"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// Errors that callers distinguish with [errors.Is]. Those of package journal are the same here.
var (
	ErrNotFound  = journal.ErrNotFound
	ErrDeleted   = journal.ErrDeleted
	ErrExists    = journal.ErrExists
	ErrInvalid   = journal.ErrInvalid
	ErrFenced    = journal.ErrFenced
	ErrReleased  = journal.ErrReleased
	ErrBeyond    = journal.ErrBeyond
	ErrCompacted = journal.ErrCompacted
	ErrTooMany   = journal.ErrTooMany
	ErrClosed    = journal.ErrClosed

	// ErrUnpurged reports that a session is deleted, though some of its records are not yet. They are once it is deleted
	// again, or the database is opened.
	ErrUnpurged = errors.New("deleted, but not all of its records")
	// ErrOwned reports that another node, whose lease has not lapsed, or another program owns the session.
	ErrOwned = errors.New("owned by another node")
	// ErrLapsed reports that the lease of this node has lapsed: its sessions may have new owners.
	ErrLapsed = errors.New("the lease has lapsed")
	// ErrCorrupt is what a Database returns if the database itself says that its data is damaged.
	ErrCorrupt = errors.New("the database is damaged")
	// ErrUnknown reports that the caller gave up while records were about to be kept: they may or may not be in the log.
	ErrUnknown = errors.New("the outcome is unknown")
	// ErrFull reports that the disk, or the space the database may use, is full.
	ErrFull = errors.New("no space left for the log")
	// ErrReadOnly reports that the database, or the file system, does not accept writes.
	ErrReadOnly = errors.New("the log is read-only")
	// ErrStale reports that the server that answered has less than another one that is the primary. It
	// passes.
	ErrStale = errors.New("a server of the database has answered that is behind")
	// ErrConflict reports that a session was updated by others ten times in a row meanwhile.
	ErrConflict = errors.New("conflict")
)

// A DamageError reports what of the log of a session cannot be read.
type DamageError = journal.DamageError
