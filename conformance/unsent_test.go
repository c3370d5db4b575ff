package conformance

import (
	"io"
	"testing"
)

// TestUnsent holds that a peer's own reason is told, not that of the pipe to it.
func TestUnsent(t *testing.T) {
	for _, tc := range []struct {
		why  func() string
		want string
	}{
		{nil, "the peer takes nothing more: io: read/write on closed pipe"},
		{func() string { return "" }, "the peer takes nothing more: io: read/write on closed pipe"},
		{func() string { return "exit status 1: no key" }, "the peer was gone before it had read what it was sent (exit status 1: no key)"},
	} {
		l := &link{peer: &Peer{Ended: tc.why}}
		if got := l.unsent(io.ErrClosedPipe).Error(); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
