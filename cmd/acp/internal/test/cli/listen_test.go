package cli

import (
	"context"
	"net"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// listen serves an agent that repeats what it is told on a port of this machine until the script ends, and
// puts its URL into the variable AGENT_URL.
func listen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: listen")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv("AGENT_URL", "tcp://"+l.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	agent := &acp.Agent{
		Info: acp.Implementation{Name: "far", Version: "1.0.0"},
		Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			return "", t.Say("from afar: " + t.Text())
		},
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { _ = agent.Serve(ctx, acp.Over(jsonrpc.NewLineStream(conn, conn))) })
		}
	})
	ts.Defer(func() {
		_ = l.Close()
		cancel()
		serving.Wait()
	})
}
