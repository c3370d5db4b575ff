package acp

import (
	"context"
	"testing"
)

// TestClientPostedBeforeResponse holds that what was posted is done before a
// response that arrives later is dealt with, also if nobody has got round to
// doing it: a prompt that is answered at once must not end before it begins.
func TestClientPostedBeforeResponse(t *testing.T) {
	single(t, Client{}, 1, func(t *testing.T, s *ClientSession, _ *clientScript) {
		var order []string
		note := func(what string) func(context.Context) {
			return func(context.Context) { order = append(order, what) }
		}
		l := &s.line
		l.mu.Lock() // post, without its kick
		l.posted++
		l.queue = append(l.queue, clientItem{do: note("posted")})
		l.mu.Unlock()
		m := &clientMark{done: make(chan struct{})}
		s.place(m)
		s.resolve(m, note("response"))
		<-m.done
		want(t, "order", order, []string{"posted", "response"})
	})
}
