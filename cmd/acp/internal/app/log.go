package app

import (
	"context"
	"log/slog"

	"github.com/goacp/acp/cmd/acp/internal/backend"
)

// logged returns front with what it is told about the agent written to a log, too. What the agent
// writes to standard error is for --verbose.
func logged(front backend.Frontend, log *slog.Logger, agent string) backend.Frontend {
	note := front.Note
	front.Note = func(n backend.Note) {
		level := slog.LevelInfo
		switch n.Kind {
		case backend.NoteStderr:
			level = slog.LevelDebug
		case backend.NoteSlow, backend.NoteStore, backend.NoteEnded:
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, n.Text, "agent", agent, "about", string(n.Kind))
		if note != nil {
			note(n)
		}
	}
	return front
}
