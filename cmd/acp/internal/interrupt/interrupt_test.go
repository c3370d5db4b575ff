package interrupt

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// TestFilter holds what counts: the first of a kind, and what follows the last that counted after the
// window. Signals that are ignored do not prolong it, or who holds Ctrl-C down would never get through.
func TestFilter(t *testing.T) {
	var f Filter
	begin := time.Now()
	for _, tt := range []struct {
		after  time.Duration
		signal os.Signal
		counts bool
	}{
		{0, os.Interrupt, true},
		{time.Millisecond, os.Interrupt, false},
		{2 * time.Millisecond, syscall.SIGTERM, true}, // of another kind
		{Window - 1, os.Interrupt, false},
		{Window, os.Interrupt, true},
		{Window + time.Millisecond, syscall.SIGTERM, false},
		{Window + 2*time.Millisecond, syscall.SIGTERM, true},
		{Window + Window/2, os.Interrupt, false},
		{2 * Window, os.Interrupt, true},
	} {
		if got := f.Counts(tt.signal, begin.Add(tt.after)); got != tt.counts {
			t.Errorf("%v after %v: %v, want %v", tt.signal, tt.after, got, tt.counts)
		}
	}
}
