package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxFormula bounds the lines of a formula, since the end of each that seems to begin is looked for.
const maxFormula = 100

// KindMath is the kind of a [Math].
var KindMath = ast.NewNodeKind("Math")

// A Math is a formula that stands alone: $$…$$, or \[…\] with a space or the end of the line after \[. It ends at the end of a
// line, and has no empty one. Its lines are its source, which is shown as code: nothing here draws it.
type Math struct {
	ast.BaseBlock
	end  string
	done bool // it has ended in its first line
}

// Kind implements [ast.Node].
func (m *Math) Kind() ast.NodeKind { return KindMath }

// IsRaw implements [ast.Node].
func (m *Math) IsRaw() bool { return true }

// Dump implements [ast.Node].
func (m *Math) Dump(source []byte, level int) { ast.DumpHelper(m, source, level, nil, nil) }

// MathLanguage is the name of the language of formulas.
const MathLanguage = "math"

// IsDrawn reports whether a language is one of formulas or drawings, whose source is easily taken for text.
func IsDrawn(language string) bool {
	switch strings.ToLower(language) {
	case MathLanguage, "latex", "tex", "katex", "mermaid", "plantuml", "dot", "graphviz":
		return true
	}
	return false
}

// formulas is the parser of Math.
type formulas struct{}

// Trigger implements [parser.BlockParser].
func (formulas) Trigger() []byte { return []byte{'$', '\\'} }

// Open implements [parser.BlockParser].
func (formulas) Open(_ ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, segment := r.PeekLine()
	pos := pc.BlockOffset()
	if pos < 0 {
		return nil, parser.NoChildren
	}
	m := new(Math)
	switch {
	case bytes.HasPrefix(line[pos:], []byte("$$")) && !bytes.HasPrefix(line[pos:], []byte("$$$")):
		m.end = "$$"
	case bytes.HasPrefix(line[pos:], []byte(`\[`)) && (len(line) == pos+2 || util.IsSpace(line[pos+2])):
		m.end = `\]`
	default:
		return nil, parser.NoChildren
	}
	first := line[pos+2:]
	said := bytes.TrimRight(first, " \t\r\n")
	switch {
	case bytes.HasSuffix(said, []byte(m.end)):
		said = said[:len(said)-2]
		m.done = true
		if util.IsBlank(said) {
			return nil, parser.NoChildren
		}
	case bytes.Contains(said, []byte(m.end)) || !endsBelow(r.Source()[segment.Stop:], m.end):
		return nil, parser.NoChildren
	}
	if said = bytes.TrimRight(said, " \t"); len(said) > 0 {
		to := segment.Start - segment.Padding + pos + 2 + len(said)
		m.add(text.NewSegment(to-len(bytes.TrimLeft(said, " \t")), to))
	}
	r.AdvanceToEOL()
	return m, parser.NoChildren
}

// endsBelow reports whether a formula ends before the next empty line.
func endsBelow(source []byte, end string) bool {
	for range maxFormula {
		line, rest, more := bytes.Cut(source, []byte("\n"))
		line = bytes.TrimRight(line, " \t\r")
		if len(bytes.Trim(line, " \t>")) == 0 { // also within a quote
			return false
		}
		if bytes.HasSuffix(line, []byte(end)) {
			return true
		}
		if !more {
			return false
		}
		source = rest
	}
	return false
}

// add adds a line.
func (m *Math) add(s text.Segment) {
	s.ForceNewline = true
	m.Lines().Append(s)
}

// Continue implements [parser.BlockParser].
func (formulas) Continue(n ast.Node, r text.Reader, _ parser.Context) parser.State {
	m := n.(*Math)
	line, segment := r.PeekLine()
	if m.done || util.IsBlank(line) {
		return parser.Close
	}
	said := bytes.TrimRight(line, " \t\r\n")
	last := bytes.HasSuffix(said, []byte(m.end))
	if last {
		said = bytes.TrimRight(said[:len(said)-2], " \t")
	}
	if len(said) > 0 {
		segment.Stop -= len(line) - len(said)
		m.add(segment)
	}
	r.AdvanceToEOL()
	if last {
		return parser.Close
	}
	return parser.Continue | parser.NoChildren
}

// Close implements [parser.BlockParser].
func (formulas) Close(ast.Node, text.Reader, parser.Context) {}

// CanInterruptParagraph implements [parser.BlockParser].
func (formulas) CanInterruptParagraph() bool { return true }

// CanAcceptIndentedLine implements [parser.BlockParser].
func (formulas) CanAcceptIndentedLine() bool { return false }
