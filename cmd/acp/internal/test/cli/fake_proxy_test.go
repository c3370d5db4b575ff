package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/goacp/acp"
)

// fakeProxy is the program fake-agent as a proxy. how is a text to put in front of prompts, or what goes
// wrong.
func fakeProxy(how string) int {
	p := &acp.Proxy{Prompt: func(ctx context.Context, p *acp.ProxyPrompt, next func(context.Context) error) error {
		switch how {
		case "crash":
			fmt.Fprintln(os.Stderr, "panic: the proxy is broken")
			os.Exit(5)
		case "pids":
			if err := os.WriteFile("proxy.pid", fmt.Append(nil, os.Getpid()), 0o600); err != nil {
				return err
			}
			return next(ctx)
		}
		if text, ok := p.Blocks[0].(*acp.TextContent); ok {
			text.Text = how + text.Text
		}
		return next(ctx)
	}}
	if how == "dies" {
		p.Initialize = func(context.Context, *acp.ProxyInit) error {
			os.Exit(5)
			return nil
		}
	}
	if err := p.Serve(context.Background(), acp.Stdio()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
