package tui

import (
	"bytes"
	"context"
	"io/fs"
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
	sort.Slice(files, func(i, j int) bool {
		a, b := strings.Count(files[i], "/"), strings.Count(files[j], "/")
		if a != b {
			return a < b
		}
		return files[i] < files[j]
	})
	return files
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
