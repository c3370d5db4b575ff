package app

import (
	"errors"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remote"
)

// ErrRevoked is the error for a user whose token a gateway does not take any more.
var ErrRevoked = errors.New("this device was revoked, or its token is wrong")

// Refusal returns what err means to somebody who was connected to a gateway: [ErrRevoked], or err itself.
func Refusal(err error) error {
	if remote.IsUnauthorized(err) {
		return exitcode.With(exitcode.Auth, ErrRevoked)
	}
	return err
}
