//go:build unix

package app

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// TestMCPFilePipe: a project's file that never ends is an error at once.
func TestMCPFilePipe(t *testing.T) {
	home := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(home, config.MCPFile), 0o600); err != nil {
		t.Skip(err)
	}
	a := &App{Cwd: home, Environ: []string{"HOME=" + home}}
	_, err := a.MCP()
	if err == nil || !strings.Contains(err.Error(), "is not a regular file") || exitcode.Of(err) != exitcode.Usage {
		t.Errorf("%v, status %d", err, exitcode.Of(err))
	}
	if left := a.Untrusted(); len(left) != 0 {
		t.Error(left)
	}
}
