package gateway

import (
	"errors"
	"fmt"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/jsonrpc"
)

// TestUnkeptSession: a client that cannot begin a session learns that the server has no room, or cannot write, and when to
// try again.
func TestUnkeptSession(t *testing.T) {
	for _, tt := range []struct {
		err    error
		reason string
	}{
		{engine.ErrFull, "full"}, {engine.ErrReadOnly, "unavailable"}, {errors.ErrUnsupported, ""},
	} {
		err := unkeptSession(fmt.Errorf("write: %w", tt.err))
		f, ok := errors.AsType[*jsonrpc.Failure](err)
		if ok != (tt.reason != "") || ok && (f.Reason != tt.reason || f.RetryAfter == 0) || !ok && !errors.Is(err, tt.err) {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
}
