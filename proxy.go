package acp

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/goacp/acp/jsonrpc"
)

// A Proxy stands between a client and an agent and sees everything they say to each
// other. Its hooks may change messages, answer them, or add some of their own. What
// no hook takes passes unchanged, byte for byte. Every hook is optional: a Proxy
// without any forwards everything.
//
//	shout := &acp.Proxy{
//		Prompt: func(ctx context.Context, p *acp.ProxyPrompt, next func(context.Context) error) error {
//			p.Blocks = append(p.Blocks, acp.Text("Answer in capitals."))
//			return next(ctx)
//		},
//	}
//
// There are three ways to run one: [Chain] puts it in front of an agent in this
// process, a [Conductor] makes it one of its components, and [Proxy.Serve] makes a
// program of it that any conductor can start. A Proxy may serve any number of chains
// at once; its fields must not be changed meanwhile.
//
// # Hooks
//
// A hook with a next decides when, and whether, the message is forwarded: next forwards
// the message with the changes that were made to it, and returns when it was answered,
// with the error of that answer. If a hook does not call next, nothing is forwarded,
// and what the hook sets is the answer. It may call next once. What a hook returns is
// the answer's error: a [*jsonrpc.Error] as it is; any other error, and a panic, as
// -32603 with the correlation id under which Logger has the text.
//
// The hooks of a session run in the order of its messages in one direction, up to
// their call of next. Sessions do not wait for each other, and the two directions of
// a session do not either. While a hook does not return, what comes after it in its
// session is queued, as [jsonrpc.Settings] bounds it, and in the end not read: nothing
// is lost. The ctx of a hook is done when what it handles is cancelled, by
// $/cancel_request or by the end of the turn, and when a connection of the chain ends.
type Proxy struct {
	// Name names the proxy in errors, in traces, and in what it sends of its own. By
	// default it is "proxy".
	Name string

	// MinVersion and MaxVersion bound the protocol versions that the proxy takes part
	// in; 0 means 1 and 2. A chain speaks one version. A proxy of version 1 only makes
	// it speak version 1; a proxy of version 2 only refuses a client of version 1
	// with -32022.
	MinVersion, MaxVersion int

	// Initialize is called when the client initializes. in.Next asks the successor,
	// and in.ResultV1 or ResultV2 is then its answer, which may be changed. If the
	// hook does not call Next, it is called after the hook.
	Initialize func(ctx context.Context, in *ProxyInit) error

	// Session is called when the client opens a session, in any of the ways of
	// [ProxyOpening]. Once next has returned nil, the session is open and has its id.
	Session func(ctx context.Context, s *ProxySession, next func(context.Context) error) error

	// Prompt is called when the client sends a prompt. In version 1 next returns at
	// the end of the turn, in version 2 when the agent has taken the prompt. A hook
	// that does not call next answers itself, with [ProxyPrompt.Say].
	Prompt func(ctx context.Context, p *ProxyPrompt, next func(context.Context) error) error

	// Update is called with each update of the agent, in order. It returns what the
	// client gets in its place: u itself, changed or not, several updates, or none.
	// u.Session is nil. If the hook fails or panics, the client gets nothing, and
	// Logger learns of it. An update for which version 1 has no form is left out in
	// that version, and Logger learns of it.
	Update func(ctx context.Context, s *ProxySession, u Update) ([]Update, error)

	// Permission is called when the agent asks for a permission. A hook that does not
	// call next decides itself.
	Permission func(ctx context.Context, q *ProxyPermission, next func(context.Context) error) error

	// Request and Notify get every other message: those whose hook is not set, and
	// those without a hook, in either direction. $/cancel_request is not among them.
	Request, Notify ProxyHook

	// MCP are MCP servers that the proxy offers the agent in every session.
	MCP []ProxyMCP

	// BridgeMCP, if set, makes MCP servers reachable for an agent that does not take them
	// over this protocol: those in MCP, and those that the client, or a proxy before this
	// one, declares in that way, which the proxy then advertises. It returns what is
	// declared to the agent in place of the server, and what is called when the session is
	// closed or the chain ends. acphttp.MCPBridge has such a function. Without it, or if
	// it fails, sessions of such agents do not have the servers in MCP.
	BridgeMCP func(ctx context.Context, b *MCPBridgeRequest) (server MCPServer, stop func(), err error)

	// MCPConnections also answers an agent, or a conductor, that speaks MCP over this
	// protocol as the Rust SDK did before version 5: it connects to a server with
	// mcp/connect, names the connection in mcp/message, and ends it with mcp/disconnect.
	// The servers in MCP, and those that are declared to this proxy, are asked in the
	// present form. An agent may have 1024 connections: for another one, the one ends that was
	// opened first. Of its requests, 1024 may run at once. Experimental.
	MCPConnections bool

	// Logger gets what goes wrong, without payload. If it is nil, errors and panics of
	// hooks go to [slog.Default].
	Logger *slog.Logger
}

// A ProxyHook handles a message in its JSON form: see [Proxy.Request] and
// [Proxy.Notify]. For a notification next returns when it was sent, and an error
// of the hook is logged.
type ProxyHook func(ctx context.Context, m *ProxyMessage, next func(context.Context) error) error

// A ProxyMessage is a message that passes a proxy.
type ProxyMessage struct {
	// Method is the method's name in the version of the chain.
	Method string
	// Direction is where it goes.
	Direction ProxyDirection
	// Session is the session that the message is about, or nil.
	Session *ProxySession
	// Params may be replaced before next is called. They are nil if there are none.
	Params json.RawMessage
	// Result is the answer to a request, once next has returned nil. It may be
	// replaced, or set in place of calling next; nil is sent as null.
	Result json.RawMessage
}

// A ProxyDirection is where a message goes.
type ProxyDirection uint8

// Directions.
const (
	ToAgent ProxyDirection = iota + 1
	ToClient
)

// String returns "to agent" or "to client".
func (d ProxyDirection) String() string {
	switch d {
	case ToAgent:
		return "to agent"
	case ToClient:
		return "to client"
	}
	return ""
}

// A ProxyMCP is an MCP server that runs in a proxy. An agent that takes MCP servers over
// this protocol is given it in that way, others through [Proxy.BridgeMCP]. Experimental.
type ProxyMCP struct {
	// Name is the server's name in the session.
	Name string
	// Handle answers a request of MCP: see [MCPCall]. It runs concurrently with others.
	Handle func(ctx context.Context, call *MCPCall) (json.RawMessage, error)
}

// An MCPBridgeRequest is what [Proxy.BridgeMCP] is asked for.
type MCPBridgeRequest struct {
	// Name is the server's name in the session.
	Name string
	// HTTP and Stdio say which transports of MCP servers the agent takes.
	HTTP, Stdio bool
	// Call asks the server, as [AgentSession.CallMCP] does: note, which may be nil, gets
	// the server's notifications until Call returns, and what _meta of params has to hold
	// is added. The handshake of MCP, which such servers do not have, is answered without
	// them. Any goroutine may call it.
	Call func(ctx context.Context, method string, params json.RawMessage, note func(method string, params json.RawMessage)) (json.RawMessage, error)
}

func (p *Proxy) name() string {
	if p.Name != "" {
		return p.Name
	}
	return "proxy"
}

func (p *Proxy) versions() (lo, hi int) {
	lo, hi = p.MinVersion, p.MaxVersion
	if lo <= 0 {
		lo = lowestVersion
	}
	if hi <= 0 {
		hi = highestVersion
	}
	return lo, hi
}

// Serve runs the proxy as a component of the conductor at the other end of the
// transport, which for a program that a conductor has started is [Stdio]. It returns
// nil when the conductor has closed the connection, and otherwise ctx's error or why
// the connection broke. By then all hooks have returned, or have ignored their
// context for the time that [jsonrpc.Settings] grants.
//
// The conductor begins with the request proxy/initialize, or _proxy/initialize in
// conductors of earlier drafts, which is answered with their names. A client that
// has started the proxy as if it were an agent is answered with -32600, which says
// what to do.
func (p *Proxy) Serve(ctx context.Context, conductor Transport) error {
	stream, err := openTransport(ctx, conductor)
	if err != nil {
		return err
	}
	return serveProxy(ctx, p, stream)
}

// Chain returns the transport of an agent with proxies of this process in front of
// it: the first one is next to the client. Opening it opens the agent's transport. The
// chain ends with its connection, and with it the agent and all hooks.
//
// Chain is a [Conductor] with nothing but proxies in this process. For the client
// that uses it, it is the agent's transport: [ClientConn.Kill] kills the agent's
// process, and errors say how that ended.
func Chain(agent Transport, proxies ...*Proxy) Transport {
	c := &Conductor{Agent: Component{Transport: agent}}
	for _, p := range proxies {
		c.Proxies = append(c.Proxies, Component{Proxy: p})
	}
	return WrapTransport(agent, c.Wrap)
}

var errProxyAlone = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
	"Invalid request: this program is a proxy, not an agent: start it with a conductor, as in: acp conductor PROXY -- AGENT")
