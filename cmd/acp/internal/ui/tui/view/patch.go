package view

import (
	"strconv"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// maxHunk bounds the lines of a hunk that are drawn at once. Longer hunks are drawn in parts.
const maxHunk = 120

// A fileDiff is the change of one file in a patch. All texts are safe.
type fileDiff struct {
	path   string
	link   string // what opens it, or ""
	from   string // its former path, if that is different
	what   string // changes other than those of lines: "new", "deleted", …
	binary bool
	hunks  []hunk
	other  []string // lines that belong to nothing known
}

// A hunk is a run of lines that change, with some around them.
type hunk struct {
	section string // where that is, as patches tell
	lines   []diffLine
	more    bool // it continues the hunk before
}

// A diffLine is a line of a hunk.
type diffLine struct {
	sign byte // ' ', '+' or '-'
	text string
	old  int // its number before; 0 for lines that are added
	new  int // its number after; 0 for lines that are removed
}

// count returns how many lines are added and removed.
func (f *fileDiff) count() (added, removed int) {
	for _, h := range f.hunks {
		for _, l := range h.lines {
			switch l.sign {
			case '+':
				added++
			case '-':
				removed++
			}
		}
	}
	return added, removed
}

// line returns the number of the first line that changes, or 0.
func (f *fileDiff) line() int {
	for _, h := range f.hunks {
		for _, l := range h.lines {
			if l.sign == '+' && l.new > 0 {
				return l.new
			}
		}
	}
	return 0
}

// parsePatch parses a patch in Git's format. Lines that it does not know end up in other, so that
// nothing is lost.
func parsePatch(patch string) []fileDiff {
	p := patchParser{}
	for patch != "" {
		l, rest, _ := strings.Cut(patch, "\n")
		patch = rest
		p.line(l)
	}
	p.endHunk()
	return p.files
}

type patchParser struct {
	files    []fileDiff
	cur      *hunk
	old, new int // the numbers of the next lines
	oldLeft  int // how many lines the hunk still has
	newLeft  int
	minus    string // the path in the line before, which begins a file without a head of its own
	head     bool   // the file has a head, but no hunks yet
}

// safeCode makes a line safe. A carriage return within it is shown.
func safeCode(l string) string {
	return strings.ReplaceAll(safetext.Text(l), "\n", "␍")
}

func (p *patchParser) file() *fileDiff {
	if len(p.files) == 0 {
		p.files = append(p.files, fileDiff{})
	}
	return &p.files[len(p.files)-1]
}

func (p *patchParser) line(raw string) {
	if p.cur != nil && (p.oldLeft > 0 || p.newLeft > 0) && p.hunkLine(raw) {
		return
	}
	if strings.HasPrefix(raw, `\`) { // "No newline at end of file"
		return
	}
	p.endHunk()
	l := strings.TrimSuffix(raw, "\r")
	switch {
	case strings.HasPrefix(l, "diff --git "):
		p.files = append(p.files, fileDiff{path: gitPath(l[len("diff --git "):])})
		p.head = true
	case strings.HasPrefix(l, "--- "):
		if !p.head {
			p.files = append(p.files, fileDiff{})
			p.head = true
		}
		p.minus = patchPath(l[4:], "a/")
	case strings.HasPrefix(l, "+++ ") && p.head:
		f := p.file()
		plus := patchPath(l[4:], "b/")
		switch {
		case plus == "" && p.minus != "":
			f.path = p.minus
			if f.what == "" {
				f.what = "deleted"
			}
		case plus != "":
			if f.what == "" && p.minus == "" {
				f.what = "new"
			}
			f.path = plus
		}
	case strings.HasPrefix(l, "@@ ") && p.hunkHead(l):
		p.head = false
	case strings.HasPrefix(l, "new file mode"):
		p.file().what = "new"
	case strings.HasPrefix(l, "deleted file mode"):
		p.file().what = "deleted"
	case strings.HasPrefix(l, "rename from "):
		p.file().what, p.file().from = "moved", unquote(l[len("rename from "):])
	case strings.HasPrefix(l, "copy from "):
		p.file().what, p.file().from = "copied", unquote(l[len("copy from "):])
	case strings.HasPrefix(l, "rename to "), strings.HasPrefix(l, "copy to "):
		_, to, _ := strings.Cut(l, " to ")
		p.file().path = unquote(to)
	case strings.HasPrefix(l, "Binary files "), strings.HasPrefix(l, "GIT binary patch"):
		p.file().binary = true
	case strings.HasPrefix(l, "old mode "), strings.HasPrefix(l, "new mode "):
		p.file().other = append(p.file().other, safeCode(l))
	case strings.HasPrefix(l, "index "), strings.HasPrefix(l, "similarity index "), strings.HasPrefix(l, "dissimilarity index "), l == "":
	default:
		if !p.file().binary {
			p.file().other = append(p.file().other, safeCode(l))
		}
	}
}

// hunkHead parses "@@ -1,2 +3,4 @@ section".
func (p *patchParser) hunkHead(l string) bool {
	nums, section, ok := strings.Cut(l[3:], " @@")
	if !ok {
		return false
	}
	minus, plus, ok := strings.Cut(nums, " ")
	if !ok || !strings.HasPrefix(minus, "-") || !strings.HasPrefix(plus, "+") {
		return false
	}
	var ok1, ok2 bool
	p.old, p.oldLeft, ok1 = hunkRange(minus[1:])
	p.new, p.newLeft, ok2 = hunkRange(plus[1:])
	if !ok1 || !ok2 {
		p.oldLeft, p.newLeft = 0, 0
		return false
	}
	p.file()
	p.cur = &hunk{section: strings.TrimSpace(safeCode(section))}
	return true
}

func hunkRange(s string) (start, n int, ok bool) {
	a, b, found := strings.Cut(s, ",")
	start, err := strconv.Atoi(a)
	if err != nil || start < 0 {
		return 0, 0, false
	}
	n = 1
	if found {
		if n, err = strconv.Atoi(b); err != nil || n < 0 {
			return 0, 0, false
		}
	}
	return start, n, true
}

// hunkLine parses a line of a hunk.
func (p *patchParser) hunkLine(raw string) bool {
	sign := byte(' ')
	if raw != "" {
		sign, raw = raw[0], raw[1:]
	}
	l := diffLine{sign: sign, text: raw}
	switch sign {
	case ' ', '\r':
		l.sign = ' '
		l.old, l.new = p.old, p.new
	case '-':
		l.old = p.old
	case '+':
		l.new = p.new
	default:
		return false
	}
	if l.sign != '+' {
		p.old++
		p.oldLeft--
	}
	if l.sign != '-' {
		p.new++
		p.newLeft--
	}
	p.cur.lines = append(p.cur.lines, l)
	return true
}

// endHunk makes the lines of the hunk safe and keeps it.
func (p *patchParser) endHunk() {
	if p.cur == nil {
		return
	}
	h := *p.cur
	p.cur = nil
	f := p.file()
	// Line breaks of another kind are worth showing where they are what changes.
	crlf := 0
	for _, l := range h.lines {
		if strings.HasSuffix(l.text, "\r") {
			crlf++
		}
	}
	for i := range h.lines {
		l := &h.lines[i]
		t, cr := strings.CutSuffix(l.text, "\r")
		l.text = safeCode(t)
		if cr && crlf < len(h.lines) {
			l.text += "␍"
		}
	}
	h.lines = alternate(h.lines)
	for more := false; len(h.lines) > 0; more = true {
		n := len(h.lines)
		if n > maxHunk {
			n = maxHunk
			// not between lines that replace each other
			for n > maxHunk/2 && h.lines[n-1].sign != ' ' && !(h.lines[n-1].sign == '+' && h.lines[n].sign == '-') {
				n--
			}
			if n == maxHunk/2 {
				n = maxHunk
			}
		}
		f.hunks = append(f.hunks, hunk{h.section, h.lines[:n], more})
		h.lines = h.lines[n:]
	}
}

// maxBlock bounds the lines of a block that another replaces. It is less than half of maxHunk, so
// that both are drawn together.
const maxBlock = maxHunk * 2 / 5

// alternate divides long blocks of removed lines, and the added ones that replace them, into short
// ones that alternate. Otherwise thousands of removed lines would come before the first added one.
func alternate(ls []diffLine) []diffLine {
	if len(ls) <= maxHunk {
		return ls
	}
	out := make([]diffLine, 0, len(ls))
	for i := 0; i < len(ls); {
		r := i
		for r < len(ls) && ls[r].sign == '-' {
			r++
		}
		a := r
		for a < len(ls) && ls[a].sign == '+' {
			a++
		}
		if r == i || a == r {
			end := max(a, r, i+1)
			out = append(out, ls[i:end]...)
			i = end
			continue
		}
		for old, now := ls[i:r], ls[r:a]; len(old)+len(now) > 0; {
			k, n := min(maxBlock, len(old)), min(maxBlock, len(now))
			out = append(append(out, old[:k]...), now[:n]...)
			old, now = old[k:], now[n:]
		}
		i = a
	}
	return out
}

// gitPath returns the path in the rest of a line "diff --git a/x b/x".
func gitPath(s string) string {
	if i := strings.Index(s, " b/"); i >= 0 {
		return safeCode(s[i+3:])
	}
	if i := strings.Index(s, ` "b/`); i >= 0 {
		return strings.TrimPrefix(unquote(s[i+1:]), "b/")
	}
	return safeCode(s)
}

// patchPath returns the path in the rest of a line "--- a/x"; "" for none.
func patchPath(s, prefix string) string {
	s, _, _ = strings.Cut(s, "\t")
	s = unquote(s)
	if s == "/dev/null" {
		return ""
	}
	return strings.TrimPrefix(s, prefix)
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, `"`) {
		if u, err := strconv.Unquote(s); err == nil {
			s = u
		}
	}
	return safeCode(s)
}
