package acphost

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParsePolicy(t *testing.T) {
	p := parse(t, `{"version": 1, "default": "deny", "askTimeout": "90s", "remember": "forever", "maxRemembered": 7, "rules": [
		{"name": "n", "effect": "allow", "kinds": ["read"], "paths": ["/a"], "cwd": ["/b"], "commands": ["c"],
		 "commandRegexps": ["d"], "servers": ["e"], "allowAlways": true},
		{"effect": "ask"}]}`)
	if p.Default != EffectDeny || p.AskTimeout != 90*time.Second || p.Remember != RememberForever || p.MaxRemembered != 7 {
		t.Errorf("%s %v %s %d", p.Default, p.AskTimeout, p.Remember, p.MaxRemembered)
	}
	want := []Rule{
		{Name: "n", Effect: EffectAllow, Kinds: []string{"read"}, Paths: []string{"/a"}, Cwd: []string{"/b"}, Commands: []string{"c"},
			CommandRegexps: []string{"d"}, Servers: []string{"e"}, AllowAlways: true},
		{Name: "rule 2", Effect: EffectAsk},
	}
	var got []Rule
	for _, r := range p.rules {
		got = append(got, r.Rule)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// A rule is written as it is read.
	data, err := json.Marshal(map[string]any{"version": 1, "rules": want})
	if err != nil {
		t.Fatal(err)
	}
	again := parse(t, string(data))
	if diff := cmp.Diff(want[0], again.rules[0].Rule); diff != "" {
		t.Error(diff)
	}
	parse(t, " {\"version\":1}\n")
}

func TestParseErrors(t *testing.T) {
	rule := func(members string) string { return "{\"version\": 1,\n\"rules\": [{" + members + "}]}" }
	for _, tt := range []struct {
		text, want string
	}{
		{``, `1:1: unexpected end`},
		{`{"version": 1`, `1:14: unexpected end`},
		{"{\n\t\"version\": x}", `2:13: invalid character 'x'`},
		{`[]`, `1:1: is not an object`},
		{`{}`, `1:1: the member "version" is missing`},
		{`{"version": 2}`, `1:13: the version is not 1`},
		{`{"version": 0}`, `1:13: the version is not 1`},
		{`{"version": 1.5}`, `1:13: is not an integer`},
		{`{"version": "1"}`, `1:13: is not an integer`},
		{`{"version": 1} {}`, `1:16: there is more`},
		{`{"version": 1} x`, `1:16: there is more`},
		{"{\"version\": 1,\n  \"rulez\": []}", `2:3: unknown member "rulez"`},
		{`{"version": 1, "Rules": []}`, `1:16: unknown member "Rules"`},
		{`{"version": 1, "rules": [], "rules": []}`, `1:29: the member "rules" is there twice`},
		{`{"version": 1, "rules": {}}`, `1:25: is not a list`},
		{`{"version": 1, "rules": [1]}`, `1:26: is not an object`},
		{`{"version": 1, "default": "yes"}`, `1:27: "yes" is none of allow, deny, ask`},
		{`{"version": 1, "default": null}`, `1:27: is not a string`},
		{`{"version": 1, "askTimeout": 5}`, `1:30: is not a string`},
		{`{"version": 1, "askTimeout": "5"}`, `1:30: is not a time`},
		{`{"version": 1, "askTimeout": "-5s"}`, `1:30: is not a time`},
		{`{"version": 1, "remember": "always"}`, `1:28: "always" is none of`},
		{`{"version": 1, "maxRemembered": 0}`, `1:33: is not a positive number`},
		{`{"version": 1, "rules": [[[[[[[[[[]]]]]]]]]]}`, `1:32: is nested too deeply`},
		{rule(`"name": "x"`), `2:11: x: effect: "" is none of`},
		{rule(`"effect": "maybe"`), `2:22: rule 1: effect: "maybe" is none of`},
		{rule(`"effect": "deny", "allowAlways": true`), `2:45: rule 1: allowAlways: the rule does not allow`},
		{rule(`"effect": "allow", "allowAlways": 1`), `2:46: is not true or false`},
		{rule(`"effect": "allow", "kinds": ["read", "exceute"]`), `2:49: rule 1: kinds[1]: "exceute" is not a kind`},
		{rule(`"effect": "allow", "kinds": "read"`), `2:40: is not a list`},
		{rule(`"effect": "allow", "kinds": [3]`), `2:41: is not a string`},
		{rule(`"effect": "allow", "kinds": []`), `2:40: rule 1: kinds: is an empty list`},
		{rule(`"effect": "allow", "paths": [""]`), `2:41: rule 1: paths[0]: is empty`},
		{rule(`"effect": "allow", "paths": ["[a"]`), `2:41: rule 1: paths[0]: [ without ]`},
		{rule(`"effect": "allow", "paths": ["[]"]`), `rule 1: paths[0]: […]`},
		{rule(`"effect": "allow", "paths": ["[z-a]"]`), `rule 1: paths[0]: error parsing regexp`},
		{rule(`"effect": "allow", "paths": ["{a"]`), `rule 1: paths[0]: { without }`},
		{rule(`"effect": "allow", "paths": ["{a,{b}}"]`), `rule 1: paths[0]: { within {`},
		{rule(`"effect": "allow", "paths": ["a\\"]`), `rule 1: paths[0]: \ at the end`},
		{rule(`"effect": "allow", "cwd": ["src"]`), `2:39: rule 1: cwd[0]: is not absolute`},
		{rule(`"effect": "allow", "commands": ["ls", "a\\"]`), `2:50: rule 1: commands[1]: \ at the end`},
		{rule(`"effect": "allow", "commandRegexps": ["a)|(b"]`), `2:50: rule 1: commandRegexps[0]: error parsing regexp`},
		{rule(`"effect": "allow", "servers": [""]`), `2:43: rule 1: servers[0]: is empty`},
		{"{\"version\": 1, \"default\": \"\xff\"}", `1:28: is not valid UTF-8`},
		{strings.Repeat(" ", maxPolicyText+1), `has more than 1048576 bytes`},
	} {
		p, err := ParsePolicy([]byte(tt.text))
		var e *ParseError
		if p != nil || !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) || errors.Unwrap(err) == nil {
			t.Errorf("%.80s: %v, want %s", tt.text, err, tt.want)
		}
	}
	if _, err := NewPolicy(Rule{Effect: EffectAllow, Commands: []string{}}); err == nil || !strings.Contains(err.Error(), "rule 1: commands: is an empty list") {
		t.Error(err)
	}
	if p, err := NewPolicy(Rule{Effect: EffectAllow}); err != nil || p.Decide(t.Context(), running("ls; rm x")).Effect != EffectAllow {
		t.Error("a rule without conditions does not match", err)
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add(rules)
	f.Add(`{"version": 1, "rules": [{"effect": "allow", "paths": ["[!a-z]{a,b}\\*/**"]}]}`)
	f.Add(`{"version": 1, "rules": [{"effect": "deny", "commandRegexps": ["(?i)a|b"]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePolicy([]byte(text))
		var e *ParseError
		if (p == nil) != errors.As(err, &e) {
			t.Fatal(p, err)
		}
		if err != nil {
			if e.Line < 1 || e.Column < 1 || e.Line > 1+strings.Count(text, "\n") {
				t.Fatalf("%v", err)
			}
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatal("it is not JSON")
		}
		for _, s := range shapes() {
			d := p.Decide(t.Context(), s.req)
			if d.Effect == EffectAllow && (d.Option == nil || !strings.HasPrefix(string(d.Option.Kind), "allow_")) {
				t.Fatalf("%s: %+v", s.name, d)
			}
		}
	})
}
