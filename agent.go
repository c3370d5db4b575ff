package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/faultlog"
	"github.com/goacp/acp/jsonrpc"
)

// An Agent is the configuration of an agent: what it is and what it can do. The
// same Agent speaks both protocol versions.
//
// Only Prompt is needed. What an agent can do beyond that follows from the
// hooks that are set: a nil hook advertises nothing, or has the default its
// documentation states. Hooks run concurrently, each in its own goroutine, and
// are given a context that is done when the client cancels the request, or the
// turn, and when the connection ends. The error of a hook is the answer: a
// [*jsonrpc.Error] as it is, a [*Failure] likewise, any other error as an
// internal error whose text goes to the log only.
//
// An Agent is copied when it is used and may serve any number of connections.
type Agent struct {
	// Info names the agent. Name and version are sent to the client; the
	// default is "agent" and "0".
	Info Implementation

	// Prompt runs a turn: the client's prompt is in t, and t is what the answer
	// is sent through. It returns why the turn ended. When the client cancels,
	// ctx is done and the turn ends as cancelled whatever Prompt returns. An
	// error ends the turn with that error. No reason is [StopEndTurn] in version
	// 1, where there must be one. A hook that has not returned
	// CancelGrace after ctx was done is given up: the turn is settled without
	// it, and it can send nothing more.
	Prompt func(ctx context.Context, t *Turn) (StopReason, error)

	// Accept decides about a prompt before it becomes part of the
	// conversation, also of one that is going to steer a running turn: while it
	// runs the prompt is held, and its error refuses the prompt. It can send
	// nothing. Nil accepts every prompt.
	Accept func(ctx context.Context, t *Turn) error

	// Busy says what becomes of a prompt that arrives while another one of its
	// session runs.
	Busy BusyPolicy
	// MaxHeld bounds the prompts that wait in a session, the running one
	// aside; 0 means 64. A prompt beyond it is refused with a [Failure] whose
	// Reason is "busy", and so is one beyond 4,096 on a connection, those that
	// run included. The engine's MaxRequests is 8,192 unless it is set, since
	// every one of them is a request that is being handled.
	MaxHeld int
	// CancelGrace is how long a cancelled hook may take to return; 0 means 5 s.
	CancelGrace time.Duration

	// Initialize sees the client before it is answered: c knows its name, its
	// version of the protocol and its capabilities. What it returns is sent as
	// _meta of the answer. An error refuses the client.
	Initialize func(ctx context.Context, c *AgentConn) (meta json.RawMessage, err error)

	// NewSession prepares a session before its id is sent to the client, by
	// setting its options, commands and Value for example. What it sends to
	// the session is held back until then. Nil accepts every session.
	NewSession func(ctx context.Context, s *AgentSession) error
	// ResumeSession brings a session back that the agent has saved. s has the
	// id and what the client asked for, and has to be given its options,
	// commands and title again, as in NewSession. When replay is set, the hook
	// has to send the session's history through s before it returns; what it
	// sends goes out at once. An unknown id is [SessionNotFound]; the id is
	// what the client sent and no file name, before that was checked.
	//
	// A session that is open on this connection is resumed without the hook,
	// unless its history is to be replayed. Then s is another end of the
	// session, for the history alone: it ends when the hook returns, and what is
	// set in it, such as Value and options, is ignored. [SessionNotFound] means
	// there that nothing has been saved yet.
	//
	// The hook advertises loading and resuming in version 1. Nil makes a session
	// that is open on this connection resumable in version 2, whose replay
	// then is the latest 1 MiB of what the session has kept in memory.
	ResumeSession func(ctx context.Context, s *AgentSession, replay bool) error
	// ListSessions answers session/list. Nil advertises nothing in version 1;
	// in version 2 it lists the sessions that are open on this connection.
	ListSessions func(ctx context.Context, c *AgentConn, q *SessionQuery) (*SessionPage, error)
	// CloseSession is told that the client closed a session, after its turns
	// have ended. It is not called when the connection ends: what has to happen
	// in either case hangs on [AgentSession.Context]. Nil advertises nothing in
	// version 1, where a hook that does nothing is enough, and does nothing in
	// version 2.
	CloseSession func(ctx context.Context, s *AgentSession) error
	// DeleteSession removes a saved session; if it is open on this connection
	// it has been closed before. An unknown id is [SessionNotFound]; for file
	// names see ResumeSession.
	DeleteSession func(ctx context.Context, c *AgentConn, id SessionID) error

	// ForkSession fills a new session with the conversation of another.
	// Experimental.
	ForkSession func(ctx context.Context, s *AgentSession, from SessionID) error
	// ArchiveSession puts a session away, or takes it back when archived is
	// false; a session that is put away has been closed before. Experimental.
	ArchiveSession func(ctx context.Context, c *AgentConn, id SessionID, archived bool) error
	// SessionStatus tells about sessions that are not open on this connection;
	// the open ones are answered without it. Experimental.
	SessionStatus func(ctx context.Context, c *AgentConn, id SessionID) (SessionStatus, error)
	// SetTitle renames a session and returns the title as it is stored. The
	// title it is given is never blank. Experimental.
	SetTitle func(ctx context.Context, c *AgentConn, id SessionID, title string) (string, error)

	// SetOption is asked before an option of a session changes, which the
	// client may ask for as an option, a mode or a model. The option and the
	// value exist. When it returns nil the value is in force, so this is the
	// place to save it. Nil lets everything change.
	SetOption func(ctx context.Context, s *AgentSession, id SessionConfigID, v SessionConfigOptionValue) error

	// AuthMethods are the ways to log in; Login is needed with them. They are
	// announced as they are, but methods that run in a terminal only to
	// clients that can do that.
	AuthMethods []AuthMethod
	// Login authenticates the client by one of AuthMethods.
	Login func(ctx context.Context, c *AgentConn, id AuthMethodID) error
	// Logout forgets the login. Nil advertises nothing in version 1; in version
	// 2, where it belongs to AuthMethods, it is answered as not found.
	Logout func(ctx context.Context, c *AgentConn) error
	// AuthStatus tells whether somebody is logged in. Experimental.
	AuthStatus func(ctx context.Context, c *AgentConn) (*AuthStatus, error)

	// ListProviders, SetProvider and DisableProvider manage the providers of
	// language models; all three are needed. Experimental.
	ListProviders   func(ctx context.Context, c *AgentConn) ([]ProviderInfo, error)
	SetProvider     func(ctx context.Context, c *AgentConn, p *ProviderSetting) error
	DisableProvider func(ctx context.Context, c *AgentConn, id ProviderID) error

	// Content says what prompts may hold besides text and links. A prompt with
	// anything else is refused.
	Content PromptContent
	// MCP says which MCP servers a session may bring. Others are refused, but
	// in version 1 stdio servers always are taken.
	MCP MCPTransports
	// AdditionalDirectories says that sessions may have more than one root.
	AdditionalDirectories bool
	// SystemPrompt says what a session may do to the system prompt.
	// Experimental.
	SystemPrompt SystemPromptSupport

	// Extensions registers handlers of methods that are not part of the
	// protocol, whose names begin with an underscore. It is called when a
	// client initializes, once for each version that is selected, and must not
	// use the connection. In the handlers [AgentConnFrom] gives the connection.
	Extensions func(mux *jsonrpc.Mux)

	// MinVersion and MaxVersion bound the protocol versions the agent speaks;
	// 0 means 1 and 2.
	MinVersion, MaxVersion int
	// NoLegacy refuses what only older drafts of the protocol knew: in version
	// 2 the methods authenticate, logout and session/load, in version 1
	// session/set_model.
	NoLegacy bool

	// Logger gets errors and panics of hooks and what is noticed on the wire,
	// never payload. If it is nil, errors and panics go to [slog.Default], and the
	// rest is discarded.
	Logger *slog.Logger
	// Engine holds the bounds, the middleware and the diagnosis of connections.
	// In an agent MaxRequests is 8,192 by default, so that prompts which wait for
	// their turn leave room for other requests, and BaseContext is the ctx of
	// Connect or Serve without its cancellation.
	Engine jsonrpc.Settings

	// prepare may change the configuration of a connection when the client is
	// known, before it is answered.
	prepare func(ctx context.Context, c *AgentConn) error
	// resumesOpen has ResumeSession called with sessions that are open, as they
	// are.
	resumesOpen bool
	// linger is [jsonrpc.Config.Linger].
	linger func(ctx context.Context)
}

// A SessionQuery asks for the sessions an agent knows.
type SessionQuery = acpv2.ListSessionsRequest

// A SessionPage is a part of the list of sessions.
type SessionPage = acpv2.ListSessionsResponse

// AuthStatus tells whether somebody is logged in, and who.
type AuthStatus = acpv2.AuthStatusResponse

// A ProviderSetting configures a provider of language models.
type ProviderSetting = acpv2.SetProviderRequest

// PromptContent says which content prompts may hold.
type PromptContent struct{ Image, Audio, EmbeddedContext bool }

// MCPTransports says which transports of MCP servers an agent can use. Version
// 1 obliges every agent to take stdio, so there it is taken in any case; SSE
// exists in version 1 only. ACP is experimental.
type MCPTransports struct{ Stdio, HTTP, SSE, ACP bool }

// SystemPromptSupport says what a session may do to the agent's system prompt.
type SystemPromptSupport int

// Degrees of support for system prompts.
const (
	SystemPromptNone     SystemPromptSupport = iota
	SystemPromptAppend                       // text may be appended
	SystemPromptOverride                     // it may also be replaced
)

// A BusyPolicy says what an agent does with a prompt that arrives while another
// prompt of its session runs.
type BusyPolicy int

const (
	// BusyQueue holds the prompt until those before it have ended.
	BusyQueue BusyPolicy = iota
	// BusyReject refuses it with a [Failure] whose Reason is "busy".
	BusyReject
	// BusySteer hands it to the running turn, which finds it in
	// [Turn.Steering]. In version 1 its request is answered when that turn
	// ends. What the turn did not take becomes the next turn.
	BusySteer
)

const (
	defaultMaxHeld     = 64
	defaultCancelGrace = 5 * time.Second
	lowestVersion      = 1
	highestVersion     = 2
)

// ready returns a copy of a with its defaults, or what is wrong with it.
func (a *Agent) ready() (*Agent, error) {
	c := *a
	if c.Info.Name == "" {
		c.Info.Name = "agent"
	}
	if c.Info.Version == "" {
		c.Info.Version = "0"
	}
	if c.MaxHeld <= 0 {
		c.MaxHeld = defaultMaxHeld
	}
	if c.CancelGrace <= 0 {
		c.CancelGrace = defaultCancelGrace
	}
	if c.Logger == nil {
		c.Logger = faultlog.New()
	}
	var err error
	if c.MinVersion, c.MaxVersion, err = versionRange(c.MinVersion, c.MaxVersion); err != nil {
		return nil, err
	}
	if c.prepare == nil {
		err = c.check()
	}
	return &c, err
}

// check reports hooks that do not make sense without each other.
func (a *Agent) check() error {
	providers := 0
	for _, set := range []bool{a.ListProviders != nil, a.SetProvider != nil, a.DisableProvider != nil} {
		if set {
			providers++
		}
	}
	switch {
	case a.Prompt == nil:
		return errors.New("acp: an Agent needs a Prompt hook")
	case (len(a.AuthMethods) > 0) != (a.Login != nil):
		return errors.New("acp: AuthMethods and Login need each other")
	case providers%3 != 0:
		return errors.New("acp: ListProviders, SetProvider and DisableProvider need each other")
	}
	return nil
}

func versionRange(lo, hi int) (int, int, error) {
	if lo == 0 {
		lo = lowestVersion
	}
	if hi == 0 {
		hi = highestVersion
	}
	if lo < lowestVersion || hi > highestVersion || lo > hi {
		return 0, 0, fmt.Errorf("acp: protocol versions %d to %d: there are %d to %d", lo, hi, lowestVersion, highestVersion)
	}
	return lo, hi, nil
}

// Serve serves one client until it leaves, which is not an error, or ctx is done.
// Then it closes the connection, as [AgentConn.Close] says, and returns the error
// of ctx. A program that wants to let turns end uses [Agent.Connect] and
// [AgentConn.Shutdown].
func (a *Agent) Serve(ctx context.Context, t Transport) error {
	c, err := a.Connect(ctx, t)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if err := c.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// Connect starts to serve a client and returns at once. Hooks see the values of
// ctx; cancelling it aborts only the opening of t. When the configuration is wrong,
// t is opened and closed, so that a peer that waits there finds its end, unless it
// is [Stdio].
func (a *Agent) Connect(ctx context.Context, t Transport) (*AgentConn, error) {
	cfg, err := a.ready()
	if err != nil {
		endTransport(ctx, t)
		return nil, err
	}
	stream, err := openTransport(ctx, t)
	if err != nil {
		return nil, err
	}
	return newAgentConn(ctx, cfg, stream), nil
}
