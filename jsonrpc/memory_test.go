package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"
)

// TestHandledMessagesAreFree: what was handled is not kept, by its neighbours in
// memory, by requests that still run, or by an idle reader.
func TestHandledMessagesAreFree(t *testing.T) {
	var mux Mux
	started, release := make(chan struct{}), make(chan struct{})
	prompt.Handle(&mux, func(context.Context, *note) (*reply, error) {
		close(started)
		<-release
		return nil, nil
	})
	var mu sync.Mutex
	var handled []weak.Pointer[note]
	done := make(chan struct{})
	const n = 200
	update.Handle(&mux, func(_ context.Context, u *note) error {
		mu.Lock()
		defer mu.Unlock()
		if len(u.Text) > 0 {
			handled = append(handled, weak.Make(u))
		}
		if u.N == n {
			close(done)
		}
		return nil
	})
	a, b := filePair(t, Config{}, Config{Mux: &mux, Lane: laneOf})
	answered := make(chan error)
	send := func(i int, text string) {
		if err := update.Notify(bg, a, &note{Session: "s", N: int64(i), Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		if i == n/2 {
			go func() {
				_, err := prompt.Call(bg, a, &note{Session: "s"})
				answered <- err
			}()
			<-started
		}
		text := "" // big ones between small ones
		if i%5 == 4 {
			text = strings.Repeat("x", 1000<<(i%4*4))
		}
		send(i, text)
	}
	send(n, strings.Repeat("x", 1<<20)) // the last one is the reader's last frame
	<-done
	left := 0
	for end := time.Now().Add(time.Minute); time.Now().Before(end); runtime.Gosched() {
		runtime.GC()
		mu.Lock()
		left = 0
		for _, w := range handled {
			if w.Value() != nil {
				left++
			}
		}
		mu.Unlock()
		if left == 0 {
			break
		}
	}
	if left > 0 {
		t.Errorf("%d of %d big messages are still in memory", left, len(handled))
	}
	if f := weakFrame(b); f {
		t.Error("the reader keeps its last frame")
	}
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	closeBoth(a, b)
}

// weakFrame reports whether the decoder of an idle reader still has input.
func weakFrame(c *Conn) bool {
	return c.reader.d.Peek() != 0
}

// TestPreemptKeeps: what Preempt has kept stays as it was, however long the
// queue is.
func TestPreemptKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mux Mux
		release := make(chan struct{})
		update.Handle(&mux, func(_ context.Context, n *note) error {
			<-release
			if n.Text[0] != 'y' {
				t.Error("the handler did not get what Preempt left")
			}
			return nil
		})
		var kept []*Request
		p := newRawPeer(Config{Mux: &mux, Preempt: func(r *Request) error {
			n := r.Params.(*note)
			r.Params = &note{Session: n.Session, N: n.N, Text: "y"}
			kept = append(kept, r)
			return nil
		}})
		const n = 2000
		for i := range n {
			p.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","n":%d,"text":%q}}`+"\n", i, strings.Repeat("x", 2500)))
		}
		synctest.Wait()
		p.conn.mu.Lock()
		if p.conn.room.queued < 2*keepText {
			t.Errorf("only %d bytes are queued", p.conn.room.queued)
		}
		p.conn.mu.Unlock()
		close(release)
		p.close()
		for i, r := range kept {
			if u, ok := r.Params.(*note); !ok || u.N != int64(i) || u.Text != "y" {
				t.Fatalf("message %d is now %v", i, r.Params)
			}
		}
	})
}

// TestRequestContext: the context of a request is done in every ending, and not
// before; that of a notification when the connection ends.
func TestRequestContext(t *testing.T) {
	req := `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}` + "\n"
	up := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}` + "\n"
	for name, tt := range map[string]struct {
		in  string // handled up to here the context is alive
		end func(p *rawPeer, release chan struct{})
	}{
		"answered":  {req, func(_ *rawPeer, release chan struct{}) { close(release) }},
		"cancelled": {req, func(p *rawPeer, _ chan struct{}) { p.write(cancelReq(`,"params":{"requestId":1}`)) }},
		"cancelled before it started": {up + req, func(p *rawPeer, _ chan struct{}) {
			p.write(cancelReq(`,"params":{"requestId":1}`))
		}},
		"dropped from its lane": {up + req, func(p *rawPeer, _ chan struct{}) { go func() { _ = p.conn.Close(); <-p.conn.Done() }() }},
		"dropped while waiting": {strings.Replace(req, ":1,", ":2,", 1) + req, func(p *rawPeer, _ chan struct{}) { _ = p.in.Close() }},
		"refused":               {"", func(p *rawPeer, _ chan struct{}) { p.write(strings.Replace(req, `"s"`, `"no"`, 1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mux Mux
				release := make(chan struct{})
				prompt.Handle(&mux, func(context.Context, *note) (*reply, error) { <-release; return nil, nil })
				update.Handle(&mux, func(context.Context, *note) error { <-release; return nil })
				var ctx, noted context.Context
				p := newRawPeer(Config{Mux: &mux, Lane: laneOf, Preempt: func(r *Request) error {
					if r.IsNotification() {
						noted = r.Context()
						return nil
					}
					if ctx = r.Context(); RequestFrom(ctx) != r || ctx.Err() != nil {
						t.Error("not the request's context, or done", ctx.Err())
					}
					if r.Lane == "no" {
						return errors.New("refused")
					}
					return nil
				}, Settings: Settings{MaxRequests: 1}})
				p.write(tt.in)
				synctest.Wait()
				if ctx != nil && ctx.Err() != nil {
					t.Error("done too early")
				}
				cleaned := make(chan struct{})
				if ctx != nil {
					context.AfterFunc(ctx, func() { close(cleaned) })
				} else {
					close(cleaned)
				}
				tt.end(p, release)
				time.Sleep(time.Hour)
				synctest.Wait()
				select {
				case <-cleaned:
				default:
					t.Error("not told")
				}
				if ctx.Err() == nil {
					t.Error("not done")
				}
				select {
				case <-release:
				default:
					close(release)
				}
				p.close()
				if noted != nil && noted.Err() == nil {
					t.Error("the notifications' context is not done")
				}
			})
		})
	}
	if new(Request).Context() == nil {
		t.Error("no context")
	}
}
