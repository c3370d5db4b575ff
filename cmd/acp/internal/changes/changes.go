// Package changes finds out what a session has changed in the files of a project, and takes single
// changes back.
//
// It knows two sources. The record of the session has the changes that the agent has reported;
// they are removed from the file as it is now, from the last to the first, which gives the file
// without them and with everything that others have written. A [Base] has the files as Git knew
// them when the session began; it also shows what commands have changed. No program runs that the
// settings of the repository name: see package gitread. A file that a filter of Git would convert
// is therefore compared with what is stored.
//
// A file of more than 2 MiB, and one that is not text, is listed without its content. At most 500
// files are listed.
package changes

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/goacp/acp/transcript"
)

// The bounds of what is compared.
const (
	maxFiles = 500
	maxText  = 2 << 20
)

// context lines around a change.
const around = 3

// ErrMoved means that a file is no longer as it was when its changes were found.
var ErrMoved = errors.New("the file has changed in the meantime")

// ErrOutside means that a file is not one of the project.
var ErrOutside = errors.New("the file is outside of the project")

// A Source says how it is known that a file has changed.
type Source int

// The sources.
const (
	Recorded Source = iota // the agent has reported all of the changes
	Compared               // the file is not as it was when the session began
	Partly                 // some of the changes that the agent has reported are no longer found
)

// A File is what has changed in a file. It never changes itself.
type File struct {
	Path   string // absolute
	Source Source
	// Existed and Exists say whether there was a file before and is one now.
	Existed, Exists bool
	// Opaque says why the content is not shown, or is "".
	Opaque string
	// Filter is the filter, such as lfs, that converts the file before Git stores it, or "". It has
	// not run: the file is compared with what is stored.
	Filter string
	Hunks  []Hunk

	before, after string
	dir           string // what is outside of it is never written
}

// A Hunk is a run of lines that have changed, with some around them.
type Hunk struct {
	Line           int // of its first line in the file as it is now, from 1
	Added, Removed int
	patch          string
	from, to       int    // the bytes of after that it replaces
	old            string // what was there before
}

// Find returns the files that a session has changed, sorted by path: those that its records name,
// which are its own and those of its subagents, and those that differ from base, which may be nil.
// dir is the directory of the session. With an error it returns what it has found nevertheless.
func Find(ctx context.Context, dir string, base *Base, records ...*transcript.Snapshot) ([]File, error) {
	steps := map[string][]step{}
	for _, r := range records {
		recorded(steps, r, dir)
	}
	paths := map[string]bool{}
	for path := range steps {
		paths[path] = true
	}
	was := map[string]state{}
	var failed error
	if base != nil {
		was, failed = base.changed(ctx)
		for path := range was {
			paths[path] = true
		}
	}
	sorted := make([]string, 0, len(paths))
	for path := range paths {
		sorted = append(sorted, path)
	}
	slices.Sort(sorted)
	var files []File
	for _, path := range sorted {
		if len(files) == maxFiles {
			failed = errors.Join(failed, fmt.Errorf("only the first %d files are listed", maxFiles))
			break
		}
		compared, known := was[path]
		root := dir
		if base != nil && known {
			root = base.top
		}
		if f := find(path, root, steps[path], compared, known); f != nil {
			files = append(files, *f)
		}
	}
	return files, failed
}

// find returns what has changed in a file, or nil if nothing has.
func find(path, dir string, steps []step, was state, known bool) *File {
	now := read(path)
	f := &File{Path: path, dir: dir, Existed: true, Exists: now.exists, after: now.text}
	switch undone, all := undo(now, steps); {
	case len(steps) == 0:
		f.Source, f.Existed, f.before = Compared, was.exists, was.text
		now.opaque = cmp.Or(now.opaque, was.opaque)
	case now.opaque != "":
	case all || !known || was.opaque != "":
		f.Existed, f.before = undone.exists, undone.text
		if !all {
			f.Source = Partly
		}
	default:
		f.Source, f.Existed, f.before = Compared, was.exists, was.text
	}
	f.Opaque = now.opaque
	if f.Source == Compared {
		f.Filter = was.filter
	}
	if f.Source == Partly && f.Existed == f.Exists && f.before == f.after && f.Opaque == "" && !told(steps) {
		f.Opaque = "the agent has not said how"
	}
	switch {
	case f.Existed == f.Exists && f.before == f.after && f.Opaque == "":
		return nil
	case !f.Existed && !f.Exists:
		return nil
	case f.Opaque == "":
		f.Hunks = compare(f.before, f.after)
	}
	return f
}

// told reports whether all steps say what they have changed.
func told(steps []step) bool {
	return !slices.ContainsFunc(steps, func(s step) bool { return len(s.hunks) == 0 })
}

// A state is a file at some time.
type state struct {
	exists bool
	text   string
	opaque string // why text is not its content
	filter string // the filter that converts it before Git stores it; not part of the state
}

// same reports whether a file has not changed.
func (s state) same(as state) bool {
	s.filter, as.filter = "", ""
	return s == as
}

// read returns the present state of a file.
func read(path string) state {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state{}
	case err != nil:
		return state{exists: true, opaque: "cannot be read"}
	case !info.Mode().IsRegular():
		return state{exists: true, opaque: "not a regular file"}
	case info.Size() > maxText:
		return state{exists: true, opaque: "too long to compare"}
	}
	f, err := os.Open(path)
	if err != nil {
		return state{exists: true, opaque: "cannot be read"}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return state{exists: true, opaque: "cannot be read"}
	}
	return content(data)
}

// content returns the state of a file with a content.
func content(data []byte) state {
	switch {
	case len(data) > maxText:
		return state{exists: true, opaque: "too long to compare"}
	case bytes.IndexByte(data, 0) >= 0:
		return state{exists: true, opaque: "binary"}
	}
	return state{exists: true, text: string(data)}
}

// compare returns the hunks that make one text of another.
func compare(before, after string) []Hunk {
	u, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), around)
	if err != nil { // cannot be: the edits are of these texts
		return nil
	}
	offsets := lineOffsets(after)
	hunks := make([]Hunk, 0, len(u.Hunks))
	for _, h := range u.Hunks {
		out := Hunk{Line: h.ToLine}
		var patch, old strings.Builder
		was, is := 0, 0
		for _, l := range h.Lines {
			sign := " "
			switch l.Kind {
			case udiff.Insert:
				sign = "+"
				out.Added++
				is++
			case udiff.Delete:
				sign = "-"
				out.Removed++
				was++
			case udiff.Equal:
				was++
				is++
			}
			if l.Kind != udiff.Insert {
				old.WriteString(l.Content)
			}
			patch.WriteString(sign + strings.TrimSuffix(l.Content, "\n") + "\n")
			if !strings.HasSuffix(l.Content, "\n") {
				patch.WriteString("\\ No newline at end of file\n")
			}
		}
		out.patch = fmt.Sprintf("@@ -%d,%d +%d,%d @@\n", h.FromLine, was, h.ToLine, is) + patch.String()
		out.old = old.String()
		start := max(h.ToLine-1, 0)
		out.from = offsets[min(start, len(offsets)-1)]
		out.to = offsets[min(start+is, len(offsets)-1)]
		hunks = append(hunks, out)
	}
	return hunks
}

// lineOffsets returns where the lines of a text begin, and its length.
func lineOffsets(text string) []int {
	offsets := []int{0}
	for i := range len(text) {
		if text[i] == '\n' && i+1 < len(text) {
			offsets = append(offsets, i+1)
		}
	}
	return append(offsets, len(text))
}

// Patch returns all hunks as a patch in Git's format, with the path below the project.
func (f *File) Patch() string {
	var b strings.Builder
	path := f.Path
	if rel, err := filepath.Rel(f.dir, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	from, to := gitName("a/"+filepath.ToSlash(path)), gitName("b/"+filepath.ToSlash(path))
	fmt.Fprintf(&b, "diff --git %s %s\n", from, to)
	if !f.Existed {
		from = "/dev/null"
		b.WriteString("new file mode 100644\n")
	}
	if !f.Exists {
		to = "/dev/null"
		b.WriteString("deleted file mode 100644\n")
	}
	if f.Opaque == "" {
		fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, to)
	}
	for _, h := range f.Hunks {
		b.WriteString(h.patch)
	}
	return b.String()
}

// gitName quotes a path as Git does, if it has to be.
func gitName(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }) {
		return strconv.Quote(path)
	}
	return path
}

// Count returns how many lines are added and removed.
func (f *File) Count() (added, removed int) {
	for _, h := range f.Hunks {
		added += h.Added
		removed += h.Removed
	}
	return added, removed
}

// TakeBack makes the lines of a hunk what they were before, or, if hunk is -1, the whole file. The
// returned function does the opposite. The error is [ErrMoved] if the file is no longer as it was
// when f was found, and [ErrOutside] if it is not in the project. Nothing is written then.
func (f *File) TakeBack(hunk int) (again func() error, err error) {
	if f.Opaque != "" {
		return nil, fmt.Errorf("%s: %s", filepath.Base(f.Path), f.Opaque)
	}
	text, exists := f.before, f.Existed
	if hunk >= 0 {
		h := f.Hunks[hunk]
		text = f.after[:h.from] + h.old + f.after[h.to:]
		exists = f.Existed || text != ""
	}
	if err := replace(f.dir, f.Path, state{exists: f.Exists, text: f.after}, state{exists: exists, text: text}); err != nil {
		return nil, err
	}
	return func() error {
		return replace(f.dir, f.Path, state{exists: exists, text: text}, state{exists: f.Exists, text: f.after})
	}, nil
}

// replace brings a file from one state to another. A root of the file system makes sure that no
// link leads out of the project.
func replace(dir, path string, from, to state) error {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("%s: %w", filepath.Base(path), ErrOutside)
	}
	if !read(path).same(from) {
		return fmt.Errorf("%s: %w", filepath.Base(path), ErrMoved)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if !to.exists {
		return root.Remove(rel)
	}
	if err := root.MkdirAll(filepath.Dir(rel), 0o755); err != nil {
		return err
	}
	// Writing in place keeps the mode, the owner and other names of the file.
	f, err := root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(to.text)
	return errors.Join(err, f.Close())
}
