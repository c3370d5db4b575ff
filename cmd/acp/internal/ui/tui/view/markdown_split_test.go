package view

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func pieceTexts(text string, ps []piece) []string {
	var out []string
	for _, p := range ps {
		out = append(out, strings.TrimRight(text[p.start:p.end], "\n"))
	}
	return out
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"empty", "", nil},
		{"blank", "\n \n", nil},
		{"paragraphs", "a\nb\n\nc", []string{"a\nb", "c"}},
		{"heading", "a\n# b\nc", []string{"a", "# b", "c"}},
		{"code", "a\n```go\nx\n\ny\n```\nb", []string{"a", "```go\nx\n\ny\n```", "b"}},
		{"code not closed", "```\na\n\nb", []string{"```\na\n\nb"}},
		{"list", "- a\n\n- b\n\n  more\n\nend", []string{"- a\n\n- b\n\n  more", "end"}},
		{"code in list", "1. a\n\n   ```\n   x\n\n   y\n   ```\n\n2. b", []string{"1. a\n\n   ```\n   x\n\n   y\n   ```\n\n2. b"}},
		{"longer fence", "````\n```\n````\nx", []string{"````\n```\n````", "x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, pieceTexts(c.in, splitMarkdown(c.in, nil))); diff != "" {
				t.Errorf("pieces (-want +got):\n%s", diff)
			}
		})
	}
}

// randomMarkdown is text with everything that the splitter looks at.
func randomMarkdown(r *rand.Rand, n int) string {
	parts := []string{"word ", "two words\n", "\n", "\n\n", "# head\n", "- item\n", "  more\n", "1. one\n", "```go\n", "```\n", "~~~\n", "    code\n",
		"> quote\n", "| a | b |\n|---|---|\n", "**bold** ", "世界 ", "`x` ", "🙂", "#", "1", ".", "`", " ", "\t", "<b>", "[l](http://x) ", "---\n"}
	var b strings.Builder
	for range n {
		b.WriteString(parts[r.IntN(len(parts))])
		if r.IntN(200) == 0 {
			b.WriteString(strings.Repeat("long ", r.IntN(3000)))
		}
		if r.IntN(200) == 0 {
			b.WriteString(strings.Repeat("y", r.IntN(40000)))
		}
	}
	return b.String()
}

func TestSplitGrowing(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		text := randomMarkdown(r, 150)
		want := splitMarkdown(text, nil)
		var got []piece
		for n := 0; n < len(text); {
			n = min(n+1+r.IntN(1+r.IntN(max(len(text)/20, 2))), len(text))
			got = splitMarkdown(text[:n], got)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(piece{})); diff != "" {
			t.Fatalf("seed %d: pieces (-whole +grown):\n%s\n%.2000q", seed, diff, text)
		}
		for i, p := range got {
			if p.end <= p.start || i > 0 && p.start < got[i-1].end || p.end-p.start > maxPiece+hardPiece {
				t.Fatalf("seed %d: bad piece %+v", seed, p)
			}
			if i > 0 && strings.TrimSpace(text[got[i-1].end:p.start]) != "" {
				t.Fatalf("seed %d: %q is in no piece", seed, text[got[i-1].end:p.start])
			}
		}
	}
}
