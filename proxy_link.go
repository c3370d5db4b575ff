package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

// The names of the proxy protocol, and those that it had before.
const (
	methodProxyInit         = "proxy/initialize"
	methodProxySuccessor    = "proxy/successor"
	methodOldProxyInit      = "_proxy/initialize"
	methodOldProxySuccessor = "_proxy/successor"
)

// proxied is a message on its way through a chain.
type proxied struct {
	method  string
	params  *json.RawMessage // nil for none
	checked bool             // params are as they were received, and fit to be sent
	hooked  bool             // a hook stands around it
	session string           // the session it is about, or ""
	req     *jsonrpc.Request // whose place in its lane is kept until it was passed on; nil for none
}

// raw returns the params.
func (m *proxied) raw() json.RawMessage {
	if m.params == nil {
		return nil
	}
	return *m.params
}

// passedOn has what comes after a request handled: the request was sent.
func (m *proxied) passedOn() {
	if m.req != nil {
		m.req.Proceed()
	}
}

// holds notes that a hook stands around a request. It may wait for the peer's answers, which
// the request must not hold back.
func (m *proxied) holds() {
	m.hooked = true
	if m.req != nil {
		m.req.LetReplies()
	}
}

// A proxyLink takes messages in one direction of a chain.
type proxyLink interface {
	request(ctx context.Context, m proxied) (json.RawMessage, error)
	notify(ctx context.Context, m proxied) error
}

// noLink refuses everything.
type noLink struct{ err error }

func (l noLink) request(context.Context, proxied) (json.RawMessage, error) { return nil, l.err }
func (l noLink) notify(context.Context, proxied) error                     { return nil }

// proxyEnd is one connection of a chain.
type proxyEnd struct {
	name string
	conn *jsonrpc.Conn
	live chan struct{} // closed when all connections that messages are forwarded to are there
	old  atomic.Bool   // the peer uses the earlier names

	bare, wrapped  proxyLink                                                                  // where what the peer sends goes
	asked          func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) // proxy/initialize; nil refuses it
	fresh          proxyFresh
	prompts        heldPrompts
	preempt        func(*jsonrpc.Request) error
	handed         json.RawMessage           // what the reader forwards
	lanes          [2]atomic.Pointer[string] // the last ones, bare and in envelopes
	opened         proxyOpened               // of the reader
	directWrapped  bool                      // as direct, for what comes in envelopes
	updates        proxyLink                 // where updates go; as bare, without proxies that do not look at them
	updatesWrapped proxyLink
	direct         bool // no hook waits for updates: they may be forwarded by the reader
}

// start begins to read. The links must be set before. Nothing is forwarded before live
// is closed.
func (e *proxyEnd) start(stream jsonrpc.Stream, cfg jsonrpc.Config) {
	if cfg.MaxRequests == 0 {
		cfg.MaxRequests = maxChainRequests
	}
	cfg.Lane = e.lane
	if e.preempt != nil {
		cfg.Preempt = e.preempt
	}
	e.updates, e.direct = updatesLink(e.bare)
	e.updatesWrapped, e.directWrapped = updatesLink(e.wrapped)
	mux := &jsonrpc.Mux{InOrder: true}
	e.register(mux)
	cfg.Mux = mux
	e.conn = jsonrpc.NewConn(stream, cfg)
}

// register registers the handlers. Those of what is frequent have names, which are then
// recognized.
func (e *proxyEnd) register(mux *jsonrpc.Mux) {
	update := acpv2.NotificationSessionUpdate.Name
	mux.Direct(update, func() bool { return e.direct && e.fresh.n.Load() == 0 && isClosed(e.live) },
		func(ctx context.Context, lane string, params []byte) error {
			if req := jsonrpc.RequestFrom(ctx); req != nil { // in its lane
				raw := json.RawMessage(params)
				return e.notified(ctx, e.bare, req, update, &raw)
			}
			e.handed = params // of the one reader
			m := proxied{method: update, params: &e.handed, session: sessionOfLane(lane)}
			m.checked = bytes.IndexByte(params, '\n') < 0 && utf8.Valid(params)
			return e.updates.notify(ctx, m)
		})
	mux.Fallback(func(ctx context.Context, req *jsonrpc.Request) (any, error) {
		raw, _ := req.Params.(json.RawMessage)
		return e.requested(ctx, e.bare, req, req.Method, &raw)
	})
	mux.FallbackNotification(func(ctx context.Context, req *jsonrpc.Request) (any, error) {
		raw, _ := req.Params.(json.RawMessage)
		return nil, e.notified(ctx, e.bare, req, req.Method, &raw)
	})
	for _, old := range []bool{false, true} {
		initialize, successor := methodProxyInit, methodProxySuccessor
		if old {
			initialize, successor = methodOldProxyInit, methodOldProxySuccessor
		}
		hello := jsonrpc.Method[json.RawMessage, json.RawMessage]{Name: initialize}
		hello.Handle(mux, func(ctx context.Context, params *json.RawMessage) (*json.RawMessage, error) {
			if e.asked == nil {
				return nil, errNoProxy(initialize)
			}
			<-e.live
			e.old.Store(old)
			res, err := e.asked(ctx, *params)
			return &res, err
		})
		wrapped := jsonrpc.Method[acpv2.ProxySuccessorRequest, json.RawMessage]{Name: successor}
		wrapped.Handle(mux, func(ctx context.Context, p *acpv2.ProxySuccessorRequest) (*json.RawMessage, error) {
			if p.Method == methodProxyInit || p.Method == methodOldProxyInit {
				return nil, errNoProxy(p.Method)
			}
			e.speaks(old)
			res, err := e.requested(ctx, e.wrapped, jsonrpc.RequestFrom(ctx), p.Method, &p.Params)
			return &res, err
		})
		mux.Direct(successor, func() bool { return e.directWrapped && e.fresh.n.Load() == 0 && isClosed(e.live) },
			func(ctx context.Context, lane string, params []byte) error { return e.unwrap(ctx, lane, params, old) })
	}
}

// updatesLink returns where updates go that come along a link. direct reports that no hook
// stands there, and nothing that may keep the params.
func updatesLink(link proxyLink) (_ proxyLink, direct bool) {
	for {
		switch l := link.(type) {
		case gateToClient:
			link = l.toClient
		case mcpToClient:
			link = l.up
		case nodeToClient:
			if l.p.Update != nil || l.p.Permission != nil || l.p.Notify != nil || l.connections != nil {
				return link, false
			}
			link = l.up
		case bareLink, wrappedLink:
			return link, true
		default:
			return link, false
		}
	}
}

// errNoProxy refuses what only a conductor sends, and only to a proxy.
func errNoProxy(method string) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: %s is not for this component", method)
}

// speaks remembers which names the peer uses.
func (e *proxyEnd) speaks(old bool) {
	if e.old.Load() != old {
		e.old.Store(old)
	}
}

func (e *proxyEnd) requested(
	ctx context.Context, to proxyLink, req *jsonrpc.Request, method string, params *json.RawMessage,
) (json.RawMessage, error) {
	<-e.live
	m := proxied{method: method, params: params, checked: true, session: sessionOfLane(req.Lane), req: req}
	e.fresh.wait(ctx, m.session)
	res, err := to.request(ctx, m)
	if err == nil && len(res) == 0 {
		res = json.RawMessage("null")
	}
	return res, err
}

func (e *proxyEnd) notified(ctx context.Context, to proxyLink, req *jsonrpc.Request, method string, params *json.RawMessage) error {
	<-e.live
	m := proxied{method: method, params: params, checked: true, session: sessionOfLane(req.Lane)}
	e.fresh.wait(ctx, m.session)
	return to.notify(ctx, m)
}

// Lanes. What comes in envelopes has lanes of its own, since it goes in the other
// direction.
const laneWrapped = "\x01"

// lane is Config.Lane of a connection.
func (e *proxyEnd) lane(method string, params any) string {
	switch p := params.(type) {
	case *json.RawMessage:
		if method == methodProxySuccessor || method == methodOldProxySuccessor { // of the reader
			e.opened.open(*p)
			return e.laneOf(1, laneWrapped, e.opened.method, e.opened.params)
		}
		return e.laneOf(0, "", method, *p)
	case json.RawMessage:
		return e.laneOf(0, "", method, p)
	case *checkedParams:
		return e.laneOf(0, "", method, *p)
	case *proxyEnvelope:
		return e.laneOf(1, laneWrapped, p.m.method, p.m.raw())
	case *acpv2.ProxySuccessorRequest:
		return e.laneOf(1, laneWrapped, p.Method, p.Params)
	}
	return ""
}

// laneOf returns prefix with the session of a message. Most messages are of the same
// session as the one before.
func (e *proxyEnd) laneOf(i int, prefix, method string, params []byte) string {
	var id []byte
	if strings.HasPrefix(method, "mcp/") {
		if id = memberOf(params, "requestId"); id != nil {
			prefix += laneMCP
		}
	} else {
		id = memberOf(params, "sessionId")
	}
	last := e.lanes[i].Load()
	if last != nil && len(*last) == len(prefix)+len(id) &&
		(*last)[:len(prefix)] == prefix && (*last)[len(prefix):] == string(id) {
		return *last
	}
	lane := prefix + string(id)
	e.lanes[i].Store(&lane)
	return lane
}

// sessionOfLane returns the session of a lane, or "".
func sessionOfLane(lane string) string {
	lane = strings.TrimPrefix(lane, laneWrapped)
	if strings.HasPrefix(lane, laneMCP) {
		return ""
	}
	return lane
}

// memberOf returns the content of a string member of a JSON object, or nil. raw is
// well-formed.
func memberOf(raw []byte, name string) []byte {
	// Without white space and at the beginning it is nearly always there.
	if len(raw) > len(name)+5 && raw[0] == '{' && raw[1] == '"' &&
		string(raw[2:2+len(name)]) == name && string(raw[2+len(name):5+len(name)]) == `":"` {
		text := raw[5+len(name):]
		if end := bytes.IndexByte(text, '"'); end >= 0 && bytes.IndexByte(text[:end], '\\') < 0 {
			return text[:end]
		}
	}
	var d wire.Decoder
	d.Reset(raw, false)
	if d.Peek() != '{' {
		return nil
	}
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		if string(k) != name {
			d.Skip()
			continue
		}
		if d.Peek() != '"' {
			return nil
		}
		return []byte(d.Str())
	}
	return nil
}

// successor is the name of the envelopes that the peer knows.
func (e *proxyEnd) successor() string {
	if e.old.Load() {
		return methodOldProxySuccessor
	}
	return methodProxySuccessor
}

// bareLink sends messages to the peer as they are; wrappedLink sends them in envelopes.
type (
	bareLink    struct{ *proxyEnd }
	wrappedLink struct{ *proxyEnd }
)

func (l bareLink) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	if m.checked {
		return sendOn(ctx, l.proxyEnd, m, m.method, (*checkedParams)(m.params))
	}
	return sendOn(ctx, l.proxyEnd, m, m.method, m.params)
}

func (l bareLink) notify(ctx context.Context, m proxied) error {
	switch {
	case len(m.raw()) == 0:
		return l.conn.Notify(ctx, m.method, nil)
	case m.checked:
		return l.conn.Notify(ctx, m.method, (*checkedParams)(m.params))
	}
	return l.conn.Notify(ctx, m.method, m.params)
}

func (l wrappedLink) request(ctx context.Context, m proxied) (json.RawMessage, error) {
	return sendOn(ctx, l.proxyEnd, m, l.successor(), &proxyEnvelope{m})
}

func (l wrappedLink) notify(ctx context.Context, m proxied) error {
	return l.conn.Notify(ctx, l.successor(), &proxyEnvelope{m})
}

// checkedParams are params as they were received: they need not be checked again.
type checkedParams json.RawMessage

// AppendJSON appends the params as they are.
func (p *checkedParams) AppendJSON(dst []byte) ([]byte, error) { return append(dst, *p...), nil }

// proxyEnvelope is the params of proxy/successor.
type proxyEnvelope struct{ m proxied }

// AppendJSON appends method and params, and params only if there are some.
func (p *proxyEnvelope) AppendJSON(dst []byte) (_ []byte, err error) {
	dst = wire.AppendString(append(dst, `{"method":`...), p.m.method)
	if raw := p.m.raw(); len(raw) > 0 {
		dst = append(dst, `,"params":`...)
		if p.m.checked {
			dst = append(dst, raw...)
		} else if dst, err = wire.AppendRaw(dst, raw); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// sendOn forwards a request. Once it was sent, what comes after it in its lane is handled.
func sendOn[P any](ctx context.Context, e *proxyEnd, m proxied, method string, params *P) (json.RawMessage, error) {
	opts := make([]jsonrpc.CallOption, 0, 4)
	opts = append(opts, jsonrpc.AwaitAnswer(), jsonrpc.KeepError())
	if m.req != nil && !m.hooked {
		answered := make(chan struct{})
		defer m.req.AfterAnswer(func() { close(answered) })
		opts = append(opts, jsonrpc.HoldUntil(answered))
	}
	var opened string
	if opensSession(m.method) {
		opts = append(opts, jsonrpc.OnReply(func(result any, err error) {
			if raw, ok := result.(*json.RawMessage); ok && err == nil {
				if id := string(memberOf(*raw, "sessionId")); id != "" && e.fresh.add(id) {
					opened = id
				}
			}
		}))
	}
	if len(m.raw()) == 0 && method == m.method {
		params = nil
	}
	call, err := jsonrpc.Method[P, json.RawMessage]{Name: method}.Start(ctx, e.conn, params, opts...)
	if err != nil {
		return nil, e.explain(ctx, err)
	}
	m.passedOn()
	res, err := call.Wait()
	if opened != "" {
		if m.req != nil {
			m.req.AfterAnswer(func() { e.fresh.remove(opened) })
		} else {
			e.fresh.remove(opened)
		}
	}
	if err != nil {
		return nil, e.explain(ctx, err)
	}
	return *res, nil
}

// opensSession reports whether the answer to a method has the id of a new session.
func opensSession(method string) bool {
	return method == acpv2.MethodSessionNew.Name || method == acpv2.MethodSessionFork.Name
}

// explain returns the error for the sender of a message that could not be forwarded.
func (e *proxyEnd) explain(ctx context.Context, err error) error {
	if isSaid(err) || ctx.Err() != nil {
		return err
	}
	if errors.Is(err, jsonrpc.ErrClosed) {
		return componentError("component_exited", e.name)
	}
	return err
}

// componentError is what a conductor says of a component.
func componentError(reason, name string) *jsonrpc.Error {
	text := map[string]string{
		"component_exited": "has exited",
		"not_started":      "could not be started",
		"not_a_proxy":      "is not a proxy",
		"version_changed":  "has changed the protocol version",
	}[reason]
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "Internal error: the component %s %s", name, text).
		WithData(map[string]string{"reason": reason, "component": name})
}
