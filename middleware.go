package acp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A Middleware stands around what the peer asks: see [Agent.Middleware] and
// [Client.Middleware]. next does what is asked, with the context it is given, and
// returns the error that the peer would receive. What Middleware returns takes its
// place. [AgentConnFrom] or [ClientConnFrom] returns the connection from ctx.
//
// A Middleware that does not call next returns an error, which refuses the call. It
// runs concurrently with others, as hooks do; call is its own until it returns.
type Middleware func(ctx context.Context, call *Call, next func(context.Context) error) error

// A Call is what a peer asks of an agent or a client, in the same words for both
// versions.
type Call struct {
	// Method is the method's name in version 2. A version 1 client's session/load is
	// "session/resume" here, session/set_mode and session/set_model are
	// "session/set_config_option", authenticate is "auth/login" and logout is
	// "auth/logout". Methods that only version 1 has, such as fs/read_text_file, and
	// those of Extensions have their own names.
	Method string
	// SessionID is the session that the call is about, or "". The id of a new session
	// is known once next has returned.
	SessionID SessionID
	// Turn is the turn of a "session/prompt", or nil otherwise. The call lasts as long
	// as the Prompt hook runs, and next fails with the hook's error.
	Turn *Turn
	// Queued takes the place of Turn in an agent with a Queue hook. The call lasts as
	// long as that runs. Experimental.
	Queued *QueuedPrompt
	// StopReason is what the Prompt hook returned, once next has returned.
	StopReason StopReason
}

// methodsInV2 are the names of version 2 for methods that version 1, or an older draft
// of version 2, calls something else.
var methodsInV2 = map[string]string{
	acpv1.MethodAuthenticate.Name:   acpv2.MethodAuthLogin.Name,
	acpv1.MethodLogout.Name:         acpv2.MethodAuthLogout.Name,
	acpv1.MethodSessionLoad.Name:    acpv2.MethodSessionResume.Name,
	acpv1.MethodSessionSetMode.Name: acpv2.MethodSessionSetConfigOption.Name,
	"session/set_model":             acpv2.MethodSessionSetConfigOption.Name,
}

// through runs f inside a list of middleware.
func through(ctx context.Context, list []Middleware, call *Call, f func(context.Context) error) error {
	called := false
	next := func(ctx context.Context) error {
		called = true
		return ownError(f(ctx))
	}
	for _, m := range slices.Backward(list) {
		inner := next
		next = func(ctx context.Context) error { return ownError(m(ctx, call, inner)) }
	}
	err := next(ctx)
	if err == nil && !called {
		return fmt.Errorf("acp: middleware refused %s without an error", call.Method)
	}
	return err
}

// requestThrough handles a request inside a list of middleware.
func requestThrough(ctx context.Context, list []Middleware, req *jsonrpc.Request, handle jsonrpc.Handler) (any, error) {
	call := &Call{Method: req.Method}
	if name := methodsInV2[req.Method]; name != "" {
		call.Method = name
	}
	if lane := laneOf(req.Method, req.Params); !strings.HasPrefix(lane, laneMCP) {
		call.SessionID = SessionID(lane)
	}
	var res any
	err := through(ctx, list, call, func(ctx context.Context) (err error) {
		if res, err = handle(ctx, req); err != nil {
			return err
		}
		if id, ok := openedSession(res); ok {
			call.SessionID = id
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// promptThrough calls the Prompt hook inside the agent's middleware.
func (c *AgentConn) promptThrough(a *Agent, t *Turn) (StopReason, error) {
	call := &Call{Method: acpv2.MethodSessionPrompt.Name, SessionID: t.session.id, Turn: t}
	err := through(&t.ctx, a.Middleware, call, func(ctx context.Context) (err error) {
		call.StopReason, err = a.Prompt(ctx, t)
		return err
	})
	return call.StopReason, err
}

// requestsThrough is the engine's middleware that runs requests inside the agent's.
// Prompts are not among them: it is their turns that run inside.
func (c *AgentConn) requestsThrough(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
		if req.IsNotification() || req.Method == acpv2.MethodSessionPrompt.Name {
			return next(ctx, req)
		}
		return requestThrough(ctx, c.agent.Load().Middleware, req, next)
	}
}

// requestsThrough is the engine's middleware that runs requests inside the client's.
// Until the connection is initialized there is nothing that middleware could ask of it,
// and all requests are refused.
func (c *ClientConn) requestsThrough(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, req *jsonrpc.Request) (any, error) {
		if req.IsNotification() || c.peer.Load() == nil {
			return next(ctx, req)
		}
		return requestThrough(ctx, c.client.Middleware, req, next)
	}
}
