package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/holder"
)

// newHold returns the hidden command that a gateway starts to keep the standard input and output of an
// agent while the gateway restarts. What it holds it reads from standard input.
func newHold() *cobra.Command {
	return &cobra.Command{
		Use:    "hold",
		Short:  "Hold an agent for a gateway",
		Long:   "Hold the agent that standard input describes, while its gateway restarts. Gateways start\nthis command.",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return hold(cmd.Context()) },
	}
}

// isHold reports whether gateways have started the program, for each agent: then the tree of commands, and what it needs, are
// not made.
func isHold(args []string) bool { return len(args) == 1 && args[0] == "hold" }

func hold(ctx context.Context) error { return holder.Main(ctx, os.Stdin, os.Stdout) }
