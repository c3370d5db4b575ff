package jsonrpc

import "fmt"

// Tap returns a stream around s that calls f with every frame: with one that is
// sent before it is written, and with one that is received after it was read,
// whether it is a message or not. A received frame that is too large for
// [Settings.MaxFrame] may be left out.
//
// f may look at the frame until it returns, and must not change it. The calls for
// one direction come one after the other, in order; f may be called for both
// directions at once. Callers that send do not wait for f, but the connection
// does, so f must be quick. A panic of f is logged and has no other effect.
//
// The stream keeps everything a connection makes of s: its limit, and reading and
// writing many frames at once. It does so only if no other stream is around it, so
// put the tap outermost. Closing it closes s.
func Tap(s Stream, f func(sent bool, frame []byte)) Stream {
	return &tapped{s, f}
}

type tapped struct {
	Stream
	f func(sent bool, frame []byte)
}

// Unwrap returns the stream that is tapped.
func (t *tapped) Unwrap() Stream { return t.Stream }

func (t *tapped) ReadFrame() (Frame, error) {
	f, err := t.Stream.ReadFrame()
	if err == nil {
		t.f(false, f.Data)
	}
	return f, err
}

func (t *tapped) WriteFrame(data []byte) error {
	t.f(true, data)
	return t.Stream.WriteFrame(data)
}

// untap returns what the outermost taps are around, and what calls them all, the
// innermost first, or nil if there is none.
func (c *Conn) untap(s Stream) (Stream, func(sent bool, frame []byte)) {
	var taps []*tapped
	for {
		t, ok := s.(*tapped)
		if !ok {
			break
		}
		taps = append(taps, t)
		s = t.Stream
	}
	if taps == nil {
		return s, nil
	}
	return s, func(sent bool, frame []byte) {
		for i := len(taps) - 1; i >= 0; i-- {
			protect(func() { taps[i].f(sent, frame) }, func(p any) {
				c.log.Error("jsonrpc: tap panicked", "panic", fmt.Sprint(p))
			})
		}
	}
}

// maxWrapped bounds how many streams around each other are looked through.
const maxWrapped = 100

// limitFrames sets the limit of the first stream, of s and those it is around,
// that has one.
func limitFrames(s Stream, n int) {
	for range maxWrapped {
		if l, ok := s.(limitedStream); ok {
			l.setMaxFrame(n)
			return
		}
		u, ok := s.(interface{ Unwrap() Stream })
		if !ok {
			return
		}
		if s = u.Unwrap(); s == nil {
			return
		}
	}
}
