// Package gitread asks git about the files of a work tree without running any program that the settings of git name.
//
// A work tree may come from anybody, and its settings name programs in many ways: filters, a monitor of the file system,
// the upload pack of a partial clone, and more with each version of git. So git never sees them. It gets a directory of
// its own as the git directory, whose settings are written here, from a short list of those that are values, and reads
// the objects and the index of the work tree. The settings of the user and of the system, and the variables of the
// environment that begin with GIT_, are left out in the same way.
//
// Without filters, git compares files as they are stored.
package gitread

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// MaxOutput bounds what [Tree.Output] returns, in bytes.
const MaxOutput = 4 << 20

// The bounds of what is read of a git directory.
const (
	maxUp    = 256      // directories above the first
	maxSmall = 64 << 10 // bytes of a file with one line, and of settings
	maxList  = 1 << 20  // bytes of the lists of ignored files and of attributes
	maxRefs  = 64 << 20
	maxChain = 5 // references that name another one
)

// prefix begins the names of the directories that git is given.
const prefix = "acp-git-"

// ErrNone means that a directory is not in a git work tree that can be read.
var ErrNone = errors.New("not in a git work tree")

// A Tree is a git work tree. Several goroutines may use it at the same time. Callers must close it.
type Tree struct {
	// Top is the root of the work tree. It begins with the path that Open was given.
	Top string
	// Commit is the name of the commit that is checked out, or "" before the first.
	Commit string
	// Branch is the branch that is checked out, or "" if there is none, or only git can tell.
	Branch string

	dir string // where commands run
	own string // the git directory that git is given
	env []string
}

// Open opens the work tree that contains a directory. It is that of the nearest .git above: a directory that is itself
// laid out like a git directory, as a bare repository within another one, is not one. The error is [ErrNone] if there is
// no work tree, or no git. The settings of the tree are read once, within the time of ctx.
func Open(ctx context.Context, dir string) (*Tree, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	top, gitDir, err := find(dir)
	if err != nil {
		return nil, err
	}
	common := gitDir
	if to, err := small(filepath.Join(gitDir, "commondir")); err == nil {
		common = beside(gitDir, to)
	}
	own, err := os.MkdirTemp("", prefix+"*")
	if err != nil {
		return nil, err
	}
	t := &Tree{Top: top, dir: dir, own: own}
	t.env = environment(own, "GIT_DIR="+own, "GIT_WORK_TREE="+top, "GIT_OBJECT_DIRECTORY="+filepath.Join(common, "objects"),
		"GIT_INDEX_FILE="+filepath.Join(gitDir, "index"))
	if err := t.fill(ctx, program, gitDir, common); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Close removes what git was given to read the tree. Commands fail afterwards.
func (t *Tree) Close() error { return os.RemoveAll(t.own) }

// fill writes the git directory that git is given.
func (t *Tree) fill(ctx context.Context, program, gitDir, common string) error {
	for _, d := range []string{"refs", "info"} {
		if err := os.Mkdir(filepath.Join(t.own, d), 0o700); err != nil {
			return err
		}
	}
	err := errors.Join(os.WriteFile(filepath.Join(t.own, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600),
		os.WriteFile(filepath.Join(t.own, "config"), nil, 0o600))
	if err != nil {
		return err
	}
	for _, list := range []string{"exclude", "attributes"} {
		data, _ := readFile(filepath.Join(common, "info", list), maxList)
		if list == "exclude" {
			data = append(data, t.unseen()...)
		}
		if err := os.WriteFile(filepath.Join(t.own, "info", list), data, 0o600); err != nil {
			return err
		}
	}
	shared, err := filepath.Glob(filepath.Join(escapeGlob(gitDir), "sharedindex.*")) // of a split index
	for _, s := range shared {
		err = errors.Join(err, os.Symlink(s, filepath.Join(t.own, filepath.Base(s))))
	}
	if err != nil {
		return err
	}
	config, tables, err := t.settings(ctx, program, filepath.Join(common, "config"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(t.own, "config"), config, 0o600); err != nil {
		return err
	}
	t.Commit, err = t.head(ctx, gitDir, common, tables)
	return err
}

// unseen returns the line of a list of ignored files that leaves out what git is given, and what it is given for others:
// temporary files may be in the work tree.
func (t *Tree) unseen() string {
	own, err := filepath.EvalSymlinks(filepath.Dir(t.own))
	top, failed := filepath.EvalSymlinks(t.Top)
	if err != nil || failed != nil {
		return ""
	}
	rel, err := filepath.Rel(top, own)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	rel = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(filepath.ToSlash(rel))
	return "\n/" + strings.TrimPrefix(rel+"/", "./") + prefix + "*/\n"
}

// values are the settings that are told to git: none names a program or a file.
var values = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(core|extensions)\.(filemode|symlinks|ignorecase|precomposeunicode|trustctime|checkstat` +
		`|autocrlf|eol|sparsecheckout|sparsecheckoutcone|objectformat)\n([a-zA-Z0-9]*)$`)
})

// settings returns the settings that git is given: of the user and the system, then those of the repository, whose
// settings are in file. Listing settings runs nothing. tables says that references are not kept in files.
func (t *Tree) settings(ctx context.Context, program, file string) (config []byte, tables bool, err error) {
	b := bytes.NewBufferString("[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tfsmonitor = false\n\tuntrackedcache = false\n")
	under := os.Getenv("XDG_CONFIG_HOME")
	if under == "" {
		under = home("~/.config")
	}
	path := func(key, path string) {
		if !strings.ContainsAny(path, "\"\\\n") {
			fmt.Fprintf(b, "[core]\n\t%s = \"%s\"\n", key, path)
		}
	}
	path("excludesfile", filepath.ToSlash(filepath.Join(under, "git", "ignore")))
	path("attributesfile", filepath.ToSlash(filepath.Join(under, "git", "attributes")))
	list := func(env []string, stdin []byte, args ...string) (entries []string) {
		cmd := exec.CommandContext(ctx, program, append([]string{"--no-pager", "config", "--list", "-z"}, args...)...)
		cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = t.own, env, bytes.NewReader(stdin), time.Second
		out, _ := cmd.Output() // where it fails the defaults hold
		for entry := range strings.SplitSeq(string(out), "\x00") {
			if m := values().FindStringSubmatch(entry); m != nil {
				fmt.Fprintf(b, "[%s]\n\t%s = %s\n", m[1], m[2], m[3])
			}
			entries = append(entries, entry)
		}
		return entries
	}
	for _, entry := range list(environment("", "GIT_DIR="+t.own), nil) {
		switch key, value, _ := strings.Cut(entry, "\n"); key {
		case "core.excludesfile", "core.attributesfile":
			path(strings.TrimPrefix(key, "core."), home(value))
		}
	}
	data, err := readFile(file, maxSmall)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrNone, err)
	}
	tables = slices.Contains(list(t.env, data, "--no-includes", "--file", "-"), "extensions.refstorage\nreftable")
	return b.Bytes(), tables, context.Cause(ctx)
}

// head returns the commit that is checked out, or "".
func (t *Tree) head(ctx context.Context, gitDir, common string, tables bool) (string, error) {
	if tables { // a form that only git reads; finding a reference runs nothing
		cmd := t.Command(ctx, "rev-parse", "--verify", "--quiet", "HEAD")
		cmd.Env = environment(t.own, "GIT_DIR="+gitDir)
		out, _ := cmd.Output()
		return commit(string(out)), nil
	}
	ref := "HEAD"
	for range maxChain {
		where := common
		if ref == "HEAD" {
			where = gitDir
		}
		text, err := small(filepath.Join(where, filepath.FromSlash(ref)))
		if err != nil {
			if ref == "HEAD" {
				return "", fmt.Errorf("%w: %w", ErrNone, err)
			}
			return packed(filepath.Join(common, "packed-refs"), ref), nil
		}
		to, ok := strings.CutPrefix(text, "ref:")
		if !ok {
			return commit(text), nil
		}
		if ref = strings.TrimSpace(to); !strings.HasPrefix(ref, "refs/") || !filepath.IsLocal(filepath.FromSlash(ref)) {
			return "", nil
		}
		if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok && t.Branch == "" {
			t.Branch = branch
		}
	}
	return "", nil
}

// packed returns the commit of a reference in a list of them, or "".
func packed(file, ref string) string {
	data, err := readFile(file, maxRefs)
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(data) {
		if name, of, ok := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte{' '}); ok && string(of) == ref {
			return commit(string(name))
		}
	}
	return ""
}

var name = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`) })

// commit returns the name of an object if text is one, and "" otherwise.
func commit(text string) string {
	if text = strings.TrimSpace(text); name().MatchString(text) {
		return text
	}
	return ""
}

// Command returns a command of git that runs in the directory that Open was given. It changes nothing in the repository.
func (t *Tree) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-pager", "--no-optional-locks", "--no-replace-objects"}, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = t.dir, t.env, time.Second
	return cmd
}

// Output runs a command of git and returns its output. More than [MaxOutput] is an error, as is a command that fails.
func (t *Tree) Output(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	cmd := t.Command(ctx, args...)
	cmd.Stdin = stdin
	var problem bytes.Buffer
	cmd.Stderr = &problem
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(pipe, MaxOutput+1))
	long := len(out) > MaxOutput
	_, _ = io.Copy(io.Discard, pipe)
	if failed := cmd.Wait(); failed != nil {
		line, _, _ := strings.Cut(problem.String(), "\n")
		return nil, fmt.Errorf("git %s: %w: %s", args[0], failed, line)
	}
	if long {
		return nil, fmt.Errorf("git %s: more than %d MB of paths", args[0], MaxOutput>>20)
	}
	return out, err
}

// environment returns the environment of a command of git: this process's without what concerns git, and more. own is
// used as the home directory unless it is "".
func environment(own string, more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		return strings.HasPrefix(name, "GIT_") || name == "SSH_ASKPASS" || name == "PAGER" || name == "LC_ALL"
	})
	env = append(env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none")
	if own != "" {
		env = append(env, "HOME="+own, "XDG_CONFIG_HOME="+own, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_ATTR_NOSYSTEM=1")
	}
	return append(env, more...)
}

// find returns the root of the work tree that contains a directory, and its git directory.
func find(dir string) (top, gitDir string, err error) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "", "", err
	}
	top, up := real, dir
	for range maxUp {
		at := filepath.Join(top, ".git")
		info, err := os.Stat(at)
		if err == nil {
			if !info.IsDir() { // of a submodule, or of a further work tree
				text, _ := small(at)
				to, ok := strings.CutPrefix(text, "gitdir:")
				if !ok {
					return "", "", fmt.Errorf("%w: %s names no git directory", ErrNone, at)
				}
				at = beside(top, strings.TrimSpace(to))
			}
			if same(up, top) { // as the caller names it
				top = up
			}
			return top, at, nil
		}
		next := filepath.Dir(top)
		if next == top {
			break
		}
		top, up = next, filepath.Join(up, "..")
	}
	return "", "", ErrNone
}

// same reports whether two paths name one directory.
func same(a, b string) bool {
	x, err := os.Stat(a)
	y, failed := os.Stat(b)
	return err == nil && failed == nil && os.SameFile(x, y)
}

// beside returns a path that is relative to a directory, unless it is absolute.
func beside(dir, path string) string {
	if path = filepath.FromSlash(path); filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// home returns a path with the home directory in place of a tilde.
func home(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if h, err := os.UserHomeDir(); err == nil {
			return filepath.ToSlash(filepath.Join(h, rest))
		}
	}
	return path
}

// small returns the text of a file with one line.
func small(path string) (string, error) {
	data, err := readFile(path, maxSmall)
	return strings.TrimSpace(string(data)), err
}

// readFile reads a regular file of at most max bytes.
func readFile(path string, max int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > max {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file, or too long")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, max))
}

// escapeGlob returns a path that matches itself.
func escapeGlob(path string) string {
	if runtime.GOOS == "windows" {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
