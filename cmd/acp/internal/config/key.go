package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A path is a key in parts: agents, my.agent, command.
type path []string

// String returns the key as it is written in files: agents."my.agent".command.
func (p path) String() string {
	parts := make([]string, len(p))
	for i, s := range p {
		parts[i] = s
		if !isBare(s) {
			parts[i] = strconv.Quote(s)
		}
	}
	return strings.Join(parts, ".")
}

// hasPrefix reports whether a key is at or below another one.
func (p path) hasPrefix(q path) bool {
	if len(p) < len(q) {
		return false
	}
	for i := range q {
		if p[i] != q[i] {
			return false
		}
	}
	return true
}

func (p path) equal(q path) bool { return len(p) == len(q) && p.hasPrefix(q) }

// isBare reports whether a part of a key needs no quotes.
func isBare(s string) bool {
	for _, c := range s {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}

// parseKey reads a key as it is written in files.
func parseKey(s string) (path, error) {
	if s == "" {
		return nil, errors.New("the key is empty")
	}
	var p path
	for rest := s; ; {
		var part string
		switch {
		case strings.HasPrefix(rest, `"`):
			q, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, fmt.Errorf("key %q: a quote is not closed", s)
			}
			if part, err = strconv.Unquote(q); err != nil {
				return nil, fmt.Errorf("key %q: %w", s, err)
			}
			rest = rest[len(q):]
		default:
			i := strings.IndexByte(rest, '.')
			if i < 0 {
				i = len(rest)
			}
			part, rest = rest[:i], rest[i:]
			if part == "" {
				return nil, fmt.Errorf("key %q: a part is empty", s)
			}
		}
		p = append(p, part)
		if rest == "" {
			return p, nil
		}
		if rest[0] != '.' {
			return nil, fmt.Errorf("key %q: something follows a quote", s)
		}
		rest = rest[1:]
	}
}

// Near returns the word that was probably meant by another one, or "".
func Near(word string, words []string) string {
	best, at := "", 3 // with more changes it is another word
	if len(word) < 4 {
		at = 2
	}
	for _, w := range words {
		if d := distance(strings.ToLower(word), strings.ToLower(w), at); d < at || d == at && best == "" && strings.HasPrefix(w, word) {
			best, at = w, d
		}
	}
	return best
}

// distance returns the number of changes between two words; swapping neighbours is one change. It
// may return limit+1 for any number above limit.
func distance(a, b string, limit int) int {
	if len(a) > 64 || len(b) > 64 || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
