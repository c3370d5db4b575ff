package wire

import (
	"encoding/json"
	"math/bits"
	"strings"
)

// This file holds what generated code calls for more than one type.

// Unmarshal reads one JSON text with decode. It copies what it keeps.
func Unmarshal(data []byte, decode func(*Decoder)) error {
	var d Decoder
	d.Reset(data, false)
	decode(&d)
	return d.Finish()
}

// UnmarshalUnion reads one JSON text into a value of an interface type.
func UnmarshalUnion[T any](data []byte, decode func(*T, *Decoder)) (T, error) {
	var d Decoder
	var v T
	d.Reset(data, false)
	decode(&v, &d)
	err := d.Finish()
	if err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

// UnmarshalVariant reads one JSON text as a variant the schema does not know:
// an object whose discriminator is a string.
func UnmarshalVariant(data []byte, key string, decode func(d *Decoder, tag string)) error {
	var d Decoder
	d.Reset(data, false)
	if tag := d.Open(key); tag != nil {
		decode(&d, string(tag))
	} else {
		d.Mismatch("expected an object with a string " + key)
	}
	return d.Finish()
}

// In adds the name of the member being encoded to an error.
func In(name string, err error) error {
	if name == "" {
		name = `""` // an empty path means the value itself
	}
	if e, ok := err.(*EncodeError); ok {
		if e.Path[0] != '[' {
			name += "."
		}
		return &EncodeError{Path: name + e.Path, Err: e.Err}
	}
	return &EncodeError{Path: name, Err: err}
}

// An EncodeError says which member could not be encoded.
type EncodeError struct {
	Path string
	Err  error
}

func (e *EncodeError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *EncodeError) Unwrap() error { return e.Err }

// MissingOf records that the object that began at the offset at lacks the
// first of the members whose bit is set. names lists all, separated by commas.
func (d *Decoder) MissingOf(at int, missing uint64, names string) {
	for range bits.TrailingZeros64(missing) {
		_, names, _ = strings.Cut(names, ",")
	}
	name, _, _ := strings.Cut(names, ",")
	d.Missing(at, name)
}

// Reopen takes back what Open consumed, for a variant that has no tag.
func (d *Decoder) Reopen() { d.reopen() }

// Marker reads an object that has no members but _meta. meta is nil when it
// has not even that.
func (d *Decoder) Marker(meta, unknown *json.RawMessage) {
	seen := false
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		switch {
		case meta == nil || string(k) != "_meta":
			d.Keep(unknown)
		case seen:
			d.Duplicate()
		default:
			seen = true
			*meta = d.Meta()
		}
	}
}

// AppendMarker appends what Marker reads.
func AppendMarker(dst []byte, meta, unknown json.RawMessage) ([]byte, error) {
	dst = append(dst, '{')
	var err error
	if len(meta) > 0 {
		if dst, err = AppendRawObject(append(dst, `"_meta":`...), meta); err != nil {
			return dst, In("_meta", err)
		}
		dst = append(dst, ',')
	}
	return closeMarker(dst, unknown, "_meta")
}

// AppendBare is AppendMarker for objects without even _meta.
func AppendBare(dst []byte, unknown json.RawMessage) ([]byte, error) {
	return closeMarker(append(dst, '{'), unknown)
}

func closeMarker(dst []byte, unknown json.RawMessage, known ...string) ([]byte, error) {
	if len(unknown) > 0 {
		var err error
		if dst, err = AppendMembers(dst, unknown, known...); err != nil {
			return dst, err
		}
	}
	return CloseObject(dst), nil
}

// FormValue reads one answer to a form: a string, a number, a boolean or a
// list of strings. It is kept raw, so that numbers keep their spelling.
func (d *Decoder) FormValue() json.RawMessage {
	switch c := d.Peek(); c {
	case '"', 't', 'f':
		return d.RawCopy()
	case '[':
		at, owned := d.pos, d.NotOwned() // the list is read twice
		Slice(d, String[string])
		d.Owned(owned)
		if d.err == nil {
			d.pos = at
		}
		return d.RawCopy()
	default:
		if !d.atNumber() {
			d.Mismatch("expected a string, a number, a boolean or a list of strings")
			return nil
		}
		at := d.pos
		d.Float64()
		if d.err == nil {
			d.pos = at
		}
		return d.RawCopy()
	}
}

// FormItem is FormValue in the shape of an item decoder.
func FormItem(v *json.RawMessage, d *Decoder) { *v = d.FormValue() }

// RawItem is RawCopy in the shape of an item decoder.
func RawItem(v *json.RawMessage, d *Decoder) { *v = d.RawCopy() }

// AppendRawItem is AppendRaw in the shape of an item encoder.
func AppendRawItem(v *json.RawMessage, dst []byte) ([]byte, error) { return AppendRaw(dst, *v) }

// Uint16Item is Uint16 in the shape of an item decoder.
func Uint16Item(v *uint16, d *Decoder) { *v = d.Uint16() }

// AppendUint16Item is AppendUint in the shape of an item encoder.
func AppendUint16Item(v *uint16, dst []byte) ([]byte, error) {
	return AppendUint(dst, uint64(*v)), nil
}
