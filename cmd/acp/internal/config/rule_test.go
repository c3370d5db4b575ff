package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

func TestParseRule(t *testing.T) {
	for _, tc := range []struct {
		in     string
		want   acphost.Rule
		format string // "" is in
	}{
		{"*", acphost.Rule{}, ""},
		{"read", acphost.Rule{Kinds: []string{"read"}}, "kind:read"},
		{"kind:read,search", acphost.Rule{Kinds: []string{"read", "search"}}, ""},
		{"read,search path:src/**", acphost.Rule{Kinds: []string{"read", "search"}, Paths: []string{"src/**"}}, "kind:read,search; path:src/**"},
		{"path:./** path:~/x", acphost.Rule{Paths: []string{"./**", "~/x"}}, "path:./**; path:~/x"},
		{"path:\"my dir/**\"", acphost.Rule{Paths: []string{"my dir/**"}}, ""},
		{"path:{a,b}/*", acphost.Rule{Paths: []string{"{a,b}/*"}}, ""},
		{"command:go test *", acphost.Rule{Commands: []string{"go test *"}}, ""},
		{" command: go test *  ; execute", acphost.Rule{Commands: []string{"go test *"}, Kinds: []string{"execute"}}, "kind:execute; command:go test *"},
		{"command:go test *; command:go vet *", acphost.Rule{Commands: []string{"go test *", "go vet *"}}, ""},
		{`command:"make; make install"`, acphost.Rule{Commands: []string{"make; make install"}}, ""},
		{"command:echo a, b: c", acphost.Rule{Commands: []string{"echo a, b: c"}}, ""},
		{"regexp:go (test|vet)( .*)?", acphost.Rule{CommandRegexps: []string{"go (test|vet)( .*)?"}}, ""},
		{"cwd:/home/me/**", acphost.Rule{Cwd: []string{"/home/me/**"}}, ""},
		{"server:github/*,jira", acphost.Rule{Servers: []string{"github/*", "jira"}}, ""},
		{`server:"a,b"`, acphost.Rule{Servers: []string{"a,b"}}, ""},
		{"edit always", acphost.Rule{Kinds: []string{"edit"}, AllowAlways: true}, "kind:edit; always"},
		{"* always", acphost.Rule{AllowAlways: true}, "*; always"},
		{"kind:_mine", acphost.Rule{Kinds: []string{"_mine"}}, ""},
	} {
		got, err := ParseRule(tc.in)
		if err != nil {
			t.Errorf("%q: %v", tc.in, err)
			continue
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%q: %s", tc.in, d)
		}
		if tc.format == "" {
			tc.format = tc.in
		}
		if f := FormatRule(got); f != tc.format {
			t.Errorf("%q is written as %q, want %q", tc.in, f, tc.format)
		}
	}
}

func TestParseRuleMistakes(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "the rule is empty",
		" ; ":                      "the rule is empty",
		"always":                   "the rule is empty",
		"* read":                   "stands alone",
		"raed":                     `"raed" is no kind of a tool`,
		"go test":                  `"go" is no kind of a tool and no condition of a rule; a command is written as "command:go"`,
		"kind:raed":                `"raed" is not a kind of the protocol`,
		"kind:a,,b":                "an entry is empty",
		"path:":                    "path: has no value",
		"path: x":                  "path: has no value",
		"commnd:ls":                `did you mean "command:"?`,
		"xyzzyplugh:ls":            "there are kind, path, command, regexp, cwd, server",
		`command:"ls`:              "a quote is not closed",
		`command:"ls"x`:            "follows a quote",
		"regexp:(":                 "error parsing regexp",
		"cwd:relative":             "is not absolute",
		strings.Repeat("x", 1<<17): "longer than",
	} {
		_, err := ParseRule(in)
		if err == nil || !strings.Contains(err.Error(), want) || err != nil && strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want %s", in, err, want)
		}
	}
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"*", "read path:src/**", `command:"a; b"; always`, "server:a/*,b", "regexp:x", "kind:_x cwd:/a", "command:\"\\u00e9\\x00\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRule(s)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the message has several lines: %q", err)
			}
			return
		}
		text := FormatRule(r)
		again, err := ParseRule(text)
		if err != nil {
			t.Fatalf("%q is written as %q: %v", s, text, err)
		}
		if d := cmp.Diff(r, again); d != "" {
			t.Errorf("%q is written as %q: %s", s, text, d)
		}
	})
}

var options = []acpv2.PermissionOption{
	{OptionID: "yes", Name: "Yes", Kind: acpv2.PermissionOptionKindAllowOnce},
	{OptionID: "no", Name: "No", Kind: acpv2.PermissionOptionKindRejectOnce},
}

func TestSuggestRule(t *testing.T) {
	cwd, _ := filepath.Abs("/work dir")
	for _, tc := range []struct {
		name string
		req  acphost.Request
		want string
	}{
		{"command", acphost.Request{Kind: "execute", Command: "go test ./..."}, "command:go test ./..."},
		{"command for a shell", acphost.Request{Kind: "execute", Command: "a | b; c"}, `command:"a | b; c"`},
		{"command with a star", acphost.Request{Kind: "execute", Command: "rm *"}, "command:rm *"},
		{"command of another kind", acphost.Request{Kind: "other", Command: "ls"}, "kind:other; command:ls"},
		{"unknown command", acphost.Request{Kind: "execute", CommandUnknown: true}, "kind:execute"},
		{"no command", acphost.Request{Kind: "execute"}, "kind:execute"},
		{"file", acphost.Request{Kind: "edit", Cwd: cwd, Paths: []string{filepath.Join(cwd, "a b", "[x].go")}}, `kind:edit; path:"./a b/\\[x\\].go"`},
		{"file elsewhere", acphost.Request{Kind: "read", Cwd: cwd, Paths: []string{"/etc/passwd"}}, "kind:read; path:/etc/passwd"},
		{"no file", acphost.Request{Kind: "edit"}, "kind:edit"},
		{"mcp", acphost.Request{ToolName: "mcp__github__create", Title: "x"}, "server:github/create"},
		{"nothing", acphost.Request{Title: "x"}, "kind:other"},
		{"unknown kind", acphost.Request{Kind: "_dance"}, "kind:_dance"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.req.Options = options
			got := SuggestRule(tc.req)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if !RuleAllows(got, tc.req) {
				t.Errorf("%q does not allow it", got)
			}
		})
	}
	if got := SuggestRule(acphost.Request{Kind: "read"}); got != "" {
		t.Errorf("without options: %q", got)
	}
	always := acphost.Request{Kind: "execute", Command: "ls", Options: []acpv2.PermissionOption{{OptionID: "a", Kind: acpv2.PermissionOptionKindAllowAlways}}}
	if got := SuggestRule(always); got != "command:ls; always" {
		t.Errorf("with always only: %q", got)
	}
}

func TestRulesPolicy(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "p.json")
	text := `{"version": 1, "default": "allow", "rules": [{"effect": "ask", "kinds": ["fetch"]}, {"name": "tests", "effect": "allow", "commands": ["go *"]}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := Permissions{Policy: "p.json", Deny: []string{"command:go run *"}, Allow: []string{"fetch", "command:go run *"}, Default: "deny"}
	policy, err := ReadRules(p, dir).Policy()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		req  acphost.Request
		want acphost.Effect
		rule string
	}{
		{acphost.Request{Kind: "execute", Command: "go run ."}, acphost.EffectDeny, "deny command:go run *"},
		{acphost.Request{Kind: "execute", Command: "go test"}, acphost.EffectAllow, "tests"},
		{acphost.Request{Kind: "fetch"}, acphost.EffectDeny, "p.json rule 1"}, // asked, and there is nobody
		{acphost.Request{Kind: "read"}, acphost.EffectDeny, ""},
	} {
		tc.req.Options = options
		d := policy.Decide(context.Background(), tc.req)
		if d.Effect != tc.want || d.Rule != tc.rule {
			t.Errorf("%+v: %s by rule %q, want %s by %q", tc.req, d.Effect, d.Rule, tc.want, tc.rule)
		}
	}
	p.Default = ""
	if policy, err = ReadRules(p, dir).Policy(); err != nil || policy.Default != acphost.EffectAllow {
		t.Errorf("the file's default: %v, %v", policy, err)
	}
	if policy, err = ReadRules(Permissions{}, dir).Policy(); err != nil || policy.Default != "" {
		t.Errorf("no settings: %v, %v", policy, err)
	}
	for _, tc := range []struct {
		p    Permissions
		want string
	}{
		{Permissions{Policy: "gone.json"}, "gone.json"},
		{Permissions{Allow: []string{"x"}}, "permissions.allow: "},
		{Permissions{Default: "x"}, `permissions.default: "x"`},
		{Permissions{Policy: "bad.json"}, "bad.json:1:"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "bad.json"), []byte(`{"version": 2}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRules(tc.p, dir).Policy(); err == nil || !strings.Contains(err.Error(), tc.want) || exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%+v: %v (status %d)", tc.p, err, exitcode.Of(err))
		}
	}
}
