package jsonrpc

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// TestAfterAnswer: what a handler leaves to be done is done behind its answer,
// in order and before the request's context ends, whatever the handler returns;
// and a panic there harms nobody.
func TestAfterAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ev events
		var mux Mux
		var did []string
		prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
			r := RequestFrom(ctx)
			did = append(did, "handled "+n.Text)
			r.AfterAnswer(func() {
				if err := update.Notify(bg, r.Conn(), &note{Text: n.Text}); err != nil || r.Context().Err() != nil {
					t.Error(err, r.Context().Err())
				}
			})
			r.AfterAnswer(func() { did = append(did, "after "+n.Text) })
			switch n.Text {
			case "fail":
				return nil, ErrAuthRequired
			case "exit":
				exit()
			case "panic":
				panic("boom")
			case "panic after":
				r.AfterAnswer(func() { panic("boom") })
			}
			return &reply{}, nil
		})
		update.Handle(&mux, func(ctx context.Context, _ *note) error {
			RequestFrom(ctx).AfterAnswer(func() { t.Error("a notification has no answer") })
			return nil
		})
		p := newRawPeer(Config{Mux: &mux, Settings: Settings{Diagnose: ev.add}})
		defer p.close()
		p.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}` + "\n")
		p.take()
		for _, text := range []string{"ok", "fail", "exit", "panic", "panic after"} {
			did = nil
			p.write(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","text":"` + text + `"}}` + "\n")
			got := p.take()
			if len(got) != 2 || !strings.Contains(got[0], `"id":1`) || !strings.Contains(got[1], update.Name) {
				t.Errorf("%s: %q", text, got)
			}
			if diff := cmp.Diff([]string{"handled " + text, "after " + text}, did); diff != "" {
				t.Errorf("%s: %s", text, diff)
			}
		}
		if n := len(ev.kinds()); n != 3 { // exit, panic, panic after
			t.Errorf("%d events", n)
		}
	})
	noLeaks(t)
}
