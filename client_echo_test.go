package acp

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/jsonrpc"
)

// TestClientEcho holds that a program which sends back what it is sent is told from an agent that
// answers with an error.
func TestClientEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := jsonrpc.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			for {
				f, err := theirs.ReadFrame()
				if err != nil || theirs.WriteFrame(f.Data) != nil {
					return
				}
			}
		}()
		c := new(Client)
		_, err := c.Connect(t.Context(), Over(ours))
		if !errors.Is(err, ErrInitialize) || errors.Is(err, jsonrpc.ErrClosed) {
			t.Fatal(err)
		}
		if want := "acp: the agent's answer to initialize is the request itself: it sends back what it is sent"; err.Error() != want {
			t.Errorf("%v", err)
		}
	})
}
