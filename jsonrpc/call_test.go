package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCallCancelled: a call whose ctx is done returns at once, the peer is
// told, and its late answer is dropped silently (S38).
func TestCallCancelled(t *testing.T) {
	cause := errors.New("the user left")
	for _, tt := range []struct {
		name string
		ctx  func() context.Context
		is   []error
	}{
		{"deadline", func() context.Context {
			ctx, stop := context.WithTimeout(bg, time.Second)
			context.AfterFunc(ctx, stop)
			return ctx
		}, []error{context.DeadlineExceeded}},
		{"cause", func() context.Context {
			ctx, cancel := context.WithCancelCause(bg)
			time.AfterFunc(time.Second, func() { cancel(cause) })
			return ctx
		}, []error{context.Canceled, cause}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ev events
				p := newRawPeer(Config{Settings: Settings{Diagnose: ev.add}})
				defer p.close()
				start := time.Now()
				_, err := prompt.Call(tt.ctx(), p.conn, &note{Session: "s"})
				if time.Since(start) != time.Second {
					t.Error("returned after", time.Since(start))
				}
				for _, want := range tt.is {
					if !errors.Is(err, want) {
						t.Errorf("%v is not %v", err, want)
					}
				}
				var we *Error
				if errors.As(err, &we) {
					t.Error("a local failure is an *Error")
				}
				want := []string{
					`{"jsonrpc":"2.0","id":0,"method":"session/prompt","params":{"sessionId":"s","n":0,"text":""}}`,
					`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}`,
				}
				if diff := cmp.Diff(want, p.take()); diff != "" {
					t.Error(diff)
				}
				p.write(`{"jsonrpc":"2.0","id":0,"error":{"code":-32800,"message":"x"}}` + "\n")
				if got := p.take(); got != nil || ev.kinds() != nil {
					t.Error(got, ev.kinds())
				}
			})
		})
	}
}

// TestCallDone: nothing is sent when ctx is done before.
func TestCallDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(Config{})
		defer p.close()
		ctx, stop := context.WithCancel(bg)
		stop()
		if _, err := prompt.Call(ctx, p.conn, &note{}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := update.Notify(ctx, p.conn, &note{}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if got := p.take(); got != nil {
			t.Error(got)
		}
	})
}

// TestAwaitAnswer: S38, the other way.
func TestAwaitAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(Config{})
		defer p.close()
		ctx, stop := context.WithCancel(bg)
		done := make(chan error)
		go func() {
			_, err := prompt.Call(ctx, p.conn, &note{}, AwaitAnswer())
			done <- err
		}()
		p.take()
		stop()
		if got := p.take(); len(got) != 1 || !strings.Contains(got[0], cancelMethod) {
			t.Error(got)
		}
		p.write(`{"jsonrpc":"2.0","id":0,"error":{"code":-32800,"message":"cancelled"}}` + "\n")
		if err := <-done; !errors.Is(err, ErrRequestCancelled) {
			t.Error(err)
		}
	})
}

// TestInterruptedBehindLane: ctx ends a call whose response is queued behind
// its lane.
func TestInterruptedBehindLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		release := make(chan struct{})
		update.Handle(&mux, func(context.Context, *note) error { <-release; return nil })
		p := newRawPeer(Config{Mux: &mux})
		defer p.close()
		ctx, stop := context.WithTimeout(bg, time.Second)
		defer stop()
		done := make(chan error)
		go func() {
			_, err := prompt.Call(ctx, p.conn, &note{})
			done <- err
		}()
		p.take()
		p.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}` + "\n" + `{"jsonrpc":"2.0","id":0,"result":{}}` + "\n")
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if got := p.take(); got != nil {
			t.Error("cancelled what was answered", got)
		}
		close(release)
	})
}

// TestHandlerErrors: S26–S28 and §1 "Exception text".
func TestHandlerErrors(t *testing.T) {
	secret := errors.New("open /home/me/secret: no such file")
	for _, tt := range []struct {
		name   string
		expose bool
		err    error
		panics any
		want   string
	}{
		{name: "wire error", err: &Error{Code: -32000, Message: "log in", Data: json.RawMessage(`{"a":[1, 2]}`)}, want: `{"code":-32000,"message":"log in","data":{"a":[1, 2]}}`},
		{name: "wrapped wire error", err: fmt.Errorf("opening: %w", ErrResourceNotFound.WithData(map[string]any{"sessionId": "s"})), want: `{"code":-32002,"message":"Resource not found","data":{"sessionId":"s"}}`},
		{name: "broken data", err: &Error{Code: 5, Message: "m", Data: json.RawMessage("{\n")}, want: `{"code":5,"message":"m"}`},
		{name: "data with newlines", err: &Error{Code: 5, Message: "m\n", Data: json.RawMessage("[1,\n2]")}, want: `{"code":5,"message":"m\n","data":[1, 2]}`},
		{name: "plain error", err: secret, want: `{"code":-32603,"message":"Internal error","data":{"correlationId":"*"}}`},
		{name: "exposed", err: secret, expose: true, want: `{"code":-32603,"message":"Internal error","data":{"correlationId":"*","details":"open /home/me/secret: no such file"}}`},
		{name: "panic", panics: "secret", want: `{"code":-32603,"message":"Internal error","data":{"correlationId":"*"}}`},
		{name: "own timeout", err: context.DeadlineExceeded, want: `{"code":-32603,"message":"Internal error","data":{"correlationId":"*"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mux Mux
				prompt.Handle(&mux, func(context.Context, *note) (*reply, error) {
					if tt.panics != nil {
						panic(tt.panics)
					}
					return nil, tt.err
				})
				var log strings.Builder
				p := newRawPeer(Config{Mux: &mux, Logger: slog.New(slog.NewTextHandler(&log, nil)), Settings: Settings{ExposeErrors: tt.expose}})
				defer p.close()
				p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"payload"}}` + "\n")
				got := p.take()
				want := `{"jsonrpc":"2.0","id":1,"error":` + tt.want + `}`
				if len(got) != 1 || correlation.ReplaceAllString(got[0], `"correlationId":"*"`) != want {
					t.Errorf("got %q\nwant %s", got, want)
				}
				if id := correlation.FindString(fmt.Sprint(got)); id != "" && !strings.Contains(log.String(), id[len(`"correlationId":"`):len(id)-1]) {
					t.Error("the log does not hold the correlation id:", log.String())
				}
				if strings.Contains(log.String(), "payload") {
					t.Error("the log holds payload:", log.String())
				}
			})
		})
	}
}

// TestCancelRequest: S36, S37. A cancelled handler may still answer as it likes;
// exactly one answer is sent.
func TestCancelRequest(t *testing.T) {
	for _, tt := range []struct {
		name   string
		finish func(ctx context.Context) (*reply, error)
		want   string
	}{
		{"ctx error", func(ctx context.Context) (*reply, error) { return nil, fmt.Errorf("prompt: %w", ctx.Err()) },
			`"error":{"code":-32800,"message":"Request cancelled","data":{"requestId":"\u0061"}}`},
		{"cause", func(ctx context.Context) (*reply, error) { return nil, context.Cause(ctx) },
			`"error":{"code":-32800,"message":"Request cancelled","data":{"requestId":"\u0061"}}`},
		{"result", func(context.Context) (*reply, error) { return &reply{"done"}, nil }, `"result":{"text":"done"}`},
		{"other error", func(context.Context) (*reply, error) { return nil, ErrAuthRequired }, `"error":{"code":-32000,"message":"Authentication required"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mux Mux
				prompt.Handle(&mux, func(ctx context.Context, _ *note) (*reply, error) {
					<-ctx.Done()
					return tt.finish(ctx)
				})
				p := newRawPeer(Config{Mux: &mux})
				defer p.close()
				p.write(`{"jsonrpc":"2.0","id":"\u0061","method":"session/prompt","params":{"sessionId":"s"}}` + "\n")
				p.write(cancelReq(`,"params":{"requestId":1}`))
				if got := p.take(); got != nil {
					t.Fatal(got)
				}
				p.write(cancelReq(`,"params":{"requestId":"a"}`) + cancelReq(`,"params":{"requestId":"a"}`))
				if diff := cmp.Diff([]string{`{"jsonrpc":"2.0","id":"\u0061",` + tt.want + `}`}, p.take()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestRequestCancel: a cancellation by the protocol layer, with and without an
// error of its own.
func TestRequestCancel(t *testing.T) {
	for _, tt := range []struct {
		cause error
		want  string
	}{
		{errors.New("session closed"), `"error":{"code":-32800,"message":"Request cancelled"}`},
		{&Error{Code: -32042, Message: "held"}, `"error":{"code":-32042,"message":"held"}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mux Mux
			prompt.Handle(&mux, func(ctx context.Context, _ *note) (*reply, error) {
				if context.Cause(ctx) != tt.cause {
					t.Error(context.Cause(ctx))
				}
				return nil, ctx.Err()
			})
			p := newRawPeer(Config{Mux: &mux, Preempt: func(r *Request) error { r.Cancel(tt.cause); return nil }})
			defer p.close()
			p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}` + "\n")
			if diff := cmp.Diff([]string{`{"jsonrpc":"2.0","id":1,` + tt.want + `}`}, p.take()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPreempt: what it refuses is answered or dropped, in wire order.
func TestPreempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ev events
		var saw []string
		p := newRawPeer(Config{Mux: echoMux(), Lane: laneOf, Preempt: func(r *Request) error {
			saw = append(saw, fmt.Sprintf("%s %s %s %v", r.Method, r.ID, r.Lane, r.IsNotification()))
			if r.Lane == "no" {
				return Errorf(-32600, "not %s", r.Lane)
			}
			return nil
		}, Settings: Settings{Diagnose: ev.add}})
		defer p.close()
		p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"no"}}` + "\n" +
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"no"}}` + "\n" +
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"yes"}}` + "\n")
		if diff := cmp.Diff([]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"not no"}}`}, p.take()); diff != "" {
			t.Error(diff)
		}
		want := []string{"session/prompt 1 no false", "session/update  no true", "session/update  yes true"}
		if diff := cmp.Diff(want, saw); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]EventKind{EventRefusedNotification}, ev.kinds()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestSetMux: a switch on the reader is exact, in both directions.
func TestSetMux(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type v2 struct {
			Session string `json:"sessionId"`
		}
		var got []string
		mux1, mux2 := echoMux(), new(Mux)
		Notification[v2]{"session/update"}.Handle(mux2, func(_ context.Context, n *v2) error {
			got = append(got, fmt.Sprintf("%T", n))
			return nil
		})
		p := newRawPeer(Config{Mux: mux1, Preempt: func(r *Request) error {
			if r.Method == "_echo" {
				r.Conn().SetMux(mux2)
			}
			return nil
		}})
		defer p.close()
		up := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"x"}}` + "\n"
		p.write(up + `{"jsonrpc":"2.0","id":1,"method":"_echo"}` + "\n" + up)
		p.take()
		go func() {
			_ = p.conn.Call(bg, "initialize", nil, nil, OnReply(func(any, error) { p.conn.SetMux(mux1) }))
		}()
		p.take()
		p.write(up + `{"jsonrpc":"2.0","id":0,"result":{}}` + "\n" + up)
		p.take()
		if diff := cmp.Diff([]string{"*jsonrpc.v2", "*jsonrpc.v2"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestMiddleware: one type for both directions; it sees decoded values and may
// answer itself.
func TestMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log []string
		trace := func(name string) Middleware {
			return func(next Handler) Handler {
				return func(ctx context.Context, r *Request) (any, error) {
					mu.Lock()
					log = append(log, fmt.Sprintf("%s %s %T %v", name, r.Method, r.Params, r.IsNotification()))
					mu.Unlock()
					if n, ok := r.Params.(*note); ok && n.Text == "stop" {
						return nil, ErrAuthRequired
					}
					return next(ctx, r)
				}
			}
		}
		a, b := pair(Config{Mux: echoMux(), Settings: Settings{Incoming: []Middleware{trace("in1"), trace("in2")}}}, Config{Settings: Settings{Outgoing: []Middleware{trace("out")}}})
		if r, err := prompt.Call(bg, b, &note{Session: "s", Text: "t"}); err != nil || r.Text != "s:t" {
			t.Error(r, err)
		}
		if err := update.Notify(bg, b, &note{Session: "s"}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if _, err := prompt.Call(bg, b, &note{Text: "stop"}); !errors.Is(err, ErrAuthRequired) {
			t.Error(err)
		}
		want := []string{
			"out session/prompt *jsonrpc.note false", "in1 session/prompt *jsonrpc.note false", "in2 session/prompt *jsonrpc.note false",
			"out session/update *jsonrpc.note true", "in1 session/update *jsonrpc.note true", "in2 session/update *jsonrpc.note true",
			"out session/prompt *jsonrpc.note false",
		}
		if diff := cmp.Diff(want, log); diff != "" {
			t.Error(diff)
		}
		closeBoth(a, b)
	})
}

// TestValues: what params and results may be.
func TestValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(Config{Mux: echoMux()})
		defer p.close()
		type plain struct {
			A int `json:"a"`
		}
		rawMethod := Method[json.RawMessage, json.RawMessage]{"r"}
		for _, tt := range []struct {
			name string
			call func() error
			want string // params
		}{
			{"typed", func() error { return update.Notify(bg, p.conn, &note{Text: "x"}) }, `,"params":{"sessionId":"","n":0,"text":"x"}`},
			{"typed nil", func() error { return update.Notify(bg, p.conn, nil) }, `,"params":{}`},
			{"reflected", func() error { return Notification[plain]{"session/update"}.Notify(bg, p.conn, &plain{5}) }, `,"params":{"a":5}`},
			{"raw", func() error {
				return Notification[json.RawMessage]{"session/update"}.Notify(bg, p.conn, raw("[1,\n 2]"))
			}, `,"params":[1,  2]`},
			{"raw nil", func() error { return Notification[json.RawMessage]{"session/update"}.Notify(bg, p.conn, nil) }, ``},
			{"untyped nil", func() error { return p.conn.Notify(bg, "session/update", nil) }, ``},
			{"untyped map", func() error { return p.conn.Notify(bg, "session/update", map[string]int{"b": 1}) }, `,"params":{"b":1}`},
			{"untyped raw", func() error { return p.conn.Notify(bg, "session/update", json.RawMessage("{}")) }, `,"params":{}`},
		} {
			if err := tt.call(); err != nil {
				t.Error(tt.name, err)
			}
			if diff := cmp.Diff([]string{`{"jsonrpc":"2.0","method":"session/update"` + tt.want + `}`}, p.take()); diff != "" {
				t.Error(tt.name, diff)
			}
		}
		for _, v := range []any{json.RawMessage("{"), func() {}, json.RawMessage("1 2")} {
			if err := p.conn.Notify(bg, "session/update", v); err == nil {
				t.Errorf("%v was sent", v)
			}
			if err := p.conn.Call(bg, "x", v, nil); err == nil {
				t.Errorf("%v was sent", v)
			}
		}
		if got := p.take(); got != nil {
			t.Error("a part of a frame was sent", got)
		}
		_ = rawMethod
	})
}

// TestUntypedCall: results of every kind.
func TestUntypedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(Config{Mux: echoMux()}, Config{})
		var m map[string]int
		if err := b.Call(bg, "_echo", map[string]int{"a": 1}, &m); err != nil || m["a"] != 1 {
			t.Error(m, err)
		}
		var rm json.RawMessage
		if err := b.Call(bg, "_echo", json.RawMessage(`{"a": 1.0}`), &rm); err != nil || string(rm) != `{"a": 1.0}` {
			t.Error(string(rm), err)
		}
		var n note
		if err := b.Call(bg, "_echo", &note{Session: "s", N: 1 << 60}, &n); err != nil || n.N != 1<<60 {
			t.Error(n, err)
		}
		if err := b.Call(bg, "_echo", nil, &m); err != nil {
			t.Error(err)
		}
		if err := b.Call(bg, "_echo", json.RawMessage(`[]`), &m); !errors.Is(err, ErrInvalidResponse) {
			t.Error(err)
		}
		if err := b.Call(bg, "session/prompt", &note{}, nil); err != nil {
			t.Error(err)
		}
		closeBoth(a, b)
	})
}

type hostile struct{ what string }

func (h *hostile) AppendJSON(dst []byte) ([]byte, error) {
	switch h.what {
	case "panic":
		panic("encoder")
	case "newline":
		return append(dst, "{}\n{}"...), nil
	}
	return dst, errors.New("no")
}

// TestHostileEncoders: an encoder that fails sends nothing and harms nothing.
func TestHostileEncoders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		Method[note, hostile]{"bad"}.Handle(&mux, func(_ context.Context, n *note) (*hostile, error) { return &hostile{n.Text}, nil })
		p := newRawPeer(Config{Mux: &mux})
		defer p.close()
		for _, what := range []string{"panic", "newline", "error"} {
			if err := p.conn.Notify(bg, "x", &hostile{what}); err == nil {
				t.Error(what, "was sent")
			}
			p.write(`{"jsonrpc":"2.0","id":1,"method":"bad","params":{"sessionId":"","text":"` + what + `"}}` + "\n")
			got := p.take()
			if len(got) != 1 || !strings.Contains(got[0], `"id":1,"error":{"code":-32603`) {
				t.Errorf("%s: %q", what, got)
			}
		}
	})
}

// TestBlockedPeer: calls to a peer that does not read return at their deadline;
// what is queued stays whole and in order, and goes out when reading resumes,
// with the cancellation.
func TestBlockedPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rawPeerStream(Config{}, NewLineStream)
		text := strings.Repeat("x", 1000)
		sent := 0
		for {
			ctx, stop := context.WithTimeout(bg, 200*time.Millisecond)
			err := update.Notify(ctx, p.conn, &note{Session: "s", N: int64(sent), Text: text})
			stop()
			if err != nil {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				break
			}
			if sent++; sent == 50 {
				ctx, stop := context.WithTimeout(bg, 200*time.Millisecond)
				start := time.Now()
				if _, err := prompt.Call(ctx, p.conn, &note{Session: "s"}); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if d := time.Since(start); d != 200*time.Millisecond {
					t.Error("returned after", d)
				}
				stop()
			}
		}
		if sent < 60 || sent > 200 {
			t.Errorf("%d frames were taken", sent)
		}
		go p.readLines()
		got := p.take()
		cancelled := 0
		n := 0
		for _, line := range got {
			var m struct {
				Method string
				Params struct{ N int }
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err, line)
			}
			switch m.Method {
			case cancelMethod:
				cancelled++
			case "session/update":
				if m.Params.N != n {
					t.Errorf("update %d after %d", m.Params.N, n)
				}
				n++
			}
		}
		if cancelled != 1 || n != sent {
			t.Errorf("%d cancellations, %d of %d updates", cancelled, n, sent)
		}
		p.close()
	})
}

// TestBlockedPipe is the same against the kernel, where frames are written in
// part.
func TestBlockedPipe(t *testing.T) {
	r1, w1, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := NewConn(NewLineStream(r1, w2), Config{})
	ctx, stop := context.WithCancel(bg)
	errs := make(chan error)
	go func() {
		_, err := prompt.Call(ctx, c, &note{Session: strings.Repeat("s", 1<<20)})
		errs <- err
	}()
	for c.Stats().Writes == 0 {
		runtime.Gosched()
	}
	stop()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	d := NewConn(NewLineStream(r2, w1), Config{Settings: Settings{Diagnose: func(e Event) { t.Error(e) }}})
	if err := c.Notify(bg, cancelMethod, map[string]any{"requestId": "last"}); err != nil {
		t.Error(err)
	}
	for d.Stats().FramesIn < 3 {
		runtime.Gosched()
	}
	closeBoth(c, d)
	noLeaks(t)
}
