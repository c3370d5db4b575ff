package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// The bounds of a page. What is nested deeper is shown as if it were not.
const (
	maxIndent = 8   // lists and quotes that are indented
	perLook   = 256 // tokens between two looks at whether the page is still wanted
)

// A page makes Markdown of the tokens of HTML, one after the other: the time it takes is in proportion to the length of the
// page, and the text is bounded. It builds no tree, so that nothing depends on how deep elements are nested.
type page struct {
	out   bytes.Buffer
	most  int // bytes of out
	line  int // line feeds that are due before the next text
	space bool

	skip   int // elements that are open and not shown
	quotes int
	lists  []int  // the next number of each list that is open, or -1
	deeper int    // lists beyond those that are indented
	mark   string // of an item, before its text
	href   string // of the link that is open
	linked bool
	pre    *bytes.Buffer  // what is preformatted
	open   map[string]int // marks of what is emphasized
	cells  int            // of the row
	rows   int            // of the table
}

// markdown returns a page as Markdown of at most most bytes, and whether that is not all of it. It ends with ctx.
func markdown(ctx context.Context, text string, most int) (string, bool, error) {
	p := &page{most: most, open: map[string]int{}}
	z := html.NewTokenizer(strings.NewReader(text))
	for n := 0; ; n++ {
		if n%perLook == 0 && ctx.Err() != nil {
			return "", false, context.Cause(ctx)
		}
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			if err := z.Err(); !errors.Is(err, io.EOF) {
				return "", false, err
			}
			p.endPre()
			return p.text(), false, nil
		case html.TextToken:
			p.say(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			p.start(z.Token())
		case html.EndTagToken:
			name, _ := z.TagName()
			p.end(atom.Lookup(name))
		}
		if p.out.Len() > p.most {
			return p.text(), true, nil
		}
	}
}

func (p *page) text() string {
	return strings.TrimSpace(strings.ToValidUTF8(string(p.out.Bytes()[:min(p.out.Len(), p.most)]), "")) + "\n"
}

// hidden are elements whose content is not text for readers.
func hidden(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Svg, atom.Iframe, atom.Object, atom.Select, atom.Textarea, atom.Title:
		return true
	}
	return false
}

// marks are what emphasized text is put into.
func marks(a atom.Atom) string {
	switch a {
	case atom.B, atom.Strong:
		return "**"
	case atom.I, atom.Em:
		return "*"
	case atom.Code, atom.Kbd, atom.Samp:
		return "`"
	case atom.Del, atom.S:
		return "~~"
	}
	return ""
}

// block returns the line feeds that stand around an element.
func block(a atom.Atom) int {
	switch a {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Blockquote, atom.Table, atom.Ul, atom.Ol, atom.Dl, atom.Pre, atom.Figure, atom.Section, atom.Article, atom.Hr, atom.Form:
		return 2
	case atom.Div, atom.Li, atom.Tr, atom.Dt, atom.Dd, atom.Header, atom.Footer, atom.Nav, atom.Main, atom.Aside, atom.Figcaption, atom.Address, atom.Details, atom.Summary, atom.Option, atom.Caption, atom.Body:
		return 1
	}
	return 0
}

func (p *page) start(t html.Token) {
	if hidden(t.DataAtom) && t.Type == html.StartTagToken {
		p.skip++
	} else if t.DataAtom == atom.Body { // whatever was not closed before
		p.skip = 0
	}
	if p.skip > 0 {
		return
	}
	if n := block(t.DataAtom); n > 0 && p.pre == nil {
		p.feed(n, t.DataAtom)
	}
	switch a := t.DataAtom; a {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		p.mark += strings.Repeat("#", int(t.Data[1]-'0')) + " "
	case atom.Br:
		if p.pre != nil {
			p.pre.WriteByte('\n')
		} else {
			p.line = max(p.line, 1)
		}
	case atom.Hr:
		p.put("---")
		p.line = 2
	case atom.Blockquote:
		p.quotes++
	case atom.Ul, atom.Ol:
		if len(p.lists) == maxIndent {
			p.deeper++
		} else if a == atom.Ol {
			p.lists = append(p.lists, 1)
		} else {
			p.lists = append(p.lists, -1)
		}
	case atom.Li:
		p.mark = "- "
		if n := len(p.lists) - 1; n >= 0 && p.lists[n] > 0 {
			p.mark = fmt.Sprintf("%d. ", p.lists[n])
			p.lists[n]++
		}
	case atom.Pre:
		if p.pre == nil {
			p.pre = new(bytes.Buffer)
		}
	case atom.Table:
		p.rows = 0
	case atom.Tr:
		p.cells = 0
	case atom.Td, atom.Th:
		if p.cells++; p.cells == 1 {
			p.put("|")
		}
		p.space = true
	case atom.A:
		p.endLink()
		if href := attribute(t, "href"); href != "" && p.pre == nil {
			p.put("[")
			p.href, p.linked = href, true
		}
	case atom.Img:
		if alt := attribute(t, "alt"); alt != "" {
			p.say("[image: " + prose.OneLine(alt, 300) + "]")
		}
	default:
		if m := marks(a); m != "" && p.pre == nil {
			p.put(m)
			p.open[m]++
		}
	}
}

func (p *page) end(a atom.Atom) {
	if hidden(a) {
		p.skip = max(0, p.skip-1)
		return
	}
	if p.skip > 0 {
		return
	}
	switch a {
	case atom.Blockquote:
		p.quotes = max(0, p.quotes-1)
	case atom.Ul, atom.Ol:
		if p.deeper > 0 {
			p.deeper--
		} else if n := len(p.lists); n > 0 {
			p.lists = p.lists[:n-1]
		}
	case atom.Pre:
		p.endPre()
	case atom.Td, atom.Th:
		p.space = false
		p.put(" |")
	case atom.Tr:
		if p.rows++; p.rows == 1 && p.cells > 0 {
			p.line = 1
			p.put("|" + strings.Repeat("---|", min(p.cells, 100)))
		}
	case atom.A:
		p.endLink()
	default:
		if m := marks(a); p.open[m] > 0 && p.pre == nil {
			p.open[m]--
			space := p.space
			p.space = false
			p.put(m)
			p.space = space
		}
	}
	if n := block(a); n > 0 && p.pre == nil {
		p.feed(n, a)
	}
}

// feed begins a new line, with an empty one before it unless it is one of a list within a list.
func (p *page) feed(n int, a atom.Atom) {
	if (a == atom.Ul || a == atom.Ol) && len(p.lists) > 0 {
		n = 1
	}
	p.endLink()
	p.line, p.space = max(p.line, n), false
}

func (p *page) endLink() {
	if !p.linked {
		return
	}
	p.linked = false
	space := p.space
	p.space = false
	p.put("](" + prose.OneLine(p.href, 2000) + ")")
	p.space = space
}

func (p *page) endPre() {
	if p.pre == nil {
		return
	}
	code := prose.Code("", strings.Trim(p.pre.String(), "\n"))
	p.pre = nil
	p.line = max(p.line, 2)
	for line := range strings.Lines(code) {
		p.put(strings.TrimRight(line, "\n"))
		p.line = 1
	}
	p.line = 2
}

// say adds text, whose white space is one space.
func (p *page) say(text string) {
	if p.skip > 0 {
		return
	}
	if p.pre != nil {
		if p.pre.Len() < p.most {
			p.pre.WriteString(text)
		}
		return
	}
	for word := range strings.FieldsSeq(text) {
		if i := strings.Index(text, word); i > 0 {
			p.space = true
			text = text[i:]
		}
		p.put(word)
		text = text[len(word):]
	}
	if text != "" {
		p.space = true
	}
}

// put adds text as it is, after the lines and the space that are due.
func (p *page) put(text string) {
	if p.out.Len() > p.most {
		return
	}
	if p.line > 0 {
		quote := strings.Repeat("> ", min(p.quotes, maxIndent))
		for i := range p.line {
			if p.out.Len() == 0 {
				break
			}
			if p.out.WriteByte('\n'); i < p.line-1 {
				p.out.WriteString(strings.TrimRight(quote, " "))
			}
		}
		indent := len(p.lists)
		if p.mark != "" || indent == 0 {
			indent--
		}
		p.out.WriteString(quote + strings.Repeat("  ", max(0, indent)) + p.mark)
		p.line, p.space, p.mark = 0, false, ""
	} else if p.mark != "" {
		p.out.WriteString(p.mark)
		p.space, p.mark = false, ""
	}
	if p.space {
		p.out.WriteByte(' ')
		p.space = false
	}
	p.out.WriteString(text)
}

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return strings.TrimSpace(a.Val)
		}
	}
	return ""
}
