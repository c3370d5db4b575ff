package edit

import (
	"slices"
	"strconv"
	"strings"
)

// isDiff reports whether lines begin with the section of a file as git, or diff -u, writes
// it.
func isDiff(lines []string) bool {
	if strings.HasPrefix(lines[0], "diff --git ") {
		return true
	}
	return len(lines) > 2 && strings.HasPrefix(lines[0], "--- ") && strings.HasPrefix(lines[1], "+++ ") &&
		strings.HasPrefix(lines[2], "@@")
}

// diff goes to the first line of a diff.
func (p *patchParser) diff() bool {
	for i := range p.lines {
		if isDiff(p.lines[i:]) {
			p.at = i
			p.end()
			return true
		}
	}
	return false
}

// diffs reads a diff of several files.
func (p *patchParser) diffs() (*Patch, error) {
	for ; p.at < len(p.lines); p.at++ {
		if l := p.lines[p.at]; strings.TrimSpace(l) == "" {
			continue
		} else if !isDiff(p.lines[p.at:]) {
			return nil, p.fail("the diff of a file is wanted, which begins with --- and +++, not %q", head(l))
		}
		if err := p.diffFile(); err != nil {
			return nil, err
		}
	}
	return p.done()
}

var gitNames = expression(`^diff --git "?a/(.+?)"? "?b/(.+?)"?$`)

// diffFile reads what a diff says of one file. The line that is read is its first.
func (p *patchParser) diffFile() error {
	if len(p.patch.Files) == MaxFiles {
		return p.fail("a patch has at most %d files", MaxFiles)
	}
	f := FilePatch{Do: Update}
	was, is, moves := "", "", false
	if m := gitNames().FindStringSubmatch(p.lines[p.at]); m != nil {
		was, is, moves = m[1], m[2], m[1] != m[2]
	}
	p.at--
	for header := true; header && p.at+1 < len(p.lines); {
		l := p.peek()
		word, rest, _ := strings.Cut(l, " ")
		switch {
		case word == "diff" && p.at >= 0 && strings.HasPrefix(p.lines[p.at], "diff "), word == "@@", l == "":
			header = false
			continue
		case strings.HasPrefix(l, "new file mode"):
			f.Do = Add
		case strings.HasPrefix(l, "deleted file mode"):
			f.Do = Delete
		case strings.HasPrefix(l, "rename from "):
			was = unquoted(strings.TrimPrefix(l, "rename from "))
		case strings.HasPrefix(l, "rename to "):
			is, moves = unquoted(strings.TrimPrefix(l, "rename to ")), true
		case strings.HasPrefix(l, "copy "), strings.HasPrefix(l, "Binary files"), strings.HasPrefix(l, "GIT binary patch"):
			p.at++
			return p.fail("%q cannot be done with a patch: use a command", head(l))
		case word == "---":
			was = diffName(rest, was)
		case word == "+++":
			is = diffName(rest, is)
		case !slices.Contains([]string{"diff", "index", "old", "new", "similarity", "dissimilarity"}, word):
			header = false
			continue
		}
		p.at++
	}
	if (was == devNull || strings.HasPrefix(was, "a/")) && (is == devNull || strings.HasPrefix(is, "b/")) {
		was, is = strings.TrimPrefix(was, "a/"), strings.TrimPrefix(is, "b/")
	}
	switch {
	case was == devNull || f.Do == Add:
		f.Do, f.Path = Add, is
	case is == devNull || f.Do == Delete:
		f.Do, f.Path = Delete, was
	case was == is, was == is+".orig":
		f.Path = is
	case moves:
		f.Path, f.To = was, is
	default:
		return p.fail("the diff names %s and %s: write the same path after --- and +++", head(was), head(is))
	}
	if f.Path == "" || f.Path == devNull {
		return p.fail("the diff names no file: write --- PATH and +++ PATH")
	}
	return p.diffHunks(&f)
}

const devNull = "/dev/null"

// diffName returns the name of a file after --- or +++, without a time behind it.
func diffName(name, known string) string {
	name, _, _ = strings.Cut(name, "\t")
	name = strings.TrimSpace(name)
	if q, err := strconv.Unquote(name); err == nil {
		name = q
	}
	if known != "" && (name == "a/"+known || name == "b/"+known) {
		return known
	}
	return name
}

// diffHunks reads the places of a file of a diff.
func (p *patchParser) diffHunks(f *FilePatch) error {
	var err error
	f.Hunks, err = p.update(func() bool { return p.over() || isDiff(p.lines[p.at+1:]) })
	if err != nil {
		return err
	}
	switch {
	case f.Do == Add:
		var b strings.Builder
		for _, h := range f.Hunks {
			if len(h.Old) > 0 {
				return p.fail("%s is new in the diff, and has lines that do not begin with a plus", f.Path)
			}
			b.WriteString(strings.Join(h.New, "\n") + "\n")
			if h.NewBare {
				f.Text = strings.TrimSuffix(b.String(), "\n")
			} else {
				f.Text = b.String()
			}
		}
		f.Hunks = nil
	case f.Do == Update && idle(f.Hunks) && f.To == "":
		return p.fail("the diff of %s changes nothing: add lines that begin with - or +", f.Path)
	}
	p.patch.Files = append(p.patch.Files, *f)
	return nil
}
