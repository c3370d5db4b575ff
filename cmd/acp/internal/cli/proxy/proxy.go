// Package proxy is the command acp proxy: it serves a ready-made proxy to any conductor. The proxies are
// package proxies'; this package is their flags and exit statuses.
package proxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/proxies"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

const long = `Serve a ready-made proxy on standard input and output, for any conductor to start. A proxy
stands between a client and an agent, and sees everything they say to each other.

In acp itself, give the name of the proxy and its flags to --proxy of acp chat, exec, serve,
bridge and tap, to acp conductor, or to the setting agents.NAME.proxies: acp then runs it in
its own process.`

// NewCommand returns the command with one subcommand for each proxy.
func NewCommand(a *app.App) *cobra.Command {
	cmd := &cobra.Command{Use: "proxy", Short: "Serve a ready-made proxy to a conductor", Long: long,
		Example: `  acp conductor 'redact' 'budget --tokens 200000' -- my-agent --acp
  other-conductor agent "acp proxy redact" "my-agent --acp"`}
	for _, k := range proxies.Kinds() {
		cmd.AddCommand(newKind(a, k))
	}
	return cmd
}

func newKind(a *app.App, k proxies.Kind) *cobra.Command {
	cmd := &cobra.Command{
		Use: k.Name, Short: k.Short, Long: k.Long, Args: cobra.NoArgs,
		Example: "  acp chat my-agent --proxy " + roster.Quote(k.Example) + "\n  acp proxy " + k.Example,
	}
	check := k.Flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		to, err := a.Launch()
		if err != nil {
			return err
		}
		start, err := check(proxies.Env{Dir: to.Dir, Stderr: to.Stderr, Tool: to.Tool, Environ: to.Environ})
		if err != nil {
			return exitcode.With(exitcode.Usage, err)
		}
		r, err := start()
		if err != nil {
			return exitcode.With(exitcode.Usage, err)
		}
		if a.InTerminal {
			fmt.Fprintf(a.Err, "acp proxy: waiting for a conductor on standard input; to use the proxy, write acp chat --proxy %s\n", k.Name)
		}
		return errors.Join(serve(cmd.Context(), r.Proxy), r.Close())
	}
	return cmd
}

func serve(ctx context.Context, p *acp.Proxy) error {
	err := p.Serve(ctx, acp.Stdio())
	switch {
	case ctx.Err() != nil:
		return exitcode.With(exitcode.Cancelled, context.Cause(ctx))
	case err != nil:
		return exitcode.With(exitcode.Protocol, fmt.Errorf("serving the conductor: %w", err))
	}
	return nil
}
