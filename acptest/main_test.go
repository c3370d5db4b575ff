package acptest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var _ = UpdateFlag()

func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(); left != "" && code == 0 {
		fmt.Fprintln(os.Stderr, "goroutines left behind:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leaked returns the stacks of goroutines of this module that are still there
// after having had every chance to end.
func leaked() string {
	for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
		buf := make([]byte, 4<<20)
		left := ""
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "goacp/acp") && !strings.Contains(g, "TestMain(") {
				left += g + "\n\n"
			}
		}
		if left == "" || time.Now().After(end) {
			return left
		}
	}
}

// fakeTB is a test that may fail. It runs its cleanups when it is told to.
type fakeTB struct {
	testing.TB
	mu       sync.Mutex
	errors   []string
	cleanups []func()
}

func (f *fakeTB) Helper()                  {}
func (f *fakeTB) Context() context.Context { return context.Background() }

func (f *fakeTB) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Fatal(args ...any) {
	f.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *fakeTB) Cleanup(c func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cleanups = append(f.cleanups, c)
}

// end runs the cleanups and returns what went wrong.
func (f *fakeTB) end() string {
	for len(f.cleanups) > 0 {
		last := len(f.cleanups) - 1
		c := f.cleanups[last]
		f.cleanups = f.cleanups[:last]
		c()
	}
	return strings.Join(f.errors, "\n")
}

// failing runs f as a test and returns what went wrong.
func failing(f func(tb testing.TB)) string {
	tb := &fakeTB{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(tb)
	}()
	<-done
	return tb.end()
}
