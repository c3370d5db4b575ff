package view

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/shown"
	"github.com/goacp/acp/transcript"
)

// How much of a tool call is shown while it is folded, in lines.
const (
	foldedText   = 6
	foldedOutput = 8
	foldedDiff   = 40
	foldedPaths  = 3
)

// foldedBytes bounds the text of which the folded form is made.
const foldedBytes = 16 << 10

var kindSigns = map[acpv2.ToolKind]string{
	acpv2.ToolKindRead:       "≡",
	acpv2.ToolKindEdit:       "✎",
	acpv2.ToolKindDelete:     "⌫",
	acpv2.ToolKindMove:       "⇢",
	acpv2.ToolKindSearch:     "⌕",
	acpv2.ToolKindExecute:    "$",
	acpv2.ToolKindThink:      "∴",
	acpv2.ToolKindFetch:      "⇣",
	acpv2.ToolKindSwitchMode: "⇄",
}

// status returns a sign for the state of a tool call, a word for what is not as it should be in the end,
// and their colour.
func (t *Transcript) status(c *transcript.ToolCall) (sign, word string, k look) {
	th := t.th
	if (c.Ended() || t.isOver(c)) && t.runsOn(c) {
		return "◐", "running in the background", th.accent
	}
	if !c.Ended() && t.isOver(c) {
		return "⊘", "not finished", th.dim
	}
	if !c.Ended() && shown.Awaits(t.snap, c) {
		return "○", "waiting for an answer", th.warn
	}
	switch c.Status {
	case acpv2.ToolCallStatusPending:
		return "○", "waiting", th.dim
	case acpv2.ToolCallStatusPaused:
		return "‖", "paused", th.warn
	case acpv2.ToolCallStatusCompleted:
		return "✓", "", th.good
	case acpv2.ToolCallStatusFailed:
		return "✗", "failed", th.bad
	case acpv2.ToolCallStatusCancelled:
		return "⊘", "cancelled", th.dim
	case acpv2.ToolCallStatusInProgress:
		return "◐", "running", th.accent
	}
	return "◐", safetext.Line(string(c.Status), 30), th.accent
}

// runsOn reports whether a command of a tool call runs for sure.
func (t *Transcript) runsOn(c *transcript.ToolCall) bool {
	if t.opts.Running == nil {
		return false
	}
	for _, content := range c.Content {
		if term, ok := content.(*acpv2.Terminal); ok && t.opts.Running(term.TerminalID) {
			return true
		}
	}
	return false
}

// isOver reports whether nothing is running any longer, so that an unfinished call will not
// continue.
func (t *Transcript) isOver(e transcript.Entry) bool { return t.over || history.Unfinished(t.snap, e) }

// toolTitle returns what a tool call is about, in one line: what it runs, too.
func (t *Transcript) toolTitle(c *transcript.ToolCall) string { return t.titled(shown.Title(c)) }

// callTitle returns the title of a tool call alone, on one line.
func (t *Transcript) callTitle(c *transcript.ToolCall) string {
	return t.titled(cmp.Or(strings.TrimSpace(c.Title), strings.TrimSpace(c.Name), string(c.Kind)))
}

func (t *Transcript) titled(title string) string {
	s := safetext.Line(title, maxTitle)
	// Titles tend to be Markdown with paths.
	if len(s) > 1 && s[0] == '`' && strings.Count(s, "`") == 2 && s[len(s)-1] == '`' {
		s = s[1 : len(s)-1]
	}
	if t.opts.Cwd != "" && t.opts.Cwd != "/" {
		s = strings.ReplaceAll(s, strings.TrimSuffix(t.opts.Cwd, "/")+"/", "")
	}
	return s
}

// tool adds a tool call.
func (b *builder) tool(c *transcript.ToolCall) {
	t, th := b.t, b.t.th
	open := t.expanded(b.it)
	sign, word, k := t.status(c)
	title := t.toolTitle(c)
	l := line{}
	if shown.Parent(t.snap, c) != nil {
		l = l.put("↳ ", th.dim)
	}
	if s := kindSigns[c.Kind]; s != "" {
		l = l.put(s+" ", th.accent)
	}
	l = extend(l, t.linked(title, c, look{attr: bold}))
	paths := t.locations(c, title)
	for i, p := range paths {
		if i == foldedPaths && !open {
			l = l.put(" +"+strconv.Itoa(len(paths)-i), th.dim)
			break
		}
		if !strings.HasPrefix(p.text, ":") {
			l = l.put(" ", th.dim)
		}
		to := th.dim
		to.link = p.link
		l = l.put(p.text, to)
	}
	// The content of a file that was read is meant for the agent. Its size is enough for the user.
	brief := c.Kind == acpv2.ToolKindRead && c.Status == acpv2.ToolCallStatusCompleted && !open
	if n := textLines(c.Content); brief && n > 0 {
		l = l.put(" · "+count(n, "line", "lines"), th.dim)
	}
	asked := t.asked(c)
	if d := history.DecisionOf(c.Meta); d != nil { // a gateway knows by whom, too
		k := th.dim
		if d.Rejects() {
			k = th.bad
		}
		l = l.put(" · "+d.String(), k)
	} else if asked != nil {
		if s, k := t.answer(asked); s != "" {
			l = l.put(" · "+s, k)
		}
	}
	if word != "" {
		l = l.put(" · "+word, k)
	}
	b.line(mark(sign, k), l)
	head := len(b.parts)
	for _, content := range c.Content {
		switch content := content.(type) {
		case *acpv2.Content:
			if _, text := content.Content.(*acpv2.TextContent); !brief || !text {
				b.toolContent(c, content.Content, open)
			}
		case *acpv2.Diff:
			b.diff(content, open)
		case *acpv2.Terminal:
			b.toolTerminal(c, content.TerminalID, title, open)
		case *acpv2.SessionReference:
			b.line(indent(4), line{{"subagent: " + childTitle(t.snap, content.SessionID) + " · Enter shows it", th.dim}})
		case *acpv2.UnknownToolCallContent:
			b.line(indent(4), line{}.put("[unknown content] ", th.dim).put(safetext.Line(content.Type, 80), th.dim))
		}
	}
	b.it.compact = len(b.parts) == head
	if open {
		if c.Name != "" && safetext.Line(c.Name, 200) != title {
			b.line(indent(2), line{{"tool: " + safetext.Line(c.Name, 200), th.dim}})
		}
		if asked != nil {
			b.question(asked)
		}
		if p := shown.Parent(t.snap, c); p != nil {
			b.line(indent(2), line{{"in: " + t.callTitle(p), th.dim}})
		}
		b.json("input", c.RawInput)
		b.json("output", c.RawOutput)
	}
}

// question adds what was asked about a tool call, and the option that was chosen.
func (b *builder) question(p *transcript.Permission) {
	text := safetext.Line(p.Title, maxTitle)
	if option, ok := p.Selected(); ok {
		text += " → " + safetext.Line(option.Name, 200)
	}
	b.line(indent(2), line{{"asked: " + text, b.t.th.dim}})
}

// A place is a location of a tool call as it is shown.
type place struct{ text, link string }

// locations returns the places of a tool call that its title does not name.
func (t *Transcript) locations(c *transcript.ToolCall, title string) []place {
	var out []place
	for _, l := range c.Locations {
		at := 0
		p := t.path(l.Path)
		if l.Line != nil {
			at = int(*l.Line)
			p += ":" + strconv.Itoa(at)
		}
		if p == "" || strings.Contains(title, p) {
			continue
		}
		if l.Line != nil && strings.HasSuffix(title, t.path(l.Path)) && len(out) == 0 {
			p = ":" + strconv.Itoa(at)
		}
		if len(out) == 0 || out[len(out)-1].text != p {
			out = append(out, place{p, t.fileLink(l.Path, at)})
		}
	}
	return out
}

// fileLink returns the address that opens a file, or "".
func (t *Transcript) fileLink(path string, line int) string {
	if t.opts.FileLink == nil {
		return ""
	}
	return printable(t.opts.FileLink(path, line))
}

// linked makes links of the places that a title names.
func (t *Transcript) linked(title string, c *transcript.ToolCall, k look) line {
	for _, l := range c.Locations {
		names, at := []string{t.path(l.Path)}, 0
		if l.Line != nil {
			at = int(*l.Line)
			names = []string{names[0] + ":" + strconv.Itoa(at), names[0]}
		}
		for _, name := range names {
			i := strings.Index(title, name)
			link := t.fileLink(l.Path, at)
			if name == "" || i < 0 || link == "" {
				continue
			}
			to := k
			to.link = link
			return line{}.put(title[:i], k).put(name, to).put(title[i+len(name):], k)
		}
	}
	return line{}.put(title, k)
}

// toolContent adds the content of a tool call.
func (b *builder) toolContent(c *transcript.ToolCall, content acpv2.ContentBlock, open bool) {
	text, ok := content.(*acpv2.TextContent)
	if !ok || open {
		b.block(indent(4), content, false)
		return
	}
	th := b.t.th
	s := strings.Trim(text.Text, "\n")
	if strings.TrimSpace(s) == "" {
		return
	}
	tail := c.Kind == acpv2.ToolKindExecute
	b.add(indent(4), func(width int) []line {
		part, hidden := s, 0
		if len(part) > foldedBytes {
			if tail {
				part = part[len(part)-foldedBytes:]
			} else {
				part = part[:foldedBytes]
			}
			hidden = strings.Count(s, "\n") - strings.Count(part, "\n")
		}
		return folded(th, th.someLines(safetext.Text(part), width, foldedText+1, tail), foldedText, hidden, tail)
	})
}

// someLines draws a Markdown text of which only the first n lines are shown, or the last ones if tail.
// There are as many lines as in the whole, but code in the others has no colours: they take most of the
// time.
func (th *Theme) someLines(src string, width, n int, tail bool) []line {
	pieces := splitMarkdown(src, nil)
	drawn := make([][]line, len(pieces))
	for k := range pieces {
		i := k
		if tail {
			i = len(pieces) - 1 - k
		}
		pc := pieces[i]
		if pc.code && pc.info != "" {
			drawn[i] = th.someCode(codeText(src[pc.start:pc.end], pc), pc.info, width, n, tail)
		} else {
			drawn[i] = th.pieceLines(src, pc, width)
		}
		n -= len(drawn[i])
	}
	var out []line
	for i, ls := range drawn {
		if pieces[i].gap && i > 0 {
			out = append(out, nil)
		}
		out = append(out, ls...)
	}
	return out
}

// someCode draws code, of which the first n lines are coloured, or the last ones if tail.
func (th *Theme) someCode(src, lang string, width, n int, tail bool) []line {
	if src == "" {
		return nil
	}
	at, from := 0, src
	if tail {
		n = strings.Count(strings.TrimSuffix(src, "\n"), "\n") + 1 - max(n, 0)
	}
	for ; n > 0 && from != ""; n-- {
		if _, after, ok := strings.Cut(from, "\n"); ok {
			at, from = len(src)-len(after), after
			continue
		}
		at, from = len(src), ""
	}
	langs := [2]string{lang, ""}
	if tail {
		langs = [2]string{"", lang}
	}
	var out []line
	for i, part := range []string{src[:at], src[at:]} {
		if part != "" {
			out = append(out, th.codeBlock(part, langs[i], width)...)
		}
	}
	return out
}

// folded returns the first or last n lines, and the number of all others.
func folded(th *Theme, ls []line, n, hidden int, tail bool) []line {
	if len(ls) <= n+1 && hidden == 0 {
		return ls
	}
	more := line{{"… " + count(max(len(ls)-n, 0)+hidden, "line", "lines") + " more", th.dim}}
	n = min(n, len(ls))
	if tail {
		return append([]line{more}, ls[len(ls)-n:]...)
	}
	return append(append([]line{}, ls[:n]...), more)
}

// textLines returns how many lines of text there are.
func textLines(content []acpv2.ToolCallContent) int {
	n := 0
	for _, c := range content {
		if c, ok := c.(*acpv2.Content); ok {
			if text, ok := c.Content.(*acpv2.TextContent); ok {
				n += lineCount(text.Text)
			}
		}
	}
	return n
}

// lineCount returns how many lines a text has, without the fence around it that makes a file code.
func lineCount(s string) int {
	s = strings.Trim(s, "\n")
	if s == "" {
		return 0
	}
	n := strings.Count(s, "\n") + 1
	if fence := s[:len(s)-len(strings.TrimLeft(s, "`"))]; len(fence) >= 3 && n >= 2 && strings.HasSuffix(s, "\n"+fence) {
		n -= 2
	}
	return n
}

// childTitle returns the title of a subagent's session, or its id.
func childTitle(snap *transcript.Snapshot, id acpv2.SessionID) string {
	if sub := snap.Subagent(id); sub != nil && sub.Title != "" {
		return safetext.Line(sub.Title, 80)
	}
	return safetext.Line(string(id), 80)
}
