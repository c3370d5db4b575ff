// Package seek finds lines in files, and files in directories, about as quickly as programs
// that were written for that: several files at once, each read once, by a text that a line
// must have where the expression says one, and otherwise by an automaton.
//
// It looks at files line by line. What it looks for, and where, is bounded; see the
// constants. Nothing is kept once a function has returned.
package seek

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
)

// A Pattern is a regular expression for lines. It may be used by any goroutine.
type Pattern struct {
	re    *regexp.Regexp
	prog  *syntax.Prog // nil if it is too large
	texts []string     // of which a line must have one; nil if there are none that help
	exact bool         // a line that has one matches
	fold  bool         // their case does not matter
}

// ErrLines says that an expression is about more than one line.
var ErrLines = errors.New(
	"the pattern has a line break in it, and lines are looked at one by one: look for one of the lines")

// Compile returns the pattern of an expression in the syntax of package regexp, in which ^
// and $ are the beginning and the end of a line, without its line end. The error is that of
// package regexp, or ErrLines.
func Compile(expr string) (*Pattern, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if breaks(parsed) {
		return nil, ErrLines
	}
	p := &Pattern{re: re}
	t := drawn(parsed)
	if best := t.best(); rarity(best) >= usable {
		p.texts = best
		p.exact = !t.more && slices.Equal(best, t.exact)
	}
	if fold := []string{t.fold}; rarity(fold) >= usable && rarity(fold) > rarity(p.texts) {
		p.texts, p.exact, p.fold = fold, false, true
	}
	if !p.fold && len(t.exact) > 0 && !t.more && rarity(t.exact) > 0 { // even a short one is quicker than an automaton
		p.texts, p.exact = t.exact, true
	}
	if prog, err := syntax.Compile(parsed.Simplify()); err == nil && len(prog.Inst) <= maxProg {
		p.prog = prog
	}
	return p, nil
}

// breaks reports whether an expression has a line break that must be matched.
func breaks(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return slices.Contains(re.Rune, '\n')
	case syntax.OpCharClass:
		return len(re.Rune) == 2 && re.Rune[0] == '\n' && re.Rune[1] == '\n'
	case syntax.OpCapture, syntax.OpConcat, syntax.OpPlus:
		return slices.ContainsFunc(re.Sub, breaks)
	}
	return false
}

// In returns where the pattern matches in a line; nil if it does not.
func (p *Pattern) In(line []byte) []int { return p.re.FindIndex(line) }

// A Matcher finds lines that match a pattern. It is for one goroutine.
type Matcher struct {
	// Stop is asked now and then whether to look no further, where a look takes long; nil
	// means never. Then no more lines match.
	Stop func() bool

	p       *Pattern
	needles []needle
	dfa     *dfa
	looks   int // that were slow
	inVain  int // lines that have one of the texts and do not match
	seen    int // bytes that were looked through
}

// Matcher returns a matcher of the pattern.
func (p *Pattern) Matcher() *Matcher {
	m := &Matcher{p: p}
	for _, t := range p.texts {
		n := newNeedle(t)
		n.fold = p.fold
		m.needles = append(m.needles, n)
	}
	if p.prog != nil {
		m.dfa = newDFA(p.prog)
		m.dfa.stop = m.stops
	}
	return m
}

// stops reports whether to look no further. It asks seldom, since it is called often.
func (m *Matcher) stops() bool {
	m.looks++
	return m.Stop != nil && m.looks%stopEvery == 0 && m.Stop()
}

// stopEvery is after how many slow steps, of some microseconds at most, a matcher asks
// whether to stop.
const stopEvery = 256

// May reports, soon, whether data may have a line that matches.
func (m *Matcher) May(data []byte) bool {
	if len(m.needles) == 0 {
		return true
	}
	for i := range m.needles {
		if m.needles[i].find(data, 0) >= 0 {
			return true
		}
	}
	return false
}

// Next returns the next line that matches, from the beginning of a line on, without its line
// end. ok is false if none does.
func (m *Matcher) Next(data []byte, from int) (begin, end int, ok bool) {
	if from == 0 {
		for i := range m.needles {
			m.needles[i].next = 0
		}
		m.seen += len(data)
	}
	for from < len(data) {
		at, found := m.candidate(data, from)
		if !found {
			return 0, 0, false
		}
		begin = bytes.LastIndexByte(data[from:at], '\n') + 1 + from
		if end = bytes.IndexByte(data[at:], '\n') + at; end < at {
			end = len(data)
		}
		if m.matches(data, begin, end) {
			return begin, end, true
		}
		if m.stops() {
			return 0, 0, false
		}
		from = end + 1
	}
	return 0, 0, false
}

// candidate returns a position in the next line that may match.
func (m *Matcher) candidate(data []byte, from int) (at int, ok bool) {
	if !m.byText() {
		if m.automatic() {
			return m.dfa.find(data, from)
		}
		return from, true // line by line
	}
	at = -1
	for i := range m.needles {
		n := &m.needles[i]
		if n.next >= 0 && (n.next < from || from == 0) {
			n.next = n.find(data, from)
		}
		if n.next >= 0 && (at < 0 || n.next < at) {
			at = n.next
		}
	}
	return at, at >= 0
}

// byText reports whether lines are found by the texts that they must have: not where so many
// lines have them, in vain, that an automaton is quicker.
func (m *Matcher) byText() bool {
	return len(m.needles) > 0 && (m.p.exact || m.inVain < 64 || !m.automatic() || m.seen/m.inVain > 256)
}

func (m *Matcher) automatic() bool { return m.dfa != nil && m.dfa.resets < maxResets }

// matches reports whether a line that may match does.
func (m *Matcher) matches(data []byte, begin, end int) bool {
	switch {
	case m.p.exact:
		return true
	case !m.byText() && m.automatic():
		return true // that is how it was found
	case !m.automatic():
		return m.p.re.Match(data[begin:end])
	}
	_, ok := m.dfa.find(data[begin:end], 0)
	if !ok && begin == end { // an automaton sees no empty line without its end
		ok = m.p.re.Match(nil)
	}
	if !ok {
		m.inVain++
	}
	return ok
}
