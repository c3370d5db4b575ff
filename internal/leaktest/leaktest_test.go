package leaktest

import (
	"runtime"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func wait(c chan struct{}) { <-c }

// TestOurs: a goroutine that runs code of the project, and one that it has started, is
// found among all stacks; this test is not.
func TestOurs(t *testing.T) {
	c := make(chan struct{})
	go wait(c)
	defer func() {
		close(c)
		if left := Left(); left != "" {
			t.Errorf("they have ended, but these are left:\n%s", left)
		}
	}()
	buf := make([]byte, 1<<20)
	for {
		left := ours(string(buf[:runtime.Stack(buf, true)]))
		if strings.Contains(left, "TestOurs(") {
			t.Fatalf("finds the test itself:\n%s", left)
		}
		if strings.Contains(left, "leaktest.wait(") {
			return
		}
		runtime.Gosched()
	}
}
