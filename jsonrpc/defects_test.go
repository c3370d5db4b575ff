package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The tests below each describe a defect of the leading Go SDK (field.md) and
// fail on the behaviour described there. Those that need more room are
// elsewhere: 9 is TestBlockedPeer and TestBlockedPipe, 16 also
// TestHandlerErrors and TestCallCancelled.

// A burst against a handler that takes 2 ms closes the connection.
func TestDefect02Burst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		var seen atomic.Int64
		update.Handle(&mux, func(context.Context, *note) error {
			time.Sleep(2 * time.Millisecond)
			seen.Add(1)
			return nil
		})
		a, b := pair(Config{}, Config{Mux: &mux, Lane: laneOf})
		for i := range int64(5000) {
			if err := update.Notify(bg, a, &note{Session: "s", N: i}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if seen.Load() != 5000 || b.Err() != nil || a.Err() != nil {
			t.Error(seen.Load(), a.Err(), b.Err())
		}
		closeBoth(a, b)
	})
}

// A request sent from inside an update handler deadlocks.
func TestDefect03CallInHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		var text string
		update.Handle(&mux, func(ctx context.Context, n *note) error {
			r, err := prompt.Call(ctx, RequestFrom(ctx).Conn(), n)
			if err == nil {
				text = r.Text
			}
			return err
		})
		a, b := pair(Config{Mux: echoMux()}, Config{Mux: &mux}) // one lane for all
		if err := update.Notify(bg, a, &note{Session: "s", Text: "t"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if text != "s:t" {
			t.Errorf("got %q", text)
		}
		closeBoth(a, b)
	})
}

// A response followed by EOF is lost when a handler is slow.
func TestDefect04ResponseThenEOF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		handled := false
		update.Handle(&mux, func(context.Context, *note) error {
			time.Sleep(3 * DefaultGrace / 2)
			handled = true
			return nil
		})
		p := newRawPeer(Config{Mux: &mux})
		errs := make(chan error)
		go func() {
			r, err := prompt.Call(bg, p.conn, &note{})
			if err == nil && (r.Text != "x" || !handled) {
				err = fmt.Errorf("got %v, handled: %v", r, handled)
			}
			errs <- err
		}()
		p.take()
		late := make(chan error) // answered by an unterminated line (S4)
		go func() {
			_, err := prompt.Call(bg, p.conn, &note{})
			late <- err
		}()
		p.take()
		p.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}` + "\n" +
			`{"jsonrpc":"2.0","id":0,"result":{"text":"x"}}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{"text":"x"}}`)
		_ = p.in.Close()
		if err := <-errs; err != nil {
			t.Error(err)
		}
		if err := <-late; err != nil {
			t.Error(err)
		}
		p.close()
	})
}

// A prompt and its cancel in one write: the cancel is lost.
func TestDefect05PromptAndCancel(t *testing.T) {
	var mu sync.Mutex
	prompts := map[string]*Request{}
	missed := 0
	var mux Mux
	prompt.Handle(&mux, func(ctx context.Context, _ *note) (*reply, error) {
		<-ctx.Done()
		return &reply{"cancelled"}, nil
	})
	cancel.Handle(&mux, func(context.Context, *note) error { return nil })
	agent, client := filePair(t, Config{Mux: &mux, Lane: laneOf, Preempt: func(r *Request) error {
		mu.Lock()
		defer mu.Unlock()
		switch n := r.Params.(*note); r.Method {
		case "session/prompt":
			prompts[n.Session] = r
			context.AfterFunc(r.Context(), func() {
				mu.Lock()
				delete(prompts, n.Session)
				mu.Unlock()
			})
		case "session/cancel":
			if p := prompts[n.Session]; p != nil {
				p.Cancel(nil)
			} else {
				missed++
			}
		}
		return nil
	}}, Config{})
	for i := range times(10_000, 1000) {
		n := note{Session: fmt.Sprint(i)}
		done := make(chan error, 1)
		hold := client.hold()
		go func() {
			r, err := prompt.Call(bg, client, &n)
			if err == nil && r.Text != "cancelled" {
				err = errors.New(r.Text)
			}
			done <- err
		}()
		hold.until(1)
		if err := cancel.Notify(bg, client, &n); err != nil {
			t.Fatal(err)
		}
		hold.release()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if missed != 0 {
		t.Errorf("%d cancels were lost", missed)
	}
	closeBoth(agent, client)
	noLeaks(t)
}

// hold keeps a connection from writing, so that what is sent goes out in one
// write.
type hold struct {
	c      *Conn
	frames uint64
}

func (c *Conn) hold() hold {
	for {
		c.out.mu.Lock()
		if !c.out.writing {
			c.out.writing = true
			c.out.mu.Unlock()
			return hold{c, c.out.frames.Load()}
		}
		idle := make(chan struct{})
		if c.out.idle == nil {
			c.out.idle = idle
		}
		idle = c.out.idle
		c.out.mu.Unlock()
		<-idle
	}
}

// until waits for n frames in the buffer.
func (h hold) until(n uint64) {
	for h.c.out.frames.Load() < h.frames+n {
		runtime.Gosched()
	}
}

func (h hold) release() { go h.c.out.flush() }

// A second prompt on a session cancels the first.
func TestDefect06SecondPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
			select {
			case <-ctx.Done():
				return &reply{"cancelled"}, nil
			case <-time.After(time.Minute):
				return &reply{n.Text}, nil
			}
		})
		a, b := pair(Config{Mux: &mux, Lane: laneOf}, Config{Lane: laneOf})
		var wg sync.WaitGroup
		for _, text := range []string{"first", "second"} {
			wg.Go(func() {
				if r, err := prompt.Call(bg, b, &note{Session: "s", Text: text}); err != nil || r.Text != text {
					t.Error(r, err)
				}
			})
		}
		wg.Wait()
		closeBoth(a, b)
	})
}

// A handler's panic ends the process; here also one in a notification, in a
// decoder, and a goroutine that exits.
func TestDefect07Panic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		prompt.Handle(&mux, func(_ context.Context, n *note) (*reply, error) {
			if n.Text == "panic" {
				panic("prompt")
			}
			exit()
			return nil, nil
		})
		seen := 0
		update.Handle(&mux, func(_ context.Context, n *note) error {
			if seen++; n.Text == "panic" {
				panic("update")
			}
			exit()
			return nil
		})
		Method[panics, reply]{"decode"}.Handle(&mux, func(context.Context, *panics) (*reply, error) { return nil, nil })
		Notification[panics]{"decode"}.Handle(&mux, func(context.Context, *panics) error { return nil })
		a, b := pair(Config{Mux: &mux}, Config{})
		for _, text := range []string{"panic", "exit"} {
			if err := update.Notify(bg, b, &note{Text: text}); err != nil {
				t.Fatal(err)
			}
			if _, err := prompt.Call(bg, b, &note{Text: text}); !errors.Is(err, ErrInternal) {
				t.Error(err)
			}
		}
		if err := b.Call(bg, "decode", json.RawMessage("{}"), nil); !errors.Is(err, ErrInternal) {
			t.Error(err)
		}
		if err := b.Notify(bg, "decode", json.RawMessage("{}")); err != nil {
			t.Error(err)
		}
		if err := b.Call(bg, "nobody", nil, nil); !errors.Is(err, ErrMethodNotFound) {
			t.Error(err)
		}
		if seen != 2 {
			t.Errorf("%d updates were seen", seen)
		}
		closeBoth(a, b)
	})
}

// A line over 10 MiB kills the connection; an 11 MB file read kills both ends.
func TestDefect08LongLines(t *testing.T) {
	var ev events
	mux := echoMux()
	a, b := filePair(t, Config{Mux: mux, Settings: Settings{MaxFrame: 12 << 20, Diagnose: ev.add}}, Config{Settings: Settings{MaxFrame: 12 << 20}})
	long := strings.Repeat(strings.Repeat("0123456789", 10)+"\n", 110<<10)
	r, err := prompt.Call(bg, b, &note{Session: "s", Text: long})
	if err != nil || r.Text != "s:"+long {
		t.Fatal(err, len(r.Text))
	}
	// Beyond the limit: the request is answered, a notification skipped, a
	// response fails its call, and nothing else changes.
	long += long[:2<<20]
	var we *Error
	if _, err = prompt.Call(bg, b, &note{Session: "s", Text: long}); !errors.As(err, &we) || we.Code != CodeInvalidRequest {
		t.Errorf("%v", err)
	}
	if err := update.Notify(bg, b, &note{Session: "s", Text: long}); err != nil {
		t.Error(err)
	}
	if r, err = prompt.Call(bg, b, &note{Session: "s", Text: "alive"}); err != nil || r.Text != "s:alive" {
		t.Error(r, err)
	}
	if n := ev.count(EventFrameTooLarge); n != 2 || a.Stats().Oversize != 2 {
		t.Errorf("%d frames were reported", n)
	}
	closeBoth(a, b)
	noLeaks(t)
}

// A response beyond the limit fails its call and nothing else.
func TestDefect08LongResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(Config{Settings: Settings{MaxFrame: 1 << 20}})
		defer p.close()
		for i, in := range []string{
			`{"jsonrpc":"2.0","id":0,"result":{"text":"%s"}}`,
			`{"result":{"text":"%s"},"jsonrpc":"2.0","id":1}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}`, // no id can be read
		} {
			errs := make(chan error)
			go func() {
				_, err := prompt.Call(bg, p.conn, &note{})
				errs <- err
			}()
			p.take()
			p.write(fmt.Sprintf(in, strings.Repeat("x", 2<<20)) + "\n")
			if err := <-errs; errors.Is(err, ErrFrameTooLarge) != (i == 0) {
				t.Error(err)
			}
		}
	})
}

// Keys match case-insensitively; of duplicate keys the last wins.
func TestDefect13Keys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(Config{Mux: echoMux()})
		defer p.close()
		p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"good","SessionID":"evil"},"Params":{"sessionId":"evil"},"METHOD":"_echo"}` + "\n")
		if got := p.take(); len(got) != 1 || !strings.Contains(got[0], `"good:"`) {
			t.Error(got)
		}
		p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","method":"_echo","params":{"sessionId":"x"}}` + "\n")
		if got := p.take(); len(got) != 1 || got[0] != invalidReq {
			t.Error(got)
		}
	})
}

// Invalid JSON and batches get no answer, and the whole line is logged.
func TestDefect14InvalidJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		p := newRawPeer(Config{Mux: echoMux(), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		defer p.close()
		p.write(`{"token":"hunter2"` + "\n" + `[{"token":"hunter2"}]` + "\n" + "hunter2\n" +
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":5,"text":"hunter2"}}` + "\n" +
			`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":["hunter2"]}}` + "\n")
		got := p.take()
		if len(got) != 3 || got[0] != parseError || got[1] != batchError {
			t.Errorf("%q", got)
		}
		if strings.Contains(log.String()+fmt.Sprint(got), "hunter2") {
			t.Error("a secret was logged or echoed:", log.String(), got)
		}
		for _, want := range []string{"code=-32700", "code=-32600", "method=session/update", "path=params.sessionId"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %s: %s", want, log.String())
			}
		}
	})
}

// A request with id null is taken for a notification, a response with an id of
// another type hangs the caller, a response with nothing is a success.
func TestDefect15IDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(Config{Mux: echoMux()})
		defer p.close()
		p.write(`{"jsonrpc":"2.0","id":null,"method":"session/prompt","params":{"sessionId":"s"}}` + "\n")
		if got := p.take(); len(got) != 1 || got[0] != `{"jsonrpc":"2.0","id":null,"result":{"text":"s:"}}` {
			t.Error(got)
		}
		ctx, stop := context.WithTimeout(bg, time.Minute)
		defer stop()
		errs := make(chan error)
		call := func() {
			_, err := prompt.Call(ctx, p.conn, &note{})
			errs <- err
		}
		go call()
		p.take()
		p.write(`{"jsonrpc":"2.0","id":0}` + "\n")
		if err := <-errs; !errors.Is(err, ErrInvalidResponse) {
			t.Error(err)
		}
		go call()
		p.take()
		p.write(`{"jsonrpc":"2.0","id":"1","result":{}}` + "\n") // not ours: the call goes on
		if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// errors.Is fails for context errors and EOF; a wrapped protocol error becomes
// -32603; plain errors leak.
func TestDefect16Errors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		prompt.Handle(&mux, func(context.Context, *note) (*reply, error) {
			return nil, fmt.Errorf("reading /home/me: %w", ErrAuthRequired)
		})
		p := newRawPeer(Config{Mux: &mux})
		p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}` + "\n")
		if got := p.take(); len(got) != 1 || !strings.Contains(got[0], "-32000") || strings.Contains(got[0], "/home") {
			t.Error(got)
		}
		errs := make(chan error)
		go func() {
			_, err := prompt.Call(bg, p.conn, &note{})
			errs <- err
		}()
		p.take()
		_ = p.in.Close()
		var we *Error
		if err := <-errs; !errors.Is(err, io.EOF) || !errors.Is(err, ErrClosed) || errors.As(err, &we) {
			t.Error(err)
		}
		p.close()
	})
}
