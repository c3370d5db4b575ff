//go:build unix

package acphost_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
)

// A client lends terminals to its agents. Each connection has its own, and closes
// them when it ends.
func ExampleLocal() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "project")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	client := acp.Client{
		MaxVersion: 1, // agents of version 2 have terminals of their own
		Terminals: func(c *acp.ClientConn) acp.TerminalHost {
			terminals := acphost.Local(root)
			terminals.Permit = func(_ context.Context, req *acpv1.CreateTerminalRequest) error {
				fmt.Println(c.Agent().Name, "runs", req.Command)
				return nil
			}
			return terminals
		},
	}
	agent := acp.Agent{
		Info: acp.Implementation{Name: "greeter", Version: "1.0.0"},
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			call := t.ToolCall(acp.ToolCall{Title: "Greet", Kind: acp.ToolKindExecute})
			state, err := call.Exec(acp.Exec{Command: "/bin/echo", Args: []string{"hello"}})
			if err != nil {
				return "", call.Fail(err)
			}
			call.Complete()
			return acp.StopEndTurn, t.Say("It wrote: " + state.Output)
		},
	}
	agentSide, clientSide := acp.Pipe() // in place of acp.Command("some-agent")
	go agent.Serve(ctx, agentSide)
	conn, err := client.Connect(ctx, clientSide)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: root})
	if err != nil {
		log.Fatal(err)
	}
	text, _, err := session.Prompt(ctx, acp.Text("Greet me")).Text()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(text)
	// Output:
	// greeter runs /bin/echo
	// It wrote: hello
}
