package jsonrpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestContinue: the end of a connection waits for work that goes on after the answer
// as for a handler.
func TestContinue(t *testing.T) {
	const grace = 3 * time.Second
	for _, tt := range []struct {
		name    string
		work    time.Duration // how long it takes, unless it is cancelled
		heeds   bool          // its cancellation
		close   bool          // by its own side
		want    time.Duration // until the connection is over
		cancels bool
	}{
		{"over in time", grace / 2, true, false, grace / 2, false},
		{"over in time, closed here", grace / 2, true, true, grace / 2, false},
		{"cancelled", time.Hour, true, false, grace, true},
		{"cancelled, closed here", time.Hour, true, true, grace, true},
		{"abandoned", time.Hour, false, false, 3 * grace, true},
		{"abandoned, closed here", time.Hour, false, true, 2 * grace, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cause := make(chan error, 1)
				abandoned := 0
				mux := new(Mux)
				mux.Fallback(func(ctx context.Context, r *Request) (any, error) {
					cancelled := make(chan struct{})
					done := r.Continue(func(err error) {
						cause <- err
						if tt.heeds {
							close(cancelled)
						}
					})
					go func() {
						timer := time.NewTimer(tt.work)
						defer timer.Stop()
						select {
						case <-cancelled:
						case <-timer.C:
						}
						done()
						done()
					}()
					return nil, nil
				})
				ours, theirs := Pipe()
				served := NewConn(theirs, Config{Mux: mux, Settings: Settings{Grace: grace, Diagnose: func(e Event) {
					if e.Kind == EventAbandoned {
						abandoned += e.Count
					}
				}}})
				c := NewConn(ours, Config{})
				if err := c.Call(t.Context(), "begin", nil, nil); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if tt.close {
					_ = served.Close()
				} else {
					_ = c.Close()
				}
				_ = served.Wait()
				if d := time.Since(began); d != tt.want {
					t.Errorf("the connection ended after %v, want %v", d, tt.want)
				}
				select {
				case err := <-cause:
					if !tt.cancels || !errors.Is(err, ErrClosed) {
						t.Errorf("cancelled: %v", err)
					}
				default:
					if tt.cancels {
						t.Error("not cancelled")
					}
				}
				if left := abandoned > 0; left == tt.heeds {
					t.Errorf("%d are abandoned", abandoned)
				}
				_ = c.Close()
				time.Sleep(time.Hour) // what was abandoned ends
				served.mu.Lock()
				defer served.mu.Unlock()
				if served.work.continued != 0 {
					t.Errorf("%d continue", served.work.continued)
				}
			})
		})
	}
}

// TestContinueNothing: only incoming requests can be continued.
func TestContinueNothing(t *testing.T) {
	(&Request{}).Continue(nil)()
}
