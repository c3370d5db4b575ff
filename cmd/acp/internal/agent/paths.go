package agent

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/goacp/acp"
)

// A place is a file or directory that a command names.
type place struct {
	path   string // absolute
	real   string // where that leads
	shown  string // for people: relative to the session's directory if it is in there
	inside bool   // it is in a directory of the session, whatever links say
}

// locate finds out what a path means in the session and whether it is inside. A
// path may be relative to the working directory, absolute, or a file: address.
func (s *session) locate(name string) (place, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return place{}, errors.New("the path is empty or has a character that no path has")
	}
	if path, ok := filePath(name); ok {
		name = path
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(s.acp.Cwd(), name)
	}
	p := place{path: filepath.Clean(name)}
	p.shown = p.path
	if rel, err := filepath.Rel(s.acp.Cwd(), p.path); err == nil && filepath.IsLocal(rel) {
		p.shown = rel
	}
	real, err := realPath(p.path)
	if err != nil {
		return place{}, err
	}
	p.real = real
	for _, root := range s.roots() {
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(root, real); err == nil && filepath.IsLocal(rel) {
			p.inside = true
		}
	}
	return p, nil
}

// realPath follows the links of a path of which the end may not exist. A link
// that leads to nothing counts as what it leads to.
func realPath(path string) (string, error) { return realPathIn(path, 0) }

func realPathIn(path string, depth int) (string, error) {
	if depth > 255 {
		return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("too many links")}
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	if target, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		return realPathIn(target, depth+1)
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	real, err = realPathIn(parent, depth+1)
	return filepath.Join(real, filepath.Base(path)), err
}

// filePath returns the path of a file: address.
func filePath(address string) (string, bool) {
	if !strings.HasPrefix(strings.ToLower(address), "file:") {
		return "", false
	}
	u, err := url.Parse(address)
	if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" {
		return "", false
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
	}
	return filepath.FromSlash(path), true
}

// linked returns the paths of the files that a prompt links to or embeds.
func linked(blocks []acp.ContentBlock) []string {
	var paths []string
	for _, b := range blocks {
		address := ""
		switch b := b.(type) {
		case *acp.ResourceLink:
			address = b.URI
		case *acp.EmbeddedResource:
			address, _, _ = resource(b)
		}
		if path, ok := filePath(address); ok {
			paths = append(paths, path)
		}
	}
	return paths
}
