// Command echo is an agent that repeats every prompt.
package main

import (
	"context"
	"log"

	"github.com/goacp/acp"
)

var agent = acp.Agent{
	Info: acp.Implementation{Name: "echo", Version: "1.0.0"},
	Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		return acp.StopEndTurn, t.Say(t.Text())
	},
}

func main() {
	if err := agent.Serve(context.Background(), acp.Stdio()); err != nil {
		log.Fatal(err)
	}
}
