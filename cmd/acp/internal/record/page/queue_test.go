package page

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/trace"
)

// TestFeedWaits holds that little of a recording waits to be digested, and all of it comes.
func TestFeedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(queue)
		q.wake = sync.NewCond(&q.mu)
		const n = 1000
		fed := 0
		go func() {
			for ; fed < n && q.put(&trace.Record{Data: make([]byte, 100<<10)}, true); fed++ {
			}
			q.end()
		}()
		got := 0
		for {
			synctest.Wait()
			if waiting := fed - got; waiting > feedBytes/(100<<10) || waiting == 0 && fed < n {
				t.Fatalf("%d records wait", waiting)
			}
			recs, lost, ok := q.take()
			if got += len(recs); lost > 0 || !ok {
				break
			}
		}
		if got != n {
			t.Errorf("%d records came", got)
		}
	})
}
