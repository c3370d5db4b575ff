// Package roster knows agents: those that the user has configured, well-known ones, and which of
// them are installed. It reads no files and starts nothing.
package roster

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remote"
)

// Builtin is the name of the built-in agent.
const Builtin = "builtin"

// The sources of agents.
const (
	SourceBuiltin = "built in"
	SourcePreset  = "preset"
	SourceUser    = "user"
	SourceProject = "project"
	SourceCommand = "command line"
)

// An Agent is an agent that can be reached. Its slices and maps must not be modified.
type Agent struct {
	Name  string // as users type it
	Title string // for people
	// Source is where the agent comes from: built in, preset, user, project, command line.
	Source string
	// Builtin says that it runs inside this program; the rest is empty then.
	Builtin bool
	// URL is where an agent that runs already is reached: see [CheckURL]. The fields about starting
	// it are empty then.
	URL string
	// Remote says how a URL is reached for which [remote.Is] is true.
	Remote remote.Options
	// Gateway says that a gateway is at URL, which keeps the conversations: they are not kept here as well.
	// Hosted is the name of the agent that new sessions get there; "" is the gateway's default.
	// ReadOnly says that nothing is sent to its sessions.
	Gateway  bool
	Hosted   string
	ReadOnly bool
	Command  string
	Args     []string
	Env      map[string]string // added to the environment; ${NAME} is replaced
	Dir      string            // working directory of the process, absolute; "" means that of the session
	Protocol int               // the only version to speak, or 0
	LoginEnv bool
	NoFiles  bool     // it is lent no files through the protocol
	Alone    []string // modes in which it decides itself what is permitted, and asks for nothing
	Auth     string   // the id of the way to log in that is used without asking
	Older    []string // the command that starts older versions, if it differs
	Homepage string
	Install  string // how to install it, as a command or a sentence
	// Proxies stand in front of it, the first one next to the client. Package launch composes them.
	Proxies []Proxy

	// environ is the environment of the program; nil is that of this process.
	environ []string
}

// Transport returns the way to an agent that is a command, started in dir unless the agent has a
// directory of its own.
func (a Agent) Transport(dir string) *acp.CommandTransport {
	if a.Dir != "" {
		dir = a.Dir
	}
	t := &acp.CommandTransport{Path: a.Command, Args: slices.Clone(a.Args), Dir: dir, LoginEnv: a.LoginEnv}
	switch {
	case a.LoginEnv:
		t.Env = a.addition() // it is added to what the shell sets
	case a.environ != nil || len(a.Env) > 0:
		t.Env = a.Environ()
	}
	return t
}

// Environ returns the environment with which the agent is started, in the form of [os.Environ],
// without what a login shell adds.
func (a Agent) Environ() []string {
	return a.Upon(a.base())
}

// Upon adds the agent's variables to an environment, such as that of a login shell.
func (a Agent) Upon(environ []string) []string {
	return append(slices.Clone(environ), a.addition()...)
}

func (a Agent) base() []string {
	if a.environ != nil {
		return a.environ
	}
	return os.Environ()
}

// addition returns Env in the form of [os.Environ], sorted, with ${NAME} replaced.
func (a Agent) addition() []string {
	var env []string
	for _, k := range slices.Sorted(maps.Keys(a.Env)) {
		env = append(env, k+"="+expand(a.Env[k], a.base()))
	}
	return env
}

// expand replaces ${NAME} by the value in an environment, or by nothing. Everything else stays,
// including what a value contains.
func expand(s string, environ []string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !ok || !closed || !isVariable(name) {
			if ok && closed {
				b.WriteString(before + "${")
				s = rest
				continue
			}
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(before + variable(environ, name))
		s = after
	}
}

func isVariable(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// variable returns the value of an environment variable; the last one counts.
func variable(environ []string, name string) string {
	value := ""
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		if k == name || runtime.GOOS == "windows" && strings.EqualFold(k, name) {
			value = v
		}
	}
	return value
}

// Argv returns the command and its arguments, or the URL; nil for the built-in agent.
func (a Agent) Argv() []string {
	switch {
	case a.Builtin:
		return nil
	case a.URL != "":
		return []string{a.URL}
	}
	return append([]string{a.Command}, a.Args...)
}

// Reference returns what users can type for the agent where one is expected: its name, or the path
// of its program if it is a command line of one word, which would be read as a name.
func (a Agent) Reference() string {
	if a.Source == SourceCommand && !IsCommandLine(a.Name) {
		if file, ok := Installed(a); ok {
			return file
		}
	}
	return a.Name
}

// CommandLine returns the command and its arguments as users would type them.
func (a Agent) CommandLine() string { return Join(a.Argv()) }

// A Roster is all agents that have a name. It does not change, and may be used by any goroutine.
type Roster struct {
	agents  []Agent
	proxies map[string]config.Proxy
	front   []Proxy // of every agent
	environ []string
	state   string // the directory
}

// New returns the agents of settings and presets. A configured agent replaces the preset of the
// same name; if it has no command, it is that preset with the configuration added. The proxies in
// front, which [Roster.Proxy] reads, come before every agent, in front of its own.
func New(cfg *config.Config, front ...string) *Roster {
	r := &Roster{environ: cfg.Environ, state: cfg.Dirs.State, proxies: cfg.Proxies}
	r.front = r.behind(front)
	byName := map[string]Agent{}
	for _, p := range presets {
		byName[p.name] = p.agent(cfg.Environ)
	}
	for name, c := range cfg.Agents {
		a, known := byName[name]
		if c.Command != "" || c.URL != "" || !known {
			a = Agent{Name: name, Title: name, URL: c.URL, Command: c.Command, Args: c.Args, environ: cfg.Environ}
			if known {
				a.Title, a.Alone = byName[name].Title, byName[name].Alone
			}
		} else if c.Args != nil {
			a.Args, a.Older, a.Protocol = c.Args, nil, 0
		}
		a.Source = SourceUser
		if cfg.FromProject("agents", name) {
			a.Source = SourceProject
		}
		a.Env = merged(a.Env, c.Env)
		a.NoFiles = a.NoFiles || c.NoFiles
		a.Protocol = cmp.Or(c.Protocol, a.Protocol)
		a.Dir, a.LoginEnv, a.Auth = c.Dir, c.LoginEnv, c.Auth
		a.Remote = r.remote(remote.Source{File: c.TokenFile, Env: c.TokenEnv, Keyring: c.TokenKeyring}, c.Insecure)
		a.Proxies = r.behind(c.Proxies)
		byName[name] = a
	}
	r.agents = []Agent{{Name: Builtin, Title: "Built-in agent", Source: SourceBuiltin, Builtin: true}}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		r.agents = append(r.agents, byName[name])
	}
	for i := range r.agents {
		r.agents[i].Proxies = r.before(r.agents[i].Proxies)
	}
	return r
}

// remote says how agents are reached whose token is in a place of the settings.
func (r *Roster) remote(token remote.Source, insecure bool) remote.Options {
	environ := r.base()
	token.Lookup = func(name string) (string, bool) {
		value := variable(environ, name)
		return value, value != ""
	}
	return remote.Options{Token: token, State: r.state, Insecure: insecure}
}

func merged(a, b map[string]string) map[string]string {
	if len(a) == 0 {
		return b
	}
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// All returns all agents: the built-in one, then the others by their names.
func (r *Roster) All() []Agent { return slices.Clone(r.agents) }

// Names returns the names of all agents.
func (r *Roster) Names() []string {
	names := make([]string, len(r.agents))
	for i, a := range r.agents {
		names[i] = a.Name
	}
	return names
}

// Find returns the agent that a text means: a name; a URL, see [IsURL]; or a command line, which has white space or a separator of paths in it, see [Split]. "" means the
// built-in agent. Errors have the exit status of wrong usage.
func (r *Roster) Find(name string) (Agent, error) {
	if name == "" {
		name = Builtin
	}
	for _, a := range r.agents {
		if a.Name != name {
			continue
		}
		switch {
		case a.URL != "" && a.Command != "":
			return Agent{}, exitcode.Errorf(exitcode.Usage, "agent %q has a command and a url: it can have one of them", name)
		case a.URL != "":
			if err := CheckURL(a.URL); err != nil {
				return Agent{}, exitcode.Errorf(exitcode.Usage, "agent %q: %w", name, err)
			}
		case a.Command == "" && !a.Builtin:
			return Agent{}, exitcode.Errorf(exitcode.Usage, "agent %q has no command: set agents.%s.command", name, name)
		}
		return a, a.ProxyErr()
	}
	if IsURL(name) {
		if err := CheckURL(name); err != nil {
			return Agent{}, exitcode.With(exitcode.Usage, err)
		}
		a := Agent{Name: name, Title: name, Source: SourceCommand, URL: name, Remote: r.remote(remote.Source{}, false), environ: r.environ, Proxies: r.before(nil)}
		return a, a.ProxyErr()
	}
	if IsCommandLine(name) {
		argv, err := Split(name)
		if err != nil {
			return Agent{}, exitcode.Errorf(exitcode.Usage, "agent %q: %w", name, err)
		}
		return r.Command(argv...)
	}
	hint := ""
	if near := config.Near(name, r.Names()); near != "" {
		hint = fmt.Sprintf("did you mean %q? ", near)
	}
	if file, err := LookPath(name, "", r.base()); hint == "" && err == nil {
		// A word is a name: what a project's file calls its agent must not start a program that
		// happens to have that name.
		return Agent{}, exitcode.Errorf(exitcode.Usage, "there is no agent %q, but a program: use %s, or name it: acp agents add %s -- %s", name, Quote(file), Quote(name), Quote(name))
	}
	return Agent{}, exitcode.Errorf(exitcode.Usage, "there is no agent %q: %ssee acp agents list, or give a command line", name, hint)
}

// base returns the environment of the agents.
func (r *Roster) base() []string {
	if r.environ != nil {
		return r.environ
	}
	return os.Environ()
}

// Command returns the agent that a command starts, or that is at a URL, as [Agent.Argv] returned it.
// The error has the exit status of wrong usage.
func (r *Roster) Command(argv ...string) (Agent, error) {
	if len(argv) == 1 && IsURL(argv[0]) {
		return r.Find(argv[0])
	}
	if len(argv) == 0 || argv[0] == "" {
		return Agent{}, exitcode.Errorf(exitcode.Usage, "the command line of the agent is empty")
	}
	a := Agent{
		Name: Join(argv), Title: Join(argv), Source: SourceCommand,
		Command: argv[0], Args: slices.Clone(argv[1:]), environ: r.environ, Proxies: r.before(nil),
	}
	return a, a.ProxyErr()
}

// Suggestions returns the names of agents that are installed, including the built-in one.
func (r *Roster) Suggestions() []string {
	var names []string
	for _, a := range r.agents {
		if _, ok := r.Installed(a); ok {
			names = append(names, a.Name)
		}
	}
	return names
}
