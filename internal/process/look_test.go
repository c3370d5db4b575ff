//go:build linux

package process

import (
	"bufio"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLooksAreBounded: a process whose environment cannot be read at the moment holds up one look, for a
// bounded time. The others are read all the same, until too many readers are blocked.
func TestLooksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first, fine = 1 << 30, 1<<30 + 100
		free := make(chan struct{})
		stuck := 0 // from first on
		look := newLooker(func() map[int]proc {
			procs := map[int]proc{fine: {start: "9" + thisStart()}} // younger than this process
			for i := range stuck {
				procs[first+i] = procs[fine]
			}
			return procs
		}, func(pid int) []byte {
			if pid != fine {
				<-free
			}
			return []byte(MarkVar + "=m\x00")
		})
		marked := func() (pids []int) {
			for pid, p := range look.look() {
				if Mark("m").isIn(p.marks) {
					pids = append(pids, pid)
				}
			}
			return pids
		}
		for stuck = range maxBlocked + 1 {
			began := time.Now()
			found := marked()
			if took := time.Since(began); took > lookFor {
				t.Errorf("a look with one more blocked reader, %d in all, took %v", stuck, took)
			}
			if stuck < maxBlocked && !slices.Equal(found, []int{fine}) {
				t.Errorf("with %d blocked readers, found %v", stuck, found)
			}
		}
		stuck++
		began := time.Now()
		if found := marked(); len(found) != 0 || time.Since(began) != 0 {
			t.Errorf("with as many blocked readers as may be, found %v after %v", found, time.Since(began))
		}
		close(free)
		synctest.Wait()
		if found := marked(); len(found) != stuck+1 {
			t.Errorf("found %v after that", found)
		}
	})
}

// TestLooksAreShared: one look serves all who ask while another is made, and shows what has changed
// since they asked.
func TestLooksAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pid = 1 << 30
		made := 0
		proceed := make(chan struct{})
		look := newLooker(func() map[int]proc {
			made++
			<-proceed
			return map[int]proc{pid: {session: made}}
		}, func(int) []byte { return nil })
		var wg sync.WaitGroup
		seen := make([]int, 100)
		for i := range seen {
			wg.Go(func() { seen[i] = look.look()[pid].session })
			if i == 0 {
				synctest.Wait() // the first look is being made
			}
		}
		synctest.Wait()
		close(proceed)
		wg.Wait()
		if seen[0] != 1 || slices.Min(seen[1:]) != 2 || made != 2 {
			t.Errorf("%d looks were made: %v", made, seen)
		}
	})
}

// TestManyTreesEnd: however many trees end at once, none of their daemons is left.
func TestManyTreesEnd(t *testing.T) {
	needSetsid(t)
	for range repeat(5) {
		cfg, mark := sh(t, "setsid -f sleep 1000 >/dev/null 2>&1; echo; exec sleep 1000")
		var all []*Process
		for range 60 {
			all = append(all, start(t, cfg))
		}
		for _, p := range all {
			lines(t, bufio.NewReader(p.Stdout()), 1)
		}
		var wg sync.WaitGroup
		for _, p := range all {
			wg.Go(func() {
				if err := p.Stop(canceled()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		ends(t, "daemons are left", func() bool { return len(alive(mark)) == 0 })
	}
}
