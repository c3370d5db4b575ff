package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestEOFGrace: at EOF handlers in flight get a grace, and their answers still
// go out (§1 "EOF", S44, S46). Half-closed peers still read.
func TestEOFGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
			switch n.Text {
			case "quick":
				time.Sleep(DefaultGrace / 2)
				if ctx.Err() != nil {
					t.Error("cancelled within the grace")
				}
				return &reply{"done"}, nil
			default:
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		p := newRawPeer(Config{Mux: &mux})
		for i, text := range []string{"quick", "slow"} {
			p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s","text":%q}}`+"\n", i, text))
		}
		p.write(notFoundReq("9")) // unterminated: S4
		start := time.Now()
		_ = p.in.Close()
		<-p.conn.Done()
		if d := time.Since(start); d != DefaultGrace {
			t.Error("ended after", d)
		}
		got := p.take()
		slices.Sort(got)
		want := []string{`{"jsonrpc":"2.0","id":0,"result":{"text":"done"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error: the connection is closing"}}`, notFound("9", "session/bogus")}
		if !slices.Equal(got, want) || !p.eof {
			t.Errorf("%q, eof %v", got, p.eof)
		}
		if err := p.conn.Wait(); err != nil {
			t.Error(err)
		}
		if err := p.conn.Notify(bg, "x", nil); !errors.Is(err, ErrClosed) || !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		p.close()
	})
}

// TestEOFDrains: queued notifications are handled after EOF however long that
// takes in all, as long as each comes to its end.
func TestEOFDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		seen := 0
		update.Handle(&mux, func(ctx context.Context, _ *note) error {
			time.Sleep(DefaultGrace * 9 / 10)
			if ctx.Err() != nil {
				t.Error("cancelled")
			}
			seen++
			return nil
		})
		p := newRawPeer(Config{Mux: &mux})
		p.write(strings.Repeat(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`+"\n", 50))
		p.close()
		if seen != 50 {
			t.Errorf("%d of 50 were handled", seen)
		}
	})
}

// TestEOFFailsInOrder: a call without a response fails only after the
// notifications that arrived in its lane.
func TestEOFFailsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		var handled atomic.Int64
		update.Handle(&mux, func(context.Context, *note) error {
			time.Sleep(DefaultGrace / 2)
			handled.Add(1)
			return nil
		})
		p := newRawPeer(Config{Mux: &mux, Lane: laneOf})
		var wg sync.WaitGroup
		for session, want := range map[string]int64{"s": 2, "other": 0} {
			wg.Go(func() {
				_, err := prompt.Call(bg, p.conn, &note{Session: session})
				if !errors.Is(err, io.EOF) || handled.Load() != want {
					t.Errorf("%s: %v after %d of %d", session, err, handled.Load(), want)
				}
			})
		}
		p.take()
		p.write(strings.Repeat(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`+"\n", 2))
		p.close()
		wg.Wait()
	})
}

// TestStuckHandlers: handlers that ignore everything do not keep a connection
// from ending, by EOF or by Close; what is queued behind them is dropped and
// reported, and calls whose responses are queued behind them return.
func TestStuckHandlers(t *testing.T) {
	for _, how := range []string{"eof", "close", "eof then close"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mux Mux
				var ev events
				release := make(chan struct{})
				update.Handle(&mux, func(context.Context, *note) error { <-release; return nil })
				prompt.Handle(&mux, func(context.Context, *note) (*reply, error) { <-release; return nil, nil })
				p := newRawPeer(Config{Mux: &mux, Lane: laneOf, Settings: Settings{Diagnose: ev.add, MaxRequests: 1}})
				errs := make(chan error)
				go func() {
					_, err := prompt.Call(bg, p.conn, &note{Session: "s"})
					errs <- err
				}()
				p.take()
				up := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}` + "\n"
				req := `{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q}}` + "\n"
				p.write(fmt.Sprintf(req, 1, "r") + fmt.Sprintf(req, 2, "r") + up + up + fmt.Sprintf(req, 3, "s") + `{"jsonrpc":"2.0","id":0,"result":{}}` + "\n")
				synctest.Wait()
				start := time.Now()
				if how != "close" {
					_ = p.in.Close()
					synctest.Wait()
				}
				if how != "eof" {
					_ = p.conn.Close()
				}
				if err := <-errs; err != nil {
					t.Error(err)
				}
				<-p.conn.Done()
				if d := time.Since(start); d > 4*DefaultGrace {
					t.Error("ended after", d)
				}
				if ev.count(EventAbandoned) != 1 || ev.count(EventDiscarded) != 1 {
					t.Error(ev.all)
				}
				close(release)
				_ = p.in.Close()
				_ = p.out.Close()
			})
		})
	}
}

// TestCloseInHandler: Close inside handlers returns, and the handler's answer
// still goes out.
func TestCloseInHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		prompt.Handle(&mux, func(ctx context.Context, _ *note) (*reply, error) {
			start := time.Now()
			c := RequestFrom(ctx).Conn()
			for range 2 {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
			if d := time.Since(start); d != 0 {
				t.Error("Close took", d)
			}
			if err := c.Call(ctx, "x", nil, nil); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			return &reply{"bye"}, nil
		})
		p := newRawPeer(Config{Mux: &mux})
		p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}` + "\n")
		<-p.conn.Done()
		if got := p.take(); len(got) != 1 || !strings.Contains(got[0], "bye") {
			t.Error(got)
		}
		p.close()
		if err := p.conn.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestCloseFlushes: what was sent before Close is written before it returns,
// within its bound when the peer does not read.
func TestCloseFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(Config{})
		for i := range int64(300) {
			if err := update.Notify(bg, p.conn, &note{N: i}); err != nil {
				t.Fatal(err)
			}
		}
		_ = p.conn.Close()
		if got := p.take(); len(got) != 300 {
			t.Errorf("%d of 300 were written", len(got))
		}
		p.close()

		p = rawPeerStream(Config{}, NewLineStream)
		if err := update.Notify(bg, p.conn, &note{}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_ = p.conn.Close()
		if d := time.Since(start); d != defaultFlushTimeout {
			t.Error("Close took", d)
		}
		p.close()
	})
}

// TestCloseFailsCalls: calls that wait, for a response or for room, return.
func TestCloseFailsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rawPeerStream(Config{flushTimeout: time.Second}, NewLineStream)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := prompt.Call(bg, p.conn, &note{Session: strings.Repeat("s", 20<<10)}); !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		_ = p.conn.Close()
		wg.Wait()
		if err := p.conn.Err(); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		p.close()
	})
}

// TestEndErrors: what Wait and calls return for each ending.
func TestEndErrors(t *testing.T) {
	broken := errors.New("cable cut")
	for _, tt := range []struct {
		name string
		end  func(p *rawPeer)
		wait error
		call error
	}{
		{"eof", func(p *rawPeer) { _ = p.in.Close() }, nil, io.EOF},
		{"reset", func(p *rawPeer) { _ = p.in.CloseWithError(broken) }, broken, broken},
		{"cut frame", func(p *rawPeer) { p.write("Content-Length: 9\r\n\r\n{"); _ = p.in.Close() }, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
		{"write error", func(p *rawPeer) { _ = p.out.CloseWithError(broken); _ = p.conn.Notify(bg, "x", nil) }, broken, broken},
		{"write error, then eof", func(p *rawPeer) {
			_ = p.out.CloseWithError(broken)
			_ = p.conn.Notify(bg, "x", nil)
			synctest.Wait()
			_ = p.in.Close()
		}, broken, io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stream := NewLineStream
				if tt.name == "cut frame" {
					stream = newHeaderStream
				}
				p := rawPeerStream(Config{}, stream)
				go p.readLines()
				errs := make(chan error)
				go func() {
					_, err := prompt.Call(bg, p.conn, &note{})
					errs <- err
				}()
				synctest.Wait()
				tt.end(p)
				if err := <-errs; !errors.Is(err, tt.call) || !errors.Is(err, ErrClosed) {
					t.Errorf("call: %v", err)
				}
				if err := p.conn.Wait(); !errors.Is(err, tt.wait) || (err == nil) != (tt.wait == nil) {
					t.Errorf("wait: %v", err)
				}
				if err := p.conn.Call(bg, "x", nil, nil); !errors.Is(err, ErrClosed) {
					t.Errorf("later call: %v", err)
				}
				if err := p.conn.Notify(bg, "x", nil); !errors.Is(err, ErrClosed) {
					t.Errorf("later notification: %v", err)
				}
				p.close()
			})
		})
	}
}

// TestWriteErrorKeepsReading: what the peer sent before it stopped reading is
// not lost.
func TestWriteErrorKeepsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(Config{})
		errs := make(chan error)
		go func() {
			_, err := prompt.Call(bg, p.conn, &note{})
			errs <- err
		}()
		p.take()
		_ = p.out.Close()
		_ = p.conn.Notify(bg, "x", nil)
		synctest.Wait()
		p.write(`{"jsonrpc":"2.0","id":0,"result":{}}` + "\n")
		if err := <-errs; err != nil {
			t.Error(err)
		}
		p.close()
	})
}

// TestEndings ends busy connections in every order, again and again, and
// checks that everybody returns and nothing is left, goroutine or file.
func TestEndings(t *testing.T) {
	files := openFiles(t)
	for i := range times(1000, 100) {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		var mux Mux
		prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
			c := RequestFrom(ctx).Conn()
			for j := range int64(3) {
				_ = update.Notify(ctx, c, &note{Session: n.Session, N: j})
			}
			if n.N == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, nil
		})
		update.Handle(&mux, func(ctx context.Context, n *note) error {
			if n.N == 2 {
				_, _ = prompt.Call(ctx, RequestFrom(ctx).Conn(), &note{Session: n.Session, N: 3})
			}
			return nil
		})
		cfg := Config{Mux: &mux, Lane: laneOf, Settings: Settings{Grace: time.Millisecond}, flushTimeout: 10 * time.Millisecond}
		r1, w1, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r2, w2, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		sa, sb := NewLineStream(r1, w2), NewDetectStream(r2, w1)
		a, b := NewConn(sa, cfg), NewConn(sb, cfg)
		ctx, stop := context.WithCancel(bg)
		var wg sync.WaitGroup
		for k := range 4 {
			wg.Go(func() {
				_, _ = prompt.Call(ctx, []*Conn{a, b}[k%2], &note{Session: fmt.Sprint(k), N: int64(k % 3)})
			})
		}
		ends := []func(){
			func() { _ = a.Close() },
			func() { _ = b.Close() },
			func() { _ = r1.Close() },
			func() { _ = w1.Close() },
			func() { _ = r2.Close() },
			func() { _ = w2.Close() },
			stop,
			func() { _, _ = w1.Write([]byte(`{"jsonrpc":"2.0","method":"session/upd`)) },
		}
		rng.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
		for _, end := range ends[:1+rng.IntN(len(ends))] {
			for range rng.IntN(20) {
				runtime.Gosched()
			}
			end()
		}
		for _, c := range []*Conn{a, b} {
			_ = c.Close()
			<-c.Done()
			if err := c.Wait(); err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Error(err)
			}
			c.mu.Lock()
			if len(c.calls.pending) != 0 {
				t.Errorf("%d calls are left", len(c.calls.pending))
			}
			c.mu.Unlock()
		}
		wg.Wait()
		stop()
	}
	noLeaks(t)
	if n := openFiles(t); n > files {
		t.Errorf("%d files are open, %d before", n, files)
	}
}

// openFiles counts descriptors; 0 where that is not possible.
func openFiles(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/dev/fd")
	if err != nil {
		return 0
	}
	return len(d)
}

// TestIdle: what an idle connection costs (≤ 48 kB and ≤ 3 goroutines a side).
func TestIdle(t *testing.T) {
	const n = 100
	before := runtime.NumGoroutine()
	base := heap()
	var conns []*Conn
	for range n {
		a, b := filePair(t, Config{Mux: echoMux(), Lane: laneOf}, Config{Mux: echoMux(), Lane: laneOf})
		conns = append(conns, a, b)
		if err := update.Notify(bg, a, &note{Session: "s"}); err != nil {
			t.Fatal(err)
		}
		if _, err := prompt.Call(bg, b, &note{Session: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	perSide := (heap() - base) / (2 * n)
	t.Logf("%d bytes a side", perSide)
	if perSide > 48<<10 {
		t.Errorf("an idle side holds %d bytes", perSide)
	}
	if g := runtime.NumGoroutine() - before; g > 3*2*n {
		t.Errorf("%d goroutines for %d sides", g, 2*n)
	}
	for i := 0; i < len(conns); i += 2 {
		closeBoth(conns[i], conns[i+1])
	}
	noLeaks(t)
}

// TestBlockedReaderEnds: a reader that waits for room does not keep the
// connection from ending.
func TestBlockedReaderEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		var seen atomic.Int64
		update.Handle(&mux, func(ctx context.Context, _ *note) error {
			seen.Add(1)
			<-ctx.Done()
			return nil
		})
		p := newRawPeer(Config{Mux: &mux, Settings: Settings{MaxQueued: 4 << 10}})
		go p.write(strings.Repeat(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`+"\n", 1000))
		synctest.Wait()
		_ = p.conn.Close()
		<-p.conn.Done()
		if n := seen.Load(); n == 0 || n == 1000 {
			t.Error(n)
		}
		p.close()
	})
}

// TestLateAnswer: an answer that can no longer be written does not make an error
// of a clean EOF (S46).
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		prompt.Handle(&mux, func(context.Context, *note) (*reply, error) {
			time.Sleep(DefaultGrace / 2)
			return nil, nil
		})
		p := newRawPeer(Config{Mux: &mux})
		p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}` + "\n")
		synctest.Wait()
		_ = p.in.Close()
		_ = p.out.Close()
		if err := p.conn.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestErrAfterWriteError: Err tells from the first failed write on.
func TestErrAfterWriteError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("cable cut")
		p := newRawPeer(Config{})
		_ = p.out.CloseWithError(broken)
		if err := p.conn.Err(); err != nil {
			t.Error(err)
		}
		_ = p.conn.Notify(bg, "x", nil)
		synctest.Wait()
		if err := p.conn.Err(); !errors.Is(err, ErrClosed) || !errors.Is(err, broken) {
			t.Error(err)
		}
		p.close()
	})
}

// stuck is a stream that nothing ends.
type stuck struct {
	release chan struct{}
	close   bool // Close is stuck, too
}

func (s stuck) ReadFrame() (Frame, error) { <-s.release; return Frame{}, io.EOF }
func (s stuck) WriteFrame([]byte) error   { <-s.release; return nil }
func (s stuck) Close() error {
	if s.close {
		<-s.release
	}
	return nil
}

// TestStuckStream: the connection ends in bounded time whatever its stream does.
func TestStuckStream(t *testing.T) {
	for name, tt := range map[string]struct{ write, close bool }{
		"read": {}, "read and write": {write: true}, "close": {close: true}, "all": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stuck{make(chan struct{}), tt.close}
				c := NewConn(s, Config{})
				if tt.write {
					_ = c.Notify(bg, "x", nil)
				}
				synctest.Wait() // all are stuck
				start := time.Now()
				_ = c.Close()
				if d := time.Since(start); d > defaultFlushTimeout+3*DefaultGrace {
					t.Error("Close took", d)
				}
				if err := c.Wait(); err != nil {
					t.Error(err)
				}
				close(s.release)
			})
		})
	}
}

// TestAnswersAreNotAbandoned: handlers that have returned, and only wait for
// their answers to be taken, are not reported as stuck.
func TestAnswersAreNotAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		prompt.Handle(&mux, func(context.Context, *note) (*reply, error) { return &reply{strings.Repeat("x", 1<<20)}, nil })
		var ev events
		p := rawPeerStream(Config{Mux: &mux, Settings: Settings{Diagnose: ev.add}}, NewLineStream) // nobody reads
		for i := range 5 {
			p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s"}}`+"\n", i))
		}
		synctest.Wait()
		p.conn.mu.Lock()
		if p.conn.work.answering == 0 {
			t.Error("no answer waits")
		}
		p.conn.mu.Unlock()
		_ = p.conn.Close()
		p.close()
		if n := ev.count(EventAbandoned); n != 0 {
			t.Errorf("%d reports", n)
		}
	})
}
