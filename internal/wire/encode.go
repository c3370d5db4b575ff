package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

const hexDigits = "0123456789abcdef"

// escape holds the two-character escape of a byte, or 0 when it needs \u00xx.
var escape = [256]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't', '\b': 'b', '\f': 'f'}

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD;
// nothing is escaped for HTML.
func AppendString(dst []byte, s string) []byte {
	if len(s) < 8 {
		return appendShort(dst, s)
	}
	start := len(dst)
	dst = append(slices.Grow(dst, len(s)+len(s)/16+24), '"')
	p := unsafe.Slice(unsafe.StringData(s), len(s))
	i := 0
	var acc uint64
	if len(p) >= 2*block {
		dst, i, acc = escapeBlocks(dst, p)
	}
	o := dst[:cap(dst)]
	n := len(dst)
	for {
		for i+8 <= len(p) && n+8 <= len(o) {
			w := binary.LittleEndian.Uint64(p[i:])
			binary.LittleEndian.PutUint64(o[n:], w) // copy while scanning
			acc |= w
			m := special(w)
			if m != 0 {
				k := bits.TrailingZeros64(m) >> 3
				i += k
				n += k
				goto esc
			}
			i += 8
			n += 8
		}
		if r := len(p) - i; r > 0 {
			if r >= 8 || n+8 > len(o) {
				goto grow
			}
			// The last bytes: one load that overlaps what is done, shifted.
			w := binary.LittleEndian.Uint64(p[len(p)-8:]) >> (64 - 8*r)
			binary.LittleEndian.PutUint64(o[n:], w)
			acc |= w
			m := special(w) & (1<<(8*r) - 1)
			if m != 0 {
				k := bits.TrailingZeros64(m) >> 3
				i += k
				n += k
				goto esc
			}
			i += r
			n += r
		}
		break
	esc:
		if n+16 > len(o) {
			goto grow
		}
		if e := escape[p[i]]; e != 0 {
			binary.LittleEndian.PutUint16(o[n:], '\\'|uint16(e)<<8)
			n += 2
		} else {
			n += copy(o[n:], `\u00`)
			o[n] = hexDigits[p[i]>>4]
			o[n+1] = hexDigits[p[i]&15]
			n += 2
		}
		i++
		if i < len(p) && escape[p[i]] != 0 {
			goto esc
		}
		continue
	grow:
		dst = slices.Grow(o[:n], len(p)-i+(len(p)-i)/8+64)
		o = dst[:cap(dst)]
	}
	if acc&high != 0 && !utf8.ValidString(s) {
		return AppendString(o[:start], replaceInvalid(s))
	}
	return append(o[:n], '"')
}

// escaped holds the two bytes a byte is escaped by, the first in the low half,
// or 0 when it needs \u00xx.
var escaped = func() (t [256]uint16) {
	for c, e := range escape {
		if e != 0 {
			t[c] = '\\' | uint16(e)<<8
		}
	}
	return t
}()

// escapeBlocks appends the beginning of a long string, all but what does not
// fill a block, and returns how much of it that is.
func escapeBlocks(dst, s []byte) (out []byte, done int, hi uint64) {
	var marks [maxBlocks]uint64
	p := unsafe.Pointer(unsafe.SliceData(s))
	o, n, room := unsafe.Pointer(unsafe.SliceData(dst)), len(dst), cap(dst)
	i, last := 0, 0 // s[last:i] is plain and not yet copied
	for {
		blocks := min((len(s)-i-copySlop)/block, maxBlocks)
		if blocks <= 0 {
			break
		}
		hi |= markBlocks(&marks, unsafe.Add(p, i), blocks)
		for _, m := range marks[:blocks] {
			if room-n < i-last+6*block+copySlop {
				dst = slices.Grow(unsafe.Slice((*byte)(o), room)[:n], len(s)-last+(len(s)-i)/8+6*block+copySlop)
				o, room = unsafe.Pointer(unsafe.SliceData(dst)), cap(dst)
			}
			for m != 0 {
				k := i + bits.TrailingZeros64(m)
				m &= m - 1
				copyRun(o, n, p, last, k-last)
				n += k - last
				last = k + 1
				c := s[k]
				e := escaped[c]
				binary.LittleEndian.PutUint16((*[2]byte)(unsafe.Add(o, n))[:], e)
				n += 2
				if e == 0 {
					copy((*[6]byte)(unsafe.Add(o, n-2))[:], []byte{'\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15]})
					n += 4
				}
			}
			i += block
		}
	}
	copyRun(o, n, p, last, i-last)
	return unsafe.Slice((*byte)(o), room)[:n+i-last], i, hi
}

func appendShort(dst []byte, s string) []byte {
	start := len(dst)
	dst = append(dst, '"')
	var acc byte
	for i := 0; i < len(s); i++ {
		c := s[i]
		acc |= c
		if c >= 0x20 && c != '"' && c != '\\' {
			dst = append(dst, c)
		} else if e := escape[c]; e != 0 {
			dst = append(dst, '\\', e)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	if acc >= utf8.RuneSelf && !utf8.ValidString(s) {
		return AppendString(dst[:start], replaceInvalid(s))
	}
	return append(dst, '"')
}

// replaceInvalid puts one U+FFFD in the place of every invalid byte.
func replaceInvalid(s string) string {
	out := make([]byte, 0, len(s)+16)
	for _, r := range s {
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

// AppendInt appends a signed integer.
func AppendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// AppendUint appends an unsigned integer.
func AppendUint(dst []byte, n uint64) []byte { return strconv.AppendUint(dst, n, 10) }

// AppendBool appends true or false.
func AppendBool(dst []byte, v bool) []byte { return strconv.AppendBool(dst, v) }

var errNumber = errors.New("a number in JSON cannot be infinite or NaN")

// AppendFloat appends a number. NaN and the infinities are errors.
func AppendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, errNumber
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64), nil
}

// ErrNoValue is what encoding reports when a required member has no value.
var ErrNoValue = errors.New("required value is missing")

// AppendRaw appends a raw JSON value after checking it. Line breaks between
// tokens become spaces, so that the value cannot end a frame; invalid UTF-8 is
// replaced. An empty raw value is an error.
func AppendRaw(dst, raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return dst, ErrNoValue
	}
	if err := Valid(raw); err != nil {
		return dst, err
	}
	start := len(dst)
	dst = append(dst, raw...)
	oneLine(dst[start:])
	if !utf8.Valid(dst[start:]) {
		var d Decoder
		return append(dst[:start], d.validUTF8(dst[start:])...), nil
	}
	return dst, nil
}

var errNotObject = errors.New("expected a JSON object")

// AppendRawObject is AppendRaw for values that have to be objects.
func AppendRawObject(dst, raw []byte) ([]byte, error) {
	if i := skipSpace(raw, 0); i >= len(raw) || raw[i] != '{' {
		return dst, errNotObject
	}
	return AppendRaw(dst, raw)
}

// AppendMembers appends the members of the raw object raw, each followed by a
// comma, to an object under construction. A member that is among known is an
// error: it would appear twice.
func AppendMembers(dst, raw []byte, known ...string) ([]byte, error) {
	return appendMembers(dst, raw, func(k string) bool { return slices.Contains(known, k) })
}

// AppendUnknown is AppendMembers for a generated struct. known lists its members, each
// followed by a comma; knows is nil, or tells those of a variant.
func AppendUnknown(dst, raw []byte, knows func(member string) bool, known string) ([]byte, error) {
	return appendMembers(dst, raw, func(k string) bool {
		for name := range strings.SplitSeq(known, ",") {
			if name == k && k != "" {
				return true
			}
		}
		return knows != nil && knows(k)
	})
}

func appendMembers(dst, raw []byte, known func(string) bool) ([]byte, error) {
	var d Decoder
	d.Reset(raw, false)
	if d.Peek() != '{' {
		return dst, errNotObject
	}
	start := len(dst)
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		if known(string(k)) {
			return dst, errors.New("unknown members hold the known member " + strconv.QuoteToASCII(string(k)))
		}
		at := d.keyAt
		d.Skip()
		if d.err != nil {
			return dst, d.err
		}
		dst = append(append(dst, raw[at:d.pos]...), ',')
	}
	if err := d.Finish(); err != nil {
		return dst, err
	}
	oneLine(dst[start:])
	return append(dst[:start], d.validUTF8(dst[start:])...), nil
}

// Without checks that the raw object raw, if there is one, has no member tag:
// the discriminator is sent in front of it.
func Without(raw []byte, tag string) error {
	if len(raw) == 0 {
		return nil
	}
	var d Decoder
	d.Reset(raw, false)
	if d.Kind(tag) != 0 {
		return errors.New("unknown members hold the discriminator " + tag)
	}
	return nil
}

var errTag = errors.New("Raw does not have the discriminator that Type says")

// CheckVariant checks that raw, an object kept for a variant that the schema
// does not know, has the discriminator typ in its member tag.
func CheckVariant(raw []byte, tag, typ string) error {
	var d Decoder
	d.Reset(raw, false)
	if d.Kind(tag) != '"' || d.Member(tag) != typ {
		return In(tag, errTag)
	}
	return nil
}

// AppendVariant appends such an object.
func AppendVariant(dst, raw []byte, tag, typ string) ([]byte, error) {
	if err := CheckVariant(raw, tag, typ); err != nil {
		return dst, err
	}
	return AppendRawObject(dst, raw)
}

// What follows appends to hundreds of generated structs. It is not inlined: the program
// would be half a megabyte larger.

// Key appends the key of a member, with its colon.
//
//go:noinline
func Key(dst []byte, key string) []byte { return append(dst, key...) }

// Comma ends a member, or reports why it could not be appended.
//
//go:noinline
func Comma(dst []byte, err error) ([]byte, error) {
	if err != nil {
		return dst, err
	}
	return append(dst, ','), nil
}

// AppendStringMember appends a key with its colon, a string, and a comma.
//
//go:noinline
func AppendStringMember(dst []byte, key, s string) []byte {
	return append(AppendString(append(dst, key...), s), ',')
}

// AppendMeta appends _meta, an object, and a comma.
//
//go:noinline
func AppendMeta(dst, raw []byte) ([]byte, error) {
	dst, err := Comma(AppendRawObject(append(dst, `"_meta":`...), raw))
	if err != nil {
		return dst, In("_meta", err)
	}
	return dst, nil
}

// AppendMetaPatch is AppendMeta for an upsert, whose _meta is an object or null.
func AppendMetaPatch(dst, raw []byte) ([]byte, error) {
	if string(raw) == "null" {
		return append(dst, `"_meta":null,`...), nil
	}
	return AppendMeta(dst, raw)
}

// Limit returns the error of a value outside the limits of the schema, which
// the peer would refuse.
func Limit(reason string) error { return errors.New(reason) }

// Valid checks that data is one JSON text this package accepts.
func Valid(data []byte) error {
	var d Decoder
	d.Reset(data, false)
	d.Skip()
	return d.Finish()
}

// oneLine replaces line breaks, which in valid JSON stand between tokens only.
func oneLine(b []byte) {
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
}

// CloseObject ends an object whose members were each followed by a comma.
func CloseObject(b []byte) []byte {
	if n := len(b) - 1; b[n] == ',' {
		b[n] = '}'
		return b
	}
	return append(b, '}')
}
