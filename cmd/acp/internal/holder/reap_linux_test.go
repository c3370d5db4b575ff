package holder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReaped: a holder that has ended leaves no zombie in the process that has started it.
func TestReaped(t *testing.T) {
	a := begin(t, spec(t, "/bin/cat"))
	if n := len(children(t, "")); n == 0 {
		t.Fatal("the holder is not a child")
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the holder is a zombie", func() bool { return len(children(t, "Z")) == 0 })
}

// TestStartBound: a program that reports an error and does not end is killed when the context is done, and none is
// started after that.
func TestStartBound(t *testing.T) {
	s := spec(t, "/bin/cat")
	s.Program = []string{"/bin/sh", "-c", `echo '{"error":"no"}'; exec sleep 1000`}
	ctx, cancel := context.WithCancel(t.Context())
	began := make(chan error)
	go func() {
		_, err := Start(ctx, s)
		began <- err
	}()
	eventually(t, "nothing was started", func() bool { return len(children(t, "")) > 0 })
	cancel()
	if err := <-began; err == nil {
		t.Error("it has started")
	}
	if _, err := Start(ctx, s); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	eventually(t, "a process is left", func() bool { return len(children(t, "")) == 0 })
}

// children returns the children of this process in a state; "" is any.
func children(t *testing.T, state string) (all []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, _ := os.ReadFile(file) // it may have ended
		_, rest, _ := strings.Cut(string(data), ") ")
		if strings.HasPrefix(rest, state) && len(rest) > 1 && strings.HasPrefix(rest[1:], fmt.Sprintf(" %d ", os.Getpid())) {
			all = append(all, file)
		}
	}
	return all
}
