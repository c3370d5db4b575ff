package acphost

import (
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// A pathShape is a path of which not all is known: characters and, below zero, what
// stands for others.
type pathShape []rune

// What is not known in a shape.
const (
	anyText   rune = -1 - iota // any text
	anyName                    // any text without a slash: *
	oneOfName                  // a character but a slash: ?
	anyHidden                  // as anyName, but it does not begin with a dot
	oneHidden                  // as oneOfName, but no dot
	anyWord                    // any text without a slash or a dot, such as a number
	anyFound                   // what another program finds: see isFound
)

// Bounds of what a word may stand for.
const (
	maxShapes = 32   // readings of a word, and directories of a line
	maxShape  = 4096 // characters
)

// unknown is a path of which nothing is known.
var unknown = pathShape{anyText}

// shapeOf returns the shape of a known text.
func shapeOf(text string) pathShape { return pathShape([]rune(text)) }

// text returns a shape that is known in full.
func (s pathShape) text() (string, bool) {
	if slices.ContainsFunc(s, func(c rune) bool { return c < 0 }) {
		return "", false
	}
	return string(s), true
}

// shapesOf returns what a word may stand for. Variables have the values that the
// line sets them to.
func shapesOf(w CommandWord, values map[string][]CommandWord, depth int) []pathShape {
	if !w.Open {
		return []pathShape{shapeOf(w.Text)}
	}
	pieces := w.Pieces
	if pieces == nil {
		pieces = []CommandPiece{{Text: w.Text}, {Open: true}}
	}
	out := []pathShape{nil}
	for _, p := range pieces {
		list := []pathShape{{anyText}}
		switch {
		case !p.Open:
			list[0] = shapeOf(p.Text)
		case p.Name == "*":
			list[0] = pathShape{anyName}
		case p.Name == "?":
			list[0] = pathShape{oneOfName}
		case p.Name == "#":
			list[0] = pathShape{anyWord}
		case p.Name == "{}" || p.Name == foundName:
			list[0] = pathShape{anyFound}
		case p.Name == "..":
			list = []pathShape{shapeOf("."), shapeOf(".."), shapeOf("../.."), shapeOf("../../.."), shapeOf("../../../..")}
		case values[p.Name] != nil && depth < 3:
			list = nil
			for _, v := range values[p.Name] {
				if list = append(list, shapesOf(v, values, depth+1)...); len(list) > maxShapes {
					return []pathShape{unknown}
				}
			}
		case p.Name == "HOME":
			if home := filepath.ToSlash(homePath("~")); home != "~" {
				list[0] = shapeOf(home)
			}
		case p.Name == "PWD":
			list[0] = shapeOf(".") // where it begins a path
		}
		if len(out)*len(list) > maxShapes {
			return []pathShape{unknown}
		}
		var next []pathShape
		for _, s := range out {
			for _, t := range list {
				next = append(next, slices.Concat(s, t))
			}
		}
		if out = next; len(out[0]) > maxShape {
			return []pathShape{unknown}
		}
	}
	for i, s := range out {
		for k := 1; k < len(s); k++ {
			if s[k] == anyName && s[k-1] == anyName { // of ** some shells make more
				s[k-1], s[k] = anyHidden, anyText
			}
		}
		if out[i] = s.hide(); len(s) > maxShape {
			out[i] = unknown
		} else if !s.isFound() {
			for k := range s {
				if s[k] == anyFound {
					s[k] = anyText
				}
			}
		}
	}
	return out
}

// isFound reports whether a word is nothing but names that another program finds.
// They are not compared: that program has been, with its words.
func (s pathShape) isFound() bool {
	return len(s) == 1 && s[0] == anyFound || len(s) == 3 && s[0] == '.' && s[1] == '/' && s[2] == anyFound
}

// hide has * and ? at the beginning of a name not stand for a dot.
func (s pathShape) hide() pathShape {
	for i, c := range s {
		if i == 0 || s[i-1] == '/' {
			switch c {
			case anyName:
				s[i] = anyHidden
			case oneOfName:
				s[i] = oneHidden
			}
		}
	}
	return s
}

// join returns the path that a shape stands for in a directory, cleaned.
func (s pathShape) join(dir pathShape) pathShape {
	if len(s) > 0 && s[0] == '~' {
		if end := slices.Index(s, '/'); end == 1 || len(s) == 1 {
			s = append(shapeOf(filepath.ToSlash(homePath("~"))), s[1:]...)
		} else if end > 1 && !slices.ContainsFunc(s[:end], func(c rune) bool { return c < 0 }) {
			s = append(pathShape{anyText}, s[end:]...) // the home directory of another one
		}
	}
	switch {
	case len(s) > 0 && (s[0] == '/' || s[0] == anyText):
	case len(s) > 2 && s[1] == ':' && s[2] == '/':
	default:
		s = slices.Concat(dir, pathShape{'/'}, s)
	}
	var names []pathShape
	for len(s) > 0 {
		end := slices.Index(s, '/')
		if end < 0 {
			end = len(s)
		}
		name := s[:end]
		s = s[min(end+1, len(s)):]
		n := len(names)
		switch {
		case len(name) == 0, len(name) == 1 && name[0] == '.':
		case len(name) == 2 && name[0] == '.' && name[1] == '.':
			if n > 0 && slices.Contains(names[n-1], anyText) {
				names[n-1] = unknown
			} else if n > 0 {
				names = names[:n-1]
			}
		default:
			names = append(names, name)
		}
	}
	if len(names) > 2 && string(names[0]) == "proc" { // other ways to name a directory
		switch string(names[2]) {
		case "cwd":
			names = append([]pathShape{unknown}, names[3:]...)
		case "root":
			names = names[3:]
		}
	}
	var out pathShape
	for i, name := range names {
		if i > 0 || name[0] != anyText && !(len(name) > 1 && name[1] == ':') {
			out = append(out, '/')
		}
		out = append(out, name...)
	}
	if len(out) == 0 {
		return pathShape{'/'}
	}
	return out
}

// known returns how much of the names at the begin of a path is known.
func (s pathShape) known() int {
	end := slices.IndexFunc(s, func(c rune) bool { return c < 0 })
	if end < 0 {
		return len(s)
	}
	for end > 0 && s[end-1] != '/' {
		end--
	}
	return end
}

// below returns the part of a path that is in a directory, if it may be there.
func (s pathShape) below(dir string) (pathShape, bool) {
	dir = strings.TrimSuffix(dir, "/") + "/"
	for i, c := range s {
		if dir == "" {
			return s[i:], true
		}
		if c < 0 {
			return append(pathShape{anyText}, s[i+1:]...), true
		}
		r, n := utf8.DecodeRuneInString(dir)
		if r != c {
			return nil, false
		}
		dir = dir[n:]
	}
	return nil, false
}

// mayMatch reports whether a pattern may match a path that is not known in full.
func (g pathGlob) mayMatch(s pathShape, cwd string) bool {
	switch {
	case g.prog == nil:
		return false
	case !g.relative:
		return meets(g.prog, s)
	case cwd == "":
		return meets(g.prog, append(pathShape{anyText}, s...))
	}
	rel, ok := s.below(cwd)
	return ok && meets(g.prog, rel)
}

// meets reports whether a program of a regular expression matches a text that has
// the shape.
func meets(prog *syntax.Prog, s pathShape) bool {
	if len(prog.Inst)*len(s) > maxGlobWork {
		return true
	}
	now := threads(prog, nil, uint32(prog.Start))
	step := func(from []bool, is func(*syntax.Inst) bool) (next []bool) {
		for pc, on := range from {
			if on && is(&prog.Inst[pc]) {
				next = threads(prog, next, prog.Inst[pc].Out)
			}
		}
		return next
	}
	star := func(from []bool, is func(*syntax.Inst) bool) []bool {
		for range len(prog.Inst) {
			grown := false
			for pc, on := range step(from, is) {
				if on && !from[pc] {
					from[pc], grown = true, true
				}
			}
			if !grown {
				break
			}
		}
		return from
	}
	for _, c := range s {
		if now == nil {
			return false
		}
		switch c {
		case anyText:
			now = star(now, but(""))
		case anyName:
			now = star(now, but("/"))
		case anyWord:
			now = star(now, but("/."))
		case oneOfName:
			now = step(now, but("/"))
		case oneHidden:
			now = step(now, but("/."))
		case anyHidden:
			if first := step(now, but("/.")); first != nil {
				for pc, on := range star(first, but("/")) {
					now[pc] = now[pc] || on
				}
			}
		default:
			now = step(now, func(i *syntax.Inst) bool { return takesRunes(i) && i.MatchRune(c) })
		}
	}
	for pc, on := range now {
		if on && prog.Inst[pc].Op == syntax.InstMatch {
			return true
		}
	}
	return false
}

// threads adds to a set of instructions those that are reached from one without a
// character.
func threads(prog *syntax.Prog, set []bool, from uint32) []bool {
	if set == nil {
		set = make([]bool, len(prog.Inst))
	}
	stack := []uint32{from}
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if set[pc] {
			continue
		}
		set[pc] = true
		switch i := &prog.Inst[pc]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, i.Out, i.Arg)
		case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
			stack = append(stack, i.Out)
		}
	}
	return set
}

func takesRunes(i *syntax.Inst) bool {
	switch i.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return true
	}
	return false
}

// but returns a function that reports whether an instruction takes another
// character than some.
func but(these string) func(*syntax.Inst) bool {
	return func(i *syntax.Inst) bool {
		switch {
		case !takesRunes(i):
			return false
		case i.Op == syntax.InstRuneAny || i.Op == syntax.InstRuneAnyNotNL:
			return true
		case len(i.Rune) == 1:
			return !strings.ContainsRune(these, i.Rune[0])
		}
		for k := 0; k+1 < len(i.Rune); k += 2 {
			n := i.Rune[k+1] - i.Rune[k] + 1
			for _, c := range these {
				if i.Rune[k] <= c && c <= i.Rune[k+1] {
					n--
				}
			}
			if n > 0 {
				return true
			}
		}
		return false
	}
}
