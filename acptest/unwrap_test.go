package acptest_test

import (
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/jsonrpc"
)

// exits is a stream whose peer has ended badly.
type exits struct{ jsonrpc.Stream }

func (exits) ExitErr() error { return errExits }

var errExits = errorString("status 9")

type errorString string

func (e errorString) Error() string { return string(e) }

// TestUnwrap: a client sees through the streams of this package how its peer ended.
func TestUnwrap(t *testing.T) {
	for name, wrap := range map[string]func(jsonrpc.Stream) jsonrpc.Stream{
		"Faults": func(s jsonrpc.Stream) jsonrpc.Stream { return acptest.Faults{}.Wrap(s) },
		"Grease": func(s jsonrpc.Stream) jsonrpc.Stream { return acptest.Grease(s, 1) },
		"all":    func(s jsonrpc.Stream) jsonrpc.Stream { return acptest.Faults{}.Wrap(acptest.Grease(s, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := jsonrpc.Pipe()
			if err := theirs.Close(); err != nil {
				t.Fatal(err)
			}
			_, err := new(acp.Client).Connect(t.Context(), acp.Over(wrap(exits{ours})))
			if err == nil || !strings.Contains(err.Error(), "status 9") {
				t.Error(err)
			}
		})
	}
}
