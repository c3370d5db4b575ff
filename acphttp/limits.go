package acphttp

import (
	"math"
	"time"
)

// Limits bound what a server holds for its clients. The zero value means the
// defaults, which are those of the TypeScript SDK where that has one.
type Limits struct {
	// MaxMessage bounds what a client sends in one message, in bytes; 0 means
	// 16 MiB. More is refused with 413, and ends a WebSocket with code 1009.
	MaxMessage int
	// MaxID bounds the ids of requests and sessions, in bytes; 0 means 1,024.
	// More is refused with 400, and ends a WebSocket with code 1008.
	MaxID int
	// MaxConnections bounds the connections of the server; 0 means 4,096. A
	// further one is refused with 503.
	MaxConnections int
	// MaxPerPrincipal bounds the connections of one principal; 0 means
	// MaxConnections. A further one is refused with 503.
	MaxPerPrincipal int

	// MaxUnsent bounds what one connection holds for its client in all streams
	// together, in bytes; 0 means 64 MiB. At the bound the agent's sends wait, and
	// what the client sends is not read.
	MaxUnsent int
	// MaxUnsentAll bounds the same for all connections of the server together, in
	// bytes; 0 means 1 GiB. At the bound a connection for which its share is held,
	// the bound divided by the connections there are, is treated as if it had
	// reached MaxUnsent, until it or others have read. Those below their shares
	// continue, so that up to twice the bound may be held in all, and one batch of
	// messages for each connection.
	MaxUnsentAll int
	// MaxUnsentSession bounds the same for one session, as far as package acp
	// sends it; 0 means 8 MiB. At the bound what the session sends waits, and
	// other sessions do not. Answers do not count.
	MaxUnsentSession int
	// MaxUnread bounds what a client has sent and the agent has not read, in
	// bytes; 0 means 8 MiB. At the bound requests are held for a second, and then
	// refused with 503. Notifications and answers are accepted, up to as much again and
	// one message of any size; beyond that the connection ends.
	MaxUnread int
	// MaxWaitingSessions bounds the sessions of a connection for which something
	// waits and no client reads; 0 means 1,024. A further one ends the
	// connection. The streams of a connection are at most twice as many. For a
	// further one the server forgets the one that nobody has read for longest, if
	// there is one in which nothing waits; otherwise it answers 429.
	MaxWaitingSessions int

	// InitializeTimeout is how long the agent may take to answer initialize; 0
	// means 30 s. After it the client gets 504.
	InitializeTimeout time.Duration
	// StallTimeout is how long something may wait for a client that reads
	// nothing; 0 means 60 s. After it the connection ends, or, where only one
	// session waits, its sends fail.
	StallTimeout time.Duration
	// IdleTimeout is how long a connection lives that no request is open for; 0
	// means 10 minutes.
	IdleTimeout time.Duration
	// KeepAlive is how long a stream is silent before something is sent to keep
	// it open; 0 means 15 s. WebSockets are pinged at 5/3 of it, 25 s, and are
	// closed after two pings without an answer.
	KeepAlive time.Duration
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.MaxMessage, 16<<20)
	l.MaxMessage = min(l.MaxMessage, maxBound)
	setDefault(&l.MaxID, 1024)
	setDefault(&l.MaxConnections, 4096)
	setDefault(&l.MaxPerPrincipal, l.MaxConnections)
	setDefault(&l.MaxUnsent, 64<<20)
	setDefault(&l.MaxUnsentAll, 1<<30)
	setDefault(&l.MaxUnsentSession, 8<<20)
	setDefault(&l.MaxUnread, 8<<20)
	l.MaxUnread = min(l.MaxUnread, maxBound)
	setDefault(&l.MaxWaitingSessions, 1024)
	setDefault(&l.InitializeTimeout, 30*time.Second)
	setDefault(&l.StallTimeout, 60*time.Second)
	setDefault(&l.IdleTimeout, 10*time.Minute)
	setDefault(&l.KeepAlive, 15*time.Second)
	return l
}

// maxBound bounds the bounds, so that sums of them do not overflow.
const maxBound = math.MaxInt / 8

func setDefault[T ~int | ~int64](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
