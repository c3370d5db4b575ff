//go:build !windows

package terminal

import (
	"testing"

	"github.com/hinshun/vt10x"
)

// TestPieces: it does not matter where the output of a program is cut.
func TestPieces(t *testing.T) {
	const out = "a─\x1b[2bé👋\x1b[31mb\x1b[m─\x1b[b\x1b[5`X"
	for at := range len(out) {
		s := &Screen{vt: vt10x.New(vt10x.WithSize(20, 1)), cols: 20, rows: 1, changed: make(chan struct{})}
		s.write([]byte(out[:at]))
		s.write([]byte(out[at:]))
		if got := s.Text(); got != "a───X👋b──\n" {
			t.Errorf("cut at %d: %q", at, got)
		}
	}
}
