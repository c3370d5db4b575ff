package patch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	errNone     = errors.New("no file in it")
	errHunk     = errors.New("a hunk without a file")
	errHeader   = errors.New("malformed hunk header")
	errShort    = errors.New("a hunk ends too early")
	errLine     = errors.New("a line of a hunk is neither kept nor removed nor added")
	errPath     = errors.New("malformed path")
	errNewline  = errors.New("a missing newline before any line of the hunk")
	errNameless = errors.New("a file without a path")
)

// Texts reads a unified diff, in git's format or another, and returns the texts of each
// file as far as the diff contains them: the whole texts of a file that is added or
// deleted, and otherwise the lines of its hunks, one after another. A file without lines,
// such as a binary one or one that is only moved, has no texts.
//
// Text around the files is skipped. An error names the line, counted from 1, at which the
// patch is malformed. A patch without files is an error unless it is blank.
func Texts(patch string) ([]File, error) {
	p := parser{rest: patch}
	for {
		line, ok := p.next()
		if !ok {
			break
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("patch: line %d: %w", p.number, err)
		}
	}
	if err := p.finish(); err != nil {
		return nil, fmt.Errorf("patch: line %d: %w", p.number, err)
	}
	if len(p.files) == 0 && strings.TrimSpace(patch) != "" {
		return nil, fmt.Errorf("patch: %w", errNone)
	}
	return p.files, nil
}

type parser struct {
	rest   string
	number int
	files  []File

	open             bool // a file has begun
	file             File
	git              bool // it began with git's header
	created, deleted bool
	named            bool // both paths are known from better than git's header
	binary           bool
	sawOld           bool // the line with the old path has been read
	hunks            int
	old, new         []byte
}

// next returns the next line without its end.
func (p *parser) next() (string, bool) {
	if p.rest == "" {
		return "", false
	}
	var line string
	line, p.rest, _ = strings.Cut(p.rest, "\n")
	p.number++
	return line, true
}

// line reads a line outside hunks.
func (p *parser) line(line string) error {
	line = strings.TrimSuffix(line, "\r")
	if rest, ok := strings.CutPrefix(line, "diff --git "); ok {
		return p.begin(rest)
	}
	switch {
	case strings.HasPrefix(line, "--- ") && strings.HasPrefix(p.rest, "+++ "):
		if !p.open || !p.git || p.sawOld {
			if err := p.finish(); err != nil {
				return err
			}
			p.open = true
		}
		p.sawOld = true
		path, err := name(line[4:], "a/")
		p.setPath(&p.file.OldPath, path)
		p.created = p.created || path == ""
		return err
	case strings.HasPrefix(line, "+++ ") && p.sawOld && p.hunks == 0:
		path, err := name(line[4:], "b/")
		p.setPath(&p.file.NewPath, path)
		p.deleted = p.deleted || path == ""
		p.named = true
		return err
	case strings.HasPrefix(line, "@@ "):
		if !p.open || !p.sawOld {
			return errHunk
		}
		return p.hunk(line)
	case !p.open || p.hunks > 0:
		return nil
	case strings.HasPrefix(line, "new file mode "):
		p.created = true
	case strings.HasPrefix(line, "deleted file mode "):
		p.deleted = true
	case strings.HasPrefix(line, "Binary files ") || line == "GIT binary patch":
		p.binary = true
	}
	for _, prefix := range []string{"rename from ", "copy from "} {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			path, err := name(rest, "")
			p.file.OldPath = path
			return err
		}
	}
	for _, prefix := range []string{"rename to ", "copy to "} {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			path, err := name(rest, "")
			p.file.NewPath, p.named = path, true
			return err
		}
	}
	return nil
}

// setPath takes a path of the lines before the hunks unless a better one is
// known.
func (p *parser) setPath(to *string, path string) {
	if !p.named && path != "" {
		*to = path
	}
}

// begin begins a file with the paths of git's header, which is ambiguous where
// they differ and hold spaces.
func (p *parser) begin(rest string) error {
	if err := p.finish(); err != nil {
		return err
	}
	p.open, p.git = true, true
	if strings.HasPrefix(rest, `"`) {
		path, rest, ok := unquote(rest)
		if !ok {
			return errPath
		}
		p.file.OldPath = strings.TrimPrefix(path, "a/")
		newPath, err := name(strings.TrimPrefix(rest, " "), "b/")
		p.file.NewPath = newPath
		return err
	}
	// The same path twice is the usual case.
	if half := len(rest) / 2; len(rest)%2 == 1 && rest[half] == ' ' {
		from, okA := strings.CutPrefix(rest[:half], "a/")
		to, okB := strings.CutPrefix(rest[half+1:], "b/")
		if okA && okB && from == to {
			p.file.OldPath, p.file.NewPath = from, to
			return nil
		}
	}
	i := max(strings.Index(rest, " b/"), strings.Index(rest, ` "`))
	if i < 0 {
		return nil // other prefixes; the lines that follow name the file
	}
	p.file.OldPath = strings.TrimPrefix(rest[:i], "a/")
	newPath, err := name(rest[i+1:], "b/")
	p.file.NewPath = newPath
	return err
}

// name reads a path that fills the rest of a line; empty stands for no file.
func name(s, prefix string) (string, error) {
	if strings.HasPrefix(s, `"`) {
		path, _, ok := unquote(s)
		if !ok {
			return "", errPath
		}
		return strings.TrimPrefix(path, prefix), nil
	}
	s, _, _ = strings.Cut(s, "\t") // a date may follow
	if s == devNull {
		return "", nil
	}
	return strings.TrimPrefix(s, prefix), nil
}

// hunk reads the lines of a hunk. The header says how many there are, so lines
// that look like headers are distinguished from them.
func (p *parser) hunk(header string) error {
	oldLeft, newLeft, ok := lengths(header)
	if !ok {
		return errHeader
	}
	p.hunks++
	last := byte(0)
	for {
		if strings.HasPrefix(p.rest, `\`) {
			p.next()
			if last == 0 {
				return errNewline
			}
			if last != '+' {
				p.old = p.old[:len(p.old)-1]
			}
			if last != '-' {
				p.new = p.new[:len(p.new)-1]
			}
			last = 0
			continue
		}
		if oldLeft == 0 && newLeft == 0 {
			return nil
		}
		line, ok := p.next()
		if !ok {
			return errShort
		}
		last = ' ' // some tools strip the space of an empty line
		if line != "" {
			last, line = line[0], line[1:]
		}
		if last == '\r' && line == "" {
			last, line = ' ', "\r"
		}
		switch last {
		case ' ':
			oldLeft, newLeft = oldLeft-1, newLeft-1
			p.old = append(append(p.old, line...), '\n')
			p.new = append(append(p.new, line...), '\n')
		case '-':
			oldLeft--
			p.old = append(append(p.old, line...), '\n')
		case '+':
			newLeft--
			p.new = append(append(p.new, line...), '\n')
		default:
			return errLine
		}
		if oldLeft < 0 || newLeft < 0 {
			return errShort
		}
	}
}

// lengths reads the header of a hunk.
func lengths(header string) (old, new int, ok bool) {
	f := strings.Fields(header)
	if len(f) < 4 || f[3] != "@@" || f[1][0] != '-' || f[2][0] != '+' {
		return 0, 0, false
	}
	length := func(s string) int {
		start, n, found := strings.Cut(s[1:], ",")
		if _, err := strconv.ParseUint(start, 10, 31); err != nil {
			return -1
		}
		if !found {
			return 1
		}
		v, err := strconv.ParseUint(n, 10, 31)
		if err != nil {
			return -1
		}
		return int(v)
	}
	old, new = length(f[1]), length(f[2])
	return old, new, old >= 0 && new >= 0
}

// finish ends the file that has begun, if any.
func (p *parser) finish() error {
	if !p.open {
		return nil
	}
	f := p.file
	f.Old, f.New = string(p.old), string(p.new)
	if p.created {
		f.OldPath = ""
	}
	if p.deleted {
		f.NewPath = ""
	}
	if f.OldPath == "" && f.NewPath == "" {
		return errNameless
	}
	f.Partial = p.binary || !p.created && !p.deleted
	*p = parser{rest: p.rest, number: p.number, files: append(p.files, f)}
	return nil
}
