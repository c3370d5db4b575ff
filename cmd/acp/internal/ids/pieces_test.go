package ids

import (
	"strconv"
	"testing"
)

// TestPiecesBounded: not more than maxSeen entries are remembered.
func TestPiecesBounded(t *testing.T) {
	var p Pieces
	for i := range 3 * maxSeen {
		if !p.isNew("tool " + strconv.Itoa(i)) {
			t.Fatal("not new", i)
		}
	}
	if len(p.seen) != maxSeen || p.isNew("tool "+strconv.Itoa(3*maxSeen-1)) || !p.isNew("tool 0") {
		t.Errorf("%d remembered", len(p.seen))
	}
}
