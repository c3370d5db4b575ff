//go:build unix

package agent

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"testing"
)

// alive reports whether a process runs.
func alive(pid string) bool {
	n, err := strconv.Atoi(pid)
	if err != nil || syscall.Kill(n, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || !bytes.Contains(stat, []byte(") Z "))
}

// kill kills a process that this test has started.
func kill(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 1 || n == os.Getpid() {
		t.Fatalf("it is no process to kill: %s", pid)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
