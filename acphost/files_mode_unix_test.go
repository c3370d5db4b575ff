//go:build unix

package acphost

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/goacp/acp/acpv1"
)

// TestWriteKeepsMode holds that a file keeps its mode, whatever that and the umask are.
func TestWriteKeepsMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	dir := t.TempDir()
	for _, mode := range []fs.FileMode{0, 0o200, 0o400, 0o600, 0o644, 0o666, 0o751} {
		path := filepath.Join(dir, mode.String())
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Dir(dir).WriteTextFile(t.Context(), &acpv1.WriteTextFileRequest{Path: path, Content: "new"}); err != nil {
			t.Fatalf("%v: %v", mode, err)
		}
		fi, err := os.Stat(path)
		if err != nil || fi.Mode().Perm() != mode || fi.Size() != 3 {
			t.Errorf("%v has become %v, %d bytes, %v", mode, fi.Mode().Perm(), fi.Size(), err)
		}
	}
}
