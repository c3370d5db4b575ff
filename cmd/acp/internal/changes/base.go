package changes

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The bounds of what Git is asked for.
const (
	gitTime  = 10 * time.Second
	gitBytes = 4 << 20 // of a list of paths
	// A Base keeps the content of files that had changes already.
	maxKept     = 200
	maxKeptText = 4 << 20
)

// A Base is what Git knew of a work tree at one time. It never changes, and any goroutine may use
// it.
type Base struct {
	top    string           // the root of the work tree
	commit string           // "" before the first
	kept   map[string]state // files that were not as in the commit, by absolute path
}

// TakeBase returns the present state of the Git work tree that contains dir. It is nil without an
// error if there is none, or if there is no Git.
func TakeBase(ctx context.Context, dir string) (*Base, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	// The way up, and not the root, which Git tells without the links in its path.
	up, err := git(ctx, dir, "rev-parse", "--show-cdup")
	if err != nil {
		return nil, nil
	}
	b := &Base{top: filepath.Join(dir, filepath.FromSlash(strings.TrimRight(string(up), "\n"))), kept: map[string]state{}}
	if commit, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD"); err == nil {
		b.commit = strings.TrimSpace(string(commit))
	}
	dirty, err := b.differs(ctx)
	if err != nil {
		return nil, err
	}
	room := maxKeptText
	for i, path := range dirty {
		s := read(path)
		if room -= len(s.text); i >= maxKept || room < 0 {
			s = state{exists: s.exists, opaque: "had too many changes before the session"}
		}
		b.kept[path] = s
	}
	return b, nil
}

// differs returns the absolute paths of the files that are not as in the commit, and of those that
// Git does not know and does not ignore.
func (b *Base) differs(ctx context.Context) ([]string, error) {
	var out []byte
	if b.commit != "" {
		changed, err := git(ctx, b.top, "diff", "--name-only", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules", "-z", b.commit, "--")
		if err != nil {
			return nil, err
		}
		out = changed
	}
	others := []string{"ls-files", "--others", "--exclude-standard", "-z"}
	if b.commit == "" {
		others = append(others, "--cached")
	}
	unknown, err := git(ctx, b.top, others...)
	if err != nil {
		return nil, err
	}
	var paths []string
	for name := range bytes.SplitSeq(append(out, unknown...), []byte{0}) {
		if len(name) > 0 && name[len(name)-1] != '/' { // a directory is a repository of its own
			paths = append(paths, filepath.Join(b.top, filepath.FromSlash(string(name))))
		}
	}
	return paths, nil
}

// changed returns the files that are no longer as they were, as they were.
func (b *Base) changed(ctx context.Context) (map[string]state, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	now, err := b.differs(ctx)
	if err != nil {
		return nil, err
	}
	was := map[string]state{}
	var ask []string
	seen := map[string]bool{}
	for _, path := range now {
		seen[path] = true
		if s, ok := b.kept[path]; ok {
			if s.opaque != "" || read(path) != s {
				was[path] = s
			}
			continue
		}
		ask = append(ask, path)
	}
	for path, s := range b.kept { // it is as in the commit now
		if !seen[path] {
			was[path] = s
		}
	}
	if len(ask) > maxFiles {
		ask, err = ask[:maxFiles], fmt.Errorf("%d files have changed; only the first %d are compared", len(ask), maxFiles)
	}
	states, failed := b.committed(ctx, ask)
	for path, s := range states {
		was[path] = s
	}
	if failed != nil {
		err = failed
	}
	return was, err
}

// committed returns files as they are in the commit.
func (b *Base) committed(ctx context.Context, paths []string) (map[string]state, error) {
	was := map[string]state{}
	if b.commit == "" {
		for _, path := range paths {
			was[path] = state{}
		}
		return was, nil
	}
	var names strings.Builder
	var asked []string
	for _, path := range paths {
		rel, err := filepath.Rel(b.top, path)
		if err != nil || strings.Contains(rel, "\n") {
			continue
		}
		asked = append(asked, path)
		names.WriteString(b.commit + ":" + filepath.ToSlash(rel) + "\n")
	}
	if len(asked) == 0 {
		return was, nil
	}
	cmd := gitCommand(ctx, b.top, "cat-file", "--batch")
	cmd.Stdin = strings.NewReader(names.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		return was, err
	}
	if err := cmd.Start(); err != nil {
		return was, err
	}
	r := bufio.NewReader(out)
	for _, path := range asked {
		s, err := batched(r)
		if err != nil {
			break
		}
		was[path] = s
	}
	_, _ = io.Copy(io.Discard, r)
	return was, cmd.Wait()
}

// batched reads one answer of git cat-file --batch.
func batched(r *bufio.Reader) (state, error) {
	head, err := r.ReadString('\n')
	if err != nil {
		return state{}, err
	}
	if strings.HasSuffix(head, " missing\n") {
		return state{}, nil
	}
	words := strings.Fields(head)
	if len(words) != 3 {
		return state{}, fmt.Errorf("git cat-file answered %q", head)
	}
	n, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return state{}, err
	}
	data, err := io.ReadAll(io.LimitReader(r, min(n, maxText+1)))
	if err != nil {
		return state{}, err
	}
	if _, err := io.CopyN(io.Discard, r, n-int64(len(data))+1); err != nil {
		return state{}, err
	}
	if words[1] != "blob" {
		return state{exists: true, opaque: "not a regular file"}, nil
	}
	return content(data), nil
}

// gitCommand returns a command of Git. The project may not be trusted, so its settings must not
// start programs, and looking must not disturb the user's own commands.
func gitCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "core.quotePath=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	return cmd
}

func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := gitCommand(ctx, dir, args...)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(pipe, gitBytes+1))
	long := len(out) > gitBytes
	_, _ = io.Copy(io.Discard, pipe)
	if failed := cmd.Wait(); failed != nil {
		line, _, _ := strings.Cut(problem.String(), "\n")
		return nil, fmt.Errorf("git %s: %w: %s", args[0], failed, line)
	}
	if long {
		return nil, fmt.Errorf("git %s: more than %d MB of paths", args[0], gitBytes>>20)
	}
	return out, err
}
