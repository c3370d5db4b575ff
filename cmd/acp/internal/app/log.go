package app

import (
	"context"
	"log/slog"

	"github.com/goacp/acp/cmd/acp/internal/backend"
)

// logged returns a frontend that also logs what the agent does wrong. --verbose adds what the agent
// writes to standard error.
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
