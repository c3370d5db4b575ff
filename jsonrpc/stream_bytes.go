package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"os"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
)

const (
	framingUnknown int32 = iota
	framingLines
	framingHeaders
)

// byteStream frames a pair of byte streams, by lines or by headers.
type byteStream struct {
	framing atomic.Int32 // set by the reader, read by writers
	limit   atomic.Int64 // a stream around this one may be reading when it is set
	in      input
	started bool // the leading byte order mark has been looked for
	length  int  // header mode: the Content-Length read so far, or -1

	w    io.Writer
	try  *tryWriter
	load int // bytes written in large batches, up to growAt

	rc, wc  io.Closer
	same    bool // they are one
	once    sync.Once
	onceErr error
}

func newByteStream(r io.ReadCloser, w io.WriteCloser, framing int32) *byteStream {
	s := &byteStream{length: -1, w: w, rc: r, wc: w}
	s.limit.Store(DefaultMaxFrame)
	s.framing.Store(framing)
	s.same = reflect.ValueOf(r).Comparable() && io.Closer(r) == io.Closer(w)
	s.in.r = r
	s.try = newTryWriter(tryTarget(w))
	return s
}

func (s *byteStream) setMaxFrame(n int) { s.limit.Store(int64(n)) }

// Close closes the writer first, so that the peer sees our end before we stop
// listening to it.
func (s *byteStream) Close() error {
	s.once.Do(func() {
		err := s.wc.Close()
		if !s.same {
			err = errors.Join(err, s.rc.Close())
		}
		if !errors.Is(err, os.ErrClosed) {
			s.onceErr = err
		}
	})
	return s.onceErr
}

var bom = []byte("\xef\xbb\xbf")

func (s *byteStream) ReadFrame() (Frame, error) {
	if !s.started {
		if err := s.start(); err != nil {
			return Frame{}, err
		}
	}
	if s.framing.Load() == framingHeaders {
		return s.readHeaderFrame()
	}
	return s.readLineFrame()
}

// start drops a leading byte order mark and decides on the framing.
func (s *byteStream) start() error {
	for {
		b := s.in.pending()
		if n := len(b); n < len(bom) && bytes.HasPrefix(bom, b) {
			if err := s.in.fill(); err != nil {
				if n > 0 {
					break
				}
				return err
			}
			continue
		}
		if bytes.HasPrefix(b, bom) {
			s.in.skip(len(bom))
		}
		break
	}
	for s.framing.Load() == framingUnknown {
		b := bytes.TrimLeft(s.in.pending(), " \t\r\n")
		s.in.skip(len(s.in.pending()) - len(b))
		if len(b) == 0 {
			if err := s.in.fill(); err != nil {
				return err
			}
			continue
		}
		if b[0]|0x20 == 'c' {
			s.framing.Store(framingHeaders)
		} else {
			s.framing.Store(framingLines)
		}
	}
	s.started = true
	return nil
}

func (s *byteStream) readLineFrame() (Frame, error) {
	for {
		line, owned, err := s.in.line(int(s.limit.Load()))
		if err != nil {
			return Frame{}, err
		}
		if line = trimLine(line); line != nil {
			return Frame{Data: line, Owned: owned, Line: true}, nil
		}
	}
}

// trimLine drops the CR of a line end; a blank line gives nil.
func trimLine(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return line
		}
	}
	return nil
}

func (s *byteStream) readHeaderFrame() (Frame, error) {
	for {
		line, owned, err := s.in.line(int(s.limit.Load()))
		if err != nil {
			if err == io.EOF && s.length >= 0 {
				err = io.ErrUnexpectedEOF
			}
			return Frame{}, err
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if trimLine(line) == nil {
			if s.length < 0 {
				continue
			}
			n := s.length
			s.length = -1
			body, owned, err := s.in.body(n, int(s.limit.Load()))
			return Frame{Data: body, Owned: owned}, err
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		switch {
		case ok && bytes.EqualFold(bytes.TrimSpace(name), []byte("Content-Length")):
			n, ok := contentLength(value, strconv.IntSize)
			if !ok {
				s.length = -1
				return Frame{Data: line, Owned: owned, Line: true}, nil
			}
			s.length = n
		case s.length >= 0, ok && len(name) > 8 && bytes.EqualFold(name[:8], []byte("Content-")):
			// another header
		default:
			return Frame{Data: line, Owned: owned, Line: true}, nil
		}
	}
}

// buffered reports whether a line, or the beginning of a body, is already here:
// it may be a blank line, a header or a part.
func (s *byteStream) Buffered() bool {
	if s.started && s.length >= 0 {
		return len(s.in.pending()) > 0
	}
	return s.in.hasLine()
}

func (s *byteStream) BeforeRead(f func() error) { s.in.before = f }

func (s *byteStream) canTry() bool { return s.try != nil }

func (s *byteStream) tryWrite(data []byte) (int, error) { return s.try.write(data) }

const (
	// A writer that has had so many bytes to write at once is likely to have
	// more: with a larger pipe it and the reader wait for each other less
	// often. Others keep the pipe they have, since the sum of all pipes of a
	// user is bounded.
	growFrom = 32 << 10
	growAt   = 256 << 10
	growTo   = 256 << 10
)

// writeAll is called by one goroutine at a time.
func (s *byteStream) writeAll(data []byte) error {
	if len(data) >= growFrom && s.load < growAt && s.try != nil {
		if s.load += len(data); s.load >= growAt {
			s.try.grow(growTo)
		}
	}
	_, err := s.w.Write(data)
	return err
}

func (s *byteStream) WriteFrame(data []byte) error {
	b := s.beginFrame(make([]byte, 0, len(data)+headerRoom+4))
	return s.writeAll(s.endFrame(append(b, data...), 0))
}

const (
	headerName = "Content-Length: "
	headerRoom = len(headerName) + 20 + 4
)

// beginFrame leaves room for the header whose number is known at the end. A
// first byte that no JSON text has tells endFrame which framing was chosen: the
// reader may settle it meanwhile.
func (s *byteStream) beginFrame(dst []byte) []byte {
	if s.framing.Load() != framingHeaders {
		return dst
	}
	var room [headerRoom]byte
	return append(dst, room[:]...)
}

// endFrame completes the frame that beginFrame began at start.
func (s *byteStream) endFrame(dst []byte, start int) []byte {
	if len(dst)-start < headerRoom || dst[start] != 0 {
		return append(dst, '\n')
	}
	body := dst[start+headerRoom:]
	head := strconv.AppendInt(append(dst[:start], headerName...), int64(len(body)), 10)
	head = append(head, "\r\n\r\n"...)
	return append(head, body...) // moves the body down by a few bytes
}

// contentLength reads a length that fits into an int of so many bits.
func contentLength(value []byte, bits int) (n int, ok bool) {
	u, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, min(bits-1, 62))
	return int(u), err == nil
}
