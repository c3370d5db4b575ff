package serve

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

// TestLock: a server waits for the lock of one that has just been killed, and not for one that stays.
func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	for _, tt := range []struct {
		name       string
		background bool
		ends       time.Duration
		want       bool
	}{
		{"it ends at once", false, lockAgain / 2, true},
		{"it stays", false, 2 * lockAgain, false},
		{"it ends later", true, 2 * lockAgain, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				other := open()
				if ok, err := filelock.TryLock(other, true); !ok || err != nil {
					t.Skip("files cannot be locked here", err)
				}
				ended := time.AfterFunc(tt.ends, func() { _ = other.Close() })
				defer other.Close()
				defer ended.Stop()
				mine := open()
				defer mine.Close()
				if ok, err := (&Own{Background: tt.background}).lock(t.Context(), mine); ok != tt.want || err != nil {
					t.Errorf("locked: %v, %v", ok, err)
				}
			})
		})
	}
}
