package launch

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

func TestProcess(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Process(t.Context(), roster.Agent{Name: "own", Builtin: true}, dir)
	if err != nil || c.Path != self || c.Dir != dir || !cmp.Equal(c.Args, []string{"agent"}) {
		t.Errorf("the built-in agent: %+v, %v", c, err)
	}
	c, err = Process(t.Context(), roster.Agent{Name: "x", Command: self, Args: []string{"--acp"}}, dir)
	if err != nil || c.Path != self || !cmp.Equal(c.Args, []string{"--acp"}) {
		t.Errorf("a program: %+v, %v", c, err)
	}
	_, err = Process(t.Context(), roster.Agent{Name: "no\x1b[31m", Command: "there-is-no-such-program"}, dir)
	if exitcode.Of(err) != exitcode.Agent || strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("a program that is not there: %q", err)
	}
}
