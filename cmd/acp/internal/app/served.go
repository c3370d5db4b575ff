package app

import (
	"github.com/goacp/acp"
	builtin "github.com/goacp/acp/cmd/acp/internal/agent"
)

// Served returns a built-in agent for clients that are not this program. dir is the directory in which
// it stores its sessions; "" means that it does not.
func (a *App) Served(dir string) (*acp.Agent, error) {
	policy, err := a.Policy()
	if err != nil {
		return nil, err
	}
	o := builtin.Options{Dir: dir, Version: a.Version, Logger: a.Logger, Policy: policy}
	if err := a.UseModel(&o); err != nil {
		return nil, err
	}
	return builtin.New(o)
}

// ServedDir returns the directory in which the built-in agent stores the sessions of such clients.
func (a *App) ServedDir() string { return builtin.DefaultDir() }
