package edit

import (
	"fmt"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/agent/served"
)

// A Patch changes files in the form that some models were trained on (“V4A”): a text
// between the lines *** Begin Patch and *** End Patch that adds, deletes, updates and moves
// files. Lines of an update begin with a blank, a minus or a plus; @@ names something that
// comes before.
type Patch struct{ Files []FilePatch }

// A FilePatch is what happens to one file.
type FilePatch struct {
	Path string
	Do   Action
	To   string // where an updated file is moved; "" if it stays
	Text string // of a file that is added
	// Hunks are the places of an update, from the beginning to the end.
	Hunks []Hunk
}

// An Action is what a patch does with a file.
type Action string

// The actions.
const (
	Add    Action = "add"
	Delete Action = "delete"
	Update Action = "update"
)

// A Hunk changes one place.
type Hunk struct {
	After []string // lines that come before the place, each after the one before
	Old   []string // what is there: what stays and what goes
	New   []string // what stays and what comes
	End   bool     // the place is the end of the file
}

// Bounds of a patch.
const (
	MaxFiles = 1000
	MaxHunks = 10000
)

// ParsePatch reads a patch. What stands before and after it, such as the quotes of a shell,
// is ignored. Errors name the line.
func ParsePatch(text string) (*Patch, error) {
	lines := strings.Split(unix(text), "\n")
	first := 0
	for first < len(lines) && strings.TrimSpace(lines[first]) != "*** Begin Patch" {
		first++
	}
	if first == len(lines) {
		return nil, fmt.Errorf("the line *** Begin Patch is missing")
	}
	p := &patchParser{lines: lines, at: first + 1}
	return p.parse()
}

// A patchParser reads a patch line by line.
type patchParser struct {
	lines []string
	at    int
	patch Patch
	hunks int
}

func (p *patchParser) fail(format string, args ...any) error {
	return fmt.Errorf("line %d of the patch: %s", p.at+1, fmt.Sprintf(format, args...))
}

func (p *patchParser) parse() (*Patch, error) {
	for ; p.at < len(p.lines); p.at++ {
		l := strings.TrimRight(p.lines[p.at], " \t")
		if l == "*** End Patch" {
			if len(p.patch.Files) == 0 {
				return nil, p.fail("the patch is empty")
			}
			return &p.patch, nil
		}
		if l == "" {
			continue
		}
		if err := p.file(l); err != nil {
			return nil, err
		}
	}
	return nil, p.fail("the line *** End Patch is missing")
}

// file reads what happens to one file.
func (p *patchParser) file(l string) error {
	if len(p.patch.Files) == MaxFiles {
		return p.fail("a patch has at most %d files", MaxFiles)
	}
	f := FilePatch{}
	for prefix, do := range map[string]Action{"*** Add File: ": Add, "*** Delete File: ": Delete, "*** Update File: ": Update} {
		if path, ok := strings.CutPrefix(l, prefix); ok {
			f.Do, f.Path = do, strings.TrimSpace(path)
		}
	}
	if f.Path == "" {
		return p.fail("*** Add File: PATH, *** Delete File: PATH or *** Update File: PATH is wanted, not %q", head(l))
	}
	var err error
	switch f.Do {
	case Add:
		f.Text, err = p.added()
	case Update:
		if to, ok := strings.CutPrefix(p.peek(), "*** Move to: "); ok {
			p.at++
			f.To = strings.TrimSpace(to)
		}
		f.Hunks, err = p.update()
		if err == nil && len(f.Hunks) == 0 && f.To == "" {
			err = p.fail("the update of %s changes nothing", f.Path)
		}
	}
	p.patch.Files = append(p.patch.Files, f)
	return err
}

// peek returns the next line, or an empty one.
func (p *patchParser) peek() string {
	if p.at+1 < len(p.lines) {
		return p.lines[p.at+1]
	}
	return ""
}

// over reports whether the next line is none of this file.
func (p *patchParser) over() bool {
	l := strings.TrimRight(p.peek(), " \t")
	return p.at+1 >= len(p.lines) || l == "*** End Patch" || strings.HasPrefix(l, "*** Add File: ") || strings.HasPrefix(l, "*** Delete File: ") || strings.HasPrefix(l, "*** Update File: ")
}

// added reads the text of a file that is added.
func (p *patchParser) added() (string, error) {
	var b strings.Builder
	for !p.over() {
		p.at++
		l := p.lines[p.at]
		body, ok := strings.CutPrefix(l, "+")
		if !ok && strings.TrimSpace(l) != "" {
			return "", p.fail("each line of a file that is added begins with a plus, not %q", head(l))
		}
		if ok {
			b.WriteString(body)
			b.WriteByte('\n')
		}
	}
	return b.String(), nil
}

// update reads the places of a file that is updated.
func (p *patchParser) update() ([]Hunk, error) {
	var hunks []Hunk
	var h Hunk
	flush := func() error {
		if len(h.Old)+len(h.New) > 0 {
			if p.hunks++; p.hunks > MaxHunks {
				return p.fail("a patch has at most %d places", MaxHunks)
			}
			hunks = append(hunks, h)
			h = Hunk{}
		}
		return nil
	}
	for !p.over() {
		p.at++
		l := p.lines[p.at]
		if strings.TrimRight(l, " \t") == "*** End of File" {
			h.End = true
			if err := flush(); err != nil {
				return nil, err
			}
			continue
		}
		if after, ok := strings.CutPrefix(l, "@@"); ok {
			if err := flush(); err != nil {
				return nil, err
			}
			if after = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(after), "@@")); after != "" {
				h.After = append(h.After, after)
			}
			continue
		}
		if l == "" { // the blank at the beginning of an empty line is often left out
			l = " "
		}
		switch l[0] {
		case ' ':
			h.Old, h.New = append(h.Old, l[1:]), append(h.New, l[1:])
		case '-':
			h.Old = append(h.Old, l[1:])
		case '+':
			h.New = append(h.New, l[1:])
		default:
			return nil, p.fail("each line of an update begins with a blank, a minus, a plus or @@, not %q", head(l))
		}
	}
	// Empty lines before the next file are none of the update's.
	for n := len(h.Old); n > 0 && len(h.New) > 0 && h.Old[n-1] == "" && h.New[len(h.New)-1] == "" && p.lines[p.at] == ""; n = len(h.Old) {
		h.Old, h.New = h.Old[:n-1], h.New[:len(h.New)-1]
		p.at--
	}
	return hunks, flush()
}

func head(l string) string {
	if len(l) > 80 {
		return strings.ToValidUTF8(l[:80], "") + "…"
	}
	return l
}

// ApplyHunks makes the changes of an update to a text, one after the other: all of them or
// none. The first place of each hunk is looked for after that of the one before. An error
// is a [*Refusal]. known is what the model knows of the file; nil is nothing.
func ApplyHunks(path, text string, hunks []Hunk, known *served.File) (string, []Change, error) {
	b := begin(text, known)
	done := 0 // what was changed ends there
	for i, h := range hunks {
		after, c, end, err := applyHunk(b.text, h, done, b.knows())
		if err != nil {
			err.Index, err.Of, err.file = i, len(hunks), path
			return "", nil, err
		}
		done = end
		b.step(after, c, h.edit())
	}
	return b.text, b.changes, nil
}

// edit is the change of whole lines that a hunk stands for.
func (h Hunk) edit() Edit {
	e := Edit{Old: strings.Join(h.Old, "\n") + "\n", New: strings.Join(h.New, "\n") + "\n"}
	if len(h.New) == 0 {
		e.New = ""
	}
	return e
}

// applyHunk changes one place of what follows the first bytes.
func applyHunk(text string, h Hunk, from int, known *served.File) (after string, c Change, end int, refusal *Refusal) {
	for _, a := range h.After {
		at, ok := find(text, a, from)
		if !ok {
			return "", c, 0, &Refusal{Reason: Missing, Near: newFile(text).nearest(a + "\n")}
		}
		from = at
	}
	head, rest := text[:from], text[from:]
	line := strings.Count(head, "\n")
	if len(h.Old) == 0 { // lines that come after the line of @@, or at the end
		now := strings.Join(h.New, "\n") + "\n"
		if len(h.After) == 0 || h.End {
			if text != "" && !strings.HasSuffix(text, "\n") {
				now = "\n" + strings.TrimSuffix(now, "\n")
			}
			head, rest = text, ""
		}
		now = strings.ReplaceAll(now, "\n", newFile(text).end)
		return head + now + rest, Change{How: Exact, Line: 1 + strings.Count(head, "\n"), Places: 1}, len(head) + len(now), nil
	}
	e := h.edit()
	if h.End {
		if last := lastPlace(rest, len(h.Old)); last > 0 {
			head, rest = head+rest[:last], rest[last:]
			line = strings.Count(head, "\n")
		}
	}
	if e.Old == e.New {
		return text, Change{How: Nothing, Line: line + 1}, from, nil
	}
	now, c, refusal := apply(rest, e, knowledge{known, line, len(h.After) > 0})
	if refusal != nil {
		for i := range refusal.Lines {
			refusal.Lines[i] += line
		}
		if refusal.Near != nil {
			refusal.Near.From += line
		}
		return "", c, 0, refusal
	}
	c.Line += line
	// What follows the place is as long as it was.
	f := newFile(rest)
	end = len(head)
	if c.How != Already {
		at := f.lines[c.Line-line-1].from
		end += at + len(strings.ReplaceAll(e.New, "\n", f.end))
		end = min(end, len(head)+len(now))
		end = strings.LastIndex((head + now)[:end], "\n") + 1
	}
	return head + now, c, end, nil
}

// find returns where the line after the first one that says something begins: whole lines
// are tried before parts of them.
func find(text, say string, from int) (int, bool) {
	for _, same := range []func(l string) bool{
		func(l string) bool { return strings.TrimSpace(l) == say },
		func(l string) bool { return strings.Contains(folded(l), folded(say)) },
	} {
		at := from
		for l := range strings.Lines(text[from:]) {
			at += len(l)
			if same(l) {
				return at, true
			}
		}
	}
	return 0, false
}

// lastPlace returns where the last n lines begin.
func lastPlace(text string, n int) int {
	f := newFile(text)
	if len(f.lines) < n {
		return 0
	}
	return f.lines[len(f.lines)-n].from
}
