package process

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/internal/leaktest"
)

// roleVar makes the test binary play a part; markVar marks every process of a
// tree, since the environment is inherited.
const (
	roleVar = "PROCESS_TEST_ROLE"
	markVar = "PROCESS_TEST_MARK"
)

var play = func(role string) {}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		play(role)
		return
	}
	leaktest.Main(m)
}

// sh returns the configuration of a shell that runs script, and the mark of
// its tree.
func sh(t *testing.T, script string) (Config, string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a Unix shell")
	}
	mark := fmt.Sprintf("%s-%d-%d", t.Name(), os.Getpid(), time.Now().UnixNano())
	return Config{
		Path: "/bin/sh", Args: []string{"-c", script},
		Env: append(os.Environ(), markVar+"="+mark),
	}, mark
}

func start(t *testing.T, cfg Config) *Process {
	t.Helper()
	p, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(canceled()) })
	return p
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// lines reads n lines that a child prints.
func lines(t *testing.T, r *bufio.Reader, n int) []string {
	t.Helper()
	var out []string
	for range n {
		s, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", out, err)
		}
		out = append(out, strings.TrimSpace(s))
	}
	return out
}

// alive returns the numbers of the processes with the mark that are no zombies.
func alive(mark string) []int {
	var pids []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		// The environment of a zombie is empty.
		env, err := os.ReadFile(d + "/environ")
		if err == nil && bytes.Contains(env, []byte(markVar+"="+mark+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(d))
			pids = append(pids, pid)
		}
	}
	return pids
}

func needProc(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
}

// ends waits until a condition holds that nothing announces, for the 5 s that a
// tree has to be gone in.
func ends(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !cond(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s after 5 s", what)
		}
	}
}

func goneSoon(t *testing.T, mark string, watchdog int) {
	t.Helper()
	ends(t, "processes are left", func() bool { return len(alive(mark)) == 0 })
	if watchdog != 0 {
		ends(t, "the watchdog is left", func() bool { return !running(watchdog) })
	}
}

// running reports whether a process is there and no zombie.
func running(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(data, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}
