package wire

import (
	"encoding/json"
	"slices"
)

// Raw checks one value and returns its bytes, which alias the input.
func (d *Decoder) Raw() []byte {
	d.reopen()
	d.Peek()
	start := d.pos
	d.Skip()
	if d.err != nil {
		return nil
	}
	return d.data[start:d.pos:d.pos]
}

// RawCopy checks one value and returns its bytes, fit for being put on the
// wire again. They belong to the caller.
func (d *Decoder) RawCopy() json.RawMessage {
	return d.own(d.Raw())
}

// own makes raw JSON of the input the caller's.
func (d *Decoder) own(r []byte) json.RawMessage {
	if r == nil {
		return nil
	}
	if !d.owned || len(r) < aliasMin {
		r = append([]byte(nil), r...)
	}
	return d.settle(r)
}

// settle makes an owned copy of raw JSON safe to be put on the wire.
func (d *Decoder) settle(r []byte) []byte {
	oneLine(r)
	return d.validUTF8(r)
}

// RawObject is RawCopy for values that have to be objects; null and values of
// another kind give nil, the latter with a mismatch.
func (d *Decoder) RawObject() json.RawMessage {
	switch d.Peek() {
	case '{':
		return d.RawCopy()
	case 'n':
		d.literal("null")
	default:
		d.Mismatch("expected an object")
	}
	return nil
}

// Meta reads a _meta member: an object kept raw; anything else counts as
// absent, as the schemas ask everywhere (S75).
func (d *Decoder) Meta() json.RawMessage {
	if d.Peek() == '{' {
		return d.RawCopy()
	}
	d.noMeta()
	return nil
}

// noMeta skips everything except _meta.
func (d *Decoder) noMeta() {
	if d.Watch != nil && d.Peek() != 'n' {
		d.note(Note{Kind: NoteMeta, at: d.pos})
	}
	d.Skip()
}

// MetaPatch is Meta for upserts, where null is kept because it clears what is
// stored (S78).
func (d *Decoder) MetaPatch() json.RawMessage {
	if c := d.Peek(); c == '{' || c == 'n' {
		return d.RawCopy()
	}
	d.noMeta()
	return nil
}

// Rest reads an object and returns it without the members in except, of which
// there are 63 at most: what a variant that the schema does not know adds to a
// known object. None of these, and the discriminator tag of the variant, may come
// twice.
func (d *Decoder) Rest(tag string, except ...string) json.RawMessage {
	var rest json.RawMessage
	seen := uint64(0)
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		if i := slices.Index(except, string(k)); i >= 0 {
			if d.Once(&seen, 2<<i) {
				d.Skip()
			}
			continue
		}
		switch {
		case string(k) == tag && !d.Once(&seen, 1):
		default:
			if d.Watch != nil && string(k) == tag {
				d.noteVariant()
			}
			d.keep(&rest)
		}
	}
	if rest == nil {
		return json.RawMessage("{}")
	}
	return rest
}

// RawVariant is RawCopy for an object whose discriminator tag the schema does
// not know; the tag must not come twice.
func (d *Decoder) RawVariant(tag string) json.RawMessage {
	d.reopen()
	d.Peek()
	start := d.pos
	seen := uint64(0)
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		if string(k) != tag || d.Once(&seen, 1) {
			if d.Watch != nil && string(k) == tag {
				d.noteVariant()
			}
			d.Skip()
		}
	}
	if d.err != nil {
		return nil
	}
	return d.own(d.data[start:d.pos:d.pos])
}

// Keep adds the member whose key was just read to unknown, a JSON object of
// members the schema does not know.
func (d *Decoder) Keep(unknown *json.RawMessage) {
	if d.Watch != nil {
		d.noteMember()
	}
	d.keep(unknown)
}

func (d *Decoder) keep(unknown *json.RawMessage) {
	start := d.keyAt
	d.Skip()
	if d.err != nil {
		return
	}
	m := d.data[start:d.pos]
	u := *unknown
	if len(u) == 0 {
		u = append(make([]byte, 0, len(m)+2), '{')
	} else {
		u[len(u)-1] = ','
	}
	n := len(u)
	u = append(u, m...)
	tail := d.settle(u[n:])
	*unknown = append(append(u[:n], tail...), '}')
}
