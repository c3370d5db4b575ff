package export

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
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

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"markdown": renderMarkdown,
	"diff":     diffLines,
	"image":    imageURL,
	"web":      webURL,
}).Parse(page))

// writeHTML writes one page that is complete in itself.
func writeHTML(w io.Writer, s store.Session, t *transcript.Snapshot) error {
	title, facts := heading(s, t)
	var data struct {
		Title string
		Facts [][2]string
		Items []item
	}
	data.Title, data.Facts, data.Items = title, facts, items(t)
	return pageTemplate.Execute(w, data)
}

// renderer leaves out HTML in the text. Images would be loaded from somewhere, so they become links.
var renderer = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(linkImages{}, 100))),
)

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

// sanitizer lets through what the renderer makes and nothing else, whatever it may have been led to.
var sanitizer = func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "code", "em", "strong", "del",
		"ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[a-zA-Z0-9+#.-]{1,40}$`)).OnElements("code")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("style").Matching(regexp.MustCompile(`^text-align:(left|right|center)$`)).OnElements("th", "td")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	p.AllowAttrs("type").Matching(regexp.MustCompile(`^checkbox$`)).OnElements("input")
	p.AllowAttrs("checked", "disabled").OnElements("input")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
}()

func renderMarkdown(s string) template.HTML {
	if len(s) > maxRendered {
		return plainHTML(s)
	}
	var b bytes.Buffer
	if err := renderer.Convert([]byte(s), &b); err != nil {
		return plainHTML(s)
	}
	return template.HTML(sanitizer.SanitizeBytes(b.Bytes())) //nolint:gosec // it was sanitized
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
