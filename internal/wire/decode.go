package wire

import (
	"encoding/binary"
	"math/bits"
)

// A Decoder reads one JSON text from a byte slice. The zero value decodes an
// empty input; call [Decoder.Reset] to give it one. A Decoder is not safe for
// concurrent use.
type Decoder struct {
	// In, when set, shares the strings returned by ID between messages.
	In *Interner
	// Forms, when set, recognises messages that differ in one string only.
	Forms *Forms
	// Watch, when set, gets what is let pass.
	Watch *Watch

	data  []byte
	pos   int
	depth int

	mark   int  // start of the object last opened by Open
	opened bool // Open consumed the first member of the object at mark
	keyAt  int  // start of the last key, quote included
	owned  bool

	lenient int  // nesting of Try
	bad     bool // a mismatch since the innermost Try
	first   mismatch
	err     *SyntaxError

	replaced int
	scratch  []byte
	moved    []span // strings unescaped in place: their text is no longer JSON
}

type mismatch struct {
	reason string
	name   string // member of the object at `at`, or empty
	at     int
	ok     bool
}

type span struct{ start, end int } // string content, quotes excluded

// Reset makes the decoder read data from the start. When owned is true the
// bytes belong to the decoded values from now on: long strings and raw values
// alias data, and escapes are resolved in place.
func (d *Decoder) Reset(data []byte, owned bool) {
	// Field by field: clearing the whole struct costs more than most values do.
	d.data, d.owned = data, owned
	d.pos, d.depth, d.keyAt, d.mark, d.lenient, d.replaced = 0, 0, 0, 0, 0, 0
	d.opened, d.bad = false, false
	if d.first.ok {
		d.first = mismatch{}
	}
	if d.err != nil {
		d.err = nil
	}
	if cap(d.scratch) > 64<<10 {
		d.scratch = nil
	}
	if cap(d.moved) > 4096 {
		d.moved = nil
	}
	d.moved = d.moved[:0]
}

// Pos returns the offset of the cursor.
func (d *Decoder) Pos() int {
	if d.opened {
		return d.mark
	}
	return d.pos
}

// At is Pos behind any white space: the offset of the next value.
func (d *Decoder) At() int {
	if d.opened {
		return d.mark
	}
	d.Peek()
	return d.pos
}

// Seek moves the cursor to an offset at the same nesting depth, usually one
// that Pos returned. It does nothing once the input proved malformed.
func (d *Decoder) Seek(pos int) {
	if d.err == nil {
		d.reopen()
		d.pos = pos
	}
}

// Enter moves the cursor from the start of the input to the value of a member
// of the object there, as FirstKey and NextKey would.
func (d *Decoder) Enter(pos int) {
	d.pos = pos
	d.depth = 1
}

// Replaced returns how many invalid UTF-8 sequences and lone surrogates were
// replaced since Reset.
func (d *Decoder) Replaced() int { return d.replaced }

// SyntaxErr returns the *SyntaxError that ended decoding, or nil.
func (d *Decoder) SyntaxErr() error {
	if d.err == nil {
		return nil
	}
	return d.err
}

// FieldErr returns the first mismatch that no lenient field absorbed, or nil.
func (d *Decoder) FieldErr() *FieldError {
	if !d.first.ok {
		return nil
	}
	p := d.path(d.first.at)
	if d.first.name != "" {
		p = join(p, d.first.name)
	}
	return &FieldError{Path: p, Reason: d.first.reason}
}

// Finish checks that only white space follows and returns what went wrong:
// a *SyntaxError, a *FieldError or nil.
func (d *Decoder) Finish() error {
	if d.err == nil {
		if d.Peek(); d.pos != len(d.data) {
			d.fail("unexpected data after the value")
		}
	}
	if d.err != nil {
		return d.err
	}
	if e := d.FieldErr(); e != nil {
		return e
	}
	return nil
}

//go:noinline
func (d *Decoder) fail(reason string) {
	if d.err == nil {
		d.err = &SyntaxError{Reason: reason, Offset: d.pos}
	}
	d.opened = false
	d.pos = len(d.data)
}

// Try starts a lenient field: mismatches until the matching Failed do not
// count as errors of the whole value.
func (d *Decoder) Try() bool {
	was := d.bad
	d.bad = false
	d.lenient++
	return was
}

// Failed ends the lenient field begun by the Try that returned was and reports
// whether there was a mismatch.
func (d *Decoder) Failed(was bool) bool {
	b := d.bad
	d.bad = was
	d.lenient--
	return b
}

// Bad reports whether there was a mismatch since the innermost Try.
func (d *Decoder) Bad() bool { return d.bad }

//go:noinline
func (d *Decoder) record(at int, name, reason string) {
	d.bad = true
	if d.lenient == 0 && !d.first.ok && d.err == nil {
		d.first = mismatch{reason: reason, name: name, at: at, ok: true}
	}
	if d.lenient > 0 && d.Watch != nil {
		d.note(Note{Kind: NoteSalvaged, Reason: reason, at: at, name: name})
	}
}

// Mismatch records that the value at the cursor has the wrong shape and skips it.
//
//go:noinline
func (d *Decoder) Mismatch(reason string) {
	d.reopen()
	d.Peek()
	at := d.pos
	d.Skip()
	d.record(at, "", reason)
}

// Invalid records that the value that began at the offset at, and was already
// consumed, is not acceptable.
func (d *Decoder) Invalid(at int, reason string) { d.record(at, "", reason) }

// Missing records that the object that began at the offset at lacks a member.
func (d *Decoder) Missing(at int, name string) { d.record(at, name, "missing") }

// Once notes in seen that the member of bit was read; when it was read before
// that is a mismatch, its value is skipped, and the result is false.
func (d *Decoder) Once(seen *uint64, bit uint64) bool {
	if *seen&bit != 0 {
		d.Duplicate()
		return false
	}
	*seen |= bit
	return true
}

// Duplicate records that the key just read was read before in the same object,
// and skips its value.
//
//go:noinline
func (d *Decoder) Duplicate() {
	at := d.keyAt
	d.Skip()
	d.record(at, "", "duplicate member")
}

// Peek returns the next byte that is not white space without consuming it, or
// 0 at the end of the input.
func (d *Decoder) Peek() (c byte) {
	if d.pos < len(d.data) {
		c = d.data[d.pos]
	}
	if c <= ' ' {
		c = d.peekSlow()
	}
	return
}

func (d *Decoder) peekSlow() byte {
	for d.pos < len(d.data) {
		switch c := d.data[d.pos]; c {
		case ' ', '\t', '\r', '\n':
			d.pos++
		case 0:
			// A NUL would look like the end of the input to the callers.
			d.fail("unexpected NUL")
			return 0
		default:
			return c
		}
	}
	return 0
}

// FirstKey enters the object at the cursor and returns its first key, valid
// until the next call, or false when it is empty or not an object.
func (d *Decoder) FirstKey() ([]byte, bool) {
	if d.opened {
		d.opened = false
		return d.NextKey()
	}
	if d.Peek() != '{' {
		d.Mismatch("expected an object")
		return nil, false
	}
	d.pos++
	if d.depth++; d.depth > MaxDepth {
		d.fail(tooDeep)
		return nil, false
	}
	if d.Peek() == '}' {
		d.pos++
		d.depth--
		return nil, false
	}
	return d.key()
}

// NextKey returns the next key of the object, or false at its end.
func (d *Decoder) NextKey() ([]byte, bool) {
	if d.pos < len(d.data) && d.data[d.pos] == ',' {
		d.pos++
		return d.key()
	}
	switch d.Peek() {
	case ',':
		d.pos++
		return d.key()
	case '}':
		d.pos++
		d.depth--
		return nil, false
	}
	d.fail("expected a comma or }")
	return nil, false
}

func (d *Decoder) key() ([]byte, bool) {
	// Nearly every key is short plain ASCII followed directly by a colon.
	b, i := d.data, d.pos
	if i+18 <= len(b) && b[i] == '"' {
		d.keyAt = i
		i++
		w := binary.LittleEndian.Uint64(b[i:])
		j := i
		m := special(w) | w&high
		if m == 0 {
			j += 8
			w = binary.LittleEndian.Uint64(b[j:])
			m = special(w) | w&high
		}
		if m != 0 {
			j += bits.TrailingZeros64(m) >> 3
			if b[j] == '"' && b[j+1] == ':' {
				d.pos = j + 2
				return b[i:j], true
			}
		}
	}
	return d.keySlow()
}

func (d *Decoder) keySlow() ([]byte, bool) {
	if d.Peek() != '"' {
		d.fail("expected a member name")
		return nil, false
	}
	d.keyAt = d.pos
	k := d.text()
	if d.Peek() != ':' {
		d.fail("expected a colon")
		return nil, false
	}
	d.pos++
	return k, true
}

// FirstElem enters the array at the cursor and reports whether it has an
// element.
func (d *Decoder) FirstElem() bool {
	if d.Peek() != '[' {
		d.Mismatch("expected an array")
		return false
	}
	d.pos++
	if d.depth++; d.depth > MaxDepth {
		d.fail(tooDeep)
		return false
	}
	if d.Peek() == ']' {
		d.pos++
		d.depth--
		return false
	}
	return true
}

// NextElem reports whether another element follows in the array.
func (d *Decoder) NextElem() bool {
	switch d.Peek() {
	case ',':
		d.pos++
		return true
	case ']':
		d.pos++
		d.depth--
		return false
	}
	d.fail("expected a comma or ]")
	return false
}

// Null consumes null if it is next.
func (d *Decoder) Null() bool {
	if d.Peek() != 'n' {
		return false
	}
	return d.literal("null")
}

func (d *Decoder) literal(s string) bool {
	if len(d.data)-d.pos >= len(s) && string(d.data[d.pos:d.pos+len(s)]) == s {
		d.pos += len(s)
		return true
	}
	d.fail("unknown literal")
	return false
}

// Bool reads a boolean.
func (d *Decoder) Bool() bool {
	switch d.Peek() {
	case 't':
		return d.literal("true")
	case 'f':
		d.literal("false")
		return false
	}
	d.Mismatch("expected a boolean")
	return false
}

// Skip checks and skips one value.
func (d *Decoder) Skip() {
	switch c := d.Peek(); c {
	case '"':
		d.skipText()
	case '{':
		n := d.replaced
		for _, ok := d.FirstKey(); ok; _, ok = d.NextKey() {
			d.Skip()
		}
		d.replaced = n // keys that nobody gets to see
	case '[':
		for ok := d.FirstElem(); ok; ok = d.NextElem() {
			d.Skip()
		}
	case 't':
		d.literal("true")
	case 'f':
		d.literal("false")
	case 'n':
		d.literal("null")
	default:
		if c == '-' || c-'0' < 10 {
			d.number()
			return
		}
		d.fail("expected a value")
	}
}

func (d *Decoder) skipText() {
	end, _ := skipString(d.data, d.pos+1)
	if end < 0 {
		d.failText()
		return
	}
	d.pos = end + 1
}

// Member returns the text of the string member key of the object at the cursor
// without moving it, or "".
func (d *Decoder) Member(key string) string {
	opened, pos := d.opened, d.pos
	d.reopen()
	t := string(d.search(key))
	if d.err == nil && opened {
		d.opened, d.pos = true, pos
		d.depth++
	}
	return t
}

// Open reads the discriminator of the union object at the cursor. When it is
// the first member, as most senders have it, it is consumed, and the next
// FirstKey continues behind it; otherwise the members are searched and the
// cursor stays. The tag is valid until the next call and nil when there is no
// such member, when it is not a string, or when the value is not an object.
func (d *Decoder) Open(key string) []byte {
	d.reopen()
	if d.Peek() == '{' && d.depth < MaxDepth {
		b, i, n := d.data, d.pos+1, len(key)
		if i+n+4 <= len(b) && b[i] == '"' && string(b[i+1:i+1+n]) == key &&
			b[i+1+n] == '"' && b[i+2+n] == ':' && b[i+3+n] == '"' {
			d.mark = d.pos
			d.pos = i + 3 + n
			t := d.text()
			if d.err != nil {
				return nil
			}
			d.depth++
			d.opened = true
			return t
		}
	}
	return d.search(key)
}

// Opened returns bit when Open consumed the discriminator of the object that
// is about to be entered, so that a second one is noticed, and 0 otherwise.
func (d *Decoder) Opened(bit uint64) uint64 {
	if d.opened {
		return bit
	}
	return 0
}

// Tag reads the discriminator of a variant that is already chosen: anything
// but the string want is a mismatch.
func (d *Decoder) Tag(want string) {
	at := d.pos
	if d.Peek() != '"' || string(d.text()) != want {
		d.pos = at
		d.Mismatch("expected the variant's own tag")
	}
}

// reopen takes back what Open consumed.
func (d *Decoder) reopen() {
	if d.opened {
		d.opened = false
		d.pos = d.mark
		d.depth--
	}
}

// NotOwned switches aliasing off and returns what it was, for values that are
// read more than once; give that to Owned afterwards.
func (d *Decoder) NotOwned() bool {
	was := d.owned
	d.owned = false
	return was
}

// Owned restores what NotOwned returned.
func (d *Decoder) Owned(was bool) { d.owned = was }
