package trace

import (
	"bytes"
	"errors"
	"io"
)

// errLong reports a line that was too long and is skipped.
var errLong = errors.New("line too long")

// lines reads lines into one buffer, which grows to the longest of them.
type lines struct {
	r          io.Reader
	max        int // longest line that is kept
	buf        []byte
	start, end int   // the part of buf that was read and not yet returned
	begin      int64 // offset of the last line
	offset     int64 // of what follows it
	line       int64 // number of the last line, from 1
	skipping   bool  // the last line was too long and its end was not found yet
	err        error // of r
}

// Sizes of the buffer: its first one, and the one above which it is released after a
// long line.
const (
	readSize = 256 << 10
	keepSize = 4 << 20
)

// next returns the next line without its end, and whether it has one. The line is valid
// until the next call. The error is io.EOF after the last line, errLong for a line that
// is too long, which the next call skips, or that of the reader. An error of the reader
// is returned after everything that was read before it, the last part of which is a line
// without an end.
func (l *lines) next() (line []byte, whole bool, err error) {
	if l.skipping {
		l.skip()
	}
	l.begin = l.offset
	if cap(l.buf) > keepSize && l.end-l.start < readSize {
		small := make([]byte, readSize)
		l.end = copy(small, l.buf[l.start:l.end])
		l.buf, l.start = small, 0
	}
	seen := 0
	for {
		if i := bytes.IndexByte(l.buf[l.start+seen:l.end], '\n'); i >= 0 {
			n := seen + i
			line = l.buf[l.start : l.start+n]
			l.take(n + 1)
			if n > l.max {
				return nil, false, errLong
			}
			return line, true, nil
		}
		seen = l.end - l.start
		if seen > l.max {
			l.skipping = true
			l.line++
			return nil, false, errLong
		}
		if l.err != nil {
			if seen == 0 {
				return nil, false, l.err
			}
			line = l.buf[l.start:l.end]
			l.take(seen)
			return line, false, nil
		}
		l.fill()
	}
}

func (l *lines) take(n int) {
	l.start += n
	l.offset += int64(n)
	l.line++
}

// fill makes room and reads once.
func (l *lines) fill() {
	if l.start > 0 && (l.start == l.end || len(l.buf)-l.end < len(l.buf)/2) {
		l.end = copy(l.buf, l.buf[l.start:l.end])
		l.start = 0
	}
	if l.end == len(l.buf) {
		grown := make([]byte, max(readSize, min(2*len(l.buf), l.max+readSize)))
		l.end = copy(grown, l.buf[l.start:l.end])
		l.buf, l.start = grown, 0
	}
	for range 100 {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += max(0, min(n, len(l.buf)-l.end))
		if err != nil {
			l.err = err
			return
		}
		if n > 0 {
			return
		}
	}
	l.err = io.ErrNoProgress
}

// skip drops the rest of a line that was too long.
func (l *lines) skip() {
	for l.skipping {
		n := l.end - l.start
		if i := bytes.IndexByte(l.buf[l.start:l.end], '\n'); i >= 0 {
			n, l.skipping = i+1, false
		}
		l.start += n
		l.offset += int64(n)
		if l.skipping && l.err != nil {
			l.skipping = false
		}
		if l.skipping {
			l.fill()
		}
	}
}
