package wire

import (
	"math"
	"strconv"
	"unsafe"
)

// number checks the number at the cursor and returns its text; plain is true
// when it has neither fraction nor exponent.
func (d *Decoder) number() (text []byte, plain bool) {
	b, i := d.data, d.pos
	start := i
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && b[i]-'1' < 9:
		i = digits(b, i)
	default:
		d.fail("malformed number")
		return nil, false
	}
	plain = true
	if i < len(b) && b[i] == '.' {
		plain = false
		j := digits(b, i+1)
		if j == i+1 {
			d.fail("malformed number")
			return nil, false
		}
		i = j
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		plain = false
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		j := digits(b, i)
		if j == i {
			d.fail("malformed number")
			return nil, false
		}
		i = j
	}
	d.pos = i
	return b[start:i], plain
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' < 10 {
		i++
	}
	return i
}

func (d *Decoder) atNumber() bool {
	c := d.Peek()
	return c == '-' || c-'0' < 10
}

// integer reads a number without a fractional part: 1, but also 1.0 and 1e2,
// which are the same value to a JavaScript peer (S73).
func (d *Decoder) integer() (neg bool, n uint64, at int, ok bool) {
	if !d.atNumber() {
		d.Mismatch("expected an integer")
		return false, 0, 0, false
	}
	at = d.pos
	t, plain := d.number()
	if d.err != nil {
		return false, 0, at, false
	}
	if t[0] == '-' {
		neg, t = true, t[1:]
	}
	if !plain {
		var whole bool
		if t, whole = integral(t); !whole {
			d.Invalid(at, "expected an integer")
			return false, 0, at, false
		}
		if d.Watch != nil {
			d.note(Note{Kind: NoteSpelling, at: at})
		}
	}
	for _, c := range t {
		if n > math.MaxUint64/10 || n*10 > math.MaxUint64-uint64(c-'0') {
			d.Invalid(at, "integer out of range")
			return false, 0, at, false
		}
		n = n*10 + uint64(c-'0')
	}
	return neg, n, at, true
}

// integral rewrites an unsigned decimal with fraction or exponent as plain
// digits; false when it is not a whole number of a representable size.
func integral(t []byte) ([]byte, bool) {
	exp, mant := 0, t
	for i, c := range t {
		if c|0x20 == 'e' {
			e, err := strconv.Atoi(string(t[i+1:]))
			if err != nil || e < -64 || e > 64 {
				return nil, allZero(t[:i])
			}
			exp, mant = e, t[:i]
			break
		}
	}
	var ds []byte
	for i, c := range mant {
		if c == '.' {
			exp -= len(mant) - i - 1
			continue
		}
		ds = append(ds, c)
	}
	for ; exp < 0; exp++ {
		if len(ds) == 0 {
			break
		}
		if ds[len(ds)-1] != '0' {
			return nil, false
		}
		ds = ds[:len(ds)-1]
	}
	if allZero(ds) {
		return nil, true
	}
	for ; exp > 0; exp-- {
		ds = append(ds, '0')
	}
	return ds, true
}

func allZero(t []byte) bool {
	for _, c := range t {
		if c != '0' && c != '.' {
			return false
		}
	}
	return true
}

func (d *Decoder) signed(minimum, maximum int64) int64 {
	neg, n, at, ok := d.integer()
	if !ok {
		return 0
	}
	if neg {
		if n > uint64(-(minimum+1))+1 {
			d.Invalid(at, "integer out of range")
			return 0
		}
		return -int64(n)
	}
	if n > uint64(maximum) {
		d.Invalid(at, "integer out of range")
		return 0
	}
	return int64(n)
}

func (d *Decoder) unsigned(maximum uint64) uint64 {
	neg, n, at, ok := d.integer()
	if ok && (neg && n != 0 || n > maximum) {
		d.Invalid(at, "integer out of range")
		return 0
	}
	return n
}

// Int64 reads a 64-bit signed integer.
func (d *Decoder) Int64() int64 { return d.signed(math.MinInt64, math.MaxInt64) }

// Int32 reads a 32-bit signed integer.
func (d *Decoder) Int32() int32 { return int32(d.signed(math.MinInt32, math.MaxInt32)) }

// Uint64 reads a 64-bit unsigned integer.
func (d *Decoder) Uint64() uint64 { return d.unsigned(math.MaxUint64) }

// Uint32 reads a 32-bit unsigned integer.
func (d *Decoder) Uint32() uint32 { return uint32(d.unsigned(math.MaxUint32)) }

// Uint16 reads a 16-bit unsigned integer.
func (d *Decoder) Uint16() uint16 { return uint16(d.unsigned(math.MaxUint16)) }

// Float64 reads a number.
func (d *Decoder) Float64() float64 {
	if !d.atNumber() {
		d.Mismatch("expected a number")
		return 0
	}
	at := d.pos
	t, _ := d.number()
	if d.err != nil {
		return 0
	}
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(t), len(t)), 64)
	if err != nil {
		d.Invalid(at, "number out of range")
		return 0
	}
	return f
}
