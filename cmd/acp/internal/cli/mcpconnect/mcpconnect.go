// Package mcpconnect is the hidden command that agents start to reach an MCP server they cannot
// reach by themselves.
package mcpconnect

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/mcp"
)

// Options are those of the command: there are none. What to connect to is in the environment, where
// other users of the machine do not see it.
type Options struct{}

// NewCommand returns the command. runF, unless it is nil, is run in its place.
func NewCommand(_ *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	if runF == nil {
		runF = func(ctx context.Context, _ *Options) error { return mcp.ConnectStdio(ctx) }
	}
	return &cobra.Command{
		Use:    "mcp-connect",
		Short:  "Connect standard input and output to an MCP server",
		Long:   "Connect standard input and output to the HTTP or SSE server that the variables\n" + mcp.EnvURL + ", " + mcp.EnvType + " and " + mcp.EnvHeaders + " name. Agents start this command.",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE:   func(cmd *cobra.Command, _ []string) error { return runF(cmd.Context(), &Options{}) },
	}
}
