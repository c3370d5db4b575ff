package jsonrpc

import (
	"context"
	"io"
	"os"
)

// A Frame is the bytes of one JSON text.
type Frame struct {
	Data []byte
	// Owned reports that Data belongs to the receiver, which may keep and change
	// it. Otherwise Data is valid until the next ReadFrame and must not be
	// changed. The streams of this package hand over large frames (64 kB and
	// more) and lend small ones.
	Owned bool
	// Line reports that the frame is a line, which may be text that was never
	// meant to be a message.
	Line bool
	// Number is for a stream of your own, whose frames have numbers. A handler gets that
	// of its message as [Request.Frame]. The streams of this module leave it 0.
	Number uint64
}

// A Stream carries frames. One goroutine at a time may read, and one may write.
// Close may be called at any time and repeatedly; it ends a ReadFrame and a
// WriteFrame that are under way.
//
// A stream around another should have the method Unwrap() Stream, which returns
// the other one: a connection looks through it for the stream that
// [Settings.MaxFrame] limits, and for a [Pacer]. To see what passes there is [Tap].
// A stream that knows whether it has more to read should be an [EagerStream], too.
type Stream interface {
	// ReadFrame returns the next frame. At the end of the input it returns
	// io.EOF, or io.ErrUnexpectedEOF if the input ends inside a frame. After an
	// error for which errors.As finds a [*FrameTooLargeError] or an
	// [*UnansweredError], the next frame can be read; any other error is final.
	ReadFrame() (Frame, error)
	// WriteFrame writes one frame. It must not keep data. An error is final.
	WriteFrame(data []byte) error
	Close() error
}

// DefaultMaxFrame is the limit for incoming frames, in bytes, unless
// [Settings.MaxFrame] sets another.
const DefaultMaxFrame = 64 << 20 // S3

// batchStream is what our own byte streams offer the connection beyond Stream:
// many frames in one write, attempts that never block, and a look at what is
// already buffered.
type batchStream interface {
	beginFrame(dst []byte) []byte
	endFrame(dst []byte, start int) []byte
	writeAll(data []byte) error
	// tryWrite writes what can be written without blocking; canTry says
	// whether there is such a thing here.
	tryWrite(data []byte) (int, error)
	canTry() bool
}

// An EagerStream is a [Stream] that calls its reader when ReadFrame is about to
// wait for input. Until then the connection handles frames together, which costs
// less for each of them. Both methods are called by the connection that reads.
type EagerStream interface {
	Stream
	// Buffered guesses whether ReadFrame would return without waiting. Only
	// false is certain.
	Buffered() bool
	// BeforeRead sets what ReadFrame calls before anything that may block. It is
	// called once, before the first ReadFrame. An error of f is what ReadFrame
	// then returns.
	BeforeRead(f func() error)
}

// A BatchStream is a [Stream] that can write several frames at once, for less than
// they would cost one by one. The connection calls WriteFrames with all that was sent
// while it wrote before. WriteFrames must not keep the frames. An error is final.
type BatchStream interface {
	Stream
	WriteFrames(frames [][]byte) error
}

// A Pacer is a [Stream] whose frames wait for several readers, as those of HTTP do,
// where each session has a response of its own. The connection calls Pace before it
// sends a notification or a call that has a lane, see [Config.Lane], and in the
// goroutine that sends it. So a reader that is slow holds up what is sent in its
// lane and nothing else.
//
// Pace returns when the lane has room, or an error, which is what sending then
// fails with. It must return when ctx is done or the stream is closed, and it is
// called concurrently.
type Pacer interface {
	Stream
	Pace(ctx context.Context, lane string) error
}

// A Forgetter is a [Stream] that keeps something for each lane, as that of HTTP does,
// where each session has a response of its own. Protocol layers call [Conn.Forget] when
// a lane is not used any more. What is sent in it later begins it anew, and what has
// been sent still gets its answer.
//
// Forget is called concurrently, and perhaps with locks held: it must not block.
type Forgetter interface {
	Stream
	Forget(lane string)
}

// limitedStream is a stream whose limit for incoming frames can be set.
type limitedStream interface{ setMaxFrame(n int) }

// NewLineStream returns a stream of newline-delimited JSON, the stdio framing of
// ACP: frames end with LF, a CR before it is dropped, blank lines are ignored, a
// leading byte order mark is dropped, and an unterminated last line is a frame.
// Closing the stream closes w and r.
//
// If w is an *os.File that supports deadlines, such as a pipe made by os/exec,
// small writes are made at once and never block the caller.
func NewLineStream(r io.ReadCloser, w io.WriteCloser) Stream {
	return newByteStream(r, w, framingLines) // S1–S4
}

// NewDetectStream returns a stream that detects which of the two framings the peer
// uses by the first byte that is not white space: C or c means headers, anything
// else lines. Both directions then use that framing. What is written before
// anything is read is written as lines. Headers are those of the Language Server
// Protocol, of which Content-Length counts; lines between frames that are not
// headers are returned as frames with Line set.
func NewDetectStream(r io.ReadCloser, w io.WriteCloser) Stream {
	return newByteStream(r, w, framingUnknown)
}

// Stdio returns a stream on the standard input and output of the process that
// detects the framing its peer uses, as [NewDetectStream] does. It takes both over:
// closing it closes them, and nothing else should use them. Pipes and sockets are
// made non-blocking, so that Close ends a read that is under way; the standard
// error keeps its mode.
func Stdio() Stream {
	return NewDetectStream(pollable(os.Stdin), pollable(os.Stdout))
}
