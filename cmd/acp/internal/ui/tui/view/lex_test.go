package view

import (
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// TestLanguages holds that a language is found by what chroma finds it by, and that each can be read.
func TestLanguages(t *testing.T) {
	lost := map[string]bool{"Caddyfile": true, "Caddyfile Directives": true, "Go HTML Template": true, "Haxe": true, "Raku": true, "YAML+Jinja": true}
	for _, l := range lexers.GlobalLexerRegistry.Lexers {
		config := l.Config()
		if lost[config.Name] {
			continue
		}
		for _, name := range append(config.Aliases, config.Name) {
			want, got := lexers.Get(name), languages().Get(name)
			if got == nil || got.Config().Name != want.Config().Name {
				t.Errorf("%s: %v, want %s", name, got, want.Config().Name)
			}
		}
		for _, name := range config.Filenames {
			if got := languages().Match(name); got == nil && !strings.Contains(name, "[") {
				t.Errorf("%s: no language; want %s", name, config.Name)
			}
		}
	}
	for _, l := range languages().Lexers {
		const code = "a \"b\" 1 # c\n"
		it, err := l.Tokenise(nil, code)
		if err != nil {
			if _, err := lexers.Get(l.Config().Name).Tokenise(nil, code); err != nil {
				continue // chroma's own cannot be used either
			}
			t.Errorf("%s: %v", l.Config().Name, err)
			continue
		}
		for tok, n := it(), 0; tok != chroma.EOF && n < 100; tok, n = it(), n+1 {
		}
	}
}

// TestDrawn: formulas and drawings are shown as their source, with the name of the language, whether they stand alone or in a list.
func TestDrawn(t *testing.T) {
	th := plainTheme()
	for _, x := range []struct{ text, want string }{
		{"```mermaid\ngraph TD\n  A --> B\n```\n", "│ mermaid\n│ graph TD\n│   A --> B"},
		{"$$\na_1 * b_2 * c\n$$\n", "│ math\n│ a_1 * b_2 * c"},
		{"so\n\\[ x = \\frac{a}{b} \\]\n", "so\n\n│ math\n│ x = \\frac{a}{b}"},
		{"- so:\n  $$\n  x\n  $$\n", "• so:\n\n  │ math\n  │ x"},
		{"```go\nx\n```\n", "│ x"},
	} {
		var got []string
		for _, p := range splitMarkdown(x.text, nil) {
			for _, l := range th.pieceLines(x.text, p, 40) {
				text := ""
				for _, s := range l {
					text += s.text
				}
				got = append(got, strings.TrimRight(text, " "))
			}
		}
		if got := strings.Join(got, "\n"); got != x.want {
			t.Errorf("%q is drawn\n%s\nwant\n%s", x.text, got, x.want)
		}
	}
	if got := nestedCode("so\n$$\nx\n$$\n"); len(got) != 1 || got[0] != "x" {
		t.Errorf("to copy: %q", got)
	}
}
