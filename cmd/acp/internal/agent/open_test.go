package agent

import (
	"strings"
	"testing"

	"github.com/goacp/acp"
)

// TestOpenBounded holds that a connection has at most maxOpen sessions open, and that closing one makes
// room.
func TestOpenBounded(t *testing.T) {
	k := start(t, 2, inMemory)
	cfg := acp.SessionConfig{Cwd: k.cwd}
	for i := 1; i < maxOpen; i++ { // one is open already
		if _, err := k.conn.NewSession(t.Context(), cfg); err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
	}
	if _, err := k.conn.NewSession(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "close one first") {
		t.Fatalf("one too many: %v", err)
	}
	if err := k.session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.conn.NewSession(t.Context(), cfg); err != nil {
		t.Errorf("after one was closed: %v", err)
	}
}
