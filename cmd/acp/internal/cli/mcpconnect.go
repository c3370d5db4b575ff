package cli

import (
	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/mcp"
)

// newMCPConnect returns the hidden command that agents start to reach an MCP server that they cannot
// reach by themselves. The server is named in the environment, where other users of the machine do not
// see it.
func newMCPConnect() *cobra.Command {
	return &cobra.Command{
		Use:    "mcp-connect",
		Short:  "Connect standard input and output to an MCP server",
		Long:   "Connect standard input and output to the HTTP or SSE server that the variables\n" + mcp.EnvURL + ", " + mcp.EnvType + " and " + mcp.EnvHeaders + " name. Agents start this command.",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return mcp.ConnectStdio(cmd.Context()) },
	}
}
