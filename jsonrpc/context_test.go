package jsonrpc

import (
	"context"
	"errors"
	"sync"
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
					p := newRawPeer(Config{Mux: &mux, BaseContext: base})
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
