package main

import "encoding/json"

// implied are the limits that a Go type holds by itself.
var implied = map[typeKind][2]string{
	tInt32:  {"-2147483648", "2147483647"},
	tInt64:  {"-9223372036854775808", "9223372036854775807"},
	tUint16: {"0", "65535"},
	tUint32: {"0", "4294967295"},
	tUint64: {"0", "18446744073709551615"},
}

// bounds drops the limits of a property that its Go type holds by itself, and
// reports those which the codec would not check: ignoring one would be a guess.
func (m *model) bounds(key string, t *typeRef, nullable bool) {
	if lim, ok := implied[t.kind]; ok {
		if string(t.minimum) == lim[0] {
			t.minimum = nil
		}
		if string(t.maximum) == lim[1] {
			t.maximum = nil
		}
	}
	switch {
	case t.minLength > 1 || t.minItems > 1:
		m.errorf("%s: a length of more than one is not checked", key)
	case t.minLength > 0 && (nullable || t.kind != tString):
		m.errorf("%s: minLength is not checked here", key)
	case m.tab.patch.has(key) && t.bounded():
		m.errorf("%s: limits of a patch are not checked", key)
	}
	if e := t.elem; e != nil && e.kind != tDef && e.bounded() {
		m.errorf("%s: limits of items are not checked", key)
	}
}

func (t *typeRef) bounded() bool {
	return t.minimum != nil || t.maximum != nil || t.minLength > 0 || t.minItems > 0
}

// markers reports keywords of a property that the codec would not honour.
func (m *model) markers(key string, n *node, t *typeRef) {
	list := t.kind == tSlice
	object := t.kind == tMap || t.kind == tOrdered || t.kind == tRawObject
	switch {
	case n.constant != nil:
		m.errorf("%s: a constant needs an entry in the table", key)
	case n.not != nil:
		m.errorf("%s: not is not checked here", key)
	case n.skipInvalid && !list:
		m.errorf("%s: only lists skip invalid items", key)
	case n.defaultOnNull && !list && !object:
		m.errorf("%s: only lists and objects are empty on null", key)
	case n.items != nil && n.items.defaultOnError:
		m.errorf("%s: items have no default", key)
	case (t.minimum != nil || t.maximum != nil) && (t.kind == tString || list || object):
		m.errorf("%s: a limit for numbers", key)
	case t.kind == tDef && (n.minLength > 0 || n.minItems > 0 || n.minimum != nil || n.maximum != nil):
		m.errorf("%s: a limit beside a reference is not checked", key)
	}
	if n.deflt != nil && !zeroJSON(n.deflt) {
		m.errorf("%s: the default %s is not what absence means in Go", key, n.deflt)
	}
}

// zeroJSON reports whether a default says nothing but null, false and empty, at
// every depth: what a Go value is when nothing is set.
func zeroJSON(raw json.RawMessage) bool {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return false
	}
	var zero func(v any) bool
	zero = func(v any) bool {
		switch v := v.(type) {
		case nil:
			return true
		case bool:
			return !v
		case string:
			return v == ""
		case []any:
			return len(v) == 0
		case map[string]any:
			for _, e := range v {
				if !zero(e) {
					return false
				}
			}
			return true
		}
		return false
	}
	return zero(v)
}
