package cli

import (
	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/cli/completion"
	"github.com/goacp/acp/cmd/acp/internal/cli/version"
)

// addCommands adds all commands to root and returns the one that the bare program is.
func addCommands(root *cobra.Command, a *app.App) (chat *cobra.Command) {
	add := func(group string, cmds ...*cobra.Command) {
		for _, cmd := range cmds {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	add(groupSet, completion.NewCommand(a, nil), version.NewCommand(a, nil))
	return nil
}
