// Package app has what the commands share: the streams, the settings, the rules, the records, and
// the way to an agent. Each is made when a command asks for it the first time.
package app

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remembered"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// An App is the program as its commands see it. Fields are set before a command runs; after that
// its methods may be called from any goroutine. It reads the settings and opens the store when a
// command asks for them, so that a command which needs neither starts at once and works even if
// they are broken. Close it.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	// InTerminal, OutTerminal and ErrTerminal report whether the streams are a terminal.
	InTerminal, OutTerminal, ErrTerminal bool
	Version                              string
	Logger                               *slog.Logger

	// Flags are the settings that were given as flags, by their keys in files: see
	// [config.Settings].
	Flags map[string]any
	// ConfigFile, if not "", is read instead of the user's file.
	ConfigFile string
	// State, if not "", is the directory for state instead of the user's.
	State string
	// Environ is the environment from which settings are read; nil means that of this process.
	Environ []string
	// Cwd is the working directory of sessions, absolute.
	Cwd string
	// By is the command that holds conversations, if it is not a person: see [store.Session].
	By string
	// Returns has connections to gateways outlive a failure: see [backend.Config].
	Returns bool
	// Roots are further directories of sessions, absolute.
	Roots []string
	// MCPFlags and MCPHeaders are the values of --mcp and --mcp-header.
	MCPFlags, MCPHeaders []string
	// Proxies stand in front of every agent that is used: see [roster.Roster.Proxy].
	Proxies []string
	// SessionCost is what a session may cost in all, in the currency of the model's price, as far as the built-in agent
	// can see to that; 0 is no limit.
	SessionCost float64
	// Interrupts makes interrupts of the process (Ctrl-C) call a function instead of cancelling
	// what runs, until restore is called. Nil if the program is not interrupted.
	Interrupts func(func()) (restore func())
	// Farewell registers a function that is called when the second interrupt ends the process at
	// once, until forget is called. Nil if the program is not interrupted.
	Farewell func(func()) (forget func())

	choices choices

	settings once[*config.Config]
	stored   once[*store.Store]
	policy   once[*acphost.Policy]
	servers  once[collected]
	builtin  once[*acp.Agent]
	other    bool // builtin is another agent
}

// A once is a value that is made when it is needed for the first time, or the error of making it.
type once[T any] struct {
	mu    sync.Mutex
	made  bool
	value T
	err   error
}

// get returns the value, and calls make if there is none yet. It does not keep a failure of ctx.
func (o *once[T]) get(ctx context.Context, make func() (T, error)) (T, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.made {
		o.value, o.err = make()
		o.made = o.err == nil || ctx.Err() == nil
	}
	return o.value, o.err
}

// drop returns the value, if it was made, and forgets it.
func (o *once[T]) drop() (value T, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	value, ok = o.value, o.made && o.err == nil
	var zero T
	o.value, o.made, o.err = zero, false, nil
	return value, ok
}

// memoryFile is the name of the file in the state directory with what was learned about agents.
const memoryFile = "agents.json"

// Open connects to an agent as the settings say.
func (a *App) Open(ctx context.Context, agent roster.Agent, front backend.Frontend) (*backend.Host, error) {
	cfg, err := a.Config()
	if err != nil {
		return nil, err
	}
	// Errors in the settings are found before the agent is started.
	policy, err := a.Policy()
	if err != nil {
		return nil, err
	}
	servers, err := a.MCP()
	if err != nil {
		return nil, err
	}
	var kept *store.Store
	if !agent.Gateway && !a.isOwn(ctx, agent) { // which keep them themselves
		if kept, err = a.Store(ctx); err != nil {
			return nil, err
		}
	}
	hc := backend.Config{
		Agent: agent,
		Info:  acp.Implementation{Name: "acp", Title: "acp", Version: a.Version},
		Cwd:   a.Cwd, Roots: a.Roots,
		MCP: servers, Policy: policy, Store: kept, By: a.By, Front: logged(front, a.logger(), agent.Name),
		Returns: a.Returns, Connect: cfg.Timeouts.Connect, Slow: cfg.Timeouts.Slow,
		Logger: a.logger(), Environ: a.Keys(cfg).Environ(), Choices: a.choicesFor(agent),
	}
	hc.Memory = Memory(cfg)
	if agent.Builtin {
		hc.Obeys = !a.other
		if hc.BuiltIn, err = a.BuiltIn(ctx); err != nil {
			return nil, err
		}
	}
	h, err := backend.Open(ctx, hc)
	return h, atHint(agent, err)
}

// Memory returns what was learned about agents, or nil if there is no directory for it.
func Memory(cfg *config.Config) *remembered.Memory {
	if cfg.Dirs.State == "" {
		return nil
	}
	return remembered.New(filepath.Join(cfg.Dirs.State, memoryFile))
}

// HandleInterrupt makes interrupts of the process call f until restore is called. f must not block.
func (a *App) HandleInterrupt(f func()) (restore func()) {
	if a.Interrupts == nil {
		return func() {}
	}
	return a.Interrupts(f)
}

// BeforeExit has f called when a second interrupt ends the process at once, until forget is called.
// Deferred functions do not run then. f may be called while they run, and has about a second.
func (a *App) BeforeExit(f func()) (forget func()) {
	if a.Farewell == nil {
		return func() {}
	}
	return a.Farewell(f)
}

// Close closes what was opened. The App can be used again.
func (a *App) Close() error {
	a.builtin.drop()
	if s, ok := a.stored.drop(); ok && s != nil {
		return s.Close()
	}
	return nil
}

func (a *App) logger() *slog.Logger {
	if a.Logger != nil {
		return a.Logger
	}
	return slog.New(slog.DiscardHandler)
}

// usage gives err the exit status of wrong usage, unless it has a status.
func usage(err error) error {
	if exitcode.Of(err) != exitcode.Failed {
		return err
	}
	return exitcode.With(exitcode.Usage, err)
}
