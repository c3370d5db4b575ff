// Package mention finds the files of a project that a prompt can mention, for completion after @: in a terminal, and in
// a gateway for its clients.
package mention

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/bounded"
	"github.com/goacp/acp/cmd/acp/internal/gitread"
	"github.com/sahilm/fuzzy"
)

// The bounds of the list of a project's files.
const (
	// MaxFiles bounds the files, the directories, and the entries that a walk looks at.
	MaxFiles = 200_000
	// MaxBytes bounds the names of files, and those of directories, in bytes.
	MaxBytes = 16 << 20
	// MaxTime bounds how long it takes to list them.
	MaxTime = 2 * time.Second
)

// List lists the files of a project, relative to its directory and with slashes, and their directories, which end in a
// slash. In a git repository these are the files that git does not ignore; elsewhere they come from a walk that leaves
// out hidden and well-known generated directories. It stops after [MaxFiles] files, [MaxBytes] or [MaxTime].
//
// A repository may be made such that git lists names of another one. Call [Walk] for a directory of somebody who must not
// see these.
func List(ctx context.Context, dir string) []string {
	ctx, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	files, ok := gitFiles(ctx, dir)
	if !ok {
		files = walkFiles(ctx, os.DirFS(dir))
	}
	return sorted(files)
}

// IsCut reports whether a list that [List] or [Walk] has returned ends at a bound of their number or their names.
func IsCut(files []string) bool {
	n, size := 0, 0
	for _, f := range files {
		if !strings.HasSuffix(f, "/") {
			n++
			size += len(f) + 1
		}
	}
	return n >= MaxFiles || size >= MaxBytes-maxName
}

// maxName is about how long the name of a file can be, in bytes.
const maxName = 4096

// Walk lists the files of a directory as [List] does elsewhere than in a git repository. It follows no link out of the
// directory. check is called with the path of the directory without links, once that is open; it returns why nothing is
// listed, or nil. If ctx ends, Walk fails with its cause.
func Walk(ctx context.Context, dir string, check func(real string) error) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		err = check(real)
	}
	if err != nil {
		return nil, err
	}
	there, err := os.Lstat(real)
	if err != nil {
		return nil, err
	}
	here, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	if !os.SameFile(there, here) {
		return nil, fmt.Errorf("the directory %s is being replaced: %w", dir, errReplaced)
	}
	bound, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	files := walkFiles(bound, root.FS())
	if ctx.Err() != nil { // nobody knows what is missing
		return nil, context.Cause(ctx)
	}
	return sorted(files), nil
}

var errReplaced = errors.New("it is not the one that was opened")

// Find returns the files that match a query fuzzily, best first, at most n of them that use accepts; without a query the
// first ones.
func Find(query string, files []string, n int, use func(file string) bool) (found []string) {
	add := func(file string) (full bool) {
		if len(found) < n && use(file) {
			found = append(found, file)
		}
		return len(found) >= n
	}
	if query == "" {
		for _, f := range files {
			if add(f) {
				break
			}
		}
		return found
	}
	for _, f := range fuzzy.Find(query, files) {
		if add(f.Str) {
			break
		}
	}
	return found
}

// sorted returns files and their directories as they are offered.
func sorted(files []string) []string {
	files = append(files, directories(files)...)
	sort.Slice(files, func(i, j int) bool { return Less(files[i], files[j]) })
	return files
}

// directories returns the directories of files, each with a slash at its end.
func directories(files []string) []string {
	var dirs []string
	seen, size := map[string]bool{}, 0
	for _, f := range files {
		for i := strings.LastIndexByte(f, '/'); i > 0; i = strings.LastIndexByte(f[:i], '/') {
			dir := f[:i+1]
			if size += len(dir); seen[dir] || len(dirs) == MaxFiles || size > MaxBytes {
				size -= len(dir)
				break
			}
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Less orders files as they are offered: hidden ones last, and otherwise those that are nearer
// first.
func Less(a, b string) bool {
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

// gitFiles lists the files that git knows and those that it does not ignore. It reports false if
// dir is not in a git repository.
func gitFiles(ctx context.Context, dir string) ([]string, bool) {
	tree, err := gitread.Open(ctx, dir)
	if err != nil {
		return nil, false
	}
	defer func() { _ = tree.Close() }()
	cmd := tree.Command(ctx, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	out := &bounded.Buffer{Max: MaxBytes}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil && !out.Full {
		return nil, false
	}
	var files []string
	for name := range bytes.SplitSeq(out.Bytes(), []byte{0}) {
		if len(name) > 0 {
			files = append(files, string(name))
		}
		if len(files) == MaxFiles {
			break
		}
	}
	return files, true
}

// skipped are directories whose files users do not mention in prompts.
var skipped = map[string]bool{"node_modules": true, "vendor": true, "target": true, "__pycache__": true}

// walkFiles lists files by walking a directory. What it has found when ctx ends is the result.
func walkFiles(ctx context.Context, dir fs.FS) []string {
	var files []string
	seen, size := 0, 0
	_ = fs.WalkDir(dir, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil || seen == MaxFiles:
			return fs.SkipAll
		case err != nil:
			return nil // a directory that cannot be read is left out
		case file == ".":
			return nil
		}
		seen++
		name := path.Base(file)
		if d.IsDir() {
			if strings.HasPrefix(name, ".") || skipped[name] {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasPrefix(name, ".") {
			if size += len(file); size > MaxBytes {
				return fs.SkipAll
			}
			files = append(files, file)
		}
		return nil
	})
	return files
}
