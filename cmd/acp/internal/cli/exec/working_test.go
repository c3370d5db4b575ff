package exec

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWorking: while nothing is written, a line says that the agent works; everything written replaces
// it, and it never breaks into a line.
func TestWorking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tty strings.Builder
		s := startWorking(&tty)
		out, err := s.through(&tty, true), s.through(&tty, true)
		file := s.through(&strings.Builder{}, false)
		got := func() string {
			synctest.Wait()
			s.mu.Lock() // the race detector does not know what Wait and Sleep order
			defer s.mu.Unlock()
			text := tty.String()
			tty.Reset()
			return text
		}
		time.Sleep(1500 * time.Millisecond)
		if text := got(); text != "" {
			t.Errorf("at once: %q", text)
		}
		time.Sleep(2 * time.Second)
		if text := got(); text != "\r\x1b[K⋯ the agent is working · 2s · Ctrl+C cancels\r\x1b[K⋯ the agent is working · 3s · Ctrl+C cancels" {
			t.Errorf("%q", text)
		}
		_, _ = file.Write([]byte("not on the terminal"))
		_, _ = out.Write([]byte("half a line"))
		if text := got(); text != "\r\x1b[Khalf a line" {
			t.Errorf("%q", text)
		}
		time.Sleep(10 * time.Second)
		if text := got(); text != "" {
			t.Errorf("within a line: %q", text)
		}
		_, _ = err.Write([]byte("\n"))
		time.Sleep(3 * time.Second)
		if text := got(); !strings.HasPrefix(text, "\n\r\x1b[K⋯ the agent is working · 1") {
			t.Errorf("%q", text)
		}
		s.end()
		if text := got(); text != "\r\x1b[K" {
			t.Errorf("in the end: %q", text)
		}
	})
}
