package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// liveBytes bounds the output that is shown of a running command.
const liveBytes = 32 << 10

// toolTerminal adds the terminal of a tool call.
func (b *builder) toolTerminal(c *transcript.ToolCall, id acpv2.TerminalID, title string, open bool) {
	t := b.t
	t.shows(b.it, string(id))
	term := t.snap.Terminal(id)
	if term == nil {
		b.line(indent(4), line{{"[terminal " + safetext.Line(string(id), 40) + "]", t.th.dim}})
		return
	}
	if cmd := safetext.Line(term.Command, maxTitle); cmd != "" && !strings.Contains(title, cmd) {
		b.line(prefix{line{{"  $ ", t.th.accent}}, line{{"    ", look{}}}}, line{}.put(cmd, look{}))
	}
	b.output(term, indent(2), open)
}

// shows records that an item shows a terminal, which then has no item of its own.
func (t *Transcript) shows(it *item, id string) {
	if slices.Contains(it.shows, id) {
		return
	}
	it.shows = append(it.shows, id)
	in := t.shownIn[id]
	if in == nil {
		in = map[uint64]bool{}
		t.shownIn[id] = in
	}
	in[it.seq] = true
	if len(in) == 1 {
		t.invalidateTerminal(id)
	}
}

// showsNothing undoes shows for an item.
func (t *Transcript) showsNothing(it *item) {
	for _, id := range it.shows {
		in := t.shownIn[id]
		delete(in, it.seq)
		if len(in) == 0 {
			delete(t.shownIn, id)
			t.invalidateTerminal(id)
		}
	}
	it.shows = nil
}

func (t *Transcript) invalidateTerminal(id string) {
	if term := t.snap.Terminal(acpv2.TerminalID(id)); term != nil {
		t.Invalidate(term.Seq())
	}
}

// terminal adds a terminal that no tool call shows.
func (b *builder) terminal(term *transcript.Terminal, p prefix, open bool) {
	cmd := safetext.Line(term.Command, maxTitle)
	if cmd == "" {
		cmd = "terminal " + safetext.Line(string(term.ID), 40)
	}
	l := line{}.put(cmd, look{attr: bold})
	if term.Cwd != "" && term.Cwd != b.t.opts.Cwd {
		l = l.put(" in "+b.t.path(term.Cwd), b.t.th.dim)
	}
	switch {
	case term.Exited():
	case b.t.isOver(term) && b.t.opts.Running != nil && b.t.opts.Running(term.ID):
		l = l.put(" · running in the background", b.t.th.accent)
	case b.t.isOver(term):
		l = l.put(" · not finished", b.t.th.dim)
	default:
		l = l.put(" · running", b.t.th.accent)
	}
	b.line(p, l)
	b.output(term, indent(2), open)
}

// output adds the output of a command and how the command ended.
func (b *builder) output(term *transcript.Terminal, p prefix, open bool) {
	th := b.t.th
	bar := line{{"│ ", th.dim}}
	b.add(p.with(prefix{bar, bar}), func(width int) []line {
		return th.outputLines(term, width, open)
	})
	if l := exitLine(th, term.ExitStatus); l != nil {
		b.line(p.with(prefix{line{{"└ ", th.dim}}, line{{"  ", th.dim}}}), l)
	}
}

// exitLine returns how a command ended, or nil if it succeeded.
func exitLine(th *Theme, s *acpv2.TerminalExitStatus) line {
	switch {
	case s == nil:
		return nil
	case s.Signal != "":
		return line{{"ended by " + safetext.Line(s.Signal, 40), th.bad}}
	case s.ExitCode == nil:
		return line{{"ended", th.dim}}
	case *s.ExitCode == 0:
		return line{{"exit 0", th.dim}}
	}
	return line{{fmt.Sprintf("exit %d", *s.ExitCode), th.bad}}
}

// outputLines draws the output of a command.
func (th *Theme) outputLines(term *transcript.Terminal, width int, open bool) []line {
	raw := term.Raw()
	hidden := 0
	limit := len(raw)
	if !term.Exited() {
		limit = liveBytes
	}
	if !open {
		limit = foldedBytes
	}
	if len(raw) > limit {
		rest := raw[len(raw)-limit:]
		if i := strings.IndexByte(rest, '\n'); i >= 0 {
			rest = rest[i+1:]
		}
		hidden = strings.Count(raw, "\n") - strings.Count(rest, "\n")
		raw = rest
	}
	ls := th.rawLines(raw, width)
	if term.Skipped > 0 && (open || hidden == 0 && len(ls) <= foldedOutput+1) {
		what := " before are not kept"
		var head []line
		if open && hidden == 0 && term.Head() != "" {
			what = " are not kept"
			head = th.rawLines(term.Head(), width)
		}
		if term.Gap() > 0 {
			head = append(head, line{{"… " + size(term.Gap()) + what, th.dim}})
		}
		ls = append(head, ls...)
	}
	if open {
		if hidden > 0 {
			ls = append([]line{{{"… " + count(hidden, "line", "lines") + " before", th.dim}}}, ls...)
		}
		return ls
	}
	return folded(th, ls, foldedOutput, hidden, true)
}

// rawLines draws a piece of the output of a command.
func (th *Theme) rawLines(raw string, width int) (ls []line) {
	s := strings.Trim(safetext.SGR(raw), "\n")
	if s == "" {
		return nil
	}
	for l := range strings.SplitSeq(s, "\n") {
		ls = append(ls, chop(th.styled(l), width)...)
	}
	return ls
}

// styled parses a line that safetext.SGR has produced.
func (th *Theme) styled(s string) line {
	var l line
	k := look{}
	col := 0
	for s != "" {
		text, rest, found := strings.Cut(s, "\x1b[")
		if strings.Contains(text, "\t") {
			text = tabs(strings.Repeat(" ", col%8)+text, 8)[col%8:]
		}
		l, col = l.put(text, k), col+textWidth(text)
		if !found {
			break
		}
		var params string
		params, s, _ = strings.Cut(rest, "m")
		k = look{}
		if params != "" && th.links { // links are where colours are
			k.raw = strings.TrimPrefix(params, "0;")
		}
	}
	return l
}
