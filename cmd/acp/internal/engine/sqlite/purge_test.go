package sqlite

import (
	"errors"
	"iter"
	"path/filepath"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// TestDeleteLeft: a session whose records cannot be deleted is deleted all the same, and its owner is known; they are deleted
// once that can be.
func TestDeleteLeft(t *testing.T) {
	dir := t.TempDir()
	e, l := opened(t, dir, Options{})
	fill(t, e, l, 1, "a")
	next, stop := iter.Pull2(e.Follow(t.Context(), "a", 0))
	defer stop()
	if r, err, _ := next(); r.Seq != 1 || err != nil {
		t.Fatal(r, err)
	}
	execute(t, filepath.Join(dir, logName), `CREATE TRIGGER keep BEFORE DELETE ON acp_record BEGIN SELECT RAISE(ABORT, 'kept'); END`)
	if owner, err := e.Delete(t.Context(), "a"); owner != "n" || !errors.Is(err, engine.ErrUnpurged) {
		t.Errorf("owner %q: %v", owner, err)
	}
	if _, err := e.Session(t.Context(), "a"); !errors.Is(err, engine.ErrDeleted) {
		t.Error(err)
	}
	if _, err, _ := next(); !errors.Is(err, engine.ErrDeleted) {
		t.Error(err)
	}
	execute(t, filepath.Join(dir, logName), `DROP TRIGGER keep`)
	if _, err := e.Delete(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}
