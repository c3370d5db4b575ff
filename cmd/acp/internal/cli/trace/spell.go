package trace

import (
	"bytes"
	"slices"
)

// A nest is an object or an array around what spell is at.
type nest struct {
	object bool
	key    []byte // of the member that it is at, or whose value the array is
}

// spell writes a frame to n.spelled as it was recorded, without white space and what differs from run to run. Two frames that are
// spelled in the same way are the same; others may be, too. It reports false, and has done nothing but number ids, if a name or
// an id is escaped, or if the frame is not JSON-RPC: what is has been found to be JSON.
func (n *normaliser) spell(f *plainFrame) bool {
	if !f.known {
		return false
	}
	out, in := n.spelled[:0], f.data
	n.nesting = n.nesting[:0]
	defer func() { n.spelled = out }()
	name := false // a name is expected
	for i := 0; i < len(in); {
		c := in[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			i++
		case c == '{' || c == '[':
			n.nesting = append(n.nesting, nest{object: c == '{', key: n.key()})
			name = c == '{'
			out = append(out, c)
			i++
		case c == '}' || c == ']':
			if len(n.nesting) == 0 {
				return false
			}
			n.nesting = n.nesting[:len(n.nesting)-1]
			name = false
			out = append(out, c)
			i++
		case c == ',':
			name = len(n.nesting) > 0 && n.nesting[len(n.nesting)-1].object
			out = append(out, c)
			i++
		case c == ':':
			out = append(out, c)
			i++
		default:
			end, escaped := scalar(in, i)
			value := in[i:end]
			i = end
			switch {
			case name && (c != '"' || escaped):
				return false
			case name:
				n.nesting[len(n.nesting)-1].key = value[1 : len(value)-1]
				name = false
				out = append(out, value...)
			default:
				var ok bool
				if out, ok = n.appendValue(out, value, escaped, f.kind); !ok {
					return false
				}
			}
		}
	}
	return true
}

// key returns the name of the member that spell is at the value of; in an array, that of the array.
func (n *normaliser) key() []byte {
	if len(n.nesting) == 0 {
		return nil
	}
	return n.nesting[len(n.nesting)-1].key
}

// scalar returns where the string, number or word ends that begins at i.
func scalar(in []byte, i int) (end int, escaped bool) {
	if in[i] != '"' {
		for end = i; end < len(in) && bytes.IndexByte([]byte(" \t\r\n,:{}[]\""), in[end]) < 0; end++ {
		}
		return end, false
	}
	for end = i + 1; ; {
		at := bytes.IndexByte(in[end:], '"')
		if at < 0 {
			return len(in), true
		}
		back := bytes.IndexByte(in[end:end+at], '\\')
		if back < 0 {
			return end + at + 1, escaped
		}
		escaped = true
		end = min(end+back+2, len(in))
	}
}

// appendValue appends a string, number or word, or what stands for it.
func (n *normaliser) appendValue(out, value []byte, escaped bool, kind string) (_ []byte, ok bool) {
	key, text := n.key(), value
	isString := value[0] == '"' && len(value) > 1
	if isString {
		text = value[1 : len(value)-1]
	}
	switch {
	case len(n.nesting) == 1 && n.nesting[0].object && string(key) == "id":
		if string(value) == "null" {
			return append(out, value...), true
		}
		return append(out, n.number([]byte(kind), text)...), !escaped
	case isString && slices.Contains(idKeys, string(key)):
		return append(out, n.number(key, text)...), !escaped
	case isString && bytes.HasSuffix(key, []byte("At")) && len(text) >= 10 && !escaped:
		return append(out, "(time)"...), true
	}
	return append(out, value...), true
}
