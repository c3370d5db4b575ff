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
