package agent

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/guide"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// TestSkillsAndPrompts: the model learns of skills and reads them by name; prompts from
// files are commands of the session.
func TestSkillsAndPrompts(t *testing.T) {
	w, with := scripted(t, `
when Deploy
use read {"path":"skill:deploy"}
---
when by hand
say I have read it.
---
when Review main against dev
say Reviewed.
`)
	k := start(t, 2, with, func(k *talk) {
		k.write("home/prompts/review.md", "---\ndescription: Review a branch\nargument-hint: BRANCH\n---\nReview $1 against dev.\n")
		k.write("home/prompts/help.md", "Not this one.\n")
		k.write(".agents/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: How to deploy\n---\nIt is done by hand.\n")
		k.home = guide.Home{Config: filepath.Join(k.cwd, "home")}
	})
	contains(t, k.tell("Deploy it."), "I have read it.")
	contains(t, messageText(w.requests[0].Messages[0]), "Read skill:NAME before you do it:\n- deploy: How to deploy\n")
	if c, ok := k.session.Command("review"); !ok || c.Description != "Review a branch" {
		t.Errorf("%+v", c)
	}
	contains(t, k.tell("/review main"), "Reviewed.")
	if got := w.last(); strings.TrimSpace(got) != "Review main against dev." {
		t.Errorf("the model got %q", got)
	}
	contains(t, k.tell("/help"), "I am the agent")
}

// TestSkillsInvoked: skills are announced, as skills to clients that know them and as commands to others. Either way the model is
// told to use one, and the user sees what was typed.
func TestSkillsInvoked(t *testing.T) {
	for _, x := range []struct {
		version int
		knows   bool
	}{{1, false}, {2, false}, {2, true}} {
		w, with := scripted(t, "say I have read it.\n")
		k := start(t, x.version, with, func(k *talk) {
			k.write("home/prompts/review.md", "---\ndescription: Review a branch\n---\nReview it.\n")
			for _, name := range []string{"deploy", "help", "review"} { // two are names of commands
				k.write(".agents/skills/"+name+"/SKILL.md", "---\nname: "+name+"\ndescription: How to "+name+"\n---\nIt is done by hand.\n")
			}
			k.home = guide.Home{Config: filepath.Join(k.cwd, "home")}
			k.client.Skills = x.knows
		})
		said := ""
		if x.knows {
			text, _, err := k.session.Prompt(t.Context(), &acpv2.SkillReference{Name: "deploy"}, acp.Text("to the lab")).Text()
			if said = text; err != nil {
				t.Error(err)
			}
		} else {
			said = k.tell("/deploy to the lab")
		}
		contains(t, said, "I have read it.")
		if got := w.last(); !strings.HasSuffix(strings.TrimSpace(got), "\nUse the skill deploy: read skill:deploy first, and do as it says.\n\nto the lab") {
			t.Errorf("%+v: the model got %q", x, got)
		}
		var found []string
		for _, c := range k.session.Commands() {
			switch c := c.(type) {
			case *acpv2.Skill:
				found = append(found, "skill "+c.Name+" "+c.Description)
				if filepath.Base(c.Path) != "SKILL.md" || !filepath.IsAbs(c.Path) {
					t.Errorf("path %s", c.Path)
				}
			case *acp.SlashCommand:
				if strings.HasPrefix(c.Description, "How to") {
					found = append(found, "command "+c.Name+" "+c.Description)
				}
			}
		}
		want := map[bool]string{true: "skill", false: "command"}[x.knows] + " deploy How to deploy"
		if !slices.Equal(found, []string{want}) {
			t.Errorf("%+v: %q", x, found)
		}
	}
}

// TestGuidanceHeldBack: guidance that is a link out of the project, or that a rule denies by either of its
// names, does not reach the model, and the user is told.
func TestGuidanceHeldBack(t *testing.T) {
	for _, tt := range []struct {
		to   string
		deny string
		want bool
	}{
		{"notes.md", "", true}, {"../secret", "", false}, {"secret.env", "**/*.env", false}, {"notes.md", "**/AGENTS.md", false},
	} {
		t.Run(tt.to+" "+tt.deny, func(t *testing.T) {
			w, with := scripted(t, "say Done.\n")
			var told atomic.Bool
			k := start(t, 2, with, func(k *talk) {
				update := k.client.Update
				k.client.Update = func(ctx context.Context, s *acp.ClientSession, u *acp.Update) {
					if n, ok := u.Update.(*acp.Notice); ok && strings.Contains(n.Title, "does not get") {
						told.Store(true)
					}
					update(ctx, s, u)
				}
				k.write("notes.md", "THE TEXT")
				k.write("secret.env", "THE TEXT")
				if err := os.WriteFile(filepath.Join(filepath.Dir(k.cwd), "secret"), []byte("THE TEXT"), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(tt.to, filepath.Join(k.cwd, "AGENTS.md")); err != nil {
					t.Skip("no links here")
				}
				if tt.deny != "" {
					k.policy, _ = acphost.NewPolicy(acphost.Rule{Effect: acphost.EffectDeny, Paths: []string{tt.deny}})
				}
			})
			k.tell("hi")
			if got := strings.Contains(messageText(w.requests[0].Messages[0]), "THE TEXT"); got != tt.want {
				t.Errorf("the model got it: %v", got)
			}
			if got := told.Load(); got == tt.want {
				t.Errorf("the user was told: %v", got)
			}
		})
	}
}

// TestProtectedFiles: neither the mode auto nor an answer “always” is about files that other programs go by; the
// mode full is.
func TestProtectedFiles(t *testing.T) {
	files := []string{".git/hooks/post-commit", ".git/config", ".envrc", ".vscode/tasks.json", ".acp.toml", ".mcp.json", "AGENTS.md", ".acp/skills/x/SKILL.md", ".claude/commands/x.md"}
	for mode, want := range map[string]int{modeAuto: len(files), modeFull: 0, modeAsk: len(files) + 1} {
		k := start(t, 2)
		k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision { return r.AllowAlways() }
		k.tell("/mode " + mode)
		k.tell("/edit main.go one => two") // in the mode ask, this is what is always allowed
		for _, file := range files {
			k.tell("/write " + file + " x")
		}
		if len(k.asked) != want {
			t.Errorf("%s: asked %d times, want %d: %q", mode, len(k.asked), want, k.asked)
		}
		for _, file := range files {
			if _, err := os.Stat(filepath.Join(k.cwd, filepath.FromSlash(file))); err != nil {
				t.Errorf("%s: %v", mode, err)
			}
		}
	}
}

// TestGuidanceBelow: the model gets the guidance of a directory below when it first reads or changes a file
// there, once, also after the session was loaded; and learns where it is.
func TestGuidanceBelow(t *testing.T) {
	w, with := scripted(t, `
when Look
use read {"path":"mod/a/f.txt"}
use read {"path":"mod/a/g.txt"}
---
when the f
use write {"path":"other/new.txt","text":"x"}
---
when rule of other
say Done.
---
when Again
use read {"path":"mod/a/f.txt"}
---
when the f
say Done again.
`)
	k := start(t, 2, with, func(k *talk) {
		k.write(".git/HEAD", "ref: refs/heads/trunk\n")
		k.write(".git/config", "[core]\n")
		k.write(".git/objects/info/none", "")
		k.write("AGENTS.md", "rule of all\n")
		k.write("mod/AGENTS.md", "rule of mod\n")
		k.write("mod/a/CLAUDE.md", "rule of a\n")
		k.write("other/AGENTS.md", "rule of other\n")
		k.write("mod/a/f.txt", "the f\n")
		k.write("mod/a/g.txt", "the g\n")
	})
	k.tell("Look.")
	first := messageText(w.requests[0].Messages[0])
	contains(t, first, "rule of all", "In it: AGENTS.md doc/ main.go mod/ other/\n")
	if _, err := exec.LookPath("git"); err == nil {
		contains(t, first, "Git: the repository is "+k.cwd+", on the branch trunk, with uncommitted changes in 5 files\n")
	}
	told := func() (n int) {
		for _, m := range w.requests[len(w.requests)-1].Messages {
			for _, p := range m.Parts {
				if res, ok := p.(*model.ToolResult); ok {
					for _, p := range res.Parts {
						n += strings.Count(p.(*model.Text).Text, "rule of ")
					}
				}
			}
		}
		return n
	}
	if n := told(); n != 3 {
		t.Errorf("%d rules are in results, want those of mod, mod/a and other", n)
	}
	k.reopen()
	k.tell("Again.")
	if n := told(); n != 3 {
		t.Errorf("%d rules are in results after the session was loaded", n)
	}
}

// TestGuidanceAgain: guidance that was in a result that was left out, since the provider refused it, is given again.
func TestGuidanceAgain(t *testing.T) {
	w, with := scripted(t, `
use read {"path":"mod/f.txt"}
---
fail request bad content
---
use read {"path":"mod/g.txt"}
---
use read {"path":"mod/f.txt"}
---
say Done.
`)
	k := start(t, 2, with, func(k *talk) {
		k.write("mod/AGENTS.md", "rule of mod\n")
		k.write("mod/f.txt", "the f\n")
		k.write("mod/g.txt", "the g\n")
	})
	contains(t, k.tell("Look."), "What the last calls have returned was left out of the conversation", "Done.")
	var got []int
	for _, r := range w.requests {
		n := 0
		for _, m := range r.Messages {
			n += strings.Count(messageText(m), "rule of mod")
		}
		got = append(got, n)
	}
	// The first result with the rule was refused, and the one that follows has it.
	if want := []int{0, 1, 0, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("the requests have the rule %v times, want %v", got, want)
	}
}
