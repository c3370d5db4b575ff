package acp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/goacp/acp/internal/faultlog"
	"github.com/goacp/acp/jsonrpc"
)

// A Client is the configuration of the client's side: what it offers to agents
// and what it does with what they send. It is copied when it is used, and one
// Client may be connected to any number of agents.
//
// Hooks are functions; nil means that the thing is not offered, which the agent
// is told. The zero Client works: it refuses every permission and offers
// nothing. Hooks of different sessions may run at the same time; those of
// requests run concurrently with everything else. A hook that panics is logged
// and fails alone. The ctx of every hook belongs to the connection, which
// [ClientConnFrom] returns; it is done when the request is withdrawn, where
// there is one, and when the connection ends.
type Client struct {
	// Info is the name and version agents are told; "acp" and "0" by default.
	Info Implementation
	// Meta is _meta of the initialize request: an object, or nil.
	Meta json.RawMessage

	// Update is told everything that happens in a session, in order and one
	// thing at a time for each session, whether it is replayed, belongs to a
	// [Reply] or to nothing. Until it returns nothing more of its session is
	// handled, and after some time the agent has to wait. It may call the agent,
	// with ctx, but must not wait for the turn of a prompt of its own session,
	// since that takes updates to end.
	Update func(ctx context.Context, s *ClientSession, u *Update)

	// RequestPermission decides whether the agent may do something. Nil refuses.
	// ctx is also done when the session is cancelled. The error of a ctx that
	// is done refuses; any other error is the answer. The agent is answered as
	// soon as ctx is done, whatever the hook does (S40, S41). At most 256 such
	// hooks and those of Elicit run at once on a connection, those that have
	// ignored their ctx included; beyond that the answer is cancelled.
	RequestPermission func(ctx context.Context, req *PermissionRequest) (PermissionDecision, error)

	// Elicit asks the user for input. Elicits says which kinds of requests it
	// takes; by default all. It is otherwise like RequestPermission: a ctx that
	// is done answers that the user cancelled.
	Elicit  func(ctx context.Context, req *ElicitationRequest) (*ElicitationResponse, error)
	Elicits ElicitationKinds
	// ElicitationComplete is told that what an elicitation sent the user to
	// elsewhere, by its address, is done.
	ElicitationComplete func(ctx context.Context, id ElicitationID)

	// Files lends files to agents of version 1: see [FileSystem] and [ReadOnly].
	Files FileSystem
	// Terminals returns what runs commands for the agent of a connection, usually
	// an acphost.Local. It is called at most once for each connection, when an
	// agent of version 1 first uses a terminal; the connection closes what it
	// returns.
	Terminals func(c *ClientConn) TerminalHost
	// TerminalAuth says that the user can be shown a terminal to log in.
	TerminalAuth bool

	// MCP answers requests to the MCP servers this client provides itself,
	// those a [SessionConfig] lists as [MCPServerACP]. See [MCPCall].
	// Experimental.
	MCP func(ctx context.Context, call *MCPCall) (json.RawMessage, error)
	// AuthStatus is told when somebody else is logged in. Experimental.
	AuthStatus func(ctx context.Context, status *AuthStatus)

	// Extensions registers handlers of methods that are not part of the
	// protocol, whose names begin with an underscore. It is called once for
	// each connection and version that is tried.
	Extensions func(mux *jsonrpc.Mux)

	// MinVersion and MaxVersion bound the protocol versions the client speaks;
	// 0 means 1 and 2.
	MinVersion, MaxVersion int
	// FirstVersion is the version that the client asks for first; 0, or a
	// version outside of the bounds, means MaxVersion. It saves an agent that is
	// known to speak version 1 only from being started twice. An agent that
	// speaks both versions is spoken to in this one.
	FirstVersion int

	// CancelGrace is how long a prompt whose ctx is done waits for the agent
	// to end the turn; 0 means 10 s.
	CancelGrace time.Duration

	// Logger gets errors and panics of hooks and what is noticed on the wire,
	// never payload: lines of the agent that are not messages are logged by their
	// length. If it is nil, errors and panics go to [slog.Default], and the rest is
	// discarded.
	Logger *slog.Logger
	// Engine holds the bounds, the middleware and the diagnosis of connections.
	// In a client BaseContext is by default the ctx of Connect without its
	// cancellation.
	Engine jsonrpc.Settings
}

// ElicitationKinds says what a client can ask its user for. The zero value
// stands for everything.
type ElicitationKinds struct {
	Form bool // fields to fill in
	URL  bool // an address to visit
}

const defaultClientCancelGrace = 10 * time.Second

// ready returns a copy of c with its defaults, or what is wrong with it.
func (c *Client) ready() (*Client, error) {
	r := *c
	if r.Info.Name == "" {
		r.Info.Name = "acp"
	}
	if r.Info.Version == "" {
		r.Info.Version = "0"
	}
	if r.CancelGrace <= 0 {
		r.CancelGrace = defaultClientCancelGrace
	}
	if r.Logger == nil {
		r.Logger = faultlog.New()
	}
	if r.Elicits == (ElicitationKinds{}) {
		r.Elicits = ElicitationKinds{Form: true, URL: true}
	}
	if r.Elicit == nil {
		r.Elicits = ElicitationKinds{}
	}
	if len(r.Meta) > 0 && !json.Valid(r.Meta) {
		return nil, errors.New("acp: Client.Meta is not JSON")
	}
	var err error
	r.MinVersion, r.MaxVersion, err = versionRange(r.MinVersion, r.MaxVersion)
	if r.FirstVersion < r.MinVersion || r.FirstVersion > r.MaxVersion {
		r.FirstVersion = r.MaxVersion
	}
	return &r, err
}

// capabilities returns what an agent of version 2 is told.
func (c *Client) capabilities() (caps ClientCapabilities) {
	if c.TerminalAuth {
		caps.Auth = clientTerminalAuth()
	}
	caps.Elicitation = clientElicitation(c.Elicits)
	return caps
}
