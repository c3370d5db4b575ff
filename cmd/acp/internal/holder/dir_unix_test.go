//go:build unix

package holder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDirectories: a socket is in a directory that nobody else can use or replace. Whoever listens gets a token.
func TestDirectories(t *testing.T) {
	const sticky = os.ModeSticky | 0o777
	for _, tt := range []struct {
		name        string
		parent, dir os.FileMode
		owner       [2]int // of these
		want        string
	}{
		{"ours", 0o755, 0o700, [2]int{}, ""},
		{"in one that is sticky", sticky, 0o700, [2]int{}, ""},
		{"that others read", 0o755, 0o755, [2]int{}, "others have access"},
		{"in one that others write", 0o777, 0o700, [2]int{}, "others can replace"},
		{"of another user", 0o755, 0o700, [2]int{0, 12345}, "belongs to another user"},
		{"in one of another user", 0o755, 0o700, [2]int{12345, 0}, "others can replace"},
	} {
		parent := filepath.Join(t.TempDir(), "p")
		dir := filepath.Join(parent, "d")
		err := os.MkdirAll(dir, 0o700)
		for i, name := range []string{parent, dir} {
			if tt.owner[i] != 0 && os.Geteuid() == 0 {
				err = errors.Join(err, os.Chown(name, tt.owner[i], -1))
			}
			err = errors.Join(err, os.Chmod(name, []os.FileMode{tt.parent, tt.dir}[i]))
		}
		if err != nil {
			t.Fatal(err)
		}
		if tt.owner != [2]int{} && os.Geteuid() != 0 {
			continue
		}
		err = checkDir(dir)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, err := Attach(t.Context(), filepath.Join(dir, "x"+suffix), "token", State{}); err == nil || errors.Is(err, ErrNone) != (tt.want == "") {
			t.Errorf("%s: attaching: %v", tt.name, err)
		}
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "d"), 0o700), os.Symlink("d", link)); err != nil {
		t.Fatal(err)
	}
	if err := checkDir(link); err == nil {
		t.Error("a link is accepted")
	}
	if _, err := Attach(t.Context(), filepath.Join(dir, "none", "x"+suffix), "token", State{}); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}
