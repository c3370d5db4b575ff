package export

import (
	"bufio"
	_ "embed"
	gohtml "html"
	"io"
	"strconv"

	"github.com/yuin/goldmark/util"

	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

//go:embed page.css
var style markup

// markup is HTML: a constant, or what was escaped. It is a type of its own so that no other text gets into a page.
//
// The page is not made by html/template, since that calls methods by their names: the linker would keep each exported
// method of every type of the program, a tenth of its size.
type markup string

// toHTML returns text as HTML, also for use in attributes with quotes.
func toHTML(text string) markup { return markup(gohtml.EscapeString(text)) }

// urlToHTML is toHTML for addresses.
func urlToHTML(url string) markup { return toHTML(string(util.URLEscape([]byte(url), false))) }

// A page is written bit by bit. It keeps the first error.
type page struct{ w *bufio.Writer }

func (p page) put(parts ...markup) {
	for _, m := range parts {
		_, _ = p.w.WriteString(string(m)) // Flush returns the error
	}
}

// writeHTML writes a self-contained page.
func writeHTML(w io.Writer, s store.Session, t *transcript.Snapshot) error {
	p := page{bufio.NewWriter(w)}
	title, facts := heading(s, t)
	p.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>`, toHTML(title), `</title>
<style>
`, style, `</style>
</head>
<body>
<h1 dir="auto">`, toHTML(title), `</h1>
<dl>`)
	for _, f := range facts {
		p.put("\n<dt>", toHTML(f[0]), "</dt><dd>", toHTML(f[1]), "</dd>")
	}
	p.put("\n</dl>\n<main>")
	for _, it := range items(t) {
		p.item(&it)
	}
	p.put("\n</main>\n</body>\n</html>\n")
	return p.w.Flush()
}

func (p page) item(it *item) {
	p.put("\n", `<article class="`, toHTML(string(it.Kind)), `">`, "\n")
	if it.Kind == itemThought {
		p.put("<details><summary>", toHTML(it.Title), `</summary><div class="body">`)
		p.body(it)
		p.put("</div></details>\n</article>")
		return
	}
	p.put(`<header dir="auto">`)
	if it.Mark != "" {
		p.put(`<span aria-hidden="true">`, toHTML(it.Mark), "</span> ")
	}
	p.put(toHTML(it.Title))
	if it.Status != "" {
		p.put(` <span class="status">`, toHTML(it.Status), "</span>")
	}
	p.put("</header>\n", `<div class="body" dir="auto">`)
	p.body(it)
	p.put("</div>\n</article>")
}

func (p page) body(it *item) {
	if len(it.Notes) > 0 {
		p.put(`<ul class="notes">`)
		for _, note := range it.Notes {
			p.put("<li>", toHTML(note), "</li>")
		}
		p.put("</ul>")
	}
	for _, b := range it.Blocks {
		p.put("\n")
		p.block(b)
	}
	if it.Loss > 0 {
		p.put(`<p class="lost">`, markup(strconv.FormatInt(it.Loss, 10)), " bytes of this were not stored.</p>")
	}
}

func (p page) block(b block) {
	switch b.Kind {
	case blockMarkdown:
		p.put(renderMarkdown(b.Text))
	case blockDiff:
		p.put(`<pre class="diff">`)
		for _, l := range diffLines(b.Text) {
			if l.Class == "" {
				p.put("<span>")
			} else {
				p.put(`<span class="`, toHTML(l.Class), `">`)
			}
			p.put(toHTML(l.Text), "</span>")
		}
		p.put("</pre>")
	case blockTerminal:
		p.put(`<pre class="terminal">`, toHTML(b.Text), "</pre>")
	case blockCode:
		p.put("<pre><code>", toHTML(b.Text), "</code></pre>")
	case blockSteps:
		p.put(`<ul class="steps">`)
		for _, step := range b.Steps {
			p.put("<li>", toHTML(step.Mark), " ", toHTML(step.Text), ` <span class="status">`, toHTML(step.Status), "</span></li>")
		}
		p.put("</ul>")
	case blockImage:
		if url := imageURL(b); url != "" {
			p.put(`<img src="`, toHTML(url), `" alt="">`)
		} else {
			p.put("<p>[image ", toHTML(b.Text), "]</p>")
		}
	default:
		p.link(b)
	}
}

func (p page) link(b block) {
	p.put("<p>")
	switch {
	case webURL(b.URL) != "":
		p.put(`<a href="`, urlToHTML(b.URL), `" rel="nofollow noreferrer">`, toHTML(b.Text), "</a>")
	case b.URL != "" && b.URL != b.Text:
		p.put(toHTML(b.Text), " <code>", toHTML(b.URL), "</code>")
	default:
		p.put(toHTML(b.Text))
	}
	p.put("</p>")
}
