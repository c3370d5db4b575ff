package seek

import (
	"bytes"
	"math/bits"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the texts that are drawn from an expression.
const (
	maxTexts = 8  // one of which a line must have
	maxText  = 64 // bytes of each
)

// texts are what an expression says about the texts in a line that it matches.
type texts struct {
	exact []string // all that it matches; nil if they are more, or unknown
	must  []string // of which one must be there; nil if nothing is known
	more  bool     // the texts of exact match in some places only
	fold  string   // that must be there, in any case; "" if nothing is known
}

// drawn returns what an expression says.
func drawn(re *syntax.Regexp) texts {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return texts{fold: folded(re.Rune)}
		}
		if t := string(re.Rune); len(t) <= maxText {
			return texts{exact: []string{t}}
		}
		return texts{must: []string{string(re.Rune[:maxText/utf8.UTFMax])}}
	case syntax.OpCharClass:
		var all []string
		for i := 0; i < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if len(all) == maxTexts {
					return texts{}
				}
				all = append(all, string(r))
			}
		}
		return texts{exact: all}
	case syntax.OpEmptyMatch:
		return texts{exact: []string{""}}
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return texts{exact: []string{""}, more: true}
	case syntax.OpCapture:
		return drawn(re.Sub[0])
	case syntax.OpQuest:
		if t := drawn(re.Sub[0]); t.exact != nil && len(t.exact) < maxTexts {
			return texts{exact: append(slices.Clip(t.exact), ""), more: t.more}
		}
	case syntax.OpPlus:
		t := drawn(re.Sub[0])
		return texts{must: t.best(), fold: t.fold}
	case syntax.OpRepeat:
		if t := drawn(re.Sub[0]); re.Min > 0 {
			return texts{must: t.best(), fold: t.fold}
		}
	case syntax.OpConcat:
		return joined(re.Sub)
	case syntax.OpAlternate:
		return either(re.Sub)
	}
	return texts{}
}

// best returns of what an expression says the texts that are the rarest.
func (t texts) best() []string {
	if rarity(t.exact) >= rarity(t.must) {
		return t.exact
	}
	return t.must
}

// joined is drawn for expressions that follow each other.
func joined(all []*syntax.Regexp) texts {
	out, run := texts{exact: []string{""}}, []string{""}
	keep := func(must []string) {
		if rarity(must) > rarity(out.must) {
			out.must = must
		}
	}
	for _, re := range all {
		t := drawn(re)
		out.more = out.more || t.more
		if rarity([]string{t.fold}) > rarity([]string{out.fold}) {
			out.fold = t.fold
		}
		product := crossed(run, t.exact)
		if product != nil {
			run = product
			continue
		}
		keep(run)
		keep(t.must)
		out.exact, run = nil, []string{""}
		if t.exact != nil {
			run = t.exact
		}
	}
	keep(run)
	if out.exact != nil {
		out.exact = run
	}
	return out
}

// crossed returns each text of a followed by each of b; nil if these are too many, or if b
// is nil.
func crossed(a, b []string) (all []string) {
	if b == nil || len(a)*len(b) > maxTexts {
		return nil
	}
	for _, s := range a {
		for _, t := range b {
			if len(s)+len(t) > maxText {
				return nil
			}
			all = append(all, s+t)
		}
	}
	return all
}

// either is drawn for expressions of which one must match.
func either(all []*syntax.Regexp) (out texts) {
	exact := true
	for i, re := range all {
		t := drawn(re)
		must := t.best()
		out.more = out.more || t.more
		if exact = exact && t.exact != nil; exact {
			out.exact = append(out.exact, t.exact...)
		}
		if len(must) == 0 || i > 0 && out.must == nil {
			out.must = nil
			if !exact {
				return texts{}
			}
			continue
		}
		out.must = append(out.must, must...)
	}
	if !exact || len(out.exact) > maxTexts {
		out.exact = nil
	}
	if len(out.must) > maxTexts {
		out.must = nil
	}
	return out
}

// folded returns the rarest part of a text whose case does not matter that has ASCII only, in
// lower case. It has no k and s, which are other characters in another case.
func folded(text []rune) (best string) {
	plain := strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf || strings.ContainsRune("kKsS", r) {
			return utf8.RuneError
		}
		return unicode.ToLower(r)
	}, string(text))
	for part := range strings.SplitSeq(plain, string(utf8.RuneError)) {
		part = part[:min(len(part), maxText)]
		if rarity([]string{part}) > rarity([]string{best}) {
			best = part
		}
	}
	return best
}

// rarity estimates how rare it is that a line has one of some texts: the larger, the rarer.
// It is 0 for none, and below usable where a look for them takes longer than it saves.
func rarity(all []string) int {
	if len(all) == 0 {
		return 0
	}
	least := 1 << 20
	for _, t := range all {
		sum := 0
		for i := range len(t) {
			sum += weight(t[i])
		}
		least = min(least, sum)
	}
	return max(0, least-2*bits.Len(uint(len(all)-1)))
}

const usable = 6

// weight is how rare a byte is in the text of programs: half of its bits, about.
func weight(c byte) int {
	switch {
	case strings.IndexByte(" etnaoisr", c) >= 0:
		return 1
	case c >= 'a' && c <= 'z', c == '\t', c == '_', c == '.', c == '(', c == ')', c == ',', c == '=', c == '"':
		return 2
	case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return 3
	}
	return 4
}

// A needle is a text that is sought.
type needle struct {
	text []byte
	rare int  // where its rarest byte is
	next int  // where it was found; -1 if it is not in the rest
	fold bool // its case does not matter; it is in lower case
}

func newNeedle(text string) needle {
	n := needle{text: []byte(text)}
	for i := range n.text {
		if weight(n.text[i]) > weight(n.text[n.rare]) {
			n.rare = i
		}
	}
	return n
}

// find returns where the text is in data, from a position on; -1 if it is not there.
func (n *needle) find(data []byte, from int) int {
	if n.fold {
		return n.findFold(data, from)
	}
	c, misses := n.text[n.rare], 0
	for at := from + n.rare; at < len(data); at++ {
		i := bytes.IndexByte(data[at:], c)
		if i < 0 {
			return -1
		}
		at += i
		start := at - n.rare
		if bytes.HasPrefix(data[start:], n.text) {
			return start
		}
		if misses++; misses > 8 && misses > (start-from)/16 {
			if i := bytes.Index(data[start+1:], n.text); i >= 0 {
				return start + 1 + i
			}
			return -1
		}
	}
	return -1
}

// findFold is find for a text whose case does not matter.
func (n *needle) findFold(data []byte, from int) int {
	next := func(c byte, at int) int {
		if at >= len(data) {
			return len(data)
		}
		if i := bytes.IndexByte(data[at:], c); i >= 0 {
			return at + i
		}
		return len(data)
	}
	low := n.text[n.rare]
	up := low
	if low >= 'a' && low <= 'z' {
		up -= 'a' - 'A'
	}
	from += n.rare
	atLow, atUp := next(low, from), len(data)
	if up != low {
		atUp = next(up, from)
	}
	for min(atLow, atUp) < len(data) {
		start := min(atLow, atUp) - n.rare
		if end := start + len(n.text); end <= len(data) && n.same(data[start:end]) {
			return start
		}
		if atLow < atUp {
			atLow = next(low, atLow+1)
		} else {
			atUp = next(up, atUp+1)
		}
	}
	return -1
}

// same reports whether a text of the same length is the same but for case.
func (n *needle) same(text []byte) bool {
	for i, c := range n.text {
		if d := text[i]; c != d && (c < 'a' || c > 'z' || d != c-'a'+'A') {
			return false
		}
	}
	return true
}
