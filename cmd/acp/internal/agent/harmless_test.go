package agent

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
)

// TestHarmless: what only reads runs without a question, and in read-only mode, unless a rule is about it, it reads
// elsewhere, or who prompts may not approve.
func TestHarmless(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	rule := func(effect acphost.Effect, command string) func(*testing.T, *talk) {
		return func(_ *testing.T, k *talk) {
			k.policy, _ = acphost.NewPolicy(acphost.Rule{Effect: effect, Commands: []string{command}})
			k.policy.Commands = shellline.Parser{}
		}
	}
	outside := realDir(t)
	if err := os.WriteFile(filepath.Join(outside, "x"), []byte("hidden\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		before    func(t *testing.T, k *talk) // before the agent starts
		mode      string
		rank      string
		line      string
		asks, ran bool   // ran is with a user who rejects
		says      string // in what the user sees
	}{
		"reads":                     {line: "cat main.go | tail -3", ran: true},
		"reads in a read-only one":  {mode: modeReadOnly, line: "ls && cat main.go", ran: true},
		"writes in a read-only one": {mode: modeReadOnly, line: "touch x", says: "read-only mode"},
		"writes":                    {line: "ls > list", asks: true},
		"auto":                      {mode: modeAuto, line: "touch x", asks: true},
		"full":                      {mode: modeFull, line: "ls", ran: true},
		"elsewhere":                 {line: "cat " + outside + "/x", asks: true},
		"elsewhere, read-only":      {mode: modeReadOnly, line: "cat " + outside + "/x", says: "read-only mode"},
		"keys":                      {before: func(t *testing.T, k *talk) { k.write(".env", "A=1\n") }, line: "cat .env", asks: true},
		"a rule asks":               {before: rule(acphost.EffectAsk, "cat *"), line: "cat main.go", asks: true},
		"a rule denies":             {before: rule(acphost.EffectDeny, "cat *"), line: "ls | cat main.go", says: "forbids it"},
		"another rule":              {before: rule(acphost.EffectDeny, "rm *"), line: "cat main.go", ran: true},
		"a rule about a file below": {before: func(_ *testing.T, k *talk) {
			k.policy, _ = acphost.NewPolicy(acphost.Rule{Effect: acphost.EffectDeny, Paths: []string{"**/notes.txt"}})
			k.policy.Commands = shellline.Parser{}
		}, line: "grep -rn println .", asks: true},
		"a rule about another file": {before: func(_ *testing.T, k *talk) {
			k.policy, _ = acphost.NewPolicy(acphost.Rule{Effect: acphost.EffectDeny, Paths: []string{"**/secret.txt"}})
			k.policy.Commands = shellline.Parser{}
		}, line: "grep -rn println .", ran: true},
		"a prompter":            {rank: forPrompters, line: "cat main.go", asks: true},
		"a prompter, read-only": {rank: forPrompters, mode: modeReadOnly, line: "cat main.go", asks: true},
		"an approver":           {rank: forApprovers, line: "cat main.go", ran: true},
		"programs of the project": {before: func(t *testing.T, k *talk) {
			k.write("bin/cat", "#!/bin/sh\ntouch ran\n")
			if err := os.Chmod(filepath.Join(k.cwd, "bin/cat"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", filepath.Join(k.cwd, "bin")+":"+os.Getenv("PATH"))
		}, line: "cat main.go", asks: true},
		"programs of the directory": {before: func(t *testing.T, k *talk) { t.Setenv("PATH", ".:"+os.Getenv("PATH")) }, line: "cat main.go", asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			k := start(t, 2, func(k *talk) {
				if tt.before != nil {
					tt.before(t, k)
				}
			})
			if tt.mode != "" {
				k.tell("/mode " + tt.mode)
			}
			k.answer = (*acp.PermissionRequest).Reject
			k.asked = nil
			said := k.tellAs(cmp.Or(tt.rank, forOwners), "/run "+tt.line)
			if asked := len(k.asked) > 0; asked != tt.asks {
				t.Errorf("asked %q", k.asked)
			}
			if ran := strings.Contains(said, "The command has succeeded"); ran != tt.ran || !strings.Contains(said, tt.says) {
				t.Errorf("ran: %t: %s", ran, said)
			}
			for _, file := range []string{"ran", "list", "x"} {
				if _, err := os.Stat(filepath.Join(k.cwd, file)); err == nil {
					t.Errorf("%s is there", file)
				}
			}
		})
	}
}

// TestHarmlessLent: in a terminal that the client lends, with the client's variables, nothing is known to only read.
func TestHarmlessLent(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	for _, lend := range []bool{false, true} {
		k := start(t, 1, func(k *talk) {
			if lend {
				lent(k)
			}
		})
		k.asked = nil
		k.tell("/run cat main.go")
		if asked := len(k.asked) > 0; asked != lend {
			t.Errorf("lent: %t: asked %q", lend, k.asked)
		}
	}
}

// TestHarmlessGit: git runs at once, and nothing that a repository names; where that cannot be had the user is asked.
func TestHarmlessGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil || runtime.GOOS == "windows" {
		t.Skip("no git")
	}
	k := start(t, 2)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir = k.cwd
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "one")
	mark := filepath.Join(realDir(t), "mark")
	git("config", "core.fsmonitor", "touch "+mark+"; false")
	git("config", "core.pager", "touch "+mark+"; cat")
	k.write("main.go", "changed\n")
	k.answer = (*acp.PermissionRequest).Reject
	for _, line := range []string{"git status --short", "git diff | head -20", "git log --oneline -3", "cd doc && git status"} {
		contains(t, k.tell("/run "+line), "The command has succeeded")
	}
	if len(k.asked) > 0 {
		t.Errorf("asked %q", k.asked)
	}
	git("config", "diff.external", "touch "+mark)
	k.tell("/run git diff")
	if len(k.asked) != 1 {
		t.Errorf("asked %q", k.asked)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("what the repository names was run")
	}
}

// TestModeTold: the model knows the mode from the first request on, learns of another one with the next prompt, also
// after the agent was started again, and what was sent before stays as it is.
func TestModeTold(t *testing.T) {
	w, with := scripted(t, "say one\n---\nsay two\n---\nsay three\n---\nuse write {\"path\":\"x\",\"text\":\"x\"}\n---\nsay four\n")
	k := start(t, 2, with)
	k.tell("a")
	k.tell("b")
	k.tell("/mode auto")
	k.tell("/mode read-only")
	k.tell("c")
	k.tell("d")
	var told [][]string
	for i, r := range w.requests {
		var all []string
		for _, m := range r.Messages {
			for _, p := range m.Parts {
				if t, ok := p.(*model.Text); ok && isAboutMode(t.Text) {
					all = append(all, t.Text)
				}
			}
		}
		told = append(told, all)
		if i > 0 && !slices.Equal(w.requests[i-1].Messages, r.Messages[:len(w.requests[i-1].Messages)]) {
			t.Errorf("request %d begins with something else than the one before", i)
		}
	}
	ask, readOnly := aboutModes[modeAsk], aboutModes[modeReadOnly]
	for i, want := range [][]string{{ask}, {ask}, {ask, readOnly}, {ask, readOnly}} {
		if i >= len(told) || !slices.Equal(told[i], want) {
			t.Errorf("request %d: %q", i, told)
		}
	}
	last := w.requests[len(w.requests)-1]
	if res, ok := last.Messages[len(last.Messages)-1].Parts[0].(*model.ToolResult); !ok || !strings.Contains(res.Parts[0].(*model.Text).Text, "The user can change the mode") {
		t.Errorf("the refusal: %+v", last.Messages[len(last.Messages)-1].Parts[0])
	}
}
