package markdown

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

func newParser() parser.Parser { return parser.NewParser(append(Options(), Definitions())...) }

const ordinary = `# a *b* [c](https://x.example "t") ![i](p.png)

- a
  - b

    > c
    > - [x] d
    > - [ ] e
- f
1) one
2) two

| a | b |
|:--|--:|
| ~~c~~ | ` + "`d\\|e`" + ` |
| only one

* * *
text
===
[r] [r][] [s][r] [[n](m)] ![![x](y)](z) ]]] [[[ www.x.example x@y.example
  
- 

  blank first

[r]: https://x.example/r 'title'

` + "```go\ncode\n```\n\n    indented\n\n<div>\nhtml\n</div>\n"

// TestOrdinary: what is within the bounds is what it always is.
func TestOrdinary(t *testing.T) {
	ours := goldmark.New(goldmark.WithParser(newParser()), goldmark.WithRendererOptions(renderer.WithNodeRenderers(
		util.Prioritized(extension.NewTableHTMLRenderer(), 500),
		util.Prioritized(extension.NewTaskCheckBoxHTMLRenderer(), 500),
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
	)))
	theirs := goldmark.New(goldmark.WithExtensions(extension.GFM))
	for _, s := range []string{
		ordinary, strings.ReplaceAll(ordinary, "\n", "\r\n"), strings.ReplaceAll(ordinary, "\n", "\n> "), strings.Repeat("> ", 20) + "a\nb\n\n" + strings.Repeat("- ", 20) + "c\n",
	} {
		var got, want bytes.Buffer
		if err := ours.Convert([]byte(s), &got); err != nil {
			t.Fatal(err)
		}
		if err := theirs.Convert([]byte(s), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Error(diff)
		}
	}
}

// TestBounds has texts that would take minutes, or more memory than there is.
func TestBounds(t *testing.T) {
	const size = 1 << 19
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, s := range map[string]string{
		"quotes":          fill(">") + "a",
		"items":           fill("- ") + "a",
		"numbers":         fill("1. ") + "a",
		"both":            fill("> - ") + "a",
		"lines of quotes": fill(strings.Repeat(">", 500) + "a\n"),
		"by indentation": func() string {
			var b strings.Builder
			for n := 0; b.Len() < size; n += 200 {
				b.WriteString(strings.Repeat(" ", n) + strings.Repeat("- ", 100) + "a\n")
			}
			return b.String()
		}(),
		"a wide table":  strings.Repeat("|a", size/8) + "\n" + strings.Repeat("|-", size/8) + "\n" + strings.Repeat("a\n", size/4),
		"many tables":   fill("|a|b|c|d|e|f|g|h\n|-|-|-|-|-|-|-|-\na\na\na\na\na\na\n\n"),
		"code in cells": "|a|\n|-|\n" + fill("|`\\|`|\n"),
		"destinations":  fill("[a]("),
		"titles":        fill("[a](b ("),
		"brackets":      strings.Repeat("[", size/2) + "a" + strings.Repeat("]", size/2),
		"definitions":   fill("[a]: b\n"),
		"formulas":      fill("$$a\n"),
	} {
		t.Run(name, func(t *testing.T) {
			source := []byte(s)
			doc := newParser().Parse(text.NewReader(source))
			depth, deepest, cells, said := 0, 0, 0, 0
			_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
				if !entering {
					depth--
					return ast.WalkContinue, nil
				}
				depth++
				deepest = max(deepest, depth)
				switch n := n.(type) {
				case *east.TableCell:
					cells++
				case *ast.Text:
					said += bytes.Count(n.Value(source), []byte("a"))
				}
				return ast.WalkContinue, nil
			})
			if deepest > maxNesting+10 || cells > maxCells {
				t.Errorf("%d deep, %d cells", deepest, cells)
			}
			if want := strings.Count(s, "a"); said != want {
				t.Errorf("%d of %d letters are there", said, want)
			}
		})
	}
}

// FuzzOptions looks for texts that the parser does not survive.
// TestMath: a formula that stands alone is one block with its source, wherever the line ends and in whatever it stands; what only
// looks like one is text.
func TestMath(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"$$\na_1 * b_2 * c\n$$", "a_1 * b_2 * c\n"},
		{"$$a_1$$", "a_1\n"},
		{"$$ a\nb $$\n", "a\nb\n"},
		{"\\[\nx = \\frac{a}{b} \\\\\ny\n\\]", "x = \\frac{a}{b} \\\\\ny\n"},
		{"\\[ E = mc^2 \\]", "E = mc^2\n"},
		{"so:\n$$\nx\n$$\nand more", "x\n"},
		{"- so:\n  $$\n  x\n  $$", "x\n"},
		{"> $$\n> x\n> y\n> $$", "x\ny\n"},
		{"  $$\n  x\n  $$   \n", "  x\n"},
		{"$$ 5 and $$ 6", ""},
		{"$$\nx\n\n$$", ""},
		{"$$\nx", ""},
		{"$$$ x $$$", ""},
		{"$$ $$", ""},
		{"\\[1\\] see", ""},
		{"\\[Unreleased\\]", ""},
		{"a $$x$$", ""},
		{"    $$\n    x\n    $$", ""},
		{"```\n$$\nx\n$$\n```", ""},
	} {
		for _, text := range []string{x.text, strings.ReplaceAll(x.text, "\n", "\r\n")} {
			got, n := mathOf(text)
			if want := x.want; strings.ReplaceAll(got, "\r", "") != want || (n == 1) != (want != "") {
				t.Errorf("%q: %d formulas, %q, want %q", text, n, got, want)
			}
		}
	}
	long := "$$\n" + strings.Repeat("x\n", maxFormula+1) + "$$\n"
	if _, n := mathOf(long); n != 0 {
		t.Errorf("a formula has more than %d lines", maxFormula)
	}
}

// mathOf returns the formulas of a text and their number.
func mathOf(s string) (source string, n int) {
	src := []byte(s)
	_ = ast.Walk(newParser().Parse(text.NewReader(src)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if m, ok := node.(*Math); ok && entering {
			n++
			for i := range m.Lines().Len() {
				line := m.Lines().At(i)
				source += string(line.Value(src))
			}
		}
		return ast.WalkContinue, nil
	})
	return source, n
}

func FuzzOptions(f *testing.F) {
	f.Add(ordinary)
	f.Add(strings.Repeat("- > ", 60) + "a\n- b\n1. c\n")
	f.Add("a\n$$\nx\n$$\n> \\[ y\n> \\]\n- $$z$$\n")
	f.Fuzz(func(t *testing.T, s string) {
		depth := 0
		for n := ast.Node(newParser().Parse(text.NewReader([]byte(s)))); n != nil; n = n.LastChild() {
			if n.Type() != ast.TypeInline {
				depth++
			}
		}
		if depth > maxNesting+10 {
			t.Errorf("%d deep", depth)
		}
	})
}
