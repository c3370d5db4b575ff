package acp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A Router serves agents that are written by hand for one version each, on one
// connection. It reads until the client has initialized, and then hands the
// connection to the handlers of the version that was selected. An [Agent] does
// not need a Router.
type Router struct {
	// V1 and V2 are the two agents; either may be nil.
	V1 *RouterV1
	V2 *RouterV2
}

// RouterV1 is an agent of version 1: how it initializes, and its other handlers.
type RouterV1 struct {
	// Initialize answers the initialize request. An error refuses the client.
	Initialize func(ctx context.Context, r *acpv1.InitializeRequest) (*acpv1.InitializeResponse, error)
	// Handle registers the handlers of all other methods. It is called before
	// Initialize, when the client has asked for this version.
	Handle func(mux *jsonrpc.Mux)
}

// RouterV2 is an agent of version 2: how it initializes, and its other handlers.
type RouterV2 struct {
	// Initialize answers the initialize request. An error refuses the client.
	Initialize func(ctx context.Context, r *acpv2.InitializeRequest) (*acpv2.InitializeResponse, error)
	// Handle registers the handlers of all other methods. It is called before
	// Initialize, when the client has asked for this version.
	Handle func(mux *jsonrpc.Mux)
}

// Connect serves a stream. Requests that arrive before an initialize request was
// accepted are refused, and notifications are dropped. Everything that arrives
// after it is handled after it, by the handlers of its version.
//
// cfg configures the connection, as for [jsonrpc.NewConn]. Its Mux must be nil,
// or Connect panics: the handlers are those of V1 and V2. If its Lane is nil, a
// message's lane is its session.
func (r *Router) Connect(stream jsonrpc.Stream, cfg jsonrpc.Config) *jsonrpc.Conn {
	if cfg.Mux != nil {
		panic("acp: a Router has its own handlers, but the Config has a Mux")
	}
	rc := &routed{r: *r}
	cfg.Mux = new(jsonrpc.Mux)
	rc.initialize(cfg.Mux)
	cfg.Mux.Fallback(func(context.Context, *jsonrpc.Request) (any, error) { return nil, errNotRouted() })
	if cfg.Lane == nil {
		cfg.Lane = laneOf
	}
	preempt := cfg.Preempt
	cfg.Preempt = func(req *jsonrpc.Request) error {
		if err := rc.preempt(req); err != nil || preempt == nil {
			return err
		}
		return preempt(req)
	}
	cfg.Incoming = append([]jsonrpc.Middleware{rc.gate}, cfg.Incoming...)
	return jsonrpc.NewConn(stream, cfg)
}

func errNotRouted() error {
	return jsonrpc.ErrInvalidRequest.WithData("first ACP request must be initialize")
}

// routed is the state of one routed connection.
type routed struct {
	r Router

	mu       sync.Mutex
	version  int // 0 before one was selected
	accepted bool
	hello    *routedHello
}

// routedHello is an initialize request. Later requests wait for it.
type routedHello struct {
	done chan struct{}
	ok   bool // valid once done is closed
}

func (rc *routed) initialize(mux *jsonrpc.Mux) {
	rawInitialize.Handle(mux, func(ctx context.Context, raw *json.RawMessage) (*json.RawMessage, error) {
		rc.mu.Lock()
		version, hello := rc.version, rc.hello
		rc.mu.Unlock()
		out, err := rc.dispatch(ctx, version, *raw)
		rc.mu.Lock()
		rc.accepted = rc.accepted || err == nil
		hello.ok = rc.accepted // a repeated one that fails changes nothing
		if !rc.accepted && rc.hello == hello {
			rc.hello, rc.version = nil, 0 // another may follow, of any version
		}
		rc.mu.Unlock()
		close(hello.done)
		return out, err
	})
}

// dispatch runs the agent's own initialize.
func (rc *routed) dispatch(ctx context.Context, version int, raw json.RawMessage) (*json.RawMessage, error) {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	var out json.RawMessage
	if version == 1 {
		req := new(acpv1.InitializeRequest)
		if err := req.UnmarshalJSON(raw); err != nil {
			return nil, decodeError(err)
		}
		if req.ProtocolVersion >= 2 {
			fromNewerClient(req, raw)
		}
		res, err := rc.r.V1.Initialize(ctx, req)
		if err == nil {
			out, err = res.AppendJSON(nil)
		}
		return &out, err
	}
	req := new(acpv2.InitializeRequest)
	if err := req.UnmarshalJSON(raw); err != nil {
		if req = newerInitialize(raw); req == nil {
			return nil, decodeError(err)
		}
	}
	res, err := rc.r.V2.Initialize(ctx, req)
	if err == nil {
		out, err = res.AppendJSON(nil)
	}
	return &out, err
}

// newerInitialize stands in for the initialize request of a client of a later
// version, whose form is not known here (S57). It is nil if the client is not
// that new.
func newerInitialize(raw json.RawMessage) *acpv2.InitializeRequest {
	var v1 acpv1.InitializeRequest
	if v1.UnmarshalJSON(raw) != nil || v1.ProtocolVersion <= 2 {
		return nil
	}
	return &acpv2.InitializeRequest{
		ProtocolVersion: acpv2.Version, Info: Implementation{Name: "unknown", Version: "unknown"},
	}
}

// preempt selects the version when initialize arrives, so that the right handlers
// decode everything after it.
func (rc *routed) preempt(req *jsonrpc.Request) error {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	if req.Method != methodInitialize || req.IsNotification() {
		if rc.hello == nil {
			return errNotRouted()
		}
		return nil
	}
	if rc.hello != nil && !isClosed(rc.hello.done) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "initialize is under way")
	}
	if rc.version == 0 {
		if err := rc.choose(req); err != nil {
			return err
		}
	}
	rc.hello = &routedHello{done: make(chan struct{})}
	return nil
}

// choose selects the version of the first initialize request (S61, S62). It is
// called with mu held.
func (rc *routed) choose(req *jsonrpc.Request) error {
	raw, _ := req.Params.(*json.RawMessage)
	if raw == nil || len(*raw) == 0 {
		raw = new(json.RawMessage(`{}`))
	}
	var v1 acpv1.InitializeRequest
	if err := v1.UnmarshalJSON(*raw); err != nil {
		return decodeError(err)
	}
	lo, hi := 1, 2
	if rc.r.V1 == nil {
		lo = 2
	}
	if rc.r.V2 == nil {
		hi = 1
	}
	version := selectVersion(int(v1.ProtocolVersion), lo, hi)
	if version == 0 || lo > hi {
		return unsupportedVersion(int(v1.ProtocolVersion), lo, hi)
	}
	if version == 2 && !req.ID.IsString() && !req.ID.IsInteger() {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "ACP v2 request IDs must be strings or integers")
	}
	mux := &jsonrpc.Mux{StrictIDs: version == 2}
	rc.initialize(mux)
	if version == 1 {
		rc.r.V1.Handle(mux)
	} else {
		rc.r.V2.Handle(mux)
	}
	rc.version = version
	req.Conn().SetMux(mux)
	return nil
}

// gate holds requests back until the initialize before them has been handled.
func (rc *routed) gate(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
		if req.Method == methodInitialize || req.IsNotification() {
			return next(ctx, req)
		}
		rc.mu.Lock()
		hello := rc.hello
		rc.mu.Unlock()
		if hello == nil {
			return nil, errNotRouted()
		}
		select {
		case <-hello.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !hello.ok {
			return nil, errNotRouted()
		}
		return next(ctx, req)
	}
}
