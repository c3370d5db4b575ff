package gitread

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestOpen: work trees of all kinds are read as git reads them, and nothing is left of the reading.
func TestOpen(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	write(t, filepath.Join(home, ".config", "git", "ignore"), "*.ignored\n")
	commit := func(t *testing.T, dir string, args ...string) {
		git(t, dir, append([]string{"init", "-q"}, args...)...)
		write(t, filepath.Join(dir, "sub", "a"), "a\n")
		write(t, filepath.Join(dir, "x.ignored"), "a\n")
		git(t, dir, "add", ".")
		git(t, dir, "commit", "-qm", "x")
	}
	for name, prepare := range map[string]func(t *testing.T, dir string) (at string){
		"the root":     func(t *testing.T, dir string) string { commit(t, dir); return dir },
		"a directory":  func(t *testing.T, dir string) string { commit(t, dir); return filepath.Join(dir, "sub") },
		"packed":       func(t *testing.T, dir string) string { commit(t, dir); git(t, dir, "gc", "-q"); return dir },
		"another hash": func(t *testing.T, dir string) string { commit(t, dir, "--object-format=sha256"); return dir },
		"a detached HEAD": func(t *testing.T, dir string) string {
			commit(t, dir)
			git(t, dir, "checkout", "-q", "--detach")
			return dir
		},
		"a split index": func(t *testing.T, dir string) string {
			commit(t, dir)
			git(t, dir, "update-index", "--split-index")
			return dir
		},
		"before a commit": func(t *testing.T, dir string) string { git(t, dir, "init", "-q"); return dir },
		"a further tree": func(t *testing.T, dir string) string {
			commit(t, dir)
			git(t, dir, "worktree", "add", "-q", "sub/more")
			return filepath.Join(dir, "sub", "more")
		},
		"a submodule": func(t *testing.T, dir string) string {
			other := t.TempDir()
			commit(t, other)
			commit(t, dir)
			git(t, dir, "submodule", "--quiet", "add", other, "module")
			return filepath.Join(dir, "module")
		},
		"a link into it": func(t *testing.T, dir string) string {
			commit(t, dir)
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(filepath.Join(dir, "sub"), link); err != nil {
				t.Skip(err)
			}
			return link
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "it is [one]")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			at := prepare(t, dir)
			write(t, filepath.Join(at, "new"), "")
			write(t, filepath.Join(at, "y.ignored"), "")
			tree, err := Open(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			// The user's list of ignored files must count, and HOME is what git looks at.
			args := []string{"ls-files", "-z", "--cached", "--others", "--exclude-standard"}
			got, err := tree.Output(t.Context(), nil, args...)
			if want := git(t, at, args...); err != nil || string(got) != want || !strings.Contains(want, "new") || strings.Contains(want, "y.ig") {
				t.Errorf("%q, want %q, %v", got, want, err)
			}
			want := ""
			if name != "before a commit" {
				want = git(t, at, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", "--")
			}
			if tree.Commit != want {
				t.Errorf("commit %q, want %q", tree.Commit, want)
			}
			if branch := git(t, at, "branch", "--show-current"); tree.Branch != branch {
				t.Errorf("branch %q, want %q", tree.Branch, branch)
			}
			if top := git(t, at, "rev-parse", "--show-toplevel"); !same(top, tree.Top) {
				t.Errorf("root %s, want %s", tree.Top, top)
			}
			if err := tree.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "acp-git-*")); len(left) > 0 || err != nil {
		t.Errorf("%q are left, %v", left, err)
	}
}

// TestTemporary: what git is given is not taken for files of the work tree, wherever temporary files are.
func TestTemporary(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	for _, tmp := range []string{dir, filepath.Join(dir, "a [b]", "tmp")} {
		write(t, filepath.Join(tmp, "x"), "")
		t.Setenv("TMPDIR", tmp)
		tree, err := Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tree.Output(t.Context(), nil, "ls-files", "--others", "--exclude-standard")
		if err != nil || strings.Contains(string(got), prefix) || !strings.Contains(string(got), "x\n") {
			t.Errorf("%q, %v", got, err)
		}
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNone: what is not a work tree is not read.
func TestNone(t *testing.T) {
	for name, prepare := range map[string]func(dir string){
		"nothing":       func(string) {},
		"a file":        func(dir string) { write(t, filepath.Join(dir, ".git"), "gitdir: ./nowhere\n") },
		"another file":  func(dir string) { write(t, filepath.Join(dir, ".git"), "x\n") },
		"empty":         func(dir string) { write(t, filepath.Join(dir, ".git", "x"), "") },
		"long settings": func(dir string) { write(t, filepath.Join(dir, ".git", "config"), strings.Repeat("\n", maxSmall+1)) },
		"a bare one": func(dir string) {
			write(t, filepath.Join(dir, "HEAD"), "ref: refs/heads/x\n")
			write(t, filepath.Join(dir, "config"), "")
			write(t, filepath.Join(dir, "objects", "x"), "")
			write(t, filepath.Join(dir, "refs", "x"), "")
		},
	} {
		dir := t.TempDir()
		prepare(dir)
		if tree, err := Open(t.Context(), dir); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v, %v", name, tree, err)
		}
	}
}

// TestOnly: nothing else in the program runs git, but what makes releases.
func TestOnly(t *testing.T) {
	runs := regexp.MustCompile(`exec\.Command(Context)?\((\w+, )?"git"`)
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "gitread/") || strings.HasPrefix(path, "release/") {
			return err
		}
		data, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(path)))
		if runs.Match(data) {
			t.Errorf("%s runs git by itself", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
