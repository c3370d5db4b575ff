package jsonrpc

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestSendIf holds that what a SendIf function decides is what happens, with
// middleware and without, and that nothing is left of what was not sent.
func TestSendIf(t *testing.T) {
	pass := func(next Handler) Handler { return next }
	for name, mw := range map[string][]Middleware{"plain": nil, "middleware": {pass}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newRawPeer(Config{Settings: Settings{Outgoing: mw}})
				defer p.close()
				yes, no := func() bool { return true }, func() bool { return false }
				if _, err := prompt.Call(bg, p.conn, &note{Session: "no"}, SendIf(no)); !errors.Is(err, ErrNotSent) {
					t.Errorf("call: %v", err)
				}
				if err := update.NotifyIf(bg, p.conn, &note{Session: "no"}, no); !errors.Is(err, ErrNotSent) {
					t.Errorf("notification: %v", err)
				}
				if err := update.NotifyIf(bg, p.conn, &note{Session: "yes"}, yes); err != nil {
					t.Errorf("notification: %v", err)
				}
				pending, err := prompt.Start(bg, p.conn, &note{Session: "yes"}, SendIf(yes))
				if err != nil {
					t.Fatal(err)
				}
				got := p.take()
				if text := strings.Join(got, " "); len(got) != 2 || strings.Contains(text, `"no"`) {
					t.Fatalf("got %q", got)
				}
				id := "0"
				if strings.Contains(got[1], `"id":1`) { // ids are not reused
					id = "1"
				}
				p.write(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}` + "\n")
				if _, err := pending.Wait(); err != nil {
					t.Error(err)
				}
				p.conn.mu.Lock()
				defer p.conn.mu.Unlock()
				if len(p.conn.calls.pending) > 0 {
					t.Error("a call is left")
				}
			})
		})
	}
}

// TestSendIfOrder holds that the order in which SendIf functions are called is
// that of the messages, while others send, too, and the output is full.
func TestSendIfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe()
		conn := NewConn(a, Config{})
		const n = 200
		var order []string // of the lock of the output
		var senders sync.WaitGroup
		var asked atomic.Int32
		for i := range n {
			name := strings.Repeat("x", 1<<10) + string(rune('A'+i))
			senders.Go(func() {
				err := update.NotifyIf(bg, conn, &note{Session: name}, func() bool {
					if asked.Add(1)%3 == 0 {
						return false
					}
					order = append(order, name)
					return true
				})
				if err != nil && !errors.Is(err, ErrNotSent) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		for i := range n - n/3 {
			f, err := b.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if !strings.Contains(string(f.Data), order[i]) {
				t.Fatalf("message %d is %.200q, want %.100q", i, f.Data, order[i])
			}
		}
		senders.Wait()
		_ = b.Close()
		_ = conn.Close()
	})
}

// TestSendIfFails holds that a SendIf function is not asked about what cannot be
// sent, and that one that panics fails its message alone.
func TestSendIfFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRawPeer(Config{})
		defer p.close()
		asked := func() bool {
			t.Error("asked")
			return true
		}
		ctx, cancel := context.WithCancel(bg)
		cancel()
		if err := update.NotifyIf(ctx, p.conn, &note{}, asked); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := update.NotifyIf(bg, p.conn, &note{}, func() bool { panic("f") }); err == nil {
			t.Error("no error")
		}
		if err := update.Notify(bg, p.conn, &note{Session: "next"}); err != nil {
			t.Error(err)
		}
		if got := p.take(); len(got) != 1 || !strings.Contains(got[0], "next") {
			t.Errorf("got %q", got)
		}
	})
}
