package acp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/jsonrpc"
)

// TestDefaultLogger holds that, without a Logger, what goes wrong in hooks is
// logged by slog's default logger, under the id that the client's error shows, and
// that nothing else is.
func TestDefaultLogger(t *testing.T) {
	var out lockedBuffer
	logtest.SetDefault(t, slog.NewTextHandler(&out, nil))
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("the disk is full") },
		"panic": func() error { panic("the disk is full") },
	} {
		for version := 1; version <= 2; version++ {
			out.take()
			agent := &Agent{Prompt: func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, fail() }}
			a, c := Pipe()
			served := laterErr(func() error { return agent.Serve(context.Background(), a) })
			conn, err := (&Client{MaxVersion: version}).Connect(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Conn().Notify(t.Context(), "x/unknown", nil) // noticed on the wire
			_, err = s.Prompt(t.Context(), Text("go")).Wait()
			if !errors.Is(err, jsonrpc.ErrInternal) {
				t.Errorf("%s, v%d: %v", name, version, err)
			}
			text := out.take()
			id := regexp.MustCompile(`correlationId ([0-9a-f]{16})\)$`).FindStringSubmatch(err.Error())
			if id == nil || !strings.Contains(text, "correlationId="+id[1]) || !strings.Contains(text, "the disk is full") || strings.Contains(text, "level=WARN") {
				t.Errorf("%s, v%d: %v; logged %s", name, version, err, text)
			}
			_ = conn.Close()
			_ = served()
		}
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.buf.String()
	b.buf.Reset()
	return s
}
