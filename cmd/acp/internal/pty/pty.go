// Package pty runs programs in pseudo-terminals: commands of agents, so that they show colours and
// progress as in a terminal, and programs that the user logs in with.
//
// It works on Unix systems. Elsewhere [Available] is false, and commands should be run with pipes.
package pty

import (
	"slices"
	"strings"
	"time"
)

// Size is how large a terminal is, in characters.
type Size struct{ Cols, Rows int }

// DefaultSize is the size of terminals of which nobody has said how large they are.
var DefaultSize = Size{Cols: 100, Rows: 30}

// grace is how long a command that is to end has between being asked to and being killed.
const grace = 2 * time.Second

// environment returns the environment of a command in a terminal of ours.
func environment(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "TERM", "COLUMNS", "LINES":
			return true
		}
		return false
	})
	return append(env, "TERM=xterm-256color")
}
