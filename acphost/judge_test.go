package acphost

import (
	"context"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
)

// plainParser is a CommandParser for tests: parts are separated by semicolons and
// words by spaces. A word with a dollar sign is open, >F and <F redirect, nice
// runs what follows it, run may run what its words say, -exec runs something, and
// a line with a question mark is not sure.
type plainParser struct{}

func (plainParser) ParseCommand(line string) (out CommandLine) {
	if strings.Contains(line, "?") {
		out.Unsure = "it has a question mark"
	}
	out.Normal = strings.Join(strings.Fields(line), " ")
	dir := CommandWord{}
	for text := range strings.SplitSeq(line, ";") {
		part := CommandPart{Source: strings.TrimSpace(text), Dir: dir}
		by := 0
		end := func() {
			part.By = by
			out.Parts = append(out.Parts, part)
		}
		for _, field := range strings.Fields(text) {
			before, _, open := strings.Cut(field, "$")
			w := CommandWord{Text: before, Open: open, Source: field}
			switch {
			case field[0] == '>':
				part.Writes = append(part.Writes, CommandWord{Text: field[1:], Source: field[1:]})
			case field[0] == '<':
				part.Reads = append(part.Reads, CommandWord{Text: field[1:], Source: field[1:]})
			case len(part.Words) == 0 && strings.Contains(field, "="):
				part.Sets = append(part.Sets, field)
			default:
				if field == "-exec" {
					part.Options = append(part.Options, CommandOption{len(part.Words), field, "runs a program"})
				}
				part.Words = append(part.Words, w)
			}
			if len(part.Words) == 1 && part.Words[0].Text == "nice" {
				part.Wrapper = true
				end()
				by = len(out.Parts)
				part = CommandPart{Source: strings.TrimSpace(strings.TrimPrefix(part.Source, "nice")), Dir: dir, At: 1}
			}
		}
		part.Opaque = len(part.Words) > 0 && part.Words[0].Text == "run"
		end()
		if len(part.Words) == 2 && part.Words[0].Text == "cd" {
			dir = part.Words[1]
		}
	}
	return out
}

// TestParsedLines holds what rules make of the parts of a line.
func TestParsedLines(t *testing.T) {
	const cwd = "/home/me/project"
	usual := []Rule{
		{Effect: EffectDeny, Commands: []string{"rm *"}},
		{Effect: EffectDeny, Paths: []string{"**/.env"}},
		{Effect: EffectAsk, Commands: []string{"git push *"}},
		{Effect: EffectAllow, Commands: []string{"go test *", "ls *", "find *", "cat *", "run *", "git *", "fix -exec gofmt *"}},
		{Effect: EffectAllow, Kinds: []string{"edit"}, Paths: []string{"./out/**"}},
	}
	tests := []struct {
		line   string
		effect Effect
		reason string // a part of it
	}{
		{"go test ./...", EffectAllow, ""},
		{"ls; go test ./...", EffectAllow, ""},
		{"ls; rm x", EffectDeny, "denies it"},
		{"rm x; ls", EffectDeny, "denies it"},
		{"/bin/rm x", EffectDeny, "denies it"},
		{"ls; make", EffectAsk, "no rule allows it"},
		{"git status; git push origin", EffectAsk, "wants it to be asked"},
		{"nice ls a", EffectAllow, ""},
		{"nice rm a", EffectDeny, "denies it"},
		{"find . -exec ls", EffectAsk, "-exec runs a program"},
		{"fix -exec gofmt x", EffectAllow, ""},
		{"run rm x", EffectAsk, "may be about it"},
		{"run ls x", EffectAllow, ""},
		{"$p x", EffectAsk, "may be about it"},
		{"ls $x", EffectAsk, "may be about it"}, // it may be .env
		{"ls a$x", EffectAsk, "may be about it"},
		{"ls a?", EffectAsk, "question mark"},
		// What is free needs no rule where some commands are allowed.
		{"echo a; ls", EffectAllow, ""},
		{"echo a", EffectAllow, ""},
		{"echo a >list", EffectAsk, "writes to a file"},
		{"cd sub; ls", EffectAllow, ""},
		{"cd ..; ls", EffectAsk, ""},
		{"cd $d; ls", EffectAsk, ""},
		{"cd ~; ls", EffectAsk, ""},
		{"export LANG=C; ls", EffectAllow, ""},
		{"export PATH=/tmp; ls", EffectAsk, ""},
		{"command -v go; ls", EffectAllow, ""},
		{"command go; ls", EffectAsk, ""},
		{"printf -v x; ls", EffectAsk, ""},
		{"set -e; ls", EffectAllow, ""},
		{"set $x; ls", EffectAsk, ""},
		{"x=1; ls", EffectAllow, ""},
		{"PATH=/tmp ls", EffectAsk, ""},
		{"LANG=C ls a", EffectAllow, ""},
		{"http_proxy=x; ls", EffectAsk, ""},
		// Files.
		{"ls >out/list", EffectAllow, ""},
		{"ls >list", EffectAsk, "writes to a file"},
		{"ls >.env", EffectDeny, "denies it"},
		{"ls <.env", EffectDeny, "denies it"},
		{"ls <list", EffectAllow, ""},
		{"cat .env", EffectAsk, ""},
		{"cat sub/.env", EffectAsk, ""},
		{"cd sub; cat .env", EffectAsk, ""},
	}
	policy, err := NewPolicy(usual...)
	if err != nil {
		t.Fatal(err)
	}
	policy.Commands = plainParser{}
	policy.Resolve = func(path string) (string, error) { return path, nil }
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			var asked bool
			policy.Ask = func(context.Context, Request) (acpv2.PermissionOptionID, error) { asked = true; return "", nil }
			req := Request{Session: "s", Kind: "execute", Command: tt.line, Cwd: cwd, Options: []acpv2.PermissionOption{
				{OptionID: "y", Kind: acpv2.PermissionOptionKindAllowOnce}, {OptionID: "n", Kind: acpv2.PermissionOptionKindRejectOnce},
			}}
			d := policy.Decide(t.Context(), req)
			effect := d.Effect
			if asked {
				effect = EffectAsk
			}
			if effect != tt.effect || !strings.Contains(d.Reason, tt.reason) {
				t.Errorf("%s because %q of %q, want %s because %q", effect, d.Reason, d.Part, tt.effect, tt.reason)
			}
		})
	}
	// A command that is only shown is denied as if it were known, and never allowed.
	for line, want := range map[string]Effect{"rm x": EffectDeny, "ls; rm x": EffectDeny, "ls": EffectAsk} {
		v := policy.Judge(Request{Kind: "execute", CommandUnknown: true, Shown: line, Cwd: cwd})
		if v.Effect != want && !(want == EffectAsk && v.Effect != EffectAllow && v.Effect != EffectDeny) {
			t.Errorf("%s, only shown: %+v", line, v)
		}
	}
	if got := policy.NormalCommand("ls   -l"); got != "ls -l" {
		t.Errorf("normal form %q", got)
	}
	if !policy.RestrictsKind("execute") {
		t.Error("the rules say nothing of commands")
	}
}

// TestTrusts: a command that does nothing needs a rule that allows some commands where it is run.
func TestTrusts(t *testing.T) {
	ls := Rule{Effect: EffectAllow, Commands: []string{"ls *"}}
	here, fetch, both := ls, ls, ls
	here.Cwd, fetch.Kinds, both.Kinds = []string{"/elsewhere/**"}, []string{"fetch"}, []string{"execute", "fetch"}
	for name, tt := range map[string]struct {
		rules []Rule
		want  bool
	}{
		"no rule":              {nil, false},
		"a rule":               {[]Rule{ls}, true},
		"about paths":          {[]Rule{{Effect: EffectAllow, Paths: []string{"src/**"}}}, false},
		"about servers":        {[]Rule{{Effect: EffectAllow, Servers: []string{"x/*"}}}, false},
		"that denies":          {[]Rule{{Effect: EffectDeny, Commands: []string{"ls *"}}}, false},
		"elsewhere":            {[]Rule{here}, false},
		"of another kind":      {[]Rule{fetch}, false},
		"of its kind":          {[]Rule{both}, true},
		"beside one that asks": {[]Rule{{Effect: EffectAsk, Commands: []string{"echo *"}}, ls}, false},
	} {
		p, err := NewPolicy(tt.rules...)
		if err != nil {
			t.Fatal(err)
		}
		p.Commands, p.Default = plainParser{}, EffectAsk
		d := p.Decide(t.Context(), Request{Session: "s", Kind: "execute", Command: "echo a", Cwd: t.TempDir(), Options: []acpv2.PermissionOption{
			{OptionID: "y", Kind: acpv2.PermissionOptionKindAllowOnce}, {OptionID: "n", Kind: acpv2.PermissionOptionKindRejectOnce},
		}})
		if got := d.Effect == EffectAllow && d.By == ByRule; got != tt.want {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
