// Package backend connects the program to an agent as the settings say, and keeps the
// conversations. Every frontend, be it a screen, lines or a script, learns the same from it.
//
// A [Host] owns a connection and its sessions: the agent's process, the journal of each session,
// what is lent to the agent, logins and permission. What it shows was kept before, and what waits
// to be shown is bounded for each session. Close or Kill ends all of it.
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

// Config configures a Host.
type Config struct {
	Agent roster.Agent
	// BuiltIn serves the built-in agent, if Agent is that one.
	BuiltIn *acp.Agent
	Info    acp.Implementation // of this program
	Cwd     string             // of sessions, absolute
	Roots   []string           // further directories, absolute
	MCP     []mcp.Server       // of each session
	Choices *Choices           // for the options of sessions; nil for none
	// MCPConnect is the command that connects agents to HTTP servers: see [mcp.Options]. Empty
	// means this program.
	MCPConnect []string
	// Policy answers permission requests; the Host asks its own questions with a copy. Nil asks
	// about everything.
	Policy *acphost.Policy
	// Environ is the environment of terminals that are lent, and of the commands of ready-made proxies; nil means that
	// of this process.
	Environ []string
	// Obeys says that the agent applies the Policy itself, as the built-in one does: what it
	// reports of its tool calls is not compared with the rules.
	Obeys bool
	// Store keeps the conversations; nil keeps nothing. By is kept with them: see [store.Session].
	Store *store.Store
	By    string
	Front Frontend
	// Returns has a connection to a gateway opened again when it breaks, and what was asked sent again: see [relay.Steady].
	// The sessions notice nothing but the pause, which a [NoteOutage] tells. Without it a connection that broke ends the Host.
	Returns bool
	// Connect bounds starting the agent; 0 means 60 s. After Slow, where 0 means 3 s, the frontend
	// is informed that it takes long.
	Connect, Slow time.Duration
	// Memory has what was learned about agents; nil learns nothing.
	Memory *remembered.Memory
	// AutoLogin lets the Host log in itself, once, if that does not need the user: see
	// [Frontend.ChooseLogin].
	Logger *slog.Logger
}

// A Frontend is how the user sees an agent. All fields may be nil. The functions may be called from
// several goroutines.
type Frontend struct {
	// Changed is called with what is new in a session, after that was written to the store, or
	// after a tenth of a second if writing takes longer: see [Session.Snapshot]. Changes in quick
	// succession come in one call. Calls for a session come one at a time, and what follows waits
	// for them; Changed must not wait for the end of a turn.
	Changed func(s *Session, changes []transcript.Change)
	// Ask asks the user for permission and returns the id of an option, or "". Nil denies whatever
	// the policy does not decide, and reports that as Denied.
	Ask func(ctx context.Context, s *Session, req acphost.Request) (acp.PermissionOptionID, error)
	// Aside is called with each question of a gateway, and reports whether it is left to other clients: then nothing answers it
	// here, neither a rule nor Ask. Nil leaves none.
	Aside func() bool
	// Decided is called when a permission request was answered.
	Decided func(s *Session, rec acphost.Record, req acphost.Request)
	// Unheld is called, once in a session, if rules which deny or ask cannot hold the agent, with
	// the reason in a line for people, which is also in the conversation. For agents that speak
	// version 2 it is called with the first prompt: see [Host.Unheld].
	Unheld func(s *Session, why string)
	// Broken is called if the agent did something that a rule denies, which is also in the
	// conversation.
	Broken func(s *Session, b Breach)
	// Elicit asks the user for input. s is nil if the question belongs to no session. Nil offers no
	// elicitation.
	Elicit func(ctx context.Context, s *Session, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error)
	// ElicitDone is called when the user has done what an elicitation was for.
	ElicitDone func(id acp.ElicitationID)
	// ChooseLogin asks how to log in, if there are several ways or the only one needs the user. If
	// it is nil, logging in fails with an [*AuthError] unless one way does not need the user.
	ChooseLogin func(ctx context.Context, agent acp.Implementation, methods []acp.AuthMethod) (acp.AuthMethodID, error)
	// RunInTerminal gives the user's terminal to a program that logs in, and returns when that has
	// ended. Nil offers no such way to log in.
	RunInTerminal func(ctx context.Context, cmd *exec.Cmd) error
	// Suggests says that the user is offered the prompts that the agent suggests, as far as they are text: see
	// [Session.Suggestions].
	Suggests bool
	// Cursors has agents of version 1 say where a session can be forked, as those of version 2 do: see [Session.Cursors].
	Cursors bool
	// Note is called with what happens to the agent: see [Note].
	Note func(Note)
}

// A NoteKind says what a Note is about.
type NoteKind string

// The kinds of notes.
const (
	NoteStarting NoteKind = "starting" // the agent is being started
	NoteSlow     NoteKind = "slow"     // it takes long, though its process lives
	NoteReady    NoteKind = "ready"    // it is ready for sessions
	NoteLogin    NoteKind = "login"    // a login has begun
	NoteBridged  NoteKind = "bridged"  // an MCP server is reached through a bridge, or fails there: Err
	NoteStderr   NoteKind = "stderr"   // a line that the agent, or an MCP server bridged for it, wrote to standard error
	// NoteStore, with an Err that is ErrUnwritten, says that a conversation cannot be written at
	// the moment, and without Err that everything is written again. With any other Err something is
	// lost.
	NoteStore  NoteKind = "store"
	NoteSilent NoteKind = "silent" // a turn has ended in which the agent said and did nothing; the conversation has a notice of it
	NoteNoise  NoteKind = "noise"  // something that the agent wrote was ignored: lines that are not messages, reported once for each start of the agent, or messages that cannot be read
	NoteEnded  NoteKind = "ended"  // the agent has ended
	// NoteOutage says that an agent, or a gateway, cannot be reached at the moment, which is tried again: Err. Without
	// Err, it is reached again. What was sent in between is kept and arrives, unless the connection ends.
	NoteOutage NoteKind = "outage"
	// These come from a gateway, and are about a session. NoteHere has the others who are attached, or "". NoteQueued
	// says that a prompt is kept there, and its text what comes before it, or "".
	NoteHere    NoteKind = "here"
	NoteDecided NoteKind = "decided" // somebody else has answered a question of the agent
	NoteQueued  NoteKind = "queued"
	// NoteBegun says that a prompt of this client begins at a gateway; its text is the ID of the message that follows, and belongs
	// to the prompt.
	NoteBegun NoteKind = "begun"
)

// A Note is something that happens to the agent.
type Note struct {
	Kind NoteKind
	Text string // for people, one line without control characters
	Err  error
	// Session is what the note is about, if it is one.
	Session acp.SessionID
	// Role is what the user is in the session, for a NoteHere: "viewer", for example.
	Role string
}
