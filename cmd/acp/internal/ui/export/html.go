package export

import (
	"bufio"
	"bytes"
	"encoding/base64"
	gohtml "html"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	renderers "github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/goacp/acp/cmd/acp/internal/markdown"
	"github.com/goacp/acp/cmd/acp/internal/markdown/gfm"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

const (
	// maxRendered bounds the Markdown that is rendered, in bytes. Longer texts are shown verbatim.
	maxRendered = 1 << 20
	// maxImage bounds an image that is embedded in the page, in bytes of base64.
	maxImage = 16 << 20
)

// renderer is created on first use, or every command would have to wait for it. It removes HTML from the text, and turns images into links, because loading them would
// contact a server. As a second line of defence, the page's content security policy forbids
// scripts, loading and sending.
var renderer = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithParser(parser.NewParser(append(markdown.Options(),
			markdown.Definitions(),
			parser.WithASTTransformers(util.Prioritized(tame{}, 100)),
		)...)),
		goldmark.WithRendererOptions(html.WithWriter(safeWriter{html.DefaultWriter}), renderers.WithNodeRenderers(
			util.Prioritized(gfm.NewTableHTMLRenderer(), 500),
			util.Prioritized(gfm.NewTaskCheckBoxHTMLRenderer(), 500),
			util.Prioritized(gfm.NewStrikethroughHTMLRenderer(), 500),
			util.Prioritized(codes{}, 500),
		)),
	)
})

// codes renders code with the name of its language, which the style of the page shows, and formulas in the same way.
type codes struct{}

// RegisterFuncs implements [renderers.NodeRenderer].
func (codes) RegisterFuncs(reg renderers.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindFencedCodeBlock, writeCode)
	reg.Register(markdown.KindMath, writeCode)
}

func writeCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := markdown.MathLanguage
	if c, ok := n.(*ast.FencedCodeBlock); ok {
		language = string(c.Language(source)) // that of a tame document
	}
	open := "<pre><code>"
	if language != "" {
		name := gohtml.EscapeString(language)
		open = `<pre data-language="` + name + `"><code class="language-` + name + `">`
	}
	_, _ = w.WriteString(open)
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		html.DefaultWriter.RawWrite(w, line.Value(source))
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

// A safeWriter makes character references such as &#27; safe. Everything else in the text is safe
// already.
type safeWriter struct{ html.Writer }

// Write implements [html.Writer].
func (s safeWriter) Write(w util.BufWriter, source []byte) {
	if bytes.IndexByte(source, '&') < 0 {
		s.Writer.Write(w, source)
		return
	}
	var b bytes.Buffer
	escaped := bufio.NewWriterSize(&b, len(source))
	s.Writer.Write(escaped, source)
	_ = escaped.Flush()
	_, _ = w.Write(util.EscapeHTML([]byte(safetext.Text(gohtml.UnescapeString(b.String())))))
}

// A tame transformer turns images into links and keeps only those links that lead to the web or to
// a mail address. Of other links only the text remains. Links send no referrer.
type tame struct{}

// Transform implements [parser.ASTTransformer].
func (tame) Transform(doc *ast.Document, r text.Reader, _ parser.Context) {
	type found struct {
		ast.Node
		in   int  // index of the enclosing link or image, or -1
		link bool // the node becomes a link or is inside one
	}
	var nodes []found
	in := -1
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch k := n.Kind(); {
		case k == ast.KindImage || k == ast.KindLink:
			if entering {
				nodes = append(nodes, found{Node: n, in: in})
				in = len(nodes) - 1
			} else {
				in = nodes[in].in
			}
		case entering && (k == ast.KindAutoLink || k == ast.KindFencedCodeBlock):
			nodes = append(nodes, found{Node: n, in: in})
		}
		return ast.WalkContinue, nil
	})
	// Reference links can repeat one long address very often, so their total size is bounded.
	room := 2*len(r.Source()) + minAddresses
	may := func(address, title []byte) bool {
		room -= len(address) + len(title)
		return room >= 0 && leadsToWeb(address, true)
	}
	for i := range nodes {
		f := &nodes[i]
		inLink := f.in >= 0 && nodes[f.in].link // links must not nest
		parent := f.Parent()
		switch n := f.Node.(type) {
		case *ast.Image:
			n.InsertBefore(n, n.FirstChild(), ast.NewString([]byte("image: ")))
			if f.link = inLink || may(n.Destination, n.Title); inLink || !f.link {
				unwrap(n)
				continue
			}
			link := ast.NewLink()
			link.Destination, link.Title = n.Destination, n.Title
			moveChildren(n, func(c ast.Node) { link.AppendChild(link, c) })
			link.SetAttributeString("rel", rel)
			parent.ReplaceChild(parent, n, link)
		case *ast.Link:
			if f.link = inLink || may(n.Destination, n.Title); inLink || !f.link {
				unwrap(n)
				continue
			}
			n.SetAttributeString("rel", rel)
		case *ast.AutoLink:
			if !inLink && (n.AutoLinkType == ast.AutoLinkEmail || leadsToWeb(n.URL(r.Source()), false)) {
				n.SetAttributeString("rel", rel)
				continue
			}
			label := ast.NewString(n.Label(r.Source()))
			label.SetRaw(true) // not parsed as Markdown; the writer escapes it
			parent.ReplaceChild(parent, n, label)
		case *ast.FencedCodeBlock:
			if n.Info == nil {
				continue
			}
			if name, _, _ := bytes.Cut(n.Info.Value(r.Source()), []byte(" ")); !isLanguage(name) {
				n.Info = nil // it would become class names
			}
		}
	}
}

// unwrap replaces n by its children.
func unwrap(n ast.Node) {
	parent := n.Parent()
	moveChildren(n, func(c ast.Node) { parent.InsertBefore(parent, n, c) })
	parent.RemoveChild(parent, n)
}

func moveChildren(n ast.Node, move func(ast.Node)) {
	for c := n.FirstChild(); c != nil; {
		next := c.NextSibling()
		move(c)
		c = next
	}
}

// minAddresses is the number of bytes that the addresses and titles of all links together may
// always have. Beyond it they may have at most twice the size of the text.
const minAddresses = 100_000

var rel = []byte("nofollow noreferrer")

// leadsToWeb reports whether an address leads to the web or to mail. It checks the address in the
// form that the renderer writes; resolve says whether that resolves references.
func leadsToWeb(address []byte, resolve bool) bool {
	to := util.URLEscape(address, resolve)
	for _, scheme := range []string{"http://", "https://", "mailto:"} {
		if len(to) >= len(scheme) && strings.EqualFold(string(to[:len(scheme)]), scheme) {
			return true
		}
	}
	return false
}

// isLanguage reports whether a name looks like the name of a programming language.
func isLanguage(name []byte) bool {
	for _, c := range name {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("+#.-_", c) >= 0) {
			return false
		}
	}
	return len(name) <= 40
}

func renderMarkdown(s string) markup {
	if len(s) > maxRendered {
		return plainHTML(s)
	}
	var b bytes.Buffer
	if err := renderer().Convert([]byte(s), &b); err != nil {
		return plainHTML(s)
	}
	return markup(b.String()) // the renderer escapes, and leads nowhere but where tame lets it
}

func plainHTML(s string) markup { return "<pre>" + toHTML(s) + "</pre>" }

// A diffLine is a line of a patch and its CSS class.
type diffLine struct{ Class, Text string }

func diffLines(patch string) []diffLine {
	var all []diffLine
	inHunk := false
	for l := range strings.SplitSeq(strings.TrimRight(patch, "\n"), "\n") {
		class := ""
		switch {
		case strings.HasPrefix(l, "@@"):
			class, inHunk = "hunk", true
		case strings.HasPrefix(l, "diff "):
			class, inHunk = "file", false
		case !inHunk:
			class = "file"
		case strings.HasPrefix(l, "+"):
			class = "add"
		case strings.HasPrefix(l, "-"):
			class = "del"
		}
		all = append(all, diffLine{class, l})
	}
	return all
}

// imageURL returns an image as a data: URL. It returns "" unless the image is in a format that
// every browser shows and that cannot contain code, as SVG can.
func imageURL(b block) string {
	switch b.MIME {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return ""
	}
	if len(b.Data) == 0 || len(b.Data) > maxImage {
		return ""
	}
	if _, err := base64.StdEncoding.DecodeString(b.Data); err != nil {
		return ""
	}
	return "data:" + b.MIME + ";base64," + b.Data
}

// webURL returns s if it is a web address, or "" otherwise.
func webURL(s string) string {
	lower := strings.ToLower(s)
	if strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "http://") {
		return s
	}
	return ""
}
