// Package logtest has the logger that a test gives to the code under test. What that
// code logs then belongs to the test: it is shown only if the test fails or with -v.
package logtest

import (
	"io"
	"log"
	"log/slog"
	"sync"
	"testing"
)

// New returns a logger that writes to the output of a test until the test ends. What is
// logged later is dropped.
func New(t testing.TB) *slog.Logger {
	w := &output{w: t.Output()}
	t.Cleanup(w.end)
	return slog.New(slog.NewTextHandler(w, nil))
}

// SetDefault gives slog's default logger a handler until the test ends. slog.SetDefault
// cannot undo that: it leaves the output of package log, which slog's first default logger
// writes to, with the handler.
func SetDefault(t testing.TB, h slog.Handler) {
	logger, w, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(h))
	t.Cleanup(func() {
		slog.SetDefault(logger)
		log.SetOutput(w)
		log.SetFlags(flags)
	})
}

// output is the output of a test, which panics when it is written to after the test.
type output struct {
	mu sync.Mutex
	w  io.Writer // nil once the test has ended
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w == nil {
		return len(p), nil
	}
	return o.w.Write(p)
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w = nil
}
