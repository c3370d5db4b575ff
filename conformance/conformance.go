package conformance

import (
	"context"
	"io"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// A Side is what is checked: a peer, or the server that agents are reached through.
type Side string

// The sides.
const (
	Agent  Side = "agent"
	Client Side = "client"
	Server Side = "server" // of HTTP and WebSockets
)

// A Level says how much a rule binds.
type Level string

// The levels. Only failures of Must make an implementation wrong. A Quirk is
// what real peers do that others have to survive: its failure is information.
const (
	Must   Level = "must"
	Should Level = "should"
	May    Level = "may"
	Quirk  Level = "quirk"
)

// A Rule is one thing that has to hold. Rules are never changed.
type Rule struct {
	ID           string   // side/topic/name, as "agent/dispatch/unknown-request"
	Side         Side     // which side must keep it
	Level        Level    // how much it binds
	Text         string   // what has to hold, in a sentence
	Cites        []string // statements of the specification, as "S20"; for servers also RFD and RFCs
	Versions     []int    // of the protocol; never empty
	Needs        []string // capabilities without which it does not apply, as "session.fork" or, of servers, "websocket"
	Lacks        []string // capabilities with which it does not apply
	Except       []string // transports that decide what it is about: see [Peer.Network]
	Experimental bool     // it is about what only drafts have
	// Observed says that it is checked on all frames that pass, recorded ones
	// included, by a [Monitor].
	Observed bool
	// Scenario is the conversation that tests it, in the language of the package
	// documentation. It is "" if the rule is observed.
	Scenario string
}

// A Status is what became of a rule.
type Status string

// The statuses.
const (
	Pass   Status = "pass"
	Fail   Status = "fail"
	Skip   Status = "skip"   // it does not apply: Why says why
	Unseen Status = "unseen" // the peer never did what it is about
	Broken Status = "broken" // it could not be tried, as the peer did not start
)

// The transports of a server.
const (
	OverHTTP      = "http"
	OverWebSocket = "websocket"
)

// A Result is what became of a rule in one version of the protocol.
type Result struct {
	Rule    *Rule
	Version int // of the protocol; 0 for rules of servers
	// Over is the transport, [OverHTTP] or [OverWebSocket], if callers have joined the
	// reports of several, which then have several results of a rule; otherwise it is "".
	Over    string
	Status  Status
	Why     string // what was wrong or why it was not tried, in a line
	Purpose string // what it is unseen for that there is no prompt for, or "": see [Purposes]
	// First is what a first trial came to, in a line, if the check has run the rule again, alone
	// and on a new connection, and the second trial came to something else; otherwise it is "".
	First string
	Saw   []Seen        // the frames that show it, the last ones if there are many
	Took  time.Duration // how long trying took
}

// Seen is a frame that passed, or a request, a response or an event in a few words.
type Seen struct {
	Out  bool   // the checker sent it
	Data string // shortened to 2 kB
}

// A Peer is a connection to what is checked, with what is known of it beyond
// its frames.
type Peer struct {
	Stream jsonrpc.Stream
	// Raw writes bytes past Stream, between its frames. Rules that need it are
	// skipped if it is nil.
	Raw io.Writer
	// CloseWrite ends the input of the peer, which can still write. Rules about ends
	// are skipped if it is nil.
	CloseWrite func() error
	// Stderr writes what a client reads as the standard error of the agent that it
	// has started. Rules that need it are skipped if it is nil.
	Stderr io.Writer
	// Wait waits for the end of the peer's process and returns its exit status.
	// Rules about processes are skipped if it is nil.
	Wait func(ctx context.Context) (int, error)
	// PID is that of the peer's process, or 0.
	PID int
	// Network is the transport of a server, [OverHTTP] or [OverWebSocket], if the
	// stream leads through one. The server answers by itself what is not a message of
	// an initialized connection, and HTTP has no order across streams: rules about that
	// are skipped.
	Network string
	// Usage measures the peer's processes. If it is nil those of PID are
	// measured, on Linux; elsewhere rules about that are unseen.
	Usage func() (Usage, error)
	// Ended tells in a few words what is known of why the peer went away, as
	// "exit status 127: no such command", or "". It may be nil.
	Ended func() string
}

// A Finding is a violation of an observed rule.
type Finding struct {
	Rule  *Rule
	Frame int64  // the number of the frame that shows it, from 1
	Why   string // what is wrong, in a line
	Path  string // where in the frame, as "params.update.content", or ""
}
