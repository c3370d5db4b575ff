package seek

import (
	"bytes"
	"io"
	"slices"
)

// Bounds of the files that are looked through.
const (
	MaxFile   = 4 << 20  // bytes; larger files are left out
	firstRead = 64 << 10 // bytes
	headBytes = 8000     // of a file that show whether it is text
)

// A Reader reads files, one after the other, into one buffer. It is for one goroutine.
type Reader struct{ buf []byte }

// A Kind says what a file is.
type Kind int

// The kinds of files.
const (
	Text Kind = iota
	Binary
	Large   // of more than MaxFile bytes
	NotRead // it could not be
)

// Read returns the text of a file, until the next call: for other kinds than Text, nil.
// Links are not followed.
func (r *Reader) Read(path string) ([]byte, Kind) {
	if r.buf == nil {
		r.buf = make([]byte, firstRead)
	}
	binary := false
	data, more, err := readFile(path, r.buf, MaxFile, func(head []byte) bool {
		binary = bytes.IndexByte(head[:min(len(head), headBytes)], 0) >= 0
		return binary
	})
	r.buf = data[:cap(data)]
	switch {
	case err != nil:
		return nil, NotRead
	case binary:
		return nil, Binary
	case more:
		return nil, Large
	}
	return data, Text
}

// readAll is readFile for what read returns.
func readAll(
	read func([]byte) (int, error), buf []byte, most int, head func([]byte) bool,
) (data []byte, more bool, err error) {
	buf = buf[:cap(buf)]
	for n := 0; ; {
		if n == len(buf) {
			buf = append(buf, make([]byte, min(3*len(buf), most+firstRead-len(buf)))...)
		}
		m, err := read(buf[n:])
		if n == 0 && m > 0 && head(buf[:m]) {
			return buf[:m], false, nil
		}
		n += m
		switch {
		case n > most:
			return buf[:n], true, nil
		case err == io.EOF:
			return buf[:n], false, nil
		case err != nil:
			return buf[:n], false, err
		}
	}
}

// Lines removes the returns before the line ends of a text, in place.
func Lines(data []byte) []byte {
	at := bytes.IndexByte(data, '\r')
	if at < 0 {
		return data
	}
	out := data[:at]
	for rest := data[at:]; len(rest) > 0; {
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line = rest[:i]
		}
		ended := len(line) < len(rest)
		rest = rest[min(len(line)+1, len(rest)):]
		out = append(out, bytes.TrimRight(line, "\r")...)
		if ended {
			out = append(out, '\n')
		}
	}
	return slices.Clip(out)
}
