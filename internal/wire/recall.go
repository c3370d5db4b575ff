package wire

import (
	"bytes"
	"unicode/utf8"
)

const (
	keepForms = 4   // as many streams are recognised when they interleave
	formMax   = 512 // bytes of a form; what is longer is not repeated often
	coldForms = 8   // messages in a row without a form until only each eighth makes one
)

// Forms remembers how messages looked that are likely to come again with
// another text, as the pieces of a streamed answer do. The zero value is ready;
// it is not safe for concurrent use.
type Forms struct {
	forms [keepForms]form
	last  int // the form that matched last
	next  int // the form to be replaced next
	cold  int // values that were learned, or could have been, since one matched
}

// A form is the text of a value without the content of one string.
type form struct {
	head, tail []byte // up to its opening quote, and from its closing quote on
	depth      int
	like       any // a pointer to the value
}

// Recall reads the value at the cursor if its text is that of a value given to
// Learn but for the one string. It returns what Learn was given, which must not
// be changed, and that string. Otherwise it returns nil and the cursor stays.
//
// The text of a form was read before and found without fault, so nothing but
// the string has to be looked at again. What the decoder would do on its way
// through the text is the same each time, since it depends on nothing else.
func Recall[T any](d *Decoder) (like *T, text string) {
	m := d.Forms
	if m == nil || d.owned || d.opened || d.lenient > 0 {
		return nil, ""
	}
	d.Peek()
	b := d.data[d.pos:]
	for i := range m.forms {
		i = (i + m.last) % keepForms
		f := &m.forms[i]
		if len(f.head) == 0 || len(b) < len(f.head)+len(f.tail) || !bytes.HasPrefix(b, f.head) || f.depth != d.depth {
			continue
		}
		like, ok := f.like.(*T)
		if !ok {
			continue
		}
		if text, ok = d.recallText(f); ok {
			m.last, m.cold = i, 0
			return like, text
		}
	}
	return nil, ""
}

// recallText reads the string of a form whose head is at the cursor.
func (d *Decoder) recallText(f *form) (text string, ok bool) {
	b, at := d.data, d.pos
	start := at + len(f.head)
	end, hi := scan(b, start)
	if end < 0 {
		return "", false
	}
	if b[end] == '"' {
		if !bytes.HasPrefix(b[end:], f.tail) {
			return "", false
		}
		if s := b[start:end]; hi == 0 || utf8.Valid(s) {
			d.pos = end + len(f.tail)
			return string(s), true
		}
	}
	was := d.replaced
	d.pos = start - 1
	text = d.Str()
	if d.err == nil && bytes.HasPrefix(b[d.pos-1:], f.tail) {
		d.pos += len(f.tail) - 1
		return text, true
	}
	d.pos, d.err, d.replaced = at, nil, was
	return "", false
}

// Learn makes Recall recognise the value that was just read: its text began at
// the offset at. The string that may differ is the one at path, a list of
// member names. like is what Recall shall return; it must not share memory with
// anything that may change.
func Learn[T any](d *Decoder, at int, like func() *T, path ...string) {
	m := d.Forms
	if m == nil || d.owned || d.err != nil || d.first.ok || d.bad || d.lenient > 0 || d.replaced > 0 ||
		d.Watch != nil && len(d.Watch.Notes) > 0 {
		return
	}
	if m.cold++; m.cold > coldForms && m.cold%coldForms != 0 {
		return // too many streams at once, or none
	}
	i := at
	for _, key := range path {
		if d.data[i] != '{' {
			return
		}
		if i = d.find(i, key); i < 0 {
			return
		}
	}
	if d.data[i] != '"' {
		return
	}
	end, _ := skipString(d.data, i+1)
	if end < 0 || i+1-at+d.pos-end > formMax {
		return
	}
	f := &m.forms[m.next]
	m.last, m.next = m.next, (m.next+1)%keepForms
	f.head = append(f.head[:0], d.data[at:i+1]...)
	f.tail = append(f.tail[:0], d.data[end:d.pos]...)
	f.depth = d.depth
	f.like = like()
}
