package export

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

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
// the page's own policy, which runs no script and loads nothing.
var renderer = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(linkImages{}, 100), util.Prioritized(webLinks{}, 200))),
	)
})

// A linkImages makes links of images.
type linkImages struct{}

// Transform implements [parser.ASTTransformer].
func (linkImages) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var images []*ast.Image
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if img, ok := n.(*ast.Image); ok && entering {
			images = append(images, img)
		}
		return ast.WalkContinue, nil
	})
	for _, img := range images {
		link := ast.NewLink()
		link.Destination, link.Title = img.Destination, img.Title
		link.AppendChild(link, ast.NewString([]byte("image: ")))
		for c := img.FirstChild(); c != nil; {
			next := c.NextSibling()
			link.AppendChild(link, c)
			c = next
		}
		parent := img.Parent()
		if _, inLink := parent.(*ast.Link); inLink { // links do not nest
			parent.ReplaceChild(parent, img, ast.NewString([]byte("image")))
			continue
		}
		parent.ReplaceChild(parent, img, link)
	}
}

// A webLinks leaves of links only those that lead to the web or to an address of mail, and tells neither where they
// come from. Of others the text stays.
type webLinks struct{}

// Transform implements [parser.ASTTransformer].
func (webLinks) Transform(doc *ast.Document, r text.Reader, _ parser.Context) {
	var links []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if k := n.Kind(); entering && (k == ast.KindLink || k == ast.KindAutoLink) {
			links = append(links, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range links {
		parent := n.Parent()
		switch n := n.(type) {
		case *ast.Link:
			if leadsToWeb(n.Destination) {
				break
			}
			for c := n.FirstChild(); c != nil; {
				next := c.NextSibling()
				parent.InsertBefore(parent, n, c)
				c = next
			}
			parent.RemoveChild(parent, n)
			continue
		case *ast.AutoLink:
			if n.AutoLinkType == ast.AutoLinkEmail || leadsToWeb(n.URL(r.Source())) {
				break
			}
			label := ast.NewString(n.Label(r.Source()))
			label.SetRaw(true) // that is, not Markdown: it is escaped
			parent.ReplaceChild(parent, n, label)
			continue
		}
		n.SetAttributeString("rel", []byte("nofollow noreferrer"))
	}
}

// leadsToWeb looks at an address as the renderer writes it, with its references resolved.
func leadsToWeb(address []byte) bool {
	to := bytes.ToLower(util.URLEscape(address, true))
	return bytes.HasPrefix(to, []byte("http://")) || bytes.HasPrefix(to, []byte("https://")) || bytes.HasPrefix(to, []byte("mailto:"))
}

func renderMarkdown(s string) template.HTML {
	if len(s) > maxRendered {
		return plainHTML(s)
	}
	var b bytes.Buffer
	if err := renderer().Convert([]byte(s), &b); err != nil {
		return plainHTML(s)
	}
	return template.HTML(b.String()) //nolint:gosec // the renderer escapes, and leads nowhere but where webLinks lets it
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
