package remote

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/jsonrpc"
)

// TestPasses: what may pass is tried for five minutes, a token for five seconds, the rest not at all.
func TestPasses(t *testing.T) {
	revoked := &acphttp.BrokenError{Err: &acphttp.StatusError{Status: http.StatusUnauthorized}}
	for _, tt := range []struct {
		name  string
		err   error
		since time.Duration
		want  bool
	}{
		{"it cannot be reached", exitcode.Errorf(exitcode.Agent, "refused"), time.Minute, true},
		{"it cannot be reached for too long", exitcode.Errorf(exitcode.Agent, "refused"), ReturnFor + time.Second, false},
		{"the connection is unknown", fmt.Errorf("%w: %w", jsonrpc.ErrClosed, &acphttp.StatusError{Status: http.StatusNotFound}), 0, true},
		{"it starts", exitcode.With(exitcode.Protocol, &acphttp.StatusError{Status: http.StatusServiceUnavailable}), 0, true},
		{"a token, at first", fmt.Errorf("%w: %w", jsonrpc.ErrClosed, revoked), 0, true},
		{"a token", fmt.Errorf("%w: %w", jsonrpc.ErrClosed, revoked), tokenFor, false},
		{"a login", exitcode.Errorf(exitcode.Auth, "a token"), tokenFor, false},
		{"usage", exitcode.Errorf(exitcode.Usage, "no"), 0, false},
		{"protocol", exitcode.Errorf(exitcode.Protocol, "no"), 0, false},
		{"it is about to end", &jsonrpc.Failure{Message: "closing", RetryAfter: time.Second}, time.Minute, true},
		{"a refusal", &jsonrpc.Failure{Message: "no", Reason: "role"}, 0, false},
		{"anything else", errors.New("no"), 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Passes(tt.err, tt.since); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
