package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/holder"
)

// newHold returns the hidden command that a gateway starts to keep the standard input and output of an
// agent while the gateway restarts. It starts itself again in a session of its own and exits, so that
// the process that stays is nobody's child. What it holds it reads from standard input.
func newHold() *cobra.Command {
	detached := false
	cmd := &cobra.Command{
		Use:    "hold",
		Short:  "Hold an agent for a gateway",
		Long:   "Hold the agent that standard input describes, while its gateway restarts. Gateways start\nthis command.",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if detached {
				return holder.Main(cmd.Context(), os.Stdin, os.Stdout)
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return holder.Detach([]string{self, "hold", "--detached"}, os.Stdin, os.Stdout)
		},
	}
	cmd.Flags().BoolVar(&detached, "detached", false, "hold the agent in this process")
	_ = cmd.Flags().MarkHidden("detached")
	return cmd
}
