// Package pty runs programs in pseudo-terminals: commands of agents, which then show colours and
// progress as in a terminal, and programs with which the user logs in. A command ends together with
// everything it has started; see [Terminals] for what that covers.
//
// It works on Unix systems. Elsewhere [Available] is false, and commands must be run with pipes.
package pty

import (
	"slices"
	"strings"
	"time"
)

// Size is how large a terminal is, in characters.
type Size struct{ Cols, Rows int }

// DefaultSize is the size of terminals for which none was set.
var DefaultSize = Size{Cols: 100, Rows: 30}

// grace is the time between asking a command to end and killing it.
const grace = 2 * time.Second

// environment returns the environment of a command in one of our terminals.
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
