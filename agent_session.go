package acp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
)

// An AgentSession is an agent's end of a session: a conversation with its own
// working directory, options and history. All methods may be called from any
// goroutine, except those that say otherwise.
//
// Its embedded [Output] (Say, ToolCall, Notice, SetTitle and more) may send at
// any time, also between turns: progress of background work, unsolicited
// messages, notices, the title. Updates that belong to a turn are better sent
// through the [Turn].
type AgentSession struct {
	*Output
	// Value is for the agent's own use. The hook that opens the session sets it.
	// After that it must only be read, or do its own locking.
	Value any

	c      *AgentConn
	number int  // by age
	child  bool // of a subagent
	ctx    context.Context
	stop   context.CancelCauseFunc

	id    SessionID
	ready chan struct{} // closed when it is open: prompts wait for that

	sending gate           // who is inside may send an update
	held    *heldUpdates   // nil for none; guarded by sending
	toV1    translate.ToV1 // guarded by sending
	history history        // guarded by sending
	text    v1Text         // guarded by sending
	text2   v2Text         // guarded by sending

	replaying atomic.Bool // what is sent is history, which is not recorded again

	mu        sync.Mutex
	asked     sessionRequest  // what the client asked for, the last time it opened the session
	meta      json.RawMessage // of the answer that opens the session
	title     string
	options   sessionOptions
	commands  []AvailableCommand
	announced bool // the client has received options and commands
	works
	background []BackgroundWork
	cancels    map[string]func() // of tool calls and terminals that can be cancelled, by kind and id
	messages   int
	calls      int
	infix      string // keeps new ids apart from those of the session's history
}

// Works is what a session works on.
type works struct {
	turn    *Turn
	running bool // a turn does that the agent has taken with its Queue hook, as far as the agent has said so
	waited  int  // questions that the turn waits for
}

// MaxSessions is how many sessions one connection may have open. A client that
// asks for more is refused with a [Failure] whose Reason is "sessions".
const MaxSessions = 4096

func (c *AgentConn) newSession(id SessionID, o *sessionRequest) *AgentSession {
	return c.newSessionIn(c.base, id, o)
}

func (c *AgentConn) newSessionIn(ctx context.Context, id SessionID, o *sessionRequest) *AgentSession {
	s := &AgentSession{
		c: c, id: id, asked: *o, ready: make(chan struct{}),
		cancels: map[string]func(){},
	}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	if v1 := c.CapabilitiesV1(); v1 != nil {
		s.toV1.Caps = *v1
	}
	s.Output = &Output{ctx: s.ctx, output: &output{s: s, sends: s.ctx}}
	return s
}

// ID returns the session's id.
func (s *AgentSession) ID() SessionID { return s.id }

// SetID replaces the session's random id. Only the NewSession and ForkSession
// hooks may call it. The session may have existed before: new ids of messages,
// tool calls and terminals differ from those that an earlier session of that id
// used.
func (s *AgentSession) SetID(id SessionID) {
	s.id = id
	s.keepApart()
}

// keepApart makes the session's new ids differ from those in its history, which
// another AgentSession has generated.
func (s *AgentSession) keepApart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.infix == "" {
		s.infix = strings.ToLower(rand.Text()[:6]) + "_"
	}
}

// Child returns the session of a subagent, to report what happens in it: what it
// says, its tool calls, its questions. Call [Output.Subagent] on the parent
// first, so that the client learns of it. The client does not open a child and
// cannot call it. A child is not an open session of the connection; it ends with
// its parent and sends nothing afterwards. Each call returns another AgentSession
// for the same session: keep it.
//
// A version 1 client that has not said it understands subagents is sent nothing.
// Asking it something fails with [errors.ErrUnsupported]. Experimental.
func (s *AgentSession) Child(id SessionID) *AgentSession {
	s.mu.Lock()
	asked := s.asked
	s.mu.Unlock()
	child := s.c.newSessionIn(s.ctx, id, &asked)
	child.child = true
	close(child.ready)
	return child
}

// Conn returns the connection the session belongs to.
func (s *AgentSession) Conn() *AgentConn { return s.c }

// Context returns a context that is done when the session is closed or its
// connection has ended. Background work should use it.
func (s *AgentSession) Context() context.Context { return s.ctx }

// Cwd returns the working directory, an absolute path.
func (s *AgentSession) Cwd() string { return s.request().cwd }

// AdditionalDirectories returns further roots of the session, absolute paths.
func (s *AgentSession) AdditionalDirectories() []string { return s.request().directories }

// MCPServers returns the MCP servers the client wants the session to have.
func (s *AgentSession) MCPServers() []MCPServer { return s.request().servers }

// SystemPrompt returns the change to the system prompt that the client asks for,
// or nil. Experimental.
func (s *AgentSession) SystemPrompt() *SystemPrompt { return s.request().prompt }

// InitialOptions returns the values that the client wants options to begin with. They are set
// once the hook that opens the session has returned, so only an agent whose session takes long
// to open, or which passes them on, looks at them before. There are none without the hook
// SessionOptions. Experimental.
func (s *AgentSession) InitialOptions() []InitialOption {
	if s.c.agent.Load().SessionOptions == nil {
		return nil
	}
	return s.request().options
}

// Meta returns _meta of the request that opened the session, or nil.
func (s *AgentSession) Meta() json.RawMessage { return s.request().meta }

func (s *AgentSession) request() sessionRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// SetAnswerMeta sets _meta of the answer to the request that opens the session. Only
// hooks that open sessions may call it.
func (s *AgentSession) SetAnswerMeta(meta json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meta = meta
}

// Title returns what [Output.SetTitle] set.
func (s *AgentSession) Title() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.title
}

// Options returns the session's options.
func (s *AgentSession) Options() []SessionConfigOption {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.options.list)
}

// Option returns the value of an option that is chosen from a list, or "".
func (s *AgentSession) Option(id SessionConfigID) SessionConfigValueID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return optionValue(s.options.list, id)
}

// OptionOn returns the value of an option that is on or off.
func (s *AgentSession) OptionOn(id SessionConfigID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return optionOn(s.options.list, id)
}

// SetOptions sets the session's options in the order in which they are to be
// shown. The option of category [SessionConfigOptionCategoryMode] is what version
// 1 calls the modes. The client is notified once the session is open. It is an
// error if the current value of an option is not among its values.
func (s *AgentSession) SetOptions(options ...SessionConfigOption) error {
	for _, o := range options {
		if sel, ok := o.Kind.(*SessionConfigSelect); ok && !hasChoice(sel.Options, sel.CurrentValue) {
			return fmt.Errorf("acp: option %s: its current value is not among its values", o.ConfigID)
		}
	}
	return s.changeOptions(func([]SessionConfigOption) ([]SessionConfigOption, error) { return slices.Clone(options), nil })
}

// changeOptions stores and sends options in one step, so that the client ends up
// with what is stored.
func (s *AgentSession) changeOptions(change func([]SessionConfigOption) ([]SessionConfigOption, error)) error {
	if err := s.acquire(s.ctx); err != nil {
		return err
	}
	defer s.releaseSending()
	s.mu.Lock()
	options, err := change(s.options.list)
	if err == nil {
		s.replaceOptions(options)
	}
	announced := s.announced
	s.mu.Unlock()
	if err != nil || !announced {
		return err
	}
	if err := s.sendOptions(s.sends); err != nil {
		return s.fail(err)
	}
	return nil
}

// ChangeOption changes the value of one option. The client is notified once the
// session is open. The SetOption hook is not called.
func (s *AgentSession) ChangeOption(id SessionConfigID, v SessionConfigOptionValue) error {
	return s.changeOptions(func(options []SessionConfigOption) ([]SessionConfigOption, error) {
		if checkOption(options, id, v) != nil {
			return nil, fmt.Errorf("acp: option %s does not exist or has no such value", id)
		}
		return withOption(options, id, v), nil
	})
}

// SetCommands sets the slash commands that the user can type. They arrive as the
// text of a prompt: see [Turn.Command]. The client is notified once the session
// is open.
func (s *AgentSession) SetCommands(commands ...SlashCommand) error {
	list := make([]AvailableCommand, len(commands))
	for i := range commands {
		list[i] = &commands[i]
	}
	return s.changeCommands(func(known []AvailableCommand) []AvailableCommand {
		return append(list, skillsOf(known, true)...)
	}, false)
}

// SetSkills sets the skills that the user can invoke, beside the commands, with a
// SkillReference in a prompt: [PromptContent] must allow that. Clients that do not know
// skills have them as commands, which the user types. No name may be used twice.
// Experimental.
func (s *AgentSession) SetSkills(skills ...acpv2.Skill) error {
	return s.changeCommands(func(known []AvailableCommand) []AvailableCommand {
		list := skillsOf(known, false)
		for i := range skills {
			list = append(list, &skills[i])
		}
		return list
	}, false)
}

// SetAvailableCommands sets both the commands and the skills: see [AgentSession.SetCommands] and
// [AgentSession.SetSkills], each of which leaves the others as they are. The client is sent one list. Experimental.
func (s *AgentSession) SetAvailableCommands(list ...AvailableCommand) error {
	list = slices.Clone(list)
	return s.changeCommands(func([]AvailableCommand) []AvailableCommand { return list }, false)
}

// skillsOf returns the skills among commands, or the others.
func skillsOf(commands []AvailableCommand, skills bool) []AvailableCommand {
	return slices.DeleteFunc(slices.Clone(commands), func(c AvailableCommand) bool {
		_, is := c.(*acpv2.Skill)
		return is != skills
	})
}

// checkSkills refuses skills that the session does not have.
func (s *AgentSession) checkSkills(blocks []ContentBlock) error {
	for i, b := range blocks {
		ref, ok := b.(*acpv2.SkillReference)
		if !ok {
			continue
		}
		s.mu.Lock()
		known := hasSkill(s.commands, ref.Name)
		s.mu.Unlock()
		if !known {
			return invalidParams("prompt["+strconv.Itoa(i)+"].name", "no such skill")
		}
	}
	return nil
}

// changeCommands stores and sends commands in one step, so that they are in the answer
// that opens the session or follow it, and not both. With unlessKnown, commands that are
// the same as before are not sent.
func (s *AgentSession) changeCommands(change func([]AvailableCommand) []AvailableCommand, unlessKnown bool) error {
	if err := s.Output.acquire(); err != nil {
		return err
	}
	defer s.releaseSending()
	s.mu.Lock()
	list := change(s.commands)
	sends := s.announced && (!unlessKnown || !sameCommands(s.commands, list))
	s.commands = list
	s.mu.Unlock()
	if !sends {
		return nil
	}
	return s.sendLocked(&AvailableCommandsUpdate{AvailableCommands: list})
}

// SetBackground reports everything that the session does in the background. Call
// it each time that changes, after the entities themselves were announced.
// Version 1 clients are not notified.
func (s *AgentSession) SetBackground(work ...BackgroundWork) error {
	if work == nil {
		work = []BackgroundWork{}
	}
	s.mu.Lock()
	s.background = work
	s.mu.Unlock()
	return s.sendState()
}

// Turn returns the turn that runs, or nil.
func (s *AgentSession) Turn() *Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// state returns the state the session is in.
func (s *AgentSession) state() StateUpdate {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.turn == nil && !s.running:
		return &IdleStateUpdate{Background: s.background}
	case s.waited > 0:
		return &RequiresActionStateUpdate{Background: s.background}
	}
	return &RunningStateUpdate{Background: s.background}
}

// acquire waits for the right to send.
func (s *AgentSession) acquire(ctx context.Context) error { return s.sending.enter(ctx) }

func (s *AgentSession) releaseSending() { s.sending.leave() }

// maxHeldUpdates bounds what a hook that opens a session may send to it.
const maxHeldUpdates = 1024

// heldUpdates are held back until the client knows the session, or its history has been
// replayed.
type heldUpdates struct {
	list   []SessionUpdate
	replay chan struct{} // of an open session, closed when the history has been sent; nil for a new one
}

// hold holds back what is sent until the client knows the session's id.
func (s *AgentSession) hold() { s.held = new(heldUpdates) }

// pause holds back what the open session sends until its history has been replayed. Nothing
// that sends waits for that, since the history may depend on it, before as much is held as
// may be.
func (s *AgentSession) pause(ctx context.Context) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.releaseSending()
	s.held = &heldUpdates{replay: make(chan struct{})}
	return nil
}

// acquireBehind is acquire for updates that may have to wait for a replay, beyond what is held,
// or, if all is set, for its end.
func (s *AgentSession) acquireBehind(ctx context.Context, all bool) error {
	for {
		if err := s.acquire(ctx); err != nil {
			return err
		}
		held := s.held
		if held == nil || held.replay == nil || !all && len(held.list) < maxHeldUpdates {
			return nil
		}
		s.releaseSending()
		select {
		case <-held.replay:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// flush sends what was held. It is called when the answer that opens the session
// has been written.
func (s *AgentSession) flush() { s.sendHeld(false) }

// sendHeld sends what is held until the answer that opens the session, or until the end of a
// replay. The one must not end the other: it may be called late.
func (s *AgentSession) sendHeld(replayed bool) {
	if s.acquire(s.ctx) != nil {
		return
	}
	defer s.releaseSending()
	held := s.held
	if held == nil || replayed != (held.replay != nil) {
		return
	}
	if replayed {
		close(held.replay)
	}
	s.held = nil
	for _, u := range held.list {
		if err := s.send(s.ctx, u); err != nil && s.ctx.Err() == nil {
			s.c.agent.Load().Logger.Warn("acp: an update that was held back was not sent", "error", err)
		}
	}
}

// send sends an update to the client. The caller has the right to send.
func (s *AgentSession) send(ctx context.Context, u SessionUpdate) error {
	if h := s.held; h != nil {
		if len(h.list) >= 2*maxHeldUpdates || h.replay == nil && len(h.list) >= maxHeldUpdates {
			return errHeldTooMuch
		}
		h.list = append(h.list, u)
		return nil
	}
	if s.c.agent.Load().Queue != nil {
		s.follow(u)
	}
	replaying := s.replaying.Load()
	if replaying {
		s.history.left.see(u)
	}
	if replaying || s.c.agent.Load().resumesOpen {
		s.history.end.see(u)
	}
	if err := s.record(ctx, u); err != nil {
		return err
	}
	return s.c.peer.Load().proto.update(ctx, s, u)
}

// follow notes the states that an agent with a Queue hook sends by itself.
func (s *AgentSession) follow(u SessionUpdate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch u.(type) {
	case *RunningStateUpdate:
		s.running = true
	case *IdleStateUpdate:
		s.running = false
	}
}

func (s *AgentSession) nextMessage() MessageID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages++
	return MessageID("msg_" + s.infix + strconv.Itoa(s.messages))
}

func (s *AgentSession) nextCall() ToolCallID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return ToolCallID("call_" + s.infix + strconv.Itoa(s.calls))
}

// setCancel registers how a tool call or terminal is cancelled; nil removes that.
// It reports whether there was one.
func (s *AgentSession) setCancel(key string, cancel func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.cancels[key]
	if cancel == nil {
		delete(s.cancels, key)
	} else {
		s.cancels[key] = cancel
	}
	return was
}

// cancelEntity cancels a tool call or a terminal that allows it (S90), and
// reports whether there was one.
func (s *AgentSession) cancelEntity(key string) bool {
	s.mu.Lock()
	cancel := s.cancels[key]
	if cancel != nil {
		s.cancels[key] = func() {} // once is enough
	}
	s.mu.Unlock()
	if cancel == nil {
		return false
	}
	go func() { _ = s.c.guard("Cancel", func() error { cancel(); return nil }) }()
	return true
}

func randomSessionID() SessionID { return SessionID("sess_" + rand.Text()) }

func findOption(options []SessionConfigOption, id SessionConfigID) *SessionConfigOption {
	for i := range options {
		if options[i].ConfigID == id {
			return &options[i]
		}
	}
	return nil
}

// optionValue returns the value of an option that is chosen from a list, or "".
func optionValue(options []SessionConfigOption, id SessionConfigID) SessionConfigValueID {
	if o := findOption(options, id); o != nil {
		if sel, ok := o.Kind.(*SessionConfigSelect); ok {
			return sel.CurrentValue
		}
	}
	return ""
}

// optionOn returns the value of an option that is on or off.
func optionOn(options []SessionConfigOption, id SessionConfigID) bool {
	if o := findOption(options, id); o != nil {
		if b, ok := o.Kind.(*SessionConfigBoolean); ok {
			return b.CurrentValue
		}
	}
	return false
}
