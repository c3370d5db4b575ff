package plain

import (
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
	// outputLines is how much of the output of a command is said, of its end.
	outputLines = 20
	// maxSaid bounds what is remembered of entries that were said.
	maxSaid = 8192
)

// A show says what happens, each thing once. Its methods may be called from any goroutine.
type show struct {
	thoughts bool
	typed    bool // by a user, on a terminal

	mu     sync.Mutex
	asking bool // a prompt was written, and nothing typed behind it
	w      io.Writer
	out    Stream
	main   acp.SessionID // "" before the conversation has begun: history is said by begin
	at     entryKey      // the message that is being said
	read   map[entryKey]int
	said   map[entryKey]string // what was said of an entry last
}

type entryKey struct {
	session acp.SessionID
	seq     uint64
}

func newShow(a *app.App) *show {
	return &show{typed: a.InTerminal, w: a.Out, out: Stream{W: a.Out}, read: map[entryKey]int{}, said: map[entryKey]string{}}
}

// line says a line.
func (s *show) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(text)
}

func (s *show) put(text string) {
	if s.asking { // what was asked for has not come
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

// prompt writes a text that is answered on the same line, where what is typed can be seen.
func (s *show) prompt(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.typed {
		s.put(strings.TrimSpace(text))
		return
	}
	if s.asking {
		_, _ = io.WriteString(s.w, "\n")
	}
	_ = s.out.EndLine()
	_, _ = io.WriteString(s.w, text)
	s.asking = true
}

// answered notes that a line was typed behind the prompt.
func (s *show) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = false
}

func (s *show) endLine() { s.line("") }

// begin says the history of a session that goes on.
func (s *show) begin(session *backend.Session, how acp.Restored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.main = session.ID()
	snap := session.Snapshot()
	if snap.Len() == 0 {
		return
	}
	if how == acp.RestoredNew {
		s.put("Earlier, which the agent does not know any more:")
	}
	for e := range snap.Entries() {
		key := entryKey{s.main, e.Seq()}
		if m, ok := e.(*transcript.Message); ok {
			switch m.Role {
			case transcript.RoleUser:
				s.put("You: " + safetext.Text(m.Text()))
			case transcript.RoleAgent:
				s.put("Agent: " + safetext.Text(m.Text()))
			}
			s.read[key] = len(m.Text())
			continue
		}
		if end, ok := e.(*transcript.TurnEnd); ok {
			if text := history.EndingLine(end); text != "" {
				s.put(text + ".")
			}
			continue
		}
		s.entry(s.main, e)
	}
	if how == acp.RestoredNew {
		s.put("This is a new session.")
	}
}

// changed is the hook of that name of a frontend.
func (s *show) changed(session *backend.Session, changes []transcript.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.main == "" {
		return
	}
	s.changes(session.ID(), session.Snapshot(), changes)
}

// changes says what changed in a session, with mu held.
func (s *show) changes(id acp.SessionID, snap *transcript.Snapshot, changes []transcript.Change) {
	whole := map[uint64]bool{}
	for _, ch := range changes {
		if ch.Op == transcript.OpSession || ch.Op == transcript.OpNone || whole[ch.Seq] {
			continue
		}
		e := snap.Entry(ch.Seq)
		if e == nil {
			continue
		}
		m, ok := e.(*transcript.Message)
		if !ok {
			s.entry(id, e)
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
			s.message(key, m, text)
		}
	}
}

// message says more of a message.
func (s *show) message(key entryKey, m *transcript.Message, text string) {
	first := s.read[key] == 0
	s.read[key] += len(text)
	switch {
	case m.Role == transcript.RoleUser:
		return // the user knows
	case m.Role == transcript.RoleThought && !s.thoughts:
		if first && key.session == s.main {
			s.put("Thinking.")
		}
		return
	case key.session != s.main:
		return // what subagents say is theirs; what they do is told
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

// entry says an entry that is no message, if there is something new to say.
func (s *show) entry(id acp.SessionID, e transcript.Entry) {
	line := ""
	switch e := e.(type) {
	case *transcript.ToolCall:
		// Waiting and running are one: a call is told when it begins and when it has ended.
		if e.Title == "" && !e.Ended() {
			return
		}
		line = ToolLine(e)
		key := entryKey{id, e.Seq()}
		if !e.Ended() && s.said[key] != "" {
			return
		}
	case *transcript.Plan:
		line = planLine(e)
	case *transcript.Terminal:
		line = terminalText(e)
	case *transcript.Notice:
		line = NoticeLine(e)
	case *transcript.Compaction:
		line = "The context is condensed: " + safetext.Line(string(e.Status), 20)
	case *transcript.Subagent:
		line = subagentLine(e)
	case *transcript.Unknown:
		line = "Something that this program does not know."
	default:
		return
	}
	key := entryKey{id, e.Seq()}
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
	s.put(line)
}

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
			return "Plan: taken away"
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

// terminalText says how a command ended, with the end of its output.
func terminalText(t *transcript.Terminal) string {
	if !t.Exited() {
		return ""
	}
	lines := strings.Split(strings.TrimRight(safetext.Text(t.Plain()), "\n"), "\n")
	text := "Command: " + safetext.Line(t.Command, 300) + " — " + exitText(t.ExitStatus)
	if n := len(lines) - outputLines; n > 0 {
		text += fmt.Sprintf("\n  (%d lines before)", n)
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
		return "ended by " + safetext.Line(s.Signal, 20)
	case s.ExitCode != nil && *s.ExitCode != 0:
		return fmt.Sprintf("failed with status %d", *s.ExitCode)
	}
	return "done"
}

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
		state = "at work"
	}
	return "Subagent: " + title + " — " + state
}

// DiffLines returns the changes to files in a tool call's content as lines: in full, since what is
// not seen is not agreed to.
func DiffLines(content []acp.ToolCallContent) (lines []string) {
	for _, c := range content {
		d, ok := c.(*acpv2.Diff)
		if !ok || d == nil || d.Patch == nil {
			continue
		}
		lines = append(lines, "  Change:")
		for line := range strings.SplitSeq(strings.TrimRight(safetext.Text(d.Patch.Text), "\n"), "\n") {
			lines = append(lines, "    "+line)
		}
	}
	return lines
}
