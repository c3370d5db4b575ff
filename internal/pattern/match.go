package pattern

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// A Mismatch says where and how a value differs from a pattern.
type Mismatch struct {
	Path      string // "" for the whole
	Want, Got string // shortened to one line
}

func (m *Mismatch) Error() string {
	at := m.Path
	if at == "" {
		at = "the frame"
	}
	return fmt.Sprintf("%s is %s, expected %s", at, m.Got, m.Want)
}

// Captures are the values that names stand for.
type Captures map[string]*Value

// matcher compares a value with a pattern. What the names of the pattern stand
// for is in got, on top of known, and counts only if the whole matches.
type matcher struct {
	known, got Captures
}

// Match reports how v differs from the pattern want, or nil, and then adds what
// was captured to known.
func Match(want, v *Value, known Captures) *Mismatch {
	m := matcher{known: known, got: Captures{}}
	if bad := m.value("", want, v); bad != nil {
		return bad
	}
	for name, val := range m.got {
		known[name] = val
	}
	return nil
}

// MatchMessage is [Match] for a whole message. The member jsonrpc need not be
// written in the pattern.
func MatchMessage(want, v *Value, known Captures) *Mismatch {
	if want.Kind != Object || want.Get("jsonrpc") != nil || v.Kind != Object {
		return Match(want, v, known)
	}
	if v.StringAt("jsonrpc") != "2.0" {
		return &Mismatch{"jsonrpc", `"2.0"`, "something else"}
	}
	rest := *v
	rest.Members = nil
	for _, m := range v.Members {
		if m.Key != "jsonrpc" {
			rest.Members = append(rest.Members, m)
		}
	}
	return Match(want, &rest, known)
}

func (m *matcher) value(path string, want, v *Value) *Mismatch {
	ok := true
	switch want.Kind {
	case Rest:
		return nil
	case Name:
		return m.name(path, want, v)
	case Type:
		ok = isType(want.Str, v)
	case Regexp:
		ok = v.Kind == String && want.re.MatchString(v.Str)
	case Either:
		return m.either(path, want, v)
	case Not:
		sub := matcher{known: m.known, got: Captures{}}
		ok = sub.value(path, want.Elems[0], v) != nil
	case Object:
		if v.Kind == Object {
			return m.object(path, want, v)
		}
		ok = false
	case Array:
		if v.Kind == Array {
			return m.array(path, want, v)
		}
		ok = false
	case String:
		ok = v.Kind == String && want.Str == v.Str
	default:
		ok = v.Kind == Scalar && sameScalar(want.Text, v.Text)
	}
	if !ok && want.Kind == String && v.Kind == String {
		w, got := apart(want.Str, v.Str)
		return &Mismatch{path, w, got}
	}
	if !ok {
		return &Mismatch{path, Short(want.Text), Short(v.Text)}
	}
	return nil
}

func (m *matcher) name(path string, want, v *Value) *Mismatch {
	have, ok := m.got[want.Str]
	if !ok {
		have, ok = m.known[want.Str]
	}
	if !ok {
		m.got[want.Str] = v
		return nil
	}
	if m.value(path, have, v) != nil {
		if have.Kind == String && v.Kind == String {
			w, got := apart(have.Str, v.Str)
			return &Mismatch{path, fmt.Sprintf("%s (%s)", want.Text, w), got}
		}
		return &Mismatch{path, fmt.Sprintf("%s (%s)", want.Text, Short(have.Text)), Short(v.Text)}
	}
	return nil
}

func (m *matcher) either(path string, want, v *Value) *Mismatch {
	var deepest *Mismatch
	for _, choice := range want.Elems {
		sub := matcher{known: m.known, got: Captures{}}
		for k, val := range m.got {
			sub.got[k] = val
		}
		bad := sub.value(path, choice, v)
		if bad == nil {
			m.got = sub.got
			return nil
		}
		if choice.Kind == v.Kind && len(bad.Path) > len(path) {
			deepest = bad
		}
	}
	if deepest != nil {
		return deepest
	}
	return &Mismatch{path, Short(want.Text), Short(v.Text)}
}

func isType(name string, v *Value) bool {
	switch name {
	case "string":
		return v.Kind == String
	case "object":
		return v.Kind == Object
	case "array":
		return v.Kind == Array
	case "boolean":
		return v.Kind == Scalar && (v.Text == "true" || v.Text == "false")
	}
	number := v.Kind == Scalar && strings.IndexByte("tfn", v.Text[0]) < 0
	return number && (name == "number" || !strings.ContainsAny(v.Text, ".eE"))
}

func (m *matcher) object(path string, want, v *Value) *Mismatch {
	for _, w := range want.Members {
		val := v.Get(w.Key)
		switch {
		case val == nil && w.Optional:
			continue
		case val == nil:
			return &Mismatch{join(path, w.Key), Short(w.Val.Text), "missing"}
		}
		if bad := m.value(join(path, w.Key), w.Val, val); bad != nil {
			return bad
		}
	}
	if want.Open {
		return nil
	}
	for _, have := range v.Members {
		if want.Get(have.Key) == nil {
			return &Mismatch{join(path, have.Key), "nothing", Short(have.Val.Text)}
		}
	}
	return nil
}

func (m *matcher) array(path string, want, v *Value) *Mismatch {
	n := len(v.Elems)
	if n < len(want.Elems) || n > len(want.Elems) && want.Rest < 0 {
		return &Mismatch{path, counted(len(want.Elems), want.Rest >= 0), counted(n, false)}
	}
	if want.Within {
		return m.within(path, want, v)
	}
	for i, w := range want.Elems {
		at := i
		if want.Rest >= 0 && i >= want.Rest {
			at = n - len(want.Elems) + i // behind the ...
		}
		if bad := m.value(path+"["+strconv.Itoa(at)+"]", w, v.Elems[at]); bad != nil {
			return bad
		}
	}
	return nil
}

// within looks for the elements of want somewhere in v, one behind another. The
// first place where they are counts.
func (m *matcher) within(path string, want, v *Value) *Mismatch {
	for from := range len(v.Elems) - len(want.Elems) + 1 {
		sub := matcher{known: m.known, got: maps.Clone(m.got)}
		ok := true
		for i, w := range want.Elems {
			if ok = sub.value(path, w, v.Elems[from+i]) == nil; !ok {
				break
			}
		}
		if ok {
			m.got = sub.got
			return nil
		}
	}
	return &Mismatch{path, Short(want.Text), Short(v.Text)}
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

// shortLen bounds what errors quote, in bytes.
const shortLen = 2000

// Short returns s on one line, and of one longer than 2000 bytes the beginning.
func Short(s string) string {
	more := ""
	if len(s) > shortLen {
		s, more = s[:shortLen], "…"
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) + more
}
