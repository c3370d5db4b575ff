//go:build unix

package cli

import (
	"context"
	"errors"
	"os"
	"testing"
)

// TestSlowEnd: who interrupts what does not end is told once what else can be done; the second
// interrupt ends the process.
func TestSlowEnd(t *testing.T) {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	exits, slow := make(chan int, 1), make(chan struct{}, 2)
	ctx, _, stop := watchSignals(context.Background(), func(code int) { exits <- code }, func() { slow <- struct{}{} })
	defer stop()
	if err := self.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		t.Error(cause)
	}
	<-slow
	if len(exits) > 0 {
		t.Error("the first interrupt ends the process")
	}
	if err := self.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := <-exits; code != 4 {
		t.Errorf("status %d", code)
	}
	if len(slow) > 0 {
		t.Error("told again")
	}
}
