package tui

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// safeLine returns s as one safe line of at most max cells.
func safeLine(s string, max int) string { return safetext.Line(s, max) }

// tilde abbreviates the home directory to ~ in a path.
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

// tildes abbreviates the home directory to ~ in all paths of a text.
func tildes(text string) string {
	home, err := os.UserHomeDir()
	if sep := string(filepath.Separator); err == nil && home != "" && home != sep {
		text = strings.ReplaceAll(text, home+sep, "~"+sep)
	}
	return text
}
