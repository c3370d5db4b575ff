//go:build linux

package process

import (
	"bufio"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// Without the number of the newest process, all listings are complete.
func noNumber() int         { return 0 }
func noTime() time.Duration { return 0 }

// TestLooksAreBounded: a process whose environment cannot be read at the moment holds up one look, for a
// bounded time. The others are read all the same, until too many readers are blocked.
func TestLooksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first, fine = 1 << 30, 1<<30 + 100
		free := make(chan struct{})
		stuck := 0 // from first on
		look := newLooker(system{clock: noTime, list: func(int64) ([]listed, error) {
			all := []listed{{pid: fine}}
			for i := range stuck {
				all = append(all, listed{pid: first + i})
			}
			return all, nil
		}, newest: noNumber, stat: func(int) (proc, error) {
			return proc{}, nil
		}, environ: func(pid int) []byte {
			if pid != fine {
				<-free
			}
			return []byte(MarkVar + "=m\x00")
		}})
		marked := func() (pids []int) {
			for pid, p := range look.look(0) {
				if (Mark{text: "m"}).isIn(p.marks) {
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
		look := newLooker(system{clock: noTime, list: func(int64) ([]listed, error) {
			made++
			<-proceed
			return []listed{{pid: pid}}, nil
		}, newest: noNumber, stat: func(int) (proc, error) { return proc{session: made}, nil },
			environ: func(int) []byte { return nil }})
		var wg sync.WaitGroup
		seen := make([]int, 100)
		for i := range seen {
			wg.Go(func() { seen[i] = look.look(0)[pid].session })
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

// TestListings: each process is in the listings that are made while it is there, and in none from before it
// was started, as numbers are given again and again, and listings fail.
func TestListings(t *testing.T) {
	for _, each := range []time.Duration{4 * time.Millisecond, 100 * time.Microsecond} { // of a number
		t.Run(each.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testListings(t, each) })
		})
	}
}

// A started is a process of testListings.
type started struct {
	inode  uint64
	before int64     // listings
	shows  time.Time // in listings
}

func checkListed(t *testing.T, known []listed, there map[int]*started) {
	t.Helper()
	for pid, p := range there {
		if p.shows.After(time.Now()) {
			continue
		}
		i := slices.IndexFunc(known, func(l listed) bool { return l.pid == pid })
		if i < 0 {
			t.Fatalf("process %d is not listed", pid)
		}
		if known[i].first <= p.before {
			t.Fatalf("process %d, from after listing %d, seems to be in listing %d", pid, p.before, known[i].first)
		}
	}
}

func testListings(t *testing.T, each time.Duration) {
	const (
		numbers = 300
		delay   = 250 * time.Millisecond // until a process shows; far longer than some laps
	)
	rnd := rand.New(rand.NewPCG(1, 2))
	there := map[int]*started{}
	newest, inodes, partial, fails := 0, uint64(0), 0, false
	began := time.Now()
	look := newLooker(system{
		clock:  func() time.Duration { return time.Since(began) },
		lap:    numbers * each,
		newest: func() int { return newest },
		list: func(from int64) (all []listed, err error) {
			if fails {
				return nil, syscall.EMFILE
			}
			if from != 0 {
				partial++
			}
			for pid := max(1, int(from)-100); pid <= numbers; pid++ {
				if p := there[pid]; p != nil && !p.shows.After(time.Now()) {
					all = append(all, listed{pid: pid, at: int64(pid) + 100, inode: p.inode})
				}
			}
			return all, nil
		},
	})
	begin := func() {
		time.Sleep(each + time.Microsecond)
		for newest = newest%numbers + 1; there[newest] != nil; newest = newest%numbers + 1 {
			time.Sleep(each)
		}
		inodes++
		there[newest] = &started{inodes, look.listings.Load(), time.Now().Add(time.Duration(rnd.Int64N(int64(delay))))}
	}
	end := func() {
		for pid := range there {
			delete(there, pid)
			return
		}
	}
	for range 20_000 {
		switch n := rnd.IntN(200); {
		case n < 100 && len(there) < numbers/2:
			begin()
		case n < 150:
			if rnd.IntN(3) == 0 {
				end()
			}
		case n == 150: // the system forgets inode numbers
			for _, p := range there {
				inodes++
				p.inode = inodes
			}
		case n == 151:
			time.Sleep(time.Duration(rnd.Int64N(int64(look.lap))))
		case n == 152: // numbers begin again, perhaps more than once
			for range rnd.IntN(3 * numbers) {
				begin()
				end()
			}
		case n == 153:
			fails = true
			look.relist()
			fails = false
		default:
			look.relist()
			checkListed(t, look.known, there)
			if len(look.known) > 3*numbers {
				t.Fatalf("%d are known", len(look.known))
			}
		}
	}
	if look.lap > 4*delay && partial < 100 {
		t.Errorf("only %d listings were partial", partial)
	}
}

// TestPartialListings: a listing is partial only if the numbers cannot have begun again since the old moment
// by a clock that is the same in bubbles.
func TestPartialListings(t *testing.T) {
	const lap = 4 * time.Second
	partial := func(clock func() time.Duration, old time.Duration) (partial bool) {
		l := newLooker(system{clock: clock, lap: lap, newest: func() int { return 20 },
			list: func(from int64) ([]listed, error) {
				partial = from != 0
				return nil, nil
			}})
		l.known, l.most = []listed{{pid: 10, at: 10}}, 100
		l.old, l.young = moment{old, 10}, moment{old, 10}
		l.relist()
		return partial
	}
	for ago, want := range map[time.Duration]bool{-time.Hour: false, -1: false, 0: true, lap - 1: true, lap: false} {
		if got := partial(func() time.Duration { return lap }, lap-ago); got != want {
			t.Errorf("%v after the old moment, a listing was partial: %t", ago, got)
		}
	}
	now := time.Minute
	l := newLooker(system{clock: func() time.Duration { return now }, lap: lap, newest: func() int { return 20 },
		list: func(int64) ([]listed, error) { return nil, nil }})
	l.relist()
	if now = time.Second; l.young.when != time.Minute {
		t.Errorf("a listing after a minute was at %v", l.young.when)
	}
	if l.relist(); l.young.when != now || l.old.newest != 0 {
		t.Errorf("after the clock has gone back to %v, the moments are %v and %v", now, l.old, l.young)
	}
	outside := looks().clock()
	synctest.Test(t, func(t *testing.T) {
		if partial(looks().clock, outside-lap) {
			t.Error("the clock seems to go back in a bubble")
		}
		inside := looks().clock()
		if time.Sleep(time.Hour); looks().clock()-inside > time.Hour/2 {
			t.Error("the clock is that of the bubble")
		}
	})
}

// TestErrorsPass: a process that could not be examined in one look is in the next, with its marks, unless it
// has ended.
func TestErrorsPass(t *testing.T) {
	for _, tt := range []struct {
		err  error
		ends bool
	}{
		{syscall.EMFILE, false},
		{syscall.ENFILE, false},
		{syscall.ENOMEM, false},
		{syscall.EINTR, false},
		{syscall.ENOENT, true},
		{syscall.ESRCH, true},
	} {
		const pid = 1 << 30
		var fails error
		read := 0
		l := newLooker(system{clock: noTime, newest: noNumber,
			list: func(int64) ([]listed, error) { return []listed{{pid: pid}}, nil },
			stat: func(int) (proc, error) { return proc{}, fails },
			environ: func(int) []byte {
				read++
				return []byte(MarkVar + "=m\x00")
			},
		})
		fails = &fs.PathError{Op: "open", Err: tt.err}
		if p, ok := l.look(0)[pid]; ok {
			t.Errorf("%v: found %+v", tt.err, p)
		}
		was := read
		if tt.ends {
			l.look(0)
			if read != was {
				t.Errorf("%v: its environment was read all the same", tt.err)
			}
			continue
		}
		fails = nil
		if got := l.look(0)[pid].marks; got != "m" {
			t.Errorf("after %v, its marks are %q", tt.err, got)
		}
	}
}

// TestFirstThreadEnds: a process whose first thread has ended looks like a zombie, until another thread calls
// execve.
func TestFirstThreadEnds(t *testing.T) {
	const pid = 1 << 30
	zombie := true
	l := newLooker(system{clock: noTime, newest: noNumber,
		list:    func(int64) ([]listed, error) { return []listed{{pid: pid}}, nil },
		stat:    func(int) (proc, error) { return proc{zombie: zombie}, nil },
		environ: func(int) []byte { return []byte(MarkVar + "=m\x00") },
	})
	l.look(0)
	zombie = false
	l.look(0) // finds that it has not ended
	if got := l.look(0)[pid].marks; got != "m" {
		t.Errorf("its marks are %q", got)
	}
}

// TestFailedListing: a look finds what is known when its listing fails, and such a listing has no number.
func TestFailedListing(t *testing.T) {
	var fails error
	l := newLooker(system{clock: noTime, newest: noNumber,
		list:    func(int64) ([]listed, error) { return []listed{{pid: 1}}, fails },
		stat:    func(int) (proc, error) { return proc{}, nil },
		environ: func(int) []byte { return nil },
	})
	fails = syscall.EMFILE
	if n := l.seen(); n != 0 {
		t.Errorf("a failed listing is number %d", n)
	}
	fails = nil
	n := l.seen()
	fails = syscall.EMFILE
	if found := l.look(n - 1); len(found) != 1 || l.seen() != n {
		t.Errorf("found %v, listing %d after %d", found, l.seen(), n)
	}
}

// TestShortCommandsLeaveNothing: a daemon ends with its tree, however soon the command that has started it ends.
func TestShortCommandsLeaveNothing(t *testing.T) {
	needSetsid(t)
	cfg, mark := sh(t, "")
	cfg.Path, cfg.Args, cfg.NoStdin = "setsid", []string{"-f", "sleep", "1000"}, true
	for range repeat(50) {
		p := start(t, cfg)
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		ends(t, "the daemon is left", func() bool { return len(alive(mark)) == 0 })
	}
}

// TestManyTreesEnd: however many trees end at once, none of their daemons is left.
func TestManyTreesEnd(t *testing.T) {
	needSetsid(t)
	for range repeat(5) {
		endTrees(t, 60)
	}
}

// TestExecHidesNoMark: however often a process calls execve while its environment is read, that has its mark, which is
// at its end.
func TestExecHidesNoMark(t *testing.T) {
	for _, others := range []int{0, 3_000, 100_000} { // bytes
		const again = `exec /bin/sh -c "$0" "$0"`
		cfg := Config{Path: "/bin/sh", Args: []string{"-c", again, again}, NoStdin: true,
			Env: []string{"OTHERS=" + strings.Repeat("x", others)}}
		p := start(t, cfg)
		for n := range repeat(1000) {
			if env := environ(p.PID()); !p.tree.mark.isIn(marksIn(env)) {
				t.Errorf("with %d bytes before it, the mark is not in %d bytes of reading %d", others, len(env), n)
				break
			}
		}
		if err := p.Stop(canceled()); err != nil {
			t.Error(err)
		}
	}
}

// TestLeavesMeanwhile: what leaves the group between the last look at it and the signal that ends it ends all the same.
func TestLeavesMeanwhile(t *testing.T) {
	needSetsid(t)
	cfg, mark := sh(t, `exec 3<&0; (read -r x <&3; exec setsid sleep 1000) & echo $!; exec sleep 1000`)
	p := start(t, cfg)
	daemon, err := strconv.Atoi(lines(t, bufio.NewReader(p.Stdout()), 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	l, left := looks(), false
	set := func(f func(int) (proc, error)) {
		l.looking <- struct{}{}
		l.stat = f
		<-l.looking
	}
	set(func(pid int) (proc, error) {
		was, err := stat(pid)
		if pid == daemon && !left {
			left = true
			_ = p.Stdin().Close()
			ends(t, "the daemon is in the group", func() bool {
				now, err := stat(pid)
				return err != nil || now.session == pid
			})
		}
		return was, err
	})
	_ = p.Signal(os.Kill)
	<-p.Done()
	set(stat)
	if !left {
		t.Error("nobody has looked at the daemon")
	}
	ends(t, "the daemon is left", func() bool { return len(alive(mark)) == 0 })
}
