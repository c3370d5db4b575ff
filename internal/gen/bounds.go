package main

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
