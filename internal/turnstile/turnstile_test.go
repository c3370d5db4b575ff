package turnstile

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/internal/leaktest"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestOrder: everybody enters in order, one at a time, whatever those do that come between.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ts Turnstile
		var places []*Place
		for range 5 {
			places = append(places, ts.Come("a"))
		}
		var entered []int
		enter := func(i int, ctx context.Context) {
			go func() {
				if places[i].Enter(ctx) {
					entered = append(entered, i)
				}
			}()
			synctest.Wait()
		}
		check := func(want ...int) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, entered); diff != "" {
				t.Error(diff)
			}
		}
		enter(4, t.Context())
		enter(2, t.Context())
		places[1].Drop() // while 0 has not entered
		ctx, cancel := context.WithCancel(t.Context())
		enter(3, ctx)
		check()
		enter(0, t.Context())
		check(0)
		places[0].Drop() // which it cannot any more
		check(0)
		places[0].Leave()
		check(0, 2)
		cancel() // 3 does not want to enter any more, but has not dropped its place
		places[2].Leave()
		check(0, 2)
		places[3].Drop()
		places[3].Drop()
		check(0, 2, 4)
		if other := ts.Come("b"); !other.Enter(t.Context()) {
			t.Error("another line waits")
		} else {
			other.Leave()
		}
		places[4].Leave()
		if len(ts.last) != 0 {
			t.Errorf("%d lines are kept", len(ts.last))
		}
		last := ts.Come("a")
		last.Drop()
		if last.Enter(t.Context()) || len(ts.last) != 0 {
			t.Error("a place that was dropped can be entered, or is kept")
		}
	})
}
