package tui

import (
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/mention"
)

type filesMsg struct{ files []string }

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
		return mention.Less(strings.TrimPrefix(msg.entries[i], dir), strings.TrimPrefix(msg.entries[j], dir))
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
