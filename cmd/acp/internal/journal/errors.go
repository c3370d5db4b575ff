package journal

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that callers distinguish with [errors.Is].
var (
	// ErrNotFound reports that there is no such journal.
	ErrNotFound = errors.New("not found")
	// ErrDeleted reports that a journal was deleted. It wraps [ErrNotFound].
	ErrDeleted = fmt.Errorf("deleted: %w", ErrNotFound)
	// ErrExists reports that the id of a new journal is in use.
	ErrExists = errors.New("exists already")
	// ErrInvalid reports a value that is not accepted, such as an id that cannot be the name of a file.
	ErrInvalid = errors.New("invalid value")
	// ErrFenced reports that somebody else has written the journal. The writer is of no further use.
	ErrFenced = errors.New("another owner has written the journal")
	// ErrReleased reports that a writer was used after its Release, or that its container was closed.
	ErrReleased = errors.New("the journal was released")
	// ErrUnsaved reports that records were given up, because they could not be written.
	ErrUnsaved = errors.New("not everything was written")
	// ErrStalled reports that the disk has not answered for a while.
	ErrStalled = errors.New("the disk does not answer")
	// ErrBehind reports that so much waits to be written that no more is accepted: see [Writer.Append].
	ErrBehind = errors.New("too much waits to be written")
	// ErrBeyond reports that a position is after the end of the journal.
	ErrBeyond = errors.New("after the end of the journal")
	// ErrCompacted is inside a [*CompactedError].
	ErrCompacted = errors.New("the journal was compacted there")
	// ErrTooMany reports that a bound on a number of things is reached.
	ErrTooMany = errors.New("too many")
	// ErrNoLocks reports that the file system cannot lock files, so that nobody can own a journal there.
	ErrNoLocks = errors.New("files cannot be locked here")
	// ErrClosed reports that the container was closed.
	ErrClosed = errors.New("the journals are closed")
)

// An OwnedError reports that somebody owns a journal.
type OwnedError struct {
	ID string
	// Who is what the owner says of itself; it is empty if that is not known.
	Who string
}

func (e *OwnedError) Error() string {
	if e.Who == "" {
		return fmt.Sprintf("journal %s is open elsewhere", e.ID)
	}
	return fmt.Sprintf("journal %s is open in %s", e.ID, e.Who)
}

// A FormatError reports that another version of the program has written a journal. Kind is the kind of record that this
// one does not know, or empty if the format of the whole is another one. A journal with such a kind can be read. Format is
// 0 if nothing in it is a record.
type FormatError struct {
	ID     string
	Format int
	Kind   Kind
}

func (e *FormatError) Error() string {
	if e.Kind != "" {
		return fmt.Sprintf("journal %s has records of kind %q: a later version of the program can continue it", e.ID, e.Kind)
	}
	if e.Format == 0 {
		return fmt.Sprintf("journal %s has no record that this version of the program can read", e.ID)
	}
	return fmt.Sprintf("journal %s has format %d: a later version of the program can read it", e.ID, e.Format)
}

// A CompactedError reports that a position is inside of what was compacted.
type CompactedError struct {
	// Before is the last position before it. The journal can be read from there.
	Before uint64
}

func (e *CompactedError) Error() string { return ErrCompacted.Error() }

// Unwrap returns [ErrCompacted].
func (e *CompactedError) Unwrap() error { return ErrCompacted }

// A Range has the numbers of records, the first and the last included.
type Range struct{ From, To uint64 }

// maxRanges bounds the ranges that a DamageError names: the last one has everything that follows.
const maxRanges = 1000

// A DamageError reports what of a journal cannot be read. The rest can, and the journal can be continued.
type DamageError struct {
	ID   string
	Lost []Range
	// Cut is how many bytes of an unfinished record were removed by an owner. Nobody has relied on them.
	Cut int64
	// Missing counts records at the end that the witness has seen.
	Missing uint64
	// Altered reports that records were removed or exchanged, or that those that the witness has seen are others.
	Altered bool
}

// Records returns how many records are damaged or missing.
func (e *DamageError) Records() (n uint64) {
	for _, r := range e.Lost {
		n += r.To - r.From + 1
	}
	return n + e.Missing
}

// Error says everything in one line.
func (e *DamageError) Error() string { return fmt.Sprintf("journal %s: %s", e.ID, e.Summary()) }

// Summary is Error without the journal.
func (e *DamageError) Summary() string {
	var says []string
	if len(e.Lost) > 0 {
		var which []string
		n := uint64(0)
		for i, r := range e.Lost {
			n += r.To - r.From + 1
			switch {
			case i == 5:
				which = append(which, "…")
			case i > 5:
			case r.From == r.To:
				which = append(which, fmt.Sprint(r.From))
			default:
				which = append(which, fmt.Sprintf("%d-%d", r.From, r.To))
			}
		}
		what := "records are"
		if n == 1 {
			what = "record is"
		}
		says = append(says, fmt.Sprintf("%d %s damaged and left out (%s)", n, what, strings.Join(which, ", ")))
	}
	switch {
	case e.Missing == 1:
		says = append(says, "the last record is missing")
	case e.Missing > 1:
		says = append(says, fmt.Sprintf("the last %d records are missing", e.Missing))
	}
	if e.Cut > 0 {
		says = append(says, "the last record was cut off: its beginning was removed")
	}
	if e.Altered {
		says = append(says, "records were removed or exchanged")
	}
	return strings.Join(says, "; ")
}

// lost notes that records are lost.
func (e *DamageError) lost(from, to uint64) {
	if n := len(e.Lost) - 1; n >= 0 && (e.Lost[n].To >= from-1 || n+1 >= maxRanges) {
		e.Lost[n].To = max(e.Lost[n].To, to)
		return
	}
	e.Lost = append(e.Lost, Range{from, to})
}

// whole reports whether there is nothing to report.
func (e *DamageError) whole() bool {
	return len(e.Lost) == 0 && e.Cut == 0 && e.Missing == 0 && !e.Altered
}
