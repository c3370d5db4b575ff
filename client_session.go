package acp

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/skills"
	"github.com/goacp/acp/internal/timeline"
	"github.com/goacp/acp/internal/told"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/jsonrpc"
)

// A ClientSession is a client's end of a session. [ClientConn.NewSession] and the
// like make it. It is safe for concurrent use. Its accessors reflect every update
// handled so far, including the one a running Update hook is processing. After
// [ClientSession.Close], and when the connection has ended, its methods fail with
// [ErrSessionClosed] or [jsonrpc.ErrClosed].
type ClientSession struct {
	conn   *ClientConn
	id     SessionID
	parent *ClientSession // of a subagent's session; set before it is known to anybody
	calls  *told.Calls    // likewise
	line   timeline.Line[clientItem]

	waiting atomic.Int32 // calls about the session
	opening int          // resumes and loads under way, of the connection's mu

	// Of whoever delivers:
	v1      translate.FromV1
	scratch []acpv2.SessionUpdate
	text    *clientText // the next one, or nil
	turns   clientTurns

	mu        sync.Mutex
	cfg       SessionConfig // as last opened
	meta      json.RawMessage
	replay    clientReplaying
	opened    bool // some answer has opened it
	closed    error
	forgotten bool // nobody is interested in its updates any more
	state     clientState
	said      clientSaid
	mentioned clientMentions
	clientPrompts
	ends      map[string]*clientEnd // requests under way that end the session, by method
	asked     map[*clientAsk]struct{}
	withdrawn time.Time // when all that were asked were last
	steering  clientSteering
	modesV1   clientModesV1
	rejected  []RejectedOption
}

// clientPrompts are the prompts of a session.
type clientPrompts struct {
	replies  []*Reply // in flight, by age; never changed in place
	cut      []*Reply // that were in flight when the connection broke
	prompted uint64   // makes up ids of the user's messages
	sent     uint64   // how many went out
}

// clientReplaying is what is known of a session's history while it is being sent.
type clientReplaying struct {
	until   clientReplay
	begins  bool // nothing of it has been delivered
	arrives bool // it is not over as far as messages have arrived

	complete bool // the agent has said that it is over
}

// clientReplay says whether updates are history.
type clientReplay uint8

const (
	clientLive clientReplay = iota
	clientReplayUntilAnswer
	clientReplayUntilState
)

// endsReplay reports whether an update is the state in which a session of version 2 is after its history (S89), and not
// the end of a turn in that.
func endsReplay(u SessionUpdate) bool {
	idle, isIdle := u.(*IdleStateUpdate)
	_, isState := u.(StateUpdate)
	return isState && !(isIdle && idle.StopReason != "")
}

func (c *ClientConn) newSession(id SessionID, cwd string) *ClientSession {
	s := &ClientSession{conn: c, id: id, cfg: SessionConfig{Cwd: cwd}, calls: new(told.Calls)}
	s.v1.OutputAppends = c.Agent().Name == clientAppendsV1
	s.line.Init(timeline.Config[clientItem]{
		Deliver: s.deliver, Context: c.ctx, Spawn: c.spawn, Detours: c.middleware, Owner: s,
	})
	return s
}

// ID returns the session's id.
func (s *ClientSession) ID() SessionID { return s.id }

// Conn returns the connection the session is open on.
func (s *ClientSession) Conn() *ClientConn { return s.conn }

// Cwd returns the working directory the session was last opened with.
func (s *ClientSession) Cwd() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.Cwd
}

// Meta returns _meta of the answer that last opened the session, or nil.
func (s *ClientSession) Meta() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meta
}

// deliverV1 delivers an update of version 1, as one or more of version 2.
func (s *ClientSession) deliverV1(ctx context.Context, n *acpv1.SessionNotification, frame uint64) {
	if s.text == nil {
		s.text = new(clientText)
	}
	if text := s.text; s.v1.Text(&text.chunk, n.Update) {
		s.text = nil
		u := &text.update
		u.Session, u.Update, u.V1, u.Frame = s, &text.chunk.AgentMessageChunk, n, frame
		s.emit(ctx, u)
		return
	}
	s.scratch = s.v1.Append(s.scratch[:0], n.Update)
	for i, u := range s.scratch {
		s.scratch[i] = nil
		s.emit(ctx, &Update{Session: s, Update: u, V1: n, Frame: frame})
	}
}

// deliverV2 delivers an update of version 2.
func (s *ClientSession) deliverV2(ctx context.Context, n *acpv2.UpdateSessionNotification, frame uint64) {
	u := n.Update
	if old, ok := u.(*acpv2.UnknownSessionUpdate); ok && old.Type == "state_change" {
		u = clientStateChange(old)
	}
	s.emit(ctx, &Update{Session: s, Update: u, V2: n, Frame: frame})
}

// clientText is a text update of the agent's, allocated at once. Allocating
// several at a time would be cheaper still, but an update that is kept must not
// keep others alive (ADR 0016).
type clientText struct {
	update Update
	chunk  translate.TextChunk
}

// emit passes an update to the hook and to the replies in flight.
func (s *ClientSession) emit(ctx context.Context, u *Update) {
	s.mu.Lock()
	if s.forgotten {
		s.mu.Unlock()
		return
	}
	text, isText := u.Update.(*AgentMessageChunk) // by far the most
	if isText {
		u.Created = s.mentioned.first(aboutAgentMessage, string(text.MessageID))
	} else {
		u.Created = s.mentioned.see(u.Update)
		if s.replay.until == clientReplayUntilState && endsReplay(u.Update) {
			s.replay.until = clientLive
		}
		s.state.apply(u.Update)
	}
	if _, over := u.Update.(*acpv2.ReplayComplete); over && s.replay.until != clientLive {
		s.replay.complete, s.replay.until = true, clientLive
	}
	u.Replayed = s.replay.until != clientLive && !u.Synthetic
	if !isText {
		s.noticeSteering(u)
	}
	if u.Replayed && s.replay.begins {
		s.replay.begins, u.Restarts = false, true
	}
	if u.V2 != nil {
		if isText {
			s.said.chunk(text)
		} else if m, ok := u.Update.(*AgentMessage); ok {
			u.added = s.said.whole(m)
		}
	}
	replies := s.replies
	s.mu.Unlock()
	if h := s.conn.client.Update; h != nil {
		s.tell(func() { h(ctx, s, u) })
	}
	s.turns.seq++
	for _, r := range replies {
		r.push(ctx, u, s.turns.seq)
	}
	if u.V2 != nil {
		s.turns.see(s, u, replies)
	}
}

// tell calls the Update hook. The engine itself knows of hooks that run in
// handlers.
func (s *ClientSession) tell(call func()) {
	c := s.conn
	if s.line.Apart() {
		c.hooksApart.Add(1)
		defer c.hooksApart.Add(-1)
	}
	c.hook("Update", call)
}

// usable returns why the session cannot be used, or nil.
func (s *ClientSession) usable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close asks the agent to stop everything in the session and release it. Updates
// that still arrive are handled first; then prompts in flight fail with
// [ErrSessionClosed]. A session that the agent no longer knows counts as closed.
//
// Closing cannot be taken back: if ctx is done first, Close returns its error, and
// the session is closed all the same once the agent has answered.
//
// An agent of version 1 need not support closing. If it does not, it is asked to
// cancel the prompts in flight, and the session is closed on this side only: its
// prompts fail at once, its terminals are released, and later updates for it are
// ignored.
func (s *ClientSession) Close(ctx context.Context) error { return s.conn.CloseSession(ctx, s.id) }

// Delete removes the session from the agent's list: see [ClientConn.Delete].
func (s *ClientSession) Delete(ctx context.Context) error { return s.conn.Delete(ctx, s.id) }

// Fork opens a new session from a copy of this one: see [ClientConn.Fork].
// Experimental.
func (s *ClientSession) Fork(ctx context.Context, cfg SessionConfig) (*ClientSession, error) {
	return s.conn.Fork(ctx, s.id, cfg)
}

// ForkAt opens a new session from a copy of this one up to a cursor: see
// [ClientConn.ForkAt]. Experimental.
func (s *ClientSession) ForkAt(ctx context.Context, at acpv2.CursorID, cfg SessionConfig) (*ClientSession, error) {
	return s.conn.ForkAt(ctx, s.id, at, cfg)
}

// SetTitle gives the session a title and returns the title as the agent stored
// it. Experimental.
func (s *ClientSession) SetTitle(ctx context.Context, title string) (string, error) {
	return s.conn.SetTitle(ctx, s.id, title)
}

// SetOption changes one of the session's options. When it returns,
// [ClientSession.Options] reflects the change. In version 1, modes and models
// that are not options there are changed by their own methods.
func (s *ClientSession) SetOption(ctx context.Context, id SessionConfigID, value SessionConfigOptionValue) error {
	if err := s.usable(); err != nil {
		return err
	}
	if findOption(s.Options(), id) == nil {
		return unsupported("option " + string(id))
	}
	var after clientOptions
	return s.ordered(ctx, func(opt jsonrpc.CallOption) (err error) {
		after, err = s.conn.proto().setOption(ctx, s, id, value, opt)
		return err
	}, func(context.Context) { s.setOptions(after(s.Options())) })
}

// SetMode changes the option for the mode that the agent works in.
func (s *ClientSession) SetMode(ctx context.Context, id SessionConfigValueID) error {
	option, ok := translate.ModeOptionID(s.Options())
	if !ok {
		return unsupported("modes")
	}
	return s.SetOption(ctx, option, &SessionConfigOptionValueID{Value: id})
}

// SetModel changes the option for the model that the agent uses.
func (s *ClientSession) SetModel(ctx context.Context, id SessionConfigValueID) error {
	option, ok := translate.ModelOptionID(s.Options())
	if !ok {
		return unsupported("models")
	}
	return s.SetOption(ctx, option, &SessionConfigOptionValueID{Value: id})
}

// setOptions replaces the options. Whoever delivers calls it.
func (s *ClientSession) setOptions(options []SessionConfigOption) {
	s.v1.SetOptions(options)
	s.mu.Lock()
	s.state.options = options
	s.mu.Unlock()
}

// CancelToolCall asks the agent to stop a tool call that is marked as
// cancellable. An update reports its end. Version 2 only.
func (s *ClientSession) CancelToolCall(ctx context.Context, id ToolCallID) error {
	if err := s.usable(); err != nil {
		return err
	}
	s.mu.Lock()
	ok := s.state.toolCalls.has(string(id))
	s.mu.Unlock()
	if !ok {
		return unsupported("cancelling tool call " + string(id))
	}
	defer s.calling()()
	return s.conn.explain(s.conn.proto().cancelToolCall(ctx, s.id, id))
}

// CancelTerminal asks the agent to stop the command in one of its own terminals
// that is marked as cancellable. Version 2 only.
func (s *ClientSession) CancelTerminal(ctx context.Context, id TerminalID) error {
	if err := s.usable(); err != nil {
		return err
	}
	s.mu.Lock()
	ok := s.state.terminals.has(string(id))
	s.mu.Unlock()
	if !ok {
		return unsupported("cancelling terminal " + string(id))
	}
	defer s.calling()()
	return s.conn.explain(s.conn.proto().cancelTerminal(ctx, s.id, id))
}

// Options returns the session's options with their values. In version 1 they
// include the modes, and the models of older agents.
func (s *ClientSession) Options() []SessionConfigOption {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.state.options)
}

// Option returns the value of an option that is chosen from a list, or "".
func (s *ClientSession) Option(id SessionConfigID) SessionConfigValueID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return optionValue(s.state.options, id)
}

// OptionOn returns the value of an option that is on or off.
func (s *ClientSession) OptionOn(id SessionConfigID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return optionOn(s.state.options, id)
}

// Mode returns the mode the agent works in, or "" if it has none: the value that
// [ClientSession.SetMode] sets.
func (s *ClientSession) Mode() SessionConfigValueID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := translate.ModeOptionID(s.state.options); ok {
		return optionValue(s.state.options, id)
	}
	return ""
}

// Model returns the model the agent uses, or "" if it does not say: the value that
// [ClientSession.SetModel] sets.
func (s *ClientSession) Model() SessionConfigValueID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := translate.ModelOptionID(s.state.options); ok {
		return optionValue(s.state.options, id)
	}
	return ""
}

// Command returns the command that the user types as /name. ok is false if there is
// none.
func (s *ClientSession) Command(name string) (command *SlashCommand, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.state.commands {
		if c, ok := c.(*SlashCommand); ok && c.Name == name {
			return c, true
		}
	}
	return nil, false
}

// Commands returns the commands the user can type: *[SlashCommand] values, and
// others that this package does not know.
func (s *ClientSession) Commands() []AvailableCommand {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.state.commands)
}

// UseSkills returns the content of a prompt as the user has typed it, in which /name at the
// beginning invokes the skill of that name, if the agent has announced one: as a
// SkillReference. If the agent takes skills anywhere in a prompt, so does /name as any word
// of a text. Other content is returned as it is. There are no skills unless [Client.Skills]
// is set. Experimental.
func (s *ClientSession) UseSkills(content []ContentBlock) []ContentBlock {
	caps := s.conn.Capabilities().Session
	if caps == nil || caps.Prompt == nil || caps.Prompt.Skill == nil {
		return content
	}
	s.mu.Lock()
	commands := s.state.commands
	s.mu.Unlock()
	return skills.Refer(content, func(name string) bool { return hasSkill(commands, name) }, caps.Prompt.Skill.Inline != nil)
}

// hasSkill reports whether a skill is among the commands of a session.
func hasSkill(commands []AvailableCommand, name string) bool {
	return slices.ContainsFunc(commands, func(c AvailableCommand) bool {
		skill, ok := c.(*acpv2.Skill)
		return ok && skill.Name == name
	})
}

// Suggestions returns the prompts that the agent suggests at present, the most likely
// first: none until it has, and none if it has withdrawn them. The history has none. The
// caller skips those that it cannot offer, and must not change the content of the others.
// The agent suggests nothing unless [Client.Suggestions] is set. Experimental.
func (s *ClientSession) Suggestions() []acpv2.PromptSuggestion {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.state.suggested)
}

// Cursors returns the positions in the session that the agent has reported, in the order
// in which it has: each as the updates of it amount to, with its anchor, and with
// capabilities that are set or clear. At most 4,096 are known, the latest; an update of more than 16 KiB is
// ignored. An agent of
// version 1 reports none unless [Client.Cursors] is set. The caller must not change them.
// Experimental.
func (s *ClientSession) Cursors() []acpv2.CursorUpdate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.cursors.All()
}

// cursor returns a cursor of the session; nil if the agent has not reported it.
func (s *ClientSession) cursor(id acpv2.CursorID) *acpv2.CursorUpdate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.cursors.Cursor(id)
}

// Title returns the session's title, or "".
func (s *ClientSession) Title() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.title
}

// State returns the latest state of the foreground. A session is idle until an
// update says otherwise. In version 1 it is running while a prompt is in flight.
func (s *ClientSession) State() StateUpdate {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.state == nil {
		return &IdleStateUpdate{}
	}
	return s.state.state
}

// Background returns the background work that was last reported, or nil if none
// was ever reported.
func (s *ClientSession) Background() []BackgroundWork {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.state.background)
}

// Usage returns how full the context window is and what the session has cost, or
// nil if that is not known.
func (s *ClientSession) Usage() *UsageUpdate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.usage
}
