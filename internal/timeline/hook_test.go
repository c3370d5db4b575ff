package timeline

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
)

// TestHook: deliveries outside of handlers have a hook as their ctx, which is
// found in contexts that derive from it, and ends with the delivery.
func TestHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		r := newRig(t, func(c *Config[string]) { c.Context = context.WithValue(c.Context, key{}, "value") })
		var h *Hook
		r.on["p"] = func(ctx context.Context) {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			h = HookFrom(child)
			if h == nil || h.Owner() != r || !h.Running() {
				t.Errorf("hook %+v", h)
			}
			if v := child.Value(key{}); v != "value" {
				t.Errorf("value %v", v)
			}
		}
		r.Post("p")
		r.Settle()
		if h == nil || h.Running() {
			t.Error("the hook has not ended")
		}
		r.on["a"] = func(ctx context.Context) {
			if HookFrom(ctx) != nil {
				t.Error("a handler is no hook")
			}
		}
		r.do("arrive 1")
		r.do("handle a")
		r.wants("p* a", "")
	})
}

// TestHandover: while a call waits that was made outside of handlers, these give
// their items away, but not without bound.
func TestHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		call, ends := make(chan struct{}), make(chan struct{})
		r.on["p"] = func(ctx context.Context) {
			HookFrom(ctx).Waiting(true)
			<-call
			HookFrom(ctx).Waiting(false)
			<-ends
		}
		r.Post("p")
		r.do("kick")
		r.Arrived(MaxHandover + 2)
		for i := range MaxHandover {
			r.Handle(t.Context(), fmt.Sprint(i)) // returns
		}
		r.wants("p*", "")
		r.do("handle over")
		r.wants("p*", "over")
		close(call)
		synctest.Wait()
		r.wants("p*", "over") // the hook has not returned, but it does not wait for anything
		close(ends)
		synctest.Wait()
		if n := len(r.log); n != MaxHandover+2 || r.log[1] != "0*" || r.log[n-2] != fmt.Sprint(MaxHandover-1, "*") {
			t.Errorf("%d delivered, %v … %v", n, r.log[:min(n, 3)], r.log[max(n-3, 0):])
		}
		r.do("handle after")
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.waiting) > 0 {
			t.Errorf("%q wait", r.waiting)
		}
	})
}

// TestHandoverEnds: a handler that waits gives its item away once a call of the
// hook begins to wait, and waits again when that is over.
func TestHandoverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		call, answer, ends := make(chan struct{}), make(chan struct{}), make(chan struct{})
		r.on["p"] = func(ctx context.Context) {
			<-call
			HookFrom(ctx).Waiting(true)
			<-answer
			HookFrom(ctx).Waiting(false)
			<-ends
		}
		r.Post("p")
		r.do("kick")
		r.do("arrive 2")
		r.do("handle a")
		r.wants("p*", "a")
		close(call)
		synctest.Wait()
		r.wants("p*", "")
		close(answer)
		synctest.Wait()
		r.do("handle b")
		r.wants("p*", "b")
		close(ends)
		synctest.Wait()
		r.log[1], r.log[2] = r.log[1][:1], r.log[2][:1] // either may deliver a
		r.wants("p* a b", "")
	})
}

// TestCallOutlivesHook: a call that was made in a hook and still waits when that
// has returned does not count any more.
func TestCallOutlivesHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var h *Hook
		r.on["p"] = func(ctx context.Context) {
			h = HookFrom(ctx)
			h.Waiting(true)
		}
		r.Post("p")
		r.do("kick")
		for _, step := range []string{"place m", "arrive 1", "handle a"} {
			r.do(step)
		}
		r.wants("p*", "a")
		h.Waiting(false)
		h.Waiting(true)
		synctest.Wait()
		r.wants("p*", "a")
		r.do("discard m")
		r.wants("p* a", "")
	})
}

// TestGoexit: a delivery that ends its goroutine does not keep the line, whatever
// it delivers.
func TestGoexit(t *testing.T) {
	exit := func(context.Context) { runtime.Goexit() }
	for name, steps := range map[string][]string{
		"in a handler":  {"arrive 1", "handle exit"},
		"of a post":     {"post exit", "kick"},
		"of a mark":     {"place m", "resolve m exit", "kick"},
		"of a hook":     {"place m", "arrive 1", "handle exit", "discard m"},
		"of two of two": {"post exit", "post exit", "kick", "kick"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.on["exit"] = exit
				m := &Mark[string]{Done: make(chan struct{})}
				r.marks["m"] = m
				for _, step := range steps {
					r.do(step)
				}
				if at, busy := r.Position(); busy {
					t.Errorf("busy at %d", at)
				}
				if m.state != markPending {
					select {
					case <-m.Done:
					default:
						t.Error("the mark is not done")
					}
				}
				r.log = nil
				r.do("arrive 1")
				r.do("handle next")
				r.wants("next", "")
			})
		})
	}
}
