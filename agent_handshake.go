package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

// A handshake is one attempt to initialize.
type handshake struct {
	req   *jsonrpc.Request
	proto agentProtocol
	v1    *acpv1.InitializeRequest
	v2    *acpv2.InitializeRequest
	done  chan struct{} // closed when it was handled
	ok    bool          // valid once done is closed
}

const methodInitialize = "initialize"

// rawInitialize is initialize before the version of its params is known.
var rawInitialize = jsonrpc.Method[json.RawMessage, json.RawMessage]{Name: methodInitialize}

// uninitializedMux handles what may arrive first. Every other method has a
// handler only so that preempt sees it.
func uninitializedMux() *jsonrpc.Mux {
	mux := new(jsonrpc.Mux)
	handleInitialize(mux)
	mux.Fallback(func(_ context.Context, req *jsonrpc.Request) (any, error) {
		return nil, notInitialized(req.Method)
	})
	return mux
}

func handleInitialize(mux *jsonrpc.Mux) {
	rawInitialize.Handle(mux, func(ctx context.Context, _ *json.RawMessage) (*json.RawMessage, error) {
		return AgentConnFrom(ctx).initialize(ctx)
	})
}

func notInitialized(method string) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "ACP connection must be initialized before %q", method)
}

// notFound answers a request whose hook is not set, in the way an unknown method
// is answered (S20).
func notFound(ctx context.Context) error {
	return jsonrpc.MethodNotFound(jsonrpc.RequestFrom(ctx).Method)
}

// preempt sees requests and notifications in the order in which they arrived,
// before they are queued.
func (c *AgentConn) preempt(req *jsonrpc.Request) error {
	if req.Method == methodInitialize && !req.IsNotification() {
		return c.preemptInitialize(req)
	}
	c.mu.Lock()
	hello := c.hello
	c.mu.Unlock()
	if hello == nil {
		return notInitialized(req.Method) // S48, S54; a notification is dropped
	}
	return hello.proto.preempt(c, req)
}

// preemptInitialize selects the version. Everything that follows this request,
// even in the same write, is decoded in that version.
func (c *AgentConn) preemptInitialize(req *jsonrpc.Request) error {
	raw, _ := req.Params.(json.RawMessage)
	if p, ok := req.Params.(*json.RawMessage); ok {
		raw = *p
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hello != nil && !isClosed(c.hello.done) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "initialize is under way")
	}
	h, err := c.negotiate(req, raw)
	if err != nil {
		return err
	}
	if c.hello == nil || c.hello.proto != h.proto {
		c.conn.SetMux(c.newMux(h.proto))
	}
	c.hello = h
	return nil
}

func (c *AgentConn) newMux(p agentProtocol) *jsonrpc.Mux {
	mux := new(jsonrpc.Mux)
	handleInitialize(mux)
	p.register(mux)
	if f := c.agent.Load().Extensions; f != nil {
		f(mux)
	}
	mux.StrictIDs = p.version() == 2 // S11
	return mux
}

// negotiate reads an initialize request and selects the version (S50, S51,
// S56–S58, S60–S62, S66). It is called with mu held.
func (c *AgentConn) negotiate(req *jsonrpc.Request, raw json.RawMessage) (*handshake, error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	h := &handshake{req: req, done: make(chan struct{}), v1: new(acpv1.InitializeRequest)}
	if err := h.v1.UnmarshalJSON(raw); err != nil {
		return nil, decodeError(err)
	}
	asked := int(h.v1.ProtocolVersion)
	cfg := c.agent.Load()
	if c.accepted != nil {
		h.proto = c.accepted.proto
		if h.proto.version() == 2 {
			if c.used.Load() {
				return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the connection is in use and cannot be initialized again")
			}
			if asked < 2 {
				return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the connection has been initialized with version 2")
			}
		}
	} else if version := selectVersion(asked, cfg.MinVersion, cfg.MaxVersion); version != 0 {
		h.proto = newAgentProtocol(version, c)
	} else {
		return nil, unsupportedVersion(asked, cfg.MinVersion, cfg.MaxVersion)
	}
	if h.proto.version() == 2 {
		if !req.ID.IsString() && !req.ID.IsInteger() {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "ACP v2 request IDs must be strings or integers") // S62
		}
		h.v2 = new(acpv2.InitializeRequest)
		if err := h.v2.UnmarshalJSON(raw); err != nil {
			if asked == 2 {
				return nil, decodeError(err) // S57
			}
			// What a later version sends need not have our shape.
			h.v2 = &acpv2.InitializeRequest{ProtocolVersion: uint16(asked), Info: Implementation{Name: "unknown", Version: "unknown"}}
		}
		return h, nil
	}
	if asked >= 2 {
		fromNewerClient(h.v1, raw)
	}
	return h, nil
}

// fromNewerClient reads what a client of a later version sent in the fields of
// that version (S64).
func fromNewerClient(v1 *acpv1.InitializeRequest, raw json.RawMessage) {
	var v2 acpv2.InitializeRequest
	if v1.ClientInfo != nil || v2.UnmarshalJSON(raw) != nil {
		return
	}
	v1.ClientInfo = &acpv1.Implementation{Name: v2.Info.Name, Version: v2.Info.Version, Title: v2.Info.Title}
	v1.ClientCapabilities = translate.ClientCapabilitiesToV1(v2.Capabilities)
}

// isClosed reports whether a channel that is never sent to has been closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// selectVersion returns the version to speak with a peer that asked for one, or 0
// if there is none. A peer that knows later versions gets our latest. Version 1
// agents answer every client with their own version (S51, S61).
func selectVersion(asked, lo, hi int) int {
	switch {
	case hi == 1:
		return 1
	case asked >= hi:
		return hi
	case asked >= lo:
		return asked
	}
	return 0
}

func unsupportedVersion(asked, lo, hi int) error {
	data := &acpv2.UnsupportedProtocolVersionErrorData{Requested: uint16(asked)}
	for v := lo; v <= hi; v++ {
		data.Supported = append(data.Supported, uint16(v))
	}
	return jsonrpc.ErrUnsupportedVersion.WithData(data)
}

// decodeError is the answer to params that do not decode, as the engine gives it.
func decodeError(err error) error {
	if fe, ok := errors.AsType[*wire.FieldError](err); ok {
		return invalidParams(fe.Path, fe.Reason)
	}
	return jsonrpc.ErrInvalidParams
}

// gate holds requests back until the initialize request before them has been
// answered (S48), so that they do not race with it.
func (c *AgentConn) gate(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
		if req.Method == methodInitialize || req.IsNotification() {
			return next(ctx, req)
		}
		c.mu.Lock()
		hello := c.hello
		c.mu.Unlock()
		// Handled first, then answered.
		for _, done := range [...]<-chan struct{}{hello.done, hello.req.Context().Done()} {
			if isClosed(done) {
				continue
			}
			select {
			case <-done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if !hello.ok {
			// A repeated one that fails changes nothing (S58).
			c.mu.Lock()
			initialized := c.accepted != nil
			c.mu.Unlock()
			if !initialized {
				return nil, notInitialized(req.Method)
			}
		}
		c.used.Store(true)
		return next(ctx, req)
	}
}

// initialize handles the request that preemptInitialize has seen.
func (c *AgentConn) initialize(ctx context.Context) (*json.RawMessage, error) {
	c.mu.Lock()
	h := c.hello // only one is under way
	c.mu.Unlock()
	defer close(h.done)
	before := c.peer.Load()
	c.peer.Store(h.peer())
	cfg := c.agent.Load()
	var meta json.RawMessage
	err := c.guard("Initialize", func() error {
		if cfg.prepare != nil {
			if err := cfg.prepare(ctx, c); err != nil {
				return err
			}
			cfg = c.agent.Load()
		}
		if cfg.Initialize == nil {
			return nil
		}
		var err error
		meta, err = cfg.Initialize(ctx, c)
		return err
	})
	var answer []byte
	if err == nil {
		answer, err = h.proto.initialized(meta)
	}
	if err != nil {
		c.peer.Store(before)
		return nil, err
	}
	c.mu.Lock()
	h.ok, c.accepted = true, h
	c.mu.Unlock()
	return (*json.RawMessage)(&answer), nil
}

func (h *handshake) peer() *agentPeer {
	if h.v2 != nil {
		return &agentPeer{proto: h.proto, info: h.v2.Info, caps: h.v2.Capabilities, meta: h.v2.Meta}
	}
	p := &agentPeer{proto: h.proto, capsV1: h.v1.ClientCapabilities, caps: translate.ClientCapabilitiesFromV1(h.v1.ClientCapabilities), meta: h.v1.Meta}
	if i := h.v1.ClientInfo; i != nil {
		p.info = Implementation{Name: i.Name, Version: i.Version, Title: i.Title, Meta: i.Meta}
	}
	return p
}
