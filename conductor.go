package acp

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// A Conductor runs a chain of proxies in front of an agent and passes the messages
// between them: to the client it is an agent. Each component has a connection of its
// own to the conductor and knows of no other. A message that no proxy changes arrives
// with the params, the result or the error that were sent, byte for byte; what changes
// is the id, which is of each connection.
//
//	c := &acp.Conductor{
//		Proxies: []acp.Component{{Transport: acp.Command("redact-secrets")}, {Proxy: myProxy}},
//		Agent:   acp.Component{Transport: acp.Command("some-agent", "--acp")},
//	}
//	err := c.Serve(ctx, acp.Stdio())
//
// The chain speaks the version that the client asks for, or the highest below it that
// all components speak. If a proxy answers a lower version than it was asked for, the
// components are started again in that version, and that is what the client is
// answered. If the agent refuses, or answers another version, the client may initialize
// again: the same agent is asked, as it would be without the chain.
//
// # Errors
//
// What the conductor says itself has code -32603, or -32600 for what a component must
// not send, and data with a reason and the name of the component:
//
//	component_exited   it has ended; the chain ends after the answer
//	not_started        it could not be started; data has no more, the error of Serve has
//	not_a_proxy        it knows neither proxy/initialize nor _proxy/initialize, as an agent
//	version_changed    it answered initialize with another version than its successor
//
// # Trust
//
// A proxy reads and may change everything: permissions, files and terminals that the
// client lends, what is prompted and answered. It must be trusted as the agent is.
type Conductor struct {
	// Proxies are the proxies in order: the first one is next to the client.
	Proxies []Component

	// Agent is the end of the chain. Without it the conductor serves as one proxy of
	// another conductor: it expects proxy/initialize, and the last proxy's successor is
	// its own.
	Agent Component

	// Trace, if set, is called with each message that passes from one component to the
	// next, without envelopes and in the order in which each component sends. It is called
	// on the way of the message, concurrently with others, and must be quick.
	Trace func(ChainMessage)

	// MCPConnections has the agent answered as [Proxy.MCPConnections] says. Experimental.
	MCPConnections bool

	// Stderr gets what those commands among the components write to their standard error
	// that have no Stderr of their own, each line behind the component's name in
	// brackets. It is written to by one component at a time; several clients are several chains.
	Stderr io.Writer

	// Engine bounds the connections: see [jsonrpc.Settings]. MaxRequests is 4096 unless
	// it is set.
	Engine jsonrpc.Settings

	// Logger gets diagnostics of the connections, never payload. If it is nil, failures
	// go to [slog.Default].
	Logger *slog.Logger
}

// A Component is a part of a chain: either something that a transport leads to, or a
// proxy in this process.
type Component struct {
	// Name is used in errors and traces. By default it is the base name of a command,
	// the name of Proxy, or "proxy 1", "proxy 2" and "agent".
	Name string
	// Transport is opened when the client initializes, and again if a component has ended
	// by the time the client initializes once more. It is opened again, too, if a proxy
	// speaks an earlier version and some proxies are behind transports, which may take one
	// handshake only.
	Transport Transport
	// Proxy runs in this process, in place of Transport.
	Proxy *Proxy
}

// A ChainMessage is a message that passes from one component of a chain to the next. Params,
// Result and Err are valid until [Conductor.Trace] returns and must not be changed: what is to
// be kept has to be copied.
type ChainMessage struct {
	Time     time.Time
	From, To string // names of components; the client's is "client"
	// FromAt and ToAt are their places in the chain: the client's is 0, the first
	// proxy's 1, the agent's the last.
	FromAt, ToAt int
	Kind         ChainMessageKind
	// ID is shared by a request and its response, and by no other request of the chain.
	// It is 0 for notifications. It is not the id on any connection.
	ID      int64
	Method  string // also of a response: that of its request
	Session SessionID
	Params  json.RawMessage // of requests and notifications
	Result  json.RawMessage // of responses, if there is no error
	Err     error           // of responses: a *jsonrpc.Error unless the request came to nothing
}

// A ChainMessageKind says what sort of message a [ChainMessage] is.
type ChainMessageKind uint8

// Kinds of messages.
const (
	ChainRequest ChainMessageKind = iota + 1
	ChainResponse
	ChainNotification
)

// String returns "request", "response" or "notification".
func (k ChainMessageKind) String() string {
	switch k {
	case ChainRequest:
		return "request"
	case ChainResponse:
		return "response"
	case ChainNotification:
		return "notification"
	}
	return ""
}

// maxChainRequests is how many requests of a connection run at once unless
// [Conductor.Engine] says otherwise: they only wait for others.
const maxChainRequests = 4096

// Serve serves one client until it leaves, a component ends or ctx is done. Components
// are started when the client initializes, and have ended when Serve returns. It is not
// an error if the client leaves. If a component has ended, the error says which one and
// how.
//
// A Conductor may serve several clients at once. Each gets components of its own.
func (c *Conductor) Serve(ctx context.Context, client Transport) error {
	stream, err := openTransport(ctx, client)
	if err != nil {
		return err
	}
	return newChain(ctx, c, nil).serve(stream)
}

// names returns the names of the proxies and of the agent.
func (c *Conductor) names() (proxies []string, agent string) {
	for i, p := range c.Proxies {
		proxies = append(proxies, p.name("proxy "+strconv.Itoa(i+1)))
	}
	return proxies, c.Agent.name("agent")
}

func (c *Component) name(other string) string {
	if c.Name != "" {
		return c.Name
	}
	if c.Proxy != nil && c.Proxy.Name != "" {
		return c.Proxy.Name
	}
	if c.Transport != nil {
		if t, ok := innermost(c.Transport).(*CommandTransport); ok {
			return filepath.Base(t.Path)
		}
	}
	return other
}
