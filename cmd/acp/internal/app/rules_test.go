package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// TestAddRule: a rule that the user writes counts at once and, where it is written to a file, in the
// next program, too.
func TestAddRule(t *testing.T) {
	const rule = "command:go test *"
	decides := func(a *App) acphost.Effect {
		t.Helper()
		p, err := a.Policy()
		if err != nil {
			t.Fatal(err)
		}
		return p.Decide(t.Context(), acphost.Request{Kind: "execute", Command: "go test ./...", Options: []acpv2.PermissionOption{
			{OptionID: "y", Kind: acpv2.PermissionOptionKindAllowOnce}, {OptionID: "n", Kind: acpv2.PermissionOptionKindRejectOnce},
		}}).Effect
	}
	for _, tc := range []struct {
		name   string
		scope  RuleScope
		before string // in the project's file, which the user does not trust
		said   string
		later  acphost.Effect
	}{
		{"now", RuleNow, "", "", acphost.EffectDeny},
		{"project", RuleProject, "", "", acphost.EffectAllow},
		{"user", RuleUser, "", "", acphost.EffectAllow},
		{"not trusted", RuleProject, "[permissions]\nallow = [\"read\"] # mine\n", "do not trust", acphost.EffectDeny},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, _ := testApp(t)
			file := filepath.Join(a.Cwd, ".acp.toml")
			if tc.before != "" {
				writeFile(t, file, tc.before)
			}
			if got := decides(a); got != acphost.EffectDeny {
				t.Fatal(got)
			}
			for range 2 { // the second changes nothing
				said, err := a.AddRule(acphost.EffectAllow, rule, tc.scope)
				if err != nil || !strings.Contains(said, tc.said) || (said == "") != (tc.said == "") {
					t.Fatalf("said %q, %v", said, err)
				}
			}
			if got := decides(a); got != acphost.EffectAllow {
				t.Errorf("now: %s", got)
			}
			if got := decides(again(t, a)); got != tc.later {
				t.Errorf("later: %s", got)
			}
			if name, _ := a.RuleFile(tc.scope); name != "" {
				data, err := os.ReadFile(name)
				if err != nil || strings.Count(string(data), rule) != 1 || tc.before != "" && !strings.Contains(string(data), "# mine") {
					t.Errorf("%v, the file:\n%s", err, data)
				}
			}
		})
	}
	a, _ := testApp(t)
	if _, err := a.AddRule(acphost.EffectAllow, "comand:x", RuleUser); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), `did you mean "command:"`) {
		t.Errorf("a bad rule: %v", err)
	}
	if name, _ := a.RuleFile(RuleUser); name != "" {
		if _, err := os.Stat(name); err == nil {
			t.Error("a bad rule is written")
		}
	}
}
