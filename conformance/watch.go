package conformance

import (
	"time"

	"github.com/goacp/acp/trace"
)

// A watch checks observed rules on the connections of a check.
type watch struct{}

func newWatch(Side) *watch { return &watch{} }

// connection returns what has to see every frame of a connection, one at a time.
func (w *watch) connection() func(at time.Duration, dir trace.Direction, out bool, data []byte) {
	return func(time.Duration, trace.Direction, bool, []byte) {}
}

// result returns what became of an observed rule in a version.
func (w *watch) result(r *Rule, d *dialect) *Result {
	return &Result{Rule: r, Version: d.version, Status: Unseen}
}
