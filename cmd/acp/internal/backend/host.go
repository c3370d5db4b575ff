// Package backend connects the program to an agent the way the user has set it up,
// and keeps the conversations: every frontend, a screen, lines or a script, is
// told the same things by it.
package backend

import (
	"context"
	"log/slog"
	"os/exec"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/mcp"
	"github.com/goacp/acp/cmd/acp/internal/remembered"
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
	// MCPConnect is the command that connects agents to HTTP servers: see [mcp.Options]. Empty is
	// this program.
	MCPConnect []string
	// Policy answers permission requests; its Ask and Audit are set by the Host. Nil asks about
	// everything.
	Policy *acphost.Policy
	// Obeys says that the agent holds itself to the Policy, as the built-in one does: what it tells of
	// its tool calls is not held against it.
	Obeys bool
	// Store keeps the conversations; nil keeps nothing.
	Store *store.Store
	Front Frontend
	// Connect bounds starting the agent, 0 is 60 s; after Slow, 0 is 3 s, the
	// frontend is told that it takes long.
	Connect, Slow time.Duration
	// Memory has what was learned about agents; nil learns nothing.
	Memory *remembered.Memory
	// AutoLogin lets the Host log in by itself, once, where that needs nobody: see
	// [Frontend.ChooseLogin].
	Logger *slog.Logger
}

// A Frontend is how the user sees an agent. All members may be nil. They may be
// called from several goroutines.
type Frontend struct {
	// Changed tells what is new in a session, after it was written to the store, if that took no longer
	// than a tenth of a second: see
	// [Session.Snapshot]. What happens in quick succession comes in one call. Calls for a
	// session come one at a time, and hold up what follows; it must not wait for the end of a turn.
	Changed func(s *Session, changes []transcript.Change)
	// Ask asks the user for permission; it returns the id of an option, or "". Nil
	// denies whatever the policy does not decide, and tells Denied.
	Ask func(ctx context.Context, s *Session, req acphost.Request) (acp.PermissionOptionID, error)
	// Decided tells how a permission request was answered.
	Decided func(s *Session, rec acphost.Record, req acphost.Request)
	// Unheld tells, once in a session, that rules which deny or ask cannot hold the agent, and why: in
	// a line for people, which is in the conversation as well. Of agents that speak version 2 it is
	// told with the first prompt: see [Host.Unheld].
	Unheld func(s *Session, why string)
	// Broken tells that the agent did something that a rule denies. It is in the conversation as well.
	Broken func(s *Session, b Breach)
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
	NoteBridged  NoteKind = "bridged"  // an MCP server is reached in a roundabout way, or fails there: Err
	NoteStderr   NoteKind = "stderr"   // a line the agent, or an MCP server bridged for it, wrote there
	// NoteStore, with an Err that is ErrUnwritten, says that a conversation cannot be written at the
	// moment, and without Err that everything is written again. With another Err something is lost.
	NoteStore  NoteKind = "store"
	NoteSilent NoteKind = "silent" // a turn has ended in which the agent said and did nothing; the conversation has a notice of it
	NoteNoise  NoteKind = "noise"  // something that the agent wrote was ignored: lines that are no messages, told once for each start of the agent, or messages that cannot be read
	NoteEnded  NoteKind = "ended"  // the agent has ended
)

// A Note is something that goes on with the agent.
type Note struct {
	Kind NoteKind
	Text string // for people, one line without control characters
	Err  error
}
