package wire

import "strconv"

// path names the value that starts at the offset target, by walking the input
// again: the hot path keeps no account of where it is.
func (d *Decoder) path(target int) string {
	b := d.data
	p := ""
	i := skipSpace(b, 0)
	for i < len(b) && i != target {
		var next int
		switch b[i] {
		case '{':
			next, p = d.stepObject(i, target, p)
		case '[':
			next, p = d.stepArray(i, target, p)
		default:
			return p
		}
		if next < 0 {
			return p
		}
		i = next
	}
	return p
}

// stepObject finds the member of the object at i that holds target and returns
// the offset of its value, or -1 when the path ends here.
func (d *Decoder) stepObject(i, target int, p string) (int, string) {
	b := d.data
	for i++; ; i++ {
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != '"' || target < i {
			return -1, p
		}
		at := i
		end, _ := skipString(b, i+1)
		if end < 0 {
			return -1, p
		}
		name := string(b[i+1 : end])
		i = skipSpace(b, end+1)
		if i >= len(b) || b[i] != ':' {
			return -1, p
		}
		i = skipSpace(b, i+1)
		if target == at {
			return -1, join(p, name)
		}
		end = d.skipFast(i)
		if end < 0 {
			return -1, join(p, name)
		}
		if target >= i && target < end {
			return i, join(p, name)
		}
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ',' {
			return -1, p
		}
	}
}

func (d *Decoder) stepArray(i, target int, p string) (int, string) {
	b := d.data
	i++
	for n := 0; ; n++ {
		i = skipSpace(b, i)
		if i >= len(b) || target < i {
			return -1, p
		}
		end := d.skipFast(i)
		if end < 0 || end == i {
			return -1, p
		}
		if target >= i && target < end {
			return i, p + "[" + strconv.Itoa(n) + "]"
		}
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ',' {
			return -1, p
		}
		i++
	}
}

// nameMax bounds what a peer's own member names can put into an error.
const nameMax = 64

func join(p, name string) string {
	if len(name) > nameMax {
		name = name[:nameMax]
	}
	if !plainName(name) {
		name = strconv.QuoteToASCII(name)
	}
	if p == "" {
		return name
	}
	return p + "." + name
}

// plainName reports whether a path can hold name as it is. The empty name
// cannot: an empty path means the value itself.
func plainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c|0x20-'a' >= 26 && c-'0' >= 10 && c != '_' && c != '-' && c != '$' {
			return false
		}
	}
	return name != ""
}
