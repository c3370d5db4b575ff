package acphost

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// asking is a request about a tool call as a client receives it.
func asking(kind acp.ToolKind, input string, paths ...string) *acp.PermissionRequest {
	call := acp.ToolCallUpdate{ToolCallID: "c", RawInput: json.RawMessage(input)}
	if kind != "" {
		call.Kind = acp.Set(kind)
	}
	var locations []acp.ToolCallLocation
	for _, p := range paths {
		locations = append(locations, acp.ToolCallLocation{Path: p})
	}
	call.Locations = acp.Set(locations)
	return &acp.PermissionRequest{Title: "Tool", Options: usual, Subject: &acp.ToolCallPermissionSubject{ToolCall: call}}
}

// TestCommandOf holds what is taken for the command, which must be what the
// agent would run or nothing.
func TestCommandOf(t *testing.T) {
	const unknown = "unknown"
	for _, tt := range []struct {
		kind         acp.ToolKind
		input        string
		command, cwd string // command may be unknown
	}{
		{"execute", `{"command":"ls"}`, "ls", ""},
		{"execute", `{"command":"ls","cwd":"/w","description":"list","timeout":5}`, "ls", "/w"},
		{"execute", `{"\u0063ommand":"ls","cwd":null}`, "ls", ""},
		{"execute", `{"command":"ls","cwd":"w"}`, "ls", ""}, // nobody knows where that is
		{"", `{"command":"ls"}`, "ls", ""},
		{"other", `{"command":"ls"}`, "ls", ""},

		{"execute", ``, unknown, ""},
		{"execute", `null`, unknown, ""},
		{"execute", `"ls"`, unknown, ""},
		{"execute", `["ls"]`, unknown, ""},
		{"execute", `{}`, unknown, ""},
		{"execute", `{"command":null}`, unknown, ""},
		{"execute", `{"command":" "}`, unknown, ""},
		{"execute", `{"command":["ls"]}`, "ls", ""},
		{"execute", `{"command":"ls","cwd":["/w"]}`, unknown, ""},
		{"execute", `{"command":"rm x","Command":"ls"}`, unknown, ""},
		{"execute", `{"Command":"ls"}`, unknown, ""},
		{"execute", `{"command":"rm x","command":"ls"}`, unknown, ""},
		{"execute", `{"command":"rm x","\u0063ommand":"ls"}`, unknown, ""},
		{"execute", `{"command":"ls","cwd":"/w","cwd":"/x"}`, unknown, ""},
		{"execute", `{"command":"git","args":["push"]}`, "git push", ""},
		{"execute", `{"command":"make","env":{"SHELL":"/x/sh"}}`, unknown, ""},
		{"execute", `{"command":"make","cwd":"/w","workdir":"/x"}`, unknown, ""},
		{"execute", `{"command":"ls","":0}`, "ls", ""},
		{"execute", `{"command":"ls \ud800"}`, unknown, ""},
		{"execute", "{\"command\":\"ls \xff\"}", unknown, ""},
		{"execute", `{"command":"ls"`, unknown, ""},
		{"execute", `{"command":"ls",`, unknown, ""},
		{"execute", `{"command":"ls"` + "\n", unknown, ""},
		{"", `{"command":"git","args":["push"]}`, "git push", ""},
		{"", `{"command":["rm"]}`, "rm", ""},
		{"other", `{"cmd":"rm"}`, "rm", ""},
		{"other", `{"COMMAND":"rm"}`, unknown, ""},

		{"", ``, "", ""},
		{"other", `{"path":"/w"}`, "", ""},
		{"edit", `{"command":"insert","path":"/w"}`, "", ""},
	} {
		of := asking(tt.kind, tt.input)
		r := RequestOf(of)
		if r.Of != of {
			t.Errorf("%s: the request is not kept", tt.input)
		}
		r.Of = nil
		want := Request{Title: "Tool", ToolCallID: "c", Kind: string(tt.kind), RawInput: json.RawMessage(tt.input), Options: usual, Cwd: tt.cwd}
		if tt.command == unknown {
			want.CommandUnknown, r.Shown = true, "" // see TestShows
		} else {
			want.Command = tt.command
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("%s %s: %s", tt.kind, tt.input, diff)
		}
	}
}

// FuzzCommandOf holds that a command that is taken is what every reader of the
// input finds.
func FuzzCommandOf(f *testing.F) {
	for _, seed := range []string{`{"command":"ls"}`, `{"command":"a","Command":"b"}`, `{"command":"a","command":"b"}`, `{"command":"a"}}`, `[{`, `{"a":{"command":"b"}}`} {
		f.Add("execute", seed)
	}
	f.Fuzz(func(t *testing.T, kind, input string) {
		r := RequestOf(asking(acp.ToolKind(kind), input))
		if r.Command == "" {
			return
		}
		var members map[string]any
		if r.CommandUnknown || json.Unmarshal([]byte(input), &members) != nil {
			t.Fatalf("%q is taken from %q", r.Command, input)
		}
		if line, ok := members["command"].(string); ok && members["args"] == nil && line != r.Command {
			t.Fatalf("%q is taken from %q", r.Command, input)
		}
	})
}

// TestDoubt holds what rules say about requests that do not say enough.
func TestDoubt(t *testing.T) {
	allow, deny, ask := EffectAllow, EffectDeny, EffectAsk
	list := `{"command":{"rm":["-rf","/"]}}`
	for _, tt := range []struct {
		name  string
		req   *acp.PermissionRequest
		rules []Rule
		def   Effect
		want  Effect
		rule  string
	}{
		{"paths do not allow", asking("execute", list, "/w/a"), []Rule{{Effect: allow, Paths: []string{"/w/**"}}}, "", ask, ""},
		{"nor with the kind", asking("execute", list, "/w/a"), []Rule{{Effect: allow, Kinds: []string{"execute"}, Paths: []string{"/w/**"}}}, "", ask, ""},
		{"nor without a kind", asking("", list, "/w/a"), []Rule{{Effect: allow, Paths: []string{"/w/**"}}}, "", ask, ""},
		{"nor a certain one", asking("", `{"command":"rm"}`, "/w/a"), []Rule{{Effect: allow, Paths: []string{"/w/**"}}}, "", ask, ""},
		{"commands do not allow", asking("execute", list), []Rule{{Effect: allow, Commands: []string{"*"}}}, "", ask, ""},
		{"arguments", asking("execute", `{"command":"git","args":["push"]}`), []Rule{{Effect: allow, Commands: []string{"git"}}}, "", ask, ""},
		{"another place", asking("execute", `{"command":"make","workdir":"/x","cwd":"/w"}`), []Rule{{Effect: allow, Cwd: []string{"/w"}, Commands: []string{"make"}}}, "", ask, ""},
		{"a place that is relative", asking("execute", `{"command":"make","cwd":"w"}`), []Rule{{Effect: allow, Cwd: []string{"/w"}, Commands: []string{"make"}}}, "", ask, ""},
		{"of another kind", asking("", `{"command":"make"}`), []Rule{{Effect: allow, Commands: []string{"make"}}}, "", ask, ""},
		{"of another kind, named", asking("", `{"command":"make"}`), []Rule{{Effect: allow, Kinds: []string{"other"}, Commands: []string{"make"}}}, "", allow, "rule 1"},
		{"of a kind that is named alone", asking("", `{"command":"make"}`), []Rule{{Effect: allow, Kinds: []string{"other"}}}, "", ask, ""},
		{"of both kinds", asking("", list), []Rule{{Effect: allow, Kinds: []string{"other", "execute"}}}, "", allow, "rule 1"},
		{"the directory does not allow", asking("execute", `{"command":"rm","cwd":"/w"}`), []Rule{{Effect: allow, Cwd: []string{"/w"}}}, "", ask, ""},
		{"the kind allows", asking("execute", list), []Rule{{Effect: allow, Kinds: []string{"execute"}}}, "", allow, "rule 1"},
		{"everything allows", asking("execute", list), []Rule{{Effect: allow}}, "", allow, "rule 1"},

		{"a denial that may be", asking("execute", list), []Rule{{Effect: deny, Commands: []string{"rm *"}}, {Effect: allow}}, "", ask, "rule 1"},
		{"by default too", asking("execute", list), []Rule{{Effect: deny, Commands: []string{"rm *"}}}, allow, ask, "rule 1"},
		{"a regexp", asking("execute", list), []Rule{{Effect: deny, CommandRegexps: []string{"rm"}}, {Effect: allow}}, "", ask, "rule 1"},
		{"a question that may be", asking("execute", list), []Rule{{Effect: ask, Commands: []string{"rm *"}}, {Effect: allow}}, "", ask, "rule 1"},
		{"the first counts", asking("execute", list), []Rule{{Effect: deny, Commands: []string{"x"}}, {Effect: ask, Commands: []string{"y"}}, {Effect: allow}}, "", ask, "rule 1"},
		{"not elsewhere", asking("execute", list), []Rule{{Effect: deny, Cwd: []string{"/x"}, Commands: []string{"rm *"}}, {Effect: allow}}, "", allow, "rule 2"},
		{"after an allowance", asking("execute", list), []Rule{{Effect: allow, Kinds: []string{"execute"}}, {Effect: deny, Commands: []string{"rm *"}}}, "", allow, "rule 1"},
		{"denied for certain", asking("execute", list), []Rule{{Effect: ask, Commands: []string{"rm *"}}, {Effect: deny, Kinds: []string{"execute"}}}, "", deny, "rule 2"},
		{"denied by default", asking("execute", list), []Rule{{Effect: ask, Commands: []string{"rm *"}}}, deny, deny, ""},
		{"without a kind", asking("", `{"command":"rm -rf /"}`), []Rule{{Effect: deny, Commands: []string{"rm *"}}, {Effect: allow}}, "", deny, "rule 1"},
		{"denied by its kind", asking("other", `{"command":"ls"}`), []Rule{{Effect: deny, Kinds: []string{"execute"}}, {Effect: allow}}, "", deny, "rule 1"},
		{"nothing is run", asking("other", `{"path":"ls"}`), []Rule{{Effect: deny, Commands: []string{"*"}}, {Effect: allow}}, "", allow, "rule 2"},

		{"no files, reading", asking("read", ""), []Rule{{Effect: deny, Paths: []string{"**/.env"}}, {Effect: allow}}, "", ask, "rule 1"},
		{"no files, moving", asking("move", ""), []Rule{{Effect: ask, Paths: []string{"**/.env"}}}, allow, ask, "rule 1"},
		{"a relative file", asking("delete", "", "passwd"), []Rule{{Effect: deny, Paths: []string{"/etc/**"}}}, allow, ask, "rule 1"},
		{"one of two is nowhere", asking("edit", "", "/w/a", ""), []Rule{{Effect: deny, Paths: []string{"/etc/**"}}}, allow, ask, "rule 1"},
		{"a file", asking("edit", "", "/w/a"), []Rule{{Effect: deny, Paths: []string{"/etc/**"}}}, allow, allow, ""},
		{"another kind", asking("edit", ""), []Rule{{Effect: deny, Kinds: []string{"delete"}, Paths: []string{"/etc/**"}}}, allow, allow, ""},
		{"no files, thinking", asking("think", ""), []Rule{{Effect: deny, Paths: []string{"/etc/**"}}}, allow, allow, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := NewPolicy(tt.rules...)
			if err != nil {
				t.Fatal(err)
			}
			p.Default = tt.def
			asked := false
			p.Ask = func(context.Context, Request) (acpv2.PermissionOptionID, error) { asked = true; return "3", nil }
			d := p.Decide(t.Context(), RequestOf(tt.req))
			got := d.Effect
			if asked {
				got = EffectAsk
			}
			if got != tt.want || d.Rule != tt.rule {
				t.Errorf("%s by %q, want %s by %q", got, d.Rule, tt.want, tt.rule)
			}
		})
	}
}

// TestAlwaysIsNarrow holds that an answer is not given to what only looks like
// the request it was given to.
func TestAlwaysIsNarrow(t *testing.T) {
	for _, tt := range []struct {
		name        string
		first, then *acp.PermissionRequest
		same        bool
	}{
		{"a list", asking("execute", `{"command":["ls"]}`, "/w"), asking("execute", `{"command":["rm"]}`, "/w"), false},
		{"arguments", asking("execute", `{"command":"npm","args":["test"]}`), asking("execute", `{"command":"npm","args":["publish"]}`), false},
		{"the same list", asking("execute", `{"command":["ls"]}`), asking("execute", `{"command": ["ls"]}`), true},
		{"a mode", asking("", `{"path":"/etc","mode":"list"}`, "/etc"), asking("", `{"path":"/etc","mode":"delete"}`, "/etc"), false},
		{"a command", asking("execute", `{"command":"ls","description":"a"}`), asking("execute", `{"command":"ls","description":"b"}`), true},
		{"a command of another kind", asking("other", `{"command":"ls","timeout":1}`), asking("other", `{"command":"ls","timeout":2}`), false},
		{"an edit", asking("edit", `{"text":"a"}`, "/w/a"), asking("edit", `{"text":"b"}`, "/w/a"), true},
		{"an edit of something", asking("edit", `{"text":"a"}`), asking("edit", `{"text":"b"}`), false},
		{"a move", asking("move", `{"to":"/a"}`, "/w/a"), asking("move", `{"to":"/b"}`, "/w/a"), false},
	} {
		p := &Policy{Ask: func(_ context.Context, r Request) (acpv2.PermissionOptionID, error) { return r.AllowAlways(), nil }}
		first, then := RequestOf(tt.first), RequestOf(tt.then)
		first.Session, then.Session = "s", "s"
		p.Decide(t.Context(), first)
		if d := p.Decide(t.Context(), then); (d.By == ByMemory) != tt.same {
			t.Errorf("%s: %+v", tt.name, d)
		}
	}
}

// TestAlways remembers where the agent offers no such option.
func TestAlways(t *testing.T) {
	for _, tt := range []struct {
		effect Effect
		scope  Scope
		edit   func(*Request)
		want   Source
	}{
		{EffectAllow, "", nil, ByMemory},
		{EffectDeny, "", nil, ByMemory},
		{EffectAsk, "", nil, ByUser},
		{EffectAllow, RememberNever, nil, ByUser},
		{EffectAllow, "", func(r *Request) { r.Session = "" }, ByUser},
		{EffectAllow, RememberForever, func(r *Request) { r.Session = "" }, ByMemory},
		{EffectAllow, "", func(r *Request) { r.Command, r.Kind = "", "" }, ByUser},
	} {
		p := &Policy{Remember: tt.scope}
		p.Ask = func(_ context.Context, r Request) (acpv2.PermissionOptionID, error) {
			p.Always(r, tt.effect)
			return r.AllowAlways(), nil
		}
		req := with(running("uname"), []acpv2.PermissionOption{option("1", "allow_once"), option("3", "reject_once")})
		req.Session = "s"
		if tt.edit != nil {
			tt.edit(&req)
		}
		if d := p.Decide(t.Context(), req); d.By != ByUser || d.Option == nil || d.Option.OptionID != "1" {
			t.Fatalf("%+v: %+v", tt, d)
		}
		d := p.Decide(t.Context(), req)
		if d.By != tt.want || tt.want == ByMemory && d.Effect != tt.effect {
			t.Errorf("%s %s: %+v, want %s", tt.effect, tt.scope, d, tt.want)
		}
	}
}

func TestRequestChoices(t *testing.T) {
	type choice = [4]acpv2.PermissionOptionID // Allow, AllowAlways, Reject, RejectAlways
	for name, tt := range map[string]struct {
		options []acpv2.PermissionOption
		want    choice
	}{
		"usual":    {usual, choice{"1", "2", "3", "4"}},
		"reversed": {reversed, choice{"1", "2", "3", "4"}},
		"always":   {always, choice{"", "2", "", "4"}},
		"yes only": {yesOnly, choice{"1", "1", "", ""}},
		"no only":  {noOnly, choice{"", "", "3", "3"}},
		"strange":  {strange, choice{}},
		"two yes":  {twoYes, choice{"", "", "3", "3"}},
		"two no":   {twoNo, choice{"1", "1", "3", "3"}},
		"same id":  {sameID, choice{"", "", "", "4"}},
		"no id":    {noID, choice{}},
		"two of always": {[]acpv2.PermissionOption{option("1", "allow_once"), option("2", "allow_always"), option("5", "allow_always")},
			choice{"1", "", "", ""}},
		"none": {nil, choice{}},
	} {
		r := Request{Options: tt.options}
		if diff := cmp.Diff(tt.want, choice{r.Allow(), r.AllowAlways(), r.Reject(), r.RejectAlways()}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
