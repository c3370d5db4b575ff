package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// serveProxy is Proxy.Serve on an open stream.
func serveProxy(ctx context.Context, p *Proxy, stream jsonrpc.Stream) error {
	e := &proxyEnd{name: "conductor", live: make(chan struct{})}
	node := newProxyNode(p, bareLink{e}, wrappedLink{e})
	gate := &proxyGate{toAgent: nodeToAgent{node}, toClient: nodeToClient{node}, asked: make(chan struct{})}
	e.bare, e.wrapped = gateToAgent{gate}, gateToClient{gate}
	e.asked = gate.initialize
	e.preempt = e.prompts.preempt(gate.preempt)
	node.held, node.release = &e.prompts, e.fresh.remove
	e.start(stream, jsonrpc.Config{Logger: p.Logger})
	close(e.live)
	stop := context.AfterFunc(ctx, func() { _ = e.conn.Close() })
	defer stop()
	err := e.conn.Wait()
	node.close()
	return errors.Join(err, ctx.Err())
}

// proxyGate keeps back what comes before proxy/initialize was answered.
type proxyGate struct {
	toAgent, toClient proxyLink

	mu    sync.Mutex
	begun bool
	asked chan struct{} // closed when the first attempt has its answer
	err   error         // why it failed; guarded by mu
	once  sync.Once
}

// preempt sees the messages in the order of the connection.
func (g *proxyGate) preempt(req *jsonrpc.Request) error {
	switch req.Method {
	case methodProxyInit, methodOldProxyInit:
		g.mu.Lock()
		g.begun = true
		g.mu.Unlock()
		return nil
	case methodInitialize:
		return errProxyAlone
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.begun {
		return jsonrpc.ErrInvalidRequest.WithData("first ACP request must be proxy/initialize")
	}
	return nil
}

func (g *proxyGate) initialize(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	res, err := g.toAgent.request(ctx, proxied{method: methodInitialize, params: &params, req: jsonrpc.RequestFrom(ctx)})
	g.mu.Lock()
	g.err = err
	g.mu.Unlock()
	g.once.Do(func() { close(g.asked) })
	return res, err
}

// wait waits until the proxy is initialized, and returns why it is not. What the
// successor sends before its answer is passed on at once: it may be part of it.
func (g *proxyGate) wait(ctx context.Context) error {
	select {
	case <-g.asked:
	case <-ctx.Done():
		return ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

type (
	gateToAgent  struct{ *proxyGate }
	gateToClient struct{ *proxyGate }
)

func (g gateToAgent) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	if err := g.wait(ctx); err != nil {
		return nil, err
	}
	return g.toAgent.request(ctx, m)
}

func (g gateToAgent) notify(ctx context.Context, m proxied) error {
	if g.wait(ctx) != nil {
		return nil
	}
	return g.toAgent.notify(ctx, m)
}

func (g gateToClient) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	return g.toClient.request(ctx, m)
}

func (g gateToClient) notify(ctx context.Context, m proxied) error { return g.toClient.notify(ctx, m) }

// heldPrompts are the Prompt hooks that run, by session, so that the end of a turn
// reaches them, also those that begin later with a prompt that had arrived. The zero
// value is ready for use.
type heldPrompts struct {
	mu      sync.Mutex
	m       map[string][]*heldPrompt
	arrived map[*jsonrpc.Request]bool // prompts without an answer: whether the turn was cancelled
}

// arrive enters a prompt. The reader calls it in wire order.
func (h *heldPrompts) arrive(req *jsonrpc.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.arrived == nil {
		h.arrived = map[*jsonrpc.Request]bool{}
	}
	h.arrived[req] = false
	context.AfterFunc(req.Context(), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.arrived, req)
	})
}

// heldPrompt is a Prompt hook that runs. While it is in next its context is not
// cancelled by the end of the turn: the successor learns of that, and answers.
type heldPrompt struct {
	cancel    context.CancelCauseFunc
	passed    bool // it is in next
	cancelled bool
}

func (h *heldPrompts) add(ctx context.Context, session string, req *jsonrpc.Request) (context.Context, *heldPrompt) {
	p := new(heldPrompt)
	ctx, p.cancel = context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.cancelled = h.arrived[req]; p.cancelled {
		p.cancel(ErrCancelled)
	}
	if h.m == nil {
		h.m = map[string][]*heldPrompt{}
	}
	h.m[session] = append(h.m[session], p)
	return ctx, p
}

func (h *heldPrompts) remove(session string, p *heldPrompt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.m[session]
	for i := range list {
		if list[i] == p {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(h.m, session)
	} else {
		h.m[session] = list
	}
	p.cancel(nil)
}

// pass records that a hook has called next, or that it has returned. It reports whether
// the turn was cancelled.
func (h *heldPrompts) pass(p *heldPrompt, passed bool) (cancelled bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.passed = passed
	if p.cancelled && !passed {
		p.cancel(ErrCancelled)
	}
	return p.cancelled
}

// end cancels the turns of a session.
func (h *heldPrompts) end(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for req := range h.arrived {
		if sessionOfLane(req.Lane) == session {
			h.arrived[req] = true
		}
	}
	for _, p := range h.m[session] {
		p.cancelled = true
		if !p.passed {
			p.cancel(ErrCancelled)
		}
	}
}

// see notes what a message to the agent means for the hooks.
func (h *heldPrompts) see(req *jsonrpc.Request, method string) {
	switch {
	case method == acpv2.MethodSessionPrompt.Name && !req.IsNotification():
		h.arrive(req)
	case method == acpv2.NotificationSessionCancel.Name && req.IsNotification():
		h.end(sessionOfLane(req.Lane))
	}
}

// preempt is Config.Preempt of a connection whose bare messages go to the agent.
func (h *heldPrompts) preempt(next func(*jsonrpc.Request) error) func(*jsonrpc.Request) error {
	return func(req *jsonrpc.Request) error {
		h.see(req, req.Method)
		if next != nil {
			return next(req)
		}
		return nil
	}
}

// preemptWrapped is Config.Preempt of a connection whose messages in envelopes go to the
// agent.
func preemptWrapped(h *heldPrompts) func(*jsonrpc.Request) error {
	return func(req *jsonrpc.Request) error {
		if req.Method != methodProxySuccessor && req.Method != methodOldProxySuccessor {
			return nil
		}
		switch p := req.Params.(type) {
		case *acpv2.ProxySuccessorRequest:
			h.see(req, p.Method)
		case *json.RawMessage:
			var o proxyOpened
			o.open(*p)
			h.see(req, o.method)
		}
		return nil
	}
}
