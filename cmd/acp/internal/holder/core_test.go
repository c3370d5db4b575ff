//go:build unix

package holder

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/internal/process"
)

// TestLease: the lease ends when it should, to the nanosecond.
func TestLease(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, l *pipeListener)
		want time.Duration
	}{
		{"nobody", func(*testing.T, *pipeListener) {}, 8 * time.Second},
		{"attached and silent", func(t *testing.T, l *pipeListener) {
			time.Sleep(3 * time.Second)
			dialRaw(t, l, 0)
		}, 11 * time.Second},
		{"any packet", func(t *testing.T, l *pipeListener) {
			g, _ := dialRaw(t, l, 0)
			for _, k := range []kind{kindRenew, kindStderr, kindAck} {
				time.Sleep(7 * time.Second)
				g.send(packet{kind: k})
			}
		}, 29 * time.Second},
		{"longer", func(t *testing.T, l *pipeListener) {
			g, _ := dialRaw(t, l, 0)
			time.Sleep(time.Second)
			g.send(packet{kind: kindRenew, number: 60_000})
			g.send(packet{kind: kindRenew})
		}, 61 * time.Second},
		{"longer, until somebody attaches", func(t *testing.T, l *pipeListener) {
			g, _ := dialRaw(t, l, 0)
			g.send(packet{kind: kindRenew, number: 60_000})
			_ = g.conn.Close()
			time.Sleep(10 * time.Second)
			dialRaw(t, l, 0)
		}, 18 * time.Second},
		{"too long", func(t *testing.T, l *pipeListener) {
			g, _ := dialRaw(t, l, 0)
			g.send(packet{kind: kindRenew, number: 1 << 63})
		}, MaxLease},
		{"a stranger does not count", func(t *testing.T, l *pipeListener) {
			c := l.dial()
			time.Sleep(4 * time.Second)
			_, _ = c.Write([]byte{'H', 0, 0, 0, 2, '{', '}'})
			_ = c.Close()
		}, 8 * time.Second},
		{"a gateway that is stuck does not count", func(t *testing.T, l *pipeListener) {
			g, _ := dialRaw(t, l, 0)
			_, _ = g.conn.Write([]byte{'F', 0, 0, 1})
		}, 8 * time.Second},
		{"attached by an Agent", func(t *testing.T, l *pipeListener) {
			a, err := greetHolder(l.dial(), testToken, State{})
			if err != nil {
				t.Fatal(err)
			}
			a.begin()
			time.Sleep(time.Hour + time.Second)
			_ = a.Close()
		}, time.Hour + 8*time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				f := newFake()
				_, l, done := held(t.Context(), Config{}, f)
				tt.do(t, l)
				<-f.dead
				if took := time.Since(start); took != tt.want {
					t.Errorf("it ends after %v, not %v", took, tt.want)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestStrangers: connections that do not show a token are few and short.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, l, done := held(ctx, Config{}, newFake())
		start := time.Now()
		for i := range 3 * maxStrangers {
			if c := l.dial(); c == nil {
				t.Fatal("it has ended")
			}
			if got, want := time.Since(start), helloGrace*time.Duration(i/maxStrangers); got != want {
				t.Errorf("connection %d after %v, not %v", i, got, want)
			}
			if i%maxStrangers == maxStrangers-1 {
				dialRaw(t, l, 0) // takes its turn, and begins a new lease
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestHostile: what breaks the rules ends its connection and nothing else.
func TestHostile(t *testing.T) {
	greeting := encode(hello{Version: version, Token: testToken})
	for name, tt := range map[string]struct {
		attach bool
		bytes  []byte
	}{
		"http":                    {false, []byte("GET / HTTP/1.1\r\n\r\n")},
		"zeros":                   {false, make([]byte, 100)},
		"another kind first":      {false, []byte{'F', 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 'x'}},
		"a hello that is huge":    {false, []byte{'H', 0xff, 0xff, 0xff, 0xff}},
		"a hello that is not":     {false, []byte{'H', 0, 0, 0, 1, 'x'}},
		"a second hello":          {true, append([]byte{'H', 0, 0, 0, byte(len(greeting))}, greeting...)},
		"a packet of holders":     {true, []byte{'W', 0, 0, 0, 0}},
		"a frame out of order":    {true, []byte{'F', 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2, 'x'}},
		"a frame of two lines":    {true, []byte{'F', 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 1, 'x', '\n'}},
		"an empty frame":          {true, []byte{'F', 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1}},
		"a frame that is huge":    {true, []byte{'F', 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1}},
		"a frame without number":  {true, []byte{'F', 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}},
		"an early acknowledgment": {true, []byte{'A', 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				f := newFake()
				_, l, done := held(ctx, Config{}, f)
				g := &raw{t: t}
				if tt.attach {
					g, _ = dialRaw(t, l, 0)
				} else {
					g.conn = l.dial()
					g.r = bufio.NewReader(g.conn)
				}
				go func() { _, _ = g.conn.Write(tt.bytes) }()
				g.ends()
				h, w := dialRaw(t, l, 0)
				if w.Accepted != 0 || w.Last != 0 {
					t.Errorf("%+v", w)
				}
				h.send(packet{kind: kindFrame, number: 1, data: []byte("first")})
				if got, err := bufio.NewReader(f.hears).ReadString('\n'); got != "first\n" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
				if p := h.read(); p.kind != kindWritten || p.number != 1 {
					t.Errorf("%+v", p)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestVersion: a gateway of another version is refused, and learns why.
func TestVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l, done := held(t.Context(), Config{}, newFake())
		g := &raw{t: t, conn: l.dial()}
		g.r = bufio.NewReader(g.conn)
		g.send(packet{kind: kindHello, data: encode(hello{Version: 2, Token: testToken})})
		if p := g.read(); p.kind != kindRefused || !strings.Contains(string(p.data), `"version"`) {
			t.Errorf("%q %s", byte(p.kind), p.data)
		}
		g.ends()
		<-done
	})
}

// TestBoundOfTheRing: the holder keeps what it should and no more, and sends no more than a window.
func TestBoundOfTheRing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := newFake()
		c, l, done := held(ctx, Config{Ring: 3 * window, Lease: MaxLease}, f)
		text := strings.Repeat("x", 10_000)
		const all = 1000
		go func() {
			for i := range all {
				_, _ = fmt.Fprintf(f.says, "%06d%s\n", i, text)
			}
			_ = f.end(ctx)
		}()
		g, _ := dialRaw(t, l, 0)
		for n := uint64(0); n < all; {
			first := n
			for cost := 0; cost < window && n < all; n++ {
				p := g.read()
				if p.kind != kindFrame || p.number != n+1 || string(p.data[:6]) != fmt.Sprintf("%06d", n) {
					t.Fatalf("%q %d %.20q", byte(p.kind), p.number, p.data)
				}
				cost += len(p.data) + eventCost
			}
			synctest.Wait() // everything that can happen has
			c.mu.Lock()
			held, sent, last := c.held, c.gateway.sent, c.last
			c.mu.Unlock()
			if held > 3*window+10_006+eventCost || n < all && sent != n {
				t.Fatalf("%d bytes are held; %d events are sent and %d read", held, sent, n)
			}
			if last < all && held < 3*window {
				t.Fatalf("only %d bytes are held", held)
			}
			if n-first > 5 { // the acknowledgement of a part gives room for that part
				g.send(packet{kind: kindAck, number: first + 2})
				for range 2 {
					if n < all {
						if p := g.read(); p.number != n+1 {
							t.Fatalf("event %d after %d", p.number, n)
						}
						n++
					}
				}
			}
			g.send(packet{kind: kindAck, number: n})
		}
		if p := g.read(); p.kind != kindExit || p.number != all+1 {
			t.Errorf("%q %d", byte(p.kind), p.number)
		}
		g.send(packet{kind: kindAck, number: all + 1})
		if p := g.read(); p.kind != kindGone {
			t.Errorf("%q", byte(p.kind))
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		cancel()
	})
}

// TestLargeEvents: an event that is larger than the ring and the window passes, one at a time.
func TestLargeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c, l, done := held(t.Context(), Config{Ring: 1000}, f)
		text := strings.Repeat("x", 2*window)
		go func() {
			for range 3 {
				_, _ = io.WriteString(f.says, text+"\n")
			}
		}()
		g, _ := dialRaw(t, l, 0)
		for n := range uint64(3) {
			if p := g.read(); p.number != n+1 || string(p.data) != text {
				t.Fatalf("%q %d, %d bytes", byte(p.kind), p.number, len(p.data))
			}
			synctest.Wait()
			c.mu.Lock()
			last := c.last
			c.mu.Unlock()
			if last != n+1 {
				t.Errorf("%d events are kept beyond the ring", last-n)
			}
			g.send(packet{kind: kindAck, number: n + 1})
		}
		for n := range uint64(3) {
			g.send(packet{kind: kindFrame, number: n + 1, data: []byte(text)})
			if heard, err := io.ReadAll(io.LimitReader(f.hears, int64(len(text)+1))); err != nil || string(heard) != text+"\n" {
				t.Errorf("%d bytes arrive, %v", len(heard), err)
			}
			if p := g.read(); p.kind != kindWritten || p.number != n+1 {
				t.Errorf("%q %d", byte(p.kind), p.number)
			}
		}
		g.send(packet{kind: kindStop})
		for p := g.read(); p.kind != kindGone; p = g.read() {
			if p.kind != kindExit && p.kind != kindClosed {
				t.Errorf("%q", byte(p.kind))
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestLargeAfterSmall: a large event does not wait for the acknowledgement of a small one, which the gateway sends with
// what it writes later.
func TestLargeAfterSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		_, l, done := held(t.Context(), Config{}, f)
		text := strings.Repeat("x", 8<<20)
		go func() { _, _ = io.WriteString(f.says, "small\n"+text+"\nmore\n") }()
		g, _ := dialRaw(t, l, 0)
		if p := g.read(); p.number != 1 || string(p.data) != "small" {
			t.Fatalf("%d %.20q", p.number, p.data)
		}
		if p := g.read(); p.number != 2 || string(p.data) != text {
			t.Fatalf("%d, %d bytes", p.number, len(p.data))
		}
		g.send(packet{kind: kindAck, number: 2}) // beyond the window nothing follows before
		if p := g.read(); p.number != 3 || string(p.data) != "more" {
			t.Fatalf("%d %.20q", p.number, p.data)
		}
		g.send(packet{kind: kindStop})
		for p := g.read(); p.kind != kindGone; p = g.read() {
			if p.kind != kindExit && p.kind != kindClosed {
				t.Errorf("%q", byte(p.kind))
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestQueueBound: a gateway that sends more than the window while the agent does not read is cut off. What
// was accepted arrives.
func TestQueueBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := newFake()
		_, l, done := held(ctx, Config{Lease: MaxLease}, f)
		g, _ := dialRaw(t, l, 0)
		sent := uint64(0)
		w := bufio.NewWriter(g.conn)
		for errors.Join(writePacket(w, packet{kind: kindFrame, number: sent + 1, data: []byte("x")}), w.Flush()) == nil {
			if sent++; sent > window {
				t.Fatal("there is no bound")
			}
		}
		_, welcome := dialRaw(t, l, 0)
		if n := welcome.Accepted; n != window/(1+eventCost) || welcome.Written != 0 || welcome.Queued != int(n)*(1+eventCost) {
			t.Errorf("%d frames were sent: %+v", sent, welcome)
		}
		got, err := io.ReadAll(io.LimitReader(f.hears, int64(2*welcome.Accepted)))
		if err != nil || string(got) != strings.Repeat("x\n", int(welcome.Accepted)) {
			t.Errorf("%d bytes arrived, %v", len(got), err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestTwice: a frame that is sent again after it was accepted reaches the agent once.
func TestTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := newFake()
		_, l, done := held(ctx, Config{}, f)
		g, _ := dialRaw(t, l, 0)
		heard := bufio.NewReader(f.hears)
		for _, n := range []uint64{1, 1, 2, 1, 2, 3} {
			g.send(packet{kind: kindFrame, number: n, data: fmt.Append(nil, n)})
		}
		for _, want := range []string{"1\n", "2\n", "3\n"} {
			if got, err := heard.ReadString('\n'); got != want || err != nil {
				t.Errorf("%q, want %q: %v", got, want, err)
			}
		}
		cancel()
		<-done
	})
}

// TestOutputOutlivesAgent: what something that left the agent's tree holds open is read for a while after
// the end of the agent. The time in which the ring was full does not count.
func TestOutputOutlivesAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.exit = &process.ExitError{Code: 7, Stderr: strings.Repeat("e", 2*exitStderr)}
		_, l, done := held(t.Context(), Config{Ring: 100, Lease: MaxLease}, f)
		g, _ := dialRaw(t, l, 0)
		_, _ = io.WriteString(f.says, "one is longer than the others, much longer than that\n")
		go func() { _, _ = io.WriteString(f.says, "two\nthree") }() // which nobody reads yet
		f.once.Do(func() { close(f.dead) })                         // but its output stays open
		time.Sleep(10 * drainGrace)
		for n, want := range []string{"one is longer than the others, much longer than that", "two", "three"} {
			if p := g.read(); string(p.data) != want || p.number != uint64(n+1) {
				t.Errorf("event %d is %q, want %q", p.number, p.data, want)
			}
			g.send(packet{kind: kindAck, number: uint64(n + 1)})
		}
		p := g.read()
		var e ending
		if err := json.Unmarshal(p.data, &e); err != nil || p.kind != kindExit || e.Code != 7 || len(e.Stderr) != exitStderr {
			t.Errorf("%q %+v, %v", byte(p.kind), e, err)
		}
		g.send(packet{kind: kindAck, number: 4})
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestStubborn: an agent that the system does not let end is an error, and nothing waits for it.
func TestStubborn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.stubborn = true
		_, l, done := held(t.Context(), Config{}, f)
		a, err := greetHolder(l.dial(), testToken, State{})
		if err != nil {
			t.Fatal(err)
		}
		a.begin()
		if err := a.Stop(t.Context()); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
		if err := <-done; err == nil {
			t.Error("no error")
		}
	})
}

// TestEnding: while the agent is being ended nobody can attach.
func TestEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c, l, done := held(t.Context(), Config{}, f)
		c.mu.Lock()
		c.ending = true
		c.mu.Unlock()
		if _, err := greetHolder(l.dial(), testToken, State{}); !errors.Is(err, ErrEnding) {
			t.Error(err)
		}
		<-done
	})
}

// TestReadyLine: Main says whether there is a holder, once.
func TestReadyLine(t *testing.T) {
	for name, in := range map[string]string{
		"not JSON":  "{",
		"too large": strings.Repeat(" ", maxConfig+1),
		"nothing":   "{}",
	} {
		var out bytes.Buffer
		err := Main(t.Context(), strings.NewReader(in), &out)
		var r report
		if e := json.Unmarshal(out.Bytes(), &r); err == nil || e != nil || r.Error != err.Error() || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
			t.Errorf("%s: %v, %q", name, err, &out)
		}
	}
	if !errors.Is(startError(`{"error":"x","missing":true}`, nil), os.ErrNotExist) {
		t.Error("a missing program")
	}
}

// TestLateFrame: once another gateway has attached, what the one before had sent and the holder has not
// read does not count. The other one was told so, and sends it again.
func TestLateFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := newFake()
		_, l, done := held(ctx, Config{}, f)
		old, _ := dialRaw(t, l, 0)
		g, w := dialRaw(t, l, 0)
		if w.Accepted != 0 {
			t.Errorf("%+v", w)
		}
		go func() {
			b := bufio.NewWriter(old.conn)
			_ = errors.Join(writePacket(b, packet{kind: kindFrame, number: 1, data: []byte("old")}), b.Flush())
		}()
		synctest.Wait()
		if p := old.read(); p.kind != kindTaken {
			t.Errorf("%q", byte(p.kind))
		}
		old.ends()
		g.send(packet{kind: kindFrame, number: 1, data: []byte("new")})
		if got, err := bufio.NewReader(f.hears).ReadString('\n'); got != "new\n" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		cancel()
		<-done
	})
}

// TestLateOutput: what is written within the grace after the end of the agent is an event, what comes
// later is not.
func TestLateOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		_, l, done := held(t.Context(), Config{Lease: MaxLease}, f)
		g, _ := dialRaw(t, l, 0)
		f.once.Do(func() { close(f.dead) })
		time.Sleep(drainGrace - 1)
		_, _ = io.WriteString(f.says, "late\n")
		if p := g.read(); string(p.data) != "late" {
			t.Errorf("%q %q", byte(p.kind), p.data)
		}
		start := time.Now()
		if p := g.read(); p.kind != kindExit || time.Since(start) > drainGrace {
			t.Errorf("%q after %v", byte(p.kind), time.Since(start))
		}
		g.send(packet{kind: kindAck, number: 2})
		<-done
	})
}

// TestWriteWindow: WriteFrame waits exactly when the holder would not take more, also for what a gateway
// before has sent, and continues when the agent has read it.
func TestWriteWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := newFake()
		_, l, done := held(ctx, Config{}, f)
		text := strings.Repeat("x", 1000)
		const fit = window / (1000 + eventCost)
		attach := func() *Agent {
			a, err := greetHolder(l.dial(), testToken, State{})
			if err != nil {
				t.Fatal(err)
			}
			a.begin()
			return a
		}
		write := func(a *Agent, n int) <-chan error {
			failed := make(chan error, 1)
			go func() {
				var err error
				for i := 0; i < n && err == nil; i++ {
					err = a.WriteFrame([]byte(text))
				}
				failed <- err
			}()
			synctest.Wait()
			return failed
		}
		waits := func(failed <-chan error) {
			t.Helper()
			select {
			case err := <-failed:
				t.Fatalf("it does not wait: %v", err)
			default:
			}
		}
		a := attach()
		if err := <-write(a, fit); err != nil {
			t.Fatal(err)
		}
		failed := write(a, 1)
		waits(failed)
		_ = a.Close()
		if err := <-failed; !errors.Is(err, os.ErrClosed) || a.Sent() != fit {
			t.Errorf("%d frames, %v", a.Sent(), err)
		}
		b := attach()
		if b.Sent() != fit || b.Written() != 0 {
			t.Errorf("%d sent, %d written", b.Sent(), b.Written())
		}
		failed = write(b, 2*fit)
		waits(failed)
		if b.Sent() != fit {
			t.Errorf("%d frames are sent beyond the window", b.Sent()-fit)
		}
		if n, err := io.CopyN(io.Discard, f.hears, 3*fit*1001); err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		if err := <-failed; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if b.Sent() != 3*fit || b.Written() != 3*fit {
			t.Errorf("%d sent, %d written", b.Sent(), b.Written())
		}
		_ = b.Close()
		cancel()
		<-done
	})
}
