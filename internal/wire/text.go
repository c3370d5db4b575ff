package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// replacement stands in decoded strings for what is not valid UTF-8.
const replacement = "\uFFFD"

//go:noinline
func (d *Decoder) failText() { d.fail("malformed string") }

// Str reads a string.
func (d *Decoder) Str() string {
	if d.Peek() != '"' {
		d.Mismatch("expected a string")
		return ""
	}
	start := d.pos + 1
	end, hi := scan(d.data, start)
	if end < 0 {
		d.failText()
		return ""
	}
	s := d.data[start:end]
	if d.data[end] == '\\' {
		if d.owned {
			_, n, e, h := d.unescape(d.data, end, end)
			if e < 0 {
				d.failText()
				return ""
			}
			d.moved = append(d.moved, span{start, e})
			s, end, hi = d.data[start:n], e, hi|h
		} else if s, end, hi = d.copyText(s, end, hi); end < 0 {
			return ""
		}
	}
	d.pos = end + 1
	if hi != 0 && !utf8.Valid(s) {
		return string(d.validUTF8(bytes.Clone(s)))
	}
	if d.owned && len(s) >= aliasMin {
		return unsafe.String(unsafe.SliceData(s), len(s))
	}
	return string(s)
}

// Bytes reads a string and returns its decoded bytes, valid until the next
// call.
func (d *Decoder) Bytes() []byte {
	if d.Peek() != '"' {
		d.Mismatch("expected a string")
		return nil
	}
	return d.text()
}

// ID reads a string through the interner, for the ids that every message of a
// conversation repeats.
func (d *Decoder) ID() string {
	b := d.Bytes()
	if d.In == nil {
		return string(b)
	}
	return d.In.get(b)
}

// text reads the string at the cursor, which is at its opening quote.
func (d *Decoder) text() []byte {
	start := d.pos + 1
	end, hi := scan(d.data, start)
	if end < 0 {
		d.failText()
		return nil
	}
	s := d.data[start:end]
	if d.data[end] == '\\' {
		if s, end, hi = d.copyText(s, end, hi); end < 0 {
			return nil
		}
	}
	d.pos = end + 1
	if hi != 0 && !utf8.Valid(s) {
		return d.validUTF8(bytes.Clone(s))
	}
	return s
}

// copyText resolves the escapes of a string that starts with the plain bytes
// plain and has its first escape at i, in the scratch buffer.
func (d *Decoder) copyText(plain []byte, i int, hi uint64) ([]byte, int, uint64) {
	if cap(d.scratch) < len(plain)+64 {
		d.scratch = make([]byte, len(plain)*2+256)
	}
	o := d.scratch[:cap(d.scratch)]
	copy(o, plain)
	o, n, end, h := d.unescape(o, len(plain), i)
	d.scratch = o
	if end < 0 {
		d.failText()
		return nil, -1, 0
	}
	return o[:n], end, hi | h
}

// unescape resolves string content from the escape at data[i] up to the
// closing quote into o from o[n] on, in a single pass. o may be the input
// itself when n <= i. It returns the buffer, the end of the text in it and the
// offset of the closing quote, or -1 for a malformed string.
func (d *Decoder) unescape(o []byte, n, i int) (out []byte, m, end int, hi uint64) {
	b := d.data
	var acc uint64
	inPlace := unsafe.SliceData(o) == unsafe.SliceData(b)
	simple := true // the last escape was not \u, so that runs are worth marking
	for {
		if simple && len(b)-i >= block+copySlop && (!inPlace || i-n >= copySlop) {
			var h uint64
			o, n, i, h = d.unescapeBlocks(o, n, i, inPlace)
			acc |= h
		}
		for i+8 <= len(b) {
			if !inPlace && n+24 > len(o) {
				o = grow(o, n)
			}
			w := binary.LittleEndian.Uint64(b[i:])
			m := special(w)
			if m == 0 {
				binary.LittleEndian.PutUint64(o[n:], w)
				acc |= w
				n += 8
				i += 8
				continue
			}
			t := bits.TrailingZeros64(m) &^ 7
			keep := uint64(1)<<t - 1
			// In place, the bytes behind the run are input not yet read.
			old := binary.LittleEndian.Uint64(o[n:])
			binary.LittleEndian.PutUint64(o[n:], w&keep|old&^keep)
			acc |= w & keep
			n += t >> 3
			i += t >> 3
			goto stop
		}
		for i < len(b) && b[i] >= 0x20 && b[i] != '"' && b[i] != '\\' {
			if n >= len(o) {
				o = grow(o, n)
			}
			acc |= uint64(b[i])
			o[n] = b[i]
			n++
			i++
		}
		if i >= len(b) {
			return o, n, -1, 0
		}
	stop:
		switch b[i] {
		case '"':
			return o, n, i, acc & high
		case '\\':
		default:
			return o, n, -1, 0
		}
	escape:
		if i+1 >= len(b) {
			return o, n, -1, 0
		}
		if !inPlace && n+4 > len(o) {
			o = grow(o, n)
		}
		if u := unescaped[b[i+1]]; u != 0 {
			o[n] = u
			n++
			i += 2
			simple = true
			if i < len(b) && b[i] == '\\' {
				goto escape
			}
			continue
		}
		simple = false
		if b[i+1] != 'u' {
			return o, n, -1, 0
		}
		r, next := d.codeUnits(i + 2)
		if next < 0 {
			return o, n, -1, 0
		}
		i = next
		n += utf8.EncodeRune(o[n:], r)
	}
}

// codeUnits returns the character whose \u escape has its digits at data[i],
// which is two escapes for a surrogate pair, and where the text continues: -1
// for malformed digits.
func (d *Decoder) codeUnits(i int) (r rune, next int) {
	b := d.data
	r, ok := hex4(b, i)
	if !ok {
		return 0, -1
	}
	i += 4
	if !utf16.IsSurrogate(r) {
		return r, i
	}
	pair := rune(utf8.RuneError)
	if i+1 < len(b) && b[i] == '\\' && b[i+1] == 'u' {
		second, ok := hex4(b, i+2)
		if !ok {
			return 0, -1
		}
		pair = utf16.DecodeRune(r, second)
	}
	if pair == utf8.RuneError {
		// JavaScript peers that cut streamed text between the two
		// halves of a surrogate pair send these.
		d.replaced++
	} else {
		i += 6
	}
	return pair, i
}

// unescapeBlocks is unescape for as much of a long string as fills blocks. It
// stops at what is not plain or a simple escape. In place, o[n:] has to be
// copySlop behind data[i:].
func (d *Decoder) unescapeBlocks(o []byte, n, i int, inPlace bool) (out []byte, m, end int, hi uint64) {
	var marks [maxBlocks]uint64
	b := d.data
	p, q := unsafe.Pointer(unsafe.SliceData(b)), unsafe.Pointer(unsafe.SliceData(o))
	last := i // b[last:i] is plain and not yet copied
	escaped := uint64(0)
	for batch := 1; ; batch = min(2*batch, maxBlocks) {
		blocks := min((len(b)-i-copySlop)/block, batch)
		if blocks <= 0 {
			break
		}
		hi |= markBlocks(&marks, unsafe.Add(p, i), blocks)
		for _, m := range marks[:blocks] {
			if need := i - last + block + copySlop; !inPlace && need > len(o)-n {
				o = slices.Grow(o[:n], n+need)
				o = o[:cap(o)]
				q = unsafe.Pointer(unsafe.SliceData(o))
			}
			// The first byte may belong to an escape in the block before.
			m &^= escaped
			escaped = 0
			for m != 0 {
				low := m & -m
				k := i + bits.TrailingZeros64(m)
				m &^= low | low<<1
				escaped = low >> 63
				u := unescaped[b[k+1]]
				copyRun(q, n, p, last, k-last)
				n += k - last
				if b[k] != '\\' || u == 0 {
					return o, n, k, hi
				}
				*(*byte)(unsafe.Add(q, n)) = u
				n++
				last = k + 2
			}
			i += block
		}
	}
	if last < i {
		copyRun(q, n, p, last, i-last)
		n += i - last
	}
	return o, n, max(i, last), hi
}

func grow(o []byte, n int) []byte {
	o = append(o[:n], make([]byte, max(256, n))...)
	return o[:cap(o)]
}

// validUTF8 replaces each invalid byte sequence of s, which the caller owns.
func (d *Decoder) validUTF8(s []byte) []byte {
	if utf8.Valid(s) {
		return s
	}
	out := make([]byte, 0, len(s)+16)
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 {
			d.replaced++
			out = append(out, replacement...)
		} else {
			out = append(out, s[:n]...)
		}
		s = s[n:]
	}
	return out
}

// An Interner returns the same string for the same bytes, so that the ids
// which every message repeats are allocated once. It remembers a few dozen
// short strings. The zero value is ready; it is not safe for concurrent use.
type Interner struct {
	slots [32]string
}

const internMax = 64 // bytes; longer strings are not worth remembering

func (t *Interner) get(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > internMax {
		return string(b)
	}
	// Ids differ at their end more often than at their start.
	h := uint64(len(b))
	if len(b) >= 8 {
		h += binary.LittleEndian.Uint64(b[len(b)-8:])
	} else {
		for _, c := range b {
			h = h<<8 | uint64(c)
		}
	}
	h *= 0x9e3779b97f4a7c15
	s := &t.slots[h>>59]
	if *s != string(b) {
		*s = string(b)
	}
	return *s
}
