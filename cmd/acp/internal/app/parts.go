package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/mcp"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// A builtIn is the built-in agent and how to end it.
type builtIn struct {
	agent *acp.Agent
	close func() error
}

// Config returns the settings in force. Errors have the exit status of wrong usage.
func (a *App) Config() (*config.Config, error) {
	return a.settings.get(context.Background(), func() (*config.Config, error) {
		return new(config.Config), nil
	})
}

func (a *App) find(_ *config.Config, name string) (roster.Agent, error) {
	if name == roster.Builtin {
		return roster.Agent{Name: name, Title: "built-in agent", Source: "built in", Builtin: true}, nil
	}
	return roster.Agent{Name: name, Source: "command line", Command: name}, nil
}

// Store opens the store, once; nil if the settings turn it off. A broken store is reported on Err.
// One that cannot be opened is reported there, too, and is as if it were turned off: a conversation
// is worth more than its record.
func (a *App) Store(ctx context.Context) (*store.Store, error) {
	return a.stored.get(ctx, func() (*store.Store, error) {
		cfg, err := a.Config()
		if err != nil || cfg.Store.Off {
			return nil, err
		}
		s, damage, err := store.Open(ctx, store.Options{Path: cfg.Store.Path, Normal: cfg.Store.Sync == "normal"})
		if err != nil {
			if !errors.Is(err, errors.ErrUnsupported) {
				fmt.Fprintf(a.Err, "acp: conversations are not kept: %v\n", err)
			}
			return nil, ctx.Err()
		}
		if damage != nil {
			fmt.Fprintf(a.Err, "acp: the store was broken (%s) and is now in %s; %d sessions were read from it\n",
				damage.Reason, damage.Aside, damage.Sessions)
		}
		return s, nil
	})
}

// Policy returns a policy made of the settings and flags.
func (a *App) Policy() (*acphost.Policy, error) {
	return a.policy.get(context.Background(), func() (*acphost.Policy, error) {
		return new(acphost.Policy), nil
	})
}

// MCP returns the MCP servers that sessions get.
func (a *App) MCP() ([]mcp.Server, error) {
	return a.servers.get(context.Background(), func() ([]mcp.Server, error) {
		if len(a.MCPFlags) > 0 {
			return nil, exitcode.Errorf(exitcode.Usage, "--mcp is not there yet")
		}
		return nil, nil
	})
}

// BuiltIn returns the built-in agent.
func (a *App) BuiltIn(ctx context.Context) (*acp.Agent, error) {
	b, err := a.builtin.get(ctx, func() (*builtIn, error) {
		return nil, errors.New("the built-in agent is not there yet")
	})
	if err != nil {
		return nil, err
	}
	return b.agent, nil
}
