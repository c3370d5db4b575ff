package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
