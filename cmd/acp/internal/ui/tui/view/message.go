package view

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// message makes the parts of a message. It reports whether it has already set them.
func (t *Transcript) message(it *item, m *transcript.Message) bool {
	th := t.th
	content := m.Content()
	if m.Role == transcript.RoleThought && !t.expanded(it) {
		it.split = nil
		it.compact = true
		t.foldedThought(it, m.Text())
		return true
	}
	p := mark("●", th.accent)
	switch m.Role {
	case transcript.RoleUser:
		p = prefix{line{{"❯ ", th.user}}, line{{"▏ ", th.user}}}
		if by := history.Author(m); by != "" {
			p.first = line{{by + " ❯ ", th.user}}
		}
	case transcript.RoleThought:
		p = prefix{line{{"▾ ", th.dim}}, line{{"▏ ", th.dim}}}
	}
	// Only the last text grows; what comes before it stays while it is the same.
	if n := len(it.split); m.Role == transcript.RoleAgent && n > 0 && len(content) == 1 && m.Dropped() == 0 {
		if c, ok := content[0].(*acpv2.TextContent); ok && n == 1 && strings.HasPrefix(c.Text, it.split[0].text) {
			t.grow(it, c.Text, p)
			return true
		}
	}
	it.split = nil
	b := builder{t: t, it: it}
	for i, c := range content {
		q := p
		if i > 0 {
			q = p.under()
		}
		text, ok := c.(*acpv2.TextContent)
		switch {
		case !ok:
			b.block(q, c, i > 0)
		case m.Role == transcript.RoleUser:
			b.prompt(q, text.Text, i > 0)
		case m.Role == transcript.RoleThought:
			b.plain(q, text.Text, th.thought, i > 0)
		default:
			ps := splitMarkdown(text.Text, nil)
			it.split = append(it.split, split{text.Text, ps, len(b.parts)})
			b.pieces(q, text.Text, ps, i > 0)
		}
	}
	if n := m.Dropped(); n > 0 {
		b.line(indent(2), line{{fmt.Sprintf("… %s of this were too much to keep", size(uint64(n))), th.dim}})
	}
	t.replace(it, it.parts, b.parts)
	return true
}

// grow makes the parts of a message that consists of one text, which has grown at its end. This is
// the hot path of streaming, so only the last pieces are split and drawn again.
func (t *Transcript) grow(it *item, s string, p prefix) {
	sp := &it.split[0]
	keep := max(len(sp.pieces)-2, 0)
	sp.text, sp.pieces = s, splitMarkdown(s, sp.pieces)
	old := it.parts[keep:]
	b := builder{t: t, it: it}
	if keep > 0 {
		p = p.under()
	}
	b.pieces(p, s, sp.pieces[keep:], false)
	tail := item{}
	t.replace(&tail, old, b.parts)
	it.parts = append(it.parts[:keep], tail.parts...)
}

// A prompt with more than longPrompt lines or bytes is folded to its first lines.
const (
	longPrompt       = 16
	longPromptBytes  = 4096
	foldedPrompt     = 8
	foldedPromptSize = 1024
)

// isLongPrompt reports whether a text of the user is folded.
func isLongPrompt(s string) bool {
	return len(s) > longPromptBytes || strings.Count(strings.TrimRight(s, "\n"), "\n") >= longPrompt
}

// prompt adds a text of the user.
func (b *builder) prompt(p prefix, s string, gap bool) {
	if b.t.expanded(b.it) || !isLongPrompt(s) {
		b.plain(p, s, look{}, gap)
		return
	}
	s = strings.TrimRight(s, "\n")
	end := 0
	for range foldedPrompt {
		i := strings.IndexByte(s[end:], '\n')
		if i < 0 || end+i >= foldedPromptSize {
			break
		}
		end += i + 1
	}
	if end == 0 {
		for end = min(foldedPromptSize, len(s)); end > 0 && end < len(s) && !utf8.RuneStart(s[end]); {
			end--
		}
	}
	b.plain(p, s[:end], look{}, gap)
	more := size(uint64(len(s)-end)) + " more"
	if n := strings.Count(s[end:], "\n") + 1; n > 1 {
		more = count(n, "line", "lines") + " more"
	}
	b.line(p.under(), line{{"… " + more, b.t.th.dim}})
}

// plain adds text that is not Markdown.
func (b *builder) plain(p prefix, s string, k look, gap bool) {
	for i, pc := range splitPlain(s, "") {
		q := p
		if i > 0 {
			q = p.under()
		}
		src := s[pc.start:pc.end]
		b.parts = append(b.parts, part{
			prefix: q, src: src, text: true, gap: gap && i == 0, piece: piece{mid: true, indent: i},
			draw: func(width int) []line {
				return b.t.th.wrapText(strings.TrimSuffix(strings.TrimRight(safetext.Text(src), " "), "\n"), k, width)
			},
		})
	}
}

// foldedThought returns the beginning of a thought on one line.
func (t *Transcript) foldedThought(it *item, text string) {
	b := builder{t: t, it: it}
	th := t.th
	b.add(prefix{line{{"▸ ", th.dim}}, line{{"  ", look{}}}}, func(width int) []line {
		l := line{}.put("Thought ", th.dim)
		words := strings.NewReplacer("**", "", "`", "").Replace(safetext.Line(text, 300))
		return []line{cut(l.put(words, th.thought), width)}
	})
	t.replace(it, it.parts, b.parts)
}
