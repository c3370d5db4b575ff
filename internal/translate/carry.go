package translate

import (
	"encoding/json"
	"slices"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/wire"
)

// each converts the items of a list; nil stays nil and empty stays empty,
// because the two differ on the wire.
func each[A, B any](list []A, f func(A) B) []B {
	if list == nil {
		return nil
	}
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// some is each for conversions that can fail: what cannot be converted is left
// out.
func some[A, B any](list []A, f func(A) (B, bool)) []B {
	if list == nil {
		return nil
	}
	out := make([]B, 0, len(list))
	for _, v := range list {
		if w, ok := f(v); ok {
			out = append(out, w)
		}
	}
	return out
}

// pointed converts what p points to.
func pointed[A, B any](p *A, f func(A) B) *B {
	if p == nil {
		return nil
	}
	return new(f(*p))
}

// patchFromV1 converts what p sets.
func patchFromV1[A, B any](p acpv1.Patch[A], f func(A) B) acpv2.Patch[B] {
	if v, ok := p.Get(); ok {
		return acpv2.Set(f(v))
	}
	if p.IsClear() {
		return acpv2.Clear[B]()
	}
	return acpv2.Patch[B]{}
}

// patchToV1 converts what p sets.
func patchToV1[A, B any](p acpv2.Patch[A], f func(A) B) acpv1.Patch[B] {
	if v, ok := p.Get(); ok {
		return acpv1.Set(f(v))
	}
	if p.IsClear() {
		return acpv1.Clear[B]()
	}
	return acpv1.Patch[B]{}
}

// same is for what the two versions have in common.
func same[T any](v T) T { return v }

// text converts between the string types of the two versions.
func text[B, A ~string](s A) B { return B(s) }

// without returns the object raw without the named members. It is for the
// unknown members of one version that the other version knows: there they would
// collide with the real ones, and encoding would fail.
func without(raw json.RawMessage, names ...string) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	_, rest := split(raw, names)
	return rest
}

// take returns the named member of the object raw, nil if there is none, and
// the object without it.
func take(raw json.RawMessage, name string) (value, rest json.RawMessage) {
	if len(raw) == 0 {
		return nil, raw
	}
	return split(raw, []string{name})
}

// split returns the last member called one of names and the object without all
// of them, byte for byte the same if there is none. Anything that is not an
// object is returned whole: encoding refuses it later.
func split(raw json.RawMessage, names []string) (value, rest json.RawMessage) {
	var d wire.Decoder
	d.Reset(raw, false)
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		if slices.Contains(names, string(k)) {
			value = d.RawCopy()
		} else {
			d.Keep(&rest)
		}
	}
	if d.Finish() != nil || value == nil {
		return nil, raw
	}
	return value, rest
}

// put adds a member in front of those of the object raw.
func put(raw json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	out := wire.AppendString([]byte{'{'}, name)
	out = append(append(out, ':'), value...)
	if len(raw) > 2 {
		return append(append(out, ','), raw[1:]...)
	}
	return append(out, '}')
}

// rename gives a member of the object raw another name; false if there is no
// such member, or one of that name already.
func rename(raw json.RawMessage, from, to string) (json.RawMessage, bool) {
	value, rest := take(raw, from)
	if other, _ := take(raw, to); value == nil || other != nil {
		return nil, false
	}
	return put(rest, to, value), true
}

// object keeps metadata only if it is an object: in some places one version
// gives null a meaning that the other does not.
func object(meta json.RawMessage) json.RawMessage {
	if string(meta) == "null" {
		return nil
	}
	return meta
}
