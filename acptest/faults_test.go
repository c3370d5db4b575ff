package acptest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

var (
	count = jsonrpc.Notification[int]{Name: "_test/count"}
	echo  = jsonrpc.Method[int, int]{Name: "_test/echo"}
)

// faulty connects two plain connections of which the first has faults. f gets
// both, and what the second was told so far. It runs in a bubble.
func faulty(t *testing.T, faults Faults, f func(t *testing.T, a *jsonrpc.Conn, s *Faulty, got func() []int)) (events []jsonrpc.EventKind) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sa, sb := jsonrpc.Pipe()
		s := faults.Wrap(sa)
		var got []int
		mux := new(jsonrpc.Mux)
		count.Handle(mux, func(_ context.Context, n *int) error { got = append(got, *n); return nil })
		echo.Handle(mux, func(_ context.Context, n *int) (*int, error) { return n, nil })
		b := jsonrpc.NewConn(sb, jsonrpc.Config{Mux: mux})
		a := jsonrpc.NewConn(s, jsonrpc.Config{Mux: mux, Settings: jsonrpc.Settings{Diagnose: func(e jsonrpc.Event) { events = append(events, e.Kind) }}})
		f(t, a, s, func() []int {
			synctest.Wait()
			return slices.Clone(got)
		})
		_ = a.Close()
		<-a.Done()
		_ = b.Close()
		<-b.Done()
	})
	return events
}

func tell(t *testing.T, c *jsonrpc.Conn, n int) {
	t.Helper()
	for i := range n {
		if err := count.Notify(t.Context(), c, &i); err != nil {
			t.Errorf("notification %d: %v", i, err)
		}
		synctest.Wait() // a frame at a time
	}
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func TestFaultsNone(t *testing.T) {
	faulty(t, Faults{Seed: 1}, func(t *testing.T, a *jsonrpc.Conn, s *Faulty, got func() []int) {
		tell(t, a, 200)
		if d := cmp.Diff(upTo(200), got()); d != "" {
			t.Error(d)
		}
		n := 7
		if r, err := echo.Call(t.Context(), a, &n); err != nil || *r != 7 {
			t.Error(r, err)
		}
		if s.Count() != (FaultCount{}) {
			t.Errorf("%+v", s.Count())
		}
	})
}

// Each fault of a written frame has its effect on the other side, the same one
// with the same seed.
func TestFaultsOut(t *testing.T) {
	const n = 100
	only := func(f []byte) bool { return strings.Contains(string(f), "count") }
	for _, tc := range []struct {
		name  string
		fault Fault
		check func(got []int, c FaultCount) bool
	}{
		{"drop", Fault{Drop: 0.5}, func(got []int, c FaultCount) bool {
			return c.Dropped > 20 && len(got) == n-c.Dropped && slices.IsSorted(got)
		}},
		{"drop all", Fault{Drop: 1, Only: only}, func(got []int, c FaultCount) bool { return len(got) == 0 && c.Dropped == n }},
		{"drop others", Fault{Drop: 1, Only: func(f []byte) bool { return !only(f) }}, func(got []int, c FaultCount) bool {
			return len(got) == n && c.Dropped == 0
		}},
		{"duplicate", Fault{Duplicate: 0.5}, func(got []int, c FaultCount) bool {
			return c.Duplicated > 20 && len(got) == n+c.Duplicated && slices.IsSorted(got) && len(slices.Compact(slices.Clone(got))) == n
		}},
		{"reorder", Fault{Reorder: 0.5}, func(got []int, c FaultCount) bool {
			return c.Reordered > 15 && !slices.IsSorted(got) && slices.Equal(slices.Sorted(slices.Values(got)), upTo(n))
		}},
		{"delay", Fault{Delay: time.Second}, func(got []int, c FaultCount) bool {
			return c.Delayed == n && slices.Equal(got, upTo(n))
		}},
		{"noise", Fault{Noise: 0.5}, func(got []int, c FaultCount) bool {
			return c.Noise > 20 && slices.Equal(got, upTo(n))
		}},
		{"all", Fault{Drop: 0.2, Duplicate: 0.2, Reorder: 0.2, Delay: time.Millisecond, Noise: 0.2}, func(got []int, c FaultCount) bool {
			return len(got) == n-c.Dropped+c.Duplicated && c.Reordered > 0 && c.Noise > 0 && c.Delayed == n
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var runs [][]int
			for range 2 {
				faulty(t, Faults{Seed: 5, Out: tc.fault}, func(t *testing.T, a *jsonrpc.Conn, s *Faulty, got func() []int) {
					tell(t, a, n)
					time.Sleep(time.Hour) // late frames come
					all := got()
					if !tc.check(all, s.Count()) {
						t.Errorf("%+v: %v", s.Count(), all)
					}
					runs = append(runs, all)
				})
			}
			if d := cmp.Diff(runs[0], runs[1]); d != "" {
				t.Errorf("the same seed: %s", d)
			}
		})
	}
}

// in writes frames to a stream whose reading side has faults and returns what is
// read until err.
func in(t *testing.T, f Fault, n int) (got []string, c FaultCount, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sa, sb := jsonrpc.Pipe()
		s := Faults{Seed: 5, In: f}.Wrap(sa)
		go func() {
			defer sb.Close()
			for i := range n {
				if sb.WriteFrame(fmt.Append(nil, i)) != nil {
					return
				}
			}
		}()
		for err == nil {
			var fr jsonrpc.Frame
			if fr, err = s.ReadFrame(); err == nil {
				if (fr.Data[0] < '0' || fr.Data[0] > '9') && !fr.Line {
					t.Error("noise that is no line")
				}
				got = append(got, string(fr.Data))
			}
		}
		c = s.Count()
		if _, again := s.ReadFrame(); again == nil {
			t.Error("a frame behind the end")
		}
		_ = s.Close()
		_ = sb.Close()
	})
	return got, c, err
}

func frames(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestFaultsIn(t *testing.T) {
	const n = 100
	sorted := func(got []string) []string {
		out := slices.Clone(got)
		slices.SortFunc(out, func(a, b string) int {
			if len(a) != len(b) {
				return len(a) - len(b)
			}
			return strings.Compare(a, b)
		})
		return out
	}
	crash := errors.New("crash")
	for _, tc := range []struct {
		name  string
		fault Fault
		err   error
		check func(got []string, c FaultCount) bool
	}{
		{"none", Fault{}, io.EOF, func(got []string, c FaultCount) bool { return slices.Equal(got, frames(n)) }},
		{"drop", Fault{Drop: 0.5}, io.EOF, func(got []string, c FaultCount) bool {
			return c.Dropped > 20 && len(got) == n-c.Dropped && slices.Equal(got, sorted(got))
		}},
		{"duplicate", Fault{Duplicate: 0.5}, io.EOF, func(got []string, c FaultCount) bool {
			return c.Duplicated > 20 && len(got) == n+c.Duplicated && slices.Equal(slices.Compact(slices.Clone(got)), frames(n))
		}},
		{"reorder", Fault{Reorder: 0.5}, io.EOF, func(got []string, c FaultCount) bool {
			return c.Reordered > 15 && !slices.Equal(got, frames(n)) && slices.Equal(sorted(got), frames(n))
		}},
		{"delay", Fault{Delay: time.Second}, io.EOF, func(got []string, c FaultCount) bool {
			return c.Delayed == n && slices.Equal(got, frames(n))
		}},
		{"noise", Fault{Noise: 0.5}, io.EOF, func(got []string, c FaultCount) bool {
			return c.Noise > 20 && len(got) == n+c.Noise
		}},
		{"all", Fault{Drop: 0.2, Duplicate: 0.2, Reorder: 0.2, Delay: time.Millisecond, Noise: 0.2}, io.EOF, func(got []string, c FaultCount) bool {
			return len(got) == n-c.Dropped+c.Duplicated+c.Noise && c.Reordered > 0
		}},
		{"crash", Fault{CrashAfter: 3}, io.EOF, func(got []string, c FaultCount) bool { return slices.Equal(got, frames(3)) }},
		{"crash inside", Fault{CrashAfter: 3, Crash: io.ErrUnexpectedEOF}, io.ErrUnexpectedEOF, func(got []string, c FaultCount) bool {
			return slices.Equal(got, frames(3))
		}},
		{"crash in its own way", Fault{CrashAfter: 1, Crash: crash}, crash, func(got []string, c FaultCount) bool { return len(got) == 1 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, c, err := in(t, tc.fault, n)
			if err != tc.err || !tc.check(got, c) {
				t.Errorf("%v, %+v: %v", err, c, got)
			}
			again, _, _ := in(t, tc.fault, n)
			if d := cmp.Diff(got, again); d != "" {
				t.Errorf("the same seed: %s", d)
			}
		})
	}
}

// A frame that nothing follows is not held for ever, in either direction.
func TestFaultsReorderAlone(t *testing.T) {
	faulty(t, Faults{Seed: 1, In: Fault{Reorder: 1}, Out: Fault{Reorder: 1}}, func(t *testing.T, a *jsonrpc.Conn, s *Faulty, _ func() []int) {
		start := time.Now()
		for i := range 3 {
			if r, err := echo.Call(t.Context(), a, &i); err != nil || *r != i {
				t.Error(r, err)
			}
		}
		if d := time.Since(start); d != 6*reorderWait {
			t.Errorf("six frames were held for %v", d)
		}
		if s.Count().Reordered != 0 {
			t.Errorf("%+v", s.Count())
		}
	})
}

// Noise that is read is survived by a connection, as noise.
func TestFaultsNoise(t *testing.T) {
	var c FaultCount
	events := faulty(t, Faults{Seed: 1, In: Fault{Noise: 1}}, func(t *testing.T, a *jsonrpc.Conn, s *Faulty, _ func() []int) {
		n := 1
		if _, err := echo.Call(t.Context(), a, &n); err != nil {
			t.Error(err)
		}
		c = s.Count()
	})
	if d := cmp.Diff([]jsonrpc.EventKind{jsonrpc.EventNoise}, events); d != "" || c.Noise != 1 {
		t.Error(d, c)
	}
}

func TestFaultsCrash(t *testing.T) {
	broken := errors.New("broken pipe")
	for _, tc := range []struct {
		name string
		f    Faults
		want error // of the call that meets it, besides ErrClosed
		wait error // of the connection
	}{
		{"read EOF", Faults{In: Fault{CrashAfter: 2}}, io.EOF, nil},
		{"read unexpected EOF", Faults{In: Fault{CrashAfter: 2, Crash: io.ErrUnexpectedEOF}}, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
		{"write", Faults{Out: Fault{CrashAfter: 2}}, nil, io.ErrClosedPipe},
		{"write error", Faults{Out: Fault{CrashAfter: 2, Crash: broken}}, nil, broken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			faulty(t, tc.f, func(t *testing.T, a *jsonrpc.Conn, s *Faulty, got func() []int) {
				for i := range 4 {
					r, err := echo.Call(t.Context(), a, &i)
					synctest.Wait() // a crash is noticed by who reads
					switch {
					case i < 2 && (err != nil || *r != i):
						t.Errorf("call %d: %v", i, err)
					case i >= 2 && !errors.Is(err, jsonrpc.ErrClosed), i == 2 && tc.want != nil && !errors.Is(err, tc.want):
						t.Errorf("call %d: %v", i, err)
					}
				}
				// Who writes may be told after who reads, to whom it is an ordinary end.
				if err := a.Wait(); err != nil && !errors.Is(err, tc.wait) || err == nil && tc.wait != nil && tc.want != nil {
					t.Errorf("the connection ended with %v", err)
				}
				if err := s.WriteFrame([]byte("x")); err == nil {
					t.Error("written behind the crash")
				}
			})
		})
	}
}

func TestFaultsStall(t *testing.T) {
	for _, f := range []Faults{{In: Fault{StallAfter: 3}}, {Out: Fault{StallAfter: 3}}} {
		faulty(t, f, func(t *testing.T, a *jsonrpc.Conn, s *Faulty, _ func() []int) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			for i := range 3 {
				if _, err := echo.Call(ctx, a, &i); err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			}
			n := 3
			if _, err := echo.Call(ctx, a, &n); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("in the stall: %v", err)
			}
			s.Release()
			for i := range 10 {
				if _, err := echo.Call(t.Context(), a, &i); err != nil {
					t.Errorf("behind the stall: %v", err)
				}
			}
			s.Stall()
			s.Stall()
			s.Release()
			s.Release()
			if _, err := echo.Call(t.Context(), a, &n); err != nil {
				t.Errorf("behind the second stall: %v", err)
			}
			s.Stall() // Close ends it
		})
	}
}

// A peer that crashes while it is only listened to is noticed at once.
func TestFaultsCrashAtOnce(t *testing.T) {
	sa, sb := jsonrpc.Pipe()
	defer sb.Close()
	s := Faults{In: Fault{CrashAfter: 1}}.Wrap(sa)
	if err := sb.WriteFrame([]byte("1")); err != nil {
		t.Fatal(err)
	}
	if f, err := s.ReadFrame(); err != nil || string(f.Data) != "1" {
		t.Error(string(f.Data), err)
	}
	for range 2 {
		if _, err := s.ReadFrame(); err != io.EOF {
			t.Error(err)
		}
	}
	if _, err := sb.ReadFrame(); err != io.EOF {
		t.Errorf("the other end: %v", err)
	}
	_ = s.Close()
}

// Close ends whatever goes on.
func TestFaultsClose(t *testing.T) {
	for _, tc := range []struct {
		name string
		f    Faults
		pre  func(s *Faulty)
	}{
		{"reading", Faults{}, nil},
		{"reading with lookahead", Faults{In: Fault{Reorder: 0.5}}, nil},
		{"stalled", Faults{}, (*Faulty).Stall},
		{"delayed", Faults{In: Fault{Delay: time.Hour}, Out: Fault{Delay: time.Hour}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sa, sb := jsonrpc.Pipe()
				defer sb.Close()
				s := tc.f.Wrap(sa)
				if tc.pre != nil {
					tc.pre(s)
				}
				if tc.name == "delayed" {
					_ = sb.WriteFrame([]byte("{}"))
				}
				over := make(chan error, 2)
				go func() {
					_, err := s.ReadFrame()
					over <- err
				}()
				writes := 1
				if tc.name == "stalled" || tc.name == "delayed" {
					writes = 2
					go func() { over <- s.WriteFrame([]byte("{}")) }()
				}
				synctest.Wait()
				select {
				case err := <-over:
					t.Fatalf("ended early: %v", err)
				default:
				}
				_ = s.Close()
				for range writes {
					if err := <-over; err == nil {
						t.Error("no error")
					}
				}
			})
		})
	}
	sa, sb := jsonrpc.Pipe()
	s := Faults{Out: Fault{Reorder: 1}}.Wrap(sa)
	if err := s.WriteFrame([]byte("held")); err != nil {
		t.Error(err)
	}
	_, _ = s.Close(), sb.Close()
}

// Frames too large are reported and the stream goes on.
func TestFaultsTooLarge(t *testing.T) {
	r, w := io.Pipe()
	inner := jsonrpc.NewLineStream(r, discard{})
	s := Faults{In: Fault{Reorder: 1}}.Wrap(tooLarge{inner, new(int)})
	go func() { _, _ = io.WriteString(w, "{\"a\":1}\n{\"b\":2}\n") }()
	var all []string
	for range 3 {
		f, err := s.ReadFrame()
		if err != nil {
			all = append(all, err.Error())
			continue
		}
		all = append(all, string(f.Data))
	}
	_, _ = s.Close(), w.Close()
	if d := cmp.Diff([]string{`{"a":1}`, "jsonrpc: frame too large", `{"b":2}`}, all); d != "" {
		t.Error(d)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

// tooLarge reports a frame that is too large before the second one.
type tooLarge struct {
	jsonrpc.Stream
	n *int
}

func (s tooLarge) ReadFrame() (jsonrpc.Frame, error) {
	if *s.n++; *s.n == 2 {
		return jsonrpc.Frame{}, jsonrpc.ErrFrameTooLarge
	}
	return s.Stream.ReadFrame()
}

// What is split and joined reaches a connection whole.
func TestSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ra, wb := io.Pipe()
		rb, wa := io.Pipe()
		var got []string
		mux := new(jsonrpc.Mux)
		text := jsonrpc.Notification[string]{Name: "_test/text"}
		text.Handle(mux, func(_ context.Context, s *string) error { got = append(got, *s); return nil })
		echo.Handle(mux, func(_ context.Context, n *int) (*int, error) { return n, nil })
		a := jsonrpc.NewConn(jsonrpc.NewLineStream(SplitReader(ra, 1), SplitWriter(wa, 2)), jsonrpc.Config{})
		b := jsonrpc.NewConn(jsonrpc.NewLineStream(SplitReader(rb, 3), SplitWriter(wb, 4)), jsonrpc.Config{Mux: mux})
		var want []string
		for i := range 300 {
			s := strings.Repeat("é🫒\n", i%40)
			want = append(want, s)
			if err := text.Notify(t.Context(), a, &s); err != nil {
				t.Fatal(err)
			}
		}
		n := 5
		if r, err := echo.Call(t.Context(), a, &n); err != nil || *r != 5 {
			t.Error(r, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		_, _ = a.Close(), b.Close()
		<-a.Done()
		<-b.Done()
	})
}

// Reads split what was written at once and join what was not.
func TestSplitPieces(t *testing.T) {
	sizes := func() (pieces []int) {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			s := SplitReader(r, 7)
			go func() {
				for range 50 {
					_, _ = w.Write(make([]byte, 100))
				}
				_ = w.Close()
			}()
			buf := make([]byte, 1<<10)
			for {
				n, err := s.Read(buf)
				if err != nil {
					if err != io.EOF {
						t.Error(err)
					}
					break
				}
				pieces = append(pieces, n)
			}
			_ = s.Close()
		})
		return pieces
	}
	pieces := sizes()
	sum := 0
	for _, n := range pieces {
		sum += n
	}
	if sum != 5000 || slices.Min(pieces) > 16 || slices.Max(pieces) <= 100 {
		t.Errorf("%d bytes in %v", sum, pieces)
	}
	if d := cmp.Diff(pieces, sizes()); d != "" {
		t.Errorf("the same seed: %s", d)
	}
	var log writes
	w := SplitWriter(&log, 1)
	if n, err := w.Write(make([]byte, 1000)); n != 1000 || err != nil || len(log) < 10 || slices.Max(log) > 64 {
		t.Errorf("%d, %v: %v", n, err, log)
	}
	log = nil
	if n, err := SplitWriter(failing1{}, 1).Write(make([]byte, 1000)); n != 1 || err == nil {
		t.Errorf("%d, %v", n, err)
	}
	_ = w.Close()
}

// What is not read stays bounded, and Close ends a reader that waits.
func TestSplitBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		s := SplitReader(r, 1)
		written := 0
		go func() {
			for {
				n, err := w.Write(make([]byte, 1000))
				written += n
				if err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if written > splitBuffer || written < splitBuffer/2 {
			t.Errorf("%d bytes were taken", written)
		}
		buf := make([]byte, 1<<20)
		for read := 0; read < 10*splitBuffer; {
			n, err := s.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			read += n
		}
		if n, err := s.Read(nil); n != 0 || err != nil {
			t.Error(n, err)
		}
		_ = s.Close()
		synctest.Wait()
		if _, err := SplitReader(r, 1).Read(buf); err == nil {
			t.Error("read from what is closed")
		}
		r2, w2 := io.Pipe()
		waiting := SplitReader(r2, 1)
		over := make(chan error)
		go func() { _, err := waiting.Read(buf); over <- err }()
		synctest.Wait()
		_ = waiting.Close()
		if err := <-over; err == nil {
			t.Error("no error")
		}
		_ = w2.Close()
	})
}

type writes []int

func (w *writes) Write(p []byte) (int, error) { *w = append(*w, len(p)); return len(p), nil }
func (w *writes) Close() error                { return nil }

type failing1 struct{}

func (failing1) Write([]byte) (int, error) { return 1, io.ErrShortWrite }
func (failing1) Close() error              { return nil }
