//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestYes has the built-in agent run a command that prints as fast as it can, for as long as ACP_TEST_YES says,
// such as 60s, and looks at the memory of the program and at what it has on the disk in the end. Without
// the variable it is skipped: that is minutes of a whole processor.
func TestYes(t *testing.T) {
	long, err := time.ParseDuration(os.Getenv("ACP_TEST_YES"))
	if err != nil {
		t.Skip("ACP_TEST_YES does not say how long")
	}
	exe := filepath.Join(t.TempDir(), "acp")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	home := t.TempDir()
	cmd := exec.Command(exe, "exec", "--allow", "*", fmt.Sprintf("/run timeout %.1f yes", long.Seconds()))
	cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	out := new(strings.Builder)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var peak float64
	for tick := time.NewTicker(100 * time.Millisecond); err == nil; {
		select {
		case err = <-ended:
			tick.Stop()
			if err != nil || !strings.Contains(out.String(), "124") {
				t.Fatalf("%v: %s", err, out)
			}
			logs, _ := filepath.Glob(filepath.Join(home, ".local/share/acp/conversations/*.jsonl"))
			if len(logs) != 1 {
				t.Fatalf("%d logs", len(logs))
			}
			info, err := os.Stat(logs[0])
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("after %v: at most %.0f MB resident, a log of %.1f MB", long, peak, float64(info.Size())/1e6)
			// 1 MiB of the beginning and 8 MiB of the rest, in base64, and what is around it.
			if limit := int64(14 << 20); info.Size() > limit {
				t.Errorf("the log has %d bytes, more than %d", info.Size(), limit)
			}
			if peak > 512 {
				t.Errorf("%.0f MB were resident", peak)
			}
			return
		case <-tick.C:
			peak = max(peak, peakMB(cmd.Process.Pid))
		}
	}
}

// peakMB returns the memory that a process had at most; 0 if it has ended.
func peakMB(pid int) float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	var kb float64
	if _, rest, ok := strings.Cut(string(data), "VmHWM:"); ok {
		_, _ = fmt.Sscan(rest, &kb)
	}
	return kb * 1024 / 1e6
}
