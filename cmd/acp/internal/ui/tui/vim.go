package tui

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// A vim edits prompts as vi does: with a mode in which letters are commands. It knows the motions
// h j k l w b e 0 ^ $ gg G f t F T, the operators d c y with them and twice, x X D C s S r ~ J p P u
// i I a A o O, and counts. Everything else about the input stays as it is without it.
type vim struct {
	normal  bool
	pending []rune // an unfinished command
	yanked  string
	lines   bool // yanked is whole lines
	undo    []vimState
}

// maxUndo bounds the states that can be gone back to.
const maxUndo = 100

// maxCount bounds the count before a command.
const maxCount = 9999

// A vimState is a text and the place of the cursor in it, in runes.
type vimState struct {
	text []rune
	at   int
}

// key handles a key. done is false if the key is not vim's.
func (v *vim) key(in *input, k tea.KeyPressMsg) (done bool) {
	s := k.String()
	if !v.normal {
		if s == "esc" || s == "ctrl+[" {
			v.normal = true
			v.pending = nil
			v.apply(in, v.state(in), func(st vimState) vimState {
				if st.at > 0 && st.text[st.at-1] != '\n' {
					st.at--
				}
				return st
			})
			return true
		}
		return false
	}
	switch s {
	case "esc", "ctrl+[":
		waited := len(v.pending) > 0
		v.pending = nil
		return waited
	case "ctrl+r", "backspace", "left", "right", "home", "end", "delete":
		v.pending = nil
		return false
	case "space":
		k.Text = " "
	}
	r := []rune(k.Text)
	if len(r) != 1 {
		return false
	}
	if len(v.pending) == 0 && (r[0] == '/' || r[0] == '?' || r[0] == '!' || r[0] == '@' || r[0] == ':') {
		// What begins with these is for acp, and typed.
		if in.value() == "" {
			v.normal = false
			return false
		}
		return true
	}
	if v.pending = append(v.pending, r[0]); len(v.pending) > 16 {
		v.pending = nil
		return true
	}
	v.command(in)
	return true
}

// state returns the text and the cursor of the input.
func (v *vim) state(in *input) vimState {
	text := []rune(in.value())
	at, row := 0, in.area.Line()
	for row > 0 && at < len(text) {
		if text[at] == '\n' {
			row--
		}
		at++
	}
	return vimState{text, min(at+in.area.Column(), len(text))}
}

// apply carries out a change, and remembers what was before it.
func (v *vim) apply(in *input, st vimState, change func(vimState) vimState) {
	before := string(st.text)
	now := change(vimState{append([]rune(nil), st.text...), st.at})
	if string(now.text) != before {
		if v.undo = append(v.undo, st); len(v.undo) > maxUndo {
			v.undo = v.undo[1:]
		}
	}
	v.show(in, now)
}

// show puts a state into the input.
func (v *vim) show(in *input, st vimState) {
	st.at = min(max(st.at, 0), len(st.text))
	if string(st.text) != in.value() {
		in.area.SetValue(string(st.text))
	}
	row, col := 0, 0
	for _, r := range st.text[:st.at] {
		if col++; r == '\n' {
			row, col = row+1, 0
		}
	}
	in.area.MoveToBegin()
	for i := 0; in.area.Line() < row && i < len(st.text); i++ {
		in.area.CursorDown()
	}
	in.area.SetCursorColumn(col)
}

// command carries out the pending command, if it is finished.
func (v *vim) command(in *input) {
	p := v.pending
	count, counted := 0, false
	number := func() {
		for len(p) > 0 && (p[0] > '0' && p[0] <= '9' || counted && p[0] == '0') {
			count, counted = min(count*10+int(p[0]-'0'), maxCount), true
			p = p[1:]
		}
	}
	number()
	if len(p) == 0 {
		return
	}
	st := v.state(in)
	op := p[0]
	if op == 'd' || op == 'c' || op == 'y' {
		first := count
		count, p = 0, p[1:]
		number()
		count = min(max(first, 1)*max(count, 1), maxCount)
		if len(p) == 0 {
			return
		}
		from, to, lines, ok, more := st.span(op, p, count)
		if more {
			return
		}
		v.pending = nil
		if ok {
			v.operate(in, st, op, from, to, lines)
		}
		return
	}
	n := max(count, 1)
	switch op {
	case 'x':
		v.pending = nil
		v.operate(in, st, 'd', st.at, min(st.at+n, st.lineEnd(st.at)), false)
	case 'X':
		v.pending = nil
		v.operate(in, st, 'd', max(st.at-n, st.lineStart(st.at)), st.at, false)
	case 's':
		v.pending = nil
		v.operate(in, st, 'c', st.at, min(st.at+n, st.lineEnd(st.at)), false)
	case 'S':
		v.pending = nil
		v.operate(in, st, 'c', st.lineStart(st.at), st.lineEnd(st.at), false)
	case 'D':
		v.pending = nil
		v.operate(in, st, 'd', st.at, st.lineEnd(st.at), false)
	case 'C':
		v.pending = nil
		v.operate(in, st, 'c', st.at, st.lineEnd(st.at), false)
	case 'r', '~', 'J', 'p', 'P', 'u', 'i', 'I', 'a', 'A', 'o', 'O':
		if op == 'r' && len(p) == 1 {
			return
		}
		v.pending = nil
		v.simple(in, st, op, p, n)
	default:
		at, _, ok, more := st.motion(p, n, counted)
		if more {
			return
		}
		v.pending = nil
		if ok {
			v.show(in, vimState{st.text, st.within(at)})
		}
	}
}

// operate deletes, changes or copies a span.
func (v *vim) operate(in *input, st vimState, op rune, from, to int, lines bool) {
	if from >= to && (op != 'c' && !lines) {
		return
	}
	v.yanked, v.lines = string(st.text[from:to]), lines
	if op == 'y' {
		v.show(in, vimState{st.text, st.within(from)})
		return
	}
	if lines && op == 'c' && to > from && st.text[to-1] == '\n' {
		to-- // the line stays, empty
	} else if lines && to == len(st.text) && from > 0 {
		from-- // the last line goes with the line break before it
	}
	v.apply(in, st, func(st vimState) vimState {
		st.text = append(st.text[:from], st.text[to:]...)
		st.at = from
		if lines && op == 'd' {
			st.at = st.firstWord(min(from, len(st.text)))
		}
		if op == 'd' {
			st.at = st.within(st.at)
		}
		return st
	})
	v.normal = op != 'c'
}

// simple carries out the commands without a motion.
func (v *vim) simple(in *input, st vimState, op rune, p []rune, n int) {
	insert := func(at int, text string) {
		v.normal = false
		v.apply(in, st, func(st vimState) vimState {
			st.text = []rune(string(st.text[:at]) + text + string(st.text[at:]))
			st.at = at
			return st
		})
	}
	switch op {
	case 'i':
		insert(st.at, "")
	case 'I':
		insert(st.firstWord(st.at), "")
	case 'a':
		insert(min(st.at+1, st.lineEnd(st.at)), "")
	case 'A':
		insert(st.lineEnd(st.at), "")
	case 'o':
		end := st.lineEnd(st.at)
		insert(end, "\n")
		v.show(in, vimState{[]rune(in.value()), end + 1})
	case 'O':
		insert(st.lineStart(st.at), "\n")
	case 'u':
		for range min(n, len(v.undo)) {
			last := len(v.undo) - 1
			v.show(in, v.undo[last])
			v.undo = v.undo[:last]
		}
	case 'r':
		v.apply(in, st, func(st vimState) vimState {
			for i := st.at; i < min(st.at+n, st.lineEnd(st.at)); i++ {
				st.text[i] = p[1]
			}
			return st
		})
	case '~':
		v.apply(in, st, func(st vimState) vimState {
			for ; n > 0 && st.at < st.lineEnd(st.at); n-- {
				r := st.text[st.at]
				if unicode.IsUpper(r) {
					st.text[st.at] = unicode.ToLower(r)
				} else {
					st.text[st.at] = unicode.ToUpper(r)
				}
				st.at++
			}
			st.at = st.within(st.at)
			return st
		})
	case 'J':
		v.apply(in, st, func(st vimState) vimState {
			for range max(n-1, 1) {
				end := st.lineEnd(st.at)
				if end >= len(st.text) {
					break
				}
				next := st.firstWord(end + 1)
				st.text = []rune(string(st.text[:end]) + " " + string(st.text[next:]))
				st.at = end
			}
			return st
		})
	case 'p', 'P':
		v.put(in, st, op == 'p', n)
	}
}

// put inserts what was deleted or copied last.
func (v *vim) put(in *input, st vimState, after bool, n int) {
	if v.yanked == "" || len(v.yanked)*n > maxPrompt {
		return
	}
	v.apply(in, st, func(st vimState) vimState {
		at, text := st.at, strings.Repeat(v.yanked, n)
		switch {
		case v.lines && after:
			if !strings.HasSuffix(v.yanked, "\n") {
				text = strings.Repeat(v.yanked+"\n", n)
			}
			if at = st.lineEnd(st.at); at == len(st.text) {
				text = "\n" + strings.TrimSuffix(text, "\n")
			} else {
				at++
			}
		case v.lines:
			if !strings.HasSuffix(v.yanked, "\n") {
				text = strings.Repeat(v.yanked+"\n", n)
			}
			at = st.lineStart(st.at)
		case after:
			at = min(st.at+1, st.lineEnd(st.at))
		}
		st.text = []rune(string(st.text[:at]) + text + string(st.text[at:]))
		switch {
		case v.lines && strings.HasPrefix(text, "\n"):
			st.at = at + 1
		case v.lines:
			st.at = at
		default:
			st.at = at + len([]rune(text)) - 1
		}
		return st
	})
}

// lineStart and lineEnd return where the line of a place begins and ends, without its line break.
func (st vimState) lineStart(at int) int {
	for at > 0 && st.text[at-1] != '\n' {
		at--
	}
	return at
}

func (st vimState) lineEnd(at int) int {
	for at < len(st.text) && st.text[at] != '\n' {
		at++
	}
	return at
}

// firstWord returns where the first word of a line begins.
func (st vimState) firstWord(at int) int {
	at = st.lineStart(at)
	for at < len(st.text) && (st.text[at] == ' ' || st.text[at] == '\t') {
		at++
	}
	return at
}

// within keeps the cursor on a character of its line.
func (st vimState) within(at int) int {
	at = min(max(at, 0), len(st.text))
	if at > st.lineStart(at) && at == st.lineEnd(at) {
		at--
	}
	return at
}

// span returns what an operator with a motion is about. more is true if the motion is not finished.
func (st vimState) span(op rune, p []rune, n int) (from, to int, lines, ok, more bool) {
	whole := func(a, b int) (int, int, bool, bool, bool) {
		to := st.lineEnd(b)
		if to < len(st.text) {
			to++
		}
		return st.lineStart(a), to, true, true, false
	}
	switch p[0] {
	case op:
		end := st.at
		for ; n > 1; n-- {
			if next := st.lineEnd(end); next < len(st.text) {
				end = next + 1
			}
		}
		return whole(st.at, end)
	case 'w', 'W':
		if op == 'c' { // which changes a word, and not the space after it
			p = []rune{'e' - 'w' + p[0]}
		}
	}
	at, inclusive, ok, more := st.motion(p, n, false)
	if !ok || more {
		return 0, 0, false, ok, more
	}
	if strings.ContainsRune("jkG", p[0]) || p[0] == 'g' {
		return whole(min(st.at, at), max(st.at, at))
	}
	from, to = min(st.at, at), max(st.at, at)
	if inclusive && to < len(st.text) {
		to++
	}
	if p[0] == 'w' || p[0] == 'W' { // not beyond the line
		to = min(to, max(st.lineEnd(from), from))
	}
	return from, to, false, true, false
}

// class tells words, marks and spaces apart; big has no marks.
func class(r rune, big bool) int {
	switch {
	case unicode.IsSpace(r):
		return 0
	case big || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
		return 1
	}
	return 2
}

// motion returns where a motion leads. inclusive says that an operator also takes what is there.
func (st vimState) motion(p []rune, n int, counted bool) (at int, inclusive, ok, more bool) {
	at = st.at
	big := unicode.IsUpper(p[0])
	switch p[0] {
	case 'h':
		return max(at-n, st.lineStart(at)), false, true, false
	case 'l', ' ':
		return min(at+n, st.lineEnd(at)), false, true, false
	case '0':
		return st.lineStart(at), false, true, false
	case '^':
		return st.firstWord(at), false, true, false
	case '$':
		return st.lineEnd(at), false, true, false
	case 'j', 'k':
		col := at - st.lineStart(at)
		for ; n > 0; n-- {
			if p[0] == 'k' {
				if start := st.lineStart(at); start > 0 {
					at = st.lineStart(start - 1)
				}
			} else if end := st.lineEnd(at); end < len(st.text) {
				at = end + 1
			}
		}
		at = st.lineStart(at)
		return min(at+col, st.lineEnd(at)), false, true, false
	case 'g':
		if len(p) == 1 {
			return 0, false, false, true
		}
		return 0, false, p[1] == 'g', false
	case 'G':
		return st.lineStart(len(st.text)), false, true, false
	case 'w', 'W':
		for ; n > 0 && at < len(st.text); n-- {
			c := class(st.text[at], big)
			for at < len(st.text) && c != 0 && class(st.text[at], big) == c {
				at++
			}
			for at < len(st.text) && class(st.text[at], big) == 0 {
				at++
			}
		}
		return at, false, true, false
	case 'b', 'B':
		for ; n > 0 && at > 0; n-- {
			at--
			for at > 0 && class(st.text[at], big) == 0 {
				at--
			}
			c := class(st.text[at], big)
			for at > 0 && class(st.text[at-1], big) == c {
				at--
			}
		}
		return at, false, true, false
	case 'e', 'E':
		for ; n > 0 && at < len(st.text)-1; n-- {
			at++
			for at < len(st.text)-1 && class(st.text[at], big) == 0 {
				at++
			}
			c := class(st.text[at], big)
			for at < len(st.text)-1 && class(st.text[at+1], big) == c {
				at++
			}
		}
		return at, true, true, false
	case 'f', 't', 'F', 'T':
		if len(p) == 1 {
			return 0, false, false, true
		}
		return st.find(p[0], p[1], n)
	}
	return 0, false, false, false
}

// find returns where a character of the line is.
func (st vimState) find(how, r rune, n int) (at int, inclusive, ok, more bool) {
	step := 1
	if how == 'F' || how == 'T' {
		step = -1
	}
	start, end := st.lineStart(st.at), st.lineEnd(st.at)
	at = st.at
	for ; n > 0; n-- {
		for at += step; at >= start && at < end && st.text[at] != r; at += step {
		}
		if at < start || at >= end {
			return 0, false, false, false
		}
	}
	switch how {
	case 't':
		at--
	case 'T':
		at++
	}
	return at, step > 0, true, false
}
