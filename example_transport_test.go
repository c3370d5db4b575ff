package acp_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"sync/atomic"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// What passes between a client and its agent is logged, in most programs to
// os.Stderr. The transport is otherwise what it was: an agent that was started by
// acp.Command is still supervised.
func ExampleLogTransport() {
	ctx := context.Background()
	agentSide, clientSide := acp.Pipe() // in place of acp.Command("some-agent")
	go echo.Serve(ctx, agentSide)

	var wire strings.Builder
	client := acp.Client{Info: acp.Implementation{Name: "editor", Version: "1.0.0"}, MaxVersion: 1}
	conn, err := client.Connect(ctx, acp.LogTransport(clientSide, &wire))
	if err != nil {
		log.Fatal(err)
	}
	conn.Close()
	for line := range strings.Lines(wire.String()) {
		at, line, _ := strings.Cut(line, " ")
		fmt.Printf("%d %.75s…\n", len(at), line)
	}
	// Output:
	// 27 -> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion…
	// 27 <- {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities…
}

// A transport of one's own is made from another one. This one counts bytes.
func ExampleWrapTransport() {
	ctx := context.Background()
	agentSide, clientSide := acp.Pipe() // in place of acp.Command("some-agent")
	go echo.Serve(ctx, agentSide)

	var sent, received atomic.Int64
	count := func(out bool, frame []byte) {
		if out {
			sent.Add(int64(len(frame)))
		} else {
			received.Add(int64(len(frame)))
		}
	}
	conn, err := new(acp.Client).Connect(ctx, acp.WrapTransport(clientSide, func(s jsonrpc.Stream) jsonrpc.Stream {
		return jsonrpc.Tap(s, count)
	}))
	if err != nil {
		log.Fatal(err)
	}
	conn.Close()
	fmt.Println(sent.Load() > 0, received.Load() > 0)
	// Output: true true
}

// echo is an agent that repeats what it is told.
var echo = acp.Agent{
	Info: acp.Implementation{Name: "echo", Version: "1.0.0"},
	Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		return acp.StopEndTurn, t.Say(t.Text())
	},
}
