package tui

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// The bounds of the list of a project's files.
const (
	maxFiles  = 20000
	filesTime = 2 * time.Second
)

type filesMsg struct{ files []string }

// listFiles lists the files of a project, relative to its directory and with slashes. In a git
// repository these are the files that git does not ignore; elsewhere they come from a walk that
// leaves out hidden and well-known generated directories. It stops after maxFiles files or
// filesTime.
func listFiles(ctx context.Context, dir string) []string {
	ctx, cancel := context.WithTimeout(ctx, filesTime)
	defer cancel()
	files, ok := gitFiles(ctx, dir)
	if !ok {
		files = walkFiles(ctx, dir)
	}
	files = append(files, directories(files)...)
	sort.Slice(files, func(i, j int) bool { return lessFile(files[i], files[j]) })
	return files
}

// directories returns the directories of files, each with a slash at its end.
func directories(files []string) []string {
	var dirs []string
	seen := map[string]bool{}
	for _, f := range files {
		for i := strings.LastIndexByte(f, '/'); i > 0; i = strings.LastIndexByte(f[:i], '/') {
			dir := f[:i+1]
			if seen[dir] || len(dirs) == maxFiles {
				break
			}
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// lessFile orders files as they are offered: hidden ones last, and otherwise those that are nearer
// first.
func lessFile(a, b string) bool {
	hidden := func(path string) bool { return path[0] == '.' || strings.Contains(path, "/.") }
	if x, y := hidden(a), hidden(b); x != y {
		return y
	}
	x, y := strings.Count(strings.TrimSuffix(a, "/"), "/"), strings.Count(strings.TrimSuffix(b, "/"), "/")
	if x != y {
		return x < y
	}
	return a < b
}

// maxEntries bounds the entries of a directory that are read for completion.
const maxEntries = 2000

// dirMsg is what a directory outside of the list of files contains.
type dirMsg struct {
	dir     string // as the user has typed it
	entries []string
}

// isPath reports whether a mention names a file by its path, and not by what its name contains.
func isPath(query string) bool {
	for _, p := range []string{"/", "~/", "./", "../"} {
		if strings.HasPrefix(query, p) {
			return true
		}
	}
	return query == "~" || query == ".."
}

// typedDir returns the directory of a typed path, with its slash.
func typedDir(path string) string {
	if path == "~" || path == ".." {
		return path + "/"
	}
	return path[:strings.LastIndexByte(path, '/')+1]
}

// readDir reads a typed directory.
func readDir(cwd, dir string) dirMsg {
	msg := dirMsg{dir: dir}
	f, err := os.Open(resolve(cwd, dir))
	if err != nil {
		return msg
	}
	defer f.Close()
	all, _ := f.ReadDir(maxEntries) // what was read is offered
	for _, e := range all {
		name := dir + e.Name()
		isDir := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			if info, err := os.Stat(resolve(cwd, name)); err == nil {
				isDir = info.IsDir()
			}
		}
		if isDir {
			name += "/"
		}
		msg.entries = append(msg.entries, name)
	}
	sort.Slice(msg.entries, func(i, j int) bool {
		return lessFile(strings.TrimPrefix(msg.entries[i], dir), strings.TrimPrefix(msg.entries[j], dir))
	})
	return msg
}

// resolve returns the absolute path of a typed one.
func resolve(cwd, path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, path[1:])
		}
	}
	if !filepath.IsAbs(path) {
		return filepath.Join(cwd, path)
	}
	return path
}

// gitFiles lists the files that git knows and those that it does not ignore. It reports false if
// dir is not in a git repository.
func gitFiles(ctx context.Context, dir string) ([]string, bool) {
	// The project may not be trusted, so its git settings must not start programs.
	cmd := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false",
		"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	out := &bounded{max: 4 << 20}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil && !out.full {
		return nil, false
	}
	var files []string
	for name := range bytes.SplitSeq(out.buf.Bytes(), []byte{0}) {
		if len(name) > 0 {
			files = append(files, string(name))
		}
		if len(files) == maxFiles {
			break
		}
	}
	return files, true
}

// A bounded buffer drops everything beyond its bound.
type bounded struct {
	buf  bytes.Buffer
	max  int
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.max - b.buf.Len(); room < len(p) {
		b.full = true
		b.buf.Write(p[:max(0, room)])
		return len(p), nil
	}
	return b.buf.Write(p)
}

// skipped are directories whose files users do not mention in prompts.
var skipped = map[string]bool{"node_modules": true, "vendor": true, "target": true, "__pycache__": true}

// walkFiles lists files by walking the directory. What it has found when ctx ends is the result.
func walkFiles(ctx context.Context, dir string) []string {
	var files []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil || len(files) == maxFiles:
			return filepath.SkipAll
		case err != nil:
			return nil // a directory that cannot be read is left out
		case path == dir:
			return nil
		}
		name := d.Name()
		if d.IsDir() {
			if strings.HasPrefix(name, ".") || skipped[name] {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasPrefix(name, ".") {
			return nil
		}
		if rel, err := filepath.Rel(dir, path); err == nil {
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	return files
}
