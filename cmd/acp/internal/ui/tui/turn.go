package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	past "github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// The messages of the commands below. attempt is the start of the agent that a message belongs to.
type (
	startedMsg struct {
		attempt int
		link    link
		err     error
	}
	openedMsg struct {
		attempt int
		talk    talk
		how     acp.Restored
		err     error
		forked  acp.SessionID // what it is a copy of, or ""
	}
	endedMsg struct{ attempt int }
	turnMsg  struct {
		attempt int
		talk    talk
		result  *acp.Result
		err     error
		remarks []string
		text    string // the prompt as the user typed it
		behind  bool   // it was sent while another turn ran
	}
	steeredMsg struct {
		attempt int
		talk    talk
		outcome acp.SteerOutcome
		err     error
		remarks []string
		text    string
	}
	failedMsg struct{ err error }
	saidMsg   struct{ text string }
	tickMsg   struct{}
)

// start starts the agent.
func (m *model) start() tea.Cmd {
	attempt, ctx, open, f, kept, agent := m.attempt, m.ctx, m.opt.open, m.front, m.kept, m.opt.Agent
	return func() tea.Msg {
		if !kept.begin() {
			return nil
		}
		l, err := open(ctx, agent, f)
		kept.addLink(l)
		return startedMsg{attempt, l, err}
	}
}

// wasStarted handles the end of starting the agent. Messages of an earlier attempt are ignored,
// because the user has restarted the agent since.
func (m *model) wasStarted(msg startedMsg) tea.Cmd {
	if msg.attempt != m.attempt {
		return nil
	}
	if msg.err != nil {
		if cmd, again := m.reconnect(msg.err); again {
			return cmd
		}
		return m.die(msg.err)
	}
	m.link = msg.link
	m.phase, m.began, m.slow = opening, m.now(), ""
	l, attempt := m.link, m.attempt
	watch := func() tea.Msg { <-l.Done(); return endedMsg{attempt} }
	return tea.Batch(watch, m.openSession(m.session))
}

// openSession opens a session; "" means a new one.
func (m *model) openSession(id acp.SessionID) tea.Cmd {
	l, attempt, ctx, from := m.link, m.attempt, m.ctx, m.talk
	m.phase, m.began = opening, m.now()
	return func() tea.Msg {
		if id == "" {
			t, err := l.NewSession(ctx)
			leave(ctx, from, t, err)
			return openedMsg{attempt: attempt, talk: t, err: err}
		}
		t, how, err := l.Restore(ctx, id)
		leave(ctx, from, t, err)
		return openedMsg{attempt: attempt, talk: t, how: how, err: err}
	}
}

// leaveWait bounds how long an agent is waited for that closes a session.
const leaveWait = 2 * time.Second

// leave leaves the session from, if there is one and another one was opened, so that other programs can continue it.
func leave(ctx context.Context, from, to talk, err error) {
	if err != nil || from == nil || from.ID() == to.ID() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveWait)
	defer cancel()
	_ = from.Leave(ctx) // the session can be continued here all the same
}

// wasOpened handles the end of opening a session. If it has failed, the previous session stays
// open.
func (m *model) wasOpened(msg openedMsg) tea.Cmd {
	if msg.attempt != m.attempt || m.phase == dead {
		return nil
	}
	m.slow, m.loggingIn = "", false
	if msg.err != nil {
		if m.talk != nil { // the previous session is still open
			m.phase = ready
			m.session = m.talk.ID()
			m.say("the session cannot be opened: "+explain(msg.err), true)
			return nil
		}
		return m.die(msg.err)
	}
	m.phase, m.talk, m.session, m.child = ready, msg.talk, msg.talk.ID(), ""
	m.connected()
	m.queueReset()
	m.screen.follow, m.browsing, m.search = true, false, nil
	m.rebuildView()
	if msg.how == acp.RestoredNew && !isUnseen(msg.talk) {
		m.say("the agent no longer knows this session: it continues as a new one, and the agent has not seen what is above", true)
	}
	if msg.forked != "" {
		m.say("a copy of the session begins here; /resume "+string(msg.forked)+" leads back", false)
	}
	for _, err := range msg.talk.Unset() {
		m.say(err.Error(), true)
	}
	if p := m.opt.Prompt; p != "" {
		m.opt.Prompt = ""
		return tea.Batch(m.takeBase(), m.submit(p), tidy(m.ctx))
	}
	return tea.Batch(m.takeBase(), m.sendNext(), tidy(m.ctx))
}

// tidyAfter is how long [tidy] waits after a session was opened. By then the first screens are
// drawn.
const tidyAfter = 500 * time.Millisecond

// tidy returns the memory to the operating system that only starting or reading the session needed.
// Otherwise the garbage collector would keep it until the program has allocated as much again,
// which a waiting program never does.
func tidy(ctx context.Context) tea.Cmd {
	return func() tea.Msg {
		timer := time.NewTimer(tidyAfter)
		defer timer.Stop()
		select {
		case <-timer.C:
			debug.FreeOSMemory()
		case <-ctx.Done():
		}
		return nil
	}
}

// sendNext sends the first queued prompt, unless the queue is held or a turn is running.
func (m *model) sendNext() tea.Cmd {
	if len(m.queue) == 0 || m.held || m.busy() || m.phase != ready {
		return nil
	}
	next := m.queue[0]
	m.queue = m.queue[1:]
	return m.prompt(next)
}

func (m *model) queueReset() {
	m.flying, m.cancelled, m.steered = 0, false, nil
}

// die switches to the phase dead. Queued prompts are held, so that a restart does not send them
// unasked.
func (m *model) die(err error) tea.Cmd {
	if m.opt.Agent.Gateway {
		err = app.Refusal(err)
	}
	m.phase, m.why = dead, err
	m.lookBehind() // nothing runs on
	m.queueReset()
	m.dismissAll()
	m.slow = ""
	if len(m.queue) > 0 {
		m.held = true
	}
	return m.ring(eventEnded, "the agent has exited")
}

// hasEnded handles the exit of the agent.
func (m *model) hasEnded(msg endedMsg) tea.Cmd {
	if msg.attempt != m.attempt || m.phase == dead {
		return nil
	}
	err := m.link.Err()
	if m.killed {
		err = errors.New("you have killed it")
	} else if err == nil {
		err = errors.New("it exited by itself")
	}
	m.show(nil)
	if cmd, again := m.reconnect(err); again {
		return cmd
	}
	return m.die(err)
}

// restart starts the agent again and resumes the session; "" means a new one.
func (m *model) restart(id acp.SessionID) tea.Cmd {
	old := m.link
	m.attempt++
	m.phase, m.began, m.why, m.link, m.killed, m.loggingIn = starting, m.now(), nil, nil, false, false
	m.slow, m.session = "", id
	if id == "" {
		m.talk = nil
		m.rebuildView()
	}
	begin := m.start()
	return tea.Batch(m.tick(), func() tea.Msg {
		if old != nil {
			_ = old.Close()
		}
		return begin()
	})
}

// submit sends a prompt, or queues it while a turn is running or the agent is not ready.
func (m *model) submit(text string) tea.Cmd {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if m.opt.Agent.ReadOnly {
		return m.remark("you only watch: acp attach without --read-only takes part")
	}
	if m.phase == dead {
		m.queue = append(m.queue, text)
		m.held = true
		return m.remark("there is no agent: your prompt waits; r restarts the agent")
	}
	if m.phase != ready || m.busy() {
		m.queue = append(m.queue, text)
		return nil
	}
	if len(m.queue) > 0 { // held since a turn was cancelled; the order of the prompts is kept
		m.queue = append(m.queue, text)
		m.held = false
		return m.sendNext()
	}
	return m.prompt(text)
}

// composed returns what makes the content of a prompt.
func (m *model) composed(text string) func(ctx context.Context) (blocks []acp.ContentBlock, remarks []string) {
	l, cwd := m.link, m.opt.cwd
	images, long := m.input.attached(text)
	return func(ctx context.Context) ([]acp.ContentBlock, []string) {
		return compose(ctx, cwd, text, long, images, l.Takes())
	}
}

// prompt sends a prompt at once.
func (m *model) prompt(text string) tea.Cmd {
	t, attempt, ctx, composed, behind := m.talk, m.attempt, m.ctx, m.composed(text), m.busy()
	stopped := m.waitsForBase()
	if m.opt.Agent.Gateway { // leaving does not cancel the turn
		ctx = context.WithoutCancel(ctx)
	}
	if m.flying == 0 {
		m.turnBegan, m.cancelled = m.now(), false
	}
	m.suggestionsPass()
	m.flying++
	m.sent++
	m.unsentPrompt = !m.cutAt.IsZero()
	m.notes, m.flash, m.held = nil, "", false
	m.child = ""
	m.screen.follow = true
	m.show(nil)
	return tea.Batch(m.tick(), func() tea.Msg {
		blocks, remarks := composed(ctx)
		if stopped() {
			return turnMsg{attempt, t, nil, errUnsent, remarks, text, behind}
		}
		res, err := t.Prompt(ctx, blocks...)
		return turnMsg{attempt, t, res, err, remarks, text, behind}
	})
}

// turnEnded handles the end of a prompt. The queue continues only after a normal end: after a
// cancellation or an error the user decides, because the queued prompts may depend on the turn.
func (m *model) turnEnded(msg turnMsg) tea.Cmd {
	if msg.attempt != m.attempt || m.talk == nil || msg.talk.ID() != m.talk.ID() {
		m.lost(msg)
		return nil
	}
	if m.flying > 0 {
		m.flying--
	}
	m.arrives(msg.text)
	m.show(nil)
	for _, r := range msg.remarks {
		m.say(r, false)
	}
	if msg.behind && m.phase == ready && acp.IsSteerRefused(msg.err) {
		return m.hold(msg.text)
	}
	var cmds []tea.Cmd
	took := m.now().Sub(m.turnBegan)
	if took > longTurn {
		cmds = append(cmds, m.ring(eventDone, cmp.Or(m.lastSaid(), "the agent is done")))
	}
	clean := true
	switch {
	case msg.err != nil && (m.phase == dead || errors.Is(msg.err, jsonrpc.ErrClosed)):
		m.lost(msg)
		clean = false // the exit of the agent is reported with its reason
	case errors.Is(msg.err, errUnsent):
		m.say("cancelled", false)
		m.giveBack(msg.text)
		clean = false
	case errors.Is(msg.err, context.Canceled) && m.cancelled:
		m.say("cancelled", false)
		clean = false
	case msg.err != nil:
		m.say(explain(msg.err), true)
		m.giveBack(msg.text)
		clean = false
	case msg.result == nil:
	default:
		switch msg.result.StopReason {
		case acp.StopEndTurn, "":
		case acp.StopCancelled:
			m.say("cancelled", false)
			clean = false
		case acp.StopMaxTokens:
			m.say("the agent stopped at its limit of tokens", true)
		case acp.StopMaxTurnRequests:
			m.say("the agent stopped at its limit of requests per turn; ask it to continue", true)
		case acp.StopRefusal:
			m.say("the agent refuses to continue; your last prompt is no longer part of the conversation", true)
			clean = false
		default:
			m.say("the agent stopped: "+one(string(msg.result.StopReason)), true)
		}
	}
	if m.flying == 0 {
		m.cancelled = false
	}
	if len(m.queue) > 0 && !clean && !m.urgent {
		m.held = true
	}
	m.urgent = false
	return tea.Batch(append(cmds, m.sendNext())...)
}

// giveBack returns a prompt that the agent has not accepted to the input, because it appears
// nowhere else. It does nothing if the user is typing something.
func (m *model) giveBack(text string) {
	if m.input.value() != "" {
		return
	}
	for e := range m.talk.Snapshot().Backward() {
		if msg, ok := e.(*transcript.Message); ok && msg.Role == transcript.RoleUser {
			if strings.TrimSpace(msg.Text()) == strings.TrimSpace(text) {
				return
			}
			break
		}
	}
	m.input.set(text)
}

// longTurn is the duration from which on the end of a turn rings the bell.
const longTurn = 15 * time.Second

// explain returns on one line what an error means to the user.
func explain(err error) string {
	if login, ok := errors.AsType[*backend.AuthError](err); ok {
		return login.Error()
	}
	if f, ok := errors.AsType[*acp.Failure](err); ok {
		s := f.Message
		if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
			if why := said.Detail(); why != "" && why != f.Reason {
				s += ": " + why
			}
		}
		if f.RetryAfter > 0 {
			s += fmt.Sprintf("; try again in %v", f.RetryAfter.Round(time.Second))
		}
		if errors.Is(err, acp.ErrTruncated) {
			s = "the session's history is incomplete: " + s
		}
		return s
	}
	return err.Error()
}

// busy reports whether a turn is running.
func (m *model) busy() bool {
	if m.flying > 0 {
		return true
	}
	return m.phase == ready && m.talk != nil && !m.talk.Snapshot().Session().State.Idle()
}

// interrupt handles Ctrl+C. It cancels the turn; the second time it kills the agent. Without a turn
// it clears the input; the second time it leaves.
func (m *model) interrupt() tea.Cmd {
	now := m.now()
	switch {
	case m.running != "":
		m.endShell()
		return nil
	case m.busy() && !m.cancelled:
		m.cancelled = true
		if m.stopWaiting != nil {
			close(m.stopWaiting)
			m.stopWaiting = nil
		}
		if len(m.queue) > 0 {
			m.held = true
		}
		t, ctx := m.talk, m.ctx
		return func() tea.Msg {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			if err := t.Cancel(ctx); err != nil {
				return failedMsg{fmt.Errorf("cancelling: %w", err)}
			}
			return nil
		}
	case m.busy() && m.opt.Agent.Gateway: // the agent is not ours
		return m.leave()
	case m.busy() && !m.killed:
		m.killed = true
		l := m.link
		return func() tea.Msg { l.Kill(); return nil }
	case m.input.value() != "":
		m.input.clear()
		m.popup = nil
		return nil
	case m.phase == starting:
		return m.leave()
	case now.Before(m.quitSoon):
		return m.leave()
	}
	m.quitSoon = now.Add(2 * time.Second)
	return m.remark("press Ctrl+C again to leave")
}

// leave ends the program.
func (m *model) leave() tea.Cmd {
	m.cancel()
	return tea.Quit
}

// working returns what the agent is doing, according to its latest entries.
func working(s *transcript.Snapshot) string {
	const look = 16 // entries back
	seen := 0
	for e := range s.Backward() {
		if seen++; seen > look {
			break
		}
		switch e := e.(type) {
		case *transcript.ToolCall:
			if !e.Ended() && e.Title != "" {
				return one(e.Title)
			}
		case *transcript.Message:
			if seen > 1 {
				continue
			}
			switch e.Role {
			case transcript.RoleAgent:
				return "writing"
			case transcript.RoleThought:
				return "thinking"
			}
		case *transcript.Compaction:
			if seen == 1 {
				return "compacting the context"
			}
		}
	}
	return "working"
}

// spinning is the time between two frames of the spinner.
const spinning = 120 * time.Millisecond

// tick schedules the next frame of the spinner, unless one is scheduled already.
func (m *model) tick() tea.Cmd {
	if m.ticking {
		return nil
	}
	m.ticking = true
	return tea.Tick(spinning, func(time.Time) tea.Msg { return tickMsg{} })
}

func (m *model) ticked() tea.Cmd {
	m.ticking = false
	m.spin++
	if m.phase == starting || m.phase == opening || m.busy() || m.running != "" || m.isCut() {
		return m.tick()
	}
	return nil
}

// isUnseen reports whether the conversation itself says at its end that the agent has not seen it.
func isUnseen(t talk) bool {
	n := 0
	for e := range t.Snapshot().Backward() {
		if n++; past.IsUnseen(e) || n > 8 {
			return n <= 8
		}
	}
	return false
}
