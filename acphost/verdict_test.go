package acphost

import (
	"encoding/json"
	"testing"
)

// TestJudge: a verdict is by the rules alone, and says whether more knowledge could change it.
func TestJudge(t *testing.T) {
	allow, deny, ask := EffectAllow, EffectDeny, EffectAsk
	read := func(path string) Request { return Request{Kind: "read", Paths: []string{path}, Cwd: "/p"} }
	run := func(command string) Request {
		return Request{Kind: "execute", Command: command, Cwd: "/p", CommandUnknown: command == ""}
	}
	for _, tt := range []struct {
		name  string
		rules []Rule
		req   Request
		want  Verdict
	}{
		{"no rules", nil, read("/p/x"), Verdict{}},
		{"no rule matches", []Rule{{Effect: deny, Paths: []string{"**/.env"}}}, read("/p/x"), Verdict{}},
		{"a file", []Rule{{Name: "d", Effect: deny, Paths: []string{"**/.env"}}}, read("/p/.env"), Verdict{deny, "d", true}},
		{"asked", []Rule{{Name: "q", Effect: ask, Paths: []string{"**/.env"}}}, read("/p/.env"), Verdict{ask, "q", true}},
		{"the first counts", []Rule{{Name: "a", Effect: allow, Kinds: []string{"read"}}, {Name: "d", Effect: deny}}, read("/p/.env"), Verdict{allow, "a", true}},
		{"a command", []Rule{{Name: "d", Effect: deny, Commands: []string{"rm *"}}}, run("rm -rf x"), Verdict{deny, "d", true}},
		{"another command", []Rule{{Name: "d", Effect: deny, Commands: []string{"rm *"}}}, run("ls"), Verdict{}},
		{"not known which", []Rule{{Name: "d", Effect: deny, Commands: []string{"rm *"}}}, run(""), Verdict{ask, "d", false}},
		{"whichever it is", []Rule{{Name: "d", Effect: deny}}, run(""), Verdict{deny, "d", true}},
		{"unless it is another", []Rule{{Effect: allow, Commands: []string{"ls"}}, {Name: "d", Effect: deny}}, run(""), Verdict{deny, "d", false}},
		{"files not known", []Rule{{Name: "d", Effect: deny, Paths: []string{"**/.env"}}}, Request{Kind: "read"}, Verdict{ask, "d", false}},
	} {
		p, err := NewPolicy(tt.rules...)
		if err != nil {
			t.Fatal(err)
		}
		p.Default = EffectDeny
		if got := p.Judge(tt.req); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		restricts := false
		for _, r := range tt.rules {
			restricts = restricts || r.Effect != allow
		}
		if p.Restricts() != restricts {
			t.Errorf("%s: Restricts is %t", tt.name, !restricts)
		}
	}
}

// TestJudgeLeavesOut: neither what was answered before nor what is audited takes part.
func TestJudgeLeavesOut(t *testing.T) {
	p := &Policy{Audit: func(Record) { t.Error("recorded") }}
	req := Request{Session: "s", Kind: "edit", Paths: []string{"/p/x"}, RawInput: json.RawMessage(`{}`)}
	p.Always(req, EffectDeny)
	if got := p.Judge(req); got != (Verdict{}) {
		t.Errorf("%+v", got)
	}
}
