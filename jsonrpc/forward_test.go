package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
)

// forwarding returns a connection whose mux is InOrder, and the other end of its stream.
func forwarding(t *testing.T, mux *Mux, lane func(string, any) string) (*Conn, Stream) {
	t.Helper()
	mux.InOrder = true
	ours, theirs := Pipe()
	c := NewConn(ours, Config{Mux: mux, Lane: lane})
	t.Cleanup(func() {
		_ = theirs.Close()
		_ = c.Close()
		<-c.Done()
	})
	return c, theirs
}

func rawLane(_ string, params any) string {
	var raw json.RawMessage
	switch p := params.(type) {
	case *json.RawMessage:
		raw = *p
	case json.RawMessage:
		raw = p
	}
	var v struct{ SessionID string }
	_ = json.Unmarshal(raw, &v)
	return v.SessionID
}

func writeFrames(t *testing.T, s Stream, frames ...string) {
	t.Helper()
	for _, f := range frames {
		if err := s.WriteFrame([]byte(f)); err != nil {
			t.Fatal(err)
		}
	}
}

func readFrame(t *testing.T, s Stream) string {
	t.Helper()
	f, err := s.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	return string(f.Data)
}

// TestInOrder: a request holds what comes after it in its lane until Proceed, its return or its
// cancellation, and holds no other lane.
func TestInOrder(t *testing.T) {
	for _, end := range []string{"proceeds", "returns", "cancelled", "panics"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []string
				free := make(chan struct{})
				mux := new(Mux)
				mux.Fallback(func(ctx context.Context, req *Request) (any, error) {
					<-free // the first one; nothing may be handled meanwhile
					switch end {
					case "proceeds":
						seen = append(seen, req.Method)
						req.Proceed()
						req.Proceed()
						<-ctx.Done()
					case "cancelled":
						<-ctx.Done()
					case "panics":
						panic("on purpose")
					}
					return nil, ctx.Err()
				})
				other := false
				mux.FallbackNotification(func(_ context.Context, req *Request) (any, error) {
					if req.Lane == "b" {
						other = true
						return nil, nil
					}
					seen = append(seen, req.Method)
					return nil, nil
				})
				_, peer := forwarding(t, mux, rawLane)
				writeFrames(t, peer,
					`{"jsonrpc":"2.0","id":1,"method":"first","params":{"sessionId":"a"}}`,
					`{"jsonrpc":"2.0","method":"second","params":{"sessionId":"a"}}`,
					`{"jsonrpc":"2.0","method":"second","params":{"sessionId":"b"}}`)
				synctest.Wait()
				if len(seen) > 0 || !other {
					t.Fatalf("handled %v, other lane %v", seen, other)
				}
				close(free)
				synctest.Wait()
				if end == "cancelled" && len(seen) > 0 {
					t.Fatalf("handled %v", seen)
				}
				writeFrames(t, peer, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
				synctest.Wait()
				want := "[second]"
				if end == "proceeds" {
					want = "[first second]"
				}
				if got := fmt.Sprint(seen); got != want {
					t.Errorf("handled %v", got)
				}
			})
		})
	}
}

// TestResponsesPassHeld: a request that holds its lane does not hold responses once its handler says so, also those that
// arrived while something before it was handled. Notifications hold them as ever, except those to calls made in its handler.
func TestResponsesPassHeld(t *testing.T) {
	const (
		first    = `{"jsonrpc":"2.0","id":1,"method":"first","params":{"sessionId":"a"}}`
		second   = `{"jsonrpc":"2.0","id":2,"method":"second","params":{"sessionId":"a"}}`
		note     = `{"jsonrpc":"2.0","method":"note","params":{"sessionId":"a"}}`
		slow     = `{"jsonrpc":"2.0","method":"slow","params":{"sessionId":"a"}}`
		response = `{"jsonrpc":"2.0","id":0,"result":{}}`
	)
	for _, tc := range []struct {
		name   string
		inside bool // the call is made in the handler of the first request
		strict bool // the handler does not let responses pass
		slow   bool // a notification before the request is handled until everything has arrived
		frames []string
		want   string // what has happened while the request is held
		end    string // and when it has ended
	}{
		{"outside", false, false, false, []string{first, response}, "[answered]", "[answered]"},
		{"strict", false, true, false, []string{first, response}, "[]", "[answered]"},
		{"outside, behind requests", false, false, false, []string{first, second, response}, "[answered]", "[answered second]"},
		{"outside, behind a notification", false, false, false, []string{first, note, response}, "[]", "[note answered]"},
		{"outside, arrived early", false, false, true, []string{slow, first, second, response, note}, "[slow answered]", "[slow answered second note]"},
		{"outside, arrived early behind a notification", false, false, true, []string{slow, first, note, response}, "[slow]", "[slow note answered]"},
		{"inside", true, false, false, []string{first, response}, "[answered]", "[answered]"},
		{"inside, behind a notification", true, false, false, []string{first, note, response}, "[answered]", "[answered note]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				seen := []string{}
				see := func(s string) {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, s)
				}
				saw := func() string {
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					return fmt.Sprint(seen)
				}
				var c *Conn
				call := func(ctx context.Context) {
					var res json.RawMessage
					if err := c.Call(ctx, "m", json.RawMessage(`{"sessionId":"a"}`), &res); err != nil {
						t.Error(err)
					}
					see("answered")
				}
				arrived, free := make(chan struct{}), make(chan struct{})
				mux := new(Mux)
				mux.Fallback(func(ctx context.Context, req *Request) (any, error) {
					if req.Method == "second" {
						see("second")
						return nil, nil
					}
					if tc.inside {
						call(ctx)
					} else if !tc.strict {
						req.LetReplies()
					}
					<-free
					return nil, nil
				})
				mux.FallbackNotification(func(_ context.Context, req *Request) (any, error) {
					see(req.Method)
					if req.Method == "slow" {
						<-arrived
					}
					return nil, nil
				})
				var peer Stream
				c, peer = forwarding(t, mux, rawLane)
				if !tc.inside {
					go call(t.Context())
					readFrame(t, peer)
				}
				for _, f := range tc.frames {
					writeFrames(t, peer, f)
					if f == first && tc.inside {
						readFrame(t, peer)
					}
					synctest.Wait()
				}
				close(arrived)
				if got := saw(); got != tc.want {
					t.Errorf("while it is held: %s", got)
				}
				close(free)
				if got := saw(); got != tc.end {
					t.Errorf("in the end: %s", got)
				}
			})
		})
	}
}

// TestPassedHolds: what comes after a response that has passed a request waits for the holder of the response as well.
func TestPassedHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := false
		free, done := make(chan struct{}), make(chan struct{})
		mux := new(Mux)
		mux.Fallback(func(_ context.Context, req *Request) (any, error) { req.LetReplies(); <-free; return nil, nil })
		mux.FallbackNotification(func(context.Context, *Request) (any, error) { seen = true; return nil, nil })
		c, peer := forwarding(t, mux, nil)
		answered := make(chan error, 1)
		go func() { answered <- c.Call(t.Context(), "m", nil, nil, HoldUntil(done)) }()
		readFrame(t, peer)
		writeFrames(t, peer, `{"jsonrpc":"2.0","id":1,"method":"first"}`)
		synctest.Wait()
		writeFrames(t, peer, `{"jsonrpc":"2.0","id":0,"result":{}}`, `{"jsonrpc":"2.0","method":"n"}`)
		if err := <-answered; err != nil {
			t.Error(err)
		}
		close(free)
		synctest.Wait()
		if seen {
			t.Error("the notification has passed the response")
		}
		close(done)
		synctest.Wait()
		if !seen {
			t.Error("the notification is lost")
		}
	})
}

// TestHoldUntil: what comes after a response waits until its holder is done.
func TestHoldUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := 0
		mux := new(Mux)
		mux.FallbackNotification(func(context.Context, *Request) (any, error) { seen++; return nil, nil })
		c, peer := forwarding(t, mux, nil)
		done := make(chan struct{})
		answered := false
		go func() {
			if err := c.Call(t.Context(), "m", nil, nil, HoldUntil(done)); err != nil {
				t.Error(err)
			}
			answered = true
		}()
		readFrame(t, peer)
		writeFrames(t, peer, `{"jsonrpc":"2.0","id":0,"result":{}}`, `{"jsonrpc":"2.0","method":"n"}`)
		synctest.Wait()
		if !answered || seen != 0 {
			t.Errorf("answered %v, handled %d", answered, seen)
		}
		close(done)
		synctest.Wait()
		if seen != 1 {
			t.Errorf("handled %d", seen)
		}
	})
}

// TestKeepError: the error of a peer is answered as it came.
func TestKeepError(t *testing.T) {
	const text = `{"message":"\u0061","code":-7,"data":1.0,"more":[1e2]}`
	mux := new(Mux)
	var back *Conn
	mux.Fallback(func(ctx context.Context, req *Request) (any, error) {
		var res json.RawMessage
		err := back.Call(ctx, req.Method, req.Params, &res, KeepError())
		var said *Error
		if !errors.As(err, &said) || said.Code != -7 || said.Message != "a" {
			t.Errorf("error %v", err)
		}
		return res, fmt.Errorf("forwarded: %w", err)
	})
	_, peer := forwarding(t, mux, nil)
	var server Stream
	back, server = forwarding(t, new(Mux), nil)
	writeFrames(t, peer, `{"jsonrpc":"2.0","id":"x","method":"m"}`)
	readFrame(t, server)
	writeFrames(t, server, `{"jsonrpc":"2.0","id":0,"error":`+text+`}`)
	if got, want := readFrame(t, peer), `{"jsonrpc":"2.0","id":"x","error":`+text+`}`; got != want {
		t.Errorf("answered with %s", got)
	}
}

// TestDirect: the reader hands over what nothing is before, and keeps the order with everything
// else of the lane.
func TestDirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		ready := true
		free := make(chan struct{})
		mux := new(Mux)
		mux.Direct("n", func() bool { return ready }, func(ctx context.Context, lane string, params []byte) error {
			seen = append(seen, fmt.Sprintf("%s %s %v", lane, params, RequestFrom(ctx) == nil))
			return nil
		})
		mux.FallbackNotification(func(context.Context, *Request) (any, error) { <-free; return nil, nil })
		_, peer := forwarding(t, mux, rawLane)
		writeFrames(t, peer, `{"jsonrpc":"2.0","method":"n","params":{"sessionId":"a", "n":1.0}}`)
		synctest.Wait()
		writeFrames(t, peer, `{"jsonrpc":"2.0","method":"n"}`)
		synctest.Wait()
		writeFrames(t, peer, `{"jsonrpc":"2.0","method":"slow","params":{"sessionId":"a"}}`)
		synctest.Wait()
		writeFrames(t, peer, `{"jsonrpc":"2.0","method":"n","params":{"sessionId":"a","n":2}}`)
		synctest.Wait()
		writeFrames(t, peer, `{"jsonrpc":"2.0","method":"n","params":{"sessionId":"b"}}`)
		synctest.Wait()
		close(free)
		synctest.Wait()
		ready = false
		writeFrames(t, peer, `{"jsonrpc":"2.0","method":"n","params":{"sessionId":"c"}}`)
		synctest.Wait()
		want := []string{
			`a {"sessionId":"a", "n":1.0} true`, `  true`, `b {"sessionId":"b"} true`,
			`a {"sessionId":"a","n":2} false`, `c {"sessionId":"c"} false`,
		}
		if fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Errorf("handled\n%q\nwant\n%q", seen, want)
		}
	})
}
