package view

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/markdown"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxDepth bounds the nesting of blocks. Deeper blocks are shown as source text.
const maxDepth = 16

// maxURL bounds the address of a hyperlink, in bytes. A longer one is only text.
const maxURL = 2048

// markdownParser parses GitHub's Markdown. Link definitions remain text: otherwise they would be
// hidden, and the links that use them may be in another piece.
var markdownParser = sync.OnceValue(func() parser.Parser { return parser.NewParser(markdown.Options()...) })

// pieceLines draws a piece of a Markdown text, which must be safe text.
func (th *Theme) pieceLines(src string, p piece, width int) []line {
	if p.code {
		return th.codePiece(src[p.start:p.end], p, width)
	}
	return th.markdown(src[p.start:p.end], width)
}

// codePiece draws a piece that is code.
func (th *Theme) codePiece(src string, p piece, width int) []line {
	src = codeText(src, p)
	if src == "" {
		return nil
	}
	if !p.first {
		return th.codeBlock(src, p.info, width)
	}
	return th.namedBlock(src, p.info, width)
}

// codeText returns the code of a code piece, without its fences.
func codeText(src string, p piece) string {
	if p.first {
		_, src, _ = strings.Cut(src, "\n")
	}
	if p.closed {
		src = strings.TrimSuffix(src, "\n")
		src = src[:strings.LastIndexByte(src, '\n')+1]
	}
	if p.indent > 0 {
		ls := strings.Split(src, "\n")
		for i, l := range ls {
			ls[i] = l[min(p.indent, len(l)-len(strings.TrimLeft(l, " "))):]
		}
		src = strings.Join(ls, "\n")
	}
	return src
}

// nestedCode returns the code blocks that are nested in Markdown, for example in lists.
func nestedCode(src string) []string {
	if !slices.ContainsFunc([]string{"```", "~~~", "$$", `\[`}, func(s string) bool { return strings.Contains(src, s) }) {
		return nil
	}
	var out []string
	m := markdownDrawer{src: []byte(src)}
	_ = ast.Walk(markdownParser().Parse(text.NewReader(m.src)), func(n ast.Node, enter bool) (ast.WalkStatus, error) {
		if !enter {
			return ast.WalkContinue, nil
		}
		switch n.(type) {
		case *ast.FencedCodeBlock, *markdown.Math:
			out = append(out, m.source(n))
		}
		return ast.WalkContinue, nil
	})
	return out
}

// codeBlock draws code, set off by a bar.
func (th *Theme) codeBlock(src, lang string, width int) []line {
	return th.barred(th.codeLines(src, lexerFor(lang, false)), width)
}

// namedBlock is codeBlock with the name of the language, if that is one of what others draw.
func (th *Theme) namedBlock(src, lang string, width int) []line {
	code := th.codeBlock(src, lang, width)
	if !markdown.IsDrawn(lang) {
		return code
	}
	return append(th.barred([]line{{{lang, th.dim}}}, width), code...)
}

// barred draws lines with a bar before each.
func (th *Theme) barred(ls []line, width int) []line {
	bar := line{{"│ ", th.dim}}
	if width < 8 {
		bar = nil
	}
	var out []line
	for _, l := range ls {
		out = append(out, before(chop(l, width-bar.width()), decorated(bar), decorated(bar))...)
	}
	return out
}

// markdown draws Markdown, which must be safe text.
func (th *Theme) markdown(src string, width int) []line {
	if src = strings.TrimRight(src, "\n \t"); strings.TrimSpace(src) == "" {
		return nil
	}
	b := []byte(src)
	m := markdownDrawer{th: th, src: b}
	doc := markdownParser().Parse(text.NewReader(b))
	out := m.children(doc, width, 0)
	if len(out) == 0 { // text without any visible block must not disappear
		out = th.wrapText(src, look{}, width)
	}
	return clamp(out, width)
}

// wrapText draws text verbatim.
func (th *Theme) wrapText(s string, k look, width int) []line {
	var out []line
	for l := range strings.SplitSeq(s, "\n") {
		out = append(out, wrap(line{}.put(tabs(l, tabSize), k), width)...)
	}
	return out
}

// clamp breaks lines that are still too wide, for example because of deep nesting on a narrow
// screen.
func clamp(ls []line, width int) []line {
	for i, l := range ls {
		if l.width() > width {
			out := append([]line{}, ls[:i]...)
			for _, l := range ls[i:] {
				out = append(out, chop(l, width)...)
			}
			return out
		}
	}
	return ls
}

type markdownDrawer struct {
	th  *Theme
	src []byte
}

// children draws the blocks within a block.
func (m *markdownDrawer) children(n ast.Node, width, depth int) []line {
	var out []line
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		ls := m.block(c, width, depth)
		if len(ls) == 0 {
			continue
		}
		if len(out) > 0 && !tight(c) {
			out = append(out, nil)
		}
		out = append(out, ls...)
	}
	return out
}

// tight reports whether a block follows the one before without an empty line.
func tight(n ast.Node) bool {
	if n.Kind() == ast.KindTextBlock {
		return true
	}
	if item, ok := n.Parent().(*ast.ListItem); ok && n.Kind() == ast.KindList {
		list, ok := item.Parent().(*ast.List)
		return ok && list.IsTight
	}
	if list, ok := n.Parent().(*ast.List); ok {
		return list.IsTight
	}
	return false
}

// block draws a block.
func (m *markdownDrawer) block(n ast.Node, width, depth int) []line {
	th := m.th
	width = max(width, 1)
	if depth > maxDepth {
		return th.wrapText(m.source(n), look{}, width)
	}
	switch n := n.(type) {
	case *ast.Paragraph, *ast.TextBlock:
		return m.inline(n, look{}, width)
	case *ast.Heading:
		k := th.heading
		if n.Level > 2 {
			k = look{attr: bold}
		}
		mark := line{{strings.Repeat("#", n.Level) + " ", th.dim}}
		if width < 16 {
			mark = nil
		}
		rest := line{}.put(strings.Repeat(" ", mark.width()), look{})
		return before(m.inline(n, k, width-mark.width()), mark, decorated(rest))
	case *ast.Blockquote:
		bar := line{{"▌ ", th.dim}}
		return before(m.children(n, width-2, depth+1), decorated(bar), decorated(bar))
	case *ast.List:
		return m.list(n, width, depth)
	case *ast.FencedCodeBlock:
		return th.namedBlock(m.source(n), string(n.Language(m.src)), width)
	case *markdown.Math:
		return th.namedBlock(m.source(n), markdown.MathLanguage, width)
	case *ast.CodeBlock:
		return th.codeBlock(m.source(n), "", width)
	case *ast.ThematicBreak:
		return []line{{{strings.Repeat("─", min(width, 40)), th.dim}}}
	case *ast.HTMLBlock:
		s := m.source(n)
		if n.HasClosure() {
			s += string(n.ClosureLine.Value(m.src))
		}
		return th.wrapText(strings.TrimRight(s, "\n"), th.dim, width)
	case *east.Table:
		return m.table(n, width)
	}
	if n.HasChildren() {
		return m.children(n, width, depth+1)
	}
	return th.wrapText(m.source(n), look{}, width)
}

// source returns the source text of a block.
func (m *markdownDrawer) source(n ast.Node) string {
	if n.Type() == ast.TypeInline {
		return ""
	}
	var b strings.Builder
	if n.Lines().Len() == 0 {
		_ = ast.Walk(n, func(c ast.Node, enter bool) (ast.WalkStatus, error) {
			if enter && c != n && c.Type() == ast.TypeBlock {
				for i := range c.Lines().Len() {
					seg := c.Lines().At(i)
					b.Write(seg.Value(m.src))
				}
			}
			return ast.WalkContinue, nil
		})
	}
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		b.Write(seg.Value(m.src))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// list draws a list.
func (m *markdownDrawer) list(n *ast.List, width, depth int) []line {
	var out []line
	num := n.Start
	markWidth := 2
	if n.IsOrdered() {
		markWidth = len(strconv.Itoa(num+max(n.ChildCount()-1, 0))) + 2
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		mark := line{{"• ", m.th.accent}}
		if n.IsOrdered() {
			s := strconv.Itoa(num) + string(rune(n.Marker)) + " "
			mark = line{{strings.Repeat(" ", max(markWidth-len(s), 0)) + s, m.th.accent}}
			num++
		}
		if box := checkBox(c); box != nil {
			mark = line{{"☐ ", m.th.dim}}
			if box.IsChecked {
				mark = line{{"☑ ", m.th.good}}
			}
		}
		rest := line{}.put(strings.Repeat(" ", mark.width()), look{})
		if width < 12 {
			rest = nil
		}
		ls := m.children(c, max(width-mark.width(), 1), depth+1)
		if len(ls) == 0 {
			ls = []line{nil}
		}
		if len(out) > 0 && !n.IsTight {
			out = append(out, nil)
		}
		out = append(out, before(ls, mark, decorated(rest))...)
	}
	return out
}

// checkBox returns the box of an item of a task list, or nil.
func checkBox(item ast.Node) *east.TaskCheckBox {
	if p := item.FirstChild(); p != nil {
		if b, ok := p.FirstChild().(*east.TaskCheckBox); ok {
			return b
		}
	}
	return nil
}

// inline draws what is within a paragraph.
func (m *markdownDrawer) inline(n ast.Node, k look, width int) []line {
	var out []line
	for _, l := range m.lines(n, k) {
		out = append(out, wrap(l, width)...)
	}
	return out
}

// lines returns the content of a paragraph with its original line breaks, because agents that do
// not write Markdown rely on them.
func (m *markdownDrawer) lines(n ast.Node, k look) []line {
	w := inlineDrawer{m: m}
	w.walk(n, k, 0)
	return append(w.done, w.cur)
}

type inlineDrawer struct {
	m    *markdownDrawer
	done []line
	cur  line
}

func (w *inlineDrawer) put(s string, k look) {
	for i, l := range strings.Split(s, "\n") {
		if i > 0 {
			w.done, w.cur = append(w.done, w.cur), nil
		}
		w.cur = w.cur.put(strings.ReplaceAll(l, "\t", " "), k)
	}
}

func (w *inlineDrawer) walk(n ast.Node, k look, depth int) {
	th, src := w.m.th, w.m.src
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			s := c.Segment.Value(src)
			if !c.IsRaw() {
				s = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(s)))
			}
			w.put(safeInline(string(s)), k)
			if c.SoftLineBreak() || c.HardLineBreak() {
				w.put("\n", k)
			}
		case *ast.String:
			w.put(safeInline(string(c.Value)), k)
		case *ast.CodeSpan:
			ck := th.code
			ck.attr |= k.attr & (bold | strike)
			ck.link = k.link
			w.put(strings.ReplaceAll(nodeText(c, src), "\n", " "), ck)
		case *ast.Emphasis:
			a := italic
			if c.Level > 1 {
				a = bold
			}
			w.nested(c, k.with(a), depth)
		case *east.Strikethrough:
			w.nested(c, k.with(strike), depth)
		case *ast.Link:
			dest := string(util.URLEscape(c.Destination, true))
			lk := th.link
			lk.attr |= k.attr
			lk.link = hyperlink(dest)
			w.nested(c, lk, depth)
			w.destination(nodeText(c, src), string(c.Destination), k)
		case *ast.Image:
			w.put("[image: ", th.dim)
			w.nested(c, k, depth)
			w.put("]", th.dim)
			w.destination("", string(c.Destination), k)
		case *ast.AutoLink:
			lk := th.link
			lk.attr |= k.attr
			lk.link = hyperlink(string(c.URL(src)))
			w.put(string(c.Label(src)), lk)
		case *ast.RawHTML:
			for i := range c.Segments.Len() {
				seg := c.Segments.At(i)
				w.put(string(seg.Value(src)), th.dim)
			}
		case *east.TaskCheckBox: // drawn with the item
		default:
			w.nested(c, k, depth)
		}
	}
}

func (w *inlineDrawer) nested(n ast.Node, k look, depth int) {
	if depth > maxDepth {
		w.put(nodeText(n, w.m.src), k)
		return
	}
	w.walk(n, k, depth+1)
}

// destination adds the address of a link, unless the link's text is that address.
func (w *inlineDrawer) destination(label, dest string, k look) {
	dest = strings.TrimSpace(safeInline(dest))
	if dest == "" || label == dest || label == strings.TrimPrefix(dest, "mailto:") ||
		label == strings.TrimPrefix(strings.TrimPrefix(dest, "https://"), "http://") {
		return
	}
	w.put(" ("+strings.ReplaceAll(dest, "\n", "")+")", w.m.th.dim)
}

// nodeText returns the text within a node.
func nodeText(n ast.Node, src []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(c ast.Node, enter bool) (ast.WalkStatus, error) {
		if !enter {
			return ast.WalkContinue, nil
		}
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Segment.Value(src))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte('\n')
			}
		case *ast.String:
			b.Write(c.Value)
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// hyperlink returns the address for a hyperlink of the terminal, or "" if the address must not be
// opened. Files must not: the agent chooses the text of the link, and some terminals run a program
// when the user clicks on it.
func hyperlink(dest string) string {
	u, err := url.Parse(dest)
	if err != nil || len(dest) > maxURL || u.User != nil {
		return ""
	}
	switch {
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
	case u.Scheme == "mailto" && u.Opaque != "" && u.RawQuery == "" && u.Fragment == "":
	default:
		return ""
	}
	return printable(u.String())
}

// printable returns an address, or "" if it is too long or not made of printable ASCII.
func printable(s string) string {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return ""
		}
	}
	if len(s) > maxURL {
		return ""
	}
	return s
}

// safeInline makes text safe again after its character references were resolved.
func safeInline(s string) string { return safetext.Text(s) }
