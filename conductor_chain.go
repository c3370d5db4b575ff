package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp/internal/faultlog"
	"github.com/goacp/acp/jsonrpc"
)

// componentGrace is how long an answer may take to come through the rest of a chain of which
// a component has ended. After that the conductor gives it.
const componentGrace = time.Second

// chain is a conductor that serves one client.
type chain struct {
	c   *Conductor
	ctx context.Context
	log *slog.Logger

	client   *proxyEnd
	ids      atomic.Int64 // of hops
	stop     context.CancelFunc
	opened   jsonrpc.Stream // of the agent, opened in advance; nil if it is not, or is in use
	given    bool           // the agent's stream was opened in advance: the client knows its process
	watchers sync.WaitGroup
	stderr   sync.Mutex // held while a line is written to Conductor.Stderr

	mu    sync.Mutex
	run   *chainRun                     // since the last handshake; nil before
	begun bool                          // a handshake was asked for
	ready chan struct{}                 // closed when the handshake under way has ended
	err   error                         // why there is none
	over  error                         // a component has ended
	down  error                         // why the last handshake failed, if that was a component
	asks  map[*jsonrpc.Request]struct{} // of the client, unanswered
	quiet chan struct{}                 // closed when there is none; nil unless somebody waits
}

// chainRun is the components of a chain from one handshake to the next.
type chainRun struct {
	*chain
	links   []proxyLink // towards the agent: the first leads to what is next to the client
	ups     []proxyLink // towards the client: the last takes what the agent sends
	names   []string    // of the proxies and of the agent
	ends    []*proxyEnd
	nodes   []*proxyNode
	closing atomic.Bool
	exit    func() // ends the chain: a component has ended during the handshake; guarded by mu
	refused bool   // the agent has refused the handshake; guarded by mu

	lines []*prefixed // of the standard error of components

	answers []int // the versions that were answered, by place; 0 for none; guarded by mu
	asked   []int // likewise
}

func newChain(ctx context.Context, c *Conductor, agent jsonrpc.Stream) *chain {
	s := &chain{
		c: c, log: c.Logger, opened: agent, given: agent != nil,
		ready: make(chan struct{}), asks: map[*jsonrpc.Request]struct{}{},
	}
	if s.log == nil {
		s.log = faultlog.New()
	}
	s.ctx, s.stop = context.WithCancel(ctx)
	return s
}

// serve serves the client and returns when nothing of the chain is left.
func (s *chain) serve(stream jsonrpc.Stream) error {
	defer s.stop()
	e := &proxyEnd{name: "client", live: make(chan struct{})}
	s.client = e
	front := chainFront{s}
	e.bare = front
	e.wrapped = noLink{errNoProxy(methodProxySuccessor)}
	if s.c.nested() {
		e.wrapped = chainBack{s}
		e.asked = func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
			return front.request(ctx, proxied{method: methodProxyInit, params: &params, req: jsonrpc.RequestFrom(ctx)})
		}
	}
	e.preempt = e.prompts.preempt(s.preempt)
	e.start(stream, jsonrpc.Config{Settings: s.c.Engine, Logger: s.c.Logger})
	close(e.live)
	unwatch := context.AfterFunc(s.ctx, func() { _ = e.conn.Close() })
	err := e.conn.Wait()
	unwatch()
	s.mu.Lock()
	run, over := s.run, cmp.Or(s.over, s.down)
	s.run = nil
	s.mu.Unlock()
	if run != nil {
		run.close()
	}
	s.watchers.Wait()
	if s.opened != nil {
		_ = s.opened.Close()
	}
	if over != nil && s.ctx.Err() == nil {
		return over
	}
	if err == nil {
		err = s.ctx.Err()
	}
	return err
}

func (c *Conductor) nested() bool { return c.Agent.Transport == nil && c.Agent.Proxy == nil }

// preempt sees the client's messages in their order.
func (s *chain) preempt(req *jsonrpc.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case req.IsNotification():
		if !s.begun {
			return errNotRouted()
		}
		return nil
	case req.Method == methodInitialize && s.c.nested():
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"Invalid request: this conductor has no agent: it is a proxy for another conductor, which begins with proxy/initialize")
	case req.Method == methodInitialize, s.c.nested() && (req.Method == methodProxyInit || req.Method == methodOldProxyInit):
		if s.begun && !isClosed(s.ready) {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "initialize is under way")
		}
		s.begun, s.ready, s.err = true, make(chan struct{}), nil
	case !s.begun:
		return errNotRouted()
	}
	return nil
}

// current returns the components, once there are any.
func (s *chain) current(ctx context.Context) (*chainRun, error) {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil && s.err == nil {
		return nil, errNotRouted()
	}
	return s.run, s.err
}

// chainFront takes what the client sends.
type chainFront struct{ *chain }

func (f chainFront) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	f.enter(m.req)
	defer f.leave(m.req)
	if m.method == methodInitialize || m.method == methodProxyInit {
		m.method = methodInitialize
		return f.initialize(ctx, m)
	}
	run, err := f.current(ctx)
	if err != nil {
		return nil, err
	}
	return run.links[0].request(ctx, m)
}

func (f chainFront) notify(ctx context.Context, m proxied) error {
	run, err := f.current(ctx)
	if err != nil {
		return nil
	}
	return run.links[0].notify(ctx, m)
}

// chainBack takes what comes from the successor of a conductor that is a proxy.
type chainBack struct{ *chain }

func (b chainBack) last() (proxyLink, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.run == nil {
		return nil, errNotRouted()
	}
	return b.run.ups[len(b.run.ups)-1], nil
}

func (b chainBack) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	link, err := b.last()
	if err != nil {
		return nil, err
	}
	return link.request(ctx, m)
}

func (b chainBack) notify(ctx context.Context, m proxied) error {
	link, err := b.last()
	if err != nil {
		return err
	}
	return link.notify(ctx, m)
}

// enter and leave keep account of the client's requests.
func (s *chain) enter(req *jsonrpc.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks[req] = struct{}{}
}

func (s *chain) leave(req *jsonrpc.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asks, req)
	if len(s.asks) == 0 && s.quiet != nil {
		close(s.quiet)
		s.quiet = nil
	}
}

// ended ends the chain because a component has ended. Requests in flight are answered
// first. During the handshake, its answer says so, and the client may ask again, as it may
// after a handshake that failed, unless the client's own stream is that of the agent.
func (s *chain) ended(run *chainRun, name string, err error) {
	s.mu.Lock()
	if s.run != run || s.over != nil {
		s.mu.Unlock()
		return
	}
	if !isClosed(s.ready) {
		run.exit = func() { s.ended(run, name, err) }
		s.mu.Unlock()
		return
	}
	if s.err != nil && !s.given {
		s.run, s.down = nil, hasEnded(name, err)
		s.mu.Unlock()
		run.close()
		return
	}
	s.over = hasEnded(name, err)
	said := componentError("component_exited", name)
	s.err = said
	quiet := make(chan struct{})
	if len(s.asks) == 0 {
		close(quiet)
	} else {
		s.quiet = quiet
	}
	s.mu.Unlock()
	timer := time.NewTimer(componentGrace)
	defer timer.Stop()
	select {
	case <-quiet:
	case <-s.client.conn.Done():
	case <-timer.C:
		s.mu.Lock()
		left := make([]*jsonrpc.Request, 0, len(s.asks))
		for req := range s.asks {
			left = append(left, req)
		}
		s.mu.Unlock()
		for _, req := range left {
			req.Answer(nil, said)
		}
	}
	_ = s.client.conn.Close()
}

// hasEnded is the error of Serve when a component has ended.
func hasEnded(name string, err error) error {
	if err == nil {
		return fmt.Errorf("acp: conductor: the component %s has ended", name)
	}
	return fmt.Errorf("acp: conductor: the component %s has ended: %w", name, err)
}

// drop closes components.
func (s *chain) drop(run *chainRun) {
	if run == nil {
		return
	}
	s.mu.Lock()
	if s.run == run {
		s.run = nil
	}
	s.mu.Unlock()
	run.close()
}

// start opens the components and joins them.
func (s *chain) start(ctx context.Context) (*chainRun, error) {
	run := &chainRun{chain: s}
	proxies, agent := s.c.names()
	run.names = append(slices.Clone(proxies), agent)
	n := len(s.c.Proxies)
	run.answers, run.asked = make([]int, n+1), make([]int, n+1)
	streams := make([]jsonrpc.Stream, n+1)
	for i := range n + 1 {
		c := &s.c.Agent
		if i < n {
			c = &s.c.Proxies[i]
		}
		if c.Transport == nil {
			continue
		}
		var err error
		if streams[i], err = run.open(ctx, i == n, c, run.names[i]); err != nil {
			for _, opened := range streams {
				if opened != nil {
					_ = opened.Close()
				}
			}
			s.log.Error("acp: conductor: a component could not be started", "component", run.names[i], "error", err)
			s.mu.Lock()
			s.down = fmt.Errorf("acp: conductor: the component %s could not be started: %w", run.names[i], err)
			s.mu.Unlock()
			return nil, componentError("not_started", run.names[i])
		}
	}
	run.join(streams)
	s.mu.Lock()
	s.run = run
	s.mu.Unlock()
	return run, nil
}

func (s *chainRun) open(ctx context.Context, agent bool, c *Component, name string) (jsonrpc.Stream, error) {
	if agent && s.opened != nil {
		stream := s.opened
		s.opened = nil
		return stream, nil
	}
	t := c.Transport
	if command, ok := t.(*CommandTransport); ok && command.Stderr == nil && s.c.Stderr != nil {
		own := *command
		lines := newPrefixed(s.c.Stderr, &s.stderr, name)
		s.lines = append(s.lines, lines)
		own.Stderr = lines
		t = &own
	}
	return openTransport(ctx, t)
}

// join makes the links between the components, and begins to read.
func (run *chainRun) join(streams []jsonrpc.Stream) {
	s, n := run.chain, len(run.chain.c.Proxies)
	run.links, run.ups = make([]proxyLink, n+1), make([]proxyLink, n+1)
	ends, live := make([]*proxyEnd, n+1), make(chan struct{})
	for i := range n + 1 {
		if streams[i] != nil {
			ends[i] = &proxyEnd{name: run.names[i], live: live}
		}
	}
	var connections *mcpConnections
	if s.c.MCPConnections {
		connections = new(mcpConnections)
	}
	// Towards the agent.
	for i := n; i >= 0; i-- {
		var link proxyLink
		switch {
		case ends[i] != nil:
			link = &componentLink{run: run, i: i, proxy: i < n, end: ends[i]}
			if i == n && connections != nil {
				link = mcpToAgent{connections, link}
			}
		case i < n:
			node := newProxyNode(s.c.Proxies[i].Proxy, nil, run.links[i+1])
			run.nodes = append(run.nodes, node)
			link = nodeToAgent{node}
		default: // the successor of a conductor that is a proxy
			link = wrappedLink{s.client}
		}
		run.links[i] = run.traced(i, i+1, link)
	}
	// Towards the client.
	var up proxyLink = bareLink{s.client}
	var held = &s.client.prompts
	nodes := slices.Clone(run.nodes)
	slices.Reverse(nodes)
	for i := range n + 1 {
		up = run.traced(i+1, i, up)
		run.ups[i] = up
		e := ends[i]
		switch {
		case e != nil && i < n:
			e.bare, e.wrapped = up, run.links[i+1]
			e.preempt = preemptWrapped(&e.prompts)
			held = &e.prompts
			up = wrappedLink{e}
		case e != nil:
			if connections != nil {
				up = mcpToClient{connections, up}
			}
			e.bare, e.wrapped = up, noLink{errNoProxy(methodProxySuccessor)}
		case i < n:
			nodes[0].up, nodes[0].held, nodes[0].release = up, held, run.release
			up = nodeToClient{nodes[0]}
			nodes = nodes[1:]
		}
	}
	for i, e := range ends {
		if e == nil {
			continue
		}
		run.ends = append(run.ends, e)
		e.start(streams[i], jsonrpc.Config{Settings: s.c.Engine, Logger: s.c.Logger})
	}
	close(live)
	for _, e := range run.ends {
		s.watchers.Go(func() { run.watch(e) })
	}
}

// watch ends the chain when a component has ended.
func (run *chainRun) watch(e *proxyEnd) {
	err := e.conn.Wait()
	if run.closing.Load() {
		return
	}
	run.mu.Lock()
	if !isClosed(run.ready) {
		run.down = hasEnded(e.name, err)
	}
	run.mu.Unlock()
	run.ended(run, e.name, err)
}

// release lets the messages of a new session pass.
func (run *chainRun) release(session string) {
	for _, e := range run.ends {
		e.fresh.remove(session)
	}
	run.client.fresh.remove(session)
}

// close ends the components, and returns when they have ended.
func (run *chainRun) close() {
	run.closing.Store(true)
	var closing sync.WaitGroup
	for _, e := range run.ends {
		closing.Go(func() { _ = e.conn.Close(); <-e.conn.Done() })
	}
	closing.Wait()
	for _, lines := range run.lines {
		lines.flush()
	}
	for _, node := range run.nodes {
		node.close()
	}
}
