//go:build !windows

package cli

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// TestChatCrash holds that a plain chat whose agent crashes ends with the status of that, every time, and
// that the error is told once, on standard error.
func TestChatCrash(t *testing.T) {
	t.Parallel()
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 5 {
				home := t.TempDir()
				cmd := acpCommand(t, home, append([]string{"chat", "--no-store"}, fake("crash-silent")...)...)
				cmd.Stdin = strings.NewReader("hi\nmore\n")
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				_ = cmd.Run()
				if got := exitcode.Code(cmd.ProcessState.ExitCode()); got != exitcode.Agent {
					t.Errorf("status %d, want %d", got, exitcode.Agent)
				}
				if n := strings.Count(errs.String(), "boom"); n != 1 || strings.Contains(out.String(), "boom") {
					t.Errorf("told %d times on standard error; standard output:\n%s\nstandard error:\n%s", n, &out, &errs)
				}
			}
		})
	}
	running.Wait()
}
