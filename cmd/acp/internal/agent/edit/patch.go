package edit

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goacp/acp/cmd/acp/internal/agent/served"
)

// A Patch changes files in the form that some models were trained on (“V4A”): a text
// between the lines *** Begin Patch and *** End Patch that adds, deletes, updates and moves
// files. Lines of an update begin with a blank, a minus or a plus; @@ names something that
// comes before. A diff of git is read as well.
type Patch struct{ Files []FilePatch }

// A FilePatch is what happens to one file.
type FilePatch struct {
	Path string
	Do   Action
	To   string // where an updated file is moved; "" if it stays
	Text string // of a file that is added
	// Hunks are the places of an update. A file that is deleted may have one that is its text.
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
	// Numbered says that the hunk has the line numbers of a diff. After is then what git found
	// above the place, or nothing.
	Numbered bool
	// OldBare and NewBare say that the last line had, and will have, no line end.
	OldBare, NewBare bool
}

// Bounds of a patch.
const (
	MaxFiles = 1000
	MaxHunks = 10000
)

// ParsePatch reads a patch. What stands before and after it, such as the quotes of a shell,
// is ignored; its first and its last line may be missing. Errors name the line, and say what
// is wanted instead.
func ParsePatch(text string) (*Patch, error) {
	p := &patchParser{lines: strings.Split(strings.TrimPrefix(unix(text), "\ufeff"), "\n")}
	if !p.begin() {
		if p.diff() {
			return p.diffs()
		}
		return nil, errors.New("the line *** Begin Patch is missing: write *** Begin Patch, *** Update File: PATH, @@, " +
			"the lines with a blank, - or + in front, *** End Patch")
	}
	return p.parse()
}

// expression returns a regular expression that is compiled when it is first wanted: few runs read a patch.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// A patchParser reads a patch line by line.
type patchParser struct {
	lines []string
	at    int // the line that is read
	patch Patch
	hunks int
	ended bool // *** End Patch is somewhere below
}

func (p *patchParser) fail(format string, args ...any) error {
	return fmt.Errorf("line %d of the patch: %s", p.at+1, fmt.Sprintf(format, args...))
}

// begin goes to the first line of the patch. Without *** Begin Patch that is the first
// section, unless what comes before it is something else than a wrapping.
func (p *patchParser) begin() bool {
	for i, l := range p.lines {
		if marker(strings.TrimSpace(l)) == "begin patch" {
			p.at = i + 1
			p.end()
			return true
		}
	}
	for i, l := range p.lines {
		if _, _, ok := section(l); ok {
			p.at = i
			p.end()
			return true
		}
	}
	return false
}

// end finds the last line. If it is missing, what closes a wrapping is cut off: the word of
// a heredoc, or the end of a block of Markdown.
func (p *patchParser) end() {
	for _, l := range p.lines[p.at:] {
		if marker(l) == "end patch" {
			p.ended = true
			return
		}
	}
	words := map[string]bool{"```": true, "~~~": true}
	for _, l := range p.lines[:p.at] {
		if m := heredoc().FindStringSubmatch(l); m != nil {
			words[m[1]] = true
		}
	}
	n := len(p.lines)
	for n > p.at && (strings.TrimSpace(p.lines[n-1]) == "" || words[strings.TrimSpace(p.lines[n-1])]) {
		n--
	}
	p.lines = p.lines[:n]
}

var heredoc = expression(`<<-?\s*['"]?([^\s'"<>|&;()]+)['"]?`)

// marker returns what a line of three stars and some words says, in lower case; "" if it is
// not one.
func marker(l string) string {
	rest, ok := strings.CutPrefix(l, "***")
	if !ok {
		return ""
	}
	return strings.ToLower(strings.Join(strings.Fields(rest), " "))
}

var sections = expression(
	`(?i)^\*\*\*\s*(` + strings.Join(slices.Sorted(maps.Keys(sectionWords)), "|") + `)\s+file:\s*(.*)$`)

// sectionWords are those that a section begins with, and what they mean.
var sectionWords = map[string]string{
	"add": "add", "create": "add", "new": "add", "delete": "delete", "remove": "delete",
	"update": "update", "modify": "update", "edit": "update", "move": "move", "rename": "move",
}

// section reads the first line of what happens to a file.
func section(l string) (do, path string, ok bool) {
	m := sections().FindStringSubmatch(strings.TrimRight(l, " \t"))
	if m == nil {
		return "", "", false
	}
	return sectionWords[strings.ToLower(m[1])], unquoted(m[2]), true
}

var moved = expression(`(?i)^\*\*\*\s*(?:(?:move|rename)d?\s+to|to|move\s+file):\s*(.*)$`)

// movedTo reads a line that says where a file goes.
func movedTo(l string) (string, bool) {
	m := moved().FindStringSubmatch(strings.TrimRight(l, " \t"))
	if m == nil || strings.Contains(m[1], "->") {
		return "", false
	}
	return unquoted(m[1]), true
}

// unquoted returns a path without quotes or backticks around it.
func unquoted(path string) string {
	path = strings.TrimSpace(path)
	if n := len(path); n > 2 && path[0] == path[n-1] && strings.IndexByte("\"'`", path[0]) >= 0 {
		return path[1 : n-1]
	}
	return path
}

func (p *patchParser) parse() (*Patch, error) {
	for ; p.at < len(p.lines); p.at++ {
		l := strings.TrimRight(p.lines[p.at], " \t")
		switch marker(l) {
		case "end patch":
			if !p.again() {
				return p.done()
			}
			continue
		case "begin patch":
			continue
		}
		if l == "" {
			continue
		}
		if err := p.file(l); err != nil {
			return nil, err
		}
	}
	return p.done()
}

// again goes to a patch that follows the one that has ended, if there is one.
func (p *patchParser) again() bool {
	for i := p.at + 1; i < len(p.lines); i++ {
		if _, _, ok := section(p.lines[i]); ok || marker(p.lines[i]) == "begin patch" {
			p.at = i - 1
			return true
		}
	}
	return false
}

// done returns the patch, with one section for each file.
func (p *patchParser) done() (*Patch, error) {
	if len(p.patch.Files) == 0 {
		return nil, p.fail("the patch is empty: add a section such as *** Update File: PATH")
	}
	merged := Patch{}
	known := map[string]int{}
	for _, f := range p.patch.Files {
		key := path.Clean(strings.ReplaceAll(f.Path, `\`, "/"))
		if i, ok := known[key]; ok && f.Do == Update {
			if merged.Files[i].put(f) {
				continue
			}
		}
		known[key] = len(merged.Files)
		merged.Files = append(merged.Files, f)
	}
	return &merged, nil
}

// put makes a further section of a file part of the first one. It reports false if the two
// do not go together.
func (f *FilePatch) put(more FilePatch) bool {
	switch {
	case f.To != "" && more.To != "" && f.To != more.To:
		return false
	case f.Do == Update:
		f.Hunks = append(f.Hunks, more.Hunks...)
	case f.Do == Add && more.To == "":
		own := (*served.File)(nil).At(f.Text)
		text, _, err := ApplyHunks(f.Path, f.Text, more.Hunks, own.Shown(1, own.Lines()))
		if err != nil {
			return false
		}
		f.Text = text
	default:
		return false
	}
	if more.To != "" {
		f.To = more.To
	}
	return true
}

// file reads what happens to one file.
func (p *patchParser) file(l string) error {
	if len(p.patch.Files) == MaxFiles {
		return p.fail("a patch has at most %d files", MaxFiles)
	}
	do, path, ok := section(l)
	if !ok || path == "" {
		if isDiff(p.lines[p.at:]) {
			return p.diffFile()
		}
		return p.fail("*** Add File: PATH, *** Delete File: PATH or *** Update File: PATH is wanted, not %q", head(l))
	}
	f := FilePatch{Path: path, Do: Action(do)}
	var err error
	switch do {
	case "add":
		f.Text, err = p.added()
	case "delete":
		f.Hunks, err = p.update(p.over)
	case "update", "move":
		f.Do = Update
		if from, to, ok := strings.Cut(path, "->"); ok && do == "move" {
			f.Path, f.To = unquoted(from), unquoted(strings.TrimPrefix(to, ">"))
		} else if to, ok := movedTo(p.peek()); ok {
			p.at++
			f.To = to
		}
		if do == "move" && f.To == "" {
			return p.fail("it is not said where %s goes: add the line *** Move to: PATH", f.Path)
		}
		p.names()
		f.Hunks, err = p.update(p.over)
		if err == nil && idle(f.Hunks) && f.To == "" {
			err = p.fail("the update of %s changes nothing: add lines that begin with - or +", f.Path)
		}
	}
	p.patch.Files = append(p.patch.Files, f)
	return err
}

// idle reports whether hunks change nothing.
func idle(hunks []Hunk) bool {
	return !slices.ContainsFunc(hunks, func(h Hunk) bool { return !h.idle() })
}

// idle reports whether a hunk only names a place.
func (h *Hunk) idle() bool { return slices.Equal(h.Old, h.New) && h.OldBare == h.NewBare }

// names passes over the names that a diff has before its first place.
func (p *patchParser) names() {
	for i := p.at + 1; i+1 < len(p.lines) && i < p.at+8; i++ {
		l := p.lines[i]
		switch {
		case strings.HasPrefix(l, "diff --git "), strings.HasPrefix(l, "index "), l == "":
		case strings.HasPrefix(l, "--- ") && strings.HasPrefix(p.lines[i+1], "+++ "):
			p.at = i + 1
			return
		default:
			return
		}
	}
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
	if p.at+1 >= len(p.lines) {
		return true
	}
	l := p.peek()
	if m := marker(l); m == "end patch" && p.ended || m == "begin patch" {
		return true
	}
	_, _, ok := section(l)
	return ok || strings.HasPrefix(l, "diff --git ")
}

// added reads the text of a file that is added. An empty line among others needs no plus. If
// no line has one, the lines are the text as they are.
func (p *patchParser) added() (string, error) {
	from := p.at + 1
	plus, plain := 0, -1
	for !p.over() {
		p.at++
		switch l := p.lines[p.at]; {
		case strings.HasPrefix(l, "+"):
			plus++
		case marker(l) == "end of file", strings.HasPrefix(l, `\ No newline`), strings.TrimSpace(l) == "":
		case plain < 0:
			plain = p.at
		}
	}
	if plus > 0 && plain >= 0 {
		p.at = plain
		return "", p.fail("each line of a file that is added begins with a plus, not %q", head(p.lines[plain]))
	}
	lines := p.lines[from : p.at+1]
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	var b strings.Builder
	bare := false
	for _, l := range lines {
		if marker(l) == "end of file" {
			continue
		}
		if bare = strings.HasPrefix(l, `\ No newline`); bare {
			continue
		}
		if plus > 0 {
			l = strings.TrimPrefix(strings.TrimLeft(l, " \t"), "+")
		}
		b.WriteString(l)
		b.WriteByte('\n')
	}
	if bare {
		return strings.TrimSuffix(b.String(), "\n"), nil
	}
	return b.String(), nil
}

// update reads the places of a file that is updated, which are over at the line after that which is read.
func (p *patchParser) update(over func() bool) ([]Hunk, error) {
	h := &hunkReader{p: p}
	for !over() {
		p.at++
		if err := h.line(p.lines[p.at]); err != nil {
			return nil, err
		}
	}
	// Empty lines before the next file are none of the update's.
	h.trim()
	err := h.flush()
	return h.all, err
}

// A hunkReader reads the places of an update, line by line.
type hunkReader struct {
	p     *patchParser
	all   []Hunk
	h     Hunk
	last  byte // what the last line began with
	empty int  // how many of the last lines were empty, without a blank
}

func (r *hunkReader) flush() error {
	if len(r.h.Old)+len(r.h.New) > 0 {
		if r.p.hunks++; r.p.hunks > MaxHunks {
			return r.p.fail("a patch has at most %d places", MaxHunks)
		}
		r.all = append(r.all, r.h)
		r.h = Hunk{}
	}
	r.last, r.empty = 0, 0
	return nil
}

// trim cuts empty lines off the end of the place.
func (r *hunkReader) trim() {
	for ; r.empty > 0 && len(r.h.Old) > 0 && len(r.h.New) > 0; r.empty-- {
		r.h.Old, r.h.New = r.h.Old[:len(r.h.Old)-1], r.h.New[:len(r.h.New)-1]
	}
}

var lineNumbers = expression(`^@@+[ \t]*-\d+(?:,\d+)?(?:[ \t]+\+\d+(?:,\d+)?)?[ \t]*(?:@@+)?(.*)$`)

// line reads a line of a place.
func (r *hunkReader) line(l string) error {
	switch {
	case marker(l) == "end of file":
		r.trim()
		r.h.End = true
		return r.flush()
	case strings.HasPrefix(l, "@@"):
		r.trim()
		if err := r.flush(); err != nil {
			return err
		}
		r.anchor(l)
		return nil
	case strings.HasPrefix(l, `\ No newline`):
		r.h.End = true
		r.h.OldBare = r.h.OldBare || r.last != '+'
		r.h.NewBare = r.h.NewBare || r.last != '-'
		return nil
	case l == "": // the blank at the beginning of an empty line is often left out
		r.empty++
		r.h.Old, r.h.New = append(r.h.Old, ""), append(r.h.New, "")
		r.last = ' '
		return nil
	}
	r.empty = 0
	switch r.last = l[0]; r.last {
	case '-':
		r.h.Old = append(r.h.Old, l[1:])
	case '+':
		r.h.New = append(r.h.New, l[1:])
	case ' ':
		r.h.Old, r.h.New = append(r.h.Old, l[1:]), append(r.h.New, l[1:])
	case '*':
		if strings.HasPrefix(l, "*** ") {
			return r.p.fail("each line of an update begins with a blank, a minus, a plus or @@, not %q", head(l))
		}
		fallthrough
	default: // what has no mark stays, if it is there
		r.h.Old, r.h.New = append(r.h.Old, l), append(r.h.New, l)
	}
	return nil
}

// anchor reads a line that begins with @@.
func (r *hunkReader) anchor(l string) {
	say := strings.TrimPrefix(l, "@@")
	if m := lineNumbers().FindStringSubmatch(l); m != nil {
		r.h.After, r.h.Numbered, say = nil, true, m[1]
	}
	say = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(say), "@@"))
	if strings.Trim(say, ".…") != "" {
		r.h.After = append(r.h.After, say)
	}
}

func head(l string) string {
	if len(l) > 80 {
		return strings.ToValidUTF8(l[:80], "") + "…"
	}
	return l
}
