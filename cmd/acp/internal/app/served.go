package app

import (
	"path/filepath"

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
	cfg, err := a.Config()
	if err != nil {
		return nil, err
	}
	o := builtin.Options{Dir: dir, Version: a.Version, Logger: a.Logger, Policy: policy, Keys: a.Keys(cfg)}
	if err := a.UseModel(&o); err != nil {
		return nil, err
	}
	return builtin.New(o)
}

// ServedDir returns the directory in which the built-in agent stores the sessions of such clients.
func (a *App) ServedDir() string { return builtin.DefaultDir() }

// DeleteBuiltIn deletes what the built-in agent itself has kept of a session, if that is anything.
func (a *App) DeleteBuiltIn(id acp.SessionID) error {
	return builtin.DeleteSession(builtin.DefaultDir(), id)
}

// ServedArgs returns the arguments that make this program an agent like the one of [App.Served], which stores its
// sessions in [App.ServedDir], in a process of its own. That process must run in Cwd.
func (a *App) ServedArgs() ([]string, error) {
	args := []string{"agent"}
	if a.ConfigFile != "" {
		file, err := filepath.Abs(a.ConfigFile)
		if err != nil {
			return nil, err
		}
		args = append(args, "--config", file)
	}
	for _, f := range []struct{ key, flag string }{
		{"model.use", "--model"}, {"model.effort", "--effort"}, {"permissions.policy", "--policy"},
		{"permissions.allow", "--allow"}, {"permissions.deny", "--deny"},
	} {
		switch v := a.Flags[f.key].(type) {
		case string:
			args = append(args, f.flag, v)
		case []string:
			for _, one := range v {
				args = append(args, f.flag, one)
			}
		}
	}
	return args, nil
}
