package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/seek"
)

// searchTime bounds how long a search takes. At its end it says what it has found, and that
// it has not seen everything.
const searchTime = 30 * time.Second

// errLate ends a search that takes too long.
var errLate = errors.New("the time is up")

// A scope is what [Search] and [Find] look at: the files of the session's directories, or
// those of one directory, or one file.
type scope struct {
	env     Env
	in      place // if it is not all of the session
	what    string
	glob    *seek.Glob
	pattern string // of glob
	ignored bool
	within  time.Duration // it must be done
	rules   bool          // there are some that files may be left out for

	mu   sync.Mutex
	left left
	seen seek.Seen
	late bool
}

// newScope returns the scope of an input.
func newScope(env Env, path, glob string, ignored bool) (*scope, error) {
	s := &scope{
		env: env, what: "the session's directories", pattern: glob, ignored: ignored || !env.Ignores(),
		within: searchTime, rules: env.Restricted(),
	}
	if path != "" {
		p, err := find(env, path)
		if err != nil {
			return nil, err
		}
		s.in, s.what = p, prose.Inline(p.shown)
	} else if len(env.Roots()) == 1 {
		s.what = "`.`"
	}
	if glob == "" {
		return s, nil
	}
	if filepath.IsAbs(glob) {
		for _, root := range env.Roots() {
			if rel, err := filepath.Rel(root, glob); err == nil && filepath.IsLocal(rel) {
				glob = "./" + filepath.ToSlash(rel) // a path, also if it has no slash
			}
		}
	}
	if s.glob = seek.NewGlob(filepath.ToSlash(glob)); s.glob == nil {
		return nil, Misusef("the pattern of names %q makes no sense", prose.OneLine(glob, 60))
	}
	return s, nil
}

// permit asks for leave to look at the scope where that is needed.
func (s *scope) permit(c *call) error {
	if s.in.path == "" {
		_, err := c.permitSearch()
		return err
	}
	if err := c.permitSearchOf(s.in); err != nil {
		return err
	}
	return c.permitPlace(s.in)
}

// timed returns a context that ends when the time is up.
func (s *scope) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.within, errLate)
}

// walk visits the files of the scope, by several goroutines at once, each with a number of
// its own below [seek.Workers]. The error says why there is nothing to look at.
func (s *scope) walk(ctx context.Context, visit func(worker int, path string)) error {
	dirs := s.env.Roots()
	if s.in.path != "" {
		info, err := os.Stat(s.in.path)
		switch {
		case err != nil:
			return s.in.wrap(err)
		case !info.IsDir():
			return s.one(visit)
		}
		dirs = []string{s.in.path}
	}
	for _, dir := range dirs {
		dir = filepath.Clean(dir)
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			real = dir
		}
		w := seek.Walk{
			Dir: dir, Base: s.base(dir), Glob: s.glob, Ignored: s.ignored,
			Visit: func(worker int, path string) {
				if !s.leavesOut(path, real+strings.TrimPrefix(path, dir), false) {
					visit(worker, path)
				}
			},
		}
		seen := w.Run(ctx)
		s.seen.Add(seen)
	}
	s.late = context.Cause(ctx) == errLate
	return s.nothing()
}

// one visits the one file of the scope. What rules want asked about it was asked.
func (s *scope) one(visit func(worker int, path string)) error {
	s.seen.Files, s.seen.Fitting = 1, 1
	if !s.leavesOut(s.in.path, s.in.real, true) {
		visit(0, s.in.real)
	}
	return nil
}

// base returns the directory of the session that a directory is in, or itself.
func (s *scope) base(dir string) string {
	for _, root := range s.env.Roots() {
		if below(root, dir) {
			return root
		}
	}
	return dir
}

// nothing says why there was nothing to look at; nil if there was something.
func (s *scope) nothing() error {
	seen := &s.seen
	switch {
	case seen.Fitting > 0 || s.late:
		return nil
	case seen.Files == 0 && seen.Ignored.Files+seen.Ignored.Dirs > 0:
		return fmt.Errorf("all that is in %s is ignored, since .gitignore files name it: %s; %s looks at it, too",
			s.what, s.ignoredNames(), s.env.Hints().Ignored)
	case seen.Files == 0 && seen.Closed > 0:
		return fmt.Errorf("%s cannot be read", s.what)
	case seen.Files == 0:
		return fmt.Errorf("there are no files in %s", s.what)
	}
	files := prose.Count(seen.Files, "file")
	why := fmt.Sprintf("none of the %s in %s fits the glob %s", files, s.what, prose.Inline(s.pattern))
	if strings.Contains(s.pattern, "/") {
		why += ", which has a slash and so is a whole path from there on (**/ is any directories)"
	}
	if left := s.leftIgnored(); left != "" {
		why += "." + strings.TrimSuffix(left, ".")
	}
	return &noFit{why}
}

// A noFit says that no file fits a glob.
type noFit struct{ why string }

func (u *noFit) Error() string { return u.why }

// ignoredNames says how much is ignored.
func (s *scope) ignoredNames() string {
	i := &s.seen.Ignored
	var all []string
	if i.Dirs > 0 {
		word := "directories"
		if i.Dirs == 1 {
			word = "directory"
		}
		names := make([]string, len(i.Names))
		for j, name := range i.Names {
			names[j] = prose.OneLine(name, 60)
		}
		if len(names) < i.Dirs {
			names = append(names, "…")
		}
		all = append(all, fmt.Sprintf("%d %s (%s)", i.Dirs, word, strings.Join(names, ", ")))
	}
	if i.Files > 0 {
		all = append(all, prose.Count(i.Files, "file"))
	}
	return strings.Join(all, " and ")
}

// leftIgnored says what was not looked at since it is ignored, as a sentence with a space
// before it; "" if nothing was.
func (s *scope) leftIgnored() string {
	if s.seen.Ignored.Files+s.seen.Ignored.Dirs == 0 {
		return ""
	}
	return fmt.Sprintf(" Not looked at, since .gitignore files name them: %s; %s looks at them, too.",
		s.ignoredNames(), s.env.Hints().Ignored)
}

// bounds says which bounds were reached, as sentences with a space before each.
func (s *scope) bounds() string {
	var b strings.Builder
	if s.late {
		fmt.Fprintf(&b, " It was ended after %s, so not all files were looked at: give a path or a glob.", s.within)
	}
	if s.seen.Full {
		fmt.Fprintf(&b, " It was ended after %d files, so not all were looked at: give a path or a glob.",
			seek.MaxFiles)
	}
	if s.seen.Deep {
		fmt.Fprintf(&b, " Directories more than %d deep were left out.", seek.MaxDepth)
	}
	switch {
	case s.seen.Closed == 1:
		b.WriteString(" 1 directory could not be read.")
	case s.seen.Closed > 1:
		fmt.Fprintf(&b, " %d directories could not be read.", s.seen.Closed)
	}
	b.WriteString(s.left.says(s.env.Hints().ReadAsks))
	return b.String()
}

// shown is how a path is shown: from the session's working directory on, if it is in there.
func (s *scope) shown(path string) string {
	if path == s.in.real {
		path = s.in.path // one file, by the name that was given
	}
	if rel, err := filepath.Rel(s.env.Cwd(), path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return prose.OneLine(filepath.ToSlash(path), 1000)
}
