package view

import (
	"fmt"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// block adds a content block.
func (b *builder) block(p prefix, c acpv2.ContentBlock, gap bool) {
	switch c := c.(type) {
	case *acpv2.TextContent:
		b.pieces(p, c.Text, splitMarkdown(c.Text, nil), gap)
	case *acpv2.EmbeddedResource:
		b.line(p, blockLabel(b.t.th, c))
		if r, ok := c.Resource.(*acpv2.TextResourceContents); ok && b.t.expanded(b.it) {
			b.pieces(p.under().with(indent(2)), r.Text, splitPlain(r.Text, ""), false)
		}
	default:
		b.line(p, blockLabel(b.t.th, c))
	}
}

// blockLabel describes a content block that is not text.
func blockLabel(th *Theme, c acpv2.ContentBlock) line {
	label := func(what string, more ...string) line {
		l := line{}.put("["+what+"]", th.accent)
		for _, m := range more {
			if m = safetext.Line(m, maxTitle); m != "" {
				l = l.put(" "+m, th.dim)
			}
		}
		return l
	}
	switch c := c.(type) {
	case *acpv2.ImageContent:
		return label("image", c.MIMEType, base64Size(c.Data), c.URI)
	case *acpv2.AudioContent:
		return label("audio", c.MIMEType, base64Size(c.Data))
	case *acpv2.ResourceLink:
		name := c.Title
		if name == "" {
			name = c.Name
		}
		l := line{}.put("[link] ", th.accent)
		k := look{attr: underline}
		k.link = hyperlink(c.URI)
		l = l.put(safetext.Line(name, maxTitle), k)
		if c.URI != name {
			l = l.put(" "+safetext.Line(c.URI, maxTitle), th.dim)
		}
		var more []string
		if c.MIMEType != "" {
			more = append(more, safetext.Line(c.MIMEType, 80))
		}
		if c.Size != nil {
			more = append(more, size(*c.Size))
		}
		if len(more) > 0 {
			l = l.put(" ("+strings.Join(more, ", ")+")", th.dim)
		}
		if d := safetext.Line(c.Description, maxTitle); d != "" {
			l = l.put(" – "+d, th.dim)
		}
		return l
	case *acpv2.EmbeddedResource:
		switch r := c.Resource.(type) {
		case *acpv2.TextResourceContents:
			return label("file", r.URI, r.MIMEType, size(uint64(len(r.Text))))
		case *acpv2.BlobResourceContents:
			return label("file", r.URI, r.MIMEType, base64Size(r.Blob))
		}
		return label("file")
	case *acpv2.UnknownContentBlock:
		return label("unknown content", c.Type)
	}
	return label("unknown content")
}

func base64Size(s string) string { return size(uint64(len(s)) * 3 / 4) }

// size returns a number of bytes in a readable form.
func size(n uint64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// count returns a number with its noun in the singular or plural.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
