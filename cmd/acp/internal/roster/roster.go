// Package roster knows agents: those the user has configured, those everybody
// knows, and which of them are installed.
package roster

import "github.com/goacp/acp"

// Builtin is the name of the built-in agent.
const Builtin = "builtin"

// An Agent is an agent that can be started.
type Agent struct {
	Name  string // as users type it
	Title string // for people
	// Source is where the agent is from: built in, preset, user, project,
	// command line.
	Source string
	// Builtin says that it runs inside this program; the rest is then empty.
	Builtin  bool
	Command  string
	Args     []string
	Env      map[string]string
	Dir      string
	Protocol int // the only version to speak, or 0
	LoginEnv bool
	Auth     string // the id of the way to log in that is used without asking
	Homepage string
	Install  string // how to install it, as a command or a sentence
}

// Transport returns the way to the agent, started in dir unless it says
// otherwise. It must not be asked of the built-in agent.
func (a Agent) Transport(dir string) *acp.CommandTransport {
	return &acp.CommandTransport{Path: a.Command, Args: a.Args, Dir: dir}
}
