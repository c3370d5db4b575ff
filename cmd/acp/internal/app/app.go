// Package app is what the commands share: the streams, the settings, and the way to an agent.
package app

import (
	"context"
	"io"
	"log/slog"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/host"
	"github.com/goacp/acp/cmd/acp/internal/mcp"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// An App is the program as its commands see it. Its methods may be called from any goroutine.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	// InTerminal, OutTerminal and ErrTerminal say whether the streams are a terminal.
	InTerminal, OutTerminal, ErrTerminal bool
	Version                              string
	Logger                               *slog.Logger

	// Flags are the settings that were given as flags, by their keys in files: see [config.Settings].
	Flags map[string]any
	// Cwd is the working directory of sessions, absolute.
	Cwd string
	// Roots are further directories of sessions, absolute.
	Roots []string
	// MCPFlags and PolicyFlags are the values of --mcp, and of --allow and --deny.
	MCPFlags []string
}

// Config returns the settings in force. Errors have the exit status of wrong usage.
func (a *App) Config() (*config.Config, error) { panic("todo: lead") }

// Agent returns an agent by its name or command line; "" is the one the settings say. Errors have
// the exit status of wrong usage.
func (a *App) Agent(name string) (roster.Agent, error) { panic("todo: lead") }

// Store opens the store, once; nil if the settings turn it off. A broken store is reported on Err.
func (a *App) Store(ctx context.Context) (*store.Store, error) { panic("todo: lead") }

// Policy returns a policy made of the settings and flags.
func (a *App) Policy() (*acphost.Policy, error) { panic("todo: lead") }

// MCP returns the MCP servers that sessions get.
func (a *App) MCP() ([]mcp.Server, error) { panic("todo: lead") }

// Open connects to an agent with everything the settings say.
func (a *App) Open(ctx context.Context, agent roster.Agent, front host.Frontend) (*host.Host, error) {
	panic("todo: lead")
}

// BuiltIn returns the built-in agent.
func (a *App) BuiltIn(ctx context.Context) (*acp.Agent, error) { panic("todo: lead") }

// Close closes what was opened.
func (a *App) Close() error { return nil }
