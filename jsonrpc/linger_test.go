package jsonrpc

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestLinger: what takes long to begin with delays the grace, but neither Close
// nor the end of a connection on which nothing runs.
func TestLinger(t *testing.T) {
	const long = 10 * DefaultGrace
	for name, test := range map[string]struct {
		takes, linger, want time.Duration
		close               bool
		panics              any
	}{
		"answers meanwhile":   {takes: 5 * DefaultGrace, linger: long, want: 5 * DefaultGrace},
		"grace follows":       {takes: long, linger: 3 * DefaultGrace, want: 4 * DefaultGrace},
		"nothing runs":        {linger: long, want: 0},
		"closed":              {takes: long, linger: long, close: true, want: 2 * DefaultGrace},
		"panics":              {takes: long, linger: DefaultGrace, panics: "oh", want: 2 * DefaultGrace},
		"nothing to wait for": {takes: long, linger: 0, want: DefaultGrace},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mux Mux
				prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
					select {
					case <-time.After(test.takes):
						return &reply{"done"}, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				})
				p := newRawPeer(Config{Mux: &mux, Linger: func(ctx context.Context) {
					select {
					case <-time.After(test.linger):
					case <-ctx.Done():
					}
					if test.panics != nil {
						panic(test.panics)
					}
				}})
				start := time.Now()
				if test.takes > 0 {
					p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","text":""}}` + "\n")
				}
				synctest.Wait()
				_ = p.in.Close()
				if test.close {
					synctest.Wait()
					time.Sleep(DefaultGrace)
					_ = p.conn.Close()
				}
				<-p.conn.Done()
				if d := time.Since(start); d != test.want {
					t.Errorf("ended after %v, want %v", d, test.want)
				}
				p.close()
			})
		})
	}
}

// TestLingerCloses holds that a Linger that calls Close, or ignores its ctx, ends
// no connection later than after the bounds.
func TestLingerCloses(t *testing.T) {
	for name, linger := range map[string]func(ctx context.Context, c *Conn){
		"closes":            func(_ context.Context, c *Conn) { _ = c.Close() },
		"closes and waits":  func(ctx context.Context, c *Conn) { _ = c.Close(); <-ctx.Done() },
		"ignores its ctx":   func(context.Context, *Conn) { time.Sleep(time.Hour) },
		"waits for the end": func(_ context.Context, c *Conn) { _ = c.Close(); _ = c.Wait() },
	} {
		for _, busy := range []bool{false, true} {
			if busy && name == "ignores its ctx" {
				continue // then it is what keeps the handlers
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mux Mux
					prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					})
					ready := make(chan *Conn, 1)
					p := newRawPeer(Config{Mux: &mux, Linger: func(ctx context.Context) { linger(ctx, <-ready) }})
					ready <- p.conn
					if busy {
						p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","text":""}}` + "\n")
					}
					synctest.Wait()
					start := time.Now()
					_ = p.in.Close()
					select {
					case <-p.conn.Done():
					case <-time.After(time.Minute):
						t.Fatal("the connection does not end")
					}
					if d := time.Since(start); d > 5*DefaultGrace {
						t.Errorf("ended after %v", d)
					}
					p.close()
					time.Sleep(time.Hour) // let the one that is left behind end
				})
			})
		}
	}
}
