package tui

import (
	"path/filepath"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/app"
)

// TestHistoryPlace: the history is in the state directory of the settings, where everything else of that kind is.
func TestHistoryPlace(t *testing.T) {
	state := t.TempDir()
	o := Options{App: &app.App{Environ: []string{"XDG_STATE_HOME=" + state, "XDG_CONFIG_HOME=" + t.TempDir()}, Cwd: t.TempDir()}}
	if err := o.setDefaults(); err != nil {
		t.Fatal(err)
	}
	if got, want := filepath.Dir(newInput(o.StateDir, o.cwd).history.path), filepath.Join(state, "acp", "history"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
