// Package faultlog has the logger for applications that have not set one. Failures of
// the application's own code must not vanish; diagnostics of the wire may.
package faultlog

import (
	"context"
	"log/slog"
)

// New returns a logger that passes errors on to [slog.Default], whatever that is at
// the time, and discards what is below [slog.LevelError].
func New() *slog.Logger { return slog.New(handler{}) }

type handler struct{}

func (handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && slog.Default().Enabled(ctx, level)
}

func (handler) Handle(ctx context.Context, r slog.Record) error {
	return slog.Default().Handler().Handle(ctx, r)
}

func (handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return errorsOf{slog.Default().Handler().WithAttrs(attrs)}
}

func (handler) WithGroup(name string) slog.Handler {
	return errorsOf{slog.Default().Handler().WithGroup(name)}
}

// errorsOf passes errors on to a handler.
type errorsOf struct{ slog.Handler }

func (h errorsOf) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, level)
}

func (h errorsOf) WithAttrs(attrs []slog.Attr) slog.Handler {
	return errorsOf{h.Handler.WithAttrs(attrs)}
}

func (h errorsOf) WithGroup(name string) slog.Handler { return errorsOf{h.Handler.WithGroup(name)} }
