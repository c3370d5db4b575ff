package view

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// maxTitle bounds a title, in cells.
const maxTitle = 1000

// mark returns the prefix of an entry: a symbol on the first line, and spaces below it.
func mark(sign string, k look) prefix {
	return prefix{line{{sign, k}, {" ", look{}}}, line{{"  ", look{}}}}
}

// indent is a prefix of spaces.
func indent(n int) prefix {
	l := line{{strings.Repeat(" ", n), look{}}}
	return prefix{l, l}
}

// with returns the prefix with more after it.
func (p prefix) with(q prefix) prefix {
	return prefix{
		append(append(line{}, p.first...), q.first...),
		append(append(line{}, p.rest...), q.rest...),
	}
}

// under returns the prefix for the lines after the first.
func (p prefix) under() prefix { return prefix{p.rest, p.rest} }

// A split is a text with its pieces.
type split struct {
	text   string
	pieces []piece
	part   int // where its parts begin
}

// build makes the parts of an entry. Parts that did not change keep what was drawn of them.
func (t *Transcript) build(it *item, e transcript.Entry) {
	old := it.parts
	it.compact = false
	b := builder{t: t, it: it}
	switch e := e.(type) {
	case *transcript.Message:
		if t.message(it, e) {
			return
		}
	case *transcript.ToolCall:
		t.showsNothing(it)
		b.tool(e)
	case *transcript.Plan:
		b.plan(e)
	case *transcript.Terminal:
		if len(t.shownIn[string(e.ID)]) == 0 {
			b.terminal(e, mark("$", t.th.accent), t.expanded(it))
		}
	case *transcript.Notice:
		b.notice(e)
	case *transcript.Compaction:
		b.compaction(e)
	case *transcript.Subagent:
		b.subagent(e)
	case *transcript.SessionMessage:
		b.sessionMessage(e)
	case *transcript.Permission:
		b.permission(e)
	case *transcript.TurnEnd:
		b.turnEnd(e)
	case *transcript.Unknown:
		b.line(mark("?", t.th.dim), line{}.put("unknown update: ", t.th.dim).put(safetext.Line(e.Type, 200), look{}))
		if t.expanded(it) {
			b.json("", e.Raw)
		}
		it.compact = true
	}
	if n := e.Dropped(); n > 0 {
		b.line(indent(2), line{{fmt.Sprintf("… %s of this were too much to keep", size(uint64(n))), t.th.dim}})
	}
	t.replace(it, old, b.parts)
}

// replace sets new parts, and reuses what was drawn of equal old ones.
func (t *Transcript) replace(it *item, old, parts []part) {
	for j := range parts {
		p := &parts[j]
		if j < len(old) {
			o := &old[j]
			if p.text && o.text && o.src == p.src && samePiece(o.piece, p.piece) && o.gap == p.gap && o.exact && samePrefix(o.prefix, p.prefix) {
				p.lines, p.height, p.bytes, p.exact = o.lines, o.height, o.bytes, true
				o.bytes = 0
				continue
			}
		}
		p.height = p.estimate(t.width)
	}
	for j := range old {
		t.cached -= old[j].bytes
	}
	it.parts = parts
}

// samePiece reports whether two pieces are equal except for their position.
func samePiece(a, b piece) bool {
	a.start, a.end, b.start, b.end = 0, 0, 0, 0
	return a == b
}

func samePrefix(a, b prefix) bool {
	eq := func(a, b line) bool {
		if len(a) != len(b) {
			return false
		}
		for i := range a {
			if a[i] != b[i] {
				return false
			}
		}
		return true
	}
	return eq(a.first, b.first) && eq(a.rest, b.rest)
}

// estimate estimates the height of a part.
func (p *part) estimate(width int) int {
	if p.draw == nil {
		return 0
	}
	h := 1
	if p.text {
		n := strings.Count(strings.TrimRight(p.src, "\n"), "\n")
		h = n + max(len(p.src)-n*width/3, 0)/max(width, 1) + 1
	}
	if p.gap {
		h++
	}
	return h
}

// A builder collects the parts of an item.
type builder struct {
	t     *Transcript
	it    *item
	parts []part
}

// add adds a part that is drawn by a function of the width.
func (b *builder) add(p prefix, draw func(width int) []line) {
	b.parts = append(b.parts, part{prefix: p, draw: draw})
}

// line adds a line, which is wrapped.
func (b *builder) line(p prefix, l line) {
	b.add(p, func(width int) []line { return wrap(l, width) })
}

// json adds raw JSON.
func (b *builder) json(label string, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	th := b.t.th
	p := indent(4)
	if label != "" {
		b.line(indent(2), line{{label, th.dim}})
	}
	s := indentJSON(raw)
	b.pieces(p, s, splitPlain(s, "json"), false)
}

// indentJSON returns JSON on several lines.
func indentJSON(raw json.RawMessage) string {
	var v strings.Builder
	enc := json.NewEncoder(&v)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if len(raw) > 256<<10 || enc.Encode(raw) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(v.String(), "\n")
}

// splitPlain splits text that is code without a fence.
func splitPlain(s, lang string) []piece {
	var out []piece
	for pos := 0; pos < len(s); {
		end := len(s)
		if end-pos > codePiece*3/2 {
			cut := s[pos : pos+codePiece*3/2]
			if i := strings.LastIndexByte(cut, '\n'); i > 0 {
				end = pos + i + 1
			} else {
				end = pos + breakAt(cut)
			}
		}
		out = append(out, piece{start: pos, end: end, code: true, info: lang})
		pos = end
	}
	return out
}

// pieces adds the pieces of a text.
func (b *builder) pieces(p prefix, s string, ps []piece, gap bool) {
	for i, pc := range ps {
		q := p
		if i > 0 {
			q = p.under()
		}
		pc.gap = pc.gap || gap && i == 0
		b.parts = append(b.parts, b.t.textPart(q, s, pc))
	}
}

// textPart returns the part that draws a piece of a text.
func (t *Transcript) textPart(p prefix, s string, pc piece) part {
	src := s[pc.start:pc.end]
	gap := pc.gap
	pc.start, pc.end, pc.gap = 0, 0, false
	as := func(pc piece) func(int) []line {
		return func(width int) []line {
			safe := safetext.Text(src)
			pc := pc
			pc.end = len(safe)
			return t.th.pieceLines(safe, pc, width)
		}
	}
	out := part{prefix: p, src: src, piece: pc, text: true, gap: gap, draw: as(pc)}
	if pc.code && pc.info != "" {
		pc.info = "" // colours take most of the time
		out.plain = as(pc)
	}
	return out
}

// notice adds a notice.
func (b *builder) notice(n *transcript.Notice) {
	th := b.t.th
	p := mark("i", th.info)
	switch n.Severity {
	case acpv2.NoticeSeverityWarning:
		p = mark("!", th.warn.with(bold))
	case acpv2.NoticeSeverityError:
		p = mark("✗", th.bad.with(bold))
	}
	l := line{}
	switch n.Severity {
	case acpv2.NoticeSeverityInfo:
	case acpv2.NoticeSeverityWarning:
		l = l.put("Warning: ", th.warn.with(bold))
	case acpv2.NoticeSeverityError:
		l = l.put("Error: ", th.bad.with(bold))
	default:
		if n.Severity != "" {
			l = l.put(safetext.Line(string(n.Severity), 40)+": ", th.info.with(bold))
		}
	}
	b.line(p, l.put(safetext.Line(n.Title, maxTitle), look{attr: bold}))
	b.it.compact = strings.TrimSpace(n.Description) == ""
	if !b.it.compact {
		b.pieces(indent(2), n.Description, splitMarkdown(n.Description, nil), false)
	}
}

// turnEnd adds how a turn ended, unless it ended normally.
func (b *builder) turnEnd(end *transcript.TurnEnd) {
	title, reason, said := history.Ending(end)
	if title == "" {
		return
	}
	th := b.t.th
	sign, k := "⊘", th.dim
	switch end.By {
	case transcript.EndedByAgent, transcript.EndedByCrash, "":
		if sign, k = "!", th.warn; title == history.Failed || end.By == transcript.EndedByCrash {
			sign, k = "✗", th.bad
		}
	}
	l := line{}.put(title, k)
	if said {
		l = l.put("; the agent said", k)
	}
	if reason != "" {
		l = l.put(": "+reason, look{})
	}
	b.line(mark(sign, k), l)
	b.it.compact = true
}

// compaction adds the compaction of the context.
func (b *builder) compaction(c *transcript.Compaction) {
	th := b.t.th
	what, k := "Condensing the context …", th.dim
	switch c.Status {
	case acpv2.CompactionStatusCompleted:
		what = "Context condensed"
	case acpv2.CompactionStatusFailed:
		what, k = "Condensing the context failed", th.bad
	case acpv2.CompactionStatusCancelled:
		what = "Condensing the context was cancelled"
	}
	if c.Error != "" {
		what += ": " + safetext.Line(c.Error, maxTitle)
	}
	summary := c.Summary()
	open := b.t.expanded(b.it)
	if len(summary) > 0 && !open {
		what += " ▸"
	}
	b.add(prefix{}, func(width int) []line {
		if len(what) > width-8 {
			return wrap(line{{"── ", th.dim}, {what, k}}, width)
		}
		l := line{}.put("── ", th.dim).put(what, k).put(" ", k)
		return []line{l.put(strings.Repeat("─", max(min(width, 80)-l.width(), 0)), th.dim)}
	})
	if open {
		for i, s := range summary {
			b.block(indent(2), s, i > 0)
		}
	}
}

// subagent adds a child session.
func (b *builder) subagent(s *transcript.Subagent) {
	th := b.t.th
	sign, word, k := "◌", "", th.dim
	if s.State != nil {
		switch {
		case !s.State.Idle() && b.t.isOver(s):
			sign, word = "⊘", "not finished"
		case !s.State.Idle():
			sign, word, k = "◐", "running", th.accent
			if s.State.Foreground == transcript.ForegroundRequiresAction {
				word, k = "needs an answer", th.warn
			}
		case s.State.Error != nil:
			sign, word, k = "✗", "failed: "+safetext.Line(s.State.Error.Message, 200), th.bad
		case s.State.StopReason == acpv2.StopReasonCancelled:
			sign, word, k = "⊘", "cancelled", th.dim
		default:
			sign, word, k = "✓", "done", th.good
		}
	}
	title := safetext.Line(s.Title, maxTitle)
	if title == "" {
		title = safetext.Line(string(s.ID), 80)
	}
	l := line{}.put("Agent ", th.accent).put(title, look{attr: bold})
	if word != "" {
		l = l.put(" · "+word, k)
	}
	b.line(mark(sign, k), l)
	var below []line
	if d := safetext.Line(s.Description, maxTitle); d != "" {
		below = append(below, line{{d, th.dim}})
	}
	if s.Cwd != "" && s.Cwd != b.t.opts.Cwd {
		below = append(below, line{{"in " + b.t.path(s.Cwd), th.dim}})
	}
	if b.t.opts.Child != nil {
		if snap := b.t.opts.Child(s.ID); snap != nil {
			n := 3
			if b.t.expanded(b.it) {
				n = 20
			}
			below = append(below, b.t.activity(snap, n)...)
		}
	}
	b.it.compact = len(below) == 0
	for i, l := range below {
		p := prefix{line{{"  ├ ", th.dim}}, line{{"  │ ", th.dim}}}
		if i == len(below)-1 {
			p = prefix{line{{"  └ ", th.dim}}, line{{"    ", th.dim}}}
		}
		b.line(p, l)
	}
}

// activity returns the latest n entries of a conversation, one line each.
func (t *Transcript) activity(s *transcript.Snapshot, n int) []line {
	var out []line
	for e := range s.Backward() {
		if len(out) == n {
			break
		}
		if l := t.brief(e); l != nil {
			out = append([]line{l}, out...)
		}
	}
	return out
}

// brief returns an entry in a few words, or nil if it is not worth mentioning.
func (t *Transcript) brief(e transcript.Entry) line {
	th := t.th
	switch e := e.(type) {
	case *transcript.Message:
		text := safetext.Line(e.Text(), 120)
		if text == "" || e.Role == transcript.RoleUser {
			return nil
		}
		if e.Role == transcript.RoleThought {
			return line{}.put(text, th.thought)
		}
		return line{}.put(text, look{})
	case *transcript.ToolCall:
		sign, _, k := t.status(e)
		return line{}.put(sign+" ", k).put(t.toolTitle(e), look{})
	case *transcript.Subagent:
		return line{}.put("Agent ", th.accent).put(safetext.Line(e.Title, 120), look{})
	case *transcript.Permission:
		if e.Outcome == nil {
			return line{}.put("? "+safetext.Line(e.Title, 120), th.warn)
		}
	case *transcript.Notice:
		return line{}.put("! "+safetext.Line(e.Title, 120), th.warn)
	}
	return nil
}

// sessionMessage adds a message between sessions.
func (b *builder) sessionMessage(m *transcript.SessionMessage) {
	th := b.t.th
	name := func(id acpv2.SessionID) string {
		if id == "" {
			return "this session"
		}
		if s := b.t.snap.Subagent(id); s != nil && s.Title != "" {
			return safetext.Line(s.Title, 60)
		}
		return safetext.Line(string(id), 40)
	}
	b.line(mark("⇄", th.accent), line{}.put(name(m.Sender), look{attr: bold}).put(" → ", th.dim).put(name(m.Recipient), look{attr: bold}))
	for i, c := range m.Content() {
		b.block(indent(4), c, i > 0)
	}
}

// path returns the displayed form of a path.
func (t *Transcript) path(p string) string { return shortPath(p, t.opts.Cwd) }

// shortPath returns a path relative to cwd if it is below that, and otherwise abbreviates the home
// directory to ~.
func shortPath(p, cwd string) string { return safetext.Line(shorter(p, cwd), maxTitle) }

// shorter is shortPath for a path of any length and with any characters.
func shorter(p, cwd string) string {
	below := func(dir string) (string, bool) {
		rel, err := filepath.Rel(dir, p)
		return rel, err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	}
	if filepath.IsAbs(p) {
		if rel, ok := below(cwd); ok && cwd != "" {
			return rel
		}
		home, err := os.UserHomeDir()
		if rel, ok := below(home); ok && err == nil && home != "" && home != "/" {
			p = filepath.Join("~", rel)
		}
	}
	return p
}
