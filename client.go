package acp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/faultlog"
	"github.com/goacp/acp/jsonrpc"
)

// A Client is the configuration of a client: what it offers to agents and what it
// does with what they send. It is copied when it is used, and one Client may
// connect to any number of agents.
//
// A nil hook offers nothing, and so nothing is advertised. The line Advertised of a
// hook says what agents see if it is set. The zero Client works: it refuses every
// permission and offers nothing. Hooks of different sessions may
// run at the same time, and those of requests run concurrently with everything
// else. A hook that panics is logged and fails alone. The ctx of every hook
// belongs to the connection, which [ClientConnFrom] returns. It is done when the
// request, if there is one, is withdrawn, and when the connection ends.
type Client struct {
	// Info is the name and version sent to agents; "acp" and "0" by default.
	Info Implementation
	// Meta is _meta of the initialize request: an object, or nil.
	Meta json.RawMessage

	// Update is called for every session update: replayed history, updates that
	// belong to a [Reply], and all others. Calls for one session are sequential
	// and in order. While Update runs, nothing else of that session is handled,
	// and eventually the agent blocks. Update may call the agent using ctx, but
	// must not wait for one of its own session's turns to end, since that takes
	// further updates.
	//
	// Advertised: never.
	Update func(ctx context.Context, s *ClientSession, u *Update)

	// RequestPermission decides whether the agent may do something. Nil refuses.
	// ctx is also done when the session is cancelled. As soon as ctx is done the
	// agent is answered, whatever the hook does, and the error of that ctx
	// refuses; any other error is the answer. At most 256 hooks of this kind and
	// of Elicit run at once on a connection, counting those that have ignored
	// their ctx; beyond that the answer is that the request was cancelled.
	//
	// Advertised: never; every client answers such requests.
	RequestPermission func(ctx context.Context, req *PermissionRequest) (PermissionDecision, error)

	// Elicit asks the user for input. Elicits says which kinds of requests it
	// takes; by default all. It is otherwise like RequestPermission: if ctx is
	// done, the answer is that the user cancelled.
	//
	// Advertised: in both versions if set, forms and addresses as Elicits says.
	Elicit  func(ctx context.Context, req *ElicitationRequest) (*ElicitationResponse, error)
	Elicits ElicitationKinds
	// ElicitationComplete is called when the user has finished at the URL an
	// elicitation sent them to.
	//
	// Advertised: never; it belongs to Elicit.
	ElicitationComplete func(ctx context.Context, id ElicitationID)

	// Files lends files to agents of version 1: see [FileSystem] and [ReadOnly].
	//
	// Advertised: in version 1 if set, writing unless it is ReadOnly; never in
	// version 2.
	Files FileSystem
	// Terminals returns what runs commands for the agent of a connection, usually
	// an acphost.Local. It is called at most once for each connection, when an
	// agent of version 1 first uses a terminal; the connection closes what it
	// returns.
	//
	// Advertised: in version 1 if set; never in version 2.
	Terminals func(c *ClientConn) TerminalHost
	// ShowsTerminals says that Update shows the terminals of agents: a [TerminalUpdate]
	// and a [TerminalOutputChunk]. Agents of version 2 send these to every client. Those
	// of version 1 that know the extension report the commands that they run themselves
	// in the metadata of tool calls, which becomes such updates; without it they send
	// the output as text of the tool call, often only at its end.
	//
	// Advertised: in version 1 if set, as terminal_output and terminal_output_delta in
	// _meta of the capabilities; never in version 2.
	ShowsTerminals bool
	// TerminalAuth says that the user can be shown a terminal to log in. Agents of
	// version 1 may then describe the command in _meta of a way to log in, as
	// terminal-auth with command, args, env and label.
	//
	// Advertised: in both versions if set; in version 1 as terminal-auth in _meta of the
	// capabilities, too.
	TerminalAuth bool

	// Suggestions says that Update shows the prompts that agents suggest, a
	// PromptSuggestionsUpdate, and what they may contain beside text and links. Nil has
	// agents suggest none. Experimental.
	//
	// Advertised: in both versions if set.
	Suggestions *PromptContent
	// Cursors says that agents may report positions in a session, as a CursorUpdate.
	// Agents of version 2 send these to every client. Experimental.
	//
	// Advertised: in version 1 if set; never in version 2.
	Cursors bool
	// Skills says that the client shows skills among the commands of a session and
	// invokes them with a SkillReference. Experimental.
	//
	// Advertised: in version 2 if set; never in version 1, which has no skills.
	Skills bool

	// MCP answers requests to the MCP servers that this client itself provides:
	// those that a [SessionConfig] lists as [MCPServerACP]. See [MCPCall].
	// Experimental.
	//
	// Advertised: never; sessions list the servers.
	MCP func(ctx context.Context, call *MCPCall) (json.RawMessage, error)
	// AuthStatus is called when somebody else is logged in. Experimental.
	//
	// Advertised: never.
	AuthStatus func(ctx context.Context, status *AuthStatus)

	// Extensions registers handlers of methods that are not part of the
	// protocol, whose names begin with an underscore. It is called once for
	// each connection and version that is tried. Params that implement
	// [SessionParams] are handled in order with the updates of their session.
	//
	// Advertised: never, unless Meta says so.
	Extensions func(mux *jsonrpc.Mux)

	// Middleware stands around every request of the agent's that has a handler, the
	// first outermost: permissions and questions to the user, files, terminals, MCP
	// messages and extensions. It is written once for both versions, and the same one
	// may be set in an [Agent]. Updates and other notifications do not pass through
	// it. It runs inside Engine.Incoming, which is for work on the protocol: that sees
	// the messages of each version, notifications too.
	//
	// Advertised: never.
	Middleware []Middleware

	// MinVersion and MaxVersion bound the protocol versions the client speaks;
	// 0 means 1 and 2.
	MinVersion, MaxVersion int
	// FirstVersion is the version that the client asks for first; 0, or a version
	// out of bounds, means MaxVersion. It avoids starting an agent twice that is
	// known to speak only version 1. With an agent that speaks both versions,
	// this one is used.
	FirstVersion int

	// CancelGrace is how long a prompt whose ctx is done waits for the agent to
	// end the turn; 0 means 10 s.
	CancelGrace time.Duration

	// Logger gets errors and panics of hooks and diagnostics of the wire, never
	// payload: of a line of the agent's that is not a message only the length is
	// logged. If it is nil, errors and panics go to [slog.Default], and the rest
	// is discarded.
	Logger *slog.Logger
	// Engine holds the bounds, the middleware and the diagnostics of connections.
	// In a client BaseContext is by default the ctx of Connect without its
	// cancellation, and MaxRequests is 512: hooks that ask the user are at most 256,
	// so that other requests are handled meanwhile.
	Engine jsonrpc.Settings
}

// ElicitationKinds says what a client can ask its user for. The zero value means
// everything.
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

// capabilities returns what is advertised to an agent of version 2.
func (c *Client) capabilities() (caps ClientCapabilities) {
	if c.TerminalAuth {
		caps.Auth = clientTerminalAuth()
	}
	caps.Elicitation = clientElicitation(c.Elicits)
	if c.Suggestions == nil && !c.Skills {
		return caps
	}
	caps.Session = new(acpv2.ClientSessionCapabilities)
	if can := c.Suggestions; can != nil {
		s := new(acpv2.PromptSuggestionsCapabilities)
		mark(&s.Image, can.Image)
		mark(&s.Audio, can.Audio)
		mark(&s.EmbeddedContext, can.EmbeddedContext)
		caps.Session.PromptSuggestions = s
	}
	if c.Skills {
		caps.Session.Commands = &acpv2.CommandsCapabilities{Skill: new(acpv2.CommandsSkillCapabilities)}
	}
	return caps
}
