package launch

import (
	"context"
	"fmt"
	"os"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/internal/process"
)

// Process returns the process of an agent, for callers that exchange frames with it. dir is the
// working directory of the session. The built-in agent becomes a process of this program, and so does
// the conductor of an agent with proxies, which starts the agent. If the program of an agent or of a
// proxy does not exist, Process fails before anything is started, with the exit status of an agent that
// cannot be used.
func Process(ctx context.Context, agent roster.Agent, dir string) (c process.Config, err error) {
	c, err = direct(ctx, agent, dir)
	if err != nil || len(agent.Proxies) == 0 {
		return c, err
	}
	if c.Args, err = Conducted(agent, c.Dir, append([]string{c.Path}, c.Args...)...); err != nil {
		return c, err
	}
	c.Path, err = os.Executable()
	return c, err
}

// direct is [Process] without the proxies.
func direct(ctx context.Context, agent roster.Agent, dir string) (c process.Config, err error) {
	if agent.Builtin {
		self, err := os.Executable()
		if err != nil {
			return c, fmt.Errorf("the built-in agent: %w", err)
		}
		return process.Config{Path: self, Args: []string{"agent"}, Dir: dir}, nil
	}
	if agent.URL != "" {
		return c, exitcode.Errorf(exitcode.Usage, "%s is reached at %s: this command starts agents itself and needs a command line", agent.Name, agent.URL)
	}
	t := agent.Transport(dir)
	c = process.Config{Path: t.Path, Args: t.Args, Dir: t.Dir, Env: t.Env}
	if agent.LoginEnv {
		env, err := process.LoginEnv(ctx)
		if err != nil && ctx.Err() != nil {
			return c, err
		}
		c.Env = append(env, t.Env...) // without a login shell env is that of this process
	}
	if _, err := roster.LookPath(c.Path, c.Dir, c.Env); err != nil {
		return c, NoProgram(agent.Name, c.Path, err)
	}
	return c, nil
}
