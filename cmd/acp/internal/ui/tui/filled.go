package tui

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// maxErased bounds the cells of a command that are written as spaces; no terminal is wider.
const maxErased = 4096

// maxCommand bounds the parameters of a command that is looked at, in bytes.
const maxCommand = 128

// A filled is the terminal for what draws on it. Not all terminals, and not all of what lies between, erase characters in the
// background that is set: bars of a diff would end where their text does. So spaces are written in place of each ECH while a
// background is set, and the cursor returns to where it was. It is for one goroutine.
type filled struct {
	*os.File
	on   bool   // a background is set
	rest []byte // the beginning of a command whose end is in the next write
	buf  []byte
}

// Write writes p, or fails. It counts bytes of p.
func (f *filled) Write(p []byte) (int, error) {
	data := p
	if len(f.rest) > 0 {
		data = append(f.rest, p...)
	}
	f.buf = f.fill(f.buf[:0], data)
	if len(f.buf) > 0 {
		if _, err := f.File.Write(f.buf); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// WriteString is Write.
func (f *filled) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

// fill appends data to dst with spaces in place of what erases characters, and keeps the beginning of a command at its end.
func (f *filled) fill(dst, data []byte) []byte {
	f.rest = nil
	for len(data) > 0 {
		i := bytes.IndexByte(data, '\x1b')
		if i < 0 {
			return append(dst, data...)
		}
		dst, data = append(dst, data[:i]...), data[i:]
		end := 1
		if end < len(data) && data[end] == '[' {
			for end++; end < len(data) && data[end] >= '0' && data[end] <= ';' && end < maxCommand; end++ {
			}
		}
		if end == len(data) {
			f.rest = bytes.Clone(data)
			return dst
		}
		params := string(data[min(2, end):end])
		if n, err := strconv.Atoi(params); err == nil && f.on && data[end] == 'X' && n > 0 && n <= maxErased {
			dst = append(dst, "\x1b7"...)
			dst = append(dst, bytes.Repeat([]byte(" "), n)...)
			dst, data = append(dst, "\x1b8"...), data[end+1:]
			continue
		}
		if data[end] == 'm' && end > 1 {
			f.on = background(f.on, params)
		}
		dst, data = append(dst, data[:end]...), data[end:]
	}
	return dst
}

// background returns whether a background is set after SGR with the given parameters, if on says so of the time before.
func background(on bool, params string) bool {
	all := strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' })
	if len(all) == 0 {
		return false
	}
	for i := 0; i < len(all); i++ {
		switch n, err := strconv.Atoi(all[i]); {
		case err != nil:
		case n == 0, n == 49:
			on = false
		case n == 38, n == 48, n == 58: // 5 and a number, or 2 and three
			on = on || n == 48
			if i++; i < len(all) && all[i] == "2" {
				i += 2
			}
			i++
		case n >= 40 && n < 48, n >= 100 && n < 108:
			on = true
		}
	}
	return on
}
