package remote

import (
	"errors"
	"net/http"
	"time"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/jsonrpc"
)

// Bounds of returning to a gateway.
const (
	// ReturnFor is how long a client tries to return to a gateway.
	ReturnFor = 5 * time.Minute
	// ReturnAfter is the pause between two attempts.
	ReturnAfter = time.Second
	// tokenFor is how long a refused token is tried again: a server that starts again leaves a new one.
	tokenFor = 5 * time.Second
)

// Passes reports whether a client returns to a gateway after err: whether what has failed, or has kept failing
// since the connection broke, may pass. That includes what the gateway refuses for a time that it says.
func Passes(err error, since time.Duration) bool {
	switch {
	case since > ReturnFor:
		return false
	case IsUnauthorized(err):
		return since < tokenFor
	case exitcode.Of(err) == exitcode.Agent || errors.Is(err, jsonrpc.ErrClosed):
		return true
	}
	if said, ok := errors.AsType[*jsonrpc.Failure](err); ok {
		return said.RetryAfter > 0
	}
	said, ok := errors.AsType[*acphttp.StatusError](err)
	return ok && said.Status >= http.StatusInternalServerError
}

// IsUnauthorized reports whether an error says that the server requires another token.
func IsUnauthorized(err error) bool {
	said, ok := errors.AsType[*acphttp.StatusError](err)
	return ok && said.Status == http.StatusUnauthorized || exitcode.Of(err) == exitcode.Auth
}
