package jsonrpc

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/goacp/acp/internal/wire"
)

// An ID is the id of a request: a string, a number or null. It holds the JSON text
// exactly as it was received, so that it is echoed byte for byte: 1 and "1" are
// different ids.
//
// The zero ID stands for an absent id and is encoded as null. IDs are immutable and
// may be shared. == compares the spelling; [ID.Equal] compares what ids mean.
type ID struct {
	raw string // S10, S12
}

// IntID returns the id with the given integer value.
func IntID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// StringID returns the id with the given string value.
func StringID(s string) ID { return ID{string(wire.AppendString(nil, s))} }

// nullID returns the id null, which is not the same as no id.
func nullID() ID { return ID{"null"} }

// IsZero reports whether the id is absent.
func (id ID) IsZero() bool { return id.raw == "" }

// IsNull reports whether the id is null.
func (id ID) IsNull() bool { return id.raw == "null" }

// IsString reports whether the id is a string.
func (id ID) IsString() bool { return id.raw != "" && id.raw[0] == '"' }

// IsInteger reports whether the id is a number without a fractional part: 1.0 and
// 1e3 are integers. Version 2 of ACP allows only strings and integers.
func (id ID) IsInteger() bool {
	if id.raw == "" || id.raw[0] == '"' || id.raw[0] == 'n' {
		return false
	}
	if id.isPlain() {
		return true
	}
	f, err := strconv.ParseFloat(id.raw, 64)
	return err == nil && f == math.Trunc(f)
}

// String returns the JSON text of the id, or "" if it is absent.
func (id ID) String() string { return id.raw }

// Text returns the unescaped value of a string id, and false for any other id.
func (id ID) Text() (string, bool) {
	if !id.IsString() {
		return "", false
	}
	var d wire.Decoder
	d.Reset([]byte(id.raw), false)
	return d.Str(), true
}

// Equal reports whether both ids mean the same: it ignores how strings are escaped,
// and 1.0 equals 1.
func (id ID) Equal(other ID) bool { return id.raw == other.raw || id.key() == other.key() }

// key returns one spelling for all ids that are Equal.
func (id ID) key() ID {
	switch {
	case id.IsString():
		if strings.IndexByte(id.raw, '\\') < 0 {
			return id
		}
		s, _ := id.Text()
		return StringID(s)
	case id.isPlain():
	default:
		if f, err := strconv.ParseFloat(id.raw, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return IntID(int64(f))
		}
	}
	return id
}

// isPlain reports whether an id that is not a string has neither fraction nor
// exponent.
func (id ID) isPlain() bool {
	for i := range len(id.raw) {
		if c := id.raw[i]; c == '.' || c|0x20 == 'e' {
			return false
		}
	}
	return true
}

// AppendJSON appends the JSON text of the id, or null if it is absent.
func (id ID) AppendJSON(dst []byte) ([]byte, error) {
	if id.raw == "" {
		return append(dst, "null"...), nil
	}
	return append(dst, id.raw...), nil
}

// decodeJSON reads an id. A value other than a string, a number or null is recorded
// in d as a mismatch.
func (id *ID) decodeJSON(d *wire.Decoder) {
	switch c := d.Peek(); {
	case c == '"':
		*id = ID{string(d.RawCopy())}
	case c == 'n' || c == '-' || c-'0' < 10:
		*id = ID{string(d.Raw())}
	default:
		d.Mismatch("expected a string, a number or null")
	}
}

// MarshalJSON implements [encoding/json.Marshaler].
func (id ID) MarshalJSON() ([]byte, error) { return id.AppendJSON(nil) }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (id *ID) UnmarshalJSON(data []byte) error {
	var d wire.Decoder
	d.Reset(data, false)
	var v ID
	v.decodeJSON(&d)
	if err := d.Finish(); err != nil {
		return errors.New("jsonrpc: id: " + err.Error())
	}
	*id = v
	return nil
}

// ownID reads the id of a response to one of our own calls, which are integers. Some
// encoders write 3.0 for 3, which JSON does not tell apart. Anything else, "3" and 3e0
// included, is not ours (S33).
func ownID(raw []byte) (int64, bool) {
	if i := bytes.IndexByte(raw, '.'); i > 0 && i < len(raw)-1 && len(bytes.Trim(raw[i+1:], "0")) == 0 {
		raw = raw[:i]
	}
	if len(raw) == 0 || len(raw) > 18 || raw[0] == '0' && len(raw) > 1 {
		return 0, false
	}
	var n int64
	for _, c := range raw {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
