package wire

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"
)

const (
	low  = 0x0101010101010101
	high = 0x8080808080808080
)

// special marks with 0x80 exactly the bytes of w that are '"', '\\' or below
// 0x20. No byte borrows from its neighbour, so every mark is exact.
func special(w uint64) uint64 {
	a := w &^ high
	quote := (a ^ low*'"') + 0x7f*low
	slash := (a ^ low*'\\') + 0x7f*low
	return ^(quote&slash&(a+0x60*low) | w) & high
}

// scan advances from i over plain string content. It returns the index of the
// first '"' or '\\', or -1 at a control byte or the end of the input. hi is
// not zero when bytes outside ASCII were passed, and may be otherwise.
func scan(b []byte, i int) (end int, hi uint64) {
	var acc uint64
	start := i
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		m := special(w)
		if m == 0 {
			acc |= w
			i += 8
			if i-start == block && len(b)-i >= block {
				// After so many plain bytes more of them are likely.
				var h uint64
				i, h = scanBlocks(b, i)
				acc |= h
			}
			continue
		}
		t := bits.TrailingZeros64(m)
		acc |= w & (1<<(t&^7) - 1)
		i += t >> 3
		if b[i] < 0x20 {
			return -1, 0
		}
		return i, acc & high
	}
	for i < len(b) {
		c := b[i]
		if c == '"' || c == '\\' {
			return i, acc & high
		}
		if c < 0x20 {
			return -1, 0
		}
		acc |= uint64(c)
		i++
	}
	return -1, 0
}

// scanBlocks advances from i over blocks of plain string content. hi may be of
// bytes behind those.
func scanBlocks(b []byte, i int) (end int, hi uint64) {
	var marks [maxBlocks]uint64
	for batch := 2; ; batch = min(2*batch, maxBlocks) {
		blocks := min((len(b)-i)/block, batch)
		if blocks == 0 {
			return i, hi
		}
		hi |= markBlocks(&marks, unsafe.Pointer(&b[i]), blocks)
		for _, m := range marks[:blocks] {
			if m != 0 {
				return i + bits.TrailingZeros64(m), hi
			}
			i += block
		}
	}
}

// unescaped maps the byte behind a backslash to what it stands for.
var unescaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// skipString returns the index of the closing quote of the string whose
// content starts at i, or -1, checking escapes.
func skipString(b []byte, i int) (end int, hi uint64) {
	for {
		e, h := scan(b, i)
		hi |= h
		if e < 0 || b[e] == '"' {
			return e, hi
		}
		for i = e; i < len(b) && b[i] == '\\'; {
			if i+1 >= len(b) {
				return -1, 0
			}
			if unescaped[b[i+1]] != 0 {
				i += 2
			} else if _, ok := hex4(b, i+2); ok && b[i+1] == 'u' {
				i += 6
			} else {
				return -1, 0
			}
		}
	}
}

func hex4(s []byte, i int) (rune, bool) {
	if i+4 > len(s) {
		return 0, false
	}
	var r rune
	for _, c := range s[i : i+4] {
		switch {
		case c-'0' < 10:
			r = r<<4 | rune(c-'0')
		case c|0x20-'a' < 6:
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	return i
}

// search returns the string member key of the object at the cursor without
// moving it. What it passes over is not checked: the decoding that follows
// does that.
func (d *Decoder) search(key string) []byte {
	if d.Peek() != '{' {
		return nil
	}
	i := d.find(d.pos, key)
	if i < 0 || d.data[i] != '"' {
		return nil
	}
	save := d.pos
	d.pos = i
	t := d.text()
	if d.err == nil {
		d.pos = save
	}
	return t
}

// Kind returns the first byte of the member key of the object at the cursor,
// or 0 when there is none, without moving the cursor.
func (d *Decoder) Kind(key string) byte {
	d.reopen()
	if d.Peek() != '{' {
		return 0
	}
	i := d.find(d.pos, key)
	if i < 0 {
		return 0
	}
	return d.data[i]
}

// ElemKind is Kind for the first element of the array at the cursor.
func (d *Decoder) ElemKind(key string) byte {
	if d.Peek() != '[' {
		return 0
	}
	i := skipSpace(d.data, d.pos+1)
	if i >= len(d.data) || d.data[i] != '{' {
		return 0
	}
	if i = d.find(i, key); i < 0 {
		return 0
	}
	return d.data[i]
}

// find returns the offset of the value of member key in the object at i, or -1.
func (d *Decoder) find(i int, key string) int {
	b := d.data
	for i++; ; i++ {
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != '"' {
			return -1
		}
		start := i + 1
		end, _ := skipString(b, start)
		if end < 0 {
			return -1
		}
		i = skipSpace(b, end+1)
		if i >= len(b) || b[i] != ':' {
			return -1
		}
		i = skipSpace(b, i+1)
		if i >= len(b) {
			return -1
		}
		if sameKey(b[start:end], key) {
			return i
		}
		if i = d.skipFast(i); i < 0 {
			return -1
		}
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != ',' {
			return -1
		}
	}
}

// sameKey compares the source text of a key, escapes and all, with key.
func sameKey(src []byte, key string) bool {
	if len(src) == len(key) {
		return string(src) == key
	}
	if len(src) < len(key) {
		return false
	}
	for _, c := range src {
		if c == '\\' {
			d := Decoder{data: append(append([]byte{'"'}, src...), '"')}
			return string(d.text()) == key && d.err == nil
		}
	}
	return false
}

// skipFast skips the value at i by balancing brackets and strings only. It
// returns the offset behind it, or -1.
func (d *Decoder) skipFast(i int) int {
	b := d.data
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			end := d.movedEnd(i + 1)
			if end < 0 {
				if end, _ = skipString(b, i+1); end < 0 {
					return -1
				}
			}
			i = end + 1
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	if depth == 0 {
		return i
	}
	return -1
}

// movedEnd returns the offset of the closing quote of a string that was
// unescaped in place, or -1. Decoding only goes forward, so moved is in order;
// there may be as many of them as the input has strings.
func (d *Decoder) movedEnd(start int) int {
	i, ok := slices.BinarySearchFunc(d.moved, start, func(s span, start int) int { return s.start - start })
	if !ok {
		return -1
	}
	return d.moved[i].end
}
