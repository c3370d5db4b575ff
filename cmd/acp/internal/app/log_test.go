package app

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/host"
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
	var told []host.NoteKind
	front := logged(host.Frontend{Note: func(n host.Note) { told = append(told, n.Kind) }}, logger, "fake")
	for _, n := range []host.Note{
		{Kind: host.NoteStarting, Text: "starting fake"}, {Kind: host.NoteStderr, Text: "chatter"}, {Kind: host.NoteEnded, Text: "fake has ended"},
	} {
		front.Note(n)
		logged(host.Frontend{}, slog.New(slog.DiscardHandler), "").Note(n) // nobody listens
	}
	want := "level=INFO msg=\"starting fake\" agent=fake about=starting\nlevel=WARN msg=\"fake has ended\" agent=fake about=ended\n"
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]host.NoteKind{host.NoteStarting, host.NoteStderr, host.NoteEnded}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
