package tui

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// safeLine makes one safe line of at most max cells.
func safeLine(s string, max int) string { return safetext.Line(s, max) }

// tilde shortens a path in the home directory.
func tilde(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "" || home == string(filepath.Separator) {
		return path
	}
	if path == home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
		return "~" + string(filepath.Separator) + rest
	}
	return path
}

// tildes shortens the paths in the home directory that a text has.
func tildes(text string) string {
	home, err := os.UserHomeDir()
	if sep := string(filepath.Separator); err == nil && home != "" && home != sep {
		text = strings.ReplaceAll(text, home+sep, "~"+sep)
	}
	return text
}
