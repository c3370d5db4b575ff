//go:build unix

package holder

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/jsonrpc"
)

// FuzzPacket: no input makes the decoder panic or take more memory than it has bytes, and what it
// reads is what was written.
func FuzzPacket(f *testing.F) {
	for _, p := range []packet{
		{kind: kindHello, data: encode(hello{Version: 1, Token: testToken})},
		{kind: kindFrame, number: 1, data: []byte(`{"jsonrpc":"2.0"}`)},
		{kind: kindAck, number: 1 << 60},
		{kind: kindTaken},
	} {
		var b bytes.Buffer
		w := bufio.NewWriter(&b)
		if err := errors.Join(writePacket(w, p), w.Flush()); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
		f.Add(b.Bytes()[:b.Len()-1])
	}
	f.Add([]byte{'F', 0x3f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 'x'})
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bufio.NewReader(bytes.NewReader(in))
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		for {
			p, err := readPacket(r, MaxFrame)
			if err != nil {
				if !errors.Is(err, errPacket) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%v", err)
				}
				break
			}
			if len(p.data) > 0 && cap(p.data) <= len(p.data) {
				t.Errorf("no room after %d bytes", len(p.data))
			}
			if err := errors.Join(writePacket(w, p), w.Flush()); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(in, out.Bytes()) {
			t.Errorf("%x was read as %x", in, out.Bytes())
		}
	})
}

// A sink is the input of an agent that reads everything at once.
type sink struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Write(b)
}

func (s *sink) Close() error { return nil }

// A mute is an agent that reads and says nothing.
type mute struct {
	*fakeAgent
	sink sink
}

func (m *mute) input() io.WriteCloser { return &m.sink }

// FuzzHolder: no bytes on the socket crash a holder. Without the token they do not reach the agent, and
// whoever has it can attach; with it only whole frames reach the agent, in order.
func FuzzHolder(f *testing.F) {
	frame := []byte{'F', 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 1, '{', '}'}
	f.Add(frame, false)
	f.Add(append(frame, 'F', 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 2, '[', ']'), true)
	f.Add([]byte{'R', 0, 0, 0, 8, 0xff, 0, 0, 0, 0, 0, 0, 1, 'E', 0, 0, 0, 0}, true)
	f.Add([]byte{'S', 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1}, true)
	f.Add(append([]byte{'H', 0, 0, 0, 60}, encode(hello{Version: 1, Token: "fedcba9876543210"})...), false)
	f.Fuzz(func(t *testing.T, in []byte, token bool) {
		ctx, cancel := context.WithCancel(context.Background())
		m := &mute{fakeAgent: newFake()}
		c, l := newCore(Config{Token: testToken, Lease: time.Minute}.withDefaults(), m), newPipeListener()
		c.shut = func() { _ = l.Close() }
		c.work.Go(func() { c.serve(l) })
		done := make(chan error, 1)
		go func() { done <- c.run(ctx) }()
		conn := l.dial()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		if token {
			w := bufio.NewWriter(conn)
			if err := errors.Join(writePacket(w, packet{kind: kindHello, data: encode(hello{Version: version, Token: testToken})}), w.Flush()); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = conn.Write(in)
		_ = conn.Close()
		if !token {
			g, w := dialRaw(t, l, 0)
			if w.Accepted != 0 {
				t.Errorf("%d frames were accepted", w.Accepted)
			}
			_ = g.conn.Close()
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		heard := m.sink.data.String()
		if !token && heard != "" {
			t.Errorf("the agent has got %q", heard)
		}
		if want := frames(in); token && !strings.HasPrefix(want, heard) {
			t.Errorf("the agent has got %q, not %q", heard, want)
		}
	})
}

// frames returns what an agent gets of packets, at most.
func frames(in []byte) string {
	var out strings.Builder
	r := bufio.NewReader(bytes.NewReader(in))
	for next := uint64(1); ; {
		p, err := readPacket(r, jsonrpc.DefaultMaxFrame)
		if err != nil {
			return out.String()
		}
		if p.kind == kindFrame && p.number == next && !bytes.Contains(p.data, []byte("\n")) {
			out.Write(append(p.data, '\n'))
			next++
		}
	}
}

// FuzzGateway: no bytes of a holder crash its gateway.
func FuzzGateway(f *testing.F) {
	f.Add([]byte{'F', 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 1, '{', '}'})
	f.Add([]byte{'L', 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 'x'})
	f.Add([]byte{'L', 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 'x'})
	f.Add([]byte{'Q', 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 1, '{', '}', 'G', 0, 0, 0, 2, '{', '}'})
	f.Add([]byte{'D', 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 'C', 0, 0, 0, 1, 'x', 'E', 0, 0, 0, 1, 'x', 'E', 0, 0, 0, 1, 'x', 'T', 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		a := newAgent(ours, 0)
		a.greeting = welcome{Lease: time.Minute, MaxFrame: 1 << 20}
		a.begin()
		go func() {
			_, _ = theirs.Write(in)
			_ = theirs.Close()
		}()
		for n := uint64(1); ; n++ {
			_, err := a.ReadFrame()
			if _, long := errors.AsType[*jsonrpc.FrameTooLargeError](err); err != nil && !long {
				break
			}
			if a.Seq() != n {
				t.Fatalf("event %d in place of %d", a.Seq(), n)
			}
			_ = a.Ack(n)
		}
		_ = a.Close()
	})
}

// FuzzLines: lines are those of jsonrpc.NewLineStream.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"a\nb\r\n\r\n \n\ufeffc", "\ufeffa\n\ufeffb", "\ufeff\n\na", "\r", "a\r\r\n", "\xef\xbb", ""} {
		f.Add([]byte(s))
	}
	f.Add(bytes.Repeat([]byte("x"), 100_000))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := jsonrpc.NewLineStream(io.NopCloser(bytes.NewReader(in)), nopWriter{})
		l := newLines(bytes.NewReader(in), 1<<20)
		for {
			want, err1 := s.ReadFrame()
			got, size, err2 := l.next()
			if size != 0 || (err1 == nil) != (err2 == nil) {
				t.Fatalf("%v and %v", err1, err2)
			}
			if err1 != nil {
				return
			}
			if diff := cmp.Diff(string(want.Data), string(got)); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

type nopWriter struct{}

func (nopWriter) Write(b []byte) (int, error) { return len(b), nil }
func (nopWriter) Close() error                { return nil }

// TestLineLimit: a line counts without what ends it, and without a byte order mark.
func TestLineLimit(t *testing.T) {
	type result struct {
		Line string
		Size int64
	}
	long := strings.Repeat("y", 3*longPrefix)
	l := newLines(strings.NewReader("\ufeff1234567890\r\n1234567890\r\n12345678901\n"+long+"\n1\n"+long), 10)
	var got []result
	for {
		line, size, err := l.next()
		if err != nil {
			break
		}
		got = append(got, result{string(line), size})
	}
	want := []result{{"1234567890", 0}, {"1234567890", 0}, {"12345678901", 11}, {long[:longPrefix], int64(len(long))}, {"1", 0}, {long[:longPrefix], int64(len(long))}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
