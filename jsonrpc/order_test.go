package jsonrpc

import (
	"bufio"
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
	"testing"
	"testing/synctest"
	"time"
)

// TestOrder sends 200 chunks interleaved over 8 lanes, then the 8 responses,
// again and again: each lane's chunks are handled in order, one at a time, and
// no response is seen before its chunks (§1 "Order"; S17 is what not to do).
func TestOrder(t *testing.T) {
	const lanes, chunks = 8, 200
	type session struct {
		seen, busy atomic.Int64
	}
	var sessions [lanes]session
	index := func(s string) int { return int(s[0] - '0') }

	var clientMux Mux
	update.Handle(&clientMux, func(_ context.Context, n *note) error {
		s := &sessions[index(n.Session)]
		if s.busy.Add(1) != 1 {
			t.Error("two handlers of a lane at once")
		}
		if n.N%7 == 0 {
			runtime.Gosched()
		}
		if got := s.seen.Load(); got != n.N {
			t.Errorf("lane %s: chunk %d after %d", n.Session, n.N, got)
		}
		s.busy.Add(-1)
		s.seen.Add(1)
		return nil
	})
	var agentMux Mux
	var arrived sync.WaitGroup // all prompts of a run
	var gate atomic.Pointer[chan struct{}]
	prompt.Handle(&agentMux, func(_ context.Context, n *note) (*reply, error) {
		g := *gate.Load()
		arrived.Done()
		<-g
		return nil, nil
	})

	for name, mk := range map[string]func() (*Conn, *Conn){
		"memory": func() (*Conn, *Conn) {
			return pair(Config{Mux: &agentMux, Lane: laneOf}, Config{Mux: &clientMux, Lane: laneOf})
		},
		"pipes": func() (*Conn, *Conn) {
			return filePair(t, Config{Mux: &agentMux, Lane: laneOf}, Config{Mux: &clientMux, Lane: laneOf})
		},
	} {
		t.Run(name, func(t *testing.T) {
			agent, client := mk()
			defer closeBoth(agent, client)
			for range times(500, 50) {
				g := make(chan struct{})
				gate.Store(&g)
				arrived.Add(lanes)
				var answered sync.WaitGroup
				for i := range lanes {
					sessions[i].seen.Store(0)
					answered.Go(func() {
						if _, err := prompt.Call(bg, client, &note{Session: fmt.Sprint(i)}); err != nil {
							t.Error(err)
						}
						if n := sessions[i].seen.Load(); n != chunks/lanes {
							t.Errorf("lane %d: response after %d chunks", i, n)
						}
					})
				}
				arrived.Wait()
				for n := range chunks {
					if err := update.Notify(bg, agent, &note{Session: fmt.Sprint(n % lanes), N: int64(n / lanes)}); err != nil {
						t.Fatal(err)
					}
				}
				close(g)
				answered.Wait()
				if t.Failed() {
					return
				}
			}
		})
	}
	noLeaks(t)
}

// TestAnswerAndExit: a peer that answers and exits at once loses nothing (§1
// "A response that arrived wins over EOF").
func TestAnswerAndExit(t *testing.T) {
	for i := range times(10_000, 500) {
		r1, w1, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r2, w2, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = bufio.NewReader(r2).ReadSlice('\n')
			_, _ = io.WriteString(w1, strings.Repeat(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`+"\n", 5)+
				`{"jsonrpc":"2.0","id":0,"result":{"text":"bye"}}`+"\n")
			_ = r2.Close()
			_ = w1.Close()
		}()
		var mux Mux
		seen := 0
		update.Handle(&mux, func(context.Context, *note) error {
			if i%3 == 0 {
				runtime.Gosched()
			}
			seen++
			return nil
		})
		c := NewConn(NewLineStream(r1, w2), Config{Mux: &mux, Lane: laneOf})
		r, err := prompt.Call(bg, c, &note{Session: "s"})
		if err != nil || r.Text != "bye" || seen != 5 {
			t.Fatalf("run %d: %v %v, %d updates", i, r, err, seen)
		}
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
		if _, err := prompt.Call(bg, c, &note{Session: "s"}); !errors.Is(err, io.EOF) || !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
	}
	noLeaks(t)
}

// TestLanesAreIndependent: a stuck handler holds up its own lane only, and what
// is queued behind it runs afterwards, in order.
func TestLanesAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		release := make(chan struct{})
		var log []string
		var mu sync.Mutex
		add := func(s string) {
			mu.Lock()
			log = append(log, s)
			mu.Unlock()
		}
		update.Handle(&mux, func(_ context.Context, n *note) error {
			if n.Text == "block" {
				<-release
			}
			add(n.Session + n.Text)
			return nil
		})
		prompt.Handle(&mux, func(_ context.Context, n *note) (*reply, error) {
			add(n.Session + " prompt")
			return nil, nil
		})
		p := newRawPeer(Config{Mux: &mux, Lane: laneOf})
		defer p.close()
		up := func(s, text string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"text":%q}}`+"\n", s, text)
		}
		req := func(id int, s string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q}}`+"\n", id, s)
		}
		answered := make(chan struct{})
		go func() {
			_, _ = prompt.Call(bg, p.conn, &note{Session: "a"})
			add("a response")
			close(answered)
		}()
		p.take()
		p.write(up("a", "block") + up("a", " next") + `{"jsonrpc":"2.0","id":0,"result":{}}` + "\n" + req(1, "a") + up("b", " update") + req(2, "b"))
		if got := p.take(); len(got) != 1 || !strings.Contains(got[0], `"id":2`) {
			t.Errorf("before the release: %q", got)
		}
		close(release)
		if got := p.take(); len(got) != 1 || !strings.Contains(got[0], `"id":1`) {
			t.Errorf("after the release: %q", got)
		}
		<-answered
		got := strings.Join(log, ",")
		if !strings.HasPrefix(got, "b update,b prompt,ablock,a next,") || !strings.Contains(got, "a response") || !strings.Contains(got, "a prompt") {
			t.Error(got)
		}
		if p.conn.Err() != nil || len(p.conn.work.lanes) != 0 {
			t.Error("lanes are left", p.conn.Err(), p.conn.work.lanes)
		}
	})
}

// TestReentrancy: calls inside a notification handler, however deep, and the
// requests the peer needs answered for them.
func TestReentrancy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clientMux, agentMux Mux
		ask := Method[note, reply]{"ask"}
		back := Method[note, reply]{"back"}
		var agent *Conn
		ask.Handle(&agentMux, func(ctx context.Context, n *note) (*reply, error) {
			// Before it answers, the agent streams and asks back in the same lane.
			if err := update.Notify(ctx, agent, &note{Session: n.Session, Text: "inner"}); err != nil {
				return nil, err
			}
			return back.Call(ctx, agent, n)
		})
		back.Handle(&clientMux, func(context.Context, *note) (*reply, error) { return &reply{"back"}, nil })
		var log []string
		update.Handle(&clientMux, func(ctx context.Context, n *note) error {
			log = append(log, n.Text)
			if n.Text != "inner" {
				ctx, stop := context.WithTimeout(ctx, time.Hour) // a derived ctx counts, too
				defer stop()
				r, err := ask.Call(ctx, RequestFrom(ctx).Conn(), n)
				if err != nil {
					return err
				}
				log = append(log, r.Text)
			}
			return nil
		})
		var client *Conn
		agent, client = pair(Config{Mux: &agentMux, Lane: laneOf}, Config{Mux: &clientMux, Lane: laneOf})
		for _, s := range []string{"1", "2"} {
			if err := update.Notify(bg, agent, &note{Session: "s", Text: s}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := strings.Join(log, ","); got != "1,back,2,back,inner,inner" && got != "1,back,inner,2,back,inner" {
			t.Error(got)
		}
		closeBoth(agent, client)
	})
}

// TestBurst: 100,000 updates of 200 bytes into a handler that takes 1 ms. None
// is lost, the connection stays open and the queue stays within its bound; the
// same while the handler calls back into the peer (field.md, defects 2 and 3).
func TestBurst(t *testing.T) {
	for _, callBack := range []bool{false, true} {
		t.Run(fmt.Sprintf("callBack=%v", callBack), func(t *testing.T) {
			n := int64(times(100_000, 20_000))
			if raceEnabled {
				n = min(n, 30_000) // the detector's own memory would be counted, too
			}
			synctest.Test(t, func(t *testing.T) {
				var agentMux, clientMux Mux
				prompt.Handle(&agentMux, func(context.Context, *note) (*reply, error) { return nil, nil })
				var seen int64
				base := heap()
				done := make(chan struct{})
				update.Handle(&clientMux, func(ctx context.Context, u *note) error {
					if u.N != seen {
						t.Errorf("update %d after %d", u.N, seen)
					}
					time.Sleep(time.Millisecond)
					if seen%(n/8) == 100 {
						if h := heap() - base; h > defaultMaxQueued+8<<20 {
							t.Errorf("%d MiB in use after %d updates", h>>20, seen)
						}
					}
					if seen++; seen == n {
						defer close(done)
					}
					if callBack {
						_, err := prompt.Call(ctx, RequestFrom(ctx).Conn(), u)
						if err != nil {
							t.Error(err)
						}
						return err
					}
					return nil
				})
				agent, client := pair(Config{Mux: &agentMux, Lane: laneOf}, Config{Mux: &clientMux, Lane: laneOf})
				text := strings.Repeat("x", 100)
				for i := range n {
					if err := update.Notify(bg, agent, &note{Session: "session-1", N: i, Text: text}); err != nil {
						t.Fatal(err)
					}
				}
				<-done
				if agent.Err() != nil || client.Err() != nil {
					t.Error(agent.Err(), client.Err())
				}
				closeBoth(agent, client)
			})
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestBackPressure: at the bound the connection stops reading, and goes on when
// there is room.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 64 << 10
		var mux Mux
		release := make(chan struct{})
		var seen atomic.Int64
		update.Handle(&mux, func(context.Context, *note) error {
			<-release
			seen.Add(1)
			return nil
		})
		p := newRawPeer(Config{Mux: &mux, Lane: laneOf, Settings: Settings{MaxQueued: bound}})
		defer p.close()
		line := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","text":"` + strings.Repeat("x", 100) + `"}}` + "\n"
		var written atomic.Int64
		const n = 1000
		go func() {
			for range n {
				p.write(line)
				written.Add(1)
			}
		}()
		synctest.Wait()
		if w := written.Load(); w == n || w < 50 {
			t.Errorf("%d of %d were read while nothing was handled", w, n)
		}
		p.conn.mu.Lock()
		if q := p.conn.room.queued; q > bound+stageMaxBytes {
			t.Errorf("%d bytes are queued", q)
		}
		p.conn.mu.Unlock()
		close(release)
		synctest.Wait()
		if written.Load() != n || seen.Load() != n {
			t.Error(written.Load(), seen.Load())
		}
		if p.conn.room.queued != 0 {
			t.Errorf("%d bytes are still counted", p.conn.room.queued)
		}
	})
}

// TestQueueFull: beyond the hard bound a call inside a handler is given up, so
// that its handler can end; nothing is lost.
func TestQueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		var seen, full int
		update.Handle(&mux, func(ctx context.Context, n *note) error {
			seen++
			if seen == 1 {
				if _, err := prompt.Call(ctx, RequestFrom(ctx).Conn(), n); errors.Is(err, ErrQueueFull) {
					full++
				}
			}
			return nil
		})
		p := newRawPeer(Config{Mux: &mux, Lane: laneOf, Settings: Settings{MaxQueued: 16 << 10, MaxQueuedHard: 32 << 10}})
		defer p.close()
		line := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}` + "\n"
		for range 1000 { // and never an answer
			p.write(line)
		}
		p.take()
		if full != 1 || seen != 1000 {
			t.Errorf("full %d, seen %d", full, seen)
		}
	})
}

// TestQueueFullAgain: a handler that calls back for each of many updates, with
// bounds far too small for that, gets errors but neither hangs nor loses any.
func TestQueueFullAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var agentMux, clientMux Mux
		prompt.Handle(&agentMux, func(context.Context, *note) (*reply, error) { return nil, nil })
		const n = 3000
		var seen, full int
		done := make(chan struct{})
		update.Handle(&clientMux, func(ctx context.Context, u *note) error {
			time.Sleep(time.Millisecond)
			_, err := prompt.Call(ctx, RequestFrom(ctx).Conn(), u)
			if errors.Is(err, ErrQueueFull) {
				full++
			} else if err != nil {
				t.Error(err)
			}
			if seen++; seen == n {
				close(done)
			}
			return nil
		})
		agent, client := pair(Config{Mux: &agentMux, Lane: laneOf}, Config{Mux: &clientMux, Lane: laneOf, Settings: Settings{MaxQueued: 64 << 10, MaxQueuedHard: 128 << 10}})
		for i := range int64(n) {
			if err := update.Notify(bg, agent, &note{Session: "s", N: i, Text: strings.Repeat("x", 100)}); err != nil {
				t.Fatal(err)
			}
		}
		<-done
		if full == 0 || full == n {
			t.Errorf("%d of %d calls failed", full, n)
		}
		closeBoth(agent, client)
	})
}

// TestMaxRequests: requests beyond the bound wait in order, without holding up
// notifications or cancellations; a cancelled one is answered without starting.
func TestMaxRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		release := make(chan struct{})
		var started []string
		var mu sync.Mutex
		prompt.Handle(&mux, func(_ context.Context, n *note) (*reply, error) {
			mu.Lock()
			started = append(started, n.Text)
			mu.Unlock()
			<-release
			return nil, nil
		})
		var notes atomic.Int64
		update.Handle(&mux, func(context.Context, *note) error { notes.Add(1); return nil })
		p := newRawPeer(Config{Mux: &mux, Lane: laneOf, Settings: Settings{MaxRequests: 2}})
		defer p.close()
		for i := range 6 {
			p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s","text":"%d"}}`+"\n", i, i))
		}
		p.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}` + "\n")
		p.write(cancelReq(`,"params":{"requestId":4}`))
		got := p.take()
		want := `{"jsonrpc":"2.0","id":4,"error":{"code":-32800,"message":"Request cancelled","data":{"requestId":4}}}`
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q", got)
		}
		if slices.Sort(started); !slices.Equal(started, []string{"0", "1"}) || notes.Load() != 1 {
			t.Error(started, notes.Load())
		}
		// One handler ends at a time: of two that start at once, either may record first.
		for _, next := range []string{"2", "3", "5"} {
			release <- struct{}{}
			if got := p.take(); len(got) != 1 || started[len(started)-1] != next {
				t.Errorf("%q, started %v; want %s last", got, started, next)
			}
		}
		close(release)
		if got := p.take(); len(got) != 2 || len(started) != 5 {
			t.Errorf("%q, started %v", got, started)
		}
	})
}

// TestRandomOrder mixes notifications, requests and calls of many lanes in both
// directions and checks every lane's order.
func TestRandomOrder(t *testing.T) {
	var mux Mux
	var mu sync.Mutex
	last := map[*Conn]map[string]int64{}
	check := func(ctx context.Context, n *note) {
		mu.Lock()
		defer mu.Unlock()
		c := RequestFrom(ctx).Conn()
		if last[c] == nil {
			last[c] = map[string]int64{}
		}
		if n.N != last[c][n.Session] {
			t.Errorf("lane %s: %d after %d", n.Session, n.N, last[c][n.Session])
		}
		last[c][n.Session] = n.N + 1
	}
	update.Handle(&mux, func(ctx context.Context, n *note) error { check(ctx, n); return nil })
	prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
		mu.Lock()
		defer mu.Unlock()
		if got := last[RequestFrom(ctx).Conn()][n.Session]; got < n.N {
			t.Errorf("request of lane %s started after %d of %d", n.Session, got, n.N)
		}
		return nil, nil
	})
	a, b := filePair(t, Config{Mux: &mux, Lane: laneOf}, Config{Mux: &mux, Lane: laneOf})
	countFrom(b, 1)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			c := a
			if i%2 == 1 {
				c = b
			}
			rng := rand.New(rand.NewPCG(uint64(i), 0))
			n := note{Session: fmt.Sprint(i)}
			for range times(2000, 200) {
				if rng.IntN(4) > 0 {
					if err := update.Notify(bg, c, &n); err != nil {
						t.Error(err)
					}
					n.N++
				} else if _, err := prompt.Call(bg, c, &n); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	closeBoth(a, b)
	noLeaks(t)
}

// TestQueueKeepsText: a long queue holds text, not decoded values, and what
// comes out is the same.
func TestQueueKeepsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		release := make(chan struct{})
		var seen int64
		update.Handle(&mux, func(_ context.Context, n *note) error {
			<-release
			if n.N != seen || n.Session != "s" || n.Text != "a\nb" {
				t.Errorf("%+v is number %d", n, seen)
			}
			seen++
			return nil
		})
		p := newRawPeer(Config{Mux: &mux, Lane: laneOf})
		const n = 20_000
		for i := range n {
			p.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","n":%d,"text":"a\nb"}}`+"\n", i))
		}
		synctest.Wait()
		p.conn.mu.Lock()
		if q := p.conn.room.queued; q > keepText+n*(chargeText+60) {
			t.Errorf("%d bytes are counted for %d updates", q, n)
		}
		p.conn.mu.Unlock()
		close(release)
		p.close()
		if seen != n {
			t.Errorf("%d of %d", seen, n)
		}
	})
}

// TestOvertakeOnce: a response to a call of a handler that has ended keeps its place, and is looked for in the queue at
// most once. A lane with such responses in it would be gone through for every call of a handler otherwise.
func TestOvertakeOnce(t *testing.T) {
	ours, _ := Pipe()
	c := NewConn(ours, Config{})
	defer c.Close()
	ended := new(entry)
	ended.kind, ended.conn = kindRequest, c
	response := func() *entry {
		cl := &call{token: ended}
		cl.entry.kind, cl.entry.Params = kindResponse, cl
		return &cl.entry
	}
	note := new(entry)
	note.kind = kindNotification
	want := []*entry{response(), note, response()}
	l := &lane{name: "lane"}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range want {
		c.enqueue(l, e)
	}
	c.overtake(l)
	if l.early != 0 {
		t.Errorf("%d entries are still looked for", l.early)
	}
	for i, w := range want {
		if e := l.queue.pop(); e != w {
			t.Errorf("entry %d is another one", i)
		}
	}
}
