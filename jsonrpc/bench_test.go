package jsonrpc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// sink is a stream that swallows what is written and never has anything to read.
type sink struct {
	closed chan struct{}
	once   sync.Once
}

func newSink() *sink { return &sink{closed: make(chan struct{})} }

func (s *sink) Read([]byte) (int, error)    { <-s.closed; return 0, io.EOF }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) Close() error                { s.once.Do(func() { close(s.closed) }); return nil }

// TestSendAllocs: sending a notification allocates nothing.
func TestSendAllocs(t *testing.T) {
	s := newSink()
	c := NewConn(NewLineStream(s, s), Config{})
	n := &note{Session: "session-1", Text: "hello"}
	const batch = 1000
	send := func() {
		for range batch {
			if err := update.Notify(bg, c, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	send()
	// The flusher that a batch starts now and then is not counted as anybody's.
	if got := testing.AllocsPerRun(20, send) / batch; got > 0.1 && !raceEnabled {
		t.Errorf("%.2f allocations for each notification", got)
	}
	_ = c.Close()
}

// TestReceiveAllocs: receiving a notification costs the engine less than one
// allocation: here each has the value and its text on top.
func TestReceiveAllocs(t *testing.T) {
	var mux Mux
	var seen atomic.Int64
	update.Handle(&mux, func(context.Context, *note) error { seen.Add(1); return nil })
	line := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"session-1","text":"hello"}}` + "\n")
	r, w := io.Pipe()
	c := NewConn(NewLineStream(r, nopCloser{io.Discard}), Config{Mux: &mux, Lane: laneOf})
	const batch = 1000
	lines := bytes.Repeat(line, batch)
	var want int64
	receive := func() {
		if _, err := w.Write(lines); err != nil {
			t.Fatal(err)
		}
		for want += batch; seen.Load() < want; {
			runtime.Gosched()
		}
	}
	receive()
	if got := testing.AllocsPerRun(20, receive)/batch - 2; got > 0.5 && !raceEnabled {
		t.Errorf("%.2f allocations for each notification", got)
	}
	_ = w.Close()
	<-c.Done()
}

// BenchmarkNote sends one notification after another, each when the last one was
// handled: its lane begins and ends with it.
func BenchmarkNote(b *testing.B) {
	var mux Mux
	seen := make(chan struct{}, 1)
	update.Handle(&mux, func(context.Context, *note) error { seen <- struct{}{}; return nil })
	agent, client := filePair(b, Config{}, Config{Mux: &mux, Lane: laneOf})
	n := &note{Session: "session-1", Text: "x"}
	b.ReportAllocs()
	for b.Loop() {
		if err := update.Notify(bg, agent, n); err != nil {
			b.Fatal(err)
		}
		<-seen
	}
	closeBoth(agent, client)
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			var mux Mux
			prompt.Handle(&mux, func(context.Context, *note) (*reply, error) { return &reply{}, nil })
			agent, client := filePair(b, Config{Mux: &mux, Lane: laneOf}, Config{Lane: laneOf})
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range callers {
				n := b.N / callers
				if i < b.N%callers {
					n++
				}
				wg.Go(func() {
					p := &note{Session: fmt.Sprint(i)}
					for range n {
						if _, err := prompt.Call(bg, client, p); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(client.Stats().Writes+agent.Stats().Writes)/float64(b.N), "writes/op")
			closeBoth(agent, client)
		})
	}
}

func BenchmarkChunks(b *testing.B) {
	for _, size := range []int{24, 200, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var mux Mux
			done := make(chan struct{})
			var seen int
			update.Handle(&mux, func(context.Context, *note) error {
				if seen++; seen == b.N {
					close(done)
				}
				return nil
			})
			agent, client := filePair(b, Config{}, Config{Mux: &mux, Lane: laneOf})
			n := &note{Session: "session-1", Text: strings.Repeat("x", size)}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if err := update.Notify(bg, agent, n); err != nil {
					b.Fatal(err)
				}
			}
			<-done
			b.StopTimer()
			b.ReportMetric(float64(agent.Stats().Writes)/float64(b.N), "writes/op")
			closeBoth(agent, client)
		})
	}
}

func BenchmarkLarge(b *testing.B) {
	code := strings.Repeat("\tfor i := range n { fmt.Println(\"x\") }\n", 8<<20/40)
	for _, tt := range []struct{ name, text string }{
		{"plain", strings.Repeat("0123456789abcdef", 8<<20/16)},
		{"code", code},
	} {
		b.Run(tt.name, func(b *testing.B) {
			var mux Mux
			prompt.Handle(&mux, func(context.Context, *note) (*reply, error) { return &reply{tt.text}, nil })
			agent, client := filePair(b, Config{Mux: &mux}, Config{})
			b.SetBytes(int64(len(tt.text)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := prompt.Call(bg, client, &note{})
				if err != nil || len(r.Text) != len(tt.text) {
					b.Fatal(err)
				}
			}
			closeBoth(agent, client)
		})
	}
}

// BenchmarkProcess is a round trip between two processes over pipes, and beside
// it the floor: the same bytes with a reader goroutine on each side and a
// goroutine for each request, and nothing else.
func BenchmarkProcess(b *testing.B) {
	start := func(b *testing.B, role string) (io.ReadCloser, io.WriteCloser, *exec.Cmd) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "JSONRPC_BENCH="+role)
		cmd.Stderr = os.Stderr
		w, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		r, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		return r, w, cmd
	}
	b.Run("conn", func(b *testing.B) {
		r, w, cmd := start(b, "conn")
		c := NewConn(NewLineStream(r, w), Config{Lane: laneOf})
		p := &note{Session: "0"}
		for b.Loop() {
			if _, err := prompt.Call(bg, c, p); err != nil {
				b.Fatal(err)
			}
		}
		_ = c.Close()
		_ = cmd.Wait()
	})
	b.Run("bare", func(b *testing.B) {
		r, w, cmd := start(b, "bare")
		req := []byte(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"0","n":0,"text":""}}` + "\n")
		done := make(chan struct{}, 1)
		go echo(r, func() { done <- struct{}{} })
		for b.Loop() {
			_, _ = w.Write(req)
			<-done
		}
		_ = w.Close()
		_ = cmd.Wait()
	})
}

func echo(r io.Reader, f func()) {
	buf := make([]byte, 4096)
	for {
		if _, err := r.Read(buf); err != nil {
			return
		}
		f()
	}
}

// benchRole runs the other process of BenchmarkProcess.
func benchRole(role string) {
	switch role {
	case "conn":
		var mux Mux
		prompt.Handle(&mux, func(context.Context, *note) (*reply, error) { return &reply{}, nil })
		if err := NewConn(Stdio(), Config{Mux: &mux, Lane: laneOf}).Wait(); err != nil {
			panic(err)
		}
	case "bare":
		res := []byte(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n")
		out := pollable(os.Stdout)
		echo(pollable(os.Stdin), func() { go func() { _, _ = out.Write(res) }() })
	}
}
