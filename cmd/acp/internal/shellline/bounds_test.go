package shellline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
)

// TestBounds: lines that are large in some way are looked at, and are not allowed by a pattern beyond
// the bounds.
func TestBounds(t *testing.T) {
	rules := []acphost.Rule{{Effect: acphost.EffectAllow, Commands: []string{"ls *", "sudo *", "bash *"}}}
	var deny acphost.Rule
	deny.Effect = acphost.EffectDeny
	for i := range 50 {
		deny.Commands = append(deny.Commands, fmt.Sprintf("forbidden%d *", i))
	}
	p, err := acphost.NewPolicy(append([]acphost.Rule{deny}, rules...)...)
	if err != nil {
		t.Fatal(err)
	}
	p.Commands = shellline.Parser{}
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
	} {
		began := time.Now()
		if d := p.Decide(t.Context(), request(line)); d.Effect == acphost.EffectAllow {
			t.Errorf("%s: %+v", name, d)
		}
		t.Logf("%s: %v", name, time.Since(began))
	}
}
