package shellline_test

import (
	"testing"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
)

// TestNormal: lines have the same normal form if they run the same, and not else.
func TestNormal(t *testing.T) {
	for _, same := range [][2]string{
		{"ls  -l", "ls -l"}, {" ls\t-l ", "ls -l"}, {"bash -c 'ls -l'", "ls -l"}, {"/bin/sh -c 'ls  -l'", "ls -l"}, {"bash -lc \"sh -c 'ls -l'\"", "ls -l"},
		{"a &&  b", "a && b"}, {"a;b", "a; b"}, {"a\nb", "a; b"},
	} {
		p := &acphost.Policy{Commands: shellline.Parser{}}
		if a, b := p.NormalCommand(same[0]), p.NormalCommand(same[1]); a != b {
			t.Errorf("%q is %q, and %q is %q", same[0], a, same[1], b)
		}
	}
	for _, differ := range [][2]string{
		{"ls 'a  b'", "ls 'a b'"}, {"ls $x", "ls $y"}, {"ls > a", "ls > b"}, {"a && b", "a; b"}, {"a || b", "a && b"}, {"bash -c 'ls' x > f", "ls"}, {"/tmp/sh -c ls", "ls"},
		{"A=1 ls", "A=2 ls"}, {"A=1 bash -c ls", "ls"}, {"bash -c ls &", "ls"}, {"! bash -c ls", "ls"}, {"ls a\\ b", "ls a b"}, {"cat <<E\na\nE\n", "cat <<E\nb\nE\n"}, {"python -c 'a'", "python -c 'b'"},
	} {
		p := &acphost.Policy{Commands: shellline.Parser{}}
		if a, b := p.NormalCommand(differ[0]), p.NormalCommand(differ[1]); a == b {
			t.Errorf("%q and %q are both %q", differ[0], differ[1], a)
		}
	}
}

// TestNamedOptions: a pattern covers an option that it names before its first wildcard, and what a
// program runs that it names.
func TestNamedOptions(t *testing.T) {
	for _, tt := range []struct {
		pattern, line string
		want          bool
	}{
		{"go test -exec sh *", "go test -exec sh ./...", true},
		{"go test -coverprofile=*", "go test -coverprofile=c.out ./...", true},
		{"go test -o *", "go test -o x -exec id", false},
		{"go test * -exec sh", "go test -exec id -exec sh", false},
		{"git -c core.pager=cat *", "git -c core.pager=cat log", true},
		{"git -c core.pager=cat *", "git -c core.pager=cat -c core.sshCommand=id fetch", false},
		{"git -C sub *", "git -C sub status", true},
		{"git *", "git -C sub status", false},
		{"git config *", "git config --get user.name", true},
		{"timeout 60 make *", "timeout 60 make -j4", true},
		{"timeout 60 make*", "timeout 60 makeall", false},
		{"timeout 60 *", "timeout 60 make", false},
		{"timeout 60 make *", "timeout 60 make SHELL=/x", false},
		{"sudo systemctl restart *", "sudo systemctl restart x", true},
		{"sudo *", "sudo systemctl restart x", false},
		{"docker exec web *", "docker exec web ls", true},
		{"docker *", "docker exec web ls", false},
		{"find . -exec grep *", "find . -exec grep x {} +", true},
		{"find *", "find . -exec grep x {} +", false},
		{"go test ./... > out.txt", "go test ./... > out.txt", true},
		{"python -c 'print(1)'", "python -c 'print(1)'", true},
		{"python -c *", "python -c 'print(1)'", false},
		{"FOO=1 make *", "FOO=1 make x", true},
		{"make *", "FOO=1 make x", false},
		{"git commit -m \"fix *", "git commit -m \"fix (a)\"", true},
	} {
		if d := decide(t, tt.line, acphost.Rule{Effect: acphost.EffectAllow, Commands: []string{tt.pattern}}); d.Effect == acphost.EffectAllow != tt.want {
			t.Errorf("%q, %q: %+v", tt.pattern, tt.line, d)
		}
	}
}

// TestRedirections: a file that a line writes is decided by rules about paths.
func TestRedirections(t *testing.T) {
	edit := acphost.Rule{Effect: acphost.EffectAllow, Kinds: []string{"edit"}, Paths: []string{"./out/**"}}
	secret := acphost.Rule{Effect: acphost.EffectDeny, Paths: []string{"**/.env"}}
	list := acphost.Rule{Effect: acphost.EffectAllow, Commands: []string{"ls *"}}
	for line, want := range map[string]acphost.Effect{
		"ls > out/a": acphost.EffectAllow, "ls >> out/a 2>&1": acphost.EffectAllow, "ls > a": acphost.EffectAsk, "ls > out/../a": acphost.EffectAsk,
		"ls > out/.env": acphost.EffectDeny, "ls < .env": acphost.EffectDeny, "ls < a": acphost.EffectAllow, "ls > $x": acphost.EffectAsk,
		"cd sub && ls > out/a": acphost.EffectAsk, "echo x > out/a": acphost.EffectAllow, "{ ls; } > a": acphost.EffectAsk,
	} {
		if got := answer(t, line, secret, edit, list); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}

// TestReasons: a decision says which part of a line it is about, and why.
func TestReasons(t *testing.T) {
	deny := acphost.Rule{Name: "no rm", Effect: acphost.EffectDeny, Commands: []string{"rm *"}}
	allow := acphost.Rule{Name: "tests", Effect: acphost.EffectAllow, Commands: []string{"go test *"}}
	for _, tt := range []struct{ line, part, reason string }{
		{"go test ./... && rm x", "rm x", "the rule no rm denies it"},
		{"rm x", "", "the rule no rm denies it"},
		{"go test ./... && id", "id", "no rule allows it"},
		{"go test -exec id ./...", "", "-exec runs something, which the rule tests does not cover"},
		{"go test ./... > x", "go test ./...", "it writes to a file, which no rule allows"},
		{"go test ./... | sh", "", "sh reads what it runs, and the rule no rm may be about that"},
		{"python -c x", "", "python -c runs text, and the rule no rm may be about that"},
	} {
		if d := decide(t, tt.line, deny, allow); d.Effect == acphost.EffectAllow || d.Part != tt.part || d.Reason != tt.reason {
			t.Errorf("%q: part %q, reason %q, want %q, %q", tt.line, d.Part, d.Reason, tt.part, tt.reason)
		}
	}
}

// newPolicy returns a policy that reads command lines with the package's parser.
func newPolicy(tb testing.TB, rules ...acphost.Rule) *acphost.Policy {
	tb.Helper()
	p, err := acphost.NewPolicy(rules...)
	if err != nil {
		tb.Fatal(err)
	}
	p.Commands = shellline.Parser{}
	return p
}

// decide returns what rules decide about a line. A refusal must have a reason.
func decide(t *testing.T, line string, rules ...acphost.Rule) acphost.Decision {
	t.Helper()
	d := newPolicy(t, rules...).Decide(t.Context(), request(line))
	if d.Effect != acphost.EffectAllow && (d.Reason == "" || d.By == acphost.ByRule && d.Rule == "") {
		t.Errorf("%q is refused without a reason: %+v", line, d)
	}
	return d
}

// answer returns what rules say about a line. If none of them decides, they ask.
func answer(t *testing.T, line string, rules ...acphost.Rule) acphost.Effect {
	t.Helper()
	if d := decide(t, line, rules...); d.By != acphost.ByNobody {
		return d.Effect
	}
	return acphost.EffectAsk
}

// request returns a request to run a line.
func request(line string) acphost.Request {
	return acphost.Request{Kind: "execute", Cwd: "/w", Command: line, Options: []acpv2.PermissionOption{
		{OptionID: "yes", Kind: acpv2.PermissionOptionKindAllowOnce}, {OptionID: "no", Kind: acpv2.PermissionOptionKindRejectOnce},
	}}
}
