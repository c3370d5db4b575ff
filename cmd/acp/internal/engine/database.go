package engine

import (
	"context"
	"encoding/json"
	"time"
)

// A State is what a database knows of the log of a session.
type State struct {
	Session string
	// Key is the number under which the records are stored; the database chooses it.
	Key   int64
	Epoch uint32
	// Claim is a random number that each claim changes. A failover that loses a claim gives its epoch
	// out again, but not this.
	Claim int64
	// Node owns the session, or owned it last; it is empty if the session was released.
	Node string
	Head
}

// A Batch is what one session appends in a transaction: all of it or nothing.
type Batch struct {
	Session string
	Key     int64
	Epoch   uint32
	Claim   int64
	// Old is the head before, New the head after the records.
	Old, New Head
	Records  []Record
	// State is that of the session from then on; empty leaves it as it is.
	State string
}

// A Database stores what an [Engine] keeps. Its methods are safe for concurrent use. They do not
// verify chains and know no witness. A method that writes repeats what failed for a reason that
// passes, without doing it twice; only Append leaves an unknown outcome to the engine. The data of a record is the line that it has in a journal.
//
// The errors of all methods wrap the sentinels of this package where one applies: [ErrNotFound],
// [ErrDeleted], [ErrFull], [ErrReadOnly], [ErrCorrupt].
type Database interface {
	// Writers is how many calls of Append may run at the same time.
	Writers() int

	// CreateSession stores a new session, with an empty log. It fails with ErrExists or ErrDeleted.
	CreateSession(ctx context.Context, s Session) error
	// Session returns a session.
	Session(ctx context.Context, id string) (Session, error)
	// UpdateSession stores the attributes of a session if its version is still s.version, and
	// reports whether it was.
	UpdateSession(ctx context.Context, s Session) (bool, error)
	// ListSessions returns up to n sessions that match q, latest first, beginning after a position.
	ListSessions(ctx context.Context, q Query, after Position, n int) ([]Session, error)
	// DeleteSession removes everything of a session but a tombstone, and returns the node that owned it until then,
	// or owned it last: "" if it was released, never claimed, or deleted before. A call may be repeated. It fails with
	// ErrUnpurged, and returns the node, if only records are left.
	DeleteSession(ctx context.Context, id string) (owner string, err error)

	// Usage returns how many sessions an owner has, and how many bytes the data of their records.
	Usage(ctx context.Context, owner string) (Usage, error)
	// PutShare stores what a user may do in a session, instead of what was stored before; a role of "" removes
	// it. It fails with ErrNotFound, or with ErrTooMany if the session has max shares.
	PutShare(ctx context.Context, session string, s Share, max int) error
	// Shares returns the shares of a session, by user.
	Shares(ctx context.Context, session string) ([]Share, error)

	// TakeLease gives a node a lease for ttl from now by the database's clock, whatever it had
	// before.
	TakeLease(ctx context.Context, node string, token int64, ttl time.Duration) error
	// RenewLease prolongs a lease that has not lapsed and has that token, or fails with ErrLapsed.
	RenewLease(ctx context.Context, node string, token int64, ttl time.Duration) error
	// EndLease ends a lease that has that token at once.
	EndLease(ctx context.Context, node string, token int64) error
	// DescribeNode stores what a node says of itself if it has a lease with that token, or fails with
	// ErrLapsed.
	DescribeNode(ctx context.Context, node string, token int64, info json.RawMessage) error
	// ForgetNode removes what a node that has no lease has said of itself, and reports whether there was something.
	ForgetNode(ctx context.Context, node string) (bool, error)
	// Nodes returns up to n nodes that have described themselves, by name.
	Nodes(ctx context.Context, n int) ([]Node, error)
	// Claim gives a session to a node, with the next epoch. It fails with ErrLapsed or ErrOwned.
	Claim(ctx context.Context, session, node string, token int64) (State, error)
	// Release gives up a session that has that epoch still.
	Release(ctx context.Context, session string, epoch uint32) error

	// Append commits all batches whose session has the epoch, the claim and the old head of the batch
	// in one transaction, and reports which those were. After an error each batch may have been committed or not.
	Append(ctx context.Context, batches []Batch) ([]bool, error)
	// Compact replaces, in one transaction, records by those of a batch: for each of them all from the number in
	// froms up to its own. It reports whether the session has the epoch and the claim of the batch; otherwise
	// it does nothing. A call may be repeated.
	Compact(ctx context.Context, b Batch, froms []uint64) (bool, error)
	// Confirm returns the state of a session once it is certain that it stays: where a database
	// has standbys, after everything up to it has reached one.
	Confirm(ctx context.Context, session string) (State, error)
	// State returns the state of a session, without that guarantee.
	State(ctx context.Context, session string) (State, error)
	// Records returns up to n records from a sequence number on, in order, and fewer when they have
	// more than size bytes together, but at least one if there is one.
	Records(ctx context.Context, key int64, from uint64, n, size int) ([]Record, error)
	// Close closes the database. It is called once. Methods that run meanwhile may fail, but not
	// Append, during which it is not called.
	Close() error
}

// A Witness keeps the ends of logs in a place other than the database, so that a log that has lost
// its tail can be distinguished from a whole one. Its methods are safe for concurrent use.
type Witness interface {
	// Seen returns the furthest head that was noted for a session, or the zero Head.
	Seen(ctx context.Context, session string) (Head, error)
	// Note keeps heads by session; one that is behind what was noted is ignored.
	Note(ctx context.Context, heads map[string]Head) error
	// Forget removes what is known of a session.
	Forget(ctx context.Context, session string) error
	// Close closes the witness.
	Close() error
}
