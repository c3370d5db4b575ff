package seek

import (
	"bytes"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// Bounds of the automaton, which is built while it is used. When it has maxStates it begins
// anew, and when it has done so maxResets times it gives up: then lines are matched one by
// one by package regexp.
const (
	maxStates = 2000
	maxResets = 20
	maxProg   = 4000 // instructions of an expression
)

// What follows a state, unless it is a state: the number of one, times 256.
const (
	unknown = int32(0)
	matched = int32(-1) // the line matches
	dead    = int32(-2) // the line does not match, whatever follows
)

// A dfa finds lines that match. It is for one goroutine. Its states are the sets of places
// in which the program of an expression can be before a character.
type dfa struct {
	prog     *syntax.Prog
	anchored bool // it matches at the beginning of a line only
	words    bool // it depends on what is between words
	trans    []int32
	states   []state
	index    map[string]int32
	resets   int
	stop     func() bool // look no further

	// For step.
	seen  []uint32 // by instruction: the round in which it was
	round uint32
	stack []uint32
	chars []uint32 // instructions that take a character
	next  []uint32
	key   []byte
}

// A state is a set of instructions, with what kind of character is before.
type state struct {
	pcs    []uint32
	before rune           // -1 at the beginning of a line
	wide   map[rune]int32 // what follows characters that are not ASCII
}

const start = int32(1 << 8)

func newDFA(prog *syntax.Prog) *dfa {
	d := &dfa{prog: prog, seen: make([]uint32, len(prog.Inst))}
	d.anchored = prog.StartCond()&(syntax.EmptyBeginText|syntax.EmptyBeginLine) != 0
	const words = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
	for _, i := range prog.Inst {
		if i.Op == syntax.InstEmptyWidth && syntax.EmptyOp(i.Arg)&words != 0 {
			d.words = true
		}
	}
	d.clear()
	return d
}

// clear forgets all states but the first.
func (d *dfa) clear() {
	d.trans = append(d.trans[:0], make([]int32, 512)...)
	d.states = append(d.states[:0], state{}, state{pcs: []uint32{uint32(d.prog.Start)}, before: -1})
	d.index = map[string]int32{}
}

// find returns a position in the first line that matches, from the beginning of a line on.
// Its line end counts as the line's. ok is false if none does.
func (d *dfa) find(data []byte, from int) (at int, ok bool) {
	s, trans := start, d.trans
	for i := from; i < len(data); {
		n := trans[int(s)+int(data[i])]
		if n > 0 {
			s = n
			i++
			continue
		}
		size := 1
		if n == unknown {
			if d.stop() {
				return 0, false
			}
			n, size = d.step(s, data[i:])
			trans = d.trans
		}
		switch n {
		case matched:
			return i, true
		case dead:
			end := bytes.IndexByte(data[i:], '\n')
			if end < 0 {
				return 0, false
			}
			s, i = start, i+end+1
		default:
			s, i = n, i+size
		}
	}
	if len(data) == from || data[len(data)-1] == '\n' {
		return 0, false
	}
	n, _ := d.step(s, []byte{'\n'})
	return len(data) - 1, n == matched
}

// step returns what follows a state where rest does, and the length of its first character.
func (d *dfa) step(s int32, rest []byte) (next int32, size int) {
	st := &d.states[s>>8]
	r, size := rune(rest[0]), 1
	if r >= utf8.RuneSelf {
		if r, size = utf8.DecodeRune(rest); st.wide[r] != unknown {
			return st.wide[r], size
		}
	}
	next, kept := d.follow(st, r)
	switch {
	case !kept:
	case r < utf8.RuneSelf && size == 1 && rest[0] < utf8.RuneSelf:
		d.trans[s+r] = next
	default:
		st = &d.states[s>>8] // it may have moved
		if st.wide == nil || len(st.wide) >= maxStates {
			st.wide = map[rune]int32{}
		}
		st.wide[r] = next
	}
	return next, size
}

// follow computes what follows a state where a character does. kept is false if all other
// states were forgotten.
func (d *dfa) follow(st *state, r rune) (next int32, kept bool) {
	after := r
	if r == '\n' {
		after = -1
	}
	if d.expand(st.pcs, syntax.EmptyOpContext(st.before, after)) {
		return matched, true
	}
	if r == '\n' {
		return start, true
	}
	d.next = d.next[:0]
	for _, pc := range d.chars {
		if i := &d.prog.Inst[pc]; i.MatchRune(r) {
			d.next = append(d.next, i.Out)
		}
	}
	if !d.anchored {
		d.next = append(d.next, uint32(d.prog.Start))
	}
	slices.Sort(d.next)
	d.next = slices.Compact(d.next)
	if len(d.next) == 0 {
		return dead, true
	}
	before := ' '
	if d.words && syntax.IsWordChar(r) {
		before = 'a'
	}
	return d.number(before)
}

// expand collects the instructions that take a character, from some on and by what holds at
// a place. It reports whether the expression matches there.
func (d *dfa) expand(pcs []uint32, holds syntax.EmptyOp) bool {
	d.round++
	d.chars, d.stack = d.chars[:0], append(d.stack[:0], pcs...)
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if d.seen[pc] == d.round {
			continue
		}
		d.seen[pc] = d.round
		switch i := &d.prog.Inst[pc]; i.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			d.stack = append(d.stack, i.Out, i.Arg)
		case syntax.InstCapture, syntax.InstNop:
			d.stack = append(d.stack, i.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(i.Arg)&^holds == 0 {
				d.stack = append(d.stack, i.Out)
			}
		case syntax.InstFail:
		default:
			d.chars = append(d.chars, pc)
		}
	}
	return false
}

// number returns the state of the instructions in d.next.
func (d *dfa) number(before rune) (s int32, kept bool) {
	d.key = append(d.key[:0], byte(before))
	for _, pc := range d.next {
		d.key = binary.LittleEndian.AppendUint32(d.key, pc)
	}
	if s, ok := d.index[string(d.key)]; ok {
		return s, true
	}
	if kept = len(d.states) < maxStates; !kept {
		d.resets++
		d.clear()
	}
	s = int32(len(d.states)) << 8
	d.index[string(d.key)] = s
	d.states = append(d.states, state{pcs: slices.Clone(d.next), before: before})
	d.trans = append(d.trans, make([]int32, 256)...)
	return s, kept
}
