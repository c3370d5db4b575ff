package store

import (
	"errors"
	"fmt"

	"github.com/goacp/acp/transcript"
)

// Bounds are those of conversations in memory: a message of up to 32 MiB is whole, and the last 4
// MiB of the output of a command are kept. A short conversation needs little memory all the same.
func Bounds() transcript.Config {
	return transcript.Config{TotalBytes: 256 << 20, EntryBytes: 32 << 20, TerminalBytes: 4 << 20}
}

// wrap says what was attempted when an error occurred. ErrNotFound stays as it is.
func wrap(what string, err error) error {
	if err == nil || errors.Is(err, ErrNotFound) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}
