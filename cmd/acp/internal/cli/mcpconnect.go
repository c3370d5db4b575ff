package cli

import (
	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/mcp"
)

// newMCPConnect returns the hidden command that agents start as a stdio MCP server when they cannot
// reach an HTTP or SSE server themselves. The server's address and headers are in the environment,
// because other users of the machine can read command lines.
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
