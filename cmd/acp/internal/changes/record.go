package changes

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// A step is what one change that the agent has reported did to a file.
type step struct {
	added   bool // there was no file before
	deleted bool // there was none afterwards
	hunks   []textHunk
}

// A textHunk is a hunk of a reported patch.
type textHunk struct {
	line     int // where the new lines begin, from 1
	old, new []string
	sign     byte // of the latest line
}

// recorded adds the changes that a record reports to steps, per file and in order.
func recorded(steps map[string][]step, record *transcript.Snapshot, dir string) {
	for e := range record.Entries() {
		c, ok := e.(*transcript.ToolCall)
		if !ok || c.Status != acpv2.ToolCallStatusCompleted {
			continue
		}
		for _, content := range c.Content {
			if d, ok := content.(*acpv2.Diff); ok {
				for path, s := range stepsOf(d, dir) {
					steps[path] = append(steps[path], s)
				}
			}
		}
	}
}

// stepsOf returns what a diff does to each file.
func stepsOf(d *acpv2.Diff, dir string) map[string]step {
	hunks := map[string][]textHunk{}
	if d.Patch != nil {
		hunks = parse(d.Patch.Text)
	}
	out := map[string]step{}
	for _, c := range d.Changes {
		s, path := step{}, ""
		switch op := c.Operation.(type) {
		case *acpv2.DiffAdd:
			path, s.added = op.Path, true
		case *acpv2.DiffDelete:
			path, s.deleted = op.Path, true
		case *acpv2.DiffModify:
			path = op.Path
		case *acpv2.DiffMove: // what is at the old path is for Git to find
			path, s.added = op.Path, true
		case *acpv2.DiffCopy:
			path, s.added = op.Path, true
		}
		if path == "" {
			continue
		}
		for in, hs := range hunks {
			if samePath(in, path) {
				s.hunks = append(s.hunks, hs...)
			}
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		out[filepath.Clean(path)] = s
	}
	return out
}

// samePath reports whether a path of a patch, which may lack its root, is that of a change.
func samePath(inPatch, path string) bool {
	a, b := strings.TrimPrefix(filepath.ToSlash(inPatch), "/"), strings.TrimPrefix(filepath.ToSlash(path), "/")
	return a == b || a != "" && strings.HasSuffix(b, "/"+a)
}

// parse returns the hunks of a patch in Git's format, per path. It leaves out what it does not
// understand.
func parse(patch string) map[string][]textHunk {
	out := map[string][]textHunk{}
	path, minus := "", ""
	var h textHunk
	oldLeft, newLeft := 0, 0
	end := func() {
		if path != "" && len(h.old)+len(h.new) > 0 {
			out[path] = append(out[path], h)
		}
		h, oldLeft, newLeft = textHunk{}, 0, 0
	}
	for l := range strings.SplitAfterSeq(patch, "\n") {
		if rest, ok := strings.CutPrefix(l, `\`); ok && strings.HasPrefix(rest, " ") {
			h.chomp()
			continue
		}
		if oldLeft > 0 || newLeft > 0 {
			sign, text := byte(' '), l
			if strings.TrimRight(l, "\r\n") != "" {
				sign, text = l[0], l[1:]
			}
			if sign != '+' {
				h.old = append(h.old, text)
				oldLeft--
			}
			if sign != '-' {
				h.new = append(h.new, text)
				newLeft--
			}
			h.sign = sign
			continue
		}
		switch {
		case strings.HasPrefix(l, "--- "):
			end()
			minus, path = headPath(l[4:], "a/"), ""
		case strings.HasPrefix(l, "+++ "):
			if path = headPath(l[4:], "b/"); path == "" {
				path = minus
			}
		case strings.HasPrefix(l, "@@ -"):
			end()
			before, after, ok := strings.Cut(l[4:], " +")
			if !ok {
				continue
			}
			after, _, _ = strings.Cut(after, " @@")
			_, oldLeft = hunkRange(before)
			h.line, newLeft = hunkRange(after)
		case strings.HasPrefix(l, "diff --git "):
			end()
			path, minus = "", ""
		}
	}
	end()
	return out
}

// chomp removes the line break of the latest line.
func (h *textHunk) chomp() {
	if n := len(h.old); n > 0 && h.sign != '+' {
		h.old[n-1] = strings.TrimSuffix(h.old[n-1], "\n")
	}
	if n := len(h.new); n > 0 && h.sign != '-' {
		h.new[n-1] = strings.TrimSuffix(h.new[n-1], "\n")
	}
}

func headPath(s, prefix string) string {
	s = strings.TrimRight(s, "\r\n")
	s, _, _ = strings.Cut(s, "\t")
	if u, err := strconv.Unquote(s); err == nil {
		s = u
	}
	if s == "/dev/null" {
		return ""
	}
	return strings.TrimPrefix(s, prefix)
}

// hunkRange parses "12,3" and "12".
func hunkRange(s string) (line, n int) {
	a, b, found := strings.Cut(strings.TrimSpace(s), ",")
	line, _ = strconv.Atoi(a)
	if n = 1; found {
		n, _ = strconv.Atoi(b)
	}
	return line, min(n, maxText)
}

// undo removes reported changes from a file, from the last to the first. all is false if some of
// them are not found, and were not taken back either.
func undo(now state, steps []step) (was state, all bool) {
	all = true
	lines := splitLines(now.text)
	exists := now.exists
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		if s.deleted {
			exists = true
		}
		for j := len(s.hunks) - 1; j >= 0; j-- {
			h := s.hunks[j]
			// The longer side is looked for first, because it may contain the other.
			back := len(h.old) > 0 && locate(lines, h.old, h.line) >= 0
			at := locate(lines, h.new, h.line)
			if at < 0 || back && len(h.old) > len(h.new) {
				all = all && back
				continue
			}
			lines = append(append(append([]string{}, lines[:at]...), h.old...), lines[at+len(h.new):]...)
		}
		if s.added && len(lines) == 0 {
			exists = false
		}
		if len(s.hunks) == 0 { // the agent has not said how
			all = false
		}
	}
	return state{exists: exists, text: strings.Join(lines, "")}, all
}

// locate returns the index at which part is in lines: that of the given line, or the only other
// one. Otherwise it returns -1.
func locate(lines, part []string, line int) int {
	matches := func(at int) bool {
		if at < 0 || at+len(part) > len(lines) {
			return false
		}
		for i, l := range part {
			if !sameLine(lines[at+i], l) {
				return false
			}
		}
		return true
	}
	at := max(line-1, 0)
	if len(part) == 0 { // then the line is the one before
		at = min(max(line, 0), len(lines))
	}
	if matches(at) {
		return at
	}
	if len(part) == 0 {
		return -1
	}
	found := -1
	for i := 0; i+len(part) <= len(lines); i++ {
		if matches(i) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// sameLine compares lines; the last one of a file may lack its line break.
func sameLine(a, b string) bool {
	return a == b || strings.TrimSuffix(a, "\n") == strings.TrimSuffix(b, "\n")
}

// splitLines splits a text after its line breaks.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
