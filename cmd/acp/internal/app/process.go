package app

import (
	"context"
	"fmt"
	"os"

	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/internal/process"
)

// Process returns how an agent is started by those who speak to it frame by frame. That there is no
// such program is an error with the exit status of an agent that cannot be used; so nothing has begun
// yet when that is told.
func (a *App) Process(ctx context.Context, agent roster.Agent) (c process.Config, err error) {
	if agent.Builtin {
		self, err := os.Executable()
		if err != nil {
			return c, fmt.Errorf("the built-in agent: %w", err)
		}
		return process.Config{Path: self, Args: []string{"agent"}, Dir: a.Cwd}, nil
	}
	t := agent.Transport(a.Cwd)
	c = process.Config{Path: t.Path, Args: t.Args, Dir: t.Dir, Env: t.Env}
	if agent.LoginEnv {
		env, err := process.LoginEnv(ctx)
		if err != nil && ctx.Err() != nil {
			return c, err
		}
		c.Env = append(env, t.Env...) // without a login shell env is that of this process
	}
	if _, err := roster.LookPath(c.Path, c.Dir, c.Env); err != nil {
		return c, backend.NoProgram(agent.Name, c.Path, err)
	}
	return c, nil
}
