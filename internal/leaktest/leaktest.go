// Package leaktest fails the tests of a package that leave goroutines of this project
// running. A TestMain calls [Main]:
//
//	func TestMain(m *testing.M) { leaktest.Main(m) }
package leaktest

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/internal/ramtemp"
)

// project is in the stack of each goroutine that runs, or was started by, code of this
// project.
const project = "github.com/goacp/acp"

// patience is how long goroutines may take to end once all tests have: long enough for
// a machine that is busy, since only a failure waits for all of it.
const patience = time.Minute

// stackBytes bounds how much of all stacks is looked at.
const stackBytes = 16 << 20

// Main runs the tests of a package, then the functions of tidy, and ends the process. The
// tests fail if a goroutine of this project is left. Their temporary directories are in
// memory: see package ramtemp.
func Main(m *testing.M, tidy ...func()) {
	os.Exit(finish(ramtemp.Run(m), tidy, Left, os.Stderr))
}

// finish returns the exit code of tests that ended with code.
func finish(code int, tidy []func(), left func() string, w io.Writer) int {
	for _, f := range tidy {
		f()
	}
	if code != 0 {
		return code // a test that failed may have stopped anywhere
	}
	if stacks := left(); stacks != "" {
		fmt.Fprintln(w, "goroutines left behind:\n\n"+stacks)
		return 1
	}
	return 0
}

// Left waits until no goroutine of this project is left but those of tests, and returns
// an empty string. After a minute it returns the stacks of those that are left.
func Left() string { return leftAfter(patience, 1<<20) }

// leftAfter is Left with another patience, and with the size of the first look in bytes.
func leftAfter(patience time.Duration, size int) string {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	buf := make([]byte, size)
	for end := time.Now().Add(patience); ; <-tick.C {
		n := runtime.Stack(buf, true)
		for n == len(buf) && n < stackBytes {
			buf = make([]byte, 2*len(buf))
			n = runtime.Stack(buf, true)
		}
		left := ours(string(buf[:n]))
		if left == "" || time.Now().After(end) {
			return left
		}
	}
}

// ours returns those stacks that belong to the project, without those of tests and the
// one that asks.
func ours(stacks string) string {
	var left []string
	for _, g := range strings.Split(stacks, "\n\n") {
		if strings.Contains(g, project) && !strings.Contains(g, "testing.tRunner(") && !strings.Contains(g, "TestMain(") {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}
