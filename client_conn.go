package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/detach"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/internal/timeline"
	"github.com/goacp/acp/jsonrpc"
)

// A ClientConn is a client's connection to one agent. [Client.Connect] makes it;
// call [ClientConn.Close] when done with it. It is safe for concurrent use.
//
//	what failed                       the error
//	the agent does not offer it       wraps errors.ErrUnsupported; nothing was sent
//	the agent answered with an error  a *jsonrpc.Error
//	the connection has ended          wraps jsonrpc.ErrClosed, and says how the agent's
//	                                  process ended, if there was one
type ClientConn struct {
	client *Client
	conn   *jsonrpc.Conn
	stream jsonrpc.Stream
	proc   *process.Process           // behind the stream; may be nil
	peer   atomic.Pointer[clientPeer] // nil until initialize is answered

	// ctx is the context of hooks outside of handlers. It is done when the
	// connection is being closed or has ended.
	ctx  context.Context
	stop context.CancelCauseFunc
	idle sync.WaitGroup // goroutines of the connection, those of prompts included

	// recent is the session that the last update was for, or nil if that is not
	// known or is no longer open. It spares updates mu and the search.
	recent atomic.Pointer[ClientSession]

	closed     atomic.Bool // Close was called
	middleware bool        // calls pass through the application's middleware

	hooksApart   atomic.Int32 // Update hooks that run outside of handlers
	lateOpenings atomic.Int32 // requests for new sessions whose answers are waited for in any case

	asking detach.Calls           // hooks that ask the user
	noise  atomic.Pointer[string] // the beginning of the first frame that was not a message
	echoed atomic.Bool            // it sent the request initialize, which only clients do

	jobs chan func() // for deliverers that are parked
	lent clientLent

	transport Transport     // what the stream was opened from, or nil
	ranOut    chan struct{} // closed when left is known
	left      []Restoration // the sessions that were open at the end

	mu       sync.Mutex
	ended    bool
	parked   int // deliverers without a job
	sessions map[SessionID]*ClientSession
	children clientChildren
	opening  int                        // requests under way whose answer is a new session
	early    map[SessionID]*clientEarly // updates of sessions that may become known by these
	changed  chan struct{}              // closed when one of these changes; nil when nobody waits
	mcp      clientMCP
}

// clientPeer is what a client knows of its agent.
type clientPeer struct {
	proto       clientProtocol
	mux         *jsonrpc.Mux
	info        Implementation
	caps        AgentCapabilities
	capsV1      *acpv1.AgentCapabilities
	authMethods []AuthMethod
	meta        json.RawMessage
}

type clientConnKey struct{}

// ClientConnFrom returns the connection that ctx belongs to, if ctx was given to
// a client's hook or to a handler of an extension method, or nil otherwise.
func ClientConnFrom(ctx context.Context) *ClientConn {
	c, _ := ctx.Value(clientConnKey{}).(*ClientConn)
	return c
}

// newClientConn starts a connection that is not initialized yet. proc is the
// process behind the stream, or nil.
func newClientConn(ctx context.Context, client *Client, stream jsonrpc.Stream, proc *process.Process) *ClientConn {
	c := &ClientConn{
		client:   client,
		stream:   stream,
		proc:     proc,
		jobs:     make(chan func(), keepDeliverers),
		sessions: map[SessionID]*ClientSession{},
		ranOut:   make(chan struct{}),
	}
	engine := client.Engine
	if engine.BaseContext == nil {
		engine.BaseContext = context.WithoutCancel(ctx)
	}
	engine.BaseContext = context.WithValue(engine.BaseContext, clientConnKey{}, c)
	c.ctx, c.stop = context.WithCancelCause(engine.BaseContext)
	if engine.MaxRequests == 0 {
		engine.MaxRequests = 2 * detach.Max // questions must not starve what else is asked
	}
	engine.Diagnose = c.diagnose
	incoming := []jsonrpc.Middleware{traceIncoming}
	if len(engine.Incoming) > 0 {
		incoming = append(incoming, c.countUpdates)
	}
	engine.Incoming = slices.Concat(incoming, engine.Incoming)
	if len(client.Middleware) > 0 {
		engine.Incoming = append(engine.Incoming, c.requestsThrough)
	}
	c.middleware = len(engine.Outgoing) > 0
	c.conn = jsonrpc.NewConn(stream, jsonrpc.Config{
		Settings: engine,
		Mux:      c.clientUninitializedMux(),
		Lane:     c.lane,
		Waiting:  hookWaiting(c),
		Logger:   client.Logger,
	})
	c.idle.Go(func() {
		<-c.conn.Done()
		c.end()
		c.awaitProcess()
	})
	return c
}

// clientUninitializedMux refuses what an agent asks before it is initialized
// (S55).
func (c *ClientConn) clientUninitializedMux() *jsonrpc.Mux {
	mux := new(jsonrpc.Mux)
	mux.Fallback(func(_ context.Context, req *jsonrpc.Request) (any, error) {
		if req.Method == methodInitialize {
			c.echoed.Store(true)
		}
		return nil, notInitialized(req.Method)
	})
	return mux
}

// end releases what belongs to the connection, once everything that was received
// has been delivered.
func (c *ClientConn) end() {
	c.quiesce()
	c.stop(jsonrpc.ErrClosed)
	c.mu.Lock()
	c.ended = true
	close(c.jobs) // ends the deliverers
	open := slices.Collect(maps.Values(c.sessions))
	clear(c.sessions)
	c.recent.Store(nil)
	c.notify()
	c.mu.Unlock()
	c.leave(open)
	err := c.explain(c.conn.Err())
	for _, s := range open {
		s.shut(err)
	}
	c.lent.close(c)
}

// quiesce has all sessions deliver what they have, as far as hooks and readers
// allow within the grace of the connection.
func (c *ClientConn) quiesce() {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(c.client.Engine.Grace, jsonrpc.DefaultGrace))
	defer cancel()
	var busy sync.WaitGroup
	for _, s := range c.OpenSessions() {
		busy.Add(1)
		c.idle.Go(func() {
			defer busy.Done()
			s.quiesce(ctx)
		})
	}
	quiet := make(chan struct{})
	c.idle.Go(func() {
		busy.Wait()
		close(quiet)
	})
	select {
	case <-quiet:
	case <-ctx.Done():
	}
}

// quiesce delivers what can be delivered. It waits while others deliver, and
// while prompts in flight, whose calls have ended, take their outcome.
func (s *ClientSession) quiesce(ctx context.Context) {
	s.mu.Lock()
	marks := make([]*timeline.Mark[clientItem], len(s.replies))
	for i, r := range s.replies {
		marks[i] = &r.call.mark
	}
	s.mu.Unlock()
	s.line.Flush(ctx, marks...)
}

// proto returns the protocol of an initialized connection, as all connections are
// that callers have.
func (c *ClientConn) proto() clientProtocol { return c.peer.Load().proto }

// Version returns the protocol version, 1 or 2.
func (c *ClientConn) Version() int { return c.proto().version() }

// Agent returns the agent's name and version. Both are "unknown" if an agent of
// version 1 did not give them.
func (c *ClientConn) Agent() Implementation { return c.peer.Load().info }

// Capabilities returns what the agent offers, in the vocabulary of version 2.
func (c *ClientConn) Capabilities() AgentCapabilities { return c.peer.Load().caps }

// CapabilitiesV1 returns the capabilities of an agent of version 1 as it sent
// them, or nil for any other agent. They must not be modified.
func (c *ClientConn) CapabilitiesV1() *acpv1.AgentCapabilities { return c.peer.Load().capsV1 }

// AuthMethods returns the ways to log in.
func (c *ClientConn) AuthMethods() []AuthMethod { return slices.Clone(c.peer.Load().authMethods) }

// Meta returns _meta of the agent's answer to initialize, or nil.
func (c *ClientConn) Meta() json.RawMessage { return c.peer.Load().meta }

// Conn returns the underlying connection, for methods that are not part of the
// protocol and for exact control: everything sent there is sent unchanged.
func (c *ClientConn) Conn() *jsonrpc.Conn { return c.conn }

// Session returns a session that is open on this connection.
func (c *ClientConn) Session(id SessionID) (*ClientSession, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sessions[id]
	return s, ok
}

// OpenSessions returns the sessions that are open on this connection, including
// those of subagents, in no particular order.
func (c *ClientConn) OpenSessions() []*ClientSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.sessions))
}

// Close ends the connection and the agent's process, if there is one. Calls and
// prompts that wait fail. Close returns once everything has ended; see
// [CommandTransport] for processes. Called inside a hook, it returns as soon as
// pending output has been written or the connection's grace has expired. Close
// may be called repeatedly and returns nil. To end the agent without waiting, use
// [ClientConn.Kill].
func (c *ClientConn) Close() error {
	c.closed.Store(true)
	c.stop(jsonrpc.ErrClosed)
	err := c.conn.Close()
	select {
	case <-c.conn.Done():
		c.awaitIdle()
	default: // a hook still runs; it may be our caller
	}
	return err
}

// awaitIdle waits until nothing of the connection runs. An Update hook outside of
// a handler may be the caller itself, or, which is far more likely, another one
// that is about to return. One that does not return within the grace is not
// waited for.
func (c *ClientConn) awaitIdle() {
	if c.hooksApart.Load() == 0 {
		c.idle.Wait()
		return
	}
	idle := make(chan struct{})
	go func() {
		c.idle.Wait()
		close(idle)
	}()
	limit := time.NewTimer(cmp.Or(c.client.Engine.Grace, jsonrpc.DefaultGrace))
	defer limit.Stop()
	select {
	case <-idle:
	case <-limit.C:
		if c.hooksApart.Load() == 0 {
			<-idle
		}
	}
}

// Done returns a channel that is closed when the connection has ended.
func (c *ClientConn) Done() <-chan struct{} { return c.conn.Done() }

// Wait waits until the connection and everything that belongs to it have ended,
// except hooks that ignore their ctx. It returns nil if the connection was closed
// here, or if the agent closed it and, if it was a process, exited without an
// error. The error of a process that exited otherwise has a method
// ExitCode() int, for errors.As.
func (c *ClientConn) Wait() error {
	err := c.conn.Wait()
	c.idle.Wait()
	if c.closed.Load() {
		return err
	}
	exit := c.exitErr()
	switch {
	case exit == nil:
		return err
	case err == nil:
		return exit
	}
	return fmt.Errorf("%w: %w", err, exit)
}

// explain adds to the error of a connection that has ended how the agent's
// process ended.
func (c *ClientConn) explain(err error) error {
	if err == nil || c.closed.Load() || !errors.Is(err, jsonrpc.ErrClosed) {
		return err
	}
	var exit error
	if c.proc != nil && errors.Is(err, io.EOF) {
		exit = c.quietEnd()
	} else {
		exit = c.exitErr()
	}
	if exit != nil {
		return fmt.Errorf("%w: %w", err, exit)
	}
	return err
}

// spawn runs f in a goroutine of the connection, unless the connection has ended.
func (c *ClientConn) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	if c.parked > 0 && len(c.jobs) < cap(c.jobs) {
		c.parked--
		c.jobs <- f
	} else {
		c.idle.Go(func() { c.deliverer(f) })
	}
	return true
}

// keepDeliverers is how many deliverers stay when there is nothing to do: a fresh
// goroutine costs more than most of what they do (ADR 0016).
const keepDeliverers = 2

// deliverer is a goroutine of the connection that does f, and then what spawn
// hands it.
func (c *ClientConn) deliverer(f func()) {
	for f != nil {
		f() // may end the goroutine
		c.mu.Lock()
		if c.ended || c.parked >= keepDeliverers {
			c.mu.Unlock()
			return
		}
		c.parked++
		c.mu.Unlock()
		f = <-c.jobs // nil when the connection has ended
	}
}

// hook runs a hook; a panic is logged and fails the hook alone.
func (c *ClientConn) hook(name string, f func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			c.client.Logger.Error("acp: hook panicked", "hook", name, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	f()
	return true
}

// lane is laneOf. It also counts the updates of each session as they arrive, and
// records what they say about tool calls. It runs on the reader.
func (c *ClientConn) lane(method string, params any) string {
	lane := laneOf(method, params)
	switch method {
	case methodSessionUpdate:
		calls := c.arrived(SessionID(lane), 1)
		if !clientIsText(params) {
			calls.See(params)
			c.announce(SessionID(lane), params)
		}
	case methodPermission:
		c.arrived(SessionID(lane), 0).See(params)
	}
	return lane
}

// clientIsText reports whether a message is a piece of the agent's answer, as
// nearly all are.
func clientIsText(params any) bool {
	switch n := params.(type) {
	case *acpv1.SessionNotification:
		_, ok := n.Update.(*acpv1.AgentMessageChunk)
		return ok
	case *acpv2.UpdateSessionNotification:
		_, ok := n.Update.(*acpv2.AgentMessageChunk)
		return ok
	}
	return false
}

const (
	methodSessionUpdate = "session/update"
	methodPermission    = "session/request_permission"
)
