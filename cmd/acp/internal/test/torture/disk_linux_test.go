package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/internal/long"
)

// onTmpfs mounts a file system of a size at the directory, or skips the test.
func onTmpfs(t *testing.T, size string) func(dir string) {
	return func(dir string) {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
			t.Skipf("a file system cannot be mounted: %v", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	}
}

// TestDiskFull: while the disk is full the agent waits. Nothing is shown that is not kept, and the turn continues
// when there is room.
func TestDiskFull(t *testing.T) {
	r := newRig(t, onTmpfs(t, "8m"))
	r.begin()
	ctx, cancel := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	defer r.clients(ctx, &watchers)()
	s := &summary{Kind: "disk full"}
	for range 3 {
		r.progress(50)
		filler := filepath.Join(r.logs(), "filler")
		if err := fillUp(filler); err != nil {
			t.Fatal(err)
		}
		r.quiet()
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		r.progress(50)
	}
	r.finish(cancel, &watchers, s)
	t.Logf("%d prompts ran, %d were refused: %q", s.Prompts, s.Cut, s.Errors)
	for _, text := range s.Errors {
		if !strings.Contains(text, "full") {
			t.Errorf("a prompt was cut: %s", text)
		}
	}
}

// fillUp writes a file until there is no room left.
func fillUp(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return nil
}

// quiet waits until nothing new was said for a while. Prompts may be refused meanwhile.
func (r *rig) quiet() {
	for last := -1; ; {
		r.mu.Lock()
		n := len(r.fresh)
		r.mu.Unlock()
		if n == last {
			return
		}
		last = n
		<-time.After(500 * time.Millisecond)
	}
}

// TestDiskReadOnly: a server whose directory cannot be written does not start, and says why. What was kept is there
// when it can be written again.
func TestDiskReadOnly(t *testing.T) {
	r := newRig(t, onTmpfs(t, "32m"))
	r.begin()
	ctx, cancel := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	defer r.clients(ctx, &watchers)()
	r.progress(100)
	r.stop()
	if err := syscall.Mount("tmpfs", r.logs(), "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	before := r.stderr.Len()
	if err := r.tryServe(); err == nil {
		t.Error("the server has started")
	} else if text := r.stderr.String()[before:]; !strings.Contains(text, "read-only") {
		t.Errorf("%v: %q", err, text)
	}
	if err := syscall.Mount("tmpfs", r.logs(), "tmpfs", syscall.MS_REMOUNT, "size=32m"); err != nil {
		t.Fatal(err)
	}
	r.serve()
	r.progress(100)
	r.finish(cancel, &watchers, &summary{Kind: "disk read-only"})
}

// A loop is a file system in a file.
type loop struct {
	image, dir string
	device     string // its name
}

// onLoop makes a file system in a file, which becomes read-only at the first error, and mounts it at the directory, or
// skips the test.
func onLoop(t *testing.T, l *loop) func(dir string) {
	return func(dir string) {
		l.image, l.dir = filepath.Join(t.TempDir(), "image"), dir
		if err := os.WriteFile(l.image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(l.image, 64<<20); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"mkfs.ext4", "-q", l.image},
			{"mount", "-o", "loop,errors=remount-ro", l.image, dir},
		} {
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Skipf("a file system cannot be made: %v: %s", err, out)
			}
		}
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		out, err := exec.Command("findmnt", "-no", "SOURCE", dir).Output()
		if err != nil {
			t.Skipf("nobody knows what is mounted: %v", err)
		}
		l.device = filepath.Base(strings.TrimSpace(string(out)))
		if _, err := os.Stat(l.trigger()); err != nil {
			t.Skipf("no errors can be made: %v", err)
		}
	}
}

// trigger is a file to which an error of the file system is written.
func (l *loop) trigger() string {
	return filepath.Join("/sys/fs/ext4", l.device, "trigger_fs_error")
}

// TestDiskTurnsReadOnly: a file system that finds an error becomes read-only under the server, in a turn, and loses what was not
// synced. Nothing is shown from then on that is not kept, the server says why and can be ended, and all but pieces of text that
// were said last is there once the file system is repaired.
func TestDiskTurnsReadOnly(t *testing.T) {
	long.Test(t)
	l := new(loop)
	r := newRig(t, onLoop(t, l))
	r.loses = true
	r.begin()
	ctx, cancel := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	defer r.clients(ctx, &watchers)()
	r.progress(100)
	before := r.stderr.Len()
	if err := os.WriteFile(l.trigger(), []byte("test"), 0); err != nil {
		t.Fatal(err)
	}
	r.quiet()
	_ = r.server.Process.Signal(os.Interrupt)
	if err := r.server.Wait(); err == nil {
		t.Error("the server has ended as if it had kept everything")
	}
	if text := r.stderr.String()[before:]; !strings.Contains(text, "read-only") && !strings.Contains(text, "readonly") {
		t.Errorf("the log does not say why: %q", text)
	}
	if err := syscall.Unmount(l.dir, 0); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("e2fsck", "-fy", l.image).CombinedOutput(); err != nil {
		if e := (*exec.ExitError)(nil); !errors.As(err, &e) || e.ExitCode() != 1 { // 1: errors were corrected
			t.Fatalf("%v: %s", err, out)
		}
	}
	if out, err := exec.Command("mount", "-o", "loop,errors=remount-ro", l.image, l.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.serve()
	r.progress(100)
	r.finish(cancel, &watchers, &summary{Kind: "disk turns read-only"})
}

// TestDiskSlow: writes that take long, and longer than the log waits before it says so, delay what is shown and nothing
// else.
func TestDiskSlow(t *testing.T) {
	long.Test(t)
	l := new(loop)
	r := newRig(t, onLoop(t, l))
	r.begin()
	ctx, cancel := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	defer r.clients(ctx, &watchers)()
	holds := []time.Duration{200 * time.Millisecond, time.Second, 6 * time.Second}
	if testing.Short() {
		holds = holds[:1]
	}
	s := &summary{Kind: "disk slow"}
	for _, hold := range holds {
		r.progress(50)
		l.freeze(t, true) // nobody can write
		select {
		case <-time.After(hold):
		case <-ctx.Done():
		}
		l.freeze(t, false)
		r.progress(50)
	}
	r.finish(cancel, &watchers, s)
	if s.Cut > 0 || s.Unknown > 0 {
		t.Errorf("%d prompts were cut, of %d nobody knows: %q", s.Cut, s.Unknown, s.Errors)
	}
}

// freeze has whoever writes to the file system wait, or no longer.
func (l *loop) freeze(t *testing.T, on bool) {
	t.Helper()
	flag := "-u"
	if on {
		flag = "-f"
		t.Cleanup(func() { _ = exec.Command("fsfreeze", "-u", l.dir).Run() }) // or it could not be unmounted
	}
	if out, err := exec.Command("fsfreeze", flag, l.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestPowerCut: of what a client had seen when the power failed, the disk has everything but pieces of text that were said last:
// no prompt, no decision and no end is missing, nor anything before one. A machine whose power fails is not to be had: the
// server is stopped, and what the disk has by then is copied and mounted. POWER_CUTS sets how often; it is 3 otherwise.
func TestPowerCut(t *testing.T) {
	rounds := 3
	if s := os.Getenv("POWER_CUTS"); s != "" {
		if _, err := fmt.Sscan(s, &rounds); err != nil {
			t.Fatal(err)
		}
	}
	l := new(loop)
	r := newRig(t, onLoop(t, l))
	r.begin()
	ctx, cancel := context.WithCancel(t.Context())
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	defer r.clients(ctx, &watchers)()
	lost := 0
	for range rounds {
		r.progress(1 + rand.IntN(60))
		lost += r.cutPower(t, l)
	}
	t.Logf("%d cuts, %d pieces were lost", rounds, lost)
	r.finish(cancel, &watchers, &summary{Kind: "power"})
}

// cutPower compares what was seen with what the disk has, and returns how many pieces of text it lacks.
func (r *rig) cutPower(t *testing.T, l *loop) (lost int) {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	_ = r.server.Process.Signal(syscall.SIGSTOP)
	var seen []string
	r.mu.Lock()
	for _, e := range r.events["one"] {
		if e.Kind == evSaid {
			seen = append(seen, e.Text)
		}
	}
	r.mu.Unlock()
	data, err := os.ReadFile(l.image)
	_ = r.server.Process.Signal(syscall.SIGCONT)
	if err == nil {
		err = os.WriteFile(image, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	defer func() { _ = syscall.Unmount(dir, 0) }()
	log, err := sqlite.Open(t.Context(), dir, "test", engine.Options{Says: gateway.Says})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	h := newHistory()
	if err := log.Fold(t.Context(), r.session, 0, func(rec engine.Record) error { return h.read(rec, make(map[string]string)) }); err != nil {
		t.Error(err)
	}
	kept := h.after(0, false)
	for i, text := range seen {
		for len(kept) > 0 && kept[0].ends && kept[0].text != text {
			kept = kept[1:]
		}
		if len(kept) > 0 && kept[0].text == text {
			kept = kept[1:]
			continue
		}
		if len(kept) > 0 {
			t.Fatalf("record %d was seen as %q, on the disk is %q", i, text, kept[0].text)
		}
		if lost++; !strings.HasPrefix(text, "agent: ") {
			t.Fatalf("%d records were seen, and %d are on the disk: it lacks %q", len(seen), i, text)
		}
	}
	return lost
}
