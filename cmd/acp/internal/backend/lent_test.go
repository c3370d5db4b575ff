package backend

import (
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// TestLentFiles: files are lent unless the agent is better off without.
func TestLentFiles(t *testing.T) {
	for _, without := range []bool{false, true} {
		h := &Host{cfg: Config{Cwd: t.TempDir(), Agent: roster.Agent{NoFiles: without}}}
		if c := h.client(new(link)); (c.Files == nil) != without {
			t.Errorf("with NoFiles %t the agent is lent %v", without, c.Files)
		}
	}
}
