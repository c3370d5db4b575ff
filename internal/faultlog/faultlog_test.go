package faultlog

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/goacp/acp/internal/logtest"
)

// TestNew holds that errors, and nothing else, go to the default logger of the
// moment.
func TestNew(t *testing.T) {
	log := New()
	var out bytes.Buffer
	logtest.SetDefault(t, slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, l := range []*slog.Logger{log, log.With("a", "b"), log.WithGroup("g").With("c", "d").WithGroup("h")} {
		l.Debug("quiet")
		l.Warn("quiet")
		l.Error("loud", "e", 1)
	}
	if got := out.String(); strings.Count(got, "loud") != 3 || strings.Contains(got, "quiet") ||
		!strings.Contains(got, "a=b") || !strings.Contains(got, "g.c=d") || !strings.Contains(got, "g.h.e=1") {
		t.Error(got)
	}
}
