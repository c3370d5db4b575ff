//go:build !unix

package tap

import (
	"fmt"
	"io"
	"os"
)

// deserted cannot be known here: reading and writing fail instead.
func deserted(io.Reader, io.Writer, <-chan struct{}) bool { return false }

// numberOf returns 0: processes are not ended by signals here.
func numberOf(string) int { return 0 }

// nameOf returns the name of a signal.
func nameOf(sig os.Signal) string { return fmt.Sprint(sig) }
