package jsonrpc

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// TestStart: a call in two steps is on its way when the first returns, whatever
// the response does, with middleware and without.
func TestStart(t *testing.T) {
	pass := func(next Handler) Handler { return next }
	var repeated *Request
	repeat := func(next Handler) Handler {
		return func(ctx context.Context, r *Request) (any, error) {
			if repeated == nil && r.Method == prompt.Name {
				repeated = r
				if _, err := next(ctx, r); !errors.Is(err, ErrAuthRequired) {
					t.Error(err)
				}
			}
			return next(ctx, r)
		}
	}
	for name, mw := range map[string][]Middleware{"plain": nil, "middleware": {pass}, "repeating": {repeat}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var waits, ever atomic.Int64
				p := newRawPeer(Config{Waiting: func(_ context.Context, begins bool) {
					if begins {
						waits.Add(1)
						ever.Add(1)
					} else {
						waits.Add(-1)
					}
				}, Settings: Settings{Outgoing: mw}})
				defer p.close()
				replied := 0
				pending, err := prompt.Start(bg, p.conn, &note{Session: "s"}, OnReply(func(any, error) { replied++ }))
				if err != nil {
					t.Fatal(err)
				}
				if err := update.Notify(bg, p.conn, &note{}); err != nil {
					t.Fatal(err)
				}
				got := p.take()
				if len(got) != 2 || !strings.Contains(got[0], prompt.Name) || !strings.Contains(got[1], update.Name) || waits.Load() != 1 {
					t.Errorf("%q, %d wait", got, waits.Load())
				}
				want := 1
				if name == "repeating" {
					want = 2
					p.write(`{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"log in"}}` + "\n")
					p.take()
					p.write(`{"jsonrpc":"2.0","id":1,"result":{"text":"done"}}` + "\n")
				} else {
					p.write(`{"jsonrpc":"2.0","id":0,"result":{"text":"done"}}` + "\n")
				}
				synctest.Wait() // the response may be there before anybody waits
				r, err := pending.Wait()
				if diff := cmp.Diff(&reply{Text: "done"}, r); diff != "" || err != nil || replied != want {
					t.Errorf("%v, replied %d times\n%s", err, replied, diff)
				}
				if waits.Load() != 0 || ever.Load() != int64(want)+1 {
					t.Errorf("%d still wait of %d", waits.Load(), ever.Load())
				}
			})
		})
	}
	noLeaks(t)
}

// TestStartFails: what goes wrong before the request is sent is told at once,
// what goes wrong later by Wait; nobody counts as waiting afterwards.
func TestStartFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits atomic.Int64
		cfg := Config{Waiting: func(_ context.Context, begins bool) {
			if begins {
				waits.Add(1)
			} else {
				waits.Add(-1)
			}
		}}
		p := newRawPeer(cfg)
		ctx, cancel := context.WithCancelCause(bg)
		late, err := prompt.Start(ctx, p.conn, &note{})
		if err != nil {
			t.Fatal(err)
		}
		cause := errors.New("enough")
		cancel(cause)
		if _, err := late.Wait(); !errors.Is(err, cause) {
			t.Error(err)
		}
		if _, err := prompt.Start(ctx, p.conn, &note{}); !errors.Is(err, cause) {
			t.Error(err)
		}
		if _, err := (Method[unsendable, reply]{Name: "x"}).Start(bg, p.conn, new(unsendable)); err == nil {
			t.Error("params that cannot be encoded are sent")
		}
		open, err := prompt.Start(bg, p.conn, &note{})
		if err != nil {
			t.Fatal(err)
		}
		p.close()
		if _, err := open.Wait(); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if _, err := prompt.Start(bg, p.conn, &note{}); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if waits.Load() != 0 {
			t.Errorf("%d wait", waits.Load())
		}

		for name, mw := range map[string]Middleware{
			"refuses": func(Handler) Handler { return func(context.Context, *Request) (any, error) { return nil, cause } },
			"exits": func(Handler) Handler {
				return func(context.Context, *Request) (any, error) { runtime.Goexit(); return nil, nil }
			},
			"answers": func(Handler) Handler { return func(context.Context, *Request) (any, error) { return "wrong", nil } },
		} {
			p := newRawPeer(Config{Settings: Settings{Outgoing: []Middleware{mw}}})
			pending, err := prompt.Start(bg, p.conn, &note{})
			if err != nil {
				t.Fatal(name, err)
			}
			if r, err := pending.Wait(); err == nil || r != nil {
				t.Errorf("%s: %v, %v", name, r, err)
			}
			p.close()
		}
	})
	noLeaks(t)
}

type unsendable struct{}

func (*unsendable) AppendJSON([]byte) ([]byte, error) { return nil, errors.New("no") }
