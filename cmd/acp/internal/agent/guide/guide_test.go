package guide

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// tree writes files and returns their directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFiles: from the root of the repository to the directory; outside of one, the
// directory alone.
func TestFiles(t *testing.T) {
	dir := tree(t, map[string]string{
		"AGENTS.md": "above", "repo/.git/HEAD": "", "repo/AGENTS.md": " root \n", "repo/CLAUDE.md": "not this", "repo/a/b/CLAUDE.md": "inner",
		"repo/a/AGENTS.md": "  \n", "repo/big/AGENTS.md": strings.Repeat("x", MaxFile+10), "repo/dir/AGENTS.md/x": "",
	})
	text := func(sub string) []string {
		var all []string
		for _, f := range (&Finder{Dir: filepath.Join(dir, filepath.FromSlash(sub))}).Files() {
			all = append(all, f.Text)
		}
		return all
	}
	if diff := cmp.Diff([]string{"root", "inner"}, text("repo/a/b")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"root"}, text("repo/dir")); diff != "" {
		t.Error(diff)
	}
	if got := text("repo/big"); len(got) != 2 || len(got[1]) > MaxFile+100 || !strings.HasSuffix(got[1], "(There is more in the file.)") {
		t.Errorf("%d files", len(got))
	}
	outside := tree(t, map[string]string{"AGENTS.md": "above", "in/AGENTS.md": "own"})
	if got := (&Finder{Dir: filepath.Join(outside, "in")}).Files(); len(got) != 1 || got[0].Text != "own" {
		t.Errorf("%v", got)
	}
}

// TestSkills: those of the user come before those of the project, and count where both have one.
func TestSkills(t *testing.T) {
	dir := tree(t, map[string]string{
		"repo/.git/HEAD":                        "",
		"repo/.agents/skills/deploy/SKILL.md":   "---\nname: deploy\ndescription: >\n  How the project\n  is deployed.\nallowed-tools: x\n---\n# Deploy\n",
		"repo/.claude/skills/deploy/SKILL.md":   "---\nname: deploy\ndescription: another\n---\n",
		"repo/.claude/skills/no-about/SKILL.md": "# nothing\n",
		"repo/.claude/skills/odd name/SKILL.md": "---\ndescription: x\n---\n",
		"home/.claude/skills/pdf/SKILL.md":      "---\r\ndescription: \"Reads: PDFs\"\r\n---\r\n",
		"config/skills/mine/SKILL.md":           "---\ndescription: 'Mine'\n---\n",
	})
	got := (&Finder{Dir: filepath.Join(dir, "repo", "sub"), Home: Home{Dir: filepath.Join(dir, "home"), Config: filepath.Join(dir, "config")}}).Skills()
	want := []Skill{{Name: "mine", About: "Mine"}, {Name: "pdf", About: "Reads: PDFs"}, {Name: "deploy", About: "How the project is deployed."}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Skill{}, "Dir")); diff != "" {
		t.Error(diff)
	}
	if got := (&Finder{Dir: filepath.Join(dir, "repo")}).Skills(); len(got) != 1 || filepath.Base(got[0].Dir) != "deploy" {
		t.Errorf("%v", got)
	}
}

// TestPrompts: what is sent, with and without what was typed.
func TestPrompts(t *testing.T) {
	dir := tree(t, map[string]string{
		".acp/prompts/review.md":    "---\ndescription: Review a change\nargument-hint: BRANCH\n---\nReview $1 against $2. All: $ARGUMENTS\n",
		".claude/commands/fix.md":   "# Fix the tests\n\nDo it.\n",
		".claude/commands/empty.md": "\n", ".claude/commands/note.txt": "x",
	})
	got := (&Finder{Dir: dir}).Prompts()
	if len(got) != 2 {
		t.Fatalf("%v", got)
	}
	if p := got[0]; p.Name != "review" || p.About != "Review a change" || p.Hint != "BRANCH" || p.Text(" a  b c") != "Review a against b. All: a  b c" {
		t.Errorf("%+v, %q", p, p.Text(" a  b c"))
	}
	if p := got[1]; p.Name != "fix" || p.About != "Fix the tests" || p.Hint != "" || p.Text("") != "# Fix the tests\n\nDo it." || !strings.HasSuffix(p.Text("now"), "Do it.\n\nnow") {
		t.Errorf("%+v", p)
	}
}

// FuzzFrontMatter: any text can be read.
func FuzzFrontMatter(f *testing.F) {
	f.Add("---\nname: x\ndescription: >\n  y\n---\nrest")
	f.Fuzz(func(t *testing.T, text string) {
		fields, rest := frontMatter(text)
		if len(rest) > len(text) {
			t.Error("more than there was")
		}
		for name, value := range fields {
			if len(name)+len(value) > len(text) {
				t.Error("a field out of nothing")
			}
		}
	})
}

// TestLinks: a file of the project that is a link out of it is left out, whatever it is; so is what must not be
// read, by the name of the link or of its target. Links within the project, and the user's own, are followed.
func TestLinks(t *testing.T) {
	const skill = "---\nname: s\ndescription: d\n---\nx\n"
	dir := tree(t, map[string]string{
		"secret": "SECRET", "home/.claude/commands/x": "", "dotfiles/own.md": "own", "skills/evil/SKILL.md": skill,
		"repo/.git/HEAD": "", "repo/docs/agents.md": "guidance", "repo/.env": "KEY", "repo/sub/x": "", "repo/.acp/skills/x": "", "repo/.acp/prompts/x": "", "repo/.claude/x": "",
	})
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(filepath.Join(dir, filepath.FromSlash(to)), filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Skip("no links here")
		}
	}
	link("secret", "repo/AGENTS.md")
	link("repo/docs/agents.md", "repo/CLAUDE.md")
	link("repo/.env", "repo/sub/AGENTS.md")
	link("secret", "repo/.acp/prompts/leak.md")
	link("skills/evil", "repo/.acp/skills/evil")
	link("skills", "repo/.claude/skills")
	link("dotfiles/own.md", "home/.claude/commands/own.md")
	f := &Finder{Dir: filepath.Join(dir, "repo", "sub"), Home: Home{Dir: filepath.Join(dir, "home")}, Refuse: func(path, real string) string {
		if filepath.Base(path) == ".env" || filepath.Base(real) == ".env" {
			return "a rule"
		}
		return ""
	}}
	var got []string
	for _, file := range f.Files() {
		got = append(got, file.Text)
	}
	for _, s := range f.Skills() {
		got = append(got, "skill "+s.Name)
	}
	for _, p := range f.Prompts() {
		got = append(got, "prompt "+p.Text(""))
	}
	if diff := cmp.Diff([]string{"guidance", "prompt own"}, got); diff != "" {
		t.Error(diff)
	}
	var left []string
	for _, l := range f.Left {
		rel, _ := filepath.Rel(dir, l.Path)
		left = append(left, filepath.ToSlash(rel)+": "+l.Why)
	}
	const out = ": it is a link out of the project"
	want := []string{"repo/sub/AGENTS.md: a rule", "repo/AGENTS.md" + out, "repo/.acp/skills/evil/SKILL.md" + out,
		"repo/.claude/skills/evil/SKILL.md" + out, "repo/.acp/prompts/leak.md" + out}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Error(diff)
	}
}

// TestOwnFirst: what a project has does not take the place of what the user has.
func TestOwnFirst(t *testing.T) {
	dir := tree(t, map[string]string{
		"repo/.git/HEAD":                   "",
		"repo/.acp/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: theirs\n---\n",
		"repo/.acp/prompts/review.md":      "---\ndescription: theirs\n---\nevil",
		"repo/.acp/prompts/other.md":       "---\ndescription: theirs\n---\nx",
		"config/skills/deploy/SKILL.md":    "---\ndescription: mine\n---\n",
		"home/.claude/commands/review.md":  "---\ndescription: mine\n---\ngood",
	})
	home := Home{Dir: filepath.Join(dir, "home"), Config: filepath.Join(dir, "config")}
	if got := (&Finder{Dir: filepath.Join(dir, "repo"), Home: home}).Skills(); len(got) != 1 || got[0].About != "mine" {
		t.Errorf("%+v", got)
	}
	got := map[string]string{}
	for _, p := range (&Finder{Dir: filepath.Join(dir, "repo"), Home: home}).Prompts() {
		got[p.Name] = p.About
	}
	if diff := cmp.Diff(map[string]string{"review": "mine", "other": "theirs"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestUserFiles: guidance of the user comes first, and too much of the project's is left out from above.
func TestUserFiles(t *testing.T) {
	big := strings.Repeat("x", MaxFile-100)
	dir := tree(t, map[string]string{
		"home/.agents/AGENTS.md": "of home", "config/AGENTS.md": "of settings",
		"repo/.git/HEAD": "", "repo/AGENTS.md": big, "repo/a/AGENTS.md": big, "repo/a/b/AGENTS.md": big, "repo/a/b/c/AGENTS.md": "inner",
	})
	f := &Finder{Dir: filepath.Join(dir, "repo", "a", "b", "c"), Home: Home{Dir: filepath.Join(dir, "home"), Config: filepath.Join(dir, "config")}}
	var got []string
	for _, file := range f.Files() {
		rel, _ := filepath.Rel(dir, file.Path)
		got = append(got, filepath.ToSlash(rel))
	}
	if diff := cmp.Diff([]string{"config/AGENTS.md", "repo/a/AGENTS.md", "repo/a/b/AGENTS.md", "repo/a/b/c/AGENTS.md"}, got); diff != "" {
		t.Error(diff)
	}
	if len(f.Left) != 1 || f.Left[0].Path != filepath.Join(dir, "repo", "AGENTS.md") {
		t.Errorf("%v", f.Left)
	}
	f.Home.Config = ""
	if all := f.Files(); all[0].Text != "of home" {
		t.Errorf("%.20q", all[0].Text)
	}
}

// TestBelow: what lies between the directory and a file, without the directory's own.
func TestBelow(t *testing.T) {
	dir := tree(t, map[string]string{
		".git/HEAD": "", "AGENTS.md": "root", "a/AGENTS.md": strings.Repeat("a", MaxBelow+1), "a/b/CLAUDE.md": "b", "a/b/AGENTS.md": "  ",
		"a/b/c/CLAUDE.md": "c", "x/f": "", "../out/AGENTS.md": "out",
	})
	for _, tt := range []struct {
		file string
		want int
	}{{"f", 0}, {"a/f", 1}, {"a/b/c/d/f", 2}, {"x/f", 0}, {"../out/f", 0}} {
		got := (&Finder{Dir: dir}).Below(filepath.Join(dir, filepath.FromSlash(tt.file)))
		if len(got) != tt.want {
			t.Errorf("%s: %d files, want %d", tt.file, len(got), tt.want)
		}
		if len(got) > 0 && (len(got[0].Text) > MaxBelow+100 || !strings.HasSuffix(got[0].Text, "(There is more in the file.)")) {
			t.Errorf("%s: %d bytes", tt.file, len(got[0].Text))
		}
	}
	deep := strings.Repeat("d/", maxDepth+5)
	files := map[string]string{}
	for i := range maxDepth + 5 {
		files[deep[:2*(i+1)]+"AGENTS.md"] = "x"
	}
	dir = tree(t, files)
	if got := (&Finder{Dir: dir}).Below(filepath.Join(dir, deep, "f")); len(got) != maxDepth {
		t.Errorf("%d files", len(got))
	}
}
