//go:build linux

package process

import (
	"bufio"
	"sync"
	"testing"
	"testing/synctest"
)

// endTrees ends several trees at once, each with a daemon.
func endTrees(t *testing.T) {
	cfg, mark := sh(t, "setsid -f sleep 1000 >/dev/null 2>&1; echo; exec sleep 1000")
	var all []*Process
	for range 8 {
		all = append(all, start(t, cfg))
	}
	for _, p := range all {
		lines(t, bufio.NewReader(p.Stdout()), 1)
	}
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() {
			p.Kill()
			<-p.gone
		})
	}
	wg.Wait()
	ends(t, "daemons are left", func() bool { return len(alive(mark)) == 0 })
}

// TestBubbles: the looker serves bubbles of testing/synctest, one after the other and beside each other, and
// what is outside of any.
func TestBubbles(t *testing.T) {
	needSetsid(t)
	for range repeat(5) {
		synctest.Test(t, endTrees)
		endTrees(t)
		t.Run("beside each other", func(t *testing.T) {
			for _, name := range []string{"bubble", "another bubble", "none"} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					if name == "none" {
						endTrees(t)
					} else {
						synctest.Test(t, endTrees)
					}
				})
			}
		})
	}
}
