package cli

import (
	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	agentcmd "github.com/goacp/acp/cmd/acp/internal/cli/agent"
	chatcmd "github.com/goacp/acp/cmd/acp/internal/cli/chat"
	"github.com/goacp/acp/cmd/acp/internal/cli/completion"
	"github.com/goacp/acp/cmd/acp/internal/cli/exec"
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
	chat = chatcmd.NewCommand(a, nil)
	add(groupTalk, chat, exec.NewCommand(a, nil))
	add(groupWire, agentcmd.NewCommand(a, nil))
	add(groupSet, completion.NewCommand(a, nil), version.NewCommand(a, nil))
	return chat
}
