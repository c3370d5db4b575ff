package acp

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/faultlog"
	"github.com/goacp/acp/jsonrpc"
)

// maxProxySessions bounds the sessions that a proxy keeps something for.
const maxProxySessions = 4096

// proxyNode is a proxy in one chain.
type proxyNode struct {
	p        *Proxy
	up, down proxyLink
	log      *slog.Logger
	held     *heldPrompts         // of the connection from which prompts come
	release  func(session string) // lets the messages of a new session pass; nil does nothing

	version atomic.Int32 // 0 before it is agreed on
	state   atomic.Pointer[proxyState]
	mcp     proxyServers

	connections *mcpConnections // nil unless the agent may speak MCP in that form
}

// proxyState is what a node knows since the last handshake.
type proxyState struct {
	node *proxyNode
	caps acpv1.ClientCapabilities // for updates that are put into the words of version 1

	appends atomic.Bool // the agent reports pieces of a command's output, as clientAppendsV1

	mu       sync.Mutex
	sessions map[SessionID]*list.Element
	order    list.List // of *ProxySession, used last in front
}

func newProxyState(n *proxyNode) *proxyState {
	return &proxyState{node: n, sessions: map[SessionID]*list.Element{}}
}

func newProxyNode(p *Proxy, up, down proxyLink) *proxyNode {
	n := &proxyNode{p: p, up: up, down: down, log: p.Logger}
	if n.log == nil {
		n.log = faultlog.New()
	}
	n.mcp.node = n
	if p.MCPConnections {
		n.connections = new(mcpConnections)
		n.down = mcpToAgent{n.connections, down}
	}
	n.state.Store(newProxyState(n))
	return n
}

func (n *proxyNode) close() { n.mcp.close() }

func (n *proxyNode) link(to ProxyDirection) proxyLink {
	switch to {
	case ToAgent:
		return n.down
	case ToClient:
		return n.up
	}
	return noLink{errors.New("acp: a message of a proxy needs a direction")}
}

// fresh lets the messages of a session pass that the client does not know yet: the proxy
// uses it already.
func (n *proxyNode) fresh(id SessionID) {
	if n.release != nil {
		n.release(string(id))
	}
}

// session returns what is known of a session, nil for "".
func (n *proxyNode) session(id string) *ProxySession {
	if id == "" {
		return nil
	}
	return n.state.Load().session(SessionID(id), nil)
}

// session returns a session, or enters s as it. Beyond the bound the one is forgotten that was
// not used for longest.
func (st *proxyState) session(id SessionID, s *ProxySession) *ProxySession {
	st.mu.Lock()
	defer st.mu.Unlock()
	known := st.sessions[id]
	if known != nil {
		st.order.MoveToFront(known)
		if s != nil {
			known.Value = s
		}
		return known.Value.(*ProxySession)
	}
	if s == nil {
		s = &ProxySession{node: st.node, of: st, id: id}
	}
	if st.order.Len() >= maxProxySessions {
		delete(st.sessions, st.order.Remove(st.order.Back()).(*ProxySession).ID())
	}
	st.sessions[id] = st.order.PushFront(s)
	return s
}

// forget drops what is known of a session that was closed.
func (st *proxyState) forget(id SessionID) *ProxySession {
	st.mu.Lock()
	defer st.mu.Unlock()
	known := st.sessions[id]
	if known == nil {
		return nil
	}
	delete(st.sessions, id)
	return st.order.Remove(known).(*ProxySession)
}

// mark adds to _meta that the proxy has sent it.
func (n *proxyNode) mark(meta json.RawMessage) json.RawMessage {
	value, _ := json.Marshal(map[string]string{"proxy": n.p.name()}) // always encodes
	if len(meta) == 0 {
		meta = json.RawMessage("{}")
	}
	if marked, err := withMember(meta, ProxyMetaKey, value); err == nil {
		return marked
	}
	return meta
}

// encodeBlocks encodes content in the version of the chain.
func (n *proxyNode) encodeBlocks(blocks []ContentBlock) (json.RawMessage, error) {
	return encodeBlocks(int(n.version.Load()), blocks)
}

// errNextTwice is what next returns when it is called again.
var errNextTwice = errors.New("acp: next was called twice in a hook of a proxy")

// hooked runs a hook around a message that next forwards. The error is one for the
// peer.
func (n *proxyNode) hooked(ctx context.Context, method string, next func(context.Context) error,
	hook func(ctx context.Context, next func(context.Context) error) error) (called bool, err error) {
	var once atomic.Bool
	err = n.protected(ctx, method, func() error {
		return hook(ctx, func(ctx context.Context) error {
			if !once.CompareAndSwap(false, true) {
				return errNextTwice
			}
			return next(ctx)
		})
	})
	return once.Load(), err
}

// protected runs a hook and returns its error in the form for the peer: what the application
// says of its own is withheld.
func (n *proxyNode) protected(ctx context.Context, method string, hook func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = n.internal(method, fmt.Errorf("panic: %v", p), debug.Stack())
		}
	}()
	if err = hook(); err == nil {
		return nil
	}
	if isSaid(err) || ctx.Err() != nil {
		return err
	}
	return n.internal(method, err, nil)
}

// internal hides an error behind an id in the log.
func (n *proxyNode) internal(method string, err error, stack []byte) error {
	id := correlationID()
	attrs := []any{"proxy", n.p.name(), "method", method, "correlationId", id, "error", err}
	if stack != nil {
		attrs = append(attrs, "stack", string(stack))
	}
	n.log.Error("acp: a hook of a proxy failed", attrs...)
	return jsonrpc.ErrInternal.WithData(map[string]string{"correlationId": id})
}

// nodeToAgent and nodeToClient are the two ways through a proxy.
type (
	nodeToAgent  struct{ *proxyNode }
	nodeToClient struct{ *proxyNode }
)

func (n nodeToAgent) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	switch m.method {
	case methodInitialize:
		return n.initialize(ctx, m)
	case acpv2.MethodSessionPrompt.Name:
		if s := n.session(m.session); n.p.Permission != nil && s != nil {
			s.calls.Turn()
		}
		if n.p.Prompt != nil {
			return n.prompt(ctx, m)
		}
	case acpv2.MethodSessionNew.Name, acpv1.MethodSessionLoad.Name, acpv2.MethodSessionResume.Name, acpv2.MethodSessionFork.Name:
		if n.p.Session != nil || n.mcp.needed() {
			return n.open(ctx, m)
		}
	case acpv2.MethodSessionClose.Name, acpv2.MethodSessionDelete.Name:
		res, err := n.requestHook(ctx, m, ToAgent)
		if err == nil {
			n.mcp.undeclare(n.state.Load().forget(SessionID(m.session)))
		}
		return res, err
	}
	return n.requestHook(ctx, m, ToAgent)
}

func (n nodeToAgent) notify(ctx context.Context, m proxied) error {
	if m.method == acpv2.NotificationMCPMessage.Name && n.mcp.noted(m.raw()) {
		return nil
	}
	return n.notifyHook(ctx, m, ToAgent)
}

func (n nodeToClient) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	if n.connections != nil {
		return mcpToClient{n.connections, nodeToPresent(n)}.request(ctx, m)
	}
	return nodeToPresent(n).request(ctx, m)
}

// nodeToPresent is nodeToClient for what is said in the present form.
type nodeToPresent struct{ *proxyNode }

func (n nodeToPresent) notify(ctx context.Context, m proxied) error {
	switch {
	case m.method != acpv2.NotificationSessionUpdate.Name:
		return n.notifyHook(ctx, m, ToClient)
	case n.p.Update != nil || n.p.Permission != nil:
		return n.update(ctx, m)
	}
	return n.notifyUpdate(ctx, m)
}

func (n nodeToPresent) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	switch m.method {
	case acpv2.MethodSessionRequestPermission.Name:
		if n.p.Permission != nil {
			return n.permission(ctx, m)
		}
	case acpv2.MethodMCPMessage.Name:
		if server := n.mcp.own(m.raw()); server != nil {
			m.passedOn()
			return n.mcp.serve(ctx, server, m.raw())
		}
	}
	return n.requestHook(ctx, m, ToClient)
}

func (n nodeToClient) notify(ctx context.Context, m proxied) error {
	if n.connections != nil {
		return mcpToClient{n.connections, nodeToPresent(n)}.notify(ctx, m)
	}
	return nodeToPresent(n).notify(ctx, m)
}

// requestHook passes a request on, through the Request hook if there is one.
func (n *proxyNode) requestHook(ctx context.Context, m proxied, to ProxyDirection) (json.RawMessage, error) {
	if n.p.Request == nil {
		return n.link(to).request(ctx, m)
	}
	return n.requestHooked(ctx, m, to)
}

func (n *proxyNode) requestHooked(ctx context.Context, m proxied, to ProxyDirection) (json.RawMessage, error) {
	link := n.link(to)
	m.holds()
	pm := &ProxyMessage{Method: m.method, Direction: to, Session: n.session(m.session), Params: m.raw()}
	_, err := n.hooked(ctx, m.method, func(ctx context.Context) (err error) {
		m.params, m.checked = &pm.Params, false
		pm.Result, err = link.request(ctx, m)
		return err
	}, func(ctx context.Context, next func(context.Context) error) error { return n.p.Request(ctx, pm, next) })
	return pm.Result, err
}

// notifyHook passes a notification on, through the Notify hook if there is one.
func (n *proxyNode) notifyHook(ctx context.Context, m proxied, to ProxyDirection) error {
	if n.p.Notify == nil {
		return n.link(to).notify(ctx, m)
	}
	return n.notifyHooked(ctx, m, to, n.link(to).notify)
}

// notifyHooked passes a notification through the Notify hook, behind which send sends it.
func (n *proxyNode) notifyHooked(ctx context.Context, m proxied, to ProxyDirection, send func(context.Context, proxied) error) error {
	pm := &ProxyMessage{Method: m.method, Direction: to, Session: n.session(m.session), Params: m.raw()}
	_, _ = n.hooked(ctx, m.method, func(ctx context.Context) error {
		m.params, m.checked = &pm.Params, false
		return send(ctx, m)
	}, func(ctx context.Context, next func(context.Context) error) error { return n.p.Notify(ctx, pm, next) })
	return nil
}
