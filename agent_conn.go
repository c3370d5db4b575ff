package acp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/turnstile"
	"github.com/goacp/acp/jsonrpc"
)

// An AgentConn is an agent's connection to one client. All methods may be called
// from any goroutine. Those that describe the client return something from the
// Initialize hook on.
type AgentConn struct {
	conn   *jsonrpc.Conn
	base   context.Context // of sessions; done when the connection has ended
	values context.Context // of turns: the same, but they are ended one by one
	stop   context.CancelCauseFunc
	idle   sync.WaitGroup // goroutines of turns

	agent atomic.Pointer[Agent]     // replaced by prepare, before the client is answered
	peer  atomic.Pointer[agentPeer] // from initialize; nil before

	used  atomic.Bool // a request other than initialize was handled
	paged atomic.Bool // a list of sessions had a further page

	mu       sync.Mutex
	hello    *handshake // the latest attempt to initialize
	accepted *handshake // the latest that succeeded
	number   int        // of the latest session
	sessions map[SessionID]*AgentSession
	prompts  map[SessionID][]*prompt // in order of arrival
	resumes  map[SessionID]chan struct{}
	ends     map[SessionID]chan struct{}  // of sessions that are ending; closed when they have
	drains   map[SessionID]map[int]func() // called when a prompt leaves
	leaves   int
	over     bool          // the connection has ended
	refusing bool          // prompts are refused: it is being closed or shut down
	waiting  int           // prompts in all queues
	empty    chan struct{} // closed when refusing and waiting is 0; nil unless somebody waits for that
	calls    mcpCalls

	receiving turnstile.Turnstile // for the Received hook, by session
	// idleCancels are those that wait for their handler and for the Cancel hook.
	idleCancels map[*jsonrpc.Request]bool
}

// agentPeer is what an agent knows of its client.
type agentPeer struct {
	proto  agentProtocol
	info   Implementation
	caps   ClientCapabilities
	capsV1 acpv1.ClientCapabilities
	meta   json.RawMessage
}

func newAgentConn(ctx context.Context, cfg *Agent, stream jsonrpc.Stream) *AgentConn {
	c := &AgentConn{
		sessions: map[SessionID]*AgentSession{},
		prompts:  map[SessionID][]*prompt{},
		resumes:  map[SessionID]chan struct{}{},
		ends:     map[SessionID]chan struct{}{},
		drains:   map[SessionID]map[int]func(){},

		idleCancels: map[*jsonrpc.Request]bool{},
	}
	c.agent.Store(cfg)
	c.base, c.stop = context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), agentConnKey{}, c))
	c.values = context.WithoutCancel(c.base)
	engine := cfg.Engine
	if engine.BaseContext == nil {
		engine.BaseContext = context.WithoutCancel(ctx)
	}
	engine.BaseContext = context.WithValue(engine.BaseContext, agentConnKey{}, c)
	if engine.MaxRequests == 0 {
		engine.MaxRequests = 2 * maxPrompts // prompts must not starve what else is asked
	}
	engine.Incoming = append([]jsonrpc.Middleware{traceIncoming, c.gate}, engine.Incoming...)
	if len(cfg.Middleware) > 0 {
		engine.Incoming = append(engine.Incoming, c.requestsThrough)
	}
	c.mu.Lock() // preempt may need conn before it is known here
	c.conn = jsonrpc.NewConn(stream, jsonrpc.Config{
		Settings: engine,
		Mux:      uninitializedMux(),
		Lane:     laneOf,
		Preempt:  c.preempt,
		Linger:   cfg.linger,
		Logger:   cfg.Logger,
	})
	c.mu.Unlock()
	c.idle.Go(func() {
		<-c.conn.Done()
		c.end()
	})
	return c
}

// background runs f in a goroutine that the connection waits for when it ends.
// It reports false, without running f, when the connection has ended.
func (c *AgentConn) background(f func()) bool {
	release, ok := c.hold()
	if ok {
		go func() {
			defer release()
			f()
		}()
	}
	return ok
}

// hold keeps the connection from having ended until release is called, once or
// more often. It reports false if it has ended.
func (c *AgentConn) hold() (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, false
	}
	c.idle.Add(1)
	return sync.OnceFunc(c.idle.Done), true
}

type agentConnKey struct{}

// AgentConnFrom returns the connection that ctx belongs to, if ctx was given to
// an agent's hook or to a handler of an extension method, or nil otherwise.
func AgentConnFrom(ctx context.Context) *AgentConn {
	c, _ := ctx.Value(agentConnKey{}).(*AgentConn)
	return c
}

// Conn returns the underlying connection, for methods that are not part of the
// protocol and for exact control: everything sent there is sent unchanged.
func (c *AgentConn) Conn() *jsonrpc.Conn { return c.conn }

// Version returns the protocol version, or 0 before the client initialized.
func (c *AgentConn) Version() int {
	if p := c.peer.Load(); p != nil {
		return p.proto.version()
	}
	return 0
}

// Client returns the client's name and version, if it gave them.
func (c *AgentConn) Client() Implementation {
	if p := c.peer.Load(); p != nil {
		return p.info
	}
	return Implementation{}
}

// Capabilities returns what the client can do in the vocabulary of version 2.
func (c *AgentConn) Capabilities() ClientCapabilities {
	if p := c.peer.Load(); p != nil {
		return p.caps
	}
	return ClientCapabilities{}
}

// CapabilitiesV1 returns the capabilities of a version 1 client as it sent them, or
// nil for any other client. They must not be changed.
func (c *AgentConn) CapabilitiesV1() *acpv1.ClientCapabilities {
	if p := c.peer.Load(); p != nil && p.proto.version() == 1 {
		return &p.capsV1
	}
	return nil
}

// Meta returns _meta of the client's initialize request, or nil.
func (c *AgentConn) Meta() json.RawMessage {
	if p := c.peer.Load(); p != nil {
		return p.meta
	}
	return nil
}

// Session returns a session that is open on this connection.
func (c *AgentConn) Session(id SessionID) (*AgentSession, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sessions[id]
	return s, ok
}

// OpenSessions returns the sessions that are open on this connection, by age.
func (c *AgentConn) OpenSessions() []*AgentSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.Collect(maps.Values(c.sessions))
	sort.Slice(list, func(i, j int) bool { return list[i].number < list[j].number })
	return list
}

// AuthStatusChanged notifies the client of who is logged in now. Clients that do
// not know the notification ignore it. Experimental.
func (c *AgentConn) AuthStatusChanged(ctx context.Context, status *AuthStatus) error {
	p := c.peer.Load()
	if p == nil || c.agent.Load().AuthStatus == nil {
		return clientLacks("auth/status_update")
	}
	return p.proto.authStatusUpdate(ctx, &acpv2.AuthStatusUpdateNotification{
		State: status.State, Accounts: status.Accounts, Meta: status.Meta,
	})
}

// guard runs a hook and turns its panic into an error.
func (c *AgentConn) guard(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.agent.Load().Logger.Error("acp: hook panicked", "hook", what, "panic", p, "stack", string(debug.Stack()))
			err = errHookPanicked
		}
	}()
	return ownError(f())
}

var errHookPanicked = errors.New("acp: the hook panicked")
