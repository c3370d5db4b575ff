package acp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestGate: one at a time, in the order of coming, and who gives up keeps nobody
// out.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		done, cancel := context.WithCancelCause(t.Context())
		if err := g.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		var order []int
		var wg sync.WaitGroup
		for i := range 4 {
			ctx := t.Context()
			if i == 1 {
				ctx = done
			}
			wg.Go(func() {
				if err := g.enter(ctx); err != nil {
					if i != 1 || !errors.Is(err, errGaveUp) {
						t.Errorf("%d: %v", i, err)
					}
					return
				}
				order = append(order, i)
				g.leave()
			})
			synctest.Wait()
		}
		cancel(errGaveUp)
		synctest.Wait()
		g.leave()
		wg.Wait()
		if want := []int{0, 2, 3}; !slices.Equal(order, want) {
			t.Errorf("%v, want %v", order, want)
		}
		if err := g.enter(done); err != nil {
			t.Errorf("a gate that is free: %v", err)
		}
	})
}

var errGaveUp = errors.New("gave up")

// TestGateGivesUp: whether the turn or the end of the context comes first, the
// gate is free in the end and there was one inside at a time.
func TestGateGivesUp(t *testing.T) {
	var g gate
	var inside, entered int
	for range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if g.enter(ctx) != nil {
					return
				}
				if inside++; inside != 1 {
					t.Error("two at a time")
				}
				entered++
				inside--
				g.leave()
			})
		}
		wg.Go(cancel)
		wg.Wait()
	}
	if g.inside || len(g.waiting) > 0 || entered == 0 {
		t.Errorf("inside %v, waiting %d, entered %d", g.inside, len(g.waiting), entered)
	}
}
