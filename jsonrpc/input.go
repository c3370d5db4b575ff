package jsonrpc

import (
	"bytes"
	"io"
	"slices"
	"sync"
)

const (
	inputMin = 4 << 10
	inputMax = 64 << 10  // also the size from which frames are handed over
	segment  = 256 << 10 // large frames are collected in pieces of this size
	shrinkAt = 64        // small reads in a row after which the buffer is given back
)

// segments never travel between goroutines with channels in them, so one pool
// serves all connections.
var segments = sync.Pool{New: func() any { return new([segment]byte) }}

// input is the read buffer of a byte stream. It starts small, grows to 64 kB
// under load, and never holds a large frame: those are collected in pooled
// segments and copied once into memory of their exact size.
type input struct {
	r          io.Reader
	before     func() error // called before each Read
	buf        []byte
	start, end int  // buf[start:end] is unread
	scanned    int  // buf[start:scanned] holds no LF
	small      int  // small reads in a row
	full       bool // the last read left no room: more is waiting
	err        error
}

func (in *input) pending() []byte { return in.buf[in.start:in.end] }

func (in *input) skip(n int) {
	in.start += n
	in.scanned = max(in.scanned, in.start)
}

// hasLine reports whether a whole line is buffered.
func (in *input) hasLine() bool {
	i := bytes.IndexByte(in.buf[in.scanned:in.end], '\n')
	if i < 0 {
		in.scanned = in.end
		return false
	}
	in.scanned += i
	return true
}

// fill reads once, after making room. The error is sticky.
func (in *input) fill() error {
	if in.err != nil {
		return in.err
	}
	if in.start == in.end {
		in.start, in.end, in.scanned = 0, 0, 0
		if in.small >= shrinkAt && len(in.buf) > inputMin {
			in.buf, in.small = nil, 0
		}
	}
	switch {
	case in.buf == nil:
		in.buf = make([]byte, inputMin)
	case in.full && len(in.buf) < inputMax:
		in.compact(make([]byte, min(4*len(in.buf), inputMax)))
	case in.end == len(in.buf):
		in.compact(in.buf)
	}
	n, err := in.read(in.buf[in.end:])
	in.end += n
	in.full = in.end == len(in.buf)
	if n > inputMin/2 {
		in.small = 0
	} else {
		in.small++
	}
	if n > 0 {
		return nil
	}
	return err
}

func (in *input) compact(dst []byte) {
	n := copy(dst, in.buf[in.start:in.end])
	in.buf = dst
	in.scanned -= in.start
	in.start, in.end = 0, n
}

// read reads into p and remembers the error.
func (in *input) read(p []byte) (int, error) {
	if in.before != nil {
		if in.err = in.before(); in.err != nil {
			return 0, in.err
		}
	}
	for range 100 {
		n, err := in.r.Read(p)
		if err != nil {
			in.err = err
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	in.err = io.ErrNoProgress
	return 0, in.err
}

// line returns the next line without its LF. The last line may lack it.
func (in *input) line(limit int) (line []byte, owned bool, err error) {
	for !in.hasLine() {
		if in.end-in.start >= inputMax {
			return in.longLine(limit)
		}
		if err := in.fill(); err != nil {
			if in.start == in.end {
				return nil, false, err
			}
			line = in.pending()
			in.start, in.scanned = in.end, in.end
			return in.limited(line, limit)
		}
	}
	line = in.buf[in.start:in.scanned]
	in.scanned++
	in.start = in.scanned
	return in.limited(line, limit)
}

// limited checks a small frame, for the sake of limits below 64 kB.
func (in *input) limited(b []byte, limit int) ([]byte, bool, error) {
	if n := len(trimCR(b)); n > limit {
		return nil, false, &FrameTooLargeError{Limit: limit, Size: int64(n), Prefix: b}
	}
	return b, false, nil
}

func trimCR(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\r' {
		return b[:n-1]
	}
	return b
}

// longLine collects a line that does not fit into the buffer, all of which
// belongs to it.
func (in *input) longLine(limit int) ([]byte, bool, error) {
	var segs segmentList
	defer segs.free()
	segs.add(in.pending())
	in.start, in.end, in.scanned = 0, 0, 0
	for segs.size <= limit+1 { // one more for a CR
		p := segs.room()
		p = p[:min(len(p), len(in.buf))] // what follows the line has to fit into buf
		n, err := in.read(p)
		if i := bytes.IndexByte(p[:n], '\n'); i >= 0 {
			in.end = copy(in.buf, p[i+1:n])
			segs.size += i
			return segs.line(limit)
		}
		segs.size += n
		if n == 0 && err != nil {
			return segs.line(limit)
		}
	}
	return in.discard(&segs, limit)
}

// discard skips an oversize line to its end.
func (in *input) discard(segs *segmentList, limit int) ([]byte, bool, error) {
	e := &FrameTooLargeError{Limit: limit, Size: int64(segs.size), Prefix: bytes.Clone(segs.head(keptHead))}
	segs.free()
	for !in.hasLine() {
		e.Size += int64(in.end - in.start)
		in.start = in.end
		if in.fill() != nil {
			return nil, false, e
		}
	}
	e.Size += int64(in.scanned - in.start)
	in.scanned++
	in.start = in.scanned
	return nil, false, e
}

// body returns the next n bytes.
func (in *input) body(n, limit int) (body []byte, owned bool, err error) {
	if n > limit {
		return in.skipBody(n, limit)
	}
	if n < inputMax {
		if n > len(in.buf)-in.start {
			dst := in.buf
			if n > len(dst) {
				dst = make([]byte, inputMax)
			}
			in.compact(dst)
		}
		for in.end-in.start < n {
			if err := in.fill(); err != nil {
				return nil, false, unexpected(err)
			}
		}
		body = in.buf[in.start : in.start+n : in.start+n]
		in.start += n
		in.scanned = in.start
		return body, false, nil
	}
	// The peer's word for the size is believed in steps only.
	body = slices.Grow([]byte(nil), min(n, 1<<20))
	k := min(n, in.end-in.start)
	body = append(body, in.buf[in.start:in.start+k]...)
	in.start += k
	in.scanned = in.start
	for len(body) < n {
		if len(body) == cap(body) {
			body = slices.Grow(body, min(n-len(body), 3*len(body)))
		}
		k, err := in.read(body[len(body):min(n, cap(body))])
		body = body[:len(body)+k]
		if k == 0 && err != nil {
			return nil, false, unexpected(err)
		}
	}
	return body, true, nil
}

func (in *input) skipBody(n, limit int) ([]byte, bool, error) {
	e := &FrameTooLargeError{Limit: limit, Size: int64(n)}
	for n > 0 {
		if in.start == in.end {
			if err := in.fill(); err != nil {
				return nil, false, unexpected(err)
			}
		}
		k := min(n, in.end-in.start)
		if room := keptHead - len(e.Prefix); room > 0 {
			e.Prefix = append(e.Prefix, in.buf[in.start:in.start+min(k, room)]...)
		}
		in.start += k
		in.scanned = in.start
		n -= k
	}
	return nil, false, e
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// segmentList collects a frame of unknown size.
type segmentList struct {
	segs []*[segment]byte
	size int
}

// room returns the free part of the last segment, which is never empty.
func (l *segmentList) room() []byte {
	if l.size == len(l.segs)*segment {
		l.segs = append(l.segs, segments.Get().(*[segment]byte))
	}
	return l.segs[len(l.segs)-1][l.size%segment:]
}

func (l *segmentList) add(b []byte) {
	for len(b) > 0 {
		n := copy(l.room(), b)
		l.size += n
		b = b[n:]
	}
}

// head returns the first bytes, at most n and at most one segment.
func (l *segmentList) head(n int) []byte {
	if len(l.segs) == 0 {
		return nil
	}
	return l.segs[0][:min(n, l.size, segment)]
}

// line copies the collected bytes, unless they are too many.
func (l *segmentList) line(limit int) ([]byte, bool, error) {
	size := l.size
	if size > 0 && l.segs[(size-1)/segment][(size-1)%segment] == '\r' {
		size--
	}
	if size > limit {
		return nil, false, &FrameTooLargeError{Limit: limit, Size: int64(size), Prefix: bytes.Clone(l.head(keptHead))}
	}
	out := slices.Grow([]byte(nil), size)
	for _, s := range l.segs {
		out = append(out, s[:min(segment, size-len(out))]...)
	}
	return out, true, nil
}

func (l *segmentList) free() {
	for _, s := range l.segs {
		segments.Put(s)
	}
	l.segs = nil
}
