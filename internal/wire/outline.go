package wire

const tooDeep = "nested too deeply"

// TooDeep reports whether decoding ended because the input is nested beyond
// [MaxDepth].
func (d *Decoder) TooDeep() bool { return d.err != nil && d.err.Reason == tooDeep }

// Outline reads the input once more, from its start and to any depth, when
// decoding has ended because it is nested too deeply. It reports whether the input
// is one JSON value, and calls member for the members of that value, if it is an
// object, with the text of the name and of the value, unless member is nil. Strings in values that
// were decoded before may have lost their escapes. It takes one bit of memory for
// each level.
func (d *Decoder) Outline(member func(key string, value []byte)) bool {
	v := Decoder{data: d.data, moved: d.moved}
	if v.Peek() == '{' {
		v.outline(member)
	} else {
		v.skipDeep()
	}
	return v.Finish() == nil
}

func (d *Decoder) outline(member func(key string, value []byte)) {
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		key := string(k)
		start := d.At()
		if d.skipDeep(); d.err != nil {
			return
		}
		if member != nil {
			member(key, d.data[start:d.pos])
		}
	}
}

// skipDeep is Skip to any depth.
func (d *Decoder) skipDeep() {
	var objects []uint64 // a bit for each level: it is an object
	n := 0
	for d.err == nil {
		c := d.Peek()
		switch {
		case c == '{' || c == '[':
			d.pos++
			if d.Peek() == c+2 { // it is empty
				d.pos++
				break
			}
			if n&63 == 0 {
				objects = append(objects[:n>>6], 0)
			}
			if n++; c == '{' {
				objects[(n-1)>>6] |= 1 << ((n - 1) & 63)
				d.key()
			} else {
				objects[(n-1)>>6] &^= 1 << ((n - 1) & 63)
			}
			continue
		case c == '"':
			if end := d.movedEnd(d.pos + 1); end >= 0 {
				d.pos = end + 1
			} else {
				d.skipText()
			}
		default:
			d.Skip()
		}
		for d.err == nil {
			if n == 0 {
				return
			}
			object := objects[(n-1)>>6]>>((n-1)&63)&1 == 1
			c := d.Peek()
			if c == ',' {
				if d.pos++; object {
					d.key()
				}
				break
			}
			if c != ']' && c != '}' || (c == '}') != object {
				d.fail("expected a comma or an end")
				return
			}
			d.pos++
			n--
		}
	}
}
