// Command bridge serves clients of either protocol version with an agent that
// speaks only one:
//
//	bridge AGENT [ARG...]
//
// Put it in front of an agent in your editor's configuration.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/goacp/acp"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: bridge AGENT [ARG...]")
		os.Exit(2)
	}
	agent := acp.Command(os.Args[1], os.Args[2:]...)
	agent.Stderr = os.Stderr
	bridge := acp.Bridge{Agent: agent}
	if err := bridge.Serve(context.Background(), acp.Stdio()); err != nil {
		log.Fatal(err)
	}
}
