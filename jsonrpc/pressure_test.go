package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestCrossLaneCalls: handlers of different lanes that wait for calls in each
// other's lane do not wait for each other, however many form the circle and
// whichever response comes first.
func TestCrossLaneCalls(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/late=%v", n, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mux Mux
					done := 0
					second := make(chan struct{})
					var mu sync.Mutex
					update.Handle(&mux, func(ctx context.Context, u *note) error {
						if late && u.N%2 == 1 {
							<-second // the response to the neighbour is queued by now
						}
						_, err := prompt.Call(ctx, RequestFrom(ctx).Conn(), &note{Session: fmt.Sprint((u.N + 1) % int64(n))})
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						done++
						mu.Unlock()
						return nil
					})
					a, b := pair(Config{Mux: echoMux(), Lane: laneOf}, Config{Mux: &mux, Lane: laneOf})
					for i := range n {
						if err := update.Notify(bg, a, &note{Session: fmt.Sprint(i), N: int64(i)}); err != nil {
							t.Fatal(err)
						}
					}
					synctest.Wait()
					close(second)
					if synctest.Wait(); done != n {
						t.Errorf("%d of %d handlers came to their end", done, n)
					}
					closeBoth(a, b)
				})
			})
		}
	}
}

// TestCallOutsideHandlerKeepsOrder: what is not made inside a handler does not
// overtake, even while the lane's handler waits.
func TestCallOutsideHandlerKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		handled := false
		update.Handle(&mux, func(ctx context.Context, n *note) error {
			_, err := prompt.Call(ctx, RequestFrom(ctx).Conn(), n)
			handled = true
			return err
		})
		p := newRawPeer(Config{Mux: &mux})
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := prompt.Call(bg, p.conn, &note{}); err != nil || !handled {
				t.Error("completed before its turn", err)
			}
		}()
		p.take()
		p.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}` + "\n")
		p.take()
		p.write(`{"jsonrpc":"2.0","id":0,"result":{}}` + "\n")
		p.take()
		p.write(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n")
		<-done
		p.close()
	})
}

// TestNestedRequests: requests that call back, deeper than MaxRequests; a
// handler that waits for a call holds no place.
func TestNestedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
			if n.N == 0 {
				return &reply{"bottom"}, nil
			}
			return prompt.Call(ctx, RequestFrom(ctx).Conn(), &note{Session: n.Session, N: n.N - 1})
		})
		cfg := Config{Mux: &mux, Settings: Settings{MaxRequests: 2}}
		a, b := pair(cfg, cfg)
		ctx, stop := context.WithTimeout(bg, time.Hour)
		defer stop()
		if r, err := prompt.Call(ctx, a, &note{N: 20}); err != nil || r.Text != "bottom" {
			t.Error(r, err)
		}
		synctest.Wait() // the handlers have returned, too
		for _, c := range []*Conn{a, b} {
			c.mu.Lock()
			if c.work.yielded != 0 || c.room.inHandler != 0 || c.room.queued != 0 {
				t.Error("not all is given back:", c.work.yielded, c.room.inHandler, c.room.queued)
			}
			c.mu.Unlock()
		}
		closeBoth(a, b)
	})
}

// TestPlacesAreTakenAgain: handlers that have waited for a call count again, so
// that the others are not more at once than the bound.
func TestPlacesAreTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		var running, most atomic.Int64
		prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
			if n.Text == "ask" {
				_, err := prompt.Call(ctx, RequestFrom(ctx).Conn(), n)
				time.Sleep(time.Minute)
				return nil, err
			}
			now := running.Add(1)
			most.Store(max(most.Load(), now))
			time.Sleep(time.Second)
			running.Add(-1)
			return nil, nil
		})
		var other Mux
		release := make(chan struct{})
		prompt.Handle(&other, func(context.Context, *note) (*reply, error) { <-release; return nil, nil })
		a, b := pair(Config{Mux: &other}, Config{Mux: &mux, Settings: Settings{MaxRequests: 2}})
		var wg sync.WaitGroup
		for _, text := range []string{"ask", "work"} {
			for range 40 {
				wg.Go(func() {
					if _, err := prompt.Call(bg, a, &note{Text: text}); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			if text == "ask" {
				b.mu.Lock()
				if b.work.yielded != 40 {
					t.Error("waiting handlers hold places", b.work.yielded)
				}
				b.mu.Unlock()
				close(release)
				synctest.Wait()
			}
		}
		wg.Wait()
		synctest.Wait() // the handlers have returned, too
		if most.Load() > 2 {
			t.Errorf("%d at once", most.Load())
		}
		b.mu.Lock()
		if b.work.running != 0 || b.work.yielded != 0 || b.room.queued != 0 {
			t.Error("not all is given back:", b.work.running, b.work.yielded, b.room.queued)
		}
		b.mu.Unlock()
		closeBoth(a, b)
	})
}

// TestWaitingRequestsFillQueue: requests that wait for a place do not keep the
// connection from reading the responses that would free one; where even the
// hard bound is too small, calls fail and all requests are answered.
func TestWaitingRequestsFillQueue(t *testing.T) {
	for name, tt := range map[string]struct {
		queued, hard int
		full         bool
	}{
		"soft": {8 << 10, 1 << 20, false},
		"hard": {8 << 10, 16 << 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mux Mux
				full, answered := 0, 0
				var mu sync.Mutex
				prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
					_, err := prompt.Call(ctx, RequestFrom(ctx).Conn(), n)
					mu.Lock()
					defer mu.Unlock()
					if answered++; errors.Is(err, ErrQueueFull) {
						full++
					} else if err != nil {
						t.Error(err)
					}
					return nil, nil
				})
				p := newRawPeer(Config{Mux: &mux, Settings: Settings{MaxRequests: 1, MaxQueued: tt.queued, MaxQueuedHard: tt.hard}})
				const n = 40
				go func() {
					for i := range n {
						p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"r%d","method":"session/prompt","params":{"sessionId":"a"}}`+"\n", i))
					}
					for i := range n { // to whatever was asked
						p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`+"\n", i))
						time.Sleep(time.Second)
					}
				}()
				time.Sleep(time.Hour)
				synctest.Wait()
				mu.Lock()
				if answered != n || (full > 0) != tt.full {
					t.Errorf("%d of %d were answered, %d calls failed", answered, n, full)
				}
				mu.Unlock()
				p.close()
			})
		})
	}
}

// TestRefusalsDoNotBlock: what Preempt refuses is answered like what the engine
// refuses: a peer that does not read its answers is read on, up to MaxQueued.
func TestRefusalsDoNotBlock(t *testing.T) {
	for _, where := range []string{"preempt", "engine"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := Config{Settings: Settings{MaxQueued: 4 << 20}}
				method := strings.Repeat("m", 2000)
				if where == "preempt" {
					no := (&Error{Code: 7, Message: "no"}).WithData(strings.Repeat("x", 4000))
					cfg.Mux, cfg.Preempt, method = echoMux(), func(*Request) error { return no }, "_echo"
				}
				p := rawPeerStream(cfg, NewLineStream)
				const n = 3000
				go func() {
					for i := range n {
						p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`+"\n", i, method))
					}
				}()
				synctest.Wait()
				p.conn.out.mu.Lock()
				unsent := len(p.conn.out.buf) + p.conn.out.unsent
				p.conn.out.mu.Unlock()
				if unsent < 4<<20 || unsent > 6<<20 {
					t.Errorf("%d bytes of answers", unsent)
				}
				go p.readLines()
				if got := p.take(); len(got) != n {
					t.Errorf("%d of %d were answered", len(got), n)
				}
				p.close()
			})
		})
	}
}

// TestMutualCalls: both sides call with more under way than MaxQueued, and than
// fits into the buffers between them.
func TestMutualCalls(t *testing.T) {
	mux := new(Mux)
	prompt.Handle(mux, func(context.Context, *note) (*reply, error) { return nil, nil })
	t.Run("soft", func(t *testing.T) {
		mutualFlood(t, Config{Mux: mux, Lane: laneOf, Settings: Settings{MaxQueued: 64 << 10, MaxRequests: 8}}, 300, 10_000)
	})
	t.Run("hard", func(t *testing.T) {
		mutualFlood(t, Config{Mux: mux, Lane: laneOf, Settings: Settings{MaxQueued: 64 << 10, MaxQueuedHard: 128 << 10, MaxRequests: 8}}, 300, 10_000)
	})
}

// mutualFlood lets many callers on both sides call at once. In the bubble a
// deadlock ends at the deadline.
func mutualFlood(t *testing.T, cfg Config, callers, size int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(cfg, cfg)
		ctx, stop := context.WithTimeout(bg, time.Hour)
		defer stop()
		text := strings.Repeat("x", size)
		var wg sync.WaitGroup
		var late atomic.Int64
		for _, c := range []*Conn{a, b} {
			for range callers {
				wg.Go(func() {
					var we *Error
					if _, err := prompt.Call(ctx, c, &note{Session: "s", Text: text}); errors.Is(err, context.DeadlineExceeded) {
						late.Add(1)
					} else if err != nil && !errors.As(err, &we) {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		synctest.Wait() // the handlers have returned, too
		if n := late.Load(); n > 0 {
			t.Errorf("%d of %d calls hung", n, 2*callers)
		}
		closeBoth(a, b)
	})
}

// TestMutualNotify: both sides flood each other with notifications whose
// handlers send as many. Nothing hangs; what does not fit is refused to the
// handlers that send it, and to nobody else.
func TestMutualNotify(t *testing.T) {
	for name, tt := range map[string]struct {
		hard int
		full bool
	}{
		"soft": {64 << 20, false},
		"hard": {512 << 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mux Mux
				var got, full atomic.Int64
				update.Handle(&mux, func(ctx context.Context, n *note) error {
					got.Add(1)
					if n.N == 0 {
						return nil
					}
					err := update.Notify(ctx, RequestFrom(ctx).Conn(), &note{Text: n.Text})
					if errors.Is(err, ErrQueueFull) {
						full.Add(1)
					} else if err != nil {
						t.Error(err)
					}
					return nil
				})
				cfg := Config{Mux: &mux, Settings: Settings{MaxQueued: 256 << 10, MaxQueuedHard: tt.hard}}
				a, b := pair(cfg, cfg)
				ctx, stop := context.WithTimeout(bg, time.Hour)
				defer stop()
				const n = 1000
				var wg sync.WaitGroup
				for _, c := range []*Conn{a, b} {
					wg.Go(func() {
						for range n {
							if err := update.Notify(ctx, c, &note{N: 1, Text: strings.Repeat("x", 2000)}); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				synctest.Wait()
				if got.Load()+full.Load() != 4*n || !tt.full && full.Load() > 0 {
					t.Errorf("%d handled, %d refused", got.Load(), full.Load())
				}
				closeBoth(a, b)
			})
		})
	}
}

// TestStuckPeerHandlers: while the peer neither reads nor stops writing,
// handlers that send are told so at the hard bound; answers are kept.
func TestStuckPeerHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		var full, seen atomic.Int64
		update.Handle(&mux, func(ctx context.Context, n *note) error {
			seen.Add(1)
			if err := update.Notify(ctx, RequestFrom(ctx).Conn(), &note{Text: strings.Repeat("x", 10_000)}); errors.Is(err, ErrQueueFull) {
				full.Add(1)
			}
			return nil
		})
		prompt.Handle(&mux, func(context.Context, *note) (*reply, error) { return &reply{strings.Repeat("y", 100_000)}, nil })
		p := rawPeerStream(Config{Mux: &mux, Lane: laneOf, Settings: Settings{MaxQueued: 64 << 10, MaxQueuedHard: 128 << 10}}, NewLineStream)
		const n = 500
		go func() {
			for i := range n {
				p.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`+"\n"+
					`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"p"}}`+"\n", i))
			}
		}()
		synctest.Wait()
		if full.Load() == 0 {
			t.Error("no send was refused", seen.Load())
		}
		p.conn.mu.Lock()
		queued := p.conn.room.queued
		p.conn.mu.Unlock()
		p.conn.out.mu.Lock()
		unsent := len(p.conn.out.buf) + p.conn.out.unsent
		p.conn.out.mu.Unlock()
		if queued > 128<<10+stageMaxBytes || unsent > highWater+bypassWater+128<<10+64<<10 {
			t.Errorf("%d bytes in the queue, %d in the buffer", queued, unsent)
		}
		go p.readLines() // from now on all goes its way
		synctest.Wait()
		answers := 0
		for _, s := range p.take() {
			if strings.Contains(s, `"result"`) {
				answers++
			}
		}
		if answers != n || seen.Load() != n {
			t.Errorf("%d answers, %d notifications of %d", answers, seen.Load(), n)
		}
		p.close()
	})
}
