package tool

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
)

// A place is a file or directory that an input names.
type place struct {
	path   string // absolute
	real   string // where that leads
	shown  string // for people: relative to the session's directory if it is in there
	inside bool   // it is in a directory of the session, whatever links say
}

// locate returns what a path means in a session and whether it is inside. A path may
// be relative to the working directory, absolute, or a file: address.
func locate(env Env, name string) (place, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return place{}, errors.New("the path is empty or has a character that no path has")
	}
	if path, ok := FilePath(name); ok {
		name = path
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(env.Cwd(), name)
	}
	p := place{path: filepath.Clean(name)}
	p.shown = p.path
	if rel, err := filepath.Rel(env.Cwd(), p.path); err == nil && filepath.IsLocal(rel) {
		p.shown = rel
	}
	real, err := realPath(p.path)
	if err != nil {
		return place{}, err
	}
	p.real = real
	for _, root := range env.Roots() {
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue
		}
		p.inside = p.inside || below(root, real)
	}
	return p, nil
}

// realPath follows the links of a path of which the end may not exist. A link
// that leads to nothing counts as what it leads to.
func realPath(path string) (string, error) { return realPathIn(path, 0) }

// realPathIn is realPath after depth links were followed, which bounds cycles.
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

// FilePath returns the path of a file: address.
func FilePath(address string) (string, bool) {
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

// find is locate with an error for people.
func find(env Env, name string) (place, error) {
	p, err := locate(env, name)
	if err != nil {
		return p, fmt.Errorf("%s cannot be found: %w", prose.OneLine(name, 200), reason(err))
	}
	return p, nil
}

// Mentioned returns the path that a user has typed, which may begin with the @ of a file
// that is mentioned.
func Mentioned(env Env, name string) string {
	rest, ok := strings.CutPrefix(name, "@")
	if !ok || rest == "" {
		return name
	}
	if p, err := locate(env, name); err == nil {
		if _, err := os.Lstat(p.path); err != nil {
			return rest
		}
	}
	return name
}

// wrap says which file an error is about, unless it does.
func (p place) wrap(err error) error {
	if _, refused := errors.AsType[*Refusal](err); refused || strings.Contains(err.Error(), p.shown) && reason(err) == err {
		return err
	}
	return fmt.Errorf("%s: %w", prose.Inline(p.shown), reason(err))
}

// reason takes the path off an error, which is said anyway, and names the commonest
// ones in plain words.
func reason(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("the system does not permit it")
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
