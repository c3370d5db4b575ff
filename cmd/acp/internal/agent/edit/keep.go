package edit

import (
	"strings"
	"unicode/utf8"
)

// Bounds of what is compared character by character.
const (
	maxUnits    = 300 // of a line
	maxKeptOld  = 20  // lines of the old text
	maxKeptLine = 200 // lines of the new one
)

// kept returns a new line with the characters of the file where it says the same as the line
// that it takes the place of: typographic quotes, for example, which the model has written
// as plain ones. first is the line of the file that the first of the old lines is for.
func (f *file) kept(l string, was []string, first int) string {
	indent, body := indented(l)
	rest := l[len(indent)+len(body):]
	n := units(body)
	var best []int
	at, most := -1, len(n)/2 // less is another line
	for i, w := range was[:min(len(was), maxKeptOld)] {
		_, old := indented(w)
		if o := units(old); max(len(o), len(n)) <= maxUnits && first+i < len(f.lines) {
			if pairs, same := common(o, n); same > most {
				best, at, most = pairs, i, same
			}
		}
	}
	if at < 0 {
		return l
	}
	_, have := indented(f.lines[first+at].text)
	h := units(have)
	if len(h) != len(best) {
		return l
	}
	for i, j := range best {
		if j >= 0 {
			n[j] = h[i]
		}
	}
	return indent + strings.Join(n, "") + rest
}

// units cuts a text into characters. Bytes that follow each other and are not UTF-8 are one.
func units(s string) []string {
	var all []string
	bad := false
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if wrong := r == utf8.RuneError && n == 1; wrong && bad {
			all[len(all)-1] += s[:n]
		} else {
			all = append(all, s[:n])
			bad = wrong
		}
		s = s[n:]
	}
	return all
}

// common returns for each character of a which one of b it is, or -1, so that as many as
// possible are the same, and how many those are.
func common(a, b []string) (out []int, same int) {
	out = make([]int, len(a))
	for i := range out {
		out[i] = -1
	}
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		out[head] = head
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
		out[len(a)-tail] = len(b) - tail
	}
	a, b = a[head:len(a)-tail], b[head:len(b)-tail]
	n := len(b) + 1
	longest := make([]uint16, (len(a)+1)*n)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i*n+j] = longest[(i+1)*n+j+1] + 1
			} else {
				longest[i*n+j] = max(longest[(i+1)*n+j], longest[i*n+j+1])
			}
		}
	}
	same = head + tail + int(longest[0])
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			out[head+i] = head + j
			i, j = i+1, j+1
		case longest[(i+1)*n+j] >= longest[i*n+j+1]:
			i++
		default:
			j++
		}
	}
	return out, same
}
