// Package long marks the tests that take long. A plain go test leaves them out; with ACP_TESTS=all in the
// environment, as .ci/run has it in a step of its own, they run.
package long

import (
	"os"
	"testing"
)

// All reports whether the tests that take long are to run.
func All() bool { return os.Getenv("ACP_TESTS") == "all" }

// Test skips a test that takes long unless all are to run.
func Test(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("it takes long: ACP_TESTS=all has it run")
	}
}
