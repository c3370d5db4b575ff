package leaktest

import (
	"bytes"
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

// TestLeft: a goroutine that does not end is reported once patience is over, however
// small the first look was.
func TestLeft(t *testing.T) {
	c := make(chan struct{})
	go wait(c)
	if left := leftAfter(0, 64); !strings.Contains(left, "leaktest.wait(") && !strings.Contains(left, "created by "+project) {
		t.Errorf("the goroutine is not found:\n%s", left)
	}
	close(c)
	if left := Left(); left != "" {
		t.Errorf("it has ended, but this is left:\n%s", left)
	}
}

func TestFinish(t *testing.T) {
	for _, tc := range []struct {
		name   string
		code   int
		left   string
		want   int
		report string
	}{
		{"passed", 0, "", 0, ""},
		{"left", 0, "goroutine 7", 1, "goroutines left behind:\n\ngoroutine 7\n"},
		{"failed", 2, "goroutine 7", 2, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			tidied := 0
			got := finish(tc.code, []func(){func() { tidied++ }, func() { tidied++ }}, func() string {
				if tidied != 2 {
					t.Errorf("looks after %d functions of tidy, want 2", tidied)
				}
				return tc.left
			}, &out)
			if got != tc.want || out.String() != tc.report || tidied != 2 {
				t.Errorf("code %d, report %q, tidied %d; want %d, %q, 2", got, out.String(), tidied, tc.want, tc.report)
			}
		})
	}
}
