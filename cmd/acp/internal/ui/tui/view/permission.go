package view

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/shown"
	"github.com/goacp/acp/transcript"
)

// tellsOf reports whether the line of the tool call that a question is about shows the answer: the
// call is above the question, its line shows what was asked for, and no later question is about it.
func (t *Transcript) tellsOf(p *transcript.Permission) bool {
	c := t.snap.ToolCall(shown.AskedCall(p))
	if c == nil || c.Seq() > p.Seq() || t.askedIn[c.ID] != p.Seq() {
		return false
	}
	title := shown.Title(c)
	if command, certain := shown.Asked(t.snap, p); !certain || shown.With(title, command) != title {
		return false
	}
	word, _ := t.answer(p)
	return word != "" || p.Outcome == nil
}

// asked returns the question whose answer the line of a tool call shows, or nil.
func (t *Transcript) asked(c *transcript.ToolCall) *transcript.Permission {
	p, ok := t.snap.Entry(t.askedIn[c.ID]).(*transcript.Permission)
	if !ok || !t.tellsOf(p) {
		return nil
	}
	return p
}

// unsent is what follows an answer that was not sent yet.
const unsent = " · not sent yet"

// isUnsent reports whether an answer was not sent yet.
func (t *Transcript) isUnsent(p *transcript.Permission) bool {
	return t.opts.Unsent != nil && p.Outcome != nil && t.opts.Unsent(p)
}

// answer returns the answer to a question in a few words, or "" if it has none of the usual.
func (t *Transcript) answer(p *transcript.Permission) (words string, k look) {
	words, k = t.answered(p)
	if words != "" && t.isUnsent(p) {
		return words + unsent, t.th.warn
	}
	return words, k
}

// answered is answer, wherever the answer is by now.
func (t *Transcript) answered(p *transcript.Permission) (word string, k look) {
	th := t.th
	switch p.Outcome.(type) {
	case *acpv2.CancelledPermissionOutcome:
		return "not answered", th.dim
	case *acpv2.SelectedPermissionOutcome:
		option, _ := p.Selected()
		switch option.Kind {
		case acpv2.PermissionOptionKindAllowOnce:
			return "allowed", th.dim
		case acpv2.PermissionOptionKindAllowAlways:
			return "always allowed", th.dim
		case acpv2.PermissionOptionKindRejectOnce:
			return "rejected", th.bad
		case acpv2.PermissionOptionKindRejectAlways:
			return "always rejected", th.bad
		}
	}
	return "", look{}
}

// permission adds a permission request and its answer, unless the tool call shows both.
func (b *builder) permission(p *transcript.Permission) {
	th := b.t.th
	b.it.compact = true
	if b.t.tellsOf(p) {
		return
	}
	title := safetext.VisibleLine(strings.TrimSpace(p.Title), maxTitle)
	if title == "" {
		title = "a permission"
	}
	switch command, certain := shown.Asked(b.t.snap, p); {
	case command != "":
		if shown.With(p.Title, command) != p.Title {
			title += " $ " + safetext.VisibleLine(strings.TrimRight(command, "\n"), maxTitle)
		}
	case !certain:
		title += " (it is not known what would run)"
	}
	if b.t.isUnsent(p) {
		title += unsent
	}
	switch p.Outcome.(type) {
	case nil:
		b.line(mark("?", th.warn.with(bold)), line{}.put("Asks: ", th.warn.with(bold)).put(title, look{}))
	case *acpv2.SelectedPermissionOutcome:
		option, ok := p.Selected()
		name := safetext.Line(option.Name, 200)
		if !ok {
			b.line(mark("?", th.dim), line{}.put("Answered with an option that was not offered: ", th.dim).put(title, th.dim))
			return
		}
		sign, word, k := "✓", "Allowed", th.good
		switch option.Kind {
		case acpv2.PermissionOptionKindAllowOnce, acpv2.PermissionOptionKindAllowAlways:
		case acpv2.PermissionOptionKindRejectOnce, acpv2.PermissionOptionKindRejectAlways:
			sign, word, k = "✗", "Rejected", th.bad
		default:
			sign, word, k = "•", "Answered", th.info
		}
		if strings.EqualFold(name, "allow") || strings.EqualFold(name, "reject") {
			name = "" // it says no more than the word does
		} else {
			name = " (" + name + ")"
		}
		b.line(mark(sign, k), line{}.put(word, k).put(name+": ", th.dim).put(title, th.dim))
	case *acpv2.CancelledPermissionOutcome:
		b.line(mark("⊘", th.dim), line{}.put("Not answered: ", th.dim).put(title, th.dim))
	default:
		b.line(mark("?", th.dim), line{}.put("Answered: ", th.dim).put(title, th.dim))
	}
}

// Permission draws the subject of a permission request in full: the title, the description, the
// command and its directory, the changes to files, and everything else that is known about the tool
// call, with everything written out that nobody sees. It does not draw the options. snap may be nil.
func Permission(req *acp.PermissionRequest, snap *transcript.Snapshot, width int, th *Theme) []string {
	t := New(th)
	t.width = max(width, 1)
	if req.Session != nil {
		t.opts.Cwd = req.Session.Cwd()
	}
	if snap != nil {
		t.snap = snap
	}
	b := builder{t: t, it: &item{open: opened}}
	var callID acpv2.ToolCallID
	var asked string // the command that is shown already, or will be
	switch s := req.Subject.(type) {
	case *acpv2.CommandPermissionSubject:
		callID, asked = s.ToolCallID, s.Command
	case *acpv2.ToolCallPermissionSubject:
		callID = s.ToolCall.ToolCallID
	}
	call := knownCall(req, t.snap, callID)
	certain := true
	if asked == "" && call != nil {
		asked, certain = shown.Command(call)
	}
	said := []string{asked} // what is shown is not shown again
	again := func(text string) bool {
		for _, s := range said {
			if shown.Same(text, s, t.opts.Cwd) {
				return true
			}
		}
		said = append(said, text)
		return false
	}
	title, theirs := shown.Asks(req.Title, again(req.Title))
	head := line{}
	if theirs {
		head = head.put("The agent says: ", th.dim)
	}
	b.line(prefix{}, head.put(title, look{attr: bold}))
	if strings.TrimSpace(req.Description) != "" && !again(req.Description) {
		text := safetext.VisibleCode(req.Description)
		b.pieces(prefix{}, text, splitMarkdown(text, nil), true)
	}
	switch s := req.Subject.(type) {
	case *acpv2.CommandPermissionSubject:
		b.command(s.Command, s.Cwd)
	case *acpv2.UnknownRequestPermissionSubject:
		b.line(prefix{}, line{{"This is about something of an unknown kind: " + safetext.Line(s.Type, 80), th.warn}})
		b.json("", s.Raw)
	}
	if call == nil {
		return t.allLines(b.parts)
	}
	for _, l := range call.Locations {
		said = append(said, l.Path)
	}
	b.askedCall(shown.VisibleCall(call), title, again)
	_, command := req.Subject.(*acpv2.CommandPermissionSubject)
	switch {
	case asked != "" && !command:
		b.command(asked, "")
		if !certain {
			b.line(indent(2), line{{"as the agent displays it; it is not certain what would run", th.warn}})
		}
	case asked == "" && !certain:
		b.line(prefix{}, line{{"It is not known what would run.", th.warn}})
	}
	changes := slices.ContainsFunc(call.Content, func(c acp.ToolCallContent) bool { d, ok := c.(*acpv2.Diff); return ok && d.Patch != nil })
	if shown.NeedsInput(asked, certain, changes) {
		b.input(shown.Input(call.RawInput, t.opts.Cwd, said...))
	}
	return t.allLines(b.parts)
}

// input draws the input of a tool.
func (b *builder) input(values []shown.Value) {
	if len(values) == 0 {
		return
	}
	var lines []string
	for _, v := range values {
		lines = append(lines, v.Lines()...)
	}
	text := strings.Join(lines, "\n")
	b.line(indent(2), line{{"input", b.t.th.dim}})
	b.pieces(indent(4), text, splitPlain(text, ""), false)
}

// askedCall draws the tool call of a permission request below a title. It leaves out texts for
// which again reports that they are shown already.
func (b *builder) askedCall(call *transcript.ToolCall, title string, again func(text string) bool) {
	t, th := b.t, b.t.th
	if s := t.callTitle(call); s != "" && !strings.Contains(title, s) && !again(s) {
		l := line{}
		if k := kindSigns[call.Kind]; k != "" {
			l = l.put(k+" ", th.accent)
		}
		b.line(prefix{}, l.put(s, look{}))
	}
	var places line
	for i, l := range call.Locations {
		if i > 0 {
			places = places.put("  ", th.dim)
		}
		text := shorter(l.Path, t.opts.Cwd)
		if l.Line != nil {
			text += ":" + strconv.Itoa(int(*l.Line))
		}
		places = places.put(text, th.dim)
	}
	if len(places) > 0 {
		b.line(indent(2), places)
	}
	for _, c := range call.Content {
		switch c := c.(type) {
		case *acpv2.Content:
			if text, ok := c.Content.(*acpv2.TextContent); !ok || !again(text.Text) {
				b.block(prefix{}, c.Content, true)
			}
		case *acpv2.Diff:
			for _, f := range diffFiles(c) {
				b.add(prefix{}, func(width int) []line {
					return append([]line{nil}, th.fileLines(&f, t.opts.Cwd, width, t.opts.Diff)...)
				})
			}
		case *acpv2.Terminal:
			if term := t.snap.Terminal(c.TerminalID); term != nil && term.Command != "" && !again(term.Command) {
				b.command(term.Command, term.Cwd)
			}
		case *acpv2.UnknownToolCallContent:
			b.line(prefix{}, line{{"[unknown content] " + safetext.Line(c.Type, 80), th.dim}})
		}
	}
}

// command adds a command in full.
func (b *builder) command(cmd, cwd string) {
	th := b.t.th
	cmd, cwd = safetext.Visible(strings.TrimRight(cmd, "\n")), safetext.VisibleLine(cwd, 1<<20)
	b.add(prefix{}, func(width int) []line {
		var out []line
		for _, l := range th.codeLines(cmd, lexerFor("bash", false)) {
			out = append(out, chop(l, max(width-2, 1))...)
		}
		out = before(out, decorated(line{{"$ ", th.accent}}), decorated(line{{"  ", look{}}}))
		return append([]line{nil}, out...)
	})
	if cwd != "" {
		b.line(indent(2), line{{"in " + shorter(cwd, ""), th.dim}})
	}
}

// knownCall returns what is known about the tool call of a request, or nil.
func knownCall(req *acp.PermissionRequest, snap *transcript.Snapshot, id acpv2.ToolCallID) *transcript.ToolCall {
	if id == "" && req.ToolCall != nil {
		id = req.ToolCall.ToolCallID
	}
	if id != "" {
		if c := snap.ToolCall(id); c != nil {
			return c
		}
	}
	u := req.ToolCall
	if u == nil {
		return nil
	}
	c := transcript.New(transcript.Config{})
	c.Apply(u)
	return c.Snapshot().ToolCall(u.ToolCallID)
}

// allLines draws parts.
func (t *Transcript) allLines(parts []part) []string {
	var out []string
	for i := range parts {
		out = append(out, t.drawn(&parts[i])...)
	}
	return out
}
