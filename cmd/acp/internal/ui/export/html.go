package export

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	gohtml "html"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	renderers "github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/goacp/acp/cmd/acp/internal/markdown"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

const (
	// maxRendered is the length up to which Markdown is rendered; longer texts are shown as they are.
	maxRendered = 1 << 20
	// maxImage bounds an image that is put into the page, in bytes of base64.
	maxImage = 16 << 20
)

//go:embed page.html.tmpl
var page string

// What renders is made when it is first needed: every command would wait for it otherwise.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"markdown": renderMarkdown,
		"diff":     diffLines,
		"image":    imageURL,
		"web":      webURL,
	}).Parse(page))
})

// writeHTML writes one page that is complete in itself.
func writeHTML(w io.Writer, s store.Session, t *transcript.Snapshot) error {
	title, facts := heading(s, t)
	var data struct {
		Title string
		Facts [][2]string
		Items []item
	}
	data.Title, data.Facts, data.Items = title, facts, items(t)
	return pageTemplate().Execute(w, data)
}

// renderer leaves out HTML in the text. Images would be loaded from somewhere, so they become links. The second lock is
// the page's own policy, which runs no script, loads nothing and sends nothing.
var renderer = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithParser(parser.NewParser(append(markdown.Options(),
			markdown.Definitions(),
			parser.WithASTTransformers(util.Prioritized(tame{}, 100)),
		)...)),
		goldmark.WithRendererOptions(html.WithWriter(safeWriter{html.DefaultWriter}), renderers.WithNodeRenderers(
			util.Prioritized(extension.NewTableHTMLRenderer(), 500),
			util.Prioritized(extension.NewTaskCheckBoxHTMLRenderer(), 500),
			util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		)),
	)
})

// A safeWriter writes text whose references, such as &#27;, are not made safe yet: the rest of it is.
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

// A tame makes links of images, and leaves of links only those that lead to the web or to an address of mail, and tells
// neither where they come from. Of others the text stays.
type tame struct{}

// Transform implements [parser.ASTTransformer].
func (tame) Transform(doc *ast.Document, r text.Reader, _ parser.Context) {
	type found struct {
		ast.Node
		in   int  // the link or image around it, or -1
		link bool // it is one in the end, or in one
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
	// Many links may share what is written once.
	room := 2*len(r.Source()) + minAddresses
	may := func(address, title []byte) bool {
		room -= len(address) + len(title)
		return room >= 0 && leadsToWeb(address, true)
	}
	for i := range nodes {
		f := &nodes[i]
		inLink := f.in >= 0 && nodes[f.in].link // they do not nest
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
			label.SetRaw(true) // that is, not Markdown: it is escaped
			parent.ReplaceChild(parent, n, label)
		case *ast.FencedCodeBlock:
			if n.Info == nil {
				continue
			}
			if name, _, _ := bytes.Cut(n.Info.Value(r.Source()), []byte(" ")); !isLanguage(name) {
				n.Info = nil // it would be names of classes
			}
		}
	}
}

// unwrap puts what is in n in its place.
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

// minAddresses is how many bytes the addresses and titles of all links may have in any case. More than twice the text
// they may not.
const minAddresses = 100_000

var rel = []byte("nofollow noreferrer")

// leadsToWeb looks at an address as the renderer writes it, which may resolve its references.
func leadsToWeb(address []byte, resolve bool) bool {
	to := util.URLEscape(address, resolve)
	for _, scheme := range []string{"http://", "https://", "mailto:"} {
		if len(to) >= len(scheme) && strings.EqualFold(string(to[:len(scheme)]), scheme) {
			return true
		}
	}
	return false
}

// isLanguage reports whether a name is one as languages have them.
func isLanguage(name []byte) bool {
	for _, c := range name {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("+#.-_", c) >= 0) {
			return false
		}
	}
	return len(name) <= 40
}

func renderMarkdown(s string) template.HTML {
	if len(s) > maxRendered {
		return plainHTML(s)
	}
	var b bytes.Buffer
	if err := renderer().Convert([]byte(s), &b); err != nil {
		return plainHTML(s)
	}
	return template.HTML(b.String()) //nolint:gosec // the renderer escapes, and leads nowhere but where tame lets it
}

func plainHTML(s string) template.HTML {
	return template.HTML("<pre>" + template.HTMLEscapeString(s) + "</pre>") //nolint:gosec // it was escaped
}

// A diffLine is a line of a patch and what it does.
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

// imageURL returns an image as an address that has it in it, or "" for what is none that all browsers
// show without running anything.
func imageURL(b block) template.URL {
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
	return template.URL(fmt.Sprintf("data:%s;base64,%s", b.MIME, b.Data)) //nolint:gosec // it was checked
}

// webURL returns an address that may be followed, or "".
func webURL(s string) string {
	lower := strings.ToLower(s)
	if strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "http://") {
		return s
	}
	return ""
}
