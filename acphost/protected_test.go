package acphost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
)

// TestProtected: rules that allow all edits, or all files below a directory, do not allow edits of files that
// other programs go by; rules that name these do, and so does a rule without conditions.
func TestProtected(t *testing.T) {
	protected := strings.Fields(`.git/config .git/hooks/post-commit .GIT/config .git./config sub/.git/config git~1/config .envrc .vscode/tasks.json .idea/x.xml
		.acp.toml .mcp.json AGENTS.md sub/CLAUDE.md .acp/skills/x/SKILL.md .claude/commands/x.md .cursor/rules/x.mdc x.code-workspace .bashrc .husky/pre-commit hooks/pre-push
		.devcontainer/devcontainer.json .github/copilot-instructions.md /home/me/.zshrc /home/me/.config/fish/config.fish /home/me/.ssh/authorized_keys .gitconfig`)
	ordinary := strings.Fields(`.gitignore .gitattributes src/agents.go docs/git/config .github/workflows/ci.yml src/hooks/useThing.ts a.acp main.go .env config .config/x agents.md.txt`)
	decide := func(kind, path string, rules ...Rule) Effect {
		t.Helper()
		p, err := NewPolicy(rules...)
		if err != nil {
			t.Fatal(err)
		}
		return p.Decide(t.Context(), Request{Kind: kind, Cwd: "/home/me/.claude/worktrees/w", Paths: []string{path}, Options: usual}).Effect
	}
	wide := []Rule{
		{Effect: EffectAllow, Kinds: []string{"edit", "delete", "move", "read"}}, {Effect: EffectAllow, Paths: []string{"**"}},
		{Effect: EffectAllow, Paths: []string{"**/*"}}, {Effect: EffectAllow, Paths: []string{"/home/**", "./.g*/**", "./.*"}},
		{Effect: EffectAllow, Paths: []string{"/home/me/.claude/**"}},
	}
	for _, path := range protected {
		for _, kind := range []string{"edit", "delete", "move"} {
			if got := decide(kind, path, wide...); got != EffectDeny {
				t.Errorf("%s %s: %s by rules with wildcards", kind, path, got)
			}
			if got := decide(kind, path, Rule{Effect: EffectAllow}); got != EffectAllow {
				t.Errorf("%s %s: %s by a rule without conditions", kind, path, got)
			}
			name := path
			if !filepath.IsAbs(path) {
				name = "./" + path
			}
			if got := decide(kind, path, Rule{Effect: EffectAllow, Kinds: []string{kind}, Paths: []string{name}}); got != EffectAllow {
				t.Errorf("%s %s: %s by a rule that names it", kind, path, got)
			}
		}
		if got := decide("read", path, Rule{Effect: EffectAllow, Kinds: []string{"read"}}); got != EffectAllow {
			t.Errorf("read %s: %s", path, got)
		}
	}
	for _, path := range ordinary {
		if got := decide("edit", path, wide[0]); got != EffectAllow {
			t.Errorf("edit %s: %s", path, got)
		}
	}
	for pattern, want := range map[string]Effect{"**/.git/**": EffectAllow, "./.git/*": EffectAllow, "**/.gi?/**": EffectDeny, "**/{.git,x}/**": EffectDeny} {
		if got := decide("edit", ".git/config", Rule{Effect: EffectAllow, Paths: []string{pattern}}); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}

// TestProtectedLinks: where a link leads counts.
func TestProtectedLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	link(t, ".git", filepath.Join(dir, "docs"))
	p, err := NewPolicy(Rule{Effect: EffectAllow, Paths: []string{"./**"}})
	if err != nil {
		t.Fatal(err)
	}
	if d := p.Decide(t.Context(), Request{Kind: "edit", Cwd: dir, Paths: []string{"docs/config"}, Options: usual}); d.Effect != EffectDeny {
		t.Errorf("%+v", d)
	}
	if r := (&Request{Kind: "edit", Cwd: dir, Paths: []string{"docs/config"}}); r.Protects() != ".git" {
		t.Errorf("protects %q", r.Protects())
	}
}

// TestProtectedRedirections: so does a redirection into such a file.
func TestProtectedRedirections(t *testing.T) {
	p, err := NewPolicy(Rule{Effect: EffectAllow, Kinds: []string{"edit"}}, Rule{Effect: EffectAllow, Commands: []string{"echo *", "cat *", "make > .envrc"}},
		Rule{Effect: EffectAllow, Paths: []string{"./named/.envrc"}})
	if err != nil {
		t.Fatal(err)
	}
	p.Commands = fakeWrites{}
	for line, want := range map[string]Effect{
		"echo x > a.txt": EffectAllow, "echo x > .git/config": EffectDeny, "echo x > .envrc": EffectDeny, "make > .envrc": EffectAllow,
		"echo x > named/.envrc": EffectAllow, "cat x > sub/AGENTS.md": EffectDeny,
	} {
		req := Request{Kind: string(acpv2.ToolKindExecute), Command: line, Cwd: "/w", Options: usual}
		if d := p.Decide(t.Context(), req); d.Effect != want {
			t.Errorf("%s: %s (%s), want %s", line, d.Effect, d.Reason, want)
		}
	}
}

// fakeWrites takes "words > file" apart.
type fakeWrites struct{}

func (fakeWrites) ParseCommand(line string) CommandLine {
	command, file, _ := strings.Cut(line, " > ")
	part := CommandPart{Source: line, Writes: []CommandWord{{Text: file, Source: file}}}
	for w := range strings.FieldsSeq(command) {
		part.Words = append(part.Words, CommandWord{Text: w, Source: w})
	}
	return CommandLine{Parts: []CommandPart{part}, Normal: line}
}
