package shellline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
	"github.com/goacp/acp/internal/long"
)

// TestBounds: what is said of lines that are large in some way is within the bounds, and no pattern
// allows what is beyond.
func TestBounds(t *testing.T) {
	long.Test(t)
	rules := []acphost.Rule{{Effect: acphost.EffectAllow, Commands: []string{"ls *", "sudo *", "bash *"}}}
	var deny acphost.Rule
	deny.Effect = acphost.EffectDeny
	for i := range 50 {
		deny.Commands = append(deny.Commands, fmt.Sprintf("forbidden%d *", i))
	}
	p := newPolicy(t, append([]acphost.Rule{deny}, rules...)...)
	nested := "ls"
	for range 12 {
		nested = "bash -c " + "'" + strings.ReplaceAll(nested, "'", `'\''`) + "'"
	}
	for name, line := range map[string]string{
		"long":                       "ls " + strings.Repeat("x", 65<<10),
		"many commands":              strings.Repeat("ls;", 600),
		"many words":                 "ls " + strings.Repeat("x ", 5000),
		"many words of a wrapper":    strings.Repeat("sudo ", 2000) + "ls",
		"shells in shells":           nested,
		"evals":                      strings.Repeat("eval ", 20) + "ls",
		"braces":                     "ls {1..1000000000}; x",
		"braces in braces":           "ls " + strings.Repeat("{a,b}", 50) + "; x",
		"substitutions":              "ls " + strings.Repeat("$(ls ", 3000) + strings.Repeat(")", 3000) + "; x",
		"not closed":                 strings.Repeat("$(", 8000),
		"many unknown":               "x " + strings.Repeat("$a ", 3000),
		"many that are not certain":  strings.Repeat("x $a 'b' y; ", 400),
		"many words, not understood": "ls " + strings.Repeat("x ", 2000) + "'",
		"globs":                      "x" + strings.Repeat("*a", 20000),
		"redirections":               "ls " + strings.Repeat("<f ", 20000),
		"redirections with braces":   "ls " + strings.Repeat(">{1..60} ", 7000),
		"reading with braces":        "ls " + strings.Repeat("<{1..60} ", 7000),
		"long words of braces":       "ls {" + strings.Repeat("x,", 60) + "}" + strings.Repeat("y", 60000),
		"assignments with braces":    strings.Repeat("a={1..60} ", 6000) + "ls",
		"braces of many commands":    strings.Repeat("ls {1..60};", 5000),
		"read differently":           strings.Repeat("ls; [[ a ]];", 250),
		"ifs":                        strings.Repeat("if ", 21000) + "ls",
		"whiles":                     strings.Repeat("while ", 10000) + "ls",
		"negations":                  strings.Repeat("! ", 32000) + "ls",
		"negated tests":              "[[ " + strings.Repeat("! ", 32000) + "a ]]; ls",
		"times":                      strings.Repeat("time ", 12000) + "ls",
		"functions":                  strings.Repeat("f()", 20000) + "ls; x",
		"pipes":                      strings.Repeat("ls|", 21000) + "ls",
		"minus":                      "ls $((" + strings.Repeat("- ", 32000) + "1)); x",
		"backquotes":                 strings.Repeat("`", 60000),
		"cases":                      strings.Repeat("case a in a) ", 4000),
		"here documents":             strings.Repeat("cat <<E;", 8000) + "\n" + strings.Repeat("E\n", 100),
		"comments":                   strings.Repeat("#;\n", 20000),
	} {
		parsed := shellline.Parser{}.ParseCommand(line)
		words, bytes := 0, 0
		for _, p := range parsed.Parts {
			words += len(p.Words) + len(p.Writes) + len(p.Reads)
			for _, list := range [][]acphost.CommandWord{p.Words, p.Writes, p.Reads} {
				for _, w := range list {
					bytes += len(w.Text)
				}
			}
		}
		if len(parsed.Parts) > 512 || words > 4096 || bytes > 256<<10 {
			t.Errorf("%s: %d parts, %d words, %d bytes, unsure %q", name, len(parsed.Parts), words, bytes, parsed.Unsure)
		}
		if d := p.Decide(t.Context(), request(line)); d.Effect == acphost.EffectAllow {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
