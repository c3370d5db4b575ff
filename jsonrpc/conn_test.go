package jsonrpc

import (
	"context"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	var mux Mux
	prompt.Handle(&mux, func(ctx context.Context, n *note) (*reply, error) {
		for i := range int64(10) {
			if err := update.Notify(ctx, RequestFrom(ctx).Conn(), &note{Session: n.Session, N: i}); err != nil {
				return nil, err
			}
		}
		return &reply{Text: n.Text}, nil
	})
	var client Mux
	var seen int64
	update.Handle(&client, func(ctx context.Context, n *note) error {
		if n.N != seen {
			t.Errorf("update %d, want %d", n.N, seen)
		}
		seen++
		return nil
	})
	for name, mk := range map[string]func() (*Conn, *Conn){
		"memory": func() (*Conn, *Conn) {
			return pair(Config{Mux: &mux, Lane: laneOf}, Config{Mux: &client, Lane: laneOf})
		},
		"pipes": func() (*Conn, *Conn) {
			return filePair(t, Config{Mux: &mux, Lane: laneOf}, Config{Mux: &client, Lane: laneOf})
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, c := mk()
			for range 1000 {
				seen = 0
				r, err := prompt.Call(bg, c, &note{Session: "s1", Text: "hi"})
				if err != nil || r.Text != "hi" || seen != 10 {
					t.Fatalf("%v %v %d", r, err, seen)
				}
			}
			closeBoth(a, c)
			if err := a.Wait(); err != nil {
				t.Error(err)
			}
			noLeaks(t)
		})
	}
}
