package app

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// Program returns the words by which users start this program again: its name if the PATH has it, and
// otherwise "go run" if that has built it, or its path.
func Program(environ []string) []string {
	_, missing := roster.LookPath("acp", "", environ)
	exe, err := os.Executable()
	info, ok := debug.ReadBuildInfo()
	if missing == nil || err != nil || !ok {
		return []string{"acp"}
	}
	return programAt(exe, info.Path)
}

// programAt returns the words for a program that the PATH does not have. The Go tool removes what
// "go run" has built when that ends.
func programAt(exe, pkg string) []string {
	for dir := filepath.Dir(exe); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if strings.HasPrefix(filepath.Base(dir), "go-build") {
			return []string{"go", "run", pkg}
		}
	}
	return []string{exe}
}
