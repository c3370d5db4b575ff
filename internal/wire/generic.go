package wire

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Slice reads an array whose items item decodes. The result is never nil when
// the value is an array.
//
// Behind an item that does not decode the others are only skipped: the whole
// value is going to be refused or reset, and a peer must not make us collect
// millions of worthless items first.
func Slice[T any](d *Decoder, item func(*T, *Decoder)) []T {
	was := d.bad
	d.bad = false
	out := []T{}
	for ok := d.FirstElem(); ok; ok = d.NextElem() {
		if d.bad {
			d.Skip()
			continue
		}
		var zero T
		out = append(out, zero)
		item(&out[len(out)-1], d)
	}
	d.bad = d.bad || was
	return out
}

// SliceSkip is Slice, but drops the items that do not decode
// (x-deserialize-skip-invalid-items).
func SliceSkip[T any](d *Decoder, item func(*T, *Decoder)) []T {
	out := []T{}
	for ok := d.FirstElem(); ok; ok = d.NextElem() {
		var zero T
		out = append(out, zero)
		was := d.Try()
		if item(&out[len(out)-1], d); d.Failed(was) {
			out[len(out)-1] = zero
			out = out[:len(out)-1]
		}
	}
	return out
}

// Map reads an object whose member values value decodes. The result is never
// nil when the value is an object; a repeated name is a mismatch.
func Map[T any](d *Decoder, value func(*T, *Decoder)) map[string]T {
	was := d.bad
	d.bad = false
	out := map[string]T{}
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		if d.bad {
			d.Skip()
			continue
		}
		name := string(k)
		if _, dup := out[name]; dup {
			d.Duplicate()
			continue
		}
		var v T
		value(&v, d)
		out[name] = v
	}
	d.bad = d.bad || was
	return out
}

// String reads a string into a value of a string type.
func String[T ~string](v *T, d *Decoder) { *v = T(d.Str()) }

// AppendSlice appends an array; nil is encoded as an empty one, because lists
// are never null on this wire.
func AppendSlice[T any](dst []byte, s []T, item func(*T, []byte) ([]byte, error)) ([]byte, error) {
	dst = append(dst, '[')
	var err error
	for i := range s {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = item(&s[i], dst); err != nil {
			return dst, In("["+strconv.Itoa(i)+"]", err)
		}
	}
	return append(dst, ']'), nil
}

var errMapKey = errors.New("a name is not valid UTF-8")

// AppendMap appends an object with its members sorted by name.
func AppendMap[T any](dst []byte, m map[string]T, value func(*T, []byte) ([]byte, error)) ([]byte, error) {
	dst = append(dst, '{')
	var err error
	for i, k := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		if !utf8.ValidString(k) {
			return dst, errMapKey // two of them could become the same name
		}
		dst = append(AppendString(dst, k), ':')
		v := m[k]
		if dst, err = value(&v, dst); err != nil {
			return dst, In(k, err)
		}
	}
	return append(dst, '}'), nil
}

// AppendText is AppendString in the shape of an item encoder.
func AppendText[T ~string](v *T, dst []byte) ([]byte, error) {
	return AppendString(dst, string(*v)), nil
}
