package gitread

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// reading are commands of git that only read.
var reading = []string{
	"git status", "git status -s --ignored", "git diff", "git diff HEAD~1", "git diff --cached --stat", "git log -p", "git log --oneline -3 --graph", "git show", "git show HEAD:a", "git blame a", "git grep one",
	"git branch -vv", "git tag -l", "git remote -v", "git ls-files -m -o", "git ls-tree -r HEAD", "git stash list", "git stash show", "git describe --always --dirty", "git shortlog -s HEAD", "git reflog", "git cat-file -p HEAD:a",
	"git rev-parse HEAD", "git worktree list", "git for-each-ref", "git show-ref", "git config --get core.bare", "git check-ignore -v a", "git diff-tree -p HEAD",
}

// marked makes a repository in which everything that attributes can name is named, with changed files, and returns it with
// a command that leaves a mark and a function that returns the marks.
func marked(t *testing.T) (dir, command string, marks func() []string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, at := filepath.Join(top, "work"), filepath.Join(top, "marks")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a"), "one\n")
	git(t, dir, "init", "-q")
	write(t, filepath.Join(dir, ".gitattributes"), "* filter=x diff=x merge=x\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-qm", "one")
	write(t, filepath.Join(dir, "a"), "two\n")
	git(t, dir, "stash")
	write(t, filepath.Join(dir, "a"), "three\n")
	git(t, dir, "commit", "-qam", "two")
	write(t, filepath.Join(dir, "a"), "four\n")
	return dir, `sh -c "touch '` + at + `/mark'; cat"`, func() []string {
		found, _ := filepath.Glob(filepath.Join(at, "*"))
		return found
	}
}

// readAll runs the commands that only read as the agent does.
func readAll(t *testing.T, dir string, env []string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", strings.Join(reading, "; "))
	cmd.Dir, cmd.Env = dir, append(environment(""), env...)
	_, _ = cmd.CombinedOutput() // some fail, which is no matter here
}

// TestQuiet: whatever a repository, or the user, has set, commands that only read run none of it, or are not run.
func TestQuiet(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil || runtime.GOOS == "windows" {
		t.Skip("no git")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	dir, command, marks := marked(t)
	settings := map[string]string{ // $ stands for the command
		"core.fsmonitor": "$", "core.pager": "$", "core.sshCommand": "$", "core.askPass": "$", "core.editor": "$", "core.alternateRefsCommand": "$", "core.gitProxy": "$", "core.hooksPath": "hooks",
		"diff.external": "$", "diff.x.command": "$", "diff.x.textconv": "$", "filter.x.clean": "$", "filter.x.smudge": "$", "filter.x.process": "$", "merge.x.driver": "$", "hook.x.command": "$",
		"gpg.program": "$", "gpg.ssh.program": "$", "gpg.ssh.defaultKeyCommand": "$", "log.showSignature": "true", "pager.log": "$", "pager.diff": "$", "pager.status": "$", "pager.branch": "$",
		"alias.status": "!$", "alias.log": "!$", "credential.helper": "!$", "interactive.diffFilter": "$", "remote.x.uploadpack": "$ #", "remote.x.promisor": "true", "remote.x.vcs": "ext", "extensions.partialClone": "x",
		"trailer.x.command": "$", "trailer.x.cmd": "$", "sequence.editor": "$", "uploadpack.packObjectsHook": "$", "diff.tool": "x", "difftool.x.cmd": "$", "submodule.x.update": "!$", "submodule.x.ignore": "none",
		"core.worktree": "/", "include.path": "/x", "includeIf.onbranch:*.path": "/x", "diff.submodule": "diff", "diff.ignoreSubmodules": "none", "submodule.recurse": "true", "status.submoduleSummary": "true", "diff.autoRefreshIndex": "true",
	}
	config, err := os.ReadFile(filepath.Join(dir, ".git", "config"))
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"post-index-change", "fsmonitor-watchman", "reference-transaction"} {
		for _, where := range []string{"hooks", ".git/hooks"} {
			file := filepath.Join(dir, where, hook)
			write(t, file, "#!/bin/sh\n"+command+"\n")
			if err := os.Chmod(file, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	index, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	local, user := filepath.Join(dir, ".git", "config"), filepath.Join(os.Getenv("HOME"), ".gitconfig")
	quiet := func(what string) {
		t.Helper()
		env, err := Quiet(t.Context(), dir, []string{dir})
		if err != nil {
			t.Fatal(err)
		}
		if readAll(t, dir, env); len(marks()) > 0 {
			t.Errorf("%s: something was run", what)
		}
	}
	var together []string // those that are taken back
	for name, value := range settings {
		value = strings.ReplaceAll(value, "$", command)
		git(t, t.TempDir(), "config", "--file", user, name, value)
		git(t, t.TempDir(), "config", "--file", local, name, value)
		switch _, err := Quiet(t.Context(), dir, []string{dir}); {
		case err == nil:
			together = append(together, name)
		case !errors.Is(err, ErrLoud):
			t.Errorf("%s: %v", name, err)
		}
		if err := os.WriteFile(local, config, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	quiet("settings of the user")
	if err := os.Remove(user); err != nil {
		t.Fatal(err)
	}
	for _, name := range together {
		git(t, t.TempDir(), "config", "--file", local, name, strings.ReplaceAll(settings[name], "$", command))
	}
	quiet(strings.Join(together, ", "))
	if after, err := os.ReadFile(filepath.Join(dir, ".git", "index")); err != nil || string(after) != string(index) {
		t.Errorf("the index was written: %v", err)
	}
	if len(together) < 20 {
		t.Errorf("only %q are taken back", together)
	}
	if readAll(t, dir, nil); len(marks()) == 0 {
		t.Error("the test would not see that something is run")
	}
}

// TestQuietWhere: repositories that lead elsewhere, or have others in them, are not read without a question.
func TestQuietWhere(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil || runtime.GOOS == "windows" {
		t.Skip("no git")
	}
	move := func(t *testing.T, dir, name string) {
		t.Helper()
		to := filepath.Join(filepath.Dir(dir), "elsewhere-"+filepath.Base(name))
		if err := errors.Join(os.Rename(filepath.Join(dir, name), to), os.Symlink(to, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, dir string) (at string)
		quiet   bool
	}{
		"the root":      {func(t *testing.T, dir string) string { return dir }, true},
		"no repository": {func(t *testing.T, dir string) string { return filepath.Dir(dir) }, true},
		"a directory": {func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, "sub", "b"), "")
			return filepath.Join(dir, "sub")
		}, true},
		"a further tree": {func(t *testing.T, dir string) string {
			git(t, dir, "worktree", "add", "-q", "../more")
			return filepath.Join(dir, "../more")
		}, true},
		"a linked git directory": {func(t *testing.T, dir string) string { move(t, dir, ".git"); return dir }, false},
		"linked objects":         {func(t *testing.T, dir string) string { move(t, dir, ".git/objects"); return dir }, false},
		"linked settings":        {func(t *testing.T, dir string) string { move(t, dir, ".git/config"); return dir }, false},
		"other objects": {func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, ".git/objects/info/alternates"), "/elsewhere\n")
			return dir
		}, false},
		"another git directory": {func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, "sub", ".git"), "gitdir: "+filepath.Join(filepath.Dir(dir), "other", ".git")+"\n")
			git(t, filepath.Dir(dir), "init", "-q", "other")
			return filepath.Join(dir, "sub")
		}, false},
		"another common directory": {func(t *testing.T, dir string) string {
			git(t, filepath.Dir(dir), "init", "-q", "other")
			write(t, filepath.Join(dir, ".git", "commondir"), filepath.Join(filepath.Dir(dir), "other", ".git")+"\n")
			return dir
		}, false},
		"a submodule": {func(t *testing.T, dir string) string {
			git(t, filepath.Dir(dir), "clone", "-q", dir, "other")
			git(t, dir, "submodule", "--quiet", "add", filepath.Join(filepath.Dir(dir), "other"), "module")
			return dir
		}, false},
		"a repository in it": {func(t *testing.T, dir string) string {
			git(t, filepath.Dir(dir), "clone", "-q", dir, filepath.Join(dir, "module"))
			git(t, dir, "add", "module")
			return dir
		}, false},
		"a bare one in it": {func(t *testing.T, dir string) string {
			git(t, dir, "init", "-q", "--bare", "sub")
			return filepath.Join(dir, "sub")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _, _ := marked(t)
			at := tt.prepare(t, dir)
			within := []string{dir, filepath.Join(filepath.Dir(dir), "more")}
			if env, err := Quiet(t.Context(), at, within); (err == nil) != tt.quiet || tt.quiet && len(env) == 0 {
				t.Errorf("%d variables, %v", len(env), err)
			}
			if tt.quiet {
				if _, err := Quiet(t.Context(), at, []string{filepath.Join(dir, "sub")}); err == nil && name != "no repository" {
					t.Error("it lies outside, and is read")
				}
			}
		})
	}
}

// TestQuietRunsLate: git is not run before it is known that the repository may be read.
func TestQuietRunsLate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no shell scripts")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(top, "mark")
	program := filepath.Join(top, "bin", "git")
	write(t, program, "#!/bin/sh\n: >'"+mark+"'\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(program))
	for name, tt := range map[string]struct {
		dir   string
		files []string
		runs  bool
	}{
		"outside":       {"out", []string{".git/HEAD"}, false},
		"a bare one":    {"in/bare", []string{"HEAD", "objects/x", "refs/x"}, false},
		"other objects": {"in/other", []string{".git/HEAD", ".git/objects/info/alternates"}, false},
		"no repository": {"in/none", []string{"x"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(mark) // of the one before
			dir := filepath.Join(top, tt.dir)
			for _, file := range tt.files {
				write(t, filepath.Join(dir, file), "ref: refs/heads/main\n")
			}
			if _, err := Quiet(t.Context(), dir, []string{filepath.Join(top, "in")}); (err == nil) != tt.runs {
				t.Error(err)
			}
			if _, err := os.Stat(mark); (err == nil) != tt.runs {
				t.Errorf("git was run: %t", err == nil)
			}
		})
	}
}
