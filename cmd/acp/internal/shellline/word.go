package shellline

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/goacp/acp/acphost"
)

// A word is a word of a command.
type word struct {
	acphost.CommandWord
	split bool // it may become several words, the first of which begins with its text
	tame  bool // it is not an option, even if it is open from its beginning
}

// mayBeOption reports whether a shell may make an option of the open part of a word.
func (w word) mayBeOption() bool {
	return w.Open && !w.tame && (w.split || w.Text == "" || w.Text[0] == '-')
}

// expand returns the words that a word stands for, as far as that is known without running
// anything.
func (s *scan) expand(w *syntax.Word) []word {
	if w == nil {
		return nil
	}
	source := s.source(w, w)
	var out []word
	bytes := 0
	copied := *w
	copied.Parts = append([]syntax.WordPart(nil), w.Parts...)
	syntax.SplitBraces(&copied)
	for one, err := range expand.BracesSeq(nil, &copied) {
		over := s.made+len(out) >= maxWords || s.madeBytes+bytes > maxText
		if over {
			s.unsure(tooMuch)
		}
		if err != nil || over || len(out) >= maxBrace {
			return []word{{acphost.CommandWord{Open: true, Source: source}, true, false}}
		}
		b := builder{scan: s}
		b.parts(one.Parts, false)
		b.flush()
		for _, w := range b.done {
			bytes += len(w.Text)
		}
		out = append(out, b.done...)
	}
	s.made, s.madeBytes = s.made+len(out), s.madeBytes+bytes
	for i := range out {
		if out[i].Source = source; len(out) > 1 && !out[i].Open {
			out[i].Source = quoteWord(out[i].Text)
		}
	}
	return out
}

func quoteWord(text string) string {
	if q, err := syntax.Quote(text, syntax.LangBash); err == nil {
		return q
	}
	return text
}

// A builder assembles the text of a word.
type builder struct {
	scan *scan
	text strings.Builder
	some bool // there is a word, perhaps an empty one
	open bool // the rest is not known
	more bool // it may be several words
	tame bool // it does not begin with a dash
	done []word

	pieces []acphost.CommandPiece
	known  strings.Builder // the text of the last piece

	further bool // the word has more than the current literal
	lost    bool // it is in a bracket that is closed in another one
}

func (b *builder) flush() {
	b.flushText()
	if b.some || b.open {
		w := word{acphost.CommandWord{Text: b.text.String(), Open: b.open}, b.more, b.tame && !b.more}
		if b.open {
			w.Pieces = b.pieces
		}
		b.done = append(b.done, w)
	}
	b.text.Reset()
	b.some, b.open, b.more, b.tame, b.pieces, b.lost = false, false, false, false, nil, false
}

// piece adds a piece of the word. There are at most maxPieces; beyond them the rest is unknown.
func (b *builder) piece(p acphost.CommandPiece) {
	if p.Open {
		b.flushText()
	}
	n := len(b.pieces)
	switch {
	case b.lost:
	case n < maxPieces:
		b.pieces = append(b.pieces, p)
	case n == maxPieces:
		b.pieces[n-1] = acphost.CommandPiece{Open: true}
	}
}

// flushText adds the text since the last open piece.
func (b *builder) flushText() {
	if b.known.Len() > 0 {
		b.piece(acphost.CommandPiece{Text: b.known.String()})
		b.known.Reset()
	}
}

func (b *builder) write(text string) {
	b.some = true
	b.known.WriteString(text)
	if !b.open {
		b.text.WriteString(text)
	}
}

// unknown adds something that only the shell knows; name is what it is, as in
// [acphost.CommandPiece].
func (b *builder) unknown(quoted bool, name string) {
	b.open, b.more = true, b.more || !quoted
	b.piece(acphost.CommandPiece{Open: true, Name: name})
}

// parts adds the parts of a word as the parser has found them.
func (b *builder) parts(parts []syntax.WordPart, quoted bool) {
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.further = i+1 < len(parts)
			b.literal(p.Value, quoted)
		case *syntax.SglQuoted:
			if !p.Dollar {
				b.write(p.Value)
				break
			}
			text, ok := unescape(p.Value)
			if b.write(text); !ok {
				b.unknown(true, "")
			}
		case *syntax.DblQuoted:
			b.some = true
			b.parts(p.Parts, true)
		case *syntax.ParamExp:
			if c, ok := b.scan.constant(p); ok && (quoted || c.plain) {
				if c.value != "" {
					b.write(c.value)
					break
				}
				b.tame = b.tame || !b.open && b.text.Len() == 0
				b.unknown(true, nameOf(p))
				break
			}
			if !quoted && p.Param != nil && p.Param.Value == "IFS" && p.Exp == nil && p.Slice == nil && p.Repl == nil && !p.Length {
				b.flush() // white space, unless it was changed
				b.scan.unsure("it splits words at $IFS")
				break
			}
			// "$@" can be several words.
			many := p.Param != nil && p.Param.Value == "@" || p.Names != 0 || p.Index != nil
			b.unknown(quoted && !many || nameOf(p) == "#", nameOf(p))
		case *syntax.ProcSubst:
			b.write("/dev/fd/")
			b.unknown(true, "#")
		case *syntax.ArithmExp:
			b.unknown(true, "#")
		case *syntax.CmdSubst:
			if text, ok := b.scan.copied(p); ok && quoted {
				b.write(text)
				break
			}
			b.unknown(quoted || isNproc(p), resultOf(p))
		default: // extended globs
			b.unknown(quoted, "")
		}
	}
}

// literal adds text in which backslashes and, outside of quotes, globs have a meaning.
func (b *builder) literal(text string, quoted bool) {
	b.some = true
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			next := text[i+1]
			if quoted && strings.IndexByte("$`\"\\\n", next) < 0 {
				b.write(`\`)
			}
			if i++; next != '\n' {
				b.write(text[i : i+1])
			}
		case !quoted && (c == '*' || c == '?' || c == '[' && (b.further || strings.Contains(text[i:], "]"))):
			// Names of files: each begins with the text before.
			b.open = true
			name := string(c)
			if c == '[' {
				name = "*"
				i = max(i, strings.LastIndexByte(text, ']'))
			}
			if b.scan.globs {
				name = ""
			}
			closed := c != '[' || text[i] == ']'
			if !closed {
				name = ""
			}
			b.piece(acphost.CommandPiece{Open: true, Name: name})
			b.lost = b.lost || !closed
		default:
			b.write(text[i : i+1])
		}
	}
}

// unescape resolves the escapes of $'…'. ok is false if a shell would cut the text, or if shells
// differ.
func unescape(s string) (text string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		digits, base := 0, 16
		switch c := s[i]; c {
		case 'a', 'b', 'f', 'n', 'r', 't', 'v':
			b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
			continue
		case 'e', 'E':
			b.WriteByte(0x1b)
			continue
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
			continue
		case 'x':
			digits = 2
		case 'u':
			digits = 4
		case 'U':
			digits = 8
		case '0', '1', '2', '3', '4', '5', '6', '7':
			digits, base = 3, 8
			i--
		default: // \c and anything without a meaning
			return b.String(), false
		}
		end := i + 1
		for end < len(s) && end-i <= digits && isDigit(s[end], base) {
			end++
		}
		n, err := strconv.ParseUint(s[i+1:end], base, 32)
		if err != nil || n == 0 || n > utf8.MaxRune || digits < 4 && n > 0xff {
			return b.String(), false
		}
		if digits < 4 {
			b.WriteByte(byte(n))
		} else {
			b.WriteRune(rune(n))
		}
		i = end - 1
	}
	return b.String(), true
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return '0' <= c && c <= '7'
	}
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}
