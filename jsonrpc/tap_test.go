package jsonrpc

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// log is what a tap saw, by direction.
type tapLog struct {
	mu             sync.Mutex
	sent, received []string
}

func (l *tapLog) frame(sent bool, frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sent {
		l.sent = append(l.sent, string(frame))
	} else {
		l.received = append(l.received, string(frame))
	}
}

// TestTap: a tap sees every frame as it is, in order, over any stream and whatever
// is around it, and the peer notices nothing.
func TestTap(t *testing.T) {
	type open func(io.ReadCloser, io.WriteCloser) Stream
	for _, tt := range []struct {
		name string
		open open // nil for a Pipe
		wrap func(Stream) Stream
	}{
		{"pipe", nil, nil},
		{"lines", NewLineStream, nil},
		{"headers", newHeaderStream, nil},
		{"detected", NewDetectStream, nil},
		{"foreign", NewLineStream, func(s Stream) Stream { return foreign{s} }},
		{"tapped", NewLineStream, func(s Stream) Stream { return Tap(s, func(bool, []byte) {}) }},
	} {
		for _, inside := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, inside %v", tt.name, inside), func(t *testing.T) {
				a, b := Pipe()
				if tt.open != nil {
					ar, bw := io.Pipe()
					br, aw := io.Pipe()
					framing := tt.open
					if tt.name == "headers" {
						framing = NewDetectStream // what writes first says which
						a = newHeaderStream(ar, aw)
					} else {
						a = framing(ar, aw)
					}
					b = framing(br, bw)
				}
				var here, there tapLog
				if tt.wrap != nil {
					a = tt.wrap(a)
				}
				a, b = Tap(a, here.frame), Tap(b, there.frame)
				if inside {
					a = foreign{a}
				}
				conn, peer := NewConn(a, Config{Lane: laneOf}), NewConn(b, Config{Mux: echoMux(), Lane: laneOf})
				for i := range 20 {
					if err := update.Notify(bg, conn, &note{Session: fmt.Sprint(i), Text: strings.Repeat("x", i*100)}); err != nil {
						t.Fatal(err)
					}
				}
				var calls sync.WaitGroup
				for i := range 20 {
					calls.Go(func() {
						if r, err := prompt.Call(bg, conn, &note{Session: fmt.Sprint(i), Text: "yes"}); err != nil || r.Text != fmt.Sprint(i)+":yes" {
							t.Error(r, err)
						}
					})
				}
				calls.Wait()
				closeBoth(conn, peer)
				if len(here.sent) != 40 || len(here.received) != 20 {
					t.Errorf("%d sent, %d received", len(here.sent), len(here.received))
				}
				if d := cmp.Diff(here.sent, there.received); d != "" {
					t.Error("sent:", d)
				}
				if d := cmp.Diff(there.sent, here.received); d != "" {
					t.Error("received:", d)
				}
			})
		}
	}
}

// TestTapSlow: nobody who sends waits for a tap, not even where small writes are made
// at once, and a tap that panics changes nothing.
func TestTapSlow(t *testing.T) {
	ar, bw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	br, aw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{})
	conn := NewConn(Tap(NewLineStream(ar, aw), func(bool, []byte) { <-gate; panic("tap") }), Config{Mux: echoMux()})
	peer := NewConn(NewLineStream(br, bw), Config{Mux: echoMux()})
	if err := update.Notify(bg, conn, &note{Session: "s"}); err != nil { // or it waits for ever
		t.Error(err)
	}
	close(gate)
	if r, err := prompt.Call(bg, conn, &note{Text: "yes"}); err != nil || r.Text != ":yes" {
		t.Error(r, err)
	}
	closeBoth(conn, peer)
}

// unwrapping is a stream around another that says so.
type unwrapping struct{ Stream }

func (u unwrapping) Unwrap() Stream { return u.Stream }

// TestLimitWrapped: the limit of frames reaches the stream that reads them through
// those around it, so that nothing that is too large is kept.
func TestLimitWrapped(t *testing.T) {
	for name, wrap := range map[string]func(Stream) Stream{
		"tap":    func(s Stream) Stream { return Tap(s, func(bool, []byte) {}) },
		"other":  func(s Stream) Stream { return unwrapping{s} },
		"both":   func(s Stream) Stream { return Tap(unwrapping{s}, func(bool, []byte) {}) },
		"circle": func(s Stream) Stream { return &circle{s} },
	} {
		t.Run(name, func(t *testing.T) {
			r, w := io.Pipe()
			s := NewLineStream(r, discard{})
			conn := NewConn(wrap(s), Config{Settings: Settings{MaxFrame: 1000}})
			if got, want := s.(*byteStream).limit.Load(), int64(1000); got != want && name != "circle" {
				t.Errorf("limit %d, want %d", got, want)
			}
			_ = w.Close()
			<-conn.Done()
		})
	}
}

type circle struct{ Stream }

func (c *circle) Unwrap() Stream { return c }

type discard struct{ io.WriteCloser }

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }
