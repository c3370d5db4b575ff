package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// agentProtocol is what a protocol version does for the agent's side of a
// connection: it turns the verbs of the application into messages of that
// version, and requests into calls of AgentConn's methods.
type agentProtocol interface {
	version() int

	// register adds the handlers of every method an agent may be asked for.
	register(mux *jsonrpc.Mux)
	// preempt sees messages on the reader, in wire order.
	preempt(c *AgentConn, req *jsonrpc.Request) error
	// initialized is the result of initialize.
	initialized(meta json.RawMessage) ([]byte, error)

	// update sends an update. It is called for one update of a session at a
	// time.
	update(ctx context.Context, s *AgentSession, u SessionUpdate) error
	// replayed says that all of a session's history has been sent.
	replayed(ctx context.Context, id SessionID) error
	// chunk is update for a piece of text, which has to be fast.
	chunk(ctx context.Context, s *AgentSession, kind messageKind, id MessageID, text string) error

	// states reports whether state updates exist. They tell about a turn where its
	// prompt is answered when it begins; where there are none, it is answered when
	// the turn ends.
	states() bool

	requestPermission(ctx context.Context, s *AgentSession, p *permissionRequest) (*acpv2.RequestPermissionResponse, error)
	elicit(ctx context.Context, s *AgentSession, r *acpv2.CreateElicitationRequest) (*acpv2.CreateElicitationResponse, error)
	elicited(ctx context.Context, id ElicitationID) error
	callMCP(ctx context.Context, r *acpv2.MessageMCPRequest) (*acpv2.MessageMCPResponse, error)
	authStatusUpdate(ctx context.Context, n *acpv2.AuthStatusUpdateNotification) error

	// clientFiles and clientTerminals return the client's files and terminals
	// if it lends them.
	clientFiles() clientFiles
	clientTerminals() clientTerminals
}

// messageKind is the kind of a message in a conversation.
type messageKind uint8

const (
	noMessage messageKind = iota
	agentMessage
	agentThought
	userMessage
)

// clientFiles are a client's files as an agent uses them.
type clientFiles struct {
	read  func(ctx context.Context, s *AgentSession, path string, line, limit uint32) (string, error)
	write func(ctx context.Context, s *AgentSession, path, text string) error
}

// clientTerminals are a client's terminals as an agent uses them, or nil if the
// client has none.
type clientTerminals interface {
	start(ctx context.Context, s *AgentSession, e *Exec) (TerminalID, error)
	output(ctx context.Context, s *AgentSession, id TerminalID) (*TerminalState, error)
	wait(ctx context.Context, s *AgentSession, id TerminalID) (*TerminalExitStatus, error)
	kill(ctx context.Context, s *AgentSession, id TerminalID) error
	release(ctx context.Context, s *AgentSession, id TerminalID) error
}

// callClient is call for an agent, which marks what the client answered with an
// error.
func callClient[P, R any](ctx context.Context, m jsonrpc.Method[P, R], c *jsonrpc.Conn, params *P, opts ...jsonrpc.CallOption) (*R, error) {
	res, err := call(ctx, m, c, params, opts...)
	if we, ok := err.(*jsonrpc.Error); ok {
		return nil, &clientError{we}
	}
	return res, err
}

// clientError is an error that the client answered with. Hooks find the
// [*jsonrpc.Error] in it. If a hook returns it, it is reported as a failure of
// the agent, not as the client's words.
type clientError struct{ err *jsonrpc.Error }

func (e *clientError) Error() string { return e.err.Error() }
func (e *clientError) Unwrap() error { return e.err }

// ownError is how a hook's error is reported to the peer: an error of the
// client's is not sent back as the agent's own, and what a peer lacks may be
// shown.
func ownError(err error) error {
	if _, ok := errors.AsType[*clientError](err); ok {
		return errors.New(err.Error())
	}
	return shown(err)
}

func newAgentProtocol(version int, c *AgentConn) agentProtocol {
	if version == 1 {
		return &agentV1{c: c}
	}
	return &agentV2{c: c}
}
