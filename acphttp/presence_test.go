package acphttp_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/internal/remotetest"
)

// TestAttendance: a client that was killed is no longer there within seconds, although its connection lives on, and is
// there again when it comes back.
func TestAttendance(t *testing.T) {
	agent := remotetest.Counting(t)
	var a *acphttp.Presence
	s := &acphttp.Server{Serve: func(ctx context.Context, tr acp.Transport) error {
		a = acphttp.PresenceOf(ctx)
		return agent.Serve(ctx, tr)
	}}
	inBubble(t, s, func(t *testing.T, c *rawClient) {
		c.initialize()
		var changes atomic.Int32
		stop := a.Notify(func() { changes.Add(1) })
		is := func(when string, there bool, n int32) {
			t.Helper()
			synctest.Wait()
			if a.Present() != there || changes.Load() != n {
				t.Errorf("%s: attended %v, %d changes", when, a.Present(), changes.Load())
			}
		}
		is("at first", true, 0)
		time.Sleep(4 * time.Second)
		stream := c.stream()
		go func() { _, _ = io.Copy(io.Discard, stream.r) }()
		time.Sleep(time.Hour)
		is("with a stream", true, 0)
		stream.close()
		time.Sleep(4 * time.Second)
		is("between two requests", true, 0)
		time.Sleep(2 * time.Second)
		is("killed", false, 1)
		stream = c.stream()
		go func() { _, _ = io.Copy(io.Discard, stream.r) }()
		is("back", true, 2)
		stop()
		stream.close()
		time.Sleep(6 * time.Second)
		is("killed again, and nobody wants to know", false, 2)
	})
	if none := acphttp.PresenceOf(t.Context()); !none.Present() {
		t.Error("a client that is elsewhere is not there")
	} else {
		none.Notify(nil)()
	}
}
