package app

import (
	"context"
	"log/slog"

	"github.com/goacp/acp/cmd/acp/internal/host"
)

// logged returns front with what it is told about the agent written to a log, too. What the agent
// writes to standard error is for --verbose.
func logged(front host.Frontend, log *slog.Logger, agent string) host.Frontend {
	note := front.Note
	front.Note = func(n host.Note) {
		level := slog.LevelInfo
		switch n.Kind {
		case host.NoteStderr:
			level = slog.LevelDebug
		case host.NoteSlow, host.NoteStore, host.NoteEnded:
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, n.Text, "agent", agent, "about", string(n.Kind))
		if note != nil {
			note(n)
		}
	}
	return front
}
