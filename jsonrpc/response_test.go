package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/internal/wire"
	"github.com/google/go-cmp/cmp"
)

// TestSecondResponse: of two responses to a call the first counts, also when
// both come in one read (S33).
func TestSecondResponse(t *testing.T) {
	const first = `{"jsonrpc":"2.0","id":0,"result":{"text":"first"}}` + "\n"
	for name, second := range map[string]string{
		"same":        first,
		"result":      `{"jsonrpc":"2.0","id":0,"result":{"text":"second"}}` + "\n",
		"id last":     `{"result":{"text":"second"},"jsonrpc":"2.0","id":0}` + "\n",
		"error":       `{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"second"}}` + "\n",
		"malformed":   `{"jsonrpc":"2.0","id":0,"result":{"text":5}}` + "\n",
		"empty":       `{"jsonrpc":"2.0","id":0}` + "\n",
		"too large":   `{"jsonrpc":"2.0","id":0,"result":{"text":"` + strings.Repeat("x", 1000) + `"}}` + "\n",
		"three, cut":  first + `{"jsonrpc":"2.0","id":0,"result":{"text":"third` + "\n",
		"other order": `{"jsonrpc":"2.0","error":{"code":1,"message":"second"},"id":0}` + "\n",
	} {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/apart=%v", name, apart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newRawPeer(Config{Settings: Settings{MaxFrame: 500}})
					defer p.close()
					replies := 0
					var r *reply
					var err error
					go func() {
						r, err = prompt.Call(bg, p.conn, &note{}, OnReply(func(any, error) { replies++ }))
					}()
					synctest.Wait()
					if apart {
						p.write(first)
						synctest.Wait()
						p.write(second)
					} else {
						p.write(first + second)
					}
					synctest.Wait()
					if err != nil || r.Text != "first" || replies != 1 {
						t.Errorf("%v, %v, OnReply ran %d times", r, err, replies)
					}
				})
			})
		}
	}
}

// gate is a result whose decoder waits.
type gate struct{}

var gateIn, gateOut chan struct{}

func (*gate) decodeJSON(d *wire.Decoder) {
	d.Skip()
	close(gateIn)
	<-gateOut
}

// TestOnReplyThenReturn: OnReply has returned when the call does, and does not
// begin once the call has returned.
func TestOnReplyThenReturn(t *testing.T) {
	for _, end := range []string{"ctx", "close"} {
		t.Run("decoding/"+end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gateIn, gateOut = make(chan struct{}), make(chan struct{})
				p := newRawPeer(Config{})
				ctx, stop := context.WithCancel(bg)
				defer stop()
				returned := make(chan error)
				go func() {
					_, err := Method[note, gate]{"x"}.Call(ctx, p.conn, nil, OnReply(func(any, error) { t.Error("OnReply after the call") }))
					returned <- err
				}()
				synctest.Wait()
				p.write(`{"jsonrpc":"2.0","id":0,"result":{}}` + "\n")
				<-gateIn
				if end == "ctx" {
					stop()
				} else {
					go func() { _ = p.conn.Close() }()
				}
				if err := <-returned; err == nil {
					t.Error("no error")
				}
				close(gateOut)
				p.close()
			})
		})
		t.Run("replying/"+end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newRawPeer(Config{})
				ctx, stop := context.WithCancel(bg)
				defer stop()
				in, out := make(chan struct{}), make(chan struct{})
				done, returned := false, false
				go func() {
					_, _ = prompt.Call(ctx, p.conn, &note{}, OnReply(func(any, error) { close(in); <-out; done = true }))
					if returned = true; !done {
						t.Error("the call returned while OnReply ran")
					}
				}()
				synctest.Wait()
				p.write(`{"jsonrpc":"2.0","id":0,"result":{}}` + "\n")
				<-in
				if end == "ctx" {
					stop()
				} else {
					go func() { _ = p.conn.Close() }()
				}
				synctest.Wait()
				if returned {
					t.Error("the call did not wait")
				}
				close(out)
				synctest.Wait()
				if !returned {
					t.Error("the call still waits")
				}
				p.close()
			})
		})
	}
}

// TestReplyValues: what OnReply and outgoing middleware get.
func TestReplyValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		note1 := func(who string, v any, err error) {
			log = append(log, fmt.Sprintf("%s %T %v", who, v, err))
		}
		mw := func(next Handler) Handler {
			return func(ctx context.Context, r *Request) (any, error) {
				v, err := next(ctx, r)
				note1("middleware", v, err)
				return v, err
			}
		}
		p := newRawPeer(Config{Settings: Settings{Outgoing: []Middleware{mw}}})
		defer p.close()
		on := OnReply(func(v any, err error) { note1("reply", v, err) })
		for i, answer := range []string{`"result":{}`, `"error":{"code":1,"message":"no"}`} {
			for j, call := range []func() error{
				func() error { _, err := prompt.Call(bg, p.conn, &note{}, on); return err },
				func() error { var m json.RawMessage; return p.conn.Call(bg, "x", nil, &m, on) },
			} {
				go func() { _ = call() }()
				p.take()
				p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`+"\n", 2*i+j, answer))
				synctest.Wait()
			}
		}
		want := []string{
			"reply *jsonrpc.reply <nil>", "middleware *jsonrpc.reply <nil>",
			"reply *json.RawMessage <nil>", "middleware *json.RawMessage <nil>",
			"reply <nil> no (1)", "middleware <nil> no (1)",
			"reply <nil> no (1)", "middleware <nil> no (1)",
		}
		if diff := cmp.Diff(want, log); diff != "" {
			t.Error(diff)
		}
	})
}

// TestTooLargeResponse: the error names sizes, and holds nothing of the reader's
// buffer.
func TestTooLargeResponse(t *testing.T) {
	for name, how := range map[string]func(Config) (*Conn, func(string)){
		"lines": func(cfg Config) (*Conn, func(string)) {
			p := newRawPeer(cfg)
			return p.conn, func(s string) { p.write(s + "\n") }
		},
		"foreign": func(cfg Config) (*Conn, func(string)) {
			a, b := Pipe()
			return NewConn(foreign{a}, cfg), func(s string) { _ = b.WriteFrame([]byte(s)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, write := how(Config{Settings: Settings{MaxFrame: 1000, Grace: 1}})
				replied := false
				done := make(chan error)
				go func() {
					_, err := prompt.Call(bg, c, &note{}, OnReply(func(_ any, err error) { replied = errors.Is(err, ErrFrameTooLarge) }))
					done <- err
				}()
				synctest.Wait()
				write(`{"jsonrpc":"2.0","id":0,"result":{"text":"` + strings.Repeat("x", 2000) + `"}}`)
				var big *FrameTooLargeError
				if err := <-done; !errors.As(err, &big) || !errors.Is(err, ErrFrameTooLarge) {
					t.Fatal(err)
				}
				if diff := cmp.Diff(&FrameTooLargeError{Limit: 1000, Size: 2045}, big); diff != "" || !replied {
					t.Error(diff, replied)
				}
				_ = c.Close()
				<-c.Done()
			})
		})
	}
}
