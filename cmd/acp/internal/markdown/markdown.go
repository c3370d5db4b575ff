// Package markdown sets up a parser of GitHub's Markdown that is safe for any text: the memory and
// the time it needs are bounded by the length of the text. Beyond the bounds text stays text, and
// nothing of it is lost.
package markdown

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/goacp/acp/cmd/acp/internal/markdown/gfm"
)

const (
	// maxNesting bounds how deep lists and quotes may be nested; an item of a list counts as one
	// more level. Each line costs the parser time in proportion to its depth, or to the square of
	// it.
	maxNesting = 100
	// maxCells bounds the cells of all tables: a row has as many as the head of its table, whatever
	// is written in it.
	maxCells = 1 << 15
	// maxScanned bounds how often each byte may be examined to find the ends of links, 1 MiB aside:
	// the end of each that seems to begin may be looked for up to the end of its paragraph.
	maxScanned = 100
	// maxDefining bounds the lines of a paragraph with definitions of links. Each definition costs
	// time in proportion to its lines.
	maxDefining = 1000
)

// Options returns the options of a parser that knows tables, tasks, strikethrough and plain
// addresses, but no definitions of links: see [Definitions].
func Options() []parser.Option {
	blocks := parser.DefaultBlockParsers()
	for i, p := range blocks {
		switch p.Value {
		case parser.NewListParser(), parser.NewBlockquoteParser():
			blocks[i].Value = shallow{p.Value.(parser.BlockParser)}
		}
	}
	inlines := parser.DefaultInlineParsers()
	for i, p := range inlines {
		if p.Value == parser.NewLinkParser() {
			inlines[i].Value = links{p.Value.(parser.InlineParser)}
		}
	}
	return []parser.Option{
		parser.WithBlockParsers(append(blocks, util.Prioritized(formulas{}, 750))...),
		parser.WithInlineParsers(append(inlines,
			util.Prioritized(gfm.NewTaskCheckBoxParser(), 0),
			util.Prioritized(gfm.NewStrikethroughParser(), 500),
			util.Prioritized(gfm.NewLinkifyParser(), 999),
		)...),
		parser.WithParagraphTransformers(util.Prioritized(tables{gfm.NewTableParagraphTransformer()}, 200)),
		parser.WithASTTransformers(util.Prioritized(gfm.NewTableASTTransformer(), 0)),
	}
}

// Definitions returns the option of a parser that knows definitions of links. How often they are
// used is not bounded: one definition may be the address of any number of links.
func Definitions() parser.Option {
	return parser.WithParagraphTransformers(util.Prioritized(definitions{parser.LinkReferenceParagraphTransformer}, 100))
}

// shallow is the parser of something that can be nested.
type shallow struct{ parser.BlockParser }

// Open implements [parser.BlockParser].
func (s shallow) Open(parent ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, at := r.Position()
	n, state := s.BlockParser.Open(parent, r, pc) // always, since it may count something
	if n == nil {
		return n, state
	}
	depth := 0
	for p := parent; p != nil; p = p.Parent() {
		if depth++; depth > maxNesting {
			r.SetPosition(line, at)
			return nil, parser.NoChildren
		}
	}
	return n, state
}

var (
	scannedKey = parser.NewContextKey()
	cellsKey   = parser.NewContextKey()
)

// links is the parser of links and images.
type links struct{ parser.InlineParser }

// Parse implements [parser.InlineParser].
func (l links) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if line, at := block.PeekLine(); len(line) > 0 && line[0] == ']' && parent.Type() == ast.TypeBlock {
		scanned, _ := pc.Get(scannedKey).(int)
		if scanned > 1<<20+maxScanned*len(block.Source()) {
			return nil
		}
		if ls := parent.Lines(); ls.Len() > 0 {
			pc.Set(scannedKey, scanned+max(0, ls.At(ls.Len()-1).Stop-at.Start))
		}
	}
	return l.InlineParser.Parse(parent, block, pc)
}

// CloseBlock implements [parser.CloseBlocker].
func (l links) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	l.InlineParser.(parser.CloseBlocker).CloseBlock(parent, block, pc)
}

// tables makes tables of paragraphs.
type tables struct{ parser.ParagraphTransformer }

// Transform implements [parser.ParagraphTransformer].
func (t tables) Transform(p *ast.Paragraph, r text.Reader, pc parser.Context) {
	lines := p.Lines()
	n, widest := lines.Len(), 0
	for i := range n {
		line := lines.At(i)
		widest = max(widest, 1+bytes.Count(line.Value(r.Source()), []byte("|")))
	}
	cells, _ := pc.Get(cellsKey).(int)
	if cells += n * widest; cells > maxCells {
		return
	}
	if t.ParagraphTransformer.Transform(p, r, pc); p.Lines().Len() < n {
		pc.Set(cellsKey, cells)
	}
}

// definitions removes definitions of links from paragraphs.
type definitions struct{ parser.ParagraphTransformer }

// Transform implements [parser.ParagraphTransformer].
func (d definitions) Transform(p *ast.Paragraph, r text.Reader, pc parser.Context) {
	if p.Lines().Len() <= maxDefining {
		d.ParagraphTransformer.Transform(p, r, pc)
	}
}
