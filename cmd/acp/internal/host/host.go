// Package host connects the program to an agent the way the user has set it up,
// and keeps the conversations: every frontend, a screen, lines or a script, is
// told the same things by it.
package host

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/mcp"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// Config is what a Host is opened with.
type Config struct {
	Agent roster.Agent
	// BuiltIn serves the built-in agent, if that is what Agent is.
	BuiltIn *acp.Agent
	Info    acp.Implementation // of this program
	Cwd     string             // of sessions, absolute
	Roots   []string           // further directories, absolute
	MCP     []mcp.Server       // that sessions get
	// Policy answers permission requests; its Ask and Audit are set by the Host. Nil asks about
	// everything.
	Policy *acphost.Policy
	// Store keeps the conversations; nil keeps nothing.
	Store *store.Store
	Front Frontend
	// Connect bounds starting the agent, 0 is 60 s; after Slow, 0 is 3 s, the
	// frontend is told that it takes long.
	Connect, Slow time.Duration
	// AutoLogin lets the Host log in by itself, once, where that needs nobody: see
	// [Frontend.ChooseLogin].
	Logger *slog.Logger
}

// A Frontend is how the user sees an agent. All members may be nil. They may be
// called from several goroutines.
type Frontend struct {
	// Changed tells what is new in a session, after it is in the store: see
	// [Session.Snapshot]. What happens in quick succession comes in one call. Calls for a
	// session come one at a time, and hold up what follows.
	Changed func(s *Session, changes []transcript.Change)
	// Ask asks the user for permission; it returns the id of an option, or "". Nil
	// denies whatever the policy does not decide, and tells Denied.
	Ask func(ctx context.Context, s *Session, req acphost.Request, wire *acp.PermissionRequest) (acp.PermissionOptionID, error)
	// Decided tells how a permission request was answered.
	Decided func(s *Session, rec acphost.Record, req acphost.Request)
	// Elicit asks the user for input. s is nil if it belongs to no session. Nil offers no
	// elicitation.
	Elicit func(ctx context.Context, s *Session, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error)
	// ElicitDone tells that what an elicitation sent the user to is done.
	ElicitDone func(id acp.ElicitationID)
	// ChooseLogin asks how to log in, of several ways or when the one there is needs the user.
	// Nil fails with an [*AuthError] unless one way needs nobody.
	ChooseLogin func(ctx context.Context, agent acp.Implementation, methods []acp.AuthMethod) (acp.AuthMethodID, error)
	// RunInTerminal gives the user's terminal to a program that logs in, and returns when that
	// has ended. Nil offers no such way to log in.
	RunInTerminal func(ctx context.Context, cmd *exec.Cmd) error
	// Note tells what goes on with the agent: see [Note].
	Note func(Note)
}

// A NoteKind says what a Note is about.
type NoteKind string

// The kinds of notes.
const (
	NoteStarting NoteKind = "starting" // the agent is being started
	NoteSlow     NoteKind = "slow"     // it takes long, though its process lives
	NoteReady    NoteKind = "ready"    // it can be talked to
	NoteLogin    NoteKind = "login"    // a login is being made
	NoteBridged  NoteKind = "bridged"  // an MCP server is reached in a roundabout way
	NoteStderr   NoteKind = "stderr"   // a line the agent wrote there
	NoteStore    NoteKind = "store"    // conversations cannot be kept any longer
	NoteEnded    NoteKind = "ended"    // the agent has ended
)

// A Note is something that goes on with the agent.
type Note struct {
	Kind NoteKind
	Text string // for people, one line without control characters
	Err  error
}

// An AuthError says that the agent wants a login first and how that could be done.
type AuthError struct {
	Agent   string
	Methods []acp.AuthMethod
	Err     error // what the agent answered
}

// Error names the ways to log in.
func (e *AuthError) Error() string { return e.Agent + " wants a login" }

// Unwrap returns what the agent answered.
func (e *AuthError) Unwrap() error { return e.Err }

// A Host is a connection to an agent with everything the user has set up. Its methods may
// be called from any goroutine. Close ends the agent.
type Host struct{}

// Open starts the agent and agrees on a version. When it fails nothing is left running.
func Open(ctx context.Context, cfg Config) (*Host, error) { return nil, errors.ErrUnsupported }

// Conn returns the present connection, which a login may replace.
func (h *Host) Conn() *acp.ClientConn { return nil }

// NewSession opens a session. If the agent wants a login that is made and the session is
// asked for once more.
func (h *Host) NewSession(ctx context.Context) (*Session, error) { return nil, errors.ErrUnsupported }

// Restore brings a session back: with the history from the agent if it tells it, else from the
// store. It says how the agent came by it; [acp.RestoredNew] is a new session, and the history
// from the store, if there is any, is then shown but not known to the agent.
func (h *Host) Restore(ctx context.Context, id acp.SessionID) (*Session, acp.Restored, error) {
	return nil, 0, errors.ErrUnsupported
}

// Session returns an open session by its id; also those of subagents, once something
// happened in them.
func (h *Host) Session(id acp.SessionID) (*Session, bool) { return nil, false }

// Login logs in by one of the agent's ways, which may need the user.
func (h *Host) Login(ctx context.Context, id acp.AuthMethodID) error { return errors.ErrUnsupported }

// Done is closed when the agent has ended, or Close was called.
func (h *Host) Done() <-chan struct{} { return nil }

// Err says why the agent has ended; nil before.
func (h *Host) Err() error { return nil }

// Close ends the agent, after everything it has told is in the store.
func (h *Host) Close() error { return nil }

// Kill ends the agent at once, without waiting for its turn.
func (h *Host) Kill() {}

// A Session is a conversation with the agent. Its methods may be called from any goroutine.
type Session struct{}

// ID returns the agent's id of the session.
func (s *Session) ID() acp.SessionID { return "" }

// Client returns the session for everything that has no method here: options, title, cancel of
// tool calls. After a login that started the agent anew it is another one.
func (s *Session) Client() *acp.ClientSession { return nil }

// Host returns the host it belongs to.
func (s *Session) Host() *Host { return nil }

// Snapshot returns the conversation as it is in the store and can be shown.
func (s *Session) Snapshot() *transcript.Snapshot { return nil }

// Prompt sends a prompt and waits for the end of its turn. When it returns, everything of the
// turn is in the store and was told to [Frontend.Changed]. Several may be in flight: the agent
// says what becomes of the later ones.
// When ctx is done the turn is cancelled, and waited for no longer than the client's grace.
func (s *Session) Prompt(ctx context.Context, content ...acp.ContentBlock) (*acp.Result, error) {
	return nil, errors.ErrUnsupported
}

// Cancel asks the agent to end the turns that are running.
func (s *Session) Cancel(ctx context.Context) error { return errors.ErrUnsupported }
