package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestContextLater: a request's context is made when somebody needs it, and is
// then what it would have been from the start, whatever happened before and
// whichever question is the first.
func TestContextLater(t *testing.T) {
	type key struct{}
	boom := errors.New("boom")
	isDone := func(ctx context.Context) bool {
		select {
		case <-ctx.Done():
			return true
		default:
			return false
		}
	}
	for name, tt := range map[string]struct {
		happens func(r *Request, c *Conn)
		cause   error // nil: nothing has ended it
	}{
		"nothing":         {func(*Request, *Conn) {}, nil},
		"cancelled":       {func(r *Request, _ *Conn) { r.Cancel(boom) }, boom},
		"cancelled twice": {func(r *Request, _ *Conn) { r.Cancel(boom); r.Cancel(errors.New("late")) }, boom},
		"without a cause": {func(r *Request, _ *Conn) { r.Cancel(nil); r.Cancel(boom) }, context.Canceled},
		"closed":          {func(_ *Request, c *Conn) { go func() { _ = c.Close() }(); time.Sleep(time.Hour) }, ErrClosed},
	} {
		for first, look := range map[string]func(t *testing.T, ctx context.Context, cause error){
			"Err": func(t *testing.T, ctx context.Context, cause error) {
				if err := ctx.Err(); (err != nil) != (cause != nil) {
					t.Error("Err:", err)
				}
			},
			"Done": func(t *testing.T, ctx context.Context, cause error) {
				if isDone(ctx) != (cause != nil) {
					t.Error("Done is wrong")
				}
			},
			"Cause": func(t *testing.T, ctx context.Context, cause error) {
				if got := context.Cause(ctx); got != cause {
					t.Error("Cause:", got)
				}
			},
			"a child": func(t *testing.T, ctx context.Context, cause error) {
				child, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				if isDone(child) != (cause != nil) || cause != nil && context.Cause(child) != cause {
					t.Error("the child:", context.Cause(child))
				}
			},
			"AfterFunc": func(t *testing.T, ctx context.Context, cause error) {
				ran := make(chan struct{})
				stop := context.AfterFunc(ctx, func() { close(ran) })
				synctest.Wait()
				if stop() != (cause == nil) {
					t.Error("AfterFunc is wrong")
				}
			},
		} {
			t.Run(name+"/"+first, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mux Mux
					var ctx context.Context
					seen := make(chan struct{})
					prompt.Handle(&mux, func(c context.Context, _ *note) (*reply, error) {
						defer close(seen)
						r := RequestFrom(c)
						ctx = r.Context()
						tt.happens(r, r.Conn())
						look(t, ctx, tt.cause)
						if ctx.Value(key{}) != "base" {
							t.Error("the values of the base are not there")
						}
						if d, ok := ctx.Deadline(); !ok || time.Until(d) > 100*time.Hour {
							t.Error("the deadline of the base is not there")
						}
						return &reply{}, nil
					})
					base, cancel := context.WithTimeout(context.WithValue(bg, key{}, "base"), 100*time.Hour)
					defer cancel()
					p := newRawPeer(Config{Mux: &mux, Settings: Settings{BaseContext: base}})
					p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}` + "\n")
					<-seen
					synctest.Wait()
					cause := tt.cause
					if cause == nil {
						cause = context.Canceled
					}
					if ctx.Err() != context.Canceled || !isDone(ctx) || context.Cause(ctx) != cause {
						t.Error("after the answer:", ctx.Err(), context.Cause(ctx))
					}
					p.close()
				})
			})
		}
	}
}

// TestContextUnused: a context nobody has looked at is done with its request.
func TestContextUnused(t *testing.T) {
	for name, look := range map[string]func(ctx context.Context) bool{
		"Err":   func(ctx context.Context) bool { return ctx.Err() == context.Canceled },
		"Cause": func(ctx context.Context) bool { return context.Cause(ctx) == context.Canceled },
		"Done":  func(ctx context.Context) bool { <-ctx.Done(); return true },
		"child": func(ctx context.Context) bool {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			return child.Err() != nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mux Mux
				var ctx context.Context
				prompt.Handle(&mux, func(c context.Context, _ *note) (*reply, error) { ctx = c; return &reply{}, nil })
				p := newRawPeer(Config{Mux: &mux})
				p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}` + "\n")
				p.take()
				if !look(ctx) {
					t.Error("it is not done")
				}
				p.close()
				if !look(ctx) {
					t.Error("it is not done any more")
				}
			})
		})
	}
}

// TestContextUnusedEnd: what ended a context nobody has looked at stays what
// ended it, whatever else ends later.
func TestContextUnusedEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		stays bool // the handler, until the connection has ended
		late  bool // the base is past its deadline before the request ends
		err   error
		cause error
	}{
		"answered":                {err: context.Canceled, cause: context.Canceled},
		"abandoned":               {stays: true, err: context.Canceled, cause: ErrClosed},
		"answered after deadline": {late: true, err: context.DeadlineExceeded, cause: context.DeadlineExceeded},
	} {
		for first, look := range map[string]func(ctx context.Context) error{"Err": context.Context.Err, "Cause": context.Cause} {
			t.Run(name+"/"+first, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					started, release := make(chan struct{}), make(chan struct{})
					var mux Mux
					var ctx context.Context
					prompt.Handle(&mux, func(c context.Context, _ *note) (*reply, error) {
						ctx = c
						close(started)
						<-release
						return &reply{}, nil
					})
					base, cancel := context.WithTimeout(bg, 100*time.Hour)
					defer cancel()
					p := newRawPeer(Config{Mux: &mux, Settings: Settings{BaseContext: base}})
					p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}` + "\n")
					<-started
					if tt.late {
						time.Sleep(101 * time.Hour)
					}
					if !tt.stays {
						close(release)
						synctest.Wait()
					}
					_ = p.conn.Close()
					p.close()
					if tt.stays {
						close(release)
						synctest.Wait()
					}
					time.Sleep(101 * time.Hour) // the base ends, if it has not
					_ = look(ctx)
					if ctx.Err() != tt.err || context.Cause(ctx) != tt.cause {
						t.Error(ctx.Err(), context.Cause(ctx))
					}
				})
			})
		}
	}
}

// loneContext is a context that package context knows nothing about. It asks
// for the context of a request whenever it is asked something itself.
type loneContext struct {
	context.Context // its values and its deadline
	done            chan struct{}
	ask             atomic.Pointer[Request]
}

func (l *loneContext) look() {
	if r := l.ask.Load(); r != nil {
		_ = r.Context().Done()
	}
}

func (l *loneContext) Deadline() (time.Time, bool) { l.look(); return l.Context.Deadline() }
func (l *loneContext) Done() <-chan struct{}       { l.look(); return l.done }
func (l *loneContext) Value(any) any               { l.look(); return nil }

func (l *loneContext) Err() error {
	l.look()
	select {
	case <-l.done:
		return context.Canceled
	default:
		return nil
	}
}

// TestContextOfLoneBase: a base that is foreign code runs where nothing is
// locked, ends what is derived from it, and costs no goroutine for each context.
func TestContextOfLoneBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const children = 100
		base := &loneContext{Context: bg, done: make(chan struct{})}
		var mux Mux
		handle := func(ctx context.Context) {
			_ = ctx.Value("k")
			_, _ = ctx.Deadline()
			before := runtime.NumGoroutine()
			var last context.Context
			for range children {
				child, cancel := context.WithCancel(ctx)
				defer cancel()
				_ = context.AfterFunc(child, func() {})
				last = child
			}
			if n := runtime.NumGoroutine() - before; n >= children {
				t.Errorf("%d goroutines for %d children", n, children)
			}
			<-last.Done()
			if ctx.Err() != context.Canceled || context.Cause(ctx) != context.Canceled {
				t.Error(ctx.Err(), context.Cause(ctx))
			}
		}
		prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
			base.ask.Store(RequestFrom(ctx))
			if n.N == 0 { // the other ends without having a context
				handle(ctx)
			}
			return &reply{}, nil
		})
		update.Handle(&mux, func(ctx context.Context, _ *note) error { handle(ctx); return nil })
		p := newRawPeer(Config{Mux: &mux, Settings: Settings{BaseContext: base}})
		p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","n":1}}` + "\n")
		if got := p.take(); len(got) != 1 {
			t.Error(got)
		}
		p.write(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s"}}` + "\n")
		p.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}` + "\n")
		synctest.Wait()
		close(base.done)
		if got := p.take(); len(got) != 1 || !strings.Contains(got[0], `"result":{}`) {
			t.Error(got)
		}
		p.close()
	})
}

// TestContextNeverStarted: the contexts of requests whose handlers never run are
// done, too, and those who registered something about them hear of it.
func TestContextNeverStarted(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		cfg   Config
		write []string
		end   bool
		cause string
	}{
		"refused": {
			cfg:   Config{},
			write: []string{`{"jsonrpc":"2.0","id":"refused","method":"session/prompt","params":{"sessionId":"s"}}`},
			cause: context.Canceled.Error(),
		},
		"cancelled while queued": {
			cfg: Config{Settings: Settings{MaxRequests: 1}},
			write: []string{
				`{"jsonrpc":"2.0","id":"running","method":"session/prompt","params":{"sessionId":"s"}}`,
				`{"jsonrpc":"2.0","id":"queued","method":"session/prompt","params":{"sessionId":"s"}}`,
				`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"queued"}}`,
			},
			cause: ErrRequestCancelled.Error(),
		},
		"dropped": {
			cfg: Config{Settings: Settings{MaxRequests: 1}},
			write: []string{
				`{"jsonrpc":"2.0","id":"running","method":"session/prompt","params":{"sessionId":"s"}}`,
				`{"jsonrpc":"2.0","id":"queued","method":"session/prompt","params":{"sessionId":"s"}}`,
			},
			end:   true,
			cause: ErrClosed.Error(),
		},
	} {
		for _, registers := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%v", name, registers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mux Mux
					release := make(chan struct{})
					prompt.Handle(&mux, func(ctx context.Context, _ *note) (*reply, error) {
						if id := RequestFrom(ctx).ID.String(); !strings.Contains(id, "running") {
							t.Errorf("%s runs", id)
						}
						<-release
						return &reply{}, nil
					})
					var last *Request
					heard := false
					tt.cfg.Mux = &mux
					tt.cfg.Preempt = func(r *Request) error {
						if last = r; registers {
							_ = context.AfterFunc(r.Context(), func() {
								if strings.Contains(r.ID.String(), "running") {
									return
								}
								heard = true
							})
						}
						if strings.Contains(r.ID.String(), "refused") {
							return boom
						}
						return nil
					}
					p := newRawPeer(tt.cfg)
					for _, s := range tt.write {
						p.write(s + "\n")
					}
					synctest.Wait()
					if tt.end {
						_ = p.conn.Close()
						<-p.conn.Done()
						synctest.Wait()
					}
					ctx := last.Context()
					if registers && !heard {
						t.Error("nobody has heard of it")
					}
					if ctx.Err() != context.Canceled || context.Cause(ctx) == nil || context.Cause(ctx).Error() != tt.cause {
						t.Error(ctx.Err(), context.Cause(ctx))
					}
					<-ctx.Done()
					close(release)
					p.close()
				})
			})
		}
	}
}

// TestContextRace: whoever makes the context and whoever ends it may meet.
func TestContextRace(t *testing.T) {
	defer noLeaks(t)
	boom := errors.New("boom")
	var mux Mux
	prompt.Handle(&mux, func(ctx context.Context, _ *note) (*reply, error) {
		r := RequestFrom(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { r.Cancel(boom) })
		wg.Go(func() { <-ctx.Done() })
		wg.Go(func() { _ = ctx.Err() })
		wg.Go(func() {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			<-child.Done()
			if context.Cause(child) != boom {
				t.Error(context.Cause(child))
			}
		})
		wg.Wait()
		if context.Cause(ctx) != boom {
			t.Error(context.Cause(ctx))
		}
		return &reply{}, nil
	})
	a, b := pair(Config{}, Config{Mux: &mux})
	for range 300 {
		if _, err := prompt.Call(bg, a, &note{Session: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	_ = a.Close()
	<-b.Done()
}
