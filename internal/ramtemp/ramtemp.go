// Package ramtemp keeps the temporary directories of tests in memory where it can: what
// the tests keep is synced to the disk all the time, and tests that wait for a busy disk
// take ten times as long. Nothing that they show depends on it, since no test cuts the
// power.
package ramtemp

import (
	"errors"
	"fmt"
	"os"
)

// minFree is how many bytes must be free for the tests of a package: they take a few
// hundred megabytes at most.
const minFree = 2 << 30

// errNoRoom is why a file system is not used.
var errNoRoom = errors.New("no file system in memory with enough room")

// A Runner runs the tests of a package: a [testing.M].
type Runner interface{ Run() int }

// Run runs the tests with TMPDIR in memory, unless the environment has a TMPDIR or the
// system no such place, and returns their exit code.
func Run(m Runner) int {
	if os.Getenv("TMPDIR") != "" {
		return m.Run()
	}
	dir, remove, err := mkdir()
	if err != nil {
		return m.Run()
	}
	_ = os.Setenv("TMPDIR", dir) // the name is a good one
	code := m.Run()
	if err := remove(); err != nil {
		fmt.Fprintln(os.Stderr, "ramtemp:", err)
		return max(code, 1)
	}
	return code
}
