package acptest

import (
	"fmt"
	"strconv"
	"strings"
)

// A mismatch says where and how a frame differs from what was expected.
type mismatch struct {
	path      string // "" for the whole frame
	want, got string
}

func (m *mismatch) Error() string {
	at := m.path
	if at == "" {
		at = "the frame"
	}
	return fmt.Sprintf("%s is %s, expected %s", at, m.got, m.want)
}

// captures are the values that names stand for.
type captures map[string]*value

// matcher compares a value with a pattern. What the names of the pattern stand
// for is in got, on top of known, and counts only if the whole matches.
type matcher struct {
	known, got captures
}

// match reports how v differs from the pattern want, or nil, and then adds what
// was captured to known.
func match(want, v *value, known captures) *mismatch {
	m := matcher{known: known, got: captures{}}
	if bad := m.value("", want, v); bad != nil {
		return bad
	}
	for name, val := range m.got {
		known[name] = val
	}
	return nil
}

func (m *matcher) value(path string, want, v *value) *mismatch {
	switch want.kind {
	case kindRest:
		return nil
	case kindName:
		have, ok := m.got[want.str]
		if !ok {
			have, ok = m.known[want.str]
		}
		if !ok {
			m.got[want.str] = v
			return nil
		}
		if m.value(path, have, v) != nil {
			return &mismatch{path, fmt.Sprintf("%s (%s)", want.text, short(have.text)), short(v.text)}
		}
		return nil
	}
	if want.kind != v.kind {
		return &mismatch{path, short(want.text), short(v.text)}
	}
	switch want.kind {
	case kindObject:
		return m.object(path, want, v)
	case kindArray:
		return m.array(path, want, v)
	case kindString:
		if want.str != v.str {
			return &mismatch{path, short(want.text), short(v.text)}
		}
	default:
		if !sameScalar(want.text, v.text) {
			return &mismatch{path, short(want.text), short(v.text)}
		}
	}
	return nil
}

func (m *matcher) object(path string, want, v *value) *mismatch {
	for _, w := range want.members {
		val := v.get(w.key)
		if val == nil {
			return &mismatch{join(path, w.key), short(w.val.text), "missing"}
		}
		if bad := m.value(join(path, w.key), w.val, val); bad != nil {
			return bad
		}
	}
	if want.open || len(v.members) == len(want.members) {
		return nil
	}
	for _, have := range v.members {
		if want.get(have.key) == nil {
			return &mismatch{join(path, have.key), "nothing", short(have.val.text)}
		}
	}
	return nil
}

func (m *matcher) array(path string, want, v *value) *mismatch {
	n := len(v.elems)
	if n < len(want.elems) || n > len(want.elems) && want.rest < 0 {
		return &mismatch{path, counted(len(want.elems), want.rest >= 0), counted(n, false)}
	}
	for i, w := range want.elems {
		at := i
		if want.rest >= 0 && i >= want.rest {
			at = n - len(want.elems) + i // behind the ...
		}
		if bad := m.value(path+"["+strconv.Itoa(at)+"]", w, v.elems[at]); bad != nil {
			return bad
		}
	}
	return nil
}

func counted(n int, more bool) string {
	s := fmt.Sprintf("a list of %d", n)
	if more {
		s += " or more"
	}
	return s
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// sameScalar compares numbers by value, but integers in full length.
func sameScalar(a, b string) bool {
	if a == b {
		return true
	}
	if !strings.ContainsAny(a+b, ".eE") {
		return false
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

// shortLen bounds what errors quote of a frame, in bytes.
const shortLen = 2000

// short returns s on one line, and of a long one the beginning.
func short(s string) string {
	more := ""
	if len(s) > shortLen {
		s, more = s[:shortLen], "…"
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) + more
}
