package acphttp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

var errTooLarge = errors.New("acphttp: a message is too large")

// readStream reads server-sent events and calls f with each that looks like a JSON
// object. data belongs to f; it is nil for an event that has none, but comes after an
// id. It returns io.EOF at the end, or what f returns. Lines end in LF, CRLF or CR.
func readStream(r io.Reader, maxMessage int, f func(id string, data []byte) error) error {
	l := lineReader{r: bufio.NewReaderSize(r, 32<<10), most: maxMessage + 64}
	var id string
	var data []byte
	var room []byte // for the data of small events, which share it
	has := false
	for first := true; ; first = false {
		line, err := l.next()
		if err != nil {
			return err // an event without its blank line is not complete
		}
		if first {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if len(line) == 0 {
			if !has || !looksLikeObject(data) {
				data = nil
			}
			if data != nil || id != "" {
				if err := f(id, data); err != nil {
					return err
				}
			}
			data, has = nil, false
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if len(data)+1+len(value) > maxMessage+1 {
				return errTooLarge
			}
			switch {
			case has:
				data = append(append(data, '\n'), value...)
			case len(value) >= ownSize:
				data = append([]byte(nil), value...)
			default:
				if len(room)+len(value) > cap(room) {
					room = make([]byte, 0, max(min(2*cap(room), ownSize), 1<<10, len(value)))
				}
				n := len(room)
				room = append(room, value...)
				data = room[n:len(room):len(room)]
			}
			has = true
		case "id":
			if bytes.IndexByte(value, 0) < 0 && len(value) <= 1024 {
				id = string(value)
			}
		}
	}
}

func looksLikeObject(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] == '{'
}

// lineReader reads lines that end in LF, CRLF or CR.
type lineReader struct {
	r      *bufio.Reader
	most   int
	buf    []byte
	skipLF bool // the last line ended in CR
}

// next returns the next line, valid until the next call. A line without an end is
// given up: io.EOF, if the input ended in an orderly way.
func (l *lineReader) next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		chunk, err := l.r.Peek(1)
		if err != nil {
			return nil, err
		}
		if l.skipLF {
			l.skipLF = false
			if chunk[0] == '\n' {
				_, _ = l.r.Discard(1)
				continue
			}
		}
		chunk, _ = l.r.Peek(l.r.Buffered())
		i := bytes.IndexByte(chunk, '\n')
		before := chunk
		if i >= 0 {
			before = chunk[:i]
		}
		if cr := bytes.IndexByte(before, '\r'); cr >= 0 {
			i = cr
		}
		if i < 0 {
			if len(l.buf)+len(chunk) > l.most {
				return nil, errTooLarge
			}
			l.buf = append(l.buf, chunk...)
			_, _ = l.r.Discard(len(chunk))
			continue
		}
		l.skipLF = chunk[i] == '\r'
		line := chunk[:i]
		if len(l.buf)+len(line) > l.most {
			return nil, errTooLarge
		}
		if len(l.buf) > 0 {
			l.buf = append(l.buf, line...)
			line = l.buf
		}
		_, _ = l.r.Discard(i + 1)
		return line, nil
	}
}
