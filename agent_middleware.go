package acp

import (
	"context"
	"fmt"
	"strings"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A Middleware stands around what a client asks of an agent: see [Agent.Middleware].
// next does what is asked, with the context it is given, and returns the error that
// the client would receive. What Middleware returns takes its place.
//
// A Middleware that does not call next returns an error, which refuses the call. It
// runs concurrently with others, as hooks do; call is its own until it returns.
type Middleware func(ctx context.Context, call *Call, next func(context.Context) error) error

// A Call is what a client asks of an agent, in the same words for both versions.
type Call struct {
	// Method is the method's name in version 2. A version 1 client's session/load is
	// "session/resume" here, session/set_mode and session/set_model are
	// "session/set_config_option", authenticate is "auth/login" and logout is
	// "auth/logout". Methods that [Agent.Extensions] registers have their own names.
	Method string
	// Conn is the connection. Its Version is 0 until an "initialize" has succeeded.
	Conn *AgentConn
	// SessionID is the session that the call is about, or "". That of a new session
	// is known once next has returned.
	SessionID SessionID
	// Turn is the turn of a "session/prompt", or nil otherwise. The call lasts as long
	// as the Prompt hook runs, and next fails with the hook's error.
	Turn *Turn
	// StopReason is what the Prompt hook returned, once next has returned.
	StopReason StopReason
}

// Session returns the session that the call is about, or nil if there is none or it is
// not open. A new session is open once next has returned.
func (c *Call) Session() *AgentSession {
	if c.Turn != nil {
		return c.Turn.session
	}
	s, _ := c.Conn.Session(c.SessionID)
	return s
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

// through runs f inside the agent's middleware.
func (c *AgentConn) through(ctx context.Context, call *Call, f func(context.Context) error) error {
	called := false
	next := func(ctx context.Context) error {
		called = true
		return ownError(f(ctx))
	}
	list := c.agent.Load().Middleware
	for i := len(list) - 1; i >= 0; i-- {
		inner, m := next, list[i]
		next = func(ctx context.Context) error { return ownError(m(ctx, call, inner)) }
	}
	err := next(ctx)
	if err == nil && !called {
		return fmt.Errorf("acp: middleware refused %s without an error", call.Method)
	}
	return err
}

// promptThrough calls the Prompt hook inside the agent's middleware.
func (c *AgentConn) promptThrough(a *Agent, t *Turn) (StopReason, error) {
	call := &Call{Method: acpv2.MethodSessionPrompt.Name, Conn: c, SessionID: t.session.id, Turn: t}
	err := c.through(&t.ctx, call, func(ctx context.Context) (err error) {
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
		call := &Call{Method: req.Method, Conn: c}
		if name := methodsInV2[req.Method]; name != "" {
			call.Method = name
		}
		if lane := laneOf(req.Method, req.Params); !strings.HasPrefix(lane, laneMCP) {
			call.SessionID = SessionID(lane)
		}
		var res any
		err := c.through(ctx, call, func(ctx context.Context) (err error) {
			if res, err = next(ctx, req); err != nil {
				return err
			}
			if id := openedID(res); id != "" {
				call.SessionID = id
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return res, nil
	}
}

// openedID returns the id of the session that a result makes known, or "".
func openedID(res any) SessionID {
	switch r := res.(type) {
	case *acpv1.NewSessionResponse:
		return SessionID(r.SessionID)
	case *acpv1.ForkSessionResponse:
		return SessionID(r.SessionID)
	case *acpv2.NewSessionResponse:
		return r.SessionID
	case *acpv2.ForkSessionResponse:
		return r.SessionID
	}
	return ""
}
