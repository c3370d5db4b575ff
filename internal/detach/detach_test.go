package detach

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
)

// TestDo: what the function returns is returned, also when it ends its goroutine.
func TestDo(t *testing.T) {
	failure := errors.New("failure")
	for _, x := range []struct {
		name string
		f    func() (string, error)
		want string
		err  error
	}{
		{"value", func() (string, error) { return "v", nil }, "v", nil},
		{"both", func() (string, error) { return "v", failure }, "v", failure},
		{"exit", func() (string, error) { runtime.Goexit(); return "v", nil }, "", ErrExited},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls Calls
				if got, err := Do(t.Context(), &calls, x.f); got != x.want || !errors.Is(err, x.err) {
					t.Errorf("%q, %v", got, err)
				}
				synctest.Wait()
				if n := calls.Running(); n != 0 {
					t.Errorf("%d run", n)
				}
			})
		})
	}
}

// TestBound: a function that ignores its context keeps nobody waiting, and counts until it
// returns. What it returns then is dropped.
func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls Calls
		release := make(chan struct{})
		late := func() (string, error) { <-release; return "late", nil }
		for range Max {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if got, err := Do(ctx, &calls, late); got != "" || !errors.Is(err, context.Canceled) {
				t.Errorf("%q, %v", got, err)
			}
		}
		called := false
		f := func() (string, error) { called = true; return "", nil }
		if _, err := Do(t.Context(), &calls, f); !errors.Is(err, ErrBusy) || called || calls.Running() != Max {
			t.Errorf("%v, called %t, %d run", err, called, calls.Running())
		}
		close(release)
		synctest.Wait()
		if _, err := Do(t.Context(), &calls, f); err != nil || !called {
			t.Errorf("%v, called %t", err, called)
		}
	})
}
