//go:build linux

package process

import (
	"bufio"
	"sync"
	"testing"
	"testing/synctest"
)

// endTrees ends several trees at once, each with a daemon.
func endTrees(t *testing.T, n int) {
	cfg, mark := sh(t, "setsid -f sleep 1000 >/dev/null 2>&1; echo; exec sleep 1000")
	var all []*Process
	for range n {
		all = append(all, start(t, cfg))
	}
	for _, p := range all {
		lines(t, bufio.NewReader(p.Stdout()), 1)
	}
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() {
			p.Kill()
			<-p.gone // Stop waits for a limited time only
		})
	}
	wg.Wait()
	ends(t, "daemons are left", func() bool { return len(alive(mark)) == 0 })
}

// TestBubbles: the looker serves bubbles of testing/synctest, one after the other and beside each other, and
// what is outside of any.
func TestBubbles(t *testing.T) {
	eight := func(t *testing.T) { endTrees(t, 8) }
	needSetsid(t)
	for range repeat(5) {
		synctest.Test(t, eight)
		eight(t)
		t.Run("beside each other", func(t *testing.T) {
			for _, name := range []string{"bubble", "another bubble", "none"} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					if name == "none" {
						eight(t)
					} else {
						synctest.Test(t, eight)
					}
				})
			}
		})
	}
}
