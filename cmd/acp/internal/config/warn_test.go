package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/config"
)

// TestWarnings: a pattern that can never match is named, with the reason, and no other is.
func TestWarnings(t *testing.T) {
	for rule, want := range map[string]string{
		"command:python -c *":             "runs text",
		"command:cd sub && make *":        "several commands",
		`command:"make; make *"`:          "several commands",
		"command:go test * > out.txt":     "rules about paths",
		"command:go test * -exec sh":      "-exec",
		"command:tmux *":                  "runs another program",
		"command:$GO test *":              "depends on the shell",
		"path:/etc/":                      "end with a slash",
		"path:src/":                       "src/**",
		"path:/a//b":                      "empty names",
		"path:../x/**":                    "..",
		"cwd:/home/me/":                   "end with a slash",
		"read path:a/; command:ls *":      "end with a slash",
		"command:sh -c *":                 "",
		"command:python -c 'print(1)'":    "",
		"command:cd sub && make":          "",
		"command:go test *":               "",
		"command:go *":                    "",
		"command:*":                       "",
		"command:* --help":                "",
		"command:psql *":                  "",
		"command:python *":                "",
		"command:timeout 60 make *":       "",
		"command:docker exec web *":       "",
		"command:git -c core.pager=cat *": "",
		"command:FOO=1 make *":            "",
		"command:ls ?":                    "",
		"regexp:a && b":                   "",
		"path:/":                          "",
		"path:/**":                        "",
		"path:src/**":                     "",
		"path:./src/*.go":                 "",
		"path:~/x/**":                     "",
		"path:..x":                        "",
		"*":                               "",
	} {
		got := config.ReadRules(config.Permissions{Allow: []string{rule}}, "").Warnings()
		if (len(got) > 0) != (want != "") || want != "" && (!strings.Contains(got[0], want) || !strings.HasPrefix(got[0], "permissions.allow: ")) {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
	// A rule that denies is also compared with the text of the whole line.
	if got := config.ReadRules(config.Permissions{Deny: []string{"command:python -c *", "command:a && b *", "path:/etc/"}}, "").Warnings(); len(got) != 1 || !strings.HasPrefix(got[0], "permissions.deny: ") {
		t.Errorf("%q", got)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.json"), []byte(`{"version":1,"rules":[{"effect":"allow","commands":["python -c *"]},{"name":"etc","effect":"deny","paths":["/etc/"]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := config.ReadRules(config.Permissions{Policy: "p.json"}, dir).Warnings()
	if len(got) != 2 || !strings.HasPrefix(got[0], "p.json rule 1: ") || !strings.HasPrefix(got[1], "etc: ") {
		t.Errorf("%q", got)
	}
	// A rule that cannot be read does not hide the warnings about others.
	rules := config.ReadRules(config.Permissions{Policy: "none.json", Allow: []string{"nonsense:x", "path:/etc/"}}, dir)
	if got := rules.Warnings(); len(got) != 1 {
		t.Errorf("%q", got)
	}
	if _, err := rules.Policy(); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("a policy of rules that cannot be read: %v", err)
	}
	many := make([]string, 50)
	for i := range many {
		many[i] = "path:a/"
	}
	if got := config.ReadRules(config.Permissions{Deny: many}, "").Warnings(); len(got) != 20 {
		t.Errorf("%d warnings", len(got))
	}
}
