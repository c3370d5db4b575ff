package acphost

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
)

// TestRemembered holds which requests an answer “always” is given to.
func TestRemembered(t *testing.T) {
	run := running("uname")
	run.Session, run.ToolName, run.Title, run.RawInput = "s", "bash", "Run uname", json.RawMessage(`{"a": 1}`)
	mcp := Request{Session: "s", ToolName: "mcp__x__y", Kind: "other", Title: "y", RawInput: json.RawMessage(`{"a": 1}`), Options: usual}
	bare := Request{Session: "s", Title: "May I?", Options: usual}
	files := Request{Session: "s", Kind: "edit", Paths: []string{"/b", "/a/../a"}, Options: usual}
	change := func(r Request, f func(*Request)) Request { f(&r); return r }
	for _, tt := range []struct {
		name        string
		first, then Request
		scope       Scope
		want        bool
	}{
		{"the same", run, run, "", true},
		{"another title and call", run, change(run, func(r *Request) { r.Title, r.ToolCallID = "Again", "c2" }), "", true},
		{"another command", run, change(run, func(r *Request) { r.Command = "uname -a" }), "", false},
		{"another place", run, change(run, func(r *Request) { r.Cwd = "/x" }), "", false},
		{"another tool", run, change(run, func(r *Request) { r.ToolName = "zsh" }), "", false},
		{"another kind", run, change(run, func(r *Request) { r.Kind = "other" }), "", false},
		{"paths as well", run, change(run, func(r *Request) { r.Paths = []string{"/a"} }), "", false},
		{"another session", run, change(run, func(r *Request) { r.Session = "s2" }), "", false},
		{"another session, for ever", run, change(run, func(r *Request) { r.Session = "s2" }), RememberForever, true},
		{"no session", change(run, func(r *Request) { r.Session = "" }), change(run, func(r *Request) { r.Session = "" }), "", false},
		{"never", run, run, RememberNever, false},
		{"odd scope", run, run, "sometimes", false},
		{"the same input", mcp, change(mcp, func(r *Request) { r.RawInput = json.RawMessage(`{"a":1}`) }), "", true},
		{"another input", mcp, change(mcp, func(r *Request) { r.RawInput = json.RawMessage(`{"a":2}`) }), "", false},
		{"no input", mcp, change(mcp, func(r *Request) { r.RawInput = nil }), "", false},
		{"a title, which does not say what would be done", bare, bare, "", false},
		{"an empty input", change(bare, func(r *Request) { r.RawInput = json.RawMessage(`{}`) }), change(bare, func(r *Request) { r.RawInput = json.RawMessage(`{}`) }), "", false},
		{"the same command under an empty input", change(run, func(r *Request) { r.RawInput = json.RawMessage(`{}`) }),
			change(bare, func(r *Request) { r.RawInput = json.RawMessage(`{}`) }), "", false},
		{"another question", bare, change(bare, func(r *Request) { r.Title = "May I not?" }), "", false},
		{"paths in another order", files, change(files, func(r *Request) { r.Paths = []string{"/a", "/b", "/b"} }), "", true},
		{"one path fewer", files, change(files, func(r *Request) { r.Paths = []string{"/a"} }), "", false},
		{"always only", run, with(run, always), "", true},
		{"no way to say yes", run, with(run, noOnly), "", false},
		{"too long", change(run, func(r *Request) { r.Command = strings.Repeat("x", maxMemoryText) }),
			change(run, func(r *Request) { r.Command = strings.Repeat("x", maxMemoryText) }), "", false},
	} {
		for kind, effect := range map[acpv2.PermissionOptionKind]Effect{"allow_always": EffectAllow, "reject_always": EffectDeny} {
			asked := 0
			p := &Policy{Remember: tt.scope, Ask: func(_ context.Context, req Request) (acpv2.PermissionOptionID, error) {
				asked++
				for _, o := range req.Options {
					if o.Kind == kind {
						return o.OptionID, nil
					}
				}
				return "", nil
			}}
			if d := p.Decide(t.Context(), tt.first); d.Effect != effect || d.By != ByUser {
				t.Fatalf("%s: first %+v", tt.name, d)
			}
			want := tt.want || tt.name == "no way to say yes" && effect == EffectDeny
			d := p.Decide(t.Context(), tt.then)
			if (d.By == ByMemory) != want || want && (d.Effect != effect || asked != 1) || !want && asked != 2 {
				t.Errorf("%s: %s, then %+v after %d questions", tt.name, effect, d, asked)
			}
		}
	}
}

func TestOnceIsNotRemembered(t *testing.T) {
	req := running("uname")
	req.Session = "s"
	for _, id := range []acpv2.PermissionOptionID{"1", "3", ""} {
		p := &Policy{Ask: func(context.Context, Request) (acpv2.PermissionOptionID, error) { return id, nil }}
		p.Decide(t.Context(), req)
		if m := p.Remembered(); len(m) != 0 {
			t.Errorf("option %q is remembered: %+v", id, m)
		}
	}
}

// TestRulesBeforeMemory holds that a rule is not overruled by an old answer, but
// for one that only asks.
func TestRulesBeforeMemory(t *testing.T) {
	p := parse(t, rules)
	for _, command := range []string{"rm x", "ls"} {
		p.Recall(Memory{Effect: EffectAllow, Kind: "execute", Command: command, Cwd: "/w"}, Memory{Effect: EffectDeny, Kind: "execute", Command: command, Cwd: "/w"})
		if d := p.Decide(t.Context(), running(command)); d.By != ByRule {
			t.Errorf("%s: %+v", command, d)
		}
	}
	p.Recall(Memory{Effect: EffectAllow, Kind: "delete", Paths: []string{"/w/a"}, Cwd: "/w"})
	d := p.Decide(t.Context(), Request{Kind: "delete", Paths: []string{"/w/a"}, Cwd: "/w", Options: usual})
	if d.By != ByMemory || d.Effect != EffectAllow || d.Rule != "careful" {
		t.Errorf("%+v", d)
	}
}

func TestMemoryBound(t *testing.T) {
	p := &Policy{MaxRemembered: 3}
	for i := range 5 {
		p.Recall(Memory{Effect: EffectAllow, Command: fmt.Sprint(i), Session: fmt.Sprint(i % 2)})
	}
	p.Recall(Memory{Effect: EffectDeny, Command: "3", Session: "1"}) // replaces
	p.Recall(Memory{Effect: EffectAsk, Command: "x"}, Memory{Command: "y"})
	want := []Memory{
		{Effect: EffectAllow, Command: "2", Session: "0"},
		{Effect: EffectAllow, Command: "4", Session: "0"},
		{Effect: EffectDeny, Command: "3", Session: "1"},
	}
	if diff := cmp.Diff(want, p.Remembered()); diff != "" {
		t.Error(diff)
	}
	p.Forget("0")
	p.Forget("")
	if diff := cmp.Diff(want[2:], p.Remembered()); diff != "" {
		t.Error(diff)
	}
	p = new(Policy)
	for i := range DefaultMaxRemembered + 10 {
		p.Recall(Memory{Effect: EffectAllow, Command: fmt.Sprint(i)})
	}
	if n := len(p.Remembered()); n != DefaultMaxRemembered {
		t.Errorf("%d memories", n)
	}

	data, err := json.Marshal(want)
	var back []Memory
	if err != nil || json.Unmarshal(data, &back) != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Error(diff)
	}
}

// TestAlwaysOfLink: an answer is about the file that a path leads to at that time.
func TestAlwaysOfLink(t *testing.T) {
	to := map[string]string{}
	p := &Policy{Resolve: func(path string) (string, error) {
		if real, ok := to[path]; ok {
			return real, nil
		}
		return path, nil
	}}
	req := Request{Session: "s", Kind: "edit", Cwd: "/w", Paths: []string{"a"}, Options: usual}
	p.Always(req, EffectAllow)
	if d := p.Decide(t.Context(), req); d.By != ByMemory {
		t.Errorf("%+v", d)
	}
	req.Paths = []string{"/w/x/../a"}
	if d := p.Decide(t.Context(), req); d.By != ByMemory {
		t.Errorf("spelled in another way: %+v", d)
	}
	to["/w/a"] = "/etc/passwd"
	if d := p.Decide(t.Context(), req); d.By == ByMemory {
		t.Errorf("it has become a link: %+v", d)
	}
}

// TestAlwaysOfShown: an answer about a command that is only shown is for that one, and one about a command
// that is not known is not remembered.
func TestAlwaysOfShown(t *testing.T) {
	p := new(Policy)
	req := Request{Session: "s", Kind: "execute", Title: "Bash", CommandUnknown: true, Shown: "touch a", Options: usual}
	p.Always(req, EffectAllow)
	if d := p.Decide(t.Context(), req); d.By != ByMemory {
		t.Errorf("%+v", d)
	}
	req.Shown = "rm -rf /"
	if d := p.Decide(t.Context(), req); d.By == ByMemory {
		t.Errorf("another command: %+v", d)
	}
	req.Shown = ""
	p.Always(req, EffectAllow)
	if d := p.Decide(t.Context(), req); d.By == ByMemory {
		t.Errorf("a command that is not known: %+v", d)
	}
}
