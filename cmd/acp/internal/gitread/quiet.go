package gitread

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrLoud means that git could not be kept from running a program, or from reading other directories.
var ErrLoud = errors.New("git may run what the settings of the repository name")

// quiet are settings that keep commands of git which only read from running and writing anything.
var quiet = [][2]string{
	{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}, {"core.pager", "cat"}, {"core.attributesFile", os.DevNull}, {"core.sshCommand", "false"},
	{"core.askPass", ""}, {"core.editor", "false"}, {"core.untrackedCache", "false"}, {"log.showSignature", "false"}, {"gpg.program", "false"}, {"gpg.ssh.program", "false"},
	{"gpg.x509.program", "false"}, {"gpg.openpgp.program", "false"}, {"credential.helper", ""}, {"diff.autoRefreshIndex", "false"}, {"diff.submodule", "short"},
	{"diff.ignoreSubmodules", "all"}, {"status.submoduleSummary", "false"}, {"submodule.recurse", "false"}, {"protocol.allow", "never"}, {"gc.auto", "0"}, {"maintenance.auto", "false"},
	{"safe.bareRepository", "explicit"},
}

// loud are settings that name programs, or other directories, under names of their own, so that no other setting takes
// them away.
var loud = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(filter\..*\.(clean|smudge|process)|diff\.external|diff\..*\.(command|textconv)|submodule\..*\.ignore` +
		`|core\.(worktree|gitproxy|alternaterefscommand)|extensions\.partialclone|hook\..*\.command|trailer\..*\.(cmd|command)|remote\..*\.(promisor|vcs|uploadpack)|include(if\..*)?\.path)$`)
})

// kept are names in a git directory that must not lead elsewhere.
var kept = []string{"HEAD", "config", "index", "refs", "objects", "packed-refs", "logs", "info", "modules", "worktrees"}

// Quiet returns variables of the environment with which commands of git that only read, in a directory, run no program
// and write no file, whatever the settings of the repository are; the settings of the user and the system are left out,
// but for the list of ignored files. The repository must lie in one of some directories, which are absolute and without
// links. The error is [ErrLoud] if that cannot be had: settings name a program in a way that cannot be taken back, or
// there are submodules, which have settings of their own. Without a repository git has nothing to run.
func Quiet(ctx context.Context, dir string, within []string) ([]string, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, nil // there is nothing to run
	}
	inside := func(path string) bool {
		real, err := filepath.EvalSymlinks(path)
		return err == nil && slices.ContainsFunc(within, func(d string) bool {
			rel, err := filepath.Rel(d, real)
			return err == nil && filepath.IsLocal(rel)
		})
	}
	top, gitDir, err := find(dir)
	if isBare(dir, top) {
		return nil, fmt.Errorf("%w: it is a bare repository", ErrLoud)
	}
	if err != nil {
		return quietEnv(ctx, program), nil
	}
	if !inside(top) {
		return nil, fmt.Errorf("%w: it lies outside of the session's directories", ErrLoud)
	}
	if err := ownDir(top, gitDir, inside); err != nil {
		return nil, err
	}
	env := quietEnv(ctx, program)
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(environment("", env...), "LC_ALL=C"), time.Second
		return cmd.Output()
	}
	list, err := run("config", "--list", "-z")
	if err != nil {
		return nil, fmt.Errorf("%w: they cannot be read: %w", ErrLoud, err)
	}
	last := map[string]string{}
	for entry := range strings.SplitSeq(string(list), "\x00") {
		key, value, _ := strings.Cut(entry, "\n")
		if loud().MatchString(key) {
			return nil, fmt.Errorf("%w: %s", ErrLoud, key)
		}
		last[strings.ToLower(key)] = value
	}
	for _, q := range quiet { // this git may be too old to hear them
		if value, ok := last[strings.ToLower(q[0])]; !ok || value != q[1] {
			return nil, fmt.Errorf("%w: it does not take settings from its environment", ErrLoud)
		}
	}
	files, err := run("ls-files", "--stage", "-z")
	if err != nil || bytes.HasPrefix(files, []byte("160000 ")) || bytes.Contains(files, []byte("\x00160000 ")) {
		return nil, fmt.Errorf("%w: it has submodules", ErrLoud)
	}
	return env, nil
}

// quietEnv returns the variables themselves.
func quietEnv(ctx context.Context, program string) []string {
	all := slices.Clone(quiet)
	cmd := exec.CommandContext(ctx, program, "config", "--global", "--type=path", "core.excludesFile")
	cmd.Dir, cmd.Env, cmd.WaitDelay = os.TempDir(), environment(""), time.Second
	if out, err := cmd.Output(); err == nil && len(bytes.TrimSpace(out)) > 0 {
		all = append(all, [2]string{"core.excludesFile", strings.TrimSpace(string(out))})
	}
	env := []string{
		"GIT_PAGER=cat", "PAGER=cat", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1", "GIT_EDITOR=false", fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(all)),
	}
	for i, q := range all {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, q[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, q[1]))
	}
	return env
}

// ownDir returns an error unless a git directory is that of a work tree, and does not lead out of what is inside. That of
// a further work tree may lie elsewhere if it names the tree, as git has it.
func ownDir(top, gitDir string, inside func(string) bool) error {
	elsewhere := fmt.Errorf("%w: its git directory leads elsewhere", ErrLoud)
	dirs := []string{gitDir}
	if to, err := small(filepath.Join(gitDir, "commondir")); err == nil {
		common := beside(gitDir, to)
		back, err := small(filepath.Join(gitDir, "gitdir"))
		if err != nil || !same(filepath.Join(common, "worktrees"), filepath.Dir(gitDir)) || !same(back, filepath.Join(top, ".git")) {
			return elsewhere
		}
		dirs = append(dirs, common)
	} else if !inside(gitDir) {
		return elsewhere
	}
	for _, d := range dirs {
		for _, name := range kept {
			if info, err := os.Lstat(filepath.Join(d, name)); err == nil && info.Mode()&os.ModeSymlink != 0 {
				return elsewhere
			}
		}
		if data, err := readFile(filepath.Join(d, "objects", "info", "alternates"), maxSmall); err == nil && len(bytes.TrimSpace(data)) > 0 {
			return elsewhere
		}
	}
	return nil
}

// isBare reports whether git takes a directory, or one above it and below top, for a repository itself.
func isBare(dir, top string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true
	}
	for range maxUp {
		if same(real, top) {
			return false
		}
		_, head := os.Lstat(filepath.Join(real, "HEAD"))
		_, objects := os.Lstat(filepath.Join(real, "objects"))
		_, refs := os.Lstat(filepath.Join(real, "refs"))
		if head == nil && objects == nil && refs == nil {
			return true
		}
		next := filepath.Dir(real)
		if next == real {
			return false
		}
		real = next
	}
	return true
}
