package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// chunks reads its parts one by one.
type chunks struct{ parts []string }

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.parts[0])
	if c.parts[0] = c.parts[0][n:]; c.parts[0] == "" {
		c.parts = c.parts[1:]
	}
	return n, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// readAll returns the frames of a stream, "!" for a frame that was too large,
// "~" before a line frame where that matters, and the final error.
func readAll(s Stream) (frames []string, err error) {
	for {
		f, err := s.ReadFrame()
		var big *FrameTooLargeError
		if errors.As(err, &big) {
			frames = append(frames, fmt.Sprintf("!%d %.5s", big.Size, big.Prefix))
			continue
		}
		if err != nil {
			return frames, err
		}
		frames = append(frames, string(f.Data))
	}
}

func TestReadFrames(t *testing.T) {
	k := strings.Repeat("k", 1000)
	for _, tt := range []struct {
		name    string
		framing func(io.ReadCloser, io.WriteCloser) Stream
		in      string
		want    []string
		err     error
	}{
		{"lines", NewLineStream, "{1}\n{2}\r\n\n \t\r\n{3}\n", []string{"{1}", "{2}", "{3}"}, io.EOF},            // S1
		{"unterminated", NewLineStream, "{1}\n{2}", []string{"{1}", "{2}"}, io.EOF},                              // S4
		{"unterminated blank", NewLineStream, "{1}\n  ", []string{"{1}"}, io.EOF},                                // S1, S4
		{"bom", NewLineStream, "\xef\xbb\xbf{1}\n\xef\xbb\xbf{2}\n", []string{"{1}", "\xef\xbb\xbf{2}"}, io.EOF}, // S2
		{"part of a bom", NewLineStream, "\xef\xbb", []string{"\xef\xbb"}, io.EOF},
		{"empty", NewLineStream, "", nil, io.EOF},
		{"limit", NewLineStream, k + "\n" + k + "\r\n" + k + "x\n{2}\n", []string{k, k, "!1001 kkkkk", "{2}"}, io.EOF}, // S3
		{"detect lines", NewDetectStream, " \r\n\n{1}\n{2}\n", []string{"{1}", "{2}"}, io.EOF},
		{"detect lines after bom", NewDetectStream, "\xef\xbb\xbf[1]\n", []string{"[1]"}, io.EOF},
		{"detect noise", NewDetectStream, "hello\n{1}\n", []string{"hello", "{1}"}, io.EOF},
		{"detect headers", NewDetectStream, "\r\ncontent-length:3\r\n\r\n{1}Content-Length: 4\r\n\r\n{22}", []string{"{1}", "{22}"}, io.EOF},
		{"detect nothing", NewDetectStream, " \n ", nil, io.EOF},
		{"headers", newHeaderStream, "Content-Type: x\r\nCONTENT-LENGTH :  3 \r\nX: y\r\n\r\n{1}\nContent-Length: 3\n\n{2}", []string{"{1}", "{2}"}, io.EOF},
		{"empty body", newHeaderStream, "Content-Length: 0\r\n\r\nContent-Length: 3\r\n\r\n{2}", []string{"", "{2}"}, io.EOF},
		{"cut body", newHeaderStream, "Content-Length: 3\r\n\r\n{1", nil, io.ErrUnexpectedEOF},
		{"cut header", newHeaderStream, "Content-Length: 3\r\n", nil, io.ErrUnexpectedEOF},
		{"bad length", newHeaderStream, "Content-Length: -3\r\n\r\nContent-Length: 3\r\n\r\n{2}", []string{"Content-Length: -3", "{2}"}, io.EOF},
		{"noise between headers", newHeaderStream, "hello: world\nContent-Length: 3\r\n\r\n{2}", []string{"hello: world", "{2}"}, io.EOF},
		{"header limit", newHeaderStream, "Content-Length: 1001\r\n\r\n" + k + "xContent-Length: 3\r\n\r\n{2}", []string{"!1001 kkkkk", "{2}"}, io.EOF},
		{"cut oversize body", newHeaderStream, "Content-Length: 1001\r\n\r\n" + k, nil, io.ErrUnexpectedEOF},
	} {
		for _, how := range []struct {
			name string
			wrap func(string) io.Reader
		}{
			{"whole", func(s string) io.Reader { return strings.NewReader(s) }},
			{"byte by byte", func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) }},
			{"data with error", func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) }},
		} {
			t.Run(tt.name+"/"+how.name, func(t *testing.T) {
				s := tt.framing(io.NopCloser(how.wrap(tt.in)), nopCloser{io.Discard})
				s.(limitedStream).setMaxFrame(1000)
				got, err := readAll(s)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				if err != tt.err {
					t.Errorf("err = %v, want %v", err, tt.err)
				}
			})
		}
	}
}

// TestReadSizes reads frames of sizes around every boundary of the buffers,
// in pieces of random sizes.
func TestReadSizes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sizes := []int{1, inputMin - 1, inputMin, inputMin + 1, 4 * inputMin, inputMax - 1, inputMax, inputMax + 1, segment - 1, segment, segment + 1, segment + inputMax, 2*segment + 5}
	for i := range 40 {
		var want, parts []string
		var in strings.Builder
		headers := i%2 == 1
		for range 6 {
			n := sizes[rng.IntN(len(sizes))]
			if rng.IntN(2) == 0 {
				n = 1 + rng.IntN(300)
			}
			body := strings.Repeat(string(rune('a'+rng.IntN(26))), n)
			want = append(want, body)
			if headers {
				fmt.Fprintf(&in, "Content-Length: %d\r\n\r\n%s", n, body)
			} else {
				fmt.Fprintf(&in, "%s\r\n", body)
			}
		}
		for s := in.String(); s != ""; {
			n := min(len(s), 1+rng.IntN(1+rng.IntN(2*inputMax)))
			parts, s = append(parts, s[:n]), s[n:]
		}
		framing := NewLineStream
		if headers {
			framing = newHeaderStream
		}
		s := framing(io.NopCloser(&chunks{parts}), nopCloser{io.Discard})
		for j, w := range want {
			f, err := s.ReadFrame()
			if err != nil || string(f.Data) != w {
				t.Fatalf("run %d: frame %d of %d bytes: got %d bytes, %v", i, j, len(w), len(f.Data), err)
			}
			if f.Owned != (len(w) >= inputMax) && !(len(w) >= inputMax-2) {
				t.Errorf("frame of %d bytes: owned = %v", len(w), f.Owned)
			}
			if f.Owned && cap(f.Data)-len(f.Data) > len(f.Data)/4 {
				t.Errorf("frame of %d bytes holds %d", len(f.Data), cap(f.Data))
			}
		}
		if _, err := s.ReadFrame(); err != io.EOF {
			t.Error(err)
		}
	}
}

// TestOversize: a frame beyond the limit is skipped without being kept (S3).
func TestOversize(t *testing.T) {
	const limit = 1 << 20
	big := strings.Repeat("x", 8<<20)
	for name, in := range map[string]string{
		"lines":   "{1}\n" + big + "\n{2}\n",
		"headers": "Content-Length: 3\r\n\r\n{1}Content-Length: 8388608\r\n\r\n" + big + "Content-Length: 3\r\n\r\n{2}",
	} {
		s := NewDetectStream(io.NopCloser(strings.NewReader(in)), nopCloser{io.Discard})
		s.(limitedStream).setMaxFrame(limit)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := readAll(s)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 3*limit {
			t.Errorf("%s: %d bytes were allocated", name, n)
		}
		if diff := cmp.Diff([]string{"{1}", "!8388608 xxxxx", "{2}"}, got); diff != "" || err != io.EOF {
			t.Error(name, diff, err)
		}
		if n := len(s.(*byteStream).in.buf); n > inputMax {
			t.Errorf("%s: the buffer has grown to %d bytes", name, n)
		}
	}
}

func TestBufferShrinks(t *testing.T) {
	parts := []string{strings.Repeat(strings.Repeat("x", 99)+"\n", 2000)}
	for range 2 * shrinkAt {
		parts = append(parts, "{}\n")
	}
	s := NewLineStream(io.NopCloser(&chunks{parts}), nopCloser{io.Discard}).(*byteStream)
	grown := 0
	for {
		if _, err := s.ReadFrame(); err != nil {
			break
		}
		grown = max(grown, len(s.in.buf))
	}
	if grown != inputMax || len(s.in.buf) != inputMin {
		t.Errorf("buffer grew to %d and ended at %d", grown, len(s.in.buf))
	}
}

func TestWriteFrames(t *testing.T) {
	for _, tt := range []struct {
		name    string
		framing func(io.ReadCloser, io.WriteCloser) Stream
		in      string
		want    string
	}{
		{"lines", NewLineStream, "{}\n", "{1}\n{22}\n"},
		{"headers", newHeaderStream, "", "Content-Length: 3\r\n\r\n{1}Content-Length: 4\r\n\r\n{22}"},
		{"detected lines", NewDetectStream, "{}\n", "{1}\n{22}\n"},
		{"detected headers", NewDetectStream, "Content-Length: 2\r\n\r\n{}", "Content-Length: 3\r\n\r\n{1}Content-Length: 4\r\n\r\n{22}"},
		{"nothing detected", NewDetectStream, "", "{1}\n{22}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			s := tt.framing(io.NopCloser(strings.NewReader(tt.in)), nopCloser{&out})
			_, _ = s.ReadFrame()
			for _, f := range []string{"{1}", "{22}"} {
				if err := s.WriteFrame([]byte(f)); err != nil {
					t.Fatal(err)
				}
			}
			if out.String() != tt.want {
				t.Errorf("got %q", out.String())
			}
			// The connection's way: many frames in one buffer.
			b := s.(batchStream)
			var buf []byte
			for _, f := range []string{"{1}", "{22}"} {
				start := len(buf)
				buf = b.endFrame(append(b.beginFrame(buf), f...), start)
			}
			if string(buf) != tt.want {
				t.Errorf("batch: got %q", buf)
			}
		})
	}
}

func TestStreamClose(t *testing.T) {
	for _, framing := range []func(io.ReadCloser, io.WriteCloser) Stream{NewLineStream, newHeaderStream, NewDetectStream} {
		r, pw, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		pr, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		s := framing(r, w)
		errs := make(chan error)
		go func() {
			_, err := s.ReadFrame()
			errs <- err
		}()
		go func() { // fills the pipe
			for {
				if err := s.WriteFrame(make([]byte, 1<<20)); err != nil {
					errs <- err
					return
				}
			}
		}()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
		}
		_ = pr.Close()
		_ = pw.Close()
	}
}

func TestPipe(t *testing.T) {
	a, b := Pipe()
	data := []byte("{1}")
	if err := a.WriteFrame(data); err != nil {
		t.Fatal(err)
	}
	copy(data, "xxx") // the stream has its own copy
	for range 2 {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	if f, err := b.ReadFrame(); err != nil || string(f.Data) != "{1}" || !f.Owned {
		t.Error(f, err)
	}
	if _, err := b.ReadFrame(); err != io.EOF {
		t.Error(err)
	}
	if err := b.WriteFrame(data); err != io.ErrClosedPipe {
		t.Error(err)
	}
	if err := a.WriteFrame(data); err != os.ErrClosed {
		t.Error(err)
	}
	if _, err := a.ReadFrame(); err != os.ErrClosed {
		t.Error(err)
	}
}

// TestPipeBounded: writing waits for the reader, and Close ends the wait.
func TestPipeBounded(t *testing.T) {
	for _, end := range []func(a, b Stream){
		func(a, _ Stream) { _ = a.Close() },
		func(_, b Stream) { _ = b.Close() },
	} {
		a, b := Pipe()
		full := make(chan struct{})
		errs := make(chan error)
		go func() {
			for range pipeFrames {
				_ = a.WriteFrame(nil)
			}
			close(full)
			errs <- a.WriteFrame(nil)
		}()
		<-full
		end(a, b)
		if err := <-errs; err == nil {
			t.Error("no error")
		}
	}
}

// newHeaderStream returns a stream of frames with Content-Length headers from the
// start, as NewDetectStream becomes once its peer has sent one.
func newHeaderStream(r io.ReadCloser, w io.WriteCloser) Stream {
	return newByteStream(r, w, framingHeaders)
}

// TestContentLength: a length that an int cannot hold is refused, whatever the size of an
// int is.
func TestContentLength(t *testing.T) {
	for _, tt := range []struct {
		value string
		bits  int
		want  int
		ok    bool
	}{
		{" 12 ", 32, 12, true},
		{"2147483647", 32, 1<<31 - 1, true},
		{"2147483648", 32, 0, false},
		{"4294967298", 32, 0, false},
		{"4294967298", 64, 1<<32 + 2, true},
		{"9223372036854775807", 64, 0, false},
		{"-1", 64, 0, false},
		{"", 64, 0, false},
	} {
		if strconv.IntSize < tt.bits {
			continue
		}
		if n, ok := contentLength([]byte(tt.value), tt.bits); ok != tt.ok || ok && n != tt.want {
			t.Errorf("%q with %d bits: %d, %t", tt.value, tt.bits, n, ok)
		}
	}
}

// TestNoFrameLimit: a line is read whole however high the limit is.
func TestNoFrameLimit(t *testing.T) {
	a, b := net.Pipe()
	line := `{"jsonrpc":"2.0","method":"m","params":["` + strings.Repeat("x", 1<<20) + `"]}`
	got := make(chan int, 1)
	mux := new(Mux)
	mux.FallbackNotification(func(_ context.Context, req *Request) (any, error) {
		got <- len(req.Params.(json.RawMessage))
		return nil, nil
	})
	conn := NewConn(NewLineStream(a, a), Config{Settings: Settings{MaxFrame: math.MaxInt}, Mux: mux})
	defer conn.Close()
	if _, err := io.WriteString(b, line+"\n"); err != nil {
		t.Fatal(err)
	}
	if n := <-got; n < 1<<20 {
		t.Errorf("%d bytes", n)
	}
	_ = b.Close()
}
