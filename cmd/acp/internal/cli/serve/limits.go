package serve

import (
	"time"

	"github.com/goacp/acp/acphttp"
)

// keptBytes is how much of each stream is kept in memory where the log has it as well: what a client lacks whose
// network fails for some seconds. One that lacks more attaches again.
const keptBytes = 512 << 10

// limits returns the bounds of the server. Where sessions are kept, what a client was not sent is in the log, and
// need not wait in memory too, in each connection, and a client whose connection was dropped attaches again.
func limits(initialize time.Duration, kept bool) acphttp.Limits {
	l := acphttp.Limits{InitializeTimeout: initialize}
	if kept {
		l.MaxUnsentSession = 512 << 10
		l.MaxUnsent = 8 << 20
		l.MaxUnsentAll = 256 << 20
		l.IdleTimeout = time.Minute // longer than our own clients try
	}
	return l
}
