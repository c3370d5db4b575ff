package tui

import (
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// gatewayState is what is known of a gateway that holds the conversation.
type gatewayState struct {
	here     map[acp.SessionID]string // who else is attached
	watching map[acp.SessionID]bool   // the user may send nothing
	brokeAt  time.Time                // when the connection broke; the zero time while there is one
	theirs   bool                     // a turn of somebody else runs
	unproven string                   // a prompt of which it is not known whether the gateway has it
	aside    []overlay                // questions that others may answer and the user does not want to see now
}

// outage is what is known of an agent, or a gateway, that cannot be reached at the moment.
type outage struct {
	cutAt        time.Time       // when the network failed; the zero time while it works
	open         map[uint64]bool // the questions that had no answer then: an answer since was not sent yet
	unsentPrompt bool            // a prompt was given since
}

// interrupted handles that the network fails with err, or that it works again.
func (m *model) interrupted(err error) tea.Cmd {
	if err == nil {
		m.mended()
		return nil
	}
	m.outage = outage{cutAt: m.now(), open: map[uint64]bool{}}
	if m.talk != nil {
		for e := range m.talk.Snapshot().Entries() {
			if p, ok := e.(*transcript.Permission); ok && p.Outcome == nil {
				m.open[p.Seq()] = true
			}
		}
	}
	return m.tick()
}

// isCut reports whether there is an open conversation and no connection at the moment.
func (m *model) isCut() bool { return m.phase == ready && !m.cutAt.IsZero() }

// mended forgets an outage.
func (m *model) mended() {
	if m.cutAt.IsZero() {
		return
	}
	m.outage = outage{}
	m.screen.tr.SetOptions(m.viewOptions())
}

// isUnsent reports whether the answer to a question has not been sent yet. It is the view's hook of that purpose.
func (m *model) isUnsent(p *transcript.Permission) bool { return m.child == "" && m.open[p.Seq()] }

// outageText says that there is no connection, and what waits for it.
func (m *model) outageText() string {
	text := m.st.warn.Render("No connection. Trying again.")
	unsent := ""
	for seq := range m.open {
		if p, ok := m.talk.Snapshot().Entry(seq).(*transcript.Permission); ok && p.Outcome != nil {
			unsent = " Your answer is not sent yet."
		}
	}
	if m.unsentPrompt {
		unsent = " Your prompt is not sent yet."
	}
	return text + m.st.dim.Render(unsent)
}

// maxHere bounds the sessions of which it is known who is attached.
const maxHere = 64

// isHere handles a note about who is attached.
func (m *model) isHere(n backend.Note) {
	if m.here == nil || len(m.here) >= maxHere {
		m.here, m.watching = make(map[acp.SessionID]string), make(map[acp.SessionID]bool)
	}
	m.watching[n.Session] = n.Role == "viewer"
	m.here[n.Session] = one(n.Text)
}

// reconnect returns to the conversation after the connection to its gateway broke with err. It is for
// failures that may pass, and for a bounded time; otherwise again is false.
func (m *model) reconnect(err error) (cmd tea.Cmd, again bool) {
	if !m.opt.Agent.Gateway || m.session == "" || m.killed || m.talk == nil {
		return nil, false
	}
	since := time.Duration(0)
	if !m.brokeAt.IsZero() {
		since = m.now().Sub(m.brokeAt)
	}
	if !remote.Passes(err, since) {
		m.brokeAt = time.Time{}
		m.notes = nil
		return nil, false
	}
	if m.brokeAt.IsZero() {
		m.brokeAt = m.now()
		m.dismissAll()
		m.say("the connection to the gateway broke: acp tries to return for 5 minutes", true)
	}
	old := m.link
	m.attempt++
	m.phase, m.began, m.why, m.link = starting, m.now(), nil, nil
	m.here = nil
	m.queueReset()
	begin := m.start()
	return tea.Batch(m.tick(), func() tea.Msg {
		if old != nil {
			_ = old.Close()
		}
		timer := time.NewTimer(remote.ReturnAfter)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-m.ctx.Done():
		}
		return begin()
	}), true
}

// watches reports whether the user may send nothing in the conversation.
func (m *model) watches() bool { return m.watching[m.session] }

// shares reports whether somebody else may answer the agent's questions.
func (m *model) shares() bool { return m.opt.Agent.Gateway && m.here[m.session] != "" }

// putAside hides a question of the agent without an answer, since others may have one. It reports false if there are none.
func (m *model) putAside(o overlay) bool {
	if !m.shares() {
		return false
	}
	m.shut(o)
	m.aside = append(m.aside, o)
	return true
}

// takeUp shows the questions again that were hidden.
func (m *model) takeUp() {
	for _, o := range m.aside {
		if a, ok := o.(*askOverlay); ok {
			a.since = m.now()
		}
	}
	m.demands, m.aside = append(m.demands, m.aside...), nil
}

// asideLine says that there are questions that were hidden, or is "".
func (m *model) asideLine() string {
	switch n := len(m.aside); n {
	case 0:
		return ""
	case 1:
		return "a question is still open · Tab shows it"
	default:
		return counted(n, "question", "questions") + " are still open · Tab shows them"
	}
}

// others notices the turns of other clients.
func (m *model) others() tea.Cmd {
	if !m.opt.Agent.Gateway || m.flying > 0 || !m.busy() {
		m.theirs = false
		return nil
	}
	if !m.theirs {
		m.theirs, m.turnBegan, m.cancelled = true, m.now(), false
	}
	return m.tick()
}

// lost handles a prompt whose answer was lost with the connection to a gateway.
func (m *model) lost(msg turnMsg) {
	if m.opt.Agent.Gateway && msg.err != nil && errors.Is(msg.err, jsonrpc.ErrClosed) {
		m.unproven = msg.text
	}
}

// connected is called when the conversation is open, after its history was read.
func (m *model) connected() {
	m.mended()
	if !m.brokeAt.IsZero() {
		m.brokeAt = time.Time{}
		m.notes = nil
	}
	if m.unproven != "" {
		m.giveBack(m.unproven) // unless the gateway has it
		m.unproven = ""
	}
}

// detach carries out /detach.
func (m *model) detach(string) tea.Cmd {
	if !m.opt.Agent.Gateway {
		m.say("this conversation is held by this program, and its turn ends with it: acp chat --detach starts one that is not; what was said here can be taken along with /export", false)
		return nil
	}
	if n := len(m.queue); n > 0 {
		return m.remark(counted(n, "prompt waits", "prompts wait") + " here and would not be sent: ↑ takes it back, Ctrl+D leaves all the same")
	}
	return m.leave()
}
