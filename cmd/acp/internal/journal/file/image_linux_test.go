package file

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// imageType names the variable with the type of the file system of [TestImageCut], such as ext4, xfs or btrfs.
const imageType = "ACP_TEST_IMAGE"

// TestImageCut takes the power away from a process that appends to journals on a file system of its own: what its device
// has at that moment is copied, mounted and read. What somebody has relied on is there, and everything that was kept a
// second before, since here a sync may take long. It needs a machine on which it may mount images.
func TestImageCut(t *testing.T) {
	kind := os.Getenv(imageType)
	if kind == "" {
		t.Skipf("%s names no file system", imageType)
	}
	base := t.TempDir()
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	image, live := filepath.Join(base, "image"), filepath.Join(base, "live")
	cut, after := filepath.Join(base, "cut"), filepath.Join(base, "after")
	must(t, os.Mkdir(live, 0o700))
	must(t, os.Mkdir(after, 0o700))
	run("truncate", "-s", "320M", image)
	run("mkfs."+kind, "-q", image)
	run("mount", "-o", "loop", image, live)
	defer func() {
		_ = exec.Command("umount", after).Run() // if a round was left early
		run("umount", live)
	}()
	dir := filepath.Join(live, "journals")
	for round := range 60 {
		if round%10 == 0 {
			must(t, os.RemoveAll(dir))
		}
		c := Open(dir, Options{})
		for i := range killJournals {
			if round%10 == 0 {
				w, err := c.Create(t.Context(), fmt.Sprint(i))
				must(t, err)
				must(t, w.Release(t.Context()))
			}
		}
		must(t, c.Close())
		kept, at := untilStopped(t, dir, time.Duration(rand.IntN(2500))*time.Millisecond, func() { run("cp", "--sparse=always", image, cut) })
		options := "loop"
		if kind == "xfs" {
			options += ",nouuid"
		}
		run("mount", "-o", options, cut, after)
		checkImage(t, round, filepath.Join(after, "journals"), kept, at)
		run("umount", after)
	}
}

// untilStopped has a child append for a while, stops it, calls f, and kills it. It returns what it has said was kept.
func untilStopped(t *testing.T, dir string, pause time.Duration, f func()) (kept [killJournals][]promise, at time.Time) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var mu sync.Mutex
	stopped, done := false, make(chan struct{})
	go func() {
		defer close(done)
		for in := bufio.NewScanner(out); in.Scan(); {
			var i int
			var p promise
			var hash string
			if _, err := fmt.Sscanf(in.Text(), "%d %d %64s %t", &i, &p.seq, &hash, &p.relied); err != nil {
				continue
			}
			mu.Lock()
			if p.at = time.Now(); !stopped {
				kept[i] = append(kept[i], p)
			}
			mu.Unlock()
		}
	}()
	time.Sleep(pause)
	mu.Lock()
	stopped, at = true, time.Now()
	must(t, cmd.Process.Signal(syscall.SIGSTOP))
	mu.Unlock()
	f()
	_ = cmd.Process.Kill()
	<-done
	_ = cmd.Wait()
	return kept, at
}

// checkImage looks for what was promised.
func checkImage(t *testing.T, round int, dir string, kept [killJournals][]promise, at time.Time) {
	t.Helper()
	c := Open(dir, Options{})
	defer c.Close()
	relied, lost, oldest := 0, 0, time.Duration(0)
	for i, all := range kept {
		last := uint64(0)
		w, err := c.Own(t.Context(), fmt.Sprint(i), func(r *journal.Record) error { last = r.Seq; return nil })
		if err != nil {
			t.Errorf("round %d: journal %d: %v", round, i, err)
			continue
		}
		must(t, w.Release(t.Context()))
		for _, p := range all {
			if p.relied {
				relied++
			}
			if p.seq <= last {
				continue
			}
			lost++
			age := at.Sub(p.at)
			if oldest = max(oldest, age); p.relied || age > time.Second {
				t.Errorf("round %d: record %d of %d is lost, kept %v before, relied on: %v", round, p.seq, i, age, p.relied)
			}
		}
	}
	t.Logf("round %d: %d of %d records were relied on, %d others are lost, kept %v before at most", round, relied, len(kept[0])+len(kept[1])+len(kept[2]), lost, oldest)
}
