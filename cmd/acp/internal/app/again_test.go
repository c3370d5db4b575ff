package app

import (
	"errors"
	"net/http"
	"testing"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// TestRefusal: the error names the token if the server does not accept it any more.
func TestRefusal(t *testing.T) {
	revoked := &acphttp.BrokenError{Err: &acphttp.StatusError{Status: http.StatusUnauthorized}}
	if err := Refusal(revoked); !errors.Is(err, ErrRevoked) || exitcode.Of(err) != exitcode.Auth {
		t.Errorf("%v, status %d", err, exitcode.Of(err))
	}
	other := errors.New("no")
	if err := Refusal(other); err != other {
		t.Error(err)
	}
}
