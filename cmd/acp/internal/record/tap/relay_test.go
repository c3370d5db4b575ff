package tap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/trace"
)

// taken is what a sink was told.
type taken struct {
	mu     sync.Mutex
	frames map[trace.Direction][][]byte
	sizes  map[trace.Direction][]int64
	stderr []string
	events []string
}

func newTaken() *taken {
	return &taken{frames: map[trace.Direction][][]byte{}, sizes: map[trace.Direction][]int64{}}
}

func (s *taken) Frame(dir trace.Direction, line []byte) { s.add(dir, line, int64(len(line))) }

func (s *taken) add(dir trace.Direction, line []byte, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames[dir] = append(s.frames[dir], slices.Clone(line))
	s.sizes[dir] = append(s.sizes[dir], size)
}

func (s *taken) Stderr(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stderr = append(s.stderr, string(line))
}

func (s *taken) Event(name string, d trace.Detail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.Code != nil {
		name += fmt.Sprint(" ", *d.Code)
	}
	if d.Text != "" && name != "start" {
		name += " " + d.Text
	}
	s.events = append(s.events, name)
}

func (s *taken) Record(rec *trace.Record) { s.add(rec.Dir, rec.Data, rec.Size) }

func (s *taken) Started() time.Time { return time.Time{} }

func testGuard(t *testing.T, audit func(*Entry), rules ...acphost.Rule) *Guard {
	t.Helper()
	p, err := acphost.NewPolicy(rules...)
	if err != nil {
		t.Fatal(err)
	}
	return NewGuard(p, func(r *acpv1.CreateTerminalRequest) string { return r.Command }, audit)
}

// traffic returns something one side may write: sizes are spread over all orders up to 1 MB. What is
// to pass a guard has to be lines that it lets through.
func traffic(r *rand.Rand, guarded bool) []byte {
	size := r.IntN(1 << r.IntN(21))
	var b []byte
	for len(b) < size {
		n := r.IntN(1 << r.IntN(17))
		switch {
		case !guarded && r.IntN(3) == 0:
			part := make([]byte, n)
			for i := range part {
				part[i] = byte(r.Uint32())
			}
			b = append(b, part...) // noise, with line ends in it
		case r.IntN(4) == 0:
			b = append(b, "debug: "...)
			b = append(b, bytes.Repeat([]byte("x\xff\x00"), n/3)...)
			b = append(b, '\n')
		default:
			b = fmt.Appendf(b, `{"jsonrpc":"2.0", "method":"session/update","params":{"t":"%0*d"}}`+"\n", n+1, r.Uint32())
		}
		if r.IntN(8) == 0 {
			b = append(b, "\r\n\n"...)
		}
	}
	if r.IntN(2) == 0 {
		b = bytes.TrimRight(b, "\r\n")
	}
	return b
}

// writeAll writes in pieces of any size.
func writeAll(r *rand.Rand, w io.WriteCloser, b []byte) {
	for len(b) > 0 {
		n := min(1+r.IntN(1<<r.IntN(18)), len(b))
		if _, err := w.Write(b[:n]); err != nil {
			return
		}
		b = b[n:]
	}
	_ = w.Close()
}

// lines is what a recorder should get of traffic.
func lines(b []byte) (out [][]byte) {
	for line := range bytes.SplitSeq(b, []byte{'\n'}) {
		if len(bytes.TrimSpace(line)) > 0 {
			out = append(out, line)
		}
	}
	return out
}

// TestIdentical lets random traffic through in both directions at once: what comes out is what went
// in, and the recorder gets it line by line.
func TestIdentical(t *testing.T) {
	runs := 10000
	if !long.All() {
		runs = 500
	}
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			for run := worker; run < runs; run += 4 {
				identical(t, uint64(run), run%2 == 1)
				if t.Failed() {
					return
				}
			}
		})
	}
	workers.Wait()
}

func identical(t *testing.T, seed uint64, withGuard bool) {
	r := rand.New(rand.NewPCG(seed, 1))
	up, down := traffic(r, withGuard), traffic(r, withGuard)
	clientOut, tapIn := pipe(t, r)
	tapOut, clientIn := pipe(t, r)
	agentOut, tapFromAgent := pipe(t, r)
	tapToAgent, agentIn := pipe(t, r)
	sink := newTaken()
	var toAgent, toClient route
	if withGuard {
		toAgent, toClient = guarded(testGuard(t, nil), tapToAgent, tapOut, sink)
	} else {
		toAgent = &plain{tapToAgent, cutter{emit: recordTo(sink, trace.ToAgent)}}
		toClient = &plain{tapOut, cutter{emit: recordTo(sink, trace.ToClient)}}
	}
	var all sync.WaitGroup
	var gotUp, gotDown []byte
	seed1, seed2 := r.Uint64(), r.Uint64()
	all.Go(func() { writeAll(rand.New(rand.NewPCG(seed1, 2)), clientOut, up) })
	all.Go(func() { writeAll(rand.New(rand.NewPCG(seed2, 3)), agentOut, down) })
	all.Go(func() { gotUp, _ = io.ReadAll(agentIn) })
	all.Go(func() { gotDown, _ = io.ReadAll(clientIn) })
	all.Go(func() { _ = pump(toAgent, tapIn) })
	all.Go(func() { _ = pump(toClient, tapFromAgent) })
	all.Wait()
	for _, f := range []io.Closer{clientIn, agentIn, tapIn, tapFromAgent} {
		_ = f.Close()
	}
	for _, d := range []struct {
		dir        trace.Direction
		sent, came []byte
	}{{trace.ToAgent, up, gotUp}, {trace.ToClient, down, gotDown}} {
		if !bytes.Equal(d.sent, d.came) {
			t.Errorf("run %d, %c: of %d bytes %d came, different from byte %d on", seed, d.dir, len(d.sent), len(d.came), differ(d.sent, d.came))
		}
		if !slices.EqualFunc(lines(d.sent), sink.frames[d.dir], bytes.Equal) {
			t.Errorf("run %d, %c: %d lines were recorded, want %d", seed, d.dir, len(sink.frames[d.dir]), len(lines(d.sent)))
		}
	}
}

func differ(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// pipe is one of the system's or, more often, one without a buffer.
func pipe(t *testing.T, r *rand.Rand) (w io.WriteCloser, rd io.ReadCloser) {
	if r.IntN(4) > 0 {
		rd, w := io.Pipe()
		return w, rd
	}
	f, g, err := os.Pipe()
	if err != nil {
		t.Error(err)
		rd, w := io.Pipe()
		return w, rd
	}
	return g, f
}

// writerFunc is a file of a recording.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestTroubles holds that nothing that is wrong with a recording changes what passes, and that what is
// missing is counted.
func TestTroubles(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for name, w := range map[string]writerFunc{
		"full":   func([]byte) (int, error) { return 0, errors.New("no space left on device") },
		"half":   func(b []byte) (int, error) { return len(b) / 2, errors.New("no space left on device") },
		"hangs":  func([]byte) (int, error) { <-release; return 0, io.ErrClosedPipe },
		"viewer": nil,
	} {
		t.Run(name, func(t *testing.T) {
			opts := trace.RecorderOptions{MaxQueued: 1 << 20, CloseWithin: 10 * time.Millisecond, Redactor: new(trace.Redactor)}
			if w == nil {
				w = func(b []byte) (int, error) { return len(b), nil }
				seen := 0
				opts.Tee = func(*trace.Record) { // a viewer that is slow
					if seen++; seen == 1 {
						<-release
					}
				}
			}
			rec := trace.NewRecorder(w, opts)
			sent := bytes.Repeat([]byte(`{"jsonrpc":"2.0","method":"x/y","params":{"token":"hunter2hunter2"}}`+"\n"), 1<<16)
			out := new(collector)
			if err := pump(&plain{out, cutter{emit: recordTo(rec, trace.ToClient)}}, io.NopCloser(bytes.NewReader(sent))); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out.Bytes(), sent) || !out.closed {
				t.Errorf("%d of %d bytes passed", out.Len(), len(sent))
			}
			if err := rec.Close(); err == nil {
				t.Error("the recording is said to be complete")
			}
			if lost := rec.Lost(); lost.Records == 0 || lost.Bytes < int64(len(sent))/2 {
				t.Errorf("lost: %+v", lost)
			}
		})
	}
}

// TestEndlessLine holds that a line of any length passes and that little of it is kept.
func TestEndlessLine(t *testing.T) {
	sink, passed := newTaken(), 0
	out := struct {
		io.Writer
		io.Closer
	}{writerFunc(func(b []byte) (int, error) { passed += len(b); return len(b), nil }), io.NopCloser(nil)}
	p := &plain{out, cutter{emit: recordTo(sink, trace.ToAgent)}}
	part := bytes.Repeat([]byte("x"), chunk)
	const parts = 3 * maxLine / chunk
	for range parts {
		if err := p.forward(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.forward([]byte("\n{}\n")); err != nil {
		t.Fatal(err)
	}
	if len(p.cut.buf) > 0 || cap(p.cut.buf) > 1<<20 {
		t.Errorf("%d bytes are kept", cap(p.cut.buf))
	}
	sizes := sink.sizes[trace.ToAgent]
	if passed != 3*maxLine+4 || !slices.Equal(sizes, []int64{3 * maxLine, 2}) || len(sink.frames[trace.ToAgent][0]) != maxLine {
		t.Errorf("%d bytes passed, %v were recorded", passed, sizes)
	}
}
