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
// Only Prompt is required. Everything else follows from the hooks that are set: a
// nil hook advertises nothing, or has the default that its documentation states.
// Hooks are called concurrently, each in its own goroutine. Their context is done
// when the client cancels the request or the turn, and when the connection ends.
// A hook's error is the answer to the request: a [*jsonrpc.Error] or a [*Failure]
// is sent as it is; any other error is sent as an internal error, and its text is
// only logged.
//
// An Agent is copied when it is used and may serve any number of connections.
type Agent struct {
	// Info names the agent. Its name and version are sent to the client; the
	// defaults are "agent" and "0".
	Info Implementation

	// Prompt runs a turn. t has the client's prompt, and sends the answer. Prompt
	// returns why the turn ended; an error ends the turn with that error. An
	// empty reason is sent as [StopEndTurn] in version 1, which requires one.
	//
	// When the client cancels, ctx is done and the turn ends as cancelled,
	// whatever Prompt returns. If Prompt has not returned within CancelGrace
	// after ctx is done, the turn is settled without it, and can send nothing
	// more.
	//
	// Advertised: always; it is required, unless there is a Queue hook.
	Prompt func(ctx context.Context, t *Turn) (StopReason, error)

	// Received is called with each prompt that may wait or run, as it comes in: in
	// order of arrival, one at a time for each session of a connection, and without
	// waiting for the prompts ahead of it. Agents that keep a queue of their own, or
	// show it, need not wait for Accept. Prompts that Busy, MaxHeld or Content refuse
	// are not seen.
	//
	// Accept and Prompt get the same Turn later, unless the prompt is cancelled, its
	// client leaves, or a running turn takes it. Turn.Context is done once the prompt
	// is over. An error refuses the prompt. The turn cannot send anything yet. Later
	// prompts of the session wait while Received runs, so it must return when its
	// context is done. Nil leaves prompts to the queue.
	//
	// Advertised: nothing.
	Received func(ctx context.Context, t *Turn) error

	// Accept decides whether a prompt becomes part of the conversation, also one
	// that would steer a running turn. The prompt is held while Accept runs, and
	// refused if it returns an error. Accept cannot send anything. Nil accepts
	// every prompt.
	//
	// Advertised: nothing.
	Accept func(ctx context.Context, t *Turn) error

	// Queue takes the place of Prompt, Received and Accept in an agent whose turns follow
	// a log: it decides in which order the prompts of several clients run, and sends each
	// client what the log has, turns of others included. Queue is called with each prompt
	// as Received is, and also with one that the client has cancelled since: it may be
	// one that was sent before. ctx is done when the session or the connection ends. An
	// error refuses the prompt, unless its turn has begun. If it returns nil, the agent calls
	// [QueuedPrompt.Begin] and [QueuedPrompt.End], each in its place among the updates of
	// the session. All updates are the agent's, also those that say what the user said
	// and that a turn runs or has ended; it sends them with [Output.Send] of the session.
	// That a turn runs is what the agent has sent last: [AgentSession.Turn] is nil, and
	// there is no CancelGrace. A prompt is ended without the agent only if the session is
	// closed, or the connection ends. Several prompts may be queued at once, as many as
	// MaxHeld allows. Experimental.
	//
	// Advertised: nothing.
	Queue func(ctx context.Context, q *QueuedPrompt) error

	// Busy says what happens to a prompt that arrives while another one of its
	// session runs.
	Busy BusyPolicy
	// MaxHeld bounds the prompts that wait in a session, not counting the running
	// one; 0 means 64. A connection holds at most 4,096 prompts, counting those
	// that run. A prompt beyond either bound is refused with a [Failure] whose
	// Reason is "busy". Each prompt is a request that is being handled, so the
	// engine's MaxRequests is 8,192 unless it is set.
	MaxHeld int

	// Cancel is called when a client cancels a session while this connection has no
	// prompt in it: the turn that runs, if any, is another client's. Prompts of this
	// connection are cancelled without it. Later messages of the session wait until
	// Cancel returns. Nil ignores such cancellations.
	//
	// Advertised: nothing.
	Cancel func(ctx context.Context, s *AgentSession)

	// Steer is called with a message that the client wants to be part of the turn that
	// runs, and returns what became of it. Its request waits for that. Nil leaves such
	// messages to [BusySteer].
	//
	// Advertised: steering, the extension "_session/steering" of the most used agents.
	// BusySteer advertises it, too.
	Steer func(ctx context.Context, s *AgentSession, r *SteerMessage) (SteerOutcome, error)

	// CancelGrace is how long a cancelled hook may take to return; 0 means 5 s.
	CancelGrace time.Duration

	// Initialize is called before the client's initialize request is answered. c
	// has the client's name, protocol version and capabilities. What Initialize
	// returns is sent as _meta of the answer. An error refuses the client.
	//
	// Advertised: nothing, except what it returns.
	Initialize func(ctx context.Context, c *AgentConn) (meta json.RawMessage, err error)

	// NewSession prepares a session before its id is sent to the client, for
	// example by setting its options, commands and Value. What the hook sends to
	// the session is held back until then. Nil accepts every session.
	//
	// Advertised: always.
	NewSession func(ctx context.Context, s *AgentSession) error
	// ResumeSession brings back a session that the agent has saved. s has the id
	// and what the client asked for. The hook must set its options, commands and
	// title again, as in NewSession. If replay is set, it must send the session's
	// history through s before it returns; what it sends is sent at once. For an
	// unknown id it returns [SessionNotFound]. The client chooses the id: do not
	// use it as a file name without checking it.
	//
	// With a Record hook, tool calls that the history leaves open, because the agent
	// ended while they ran, are reported as cancelled when the hook has returned, and
	// recorded as such. Calls that [AgentSession.SetBackground] names are not.
	//
	// A session that is open on this connection is resumed without calling the
	// hook, unless its history is to be replayed. Then s is another AgentSession
	// for the same session, for the history alone: it ends when the hook returns,
	// and what is set in it, such as Value and options, is ignored. In that case
	// [SessionNotFound] means that nothing has been saved yet.
	//
	// Without the hook, sessions that are open on this connection can be resumed
	// in version 2. Their replay is the latest 1 MiB of history, which is kept in
	// memory.
	//
	// Advertised: loading and resuming in version 1 if set; resuming in version 2
	// always.
	ResumeSession func(ctx context.Context, s *AgentSession, replay bool) error
	// Record is called with everything that a session sends, in the words of
	// version 2, in order and before it is sent. An agent that keeps its
	// conversations writes u down, and sends it again in ResumeSession. If Record
	// returns an error, u is not sent and the call that sends it fails with that
	// error. u must not be modified.
	//
	//	what              in Record
	//	prompts           a UserMessage with the id of [Turn.PromptID]; if Record
	//	                  fails, the turn fails without Prompt being called
	//	text              AgentMessageChunk and AgentThoughtChunk, as [Output.Say]
	//	                  and [Output.Think] are called
	//	ends of turns     an IdleStateUpdate with the stop reason, before the client
	//	                  learns of it. If Record fails, the turn fails; a turn that
	//	                  was cancelled stays so, and the error is logged
	//	calls left open   a ToolCallUpdate each, when their turn is cancelled
	//	client terminals  a TerminalUpdate when the command starts, and one with
	//	                  its output and exit status when the terminal is released.
	//	                  Clients are not sent these
	//	momentary things  included: see [IsMomentary]
	//	history           not included: what ResumeSession sends before it returns
	//	before the id     what NewSession and ForkSession send, once that is sent to
	//	                  the client
	//	subagents         included, with the session of [AgentSession.Child] as s
	//
	// Questions to the user are not updates; neither are the title and the options
	// that a client changes, see SetTitle and SetOption. A prompt that is received
	// from [Turn.Steering] is recorded if the agent sends it, with [Output.Send].
	// In version 1 updates that the client is not sent, such as states, are
	// recorded all the same.
	//
	// Record is called for one update of a session at a time, and concurrently for
	// different sessions. Sending waits for it. Record must not send in s or its
	// turns: that would wait for itself, and fails when the turn is given up or the
	// session has ended. The accessors of s and other sessions may be used. ctx is
	// done when nothing can be sent any more: when the turn was given up, or the
	// session has ended; cancelling a turn does not end it. What is sent after the
	// connection has ended may be recorded or not. A panic is an error.
	//
	// Nil keeps nothing; what a session without ResumeSession keeps in memory does
	// not depend on Record. Without Record, sending text does not allocate.
	//
	// Advertised: nothing.
	Record func(ctx context.Context, s *AgentSession, u SessionUpdate) error
	// ListSessions answers session/list. By default it lists the sessions that
	// are open on this connection. Sessions with another working directory than the
	// one that the client asks for are left out of what the hook returns. If it returns
	// all sessions in one page, cursors are refused before it is called with one;
	// otherwise it should refuse those that it has not handed out.
	//
	// Advertised: in version 1 if set; in version 2 always.
	ListSessions func(ctx context.Context, c *AgentConn, q *SessionQuery) (*SessionPage, error)
	// CloseSession is called, once, when the client has closed a session, or has given
	// up the request that opened it, after its turns have ended: they are cancelled,
	// and the cause of their contexts wraps both ErrCancelled and ErrSessionClosed.
	// Closing cannot be cancelled: ctx ends with the connection. An error is the
	// client's answer; the session is closed all the same. The hook is not called when
	// the connection ends; for clean-up that must always happen, use
	// [AgentSession.Context].
	//
	// Advertised: in version 1 if set, for which a hook that does nothing will do; in
	// version 2 always.
	CloseSession func(ctx context.Context, s *AgentSession) error
	// DeleteSession removes a saved session. If the session is open on this
	// connection, it has been closed before. For an unknown id the hook returns
	// [SessionNotFound]; as to file names, see ResumeSession.
	//
	// Advertised: in both versions if set.
	DeleteSession func(ctx context.Context, c *AgentConn, id SessionID) error

	// ForkSession fills a new session with the conversation of another.
	// Experimental.
	//
	// Advertised: in both versions if set.
	ForkSession func(ctx context.Context, s *AgentSession, from SessionID) error
	// ForkSessionAt is ForkSession up to a cursor that the agent has reported to clients, in a
	// CursorUpdate whose capabilities have fork. It fails if the cursor is unknown, or does
	// not offer that; nil refuses. Experimental.
	//
	// Advertised: never; the cursors are.
	ForkSessionAt func(ctx context.Context, s *AgentSession, from SessionID, at acpv2.CursorID) error
	// ArchiveSession archives a session, or takes it out of the archive if
	// archived is false. A session that is archived has been closed before.
	// Experimental.
	//
	// Advertised: in both versions if set.
	ArchiveSession func(ctx context.Context, c *AgentConn, id SessionID, archived bool) error
	// SessionStatus reports on sessions that are not open on this connection; for
	// open ones it is not called. Experimental.
	//
	// Advertised: in both versions if set.
	SessionStatus func(ctx context.Context, c *AgentConn, id SessionID) (SessionStatus, error)
	// SessionOptions tells which options a session would begin with, and which commands
	// it would have, without opening it: a new one, or the one with the id in q. It
	// opens, changes and sends nothing, and connects to no MCP server. For an unknown id
	// it returns [SessionNotFound].
	//
	// With it, clients may say which values options are to begin with. They are set once
	// NewSession, ForkSession or ResumeSession has returned, with SetOption; what an
	// option cannot have, or SetOption refuses, is left as it is. Experimental.
	//
	// Advertised: in both versions if set.
	SessionOptions func(ctx context.Context, c *AgentConn, q *OptionsQuery) (*OptionsPreview, error)
	// SetTitle renames a session and returns the title as it is stored. The title
	// it is given is never blank. Experimental.
	//
	// Advertised: in both versions if set.
	SetTitle func(ctx context.Context, c *AgentConn, id SessionID, title string) (string, error)

	// SetOption is called before an option of a session changes. The client may
	// ask for the change as an option, a mode or a model; the option and the
	// value exist. Once the hook returns nil, the value is in force, so this is
	// the place to save it. Nil allows every change. The hook is called
	// concurrently for requests that come at the same time; of these the one whose
	// hook returns last is in force, and the client is sent that in the end.
	//
	// Advertised: nothing; see [AgentSession.SetOptions].
	SetOption func(ctx context.Context, s *AgentSession, id SessionConfigID, v SessionConfigOptionValue) error

	// AuthMethods are the ways to log in; Login is required with them.
	//
	// Advertised: in both versions, terminal methods only to clients that support
	// them.
	AuthMethods []AuthMethod
	// Login authenticates the client by one of AuthMethods.
	//
	// Advertised: with AuthMethods.
	Login func(ctx context.Context, c *AgentConn, id AuthMethodID) error
	// Logout forgets the login.
	//
	// Advertised: in version 1 if set; in version 2 with AuthMethods, where a request
	// without the hook is answered as one for an unknown method.
	Logout func(ctx context.Context, c *AgentConn) error
	// AuthStatus reports whether somebody is logged in. Experimental.
	//
	// Advertised: in both versions if set.
	AuthStatus func(ctx context.Context, c *AgentConn) (*AuthStatus, error)

	// ListProviders, SetProvider and DisableProvider manage the providers of
	// language models. All three are required together. Experimental.
	//
	// Advertised: in both versions if set.
	ListProviders   func(ctx context.Context, c *AgentConn) ([]ProviderInfo, error)
	SetProvider     func(ctx context.Context, c *AgentConn, p *ProviderSetting) error
	DisableProvider func(ctx context.Context, c *AgentConn, id ProviderID) error

	// Content says what prompts may contain in addition to text and links. A
	// prompt with anything else is refused.
	//
	// Advertised: in both versions what is set.
	Content PromptContent
	// MCP says which MCP servers a session may have. Others are refused, except
	// that version 1 always accepts servers on standard streams.
	//
	// Advertised: in both versions what is set; stdio in version 2 only.
	MCP MCPTransports
	// AdditionalDirectories says that sessions may have more than one root.
	//
	// Advertised: in both versions if set.
	AdditionalDirectories bool
	// SystemPrompt says how a session may change the system prompt. Experimental.
	//
	// Advertised: in both versions unless it is [SystemPromptNone].
	SystemPrompt SystemPromptSupport

	// Extensions registers handlers of methods that are not part of the protocol,
	// whose names begin with an underscore. It is called when a client
	// initializes, once for each version that is selected, and must not use the
	// connection. In the handlers, [AgentConnFrom] returns the connection.
	//
	// Advertised: nothing; Initialize can do that.
	Extensions func(mux *jsonrpc.Mux)

	// Middleware stands around everything that clients ask of the agent, the first
	// outermost: every request that has a handler, and every turn. It is written once
	// for both versions, for logging, metrics or refusing for example. It runs inside
	// Engine.Incoming, which is for work on the protocol: that sees the messages of
	// each version, notifications too, and in version 2 the answer to a prompt
	// instead of the end of its turn.
	//
	// Advertised: nothing.
	Middleware []Middleware

	// MinVersion and MaxVersion bound the protocol versions the agent speaks;
	// 0 means 1 and 2.
	MinVersion, MaxVersion int
	// NoLegacy refuses methods that only older drafts of the protocol had:
	// authenticate, logout and session/load in version 2, and session/set_model
	// in version 1.
	NoLegacy bool

	// Logger gets errors and panics of hooks and diagnostics of the wire, never
	// payload. If it is nil, errors and panics go to [slog.Default], and the rest
	// is discarded.
	Logger *slog.Logger
	// Engine holds the bounds, the middleware and the diagnostics of connections.
	// In an agent MaxRequests is 8,192 by default, so that prompts that wait
	// leave room for other requests, and BaseContext is the ctx of Connect or
	// Serve without its cancellation.
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

// AuthStatus says whether somebody is logged in, and who.
type AuthStatus = acpv2.AuthStatusResponse

// A ProviderSetting configures a provider of language models.
type ProviderSetting = acpv2.SetProviderRequest

// PromptContent says which content prompts may contain.
type PromptContent struct {
	Image, Audio, EmbeddedContext bool
	// Skill says that the first block may be a skill, a SkillReference, and SkillInline
	// that skills may be anywhere, any number of them. Version 1 has none. Experimental.
	Skill, SkillInline bool
}

// MCPTransports says which transports of MCP servers an agent can use. Version 1
// requires every agent to accept stdio; SSE exists in version 1 only. ACP is
// experimental.
type MCPTransports struct{ Stdio, HTTP, SSE, ACP bool }

// SystemPromptSupport says how a session may change the agent's system prompt.
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
	// BusySteer hands it to the running turn, which receives it from
	// [Turn.Steering]. In version 1 its request is answered when that turn ends.
	// If the turn does not receive it, it becomes the next turn.
	//
	// A client may also send the extension request "_session/steering", which the
	// agent advertises. It is answered when the turn receives the message, or has
	// ended without it: then the client sends it as a prompt. Accept sees such a
	// message as it sees a prompt, Received does not.
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
	case a.Prompt == nil && a.Queue == nil:
		return errors.New("acp: an Agent needs a Prompt hook")
	case a.Queue != nil && (a.Prompt != nil || a.Accept != nil || a.Received != nil || a.Busy != BusyQueue):
		return errors.New("acp: Queue takes the place of Prompt, Accept and Received, and of Busy")
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
// In the latter case it closes the connection, as [AgentConn.Close] describes,
// and returns the error of ctx. To let turns end first, use [Agent.Connect] and
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

// Connect starts to serve a client and returns at once. Hooks see ctx's values.
// Cancelling ctx aborts only the opening of t. If the configuration is invalid, t
// is opened and closed, so that a waiting peer notices the end, unless t is
// [Stdio].
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
