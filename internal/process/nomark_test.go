//go:build linux

package process

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestSessionsStay: processes in sessions of their own outlive a tree without a mark, although their
// parents are in it, and what is in the tree's session does not.
func TestSessionsStay(t *testing.T) {
	needSetsid(t)
	cfg, mark := sh(t, `setsid sleep 1000 & echo $!; sleep 1000 & echo $!; cat >/dev/null`)
	cfg.Env = append(cfg.Env, MarkVar+"="+NoMark)
	p := start(t, cfg)
	var pids []int
	for _, line := range lines(t, bufio.NewReader(p.Stdout()), 2) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	patiently(t, "setsid has not moved", func() bool {
		s, err := stat(pids[0])
		return err == nil && s.session == pids[0]
	})
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if left := alive(mark); !slices.Equal(left, pids[:1]) {
		t.Errorf("left are %v, want %v", left, pids[:1])
	}
	_ = syscall.Kill(pids[0], syscall.SIGKILL)
}

// TestLoginShellDaemonsStay: a daemon that the user's start-up files start outlives LoginEnv.
func TestLoginShellDaemonsStay(t *testing.T) {
	needSetsid(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "pid")
	t.Setenv("SHELL", script(t, dir, "shell", `
(setsid /bin/sh -c 'echo $$ >`+file+`.new; mv `+file+`.new `+file+`; exec sleep 1000' >/dev/null 2>&1 &)
while [ ! -e `+file+` ]; do sleep 0.01; done
for last; do :; done
eval "$last"`))
	if _, err := LoginEnv(t.Context()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if !running(pid) {
		t.Fatal("the daemon has ended")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}
