package app

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// Editor returns the command of the editor, and whether the user has chosen it. A chosen editor is
// trusted to work without a terminal.
func Editor(environ []string) (argv []string, chosen bool, err error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		for i := len(environ) - 1; i >= 0; i-- {
			if k, v, _ := strings.Cut(environ[i], "="); k == name && v != "" {
				argv, err := roster.Split(v)
				if err != nil {
					return nil, true, fmt.Errorf("%s: %w", name, err)
				}
				return argv, true, nil
			}
		}
	}
	if runtime.GOOS == "windows" {
		return []string{"notepad"}, false, nil
	}
	return []string{"vi"}, false, nil
}
