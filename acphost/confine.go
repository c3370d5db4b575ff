package acphost

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// absolute returns the directories by clean and absolute names.
func absolute(dirs []string) ([]string, error) {
	var roots []string
	for _, dir := range dirs {
		if dir == "" {
			return nil, errors.New("acphost: a root has no name")
		}
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		roots = append(roots, abs)
	}
	return roots, nil
}

// A place is a path within a root.
type place struct {
	root string
	rel  string // clean and local
}

// find returns the place of a path in the root that is nearest to it. A root
// may also be called by what its name resolves to: agents tend to resolve their
// working directory.
func find(roots []string, path string) (place, error) {
	if !filepath.IsAbs(path) {
		return place{}, invalid("path", "is not absolute")
	}
	if strings.ContainsRune(path, 0) {
		return place{}, invalid("path", "contains a zero byte")
	}
	path = filepath.Clean(path)
	var best place
	for _, resolve := range []bool{false, true} {
		for _, root := range roots {
			name := root
			if resolve {
				real, err := filepath.EvalSymlinks(name)
				if err != nil || real == name {
					continue
				}
				name = real
			}
			if rel, ok := within(name, path); ok && (best.root == "" || len(rel) < len(best.rel)) {
				best.root, best.rel = root, rel
			}
		}
		if best.root != "" {
			return best, nil
		}
	}
	return place{}, outside()
}

func outside() error { return invalid("path", "is outside of the directories that are shared") }

// within returns the path relative to dir, if it is below it or the same.
func within(dir, path string) (string, bool) {
	rel, err := filepath.Rel(dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// resolve opens the root and returns the path in it without symbolic links. What
// the links were is only how it gets there: should one be put in the way later,
// the root does not let it lead out.
func (p place) resolve() (*os.Root, string, error) {
	r, err := os.OpenRoot(p.root)
	if err != nil {
		return nil, "", err
	}
	name, err := p.follow(r)
	if err != nil {
		_ = r.Close()
		return nil, "", err
	}
	return r, name, nil
}

const maxLinks = 64

func (p place) follow(r *os.Root) (string, error) {
	done, todo := []string{}, split(p.rel)
	for links := 0; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		if next == ".." {
			if len(done) == 0 {
				return "", outside()
			}
			done = done[:len(done)-1]
			continue
		}
		name := filepath.Join(append(slices.Clone(done), next)...)
		fi, err := r.Lstat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err != nil || fi.Mode()&fs.ModeSymlink == 0 {
			if err == nil && !fi.IsDir() && len(todo) > 0 {
				return "", invalid("path", "leads through a file")
			}
			done = append(done, next)
			continue
		}
		if links++; links > maxLinks {
			return "", invalid("path", "has too many symbolic links")
		}
		target, err := r.Readlink(name)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			var ok bool
			if target, ok = p.withinRoot(target); !ok {
				return "", outside()
			}
			done = done[:0]
		}
		todo = append(split(target), todo...)
	}
	return filepath.Join(append(done, ".")...), nil
}

// withinRoot makes an absolute path relative to the root, by either name.
func (p place) withinRoot(path string) (string, bool) {
	// It is not cleaned as a whole: .. after a link has to wait for it.
	for _, dir := range []func() (string, error){
		func() (string, error) { return p.root, nil },
		func() (string, error) { return filepath.EvalSymlinks(p.root) },
	} {
		name, err := dir()
		if err != nil {
			return "", false
		}
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(name, string(filepath.Separator))); ok &&
			(rest == "" || os.IsPathSeparator(rest[0])) {
			return rest, true
		}
	}
	return "", false
}

// split returns the names in a path, without empty ones and dots.
func split(path string) []string {
	names := strings.FieldsFunc(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
	return slices.DeleteFunc(names, func(s string) bool { return s == "." })
}
