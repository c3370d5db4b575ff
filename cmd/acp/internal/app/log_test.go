package app

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/backend"
)

func TestLogged(t *testing.T) {
	var log bytes.Buffer
	plain := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: plain}))
	var told []backend.NoteKind
	front := logged(backend.Frontend{Note: func(n backend.Note) { told = append(told, n.Kind) }}, logger, "fake")
	for _, n := range []backend.Note{
		{Kind: backend.NoteStarting, Text: "starting fake"}, {Kind: backend.NoteStderr, Text: "chatter"}, {Kind: backend.NoteEnded, Text: "fake has ended"},
	} {
		front.Note(n)
		logged(backend.Frontend{}, slog.New(slog.DiscardHandler), "").Note(n) // nobody listens
	}
	want := "level=INFO msg=\"starting fake\" agent=fake about=starting\nlevel=WARN msg=\"fake has ended\" agent=fake about=ended\n"
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]backend.NoteKind{backend.NoteStarting, backend.NoteStderr, backend.NoteEnded}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
