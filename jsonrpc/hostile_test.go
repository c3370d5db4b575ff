package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/internal/wire"
	"github.com/google/go-cmp/cmp"
)

type (
	panicJSON struct{}
	exitJSON  struct{}
	panicAs   struct{ error }
	panicText struct{}
	exits     struct{}
)

func (panicJSON) MarshalJSON() ([]byte, error) { panic("MarshalJSON") }
func (exitJSON) MarshalJSON() ([]byte, error)  { exit(); return nil, nil }
func (panicAs) As(any) bool                    { panic("As") }
func (panicText) Error() string                { panic("Error") }
func (*exits) decodeJSON(*wire.Decoder)        { exit() }

// panicLog is a log handler that panics.
type panicLog struct{ slog.Handler }

func (panicLog) Handle(context.Context, slog.Record) error { panic("log") }

// TestHostileAnswers: whatever a handler returns, its request is answered, once,
// and the connection lives (S27).
func TestHostileAnswers(t *testing.T) {
	for _, tt := range []struct {
		name string
		res  any
		err  error
	}{
		{"MarshalJSON panics", panicJSON{}, nil},
		{"MarshalJSON exits", exitJSON{}, nil},
		{"AppendJSON panics", &hostile{"panic"}, nil},
		{"typed nil", nil, (*Error)(nil)},
		{"As panics", nil, panicAs{errors.New("x")}},
		{"Error panics", nil, panicText{}},
		{"wrapped", nil, fmt.Errorf("x: %w", (*Error)(nil))},
	} {
		for _, expose := range []bool{false, true} {
			for _, where := range []string{"handler", "preempt"} {
				if where == "preempt" && tt.err == nil {
					continue
				}
				t.Run(fmt.Sprintf("%s/expose=%v/%s", tt.name, expose, where), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						mux := new(Mux)
						mux.Fallback(func(_ context.Context, r *Request) (any, error) {
							if r.Method == "good" {
								return nil, nil
							}
							return tt.res, tt.err
						})
						cfg := Config{
							Mux:      mux,
							Settings: Settings{ExposeErrors: expose, Diagnose: func(Event) { panic("diagnose") }},
							Logger:   slog.New(panicLog{slog.NewTextHandler(io.Discard, nil)}),
						}
						if where == "preempt" {
							cfg.Preempt = func(r *Request) error {
								if r.Method == "good" {
									return nil
								}
								return tt.err
							}
						}
						p := newRawPeer(cfg)
						defer p.close()
						p.write("noise\n[]\n" + `{"jsonrpc":"2.0","id":1,"method":"bad"}` + "\n")
						got := p.take()
						if len(got) != 2 || got[0] != batchError || !strings.HasPrefix(got[1], `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error","data":{"correlationId":`) {
							t.Errorf("%q", got)
						}
						p.write(`{"jsonrpc":"2.0","id":1,"method":"good"}` + "\n")
						if diff := cmp.Diff([]string{`{"jsonrpc":"2.0","id":1,"result":null}`}, p.take()); diff != "" {
							t.Error(diff)
						}
						p.conn.mu.Lock()
						if p.conn.work.running != 0 || p.conn.work.answering != 0 || len(p.conn.work.inbound) != 0 {
							t.Error("left:", p.conn.work.running, p.conn.work.answering, p.conn.work.inbound)
						}
						p.conn.mu.Unlock()
					})
				})
			}
		}
	}
}

// TestHostileReader: code that panics or exits on the reader costs its message
// and no other.
func TestHostileReader(t *testing.T) {
	const (
		bad  = `"params":{"sessionId":"bad"}`
		req  = `{"jsonrpc":"2.0","id":1,"method":"session/prompt",` + bad + `}` + "\n"
		upd  = `{"jsonrpc":"2.0","method":"session/update",` + bad + `}` + "\n"
		fail = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}`
	)
	for how, fall := range map[string]func(){"panic": func() { panic("on the reader") }, "exit": exit} {
		isBad := func(params any) bool { n, ok := params.(*note); return ok && n.Session == "bad" }
		for _, tt := range []struct {
			name string
			cfg  Config
			in   string
			want []string
		}{
			{"preempt request", Config{Preempt: func(r *Request) error {
				if isBad(r.Params) {
					fall()
				}
				return nil
			}}, req, []string{fail}},
			{"preempt notification", Config{Preempt: func(r *Request) error {
				if isBad(r.Params) {
					fall()
				}
				return nil
			}}, upd, nil},
			{"lane", Config{Lane: func(_ string, params any) string {
				if isBad(params) {
					fall()
				}
				return ""
			}}, req + upd, []string{fail}},
			{"decoder", Config{}, `{"jsonrpc":"2.0","id":1,"method":"` + how + `","params":{}}` + "\n", []string{fail}},
			{"decoder, unfit id", Config{}, `{"jsonrpc":"2.0","id":{},"method":"` + how + `","params":{}}` + "\n", []string{invalidReq}},
		} {
			t.Run(how+"/"+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mux := echoMux()
					Method[panics, reply]{"panic"}.Handle(mux, func(context.Context, *panics) (*reply, error) { return nil, nil })
					Method[exits, reply]{"exit"}.Handle(mux, func(context.Context, *exits) (*reply, error) { return nil, nil })
					var ev events
					tt.cfg.Mux, tt.cfg.Diagnose = mux, ev.add
					p := newRawPeer(tt.cfg)
					defer p.close()
					good := `{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"good"}}` + "\n"
					p.write(fmt.Sprintf(good, 7) + tt.in + fmt.Sprintf(good, 8))
					got := p.take()
					var rest []string
					for _, s := range got {
						if !strings.Contains(s, `"text":"good:"`) {
							rest = append(rest, s)
						}
					}
					if diff := cmp.Diff(tt.want, rest); diff != "" || len(got)-len(rest) != 2 {
						t.Errorf("%s\n%q", diff, got)
					}
					if tt.name != "decoder, unfit id" && ev.count(EventHandlerError) == 0 {
						t.Error("not reported")
					}
					// The id is free again.
					p.write(fmt.Sprintf(good, 1))
					if got := p.take(); len(got) != 1 || !strings.Contains(got[0], "good") {
						t.Errorf("%q", got)
					}
				})
			})
			t.Run(how+"/OnReply", func(t *testing.T) {
				for _, answer := range []string{`"result":{}`, `"error":{"code":1,"message":""}`, `"result":{"text":5}`, `"result":{"text":"` + strings.Repeat("x", 1000) + `"}`} {
					synctest.Test(t, func(t *testing.T) {
						p := newRawPeer(Config{Settings: Settings{MaxFrame: 500}})
						defer p.close()
						returned := false
						go func() {
							_, err := prompt.Call(bg, p.conn, &note{}, OnReply(func(any, error) { fall() }))
							if returned = true; (err == nil) != (answer == `"result":{}`) {
								t.Error(answer, err)
							}
						}()
						synctest.Wait()
						p.write(`{"jsonrpc":"2.0","id":0,` + answer + "}\n")
						if synctest.Wait(); !returned {
							t.Error("the call still waits after", answer)
						}
					})
				}
			})
		}
	}
}

// onceThenPanics decodes well once.
type onceThenPanics struct{}

var decodes int

func (o *onceThenPanics) decodeJSON(d *wire.Decoder) {
	d.Skip()
	if decodes++; decodes == 2 {
		panic("second decoding")
	}
}

// TestHostileRedecoding: a notification kept as text whose decoder panics when
// it is decoded again is lost, and no other.
func TestHostileRedecoding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decodes = 0
		var mux Mux
		seen := 0
		handle := func(context.Context, *onceThenPanics) error { seen++; return nil }
		Notification[onceThenPanics]{"x"}.Handle(&mux, handle)
		var ev events
		p := newRawPeer(Config{Mux: &mux, Settings: Settings{Diagnose: ev.add}})
		p.conn.mu.Lock()
		p.conn.room.queued += keepText // as if there were much
		p.conn.mu.Unlock()
		p.write("[]\n") // lets the reader see it
		p.take()
		for range 3 {
			p.write(`{"jsonrpc":"2.0","method":"x","params":{}}` + "\n")
			p.take()
		}
		if seen != 2 || ev.count(EventHandlerError) != 1 {
			t.Error(seen, ev.all)
		}
		p.close()
	})
}

// TestKeptTextIsOurs: that a notification was kept as text is seen by nobody, not
// even where the handler takes raw params, or where decoding it again fails.
func TestKeptTextIsOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decodes = 0
		var mux Mux
		Notification[onceThenPanics]{"panics"}.Handle(&mux, func(context.Context, *onceThenPanics) error { return nil })
		update.Handle(&mux, func(context.Context, *note) error { return nil })
		mux.FallbackNotification(func(context.Context, *Request) (any, error) { return nil, nil })
		seen := map[string]int{}
		look := func(where, method string, params any) {
			seen[where+" "+method]++
			ok := false
			switch p := params.(type) {
			case *note:
				ok = method == "session/update" && p.Text == "a"
			case *onceThenPanics:
				ok = method == "panics"
			case json.RawMessage:
				ok = method == "raw" && string(p) == `{"a":1}`
			}
			if !ok {
				t.Errorf("%s sees %T for %s", where, params, method)
			}
		}
		var ev events
		mw := func(next Handler) Handler {
			return func(ctx context.Context, r *Request) (any, error) {
				look("middleware", r.Method, r.Params)
				look("context", r.Method, RequestFrom(ctx).Params)
				return next(ctx, r)
			}
		}
		p := newRawPeer(Config{
			Mux:      &mux,
			Settings: Settings{Diagnose: ev.add, Incoming: []Middleware{mw}},
			Lane:     func(method string, params any) string { look("lane", method, params); return "" },
		})
		p.conn.mu.Lock()
		p.conn.room.queued += keepText // as if there were much
		p.conn.mu.Unlock()
		p.write("[]\n") // lets the reader see it
		p.take()
		for _, s := range []string{`"session/update","params":{"sessionId":"s","text":"a"}`, `"raw","params":{"a":1}`, `"panics","params":{}`, `"panics","params":{}`} {
			p.write(`{"jsonrpc":"2.0","method":` + s + "}\n")
			p.take()
		}
		p.close()
		want := map[string]int{
			"lane session/update": 1, "middleware session/update": 1, "context session/update": 1,
			"lane raw": 1, "middleware raw": 1, "context raw": 1,
			"lane panics": 2, "middleware panics": 1, "context panics": 1,
		}
		if diff := cmp.Diff(want, seen); diff != "" || ev.count(EventHandlerError) != 1 {
			t.Error(diff, ev.all)
		}
	})
}

// TestMisuse: what is refused at once.
func TestMisuse(t *testing.T) {
	h := func(context.Context, *Request) (any, error) { return nil, nil }
	for name, f := range map[string]func(){
		"nil fallback":               func() { new(Mux).Fallback(nil) },
		"nil notification fallback":  func() { new(Mux).FallbackNotification(nil) },
		"two fallbacks":              func() { m := new(Mux); m.Fallback(h); m.Fallback(h) },
		"two notification fallbacks": func() { m := new(Mux); m.FallbackNotification(h); m.FallbackNotification(h) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

// TestLateID: a connection that has made more calls than any will still finds its
// responses.
func TestLateID(t *testing.T) {
	a, b := pair(Config{}, Config{Mux: echoMux()})
	countFrom(a, 1<<52)
	if _, err := prompt.Call(bg, a, &note{}); err != nil {
		t.Error(err)
	}
	closeBoth(a, b)
}

// uncomparable is a file that == panics on.
type uncomparable struct {
	io.Reader
	io.Writer
	close func() error
}

func (u uncomparable) Close() error { return u.close() }

func TestUncomparableCloser(t *testing.T) {
	closed := 0
	rw := uncomparable{strings.NewReader(""), io.Discard, func() error { closed++; return nil }}
	if err := NewConn(NewLineStream(rw, rw), Config{}).Wait(); err != nil || closed == 0 {
		t.Error(err, closed)
	}
}
