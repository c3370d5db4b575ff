//go:build linux

package process

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// crowd starts processes that have nothing to do with any tree.
func crowd(tb testing.TB, n int) map[int]bool {
	tb.Helper()
	pids := map[int]bool{}
	for range n {
		c := exec.Command("sleep", "1000")
		if err := c.Start(); err != nil {
			tb.Fatal(err)
		}
		pids[c.Process.Pid] = true
		tb.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	}
	return pids
}

// runTrue runs a command that leaves nothing, as a caller that reads its output does.
func runTrue(tb testing.TB) {
	tb.Helper()
	p, err := Start(tb.Context(), Config{Path: "true", NoStdin: true, MergeStderr: true})
	if err != nil {
		tb.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, p.Stdout())
	if err := p.Wait(); err != nil {
		tb.Fatal(err)
	}
	if err := p.Stop(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

// spent returns the processor time that this program has used.
func spent() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// useLooker replaces the package's looker during a test.
func useLooker(tb testing.TB, s system) {
	tb.Helper()
	l, was := newLooker(s), looks
	tb.Cleanup(func() { looks = was })
	looks = func() *looker { return l }
}

// BenchmarkCommand compares what a command that leaves nothing costs this program, beside 500 other
// processes, with what it costs with os/exec. Run it with -benchtime 200x.
//
// The cost depends on the kernel's setting pid_max. If there are fewer than a million numbers, as with the
// kernel's default of 32768, each command lists all processes. When this was written, the ratio was 5.5
// there. With 4194304, which systemd sets, it was 2.7.
func BenchmarkCommand(b *testing.B) {
	crowd(b, 500)
	for _, pidMax := range []int{1 << 15, 1 << 22} {
		b.Run(fmt.Sprint("pid_max=", pidMax), func(b *testing.B) {
			s := system{uptime, list, newest, time.Duration(pidMax) * time.Microsecond, stat, environ}
			useLooker(b, s)
			for began := uptime(); uptime()-began < s.lap/2; { // until listings are partial
				runTrue(b)
			}
			compareCommands(b)
		})
	}
}

func compareCommands(b *testing.B) {
	b.Helper()
	b.ResetTimer()
	var ours, theirs time.Duration
	for range b.N {
		began := spent()
		runTrue(b)
		between := spent()
		if _, err := exec.Command("true").CombinedOutput(); err != nil {
			b.Fatal(err)
		}
		ours, theirs = ours+between-began, theirs+spent()-between
	}
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(theirs.Microseconds())/float64(b.N), "os/exec-cpu-µs/op")
	b.ReportMetric(float64(ours)/float64(theirs), "ratio")
}

// TestOthersAreNotExamined: what a command costs does not depend on processes that have nothing to do with it.
func TestOthersAreNotExamined(t *testing.T) {
	needProc(t)
	others := crowd(t, 50)
	var mu sync.Mutex
	listings, examined := 0, 0
	count := func(n *int) {
		mu.Lock()
		defer mu.Unlock()
		*n++
	}
	useLooker(t, system{
		clock:  uptime,
		list:   func(from int64) ([]listed, error) { count(&listings); return list(from) },
		newest: newest,
		lap:    lap(),
		stat: func(pid int) (proc, error) {
			if others[pid] {
				count(&examined)
			}
			return stat(pid)
		},
		environ: environ,
	})
	for range 10 {
		runTrue(t)
	}
	// One for each command, one before the first, and others while processes end that belong to nobody here.
	if examined != 0 || listings < 11 || listings > 11*maxRounds {
		t.Errorf("%d listings, %d other processes were examined", listings, examined)
	}
}
