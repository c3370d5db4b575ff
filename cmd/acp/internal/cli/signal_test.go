package cli

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestFarewell holds that what was added last is done first, that what was forgotten is not done, and
// that nothing keeps the process.
func TestFarewell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := new(farewell)
		var did []string
		w.onExit(func() { did = append(did, "first") })
		forget := w.onExit(func() { did = append(did, "forgotten") })
		w.onExit(func() { did = append(did, "last") })
		forget()
		forget()
		w.exit()
		if !slices.Equal(did, []string{"last", "first"}) {
			t.Errorf("%q", did)
		}
		stuck := make(chan struct{})
		defer close(stuck)
		w.onExit(func() { <-stuck })
		start := time.Now()
		if w.exit(); time.Since(start) != leaveWithin {
			t.Errorf("it took %v", time.Since(start))
		}
	})
}
