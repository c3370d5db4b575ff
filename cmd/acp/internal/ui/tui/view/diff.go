package view

import (
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// A DiffMode selects how changes to files are drawn.
type DiffMode int

// The ways to draw changes.
const (
	DiffAuto    DiffMode = iota // side by side if the screen is wide enough
	DiffUnified                 // one below the other
	DiffSplit                   // side by side
)

// splitWidth is the width from which on DiffAuto draws changes side by side.
const splitWidth = 110

// maxDiffed bounds the two texts that Diff compares, in bytes of both together.
const maxDiffed = 4 << 20

// Diff draws how the text of a file changes. Texts of more than 4 MiB together are only mentioned.
func Diff(path, before, after string, width int, th *Theme, mode DiffMode) []string {
	if len(before)+len(after) > maxDiffed {
		return th.renderAll([]line{{{safetext.Line(path, 200), look{attr: bold}}, {" too long to compare: " + size(uint64(len(before))) + " → " + size(uint64(len(after))), th.dim}}}, width)
	}
	// both begin as they would in a file of that name
	return PatchDiff(udiff.Unified("a/"+path, "b/"+path, before, after), width, th, mode)
}

// PatchDiff draws a patch in Git's format. Anything that is not a patch is shown verbatim.
func PatchDiff(patch string, width int, th *Theme, mode DiffMode) []string {
	var out []line
	for i, f := range parsePatch(patch) {
		if i > 0 {
			out = append(out, nil)
		}
		out = append(out, th.fileLines(&f, "", width, mode)...)
	}
	return th.renderAll(out, width)
}

// renderAll renders lines and cuts them to the width.
func (th *Theme) renderAll(ls []line, width int) []string {
	out := make([]string, len(ls))
	for i, l := range ls {
		out[i] = th.render(cut(l, width))
	}
	return out
}

// diffFiles returns what a diff does to each file: the changes in its patch, and for files that the
// patch does not contain, that they change.
func diffFiles(d *acpv2.Diff) []fileDiff {
	var files []fileDiff
	if d.Patch != nil {
		files = parsePatch(d.Patch.Text)
	}
	inPatch := func(path string) *fileDiff {
		for i := range files {
			p := strings.TrimPrefix(files[i].path, "/")
			if p != "" && (p == strings.TrimPrefix(path, "/") || strings.HasSuffix(path, "/"+p)) {
				return &files[i]
			}
		}
		return nil
	}
	for _, c := range d.Changes {
		f := fileDiff{binary: c.FileType == acpv2.DiffFileTypeBinary}
		switch op := c.Operation.(type) {
		case *acpv2.DiffAdd:
			f.path, f.what = op.Path, "new"
		case *acpv2.DiffDelete:
			f.path, f.what = op.Path, "deleted"
		case *acpv2.DiffModify:
			f.path = op.Path
		case *acpv2.DiffMove:
			f.path, f.from, f.what = op.Path, op.OldPath, "moved"
		case *acpv2.DiffCopy:
			f.path, f.from, f.what = op.Path, op.OldPath, "copied"
		case *acpv2.UnknownDiffOperation:
			f.path, f.what = "(a file)", safetext.Line(op.Type, 40)
		}
		f.path, f.from = safetext.Line(f.path, maxTitle), safetext.Line(f.from, maxTitle)
		if in := inPatch(f.path); in != nil {
			in.path, in.from = f.path, f.from
			if f.what != "" {
				in.what = f.what
			}
			continue
		}
		files = append(files, f)
	}
	return files
}

// diff adds the file changes of a tool call.
func (b *builder) diff(d *acpv2.Diff, open bool) {
	t, th := b.t, b.t.th
	mode, cwd := t.opts.Diff, t.opts.Cwd
	files := diffFiles(d)
	for i := range files {
		f := &files[i]
		f.link = t.fileLink(f.path, f.line())
		if !open {
			b.add(indent(4), func(width int) []line {
				rows, hidden := 0, 0
				out := th.fileHead(f, cwd, width) // of the whole file, whatever is drawn of it
				for j, h := range f.hunks {
					if rows > foldedDiff {
						hidden += len(h.lines)
						continue
					}
					rows += len(h.lines)
					out = append(out, th.hunkLines(f, j, width, mode)...)
				}
				return folded(th, out, foldedDiff, hidden, false)
			})
			continue
		}
		b.add(indent(4), func(width int) []line { return th.fileHead(f, cwd, width) })
		for j := range f.hunks {
			b.add(indent(4), func(width int) []line { return th.hunkLines(f, j, width, mode) })
		}
	}
}

// fileLines draws the changes to a file.
func (th *Theme) fileLines(f *fileDiff, cwd string, width int, mode DiffMode) []line {
	out := th.fileHead(f, cwd, width)
	for j := range f.hunks {
		out = append(out, th.hunkLines(f, j, width, mode)...)
	}
	return out
}

// fileHead draws the name of a file, and how many lines change.
func (th *Theme) fileHead(f *fileDiff, cwd string, width int) []line {
	var out []line
	var l line
	if f.path != "" {
		if f.from != "" && f.from != f.path {
			l = l.put(shortPath(f.from, cwd), look{attr: bold}).put(" → ", th.dim)
		}
		l = l.put(shortPath(f.path, cwd), look{attr: bold, link: f.link})
	}
	if f.what != "" {
		l = l.put(" "+f.what, th.warn)
	}
	if f.binary {
		l = l.put(" binary", th.dim)
	}
	if added, removed := f.count(); added+removed > 0 {
		if added > 0 {
			l = l.put(" +"+strconv.Itoa(added), th.good)
		}
		if removed > 0 {
			l = l.put(" −"+strconv.Itoa(removed), th.bad)
		}
	}
	if len(l) > 0 {
		out = wrap(l, width)
	}
	for _, s := range f.other {
		out = append(out, wrap(line{}.put(tabs(s, tabSize), th.dim), width)...)
	}
	return out
}

// hunkLines draws a hunk of a file.
func (th *Theme) hunkLines(f *fileDiff, j, width int, mode DiffMode) []line {
	h := &f.hunks[j]
	var out []line
	if j > 0 && !h.more {
		l := line{}.put("⋯", th.dim)
		if h.section != "" {
			l = l.put(" "+tabs(h.section, tabSize), th.dim)
		}
		out = append(out, cut(l, width))
	}
	d := hunkDrawer{th: th, h: h}
	d.numbers = numberWidth(f)
	d.colour(lexerFor(f.path, true))
	d.emphasise()
	added, removed := f.count()
	both := added > 0 && removed > 0 // one side would be empty
	if mode == DiffSplit && width >= 40 || mode == DiffAuto && width >= splitWidth && both {
		return append(out, d.split(width)...)
	}
	return append(out, d.unified(width)...)
}

// numberWidth returns the width of the line numbers of a file, in cells.
func numberWidth(f *fileDiff) int {
	n := 1
	for _, h := range f.hunks {
		if k := len(h.lines); k > 0 {
			n = max(n, h.lines[k-1].old, h.lines[k-1].new)
		}
	}
	return max(len(strconv.Itoa(n)), 2)
}

// A hunkDrawer draws a hunk.
type hunkDrawer struct {
	th      *Theme
	h       *hunk
	numbers int
	texts   []line // the coloured lines
	pairs   []int  // index of the line that a line replaces or is replaced by; -1 for none
}

// colour colours the lines according to their language. The lines before the change and those after
// it are two texts, because a mixture of both would confuse the lexer.
func (d *hunkDrawer) colour(lexer chromaLexer) {
	d.texts = make([]line, len(d.h.lines))
	for _, skip := range []byte{'+', '-'} {
		var b strings.Builder
		var index []int
		for i, l := range d.h.lines {
			if l.sign != skip {
				b.WriteString(l.text)
				b.WriteByte('\n')
				index = append(index, i)
			}
		}
		if len(index) == 0 {
			continue
		}
		ls := d.th.codeLines(b.String(), lexer)
		for k, i := range index {
			if k < len(ls) {
				d.texts[i] = ls[k]
			}
		}
	}
}

// emphasise marks the words that differ between a line and its replacement.
func (d *hunkDrawer) emphasise() {
	ls := d.h.lines
	d.pairs = make([]int, len(ls))
	for i := range d.pairs {
		d.pairs[i] = -1
	}
	for i := 0; i < len(ls); {
		if ls[i].sign != '-' {
			i++
			continue
		}
		r := i
		for r < len(ls) && ls[r].sign == '-' {
			r++
		}
		a := r
		for a < len(ls) && ls[a].sign == '+' {
			a++
		}
		for k := range min(r-i, a-r) {
			d.pairs[i+k], d.pairs[r+k] = r+k, i+k
			old, now := changedWords(d.texts[i+k].plain(), d.texts[r+k].plain())
			d.texts[i+k] = marked(d.texts[i+k], old, d.th.removedWord)
			d.texts[r+k] = marked(d.texts[r+k], now, d.th.addedWord)
		}
		i = max(a, i+1)
	}
}

// looks returns the looks of a line and of its sign.
func (d *hunkDrawer) looks(sign byte) (bg, mark look) {
	switch sign {
	case '+':
		return d.th.added, d.th.addedMark
	case '-':
		return d.th.removed, d.th.removedMark
	}
	return look{}, d.th.dim
}

// cell draws a line in a column, with its number.
func (d *hunkDrawer) cell(i, num, width int, fill bool) []line {
	l := d.h.lines[i]
	bg, mk := d.looks(l.sign)
	sign := string(rune(l.sign))
	if l.sign == '-' {
		sign = "-"
	}
	numText := strconv.Itoa(num)
	numText = strings.Repeat(" ", max(d.numbers-len(numText), 0)) + numText + " "
	first := line{{numText, d.th.dim}, {sign + " ", mk.on(bg)}}
	rest := line{{strings.Repeat(" ", textWidth(numText)), d.th.dim}, {"  ", mk.on(bg)}}
	if width < d.numbers+14 { // no room for numbers
		first, rest = first[1:], rest[1:]
	}
	text := make(line, len(d.texts[i]))
	for j, s := range d.texts[i] {
		if s.look.bg == "" {
			s.look = s.look.on(bg)
		}
		text[j] = s
	}
	ls := before(chop(text, width-first.width()), decorated(first), decorated(rest))
	if len(ls) > 1 {
		for k := range ls[1:] { // before leaves out what would be only spaces
			if len(ls[k+1]) == 0 {
				ls[k+1] = decorated(rest)
			}
		}
	}
	if fill || bg.bg != "" {
		for k := range ls {
			ls[k] = pad(ls[k], width, bg.with(decoration))
		}
	}
	return ls
}

// unified draws removed lines above added ones.
func (d *hunkDrawer) unified(width int) []line {
	var out []line
	for i, l := range d.h.lines {
		num := l.new
		if l.sign == '-' {
			num = l.old
		}
		out = append(out, d.cell(i, num, width, false)...)
	}
	return out
}

// split draws removed and added lines side by side.
func (d *hunkDrawer) split(width int) []line {
	left := (width - 3) / 2
	right := width - 3 - left
	sep := line{{" │ ", d.th.dim}}
	var out []line
	row := func(a, b []line) {
		for k := range max(len(a), len(b)) {
			var l line
			if k < len(a) {
				l = extend(l, a[k])
			}
			l = extend(pad(l, left, look{}), sep)
			if k < len(b) {
				l = extend(l, b[k])
			}
			out = append(out, l)
		}
	}
	for i, l := range d.h.lines {
		switch {
		case l.sign == ' ':
			row(d.cell(i, l.old, left, false), d.cell(i, l.new, right, false))
		case l.sign == '-' && d.pairs[i] >= 0:
			j := d.pairs[i]
			row(d.cell(i, l.old, left, false), d.cell(j, d.h.lines[j].new, right, false))
		case l.sign == '-':
			row(d.cell(i, l.old, left, false), nil)
		case l.sign == '+' && d.pairs[i] < 0:
			row(nil, d.cell(i, l.new, right, false))
		}
	}
	return out
}

// FileDiff draws the patch of the file at path: its head and each of its hunks.
func FileDiff(path, patch, cwd string, width int, th *Theme, mode DiffMode) (head []string, hunks [][]string) {
	files := parsePatch(patch)
	if len(files) == 0 {
		return nil, nil
	}
	f := &files[0]
	f.path = safetext.Line(path, maxTitle)
	for j := range f.hunks {
		part := th.renderAll(th.hunkLines(f, j, width, mode), width)
		if n := len(hunks); n > 0 && f.hunks[j].more {
			hunks[n-1] = append(hunks[n-1], part...)
			continue
		}
		hunks = append(hunks, part)
	}
	return th.renderAll(th.fileHead(f, cwd, width), width), hunks
}
