package cli

import (
	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/isolate"
)

// newIsolate returns the hidden command that opens the directories of a session and becomes bubblewrap, which gets
// their descriptors. A gateway gives commands to holders, and a descriptor cannot be in one.
func newIsolate() *cobra.Command {
	return &cobra.Command{
		Use:                isolate.Name + " BWRAP [ARG]...",
		Short:              "Become bubblewrap with descriptors of directories",
		Long:               "Become bubblewrap, with descriptors for the directories after --bind-fd. Gateways start\nthis command.",
		Hidden:             true,
		DisableFlagParsing: true, // they are bubblewrap's
		RunE:               func(_ *cobra.Command, args []string) error { return isolate.Exec(args) },
	}
}
