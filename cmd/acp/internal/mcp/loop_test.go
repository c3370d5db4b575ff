package mcp

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
)

// sleeper is a loop for a server that says nothing.
func sleeper(t *testing.T) (*Loops, *loop) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh on this machine")
	}
	l := new(Loops)
	t.Cleanup(func() { _ = l.Close() })
	if _, err := l.add(Server{Name: "s", Type: Stdio, Command: sh, Args: []string{"-c", "read -r x"}}, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return l, l.loops[0]
}

// TestLoopSessions: no more sessions than the bound are opened, also at the same time.
func TestLoopSessions(t *testing.T) {
	l, x := sleeper(t)
	var opened, refused atomic.Int32
	var work sync.WaitGroup
	for range maxLoopSessions + 8 {
		work.Go(func() {
			if _, err := x.open(); err != nil {
				refused.Add(1)
			} else {
				opened.Add(1)
			}
		})
	}
	work.Wait()
	if opened.Load() != maxLoopSessions || refused.Load() != 8 {
		t.Errorf("%d were opened, %d refused", opened.Load(), refused.Load())
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if n := len(x.sessions); n != 0 {
		t.Errorf("%d sessions outlive Close", n)
	}
}

// TestLoopForgets: clients that leave without a word do not keep others out; who uses a session keeps
// it.
func TestLoopForgets(t *testing.T) {
	_, x := sleeper(t)
	first, err := x.open() // in use
	if err != nil {
		t.Fatal(err)
	}
	second, err := x.open()
	if err != nil {
		t.Fatal(err)
	}
	x.leave(second)
	for range 2 * maxLoopSessions {
		s, err := x.open()
		if err != nil {
			t.Fatal(err)
		}
		x.leave(s)
	}
	x.mu.Lock()
	n, kept := len(x.sessions), x.sessions[first.transport.SessionID] == first
	x.mu.Unlock()
	if n > maxLoopSessions || !kept {
		t.Errorf("%d sessions, that in use is there: %v", n, kept)
	}
	if x.enter(second.transport.SessionID) != nil {
		t.Error("the one that nobody has used for the longest time is still there")
	}
}

// TestLoopCloses: what is being opened when the loop is closed does not outlive that.
func TestLoopCloses(t *testing.T) {
	for range 10 {
		l, x := sleeper(t)
		var work sync.WaitGroup
		for range 4 {
			work.Go(func() { _, _ = x.open() })
		}
		_ = l.Close()
		x.mu.Lock()
		if x.opening != 0 || len(x.sessions) != 0 {
			t.Errorf("%d are being opened, %d are open", x.opening, len(x.sessions))
		}
		x.mu.Unlock()
		if _, err := x.open(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("open after Close: %v", err)
		}
		work.Wait()
	}
}

// TestLoopReasons: why a server fails is told once, and not without end.
func TestLoopReasons(t *testing.T) {
	l, x := sleeper(t)
	var told []string
	l.Failed = func(err error) { told = append(told, err.Error()) }
	x.failed(nil)
	for i := range 3 * maxReasons {
		x.failed(fmt.Errorf("reason %d", i/2))
	}
	if len(told) != maxReasons || told[1] != "reason 1" {
		t.Errorf("told: %q", told)
	}
}
