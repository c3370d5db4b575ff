package plain

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

const (
	// outputLines bounds the lines of a command's output that are written: its last ones.
	outputLines = 20
	// maxSaid bounds the entries whose last line is remembered. Beyond it all are forgotten, and
	// a line may be repeated.
	maxSaid = 8192
)

// A show writes what happens, each thing once. Its methods may be called from any goroutine.
type show struct {
	thoughts bool
	typed    bool // the input is typed by a user, on a terminal

	mu      sync.Mutex
	asking  bool // a prompt was written, and nothing was typed after it
	running bool // a prompt of this client waits or runs
	w       io.Writer
	out     Stream
	main    acp.SessionID       // "" until begin has written the history
	at      entryKey            // the message that is being written
	read    map[entryKey]int    // bytes of each message that were written
	said    map[entryKey]string // the last line of each entry
}

// An entryKey names an entry of a session.
type entryKey struct {
	session acp.SessionID
	seq     uint64
}

func newShow(a *app.App) *show {
	return &show{typed: a.InTerminal, w: a.Out, out: Stream{W: a.Out}, read: map[entryKey]int{}, said: map[entryKey]string{}}
}

// line writes a line.
func (s *show) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLine(text)
}

// writeLine ends the current line and writes another one. The caller holds mu.
func (s *show) writeLine(text string) {
	if s.asking { // the user has not answered yet; the line must not continue the prompt
		s.asking = false
		_, _ = io.WriteString(s.w, "\n")
	}
	_ = s.out.EndLine()
	s.at = entryKey{}
	if text != "" {
		_ = s.out.Write(text)
		_ = s.out.EndLine()
	}
}

// prompt writes a text that the user answers on the same line. In a script, where the answer is not
// visible, it is a line of its own.
func (s *show) prompt(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.typed {
		s.writeLine(strings.TrimSpace(text))
		return
	}
	if s.asking {
		_, _ = io.WriteString(s.w, "\n")
	}
	_ = s.out.EndLine()
	_, _ = io.WriteString(s.w, text)
	s.asking = true
}

// answered records that a line was typed after the prompt.
func (s *show) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = false
}

func (s *show) endLine() { s.line("") }

// begin writes the history of a continued session. From then on changes are written.
func (s *show) begin(session *backend.Session, how acp.Restored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.main = session.ID()
	snap := session.Snapshot()
	if snap.Len() == 0 {
		return
	}
	if how == acp.RestoredNew {
		s.writeLine("Earlier conversation, which the agent does not know any more:")
	}
	for e := range snap.Entries() {
		key := entryKey{s.main, e.Seq()}
		if m, ok := e.(*transcript.Message); ok {
			switch m.Role {
			case transcript.RoleUser:
				s.writeLine(cmp.Or(history.Author(m), "You") + ": " + safetext.Text(m.Text()))
			case transcript.RoleAgent:
				s.writeLine("Agent: " + safetext.Text(m.Text()))
			}
			s.read[key] = len(m.Text())
			continue
		}
		if end, ok := e.(*transcript.TurnEnd); ok {
			if text := history.EndingLine(end); text != "" {
				s.writeLine(text + ".")
			}
			continue
		}
		s.writeEntry(s.main, e)
		if call, ok := e.(*transcript.ToolCall); ok {
			if d := history.DecisionOf(call.Meta); d != nil {
				s.writeLine("Permission: " + d.String() + ".")
			}
		}
	}
	if how == acp.RestoredNew {
		s.writeLine("A new session begins here.")
	}
}

// prompted records whether a prompt of this client waits or runs.
func (s *show) prompted(runs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = runs
}

// endOf writes how a turn has ended that is another client's: for a turn of this one, its end is reported with its result.
func (s *show) endOf(id acp.SessionID, end *transcript.TurnEnd) {
	if id != s.main || s.running && end.Others == 0 {
		return
	}
	if text := history.EndingLine(end); text != "" {
		s.writeLine(text + ".")
	}
}

// changed is [backend.Frontend]'s Changed.
func (s *show) changed(session *backend.Session, changes []transcript.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.main == "" {
		return
	}
	s.writeChanges(session.ID(), session.Snapshot(), changes)
}

// writeChanges writes what changed in a session. The caller holds mu.
func (s *show) writeChanges(id acp.SessionID, snap *transcript.Snapshot, changes []transcript.Change) {
	whole := map[uint64]bool{}
	for _, ch := range changes {
		if ch.Op == transcript.OpSession || ch.Op == transcript.OpNone || whole[ch.Seq] {
			continue
		}
		e := snap.Entry(ch.Seq)
		if e == nil {
			continue
		}
		if end, ok := e.(*transcript.TurnEnd); ok {
			s.endOf(id, end)
			continue
		}
		m, ok := e.(*transcript.Message)
		if !ok {
			s.writeEntry(id, e)
			continue
		}
		text := ch.Text
		key := entryKey{id, ch.Seq}
		if text == "" {
			whole[ch.Seq] = true
			if all := m.Text(); s.read[key] < len(all) {
				text = all[s.read[key]:]
			}
		}
		if text != "" {
			s.writeMessage(key, m, text)
		}
	}
}

// writeMessage writes the new part of a message.
func (s *show) writeMessage(key entryKey, m *transcript.Message, text string) {
	first := s.read[key] == 0
	s.read[key] += len(text)
	switch {
	case m.Role == transcript.RoleUser && key.session == s.main && history.Author(m) != "":
		if first {
			s.writeLine(history.Author(m) + ": " + safetext.Text(text))
		}
		return
	case m.Role == transcript.RoleUser:
		return // the user has just typed it
	case m.Role == transcript.RoleThought && !s.thoughts:
		if first && key.session == s.main {
			s.writeLine("Thinking.")
		}
		return
	case key.session != s.main:
		return // of subagents only the actions are shown, not the messages
	}
	if s.at != key {
		_ = s.out.EndLine()
		s.at = key
		if m.Role == transcript.RoleThought {
			_ = s.out.Write("Thought: ")
		}
	}
	_ = s.out.Write(text)
}

// entryLine returns the line of an entry that is not a message, or "".
func entryLine(e transcript.Entry) string {
	switch e := e.(type) {
	case *transcript.ToolCall:
		if e.Title == "" && !e.Ended() {
			return ""
		}
		return ToolLine(e)
	case *transcript.Plan:
		return planLine(e)
	case *transcript.Terminal:
		return terminalText(e)
	case *transcript.Notice:
		return NoticeLine(e)
	case *transcript.Compaction:
		return "Context compaction: " + safetext.Line(string(e.Status), 20)
	case *transcript.Subagent:
		return subagentLine(e)
	case *transcript.Unknown:
		return "An update of a kind that this program does not know."
	}
	return ""
}

// writeEntry writes the line of an entry that is not a message, if the line has changed.
func (s *show) writeEntry(id acp.SessionID, e transcript.Entry) {
	line := entryLine(e)
	key := entryKey{id, e.Seq()}
	// A call has two lines, one when it begins and one when it has ended. Whether it is waiting
	// or already running makes no difference.
	if call, ok := e.(*transcript.ToolCall); ok && !call.Ended() && s.said[key] != "" {
		return
	}
	if line == "" || s.said[key] == line {
		return
	}
	if len(s.said) >= maxSaid {
		clear(s.said)
	}
	s.said[key] = line
	if key.session != s.main {
		line = "Subagent: " + line
	}
	s.writeLine(line)
}

// planLine says in a line how far a plan is.
func planLine(p *transcript.Plan) string {
	switch plan := p.Content.(type) {
	case *acpv2.PlanItems:
		done, now := 0, ""
		for _, step := range plan.Entries {
			switch step.Status {
			case acpv2.PlanEntryStatusCompleted:
				done++
			case acpv2.PlanEntryStatusInProgress:
				if now == "" {
					now = safetext.Line(step.Content, maxTitle)
				}
			}
		}
		if p.Removed {
			return "Plan: removed"
		}
		line := fmt.Sprintf("Plan: %d of %d steps done", done, len(plan.Entries))
		if now != "" {
			line += "; now: " + now
		}
		if done == 0 && now == "" {
			for i, step := range plan.Entries {
				line += fmt.Sprintf("\n  %d. %s", i+1, safetext.Line(step.Content, maxTitle))
			}
		}
		return line
	case *acpv2.PlanMarkdown:
		return "Plan:\n" + safetext.Text(plan.Content)
	case *acpv2.PlanFile:
		return "Plan: in " + safetext.Line(plan.URI, maxTitle)
	}
	return "Plan: in a form that this program does not know"
}

// terminalText returns how a command ended and the end of its output, or "" while it is running.
func terminalText(t *transcript.Terminal) string {
	if !t.Exited() {
		return ""
	}
	lines := strings.Split(strings.TrimRight(safetext.Text(t.Plain()), "\n"), "\n")
	text := "Command: " + safetext.Line(t.Command, 300) + " — " + exitText(t.ExitStatus)
	if n := len(lines) - outputLines; n > 0 {
		text += fmt.Sprintf("\n  (%d earlier lines)", n)
		lines = lines[n:]
	}
	for _, line := range lines {
		if line != "" || len(lines) > 1 {
			text += "\n  " + line
		}
	}
	return text
}

func exitText(s *acpv2.TerminalExitStatus) string {
	switch {
	case s == nil:
		return "running"
	case s.Signal != "":
		return "terminated by " + safetext.Line(s.Signal, 20)
	case s.ExitCode != nil && *s.ExitCode != 0:
		return fmt.Sprintf("failed with status %d", *s.ExitCode)
	}
	return "done"
}

// subagentLine says in a line what a subagent does.
func subagentLine(a *transcript.Subagent) string {
	title := safetext.Line(a.Title, maxTitle)
	if title == "" {
		title = "a subagent"
	}
	state := "known"
	switch {
	case a.State == nil:
	case a.State.Idle():
		state = "idle"
	default:
		state = "working"
	}
	return "Subagent: " + title + " — " + state
}
