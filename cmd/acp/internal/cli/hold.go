package cli

import (
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			return holder.Main(cmd.Context(), os.Stdin, os.Stdout)
		},
	}
}
