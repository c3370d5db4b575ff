package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	builtin "github.com/goacp/acp/cmd/acp/internal/agent"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/mcp"
	"github.com/goacp/acp/cmd/acp/internal/model/catalog"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/withheld"
)

// storeDir is the name of the store in the data directory.
const storeDir = "conversations"

// maxMCPFile bounds a .mcp.json, in bytes.
const maxMCPFile = 1 << 20

// Config returns the settings in force. Errors have the exit status of wrong usage.
func (a *App) Config() (*config.Config, error) {
	return a.settings.get(context.Background(), func() (*config.Config, error) {
		// Without a home directory settings are read all the same, so nothing here may depend on
		// it.
		home, _ := os.UserHomeDir()
		cfg, err := config.Load(config.Options{
			Cwd: a.Cwd, Home: home, Environ: a.Environ, Flags: a.Flags, File: a.ConfigFile,
		})
		if err == nil && a.State != "" {
			cfg.Dirs.State, err = a.stateDir()
		}
		return cfg, usage(err)
	})
}

// Roster returns the agents that have a name.
func (a *App) Roster() (*roster.Roster, error) {
	cfg, err := a.Config()
	if err != nil {
		return nil, err
	}
	return roster.New(cfg, a.Proxies...), nil
}

// Agent returns an agent by its name or command line; "" means the one that the settings name.
// Errors have the exit status of wrong usage.
func (a *App) Agent(name string) (roster.Agent, error) {
	agent, err := a.Hosted(name)
	if err == nil {
		err = a.ownModel(agent)
	}
	return agent, usage(err)
}

// Hosted is [App.Agent] for a server that has several agents: flags that choose a model are for the built-in one, and
// do not keep it from starting the others.
func (a *App) Hosted(name string) (roster.Agent, error) {
	cfg, err := a.Config()
	if err != nil {
		return roster.Agent{}, err
	}
	from := ""
	if name == "" {
		name = cfg.Agent
		if v, err := cfg.Get("agent"); err == nil && len(v) == 1 && a.Flags["agent"] == nil {
			from = fmt.Sprintf("%s: agent: ", v[0].Origin)
		}
	}
	agent, err := roster.New(cfg, a.Proxies...).Find(name)
	if err != nil && agent.ProxyErr() != nil {
		return agent, usage(noProxy(cfg, err))
	}
	if err != nil && from == "" {
		for _, left := range cfg.Untrusted() {
			if strings.Contains(left, config.KeyOf("agents", name)) {
				// It explains why there is no such agent, where names that are alike do not.
				err = exitcode.Errorf(exitcode.Usage, "%s; until then there is no agent %q", left, name)
			}
		}
	}
	if err != nil && from != "" {
		// The name comes from the settings, not from the command line.
		err = fmt.Errorf("%s%w", from, err)
		if left := cfg.Untrusted(); cfg.FromProject("agent") && len(left) > 0 { // which explains it
			err = fmt.Errorf("%s; so %w", strings.Join(left, "; "), err)
		}
	}
	return agent, usage(err)
}

// KnownAgent returns the agent with exactly that name; ok reports whether there is one. A command
// line is not a name.
func (a *App) KnownAgent(name string) (agent roster.Agent, ok bool, err error) {
	all, err := a.Roster()
	if err != nil {
		return roster.Agent{}, false, err
	}
	for _, agent := range all.All() {
		if agent.Name == name {
			return agent, true, nil
		}
	}
	return roster.Agent{}, false, nil
}

// AgentFor returns the agent that argv starts or, if argv is empty, the one that [App.Agent] finds
// by its name.
func (a *App) AgentFor(name string, argv []string) (roster.Agent, error) {
	if len(argv) > 0 {
		return a.CommandAgent(argv)
	}
	return a.Agent(name)
}

// CommandAgent returns the agent that a command and its arguments start.
func (a *App) CommandAgent(argv []string) (roster.Agent, error) {
	all, err := a.Roster()
	if err != nil {
		return roster.Agent{}, err
	}
	agent, err := all.Command(argv...)
	if agent.ProxyErr() != nil {
		cfg, _ := a.Config() // it was read
		return agent, usage(noProxy(cfg, err))
	}
	if err == nil {
		err = a.ownModel(agent)
	}
	return agent, usage(err)
}

// noProxy adds what the user has not trusted to the error about a proxy that does not exist.
func noProxy(cfg *config.Config, err error) error {
	for _, left := range cfg.Untrusted() {
		if strings.Contains(left, "proxies.") {
			return exitcode.Errorf(exitcode.Usage, "%s; so %w", left, err)
		}
	}
	return err
}

// ProxyFlag adds the flag --proxy of commands that use an agent.
func (a *App) ProxyFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&a.Proxies, "proxy", nil, "put `PROXY` in front of the agent: a name in the settings, a ready-made one with its flags, or a command line (repeatable; the first is next to the client)")
}

// ownModel refuses the flags that choose a model for an agent that does not follow them.
func (a *App) ownModel(agent roster.Agent) error {
	for _, flag := range []string{"model", "effort"} {
		given := a.Flags[map[string]string{"model": "model.use", "effort": "model.effort"}[flag]] != nil
		if given && !agent.Builtin && (flag != "model" || a.chosenModel() == "") {
			return fmt.Errorf("--%s is for the built-in agent; the model of %s is one of its own options", flag, agent.Name)
		}
	}
	return nil
}

// StorePath returns the directory of the store, or "" if neither the settings nor a home directory say where it is.
func (a *App) StorePath() (dir string, err error) {
	cfg, err := a.Config()
	switch {
	case err != nil:
		return "", err
	case cfg.Store.Path != "":
		return cfg.Store.Path, nil
	case cfg.Dirs.Data != "":
		return filepath.Join(cfg.Dirs.Data, storeDir), nil
	}
	return "", nil
}

// Journals returns the directory in which a gateway keeps its sessions: that of the conversations, so that there is one
// list. It is "", which means a directory in that for state, if somebody has moved the state of a server alone, as
// services and containers do: then everything of the server is to be there.
func (a *App) Journals() (dir string, err error) {
	cfg, err := a.Config()
	if err != nil || a.State != "" {
		return "", err
	}
	env := lookup(cfg.Environ)
	state, _ := env("XDG_STATE_HOME")
	data, _ := env("XDG_DATA_HOME")
	if state != "" && data == "" && cfg.Store.Path == "" {
		home, err := os.UserHomeDir()
		if err != nil || filepath.Clean(state) != filepath.Join(home, ".local", "state") {
			return "", nil
		}
	}
	return a.StorePath()
}

// Store opens the store, once; nil means that the settings turn it off. It reports on Err that the store cannot be
// opened, which then counts as turned off: a conversation is worth more than its record.
func (a *App) Store(ctx context.Context) (*store.Store, error) {
	return a.stored.get(ctx, func() (*store.Store, error) {
		cfg, err := a.Config()
		if err != nil || cfg.Store.Off {
			return nil, err
		}
		dir, err := a.StorePath()
		if err != nil {
			return nil, err
		}
		if dir == "" {
			a.warn("conversations are not kept: there is no home directory; --no-store or the setting store.path end this message")
			return nil, nil
		}
		s, err := store.Open(ctx, store.Options{Path: dir, Normal: cfg.Store.Sync == "normal", Logger: a.logger(), User: identity.CurrentUser(), Who: fmt.Sprintf("acp %s (process %d)", cmp.Or(a.By, "chat"), os.Getpid())})
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			a.warn("conversations are not kept: " + err.Error())
			return nil, nil
		}
		return s, nil
	})
}

// warn writes a line to Err.
func (a *App) warn(text string) { fmt.Fprintln(a.Err, "acp: "+safetext.Line(text, 2000)) }

// Policy returns a policy made of the settings and flags.
func (a *App) Policy() (*acphost.Policy, error) {
	return a.policy.get(context.Background(), func() (*acphost.Policy, error) {
		cfg, err := a.Config()
		if err != nil {
			return nil, err
		}
		rules := config.ReadRules(cfg.Permissions, a.Cwd)
		p, err := rules.Policy()
		if err != nil {
			return nil, usage(err)
		}
		for _, w := range rules.Warnings() {
			a.warn(w)
		}
		if cfg.Timeouts.Ask > 0 {
			p.AskTimeout = cfg.Timeouts.Ask
		}
		return p, nil
	})
}

// collected are the MCP servers of sessions.
type collected struct {
	servers []mcp.Server
	left    []mcp.Left
}

// MCP returns the MCP servers of sessions: those of .mcp.json, the settings and the flags.
func (a *App) MCP() ([]mcp.Server, error) {
	all, err := a.collect()
	return all.servers, err
}

func (a *App) collect() (collected, error) {
	return a.servers.get(context.Background(), func() (c collected, err error) {
		cfg, err := a.Config()
		if err != nil {
			return c, err
		}
		file, data, _, err := a.mcpFile(cfg)
		if err != nil {
			return c, usage(err)
		}
		c.servers, c.left, err = mcp.Collect(mcp.Sources{
			File: file, Data: data, Settings: cfg.MCP, Flags: a.MCPFlags, Headers: a.MCPHeaders, Lookup: lookup(cfg.Environ),
		})
		return c, usage(err)
	})
}

// ShownMCP returns the servers of the project's .mcp.json and of the flags as they are written
// there, and the name of the file, or "" if there is none or the user does not trust it. It leaves
// out servers that something more important turns off or defines as well; the settings still have
// those that flags define. The result is for people to read: see [mcp.ParseFile].
func (a *App) ShownMCP() (file string, servers []mcp.Server, err error) {
	cfg, err := a.Config()
	if err != nil {
		return "", nil, err
	}
	flags, err := mcp.ParseFlags(a.MCPFlags, a.MCPHeaders, nil)
	if err != nil {
		return "", nil, usage(err)
	}
	file, data, _, err := a.mcpFile(cfg)
	if err != nil {
		return "", nil, usage(err)
	}
	if file != "" {
		if servers, _, err = mcp.ParseFile(file, data, nil); err != nil {
			return "", nil, usage(err)
		}
		servers = slices.DeleteFunc(servers, func(s mcp.Server) bool { _, named := cfg.MCP[s.Name]; return named })
	}
	return file, mcp.Merge(servers, flags), nil
}

// mcpFile returns the name and the contents of the project's .mcp.json, if the user trusts it; left
// reports that it was left out because the user does not.
func (a *App) mcpFile(cfg *config.Config) (file string, data []byte, left string, err error) {
	env := lookup(cfg.Environ)
	home, ok := env("HOME")
	if !ok {
		home, _ = os.UserHomeDir()
	}
	if file = config.FindUp(a.Cwd, home, config.MCPFile); file == "" {
		return "", nil, "", nil
	}
	if data, err = readRegular(file); err != nil {
		return "", nil, "", err
	}
	trusts, err := cfg.Trusts(file, data)
	if err != nil {
		return "", nil, "", err
	}
	if !trusts {
		is := "is not trusted"
		if cfg.Changed(file) {
			is = "has changed since you trusted it"
		}
		return "", nil, fmt.Sprintf("%s %s, its MCP servers are left out until you read it and run: acp config trust %s",
			file, is, roster.Quote(filepath.Dir(file))), nil
	}
	return file, data, "", nil
}

// readRegular reads a regular file: a project that was cloned may have a pipe there, which never
// ends.
func readRegular(file string) ([]byte, error) {
	switch info, err := os.Stat(file); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxMCPFile+1))
	if err == nil && len(data) > maxMCPFile {
		err = fmt.Errorf("%s: longer than %d kB", file, maxMCPFile>>10)
	}
	return data, err
}

// LeftOut returns what of the project's files is left out, in lines for people, which frontends show: what Untrusted returns, and
// what LeftServers does.
func (a *App) LeftOut() []string { return append(a.Untrusted(), a.LeftServers()...) }

// LeftServers returns which MCP servers of the project's file need a variable that is not set: one line for each.
func (a *App) LeftServers() (all []string) {
	c, err := a.collect()
	if err != nil { // then no session is opened
		return nil
	}
	for _, l := range c.left {
		all = append(all, l.Why)
	}
	return all
}

// Untrusted returns what the project's files would set, but is left out because the user does not
// trust them: one line for each file.
func (a *App) Untrusted() []string {
	cfg, err := a.Config()
	if err != nil {
		return nil
	}
	all := cfg.Untrusted()
	if _, _, left, err := a.mcpFile(cfg); err == nil && left != "" {
		all = append(all, left)
	}
	return all
}

// lookup finds variables in an environment; the last one of a name counts.
func lookup(environ []string) func(string) (string, bool) {
	if environ == nil {
		return os.LookupEnv
	}
	return func(name string) (string, bool) {
		for i := len(environ) - 1; i >= 0; i-- {
			if k, v, ok := strings.Cut(environ[i], "="); ok && k == name {
				return v, true
			}
		}
		return "", false
	}
}

// BuiltIn returns the built-in agent. It keeps its sessions unless the store is turned off.
func (a *App) BuiltIn(ctx context.Context) (*acp.Agent, error) {
	return a.builtin.get(ctx, func() (*acp.Agent, error) {
		cfg, err := a.Config()
		if err != nil {
			return nil, err
		}
		policy, err := a.Policy()
		if err != nil {
			return nil, err
		}
		// Its client is this program, which applies the same policy and informs the user.
		o := builtin.Options{Version: a.Version, Logger: a.Logger, Policy: policy, Told: true, Keys: a.Keys(cfg)}
		if !cfg.Store.Off {
			o.Dir = builtin.DefaultDir()
		}
		if err := a.UseModel(&o); err != nil {
			return nil, err
		}
		return builtin.New(o)
	})
}

// Keys returns the keys in the environment, which no command gets: those of providers, and this program's own.
func (a *App) Keys(cfg *config.Config) *withheld.Keys {
	environ := a.Environ
	if environ == nil {
		environ = os.Environ()
	}
	var named []string
	for _, p := range catalog.Providers() {
		named = append(named, p.Keys...)
	}
	for _, p := range cfg.Providers {
		named = append(named, withheld.Variables(p.Key)...)
	}
	for _, agent := range cfg.Agents {
		named = append(named, agent.TokenEnv)
	}
	return withheld.Of(environ, named, cfg.Model.PassEnv)
}

// Launch returns how agents with proxies are started for this program, in its directory.
func (a *App) Launch() (launch.Options, error) {
	cfg, err := a.Config()
	if err != nil {
		return launch.Options{}, err
	}
	return launch.Options{Dir: a.Cwd, Stderr: a.Err, Tool: "acp " + a.Version, Environ: a.Keys(cfg).Environ()}, nil
}

// LaunchFor is [App.Launch] for an agent that a command serves: it has the built-in agent if that is it, and fails
// if the agent's program is missing. That is reported at once, not only when a client has connected.
func (a *App) LaunchFor(ctx context.Context, agent roster.Agent) (to launch.Options, err error) {
	if to, err = a.Launch(); err != nil {
		return to, err
	}
	if agent.Builtin {
		if to.BuiltIn, err = a.BuiltIn(ctx); err != nil {
			return to, err
		}
	}
	if agent.Command == "" || agent.LoginEnv {
		return to, nil
	}
	if _, err := roster.LookPath(agent.Command, a.Cwd, agent.Environ()); err != nil {
		return to, launch.NoProgram(agent.Name, agent.Command, err)
	}
	return to, nil
}

// UseModel sets the language model that the settings name, if they do, and its limits.
func (a *App) UseModel(o *builtin.Options) error {
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	set := cfg.Model
	if set.MaxCost != "" {
		cost, err := strconv.ParseFloat(set.MaxCost, 64)
		if err != nil || !(cost > 0 && cost < 1e6) {
			return exitcode.Errorf(exitcode.Usage, "model.max_cost: %q is not an amount such as 2.50", set.MaxCost)
		}
		o.Limits.Cost = cost
	}
	if set.MaxRequests < 0 {
		return exitcode.Errorf(exitcode.Usage, "model.max_requests: %d is negative", set.MaxRequests)
	}
	o.Limits.Requests, o.Session = set.MaxRequests, a.SessionCost
	models, err := a.Models()
	if err != nil {
		return err
	}
	if set.Use == "none" {
		return nil
	}
	o.Models = models
	env := lookup(cfg.Environ)
	for _, name := range []string{"USERPROFILE", "HOME"} { // the first is for Windows
		if home, _ := env(name); home != "" {
			o.Home.Dir = home
		}
	}
	o.Home.Config = cfg.Dirs.Config
	if set.Use == "" {
		return nil
	}
	m, err := models.Open(set.Use)
	if err != nil {
		return exitcode.Errorf(exitcode.Usage, "model %s: %w", set.Use, err)
	}
	info := m.Info()
	switch {
	case set.Effort != "" && !slices.Contains(info.Efforts, set.Effort):
		if len(info.Efforts) == 0 {
			return exitcode.Errorf(exitcode.Usage, "model.effort: how much %s thinks cannot be set", set.Use)
		}
		return exitcode.Errorf(exitcode.Usage, "model.effort: %q is none of %s", set.Effort, strings.Join(info.Efforts, ", "))
	case o.Limits.Cost > 0 && info.Price.Currency == "":
		return exitcode.Errorf(exitcode.Usage, "model.max_cost: the price of %s is not known, so the limit could not be kept", set.Use)
	}
	return nil
}

// Models returns the language models of the built-in agent.
func (a *App) Models() (*catalog.Models, error) {
	cfg, err := a.Config()
	if err != nil {
		return nil, err
	}
	env := lookup(cfg.Environ)
	own := map[string]catalog.Own{}
	for name, p := range cfg.Providers {
		own[name] = catalog.Own{
			API: catalog.API(p.API), URL: p.URL, Key: p.Key, KeyCommand: p.KeyCommand, Keyring: p.Keyring,
			Dialect: p.Dialect, Context: p.Context, Models: p.Models,
		}
	}
	models, err := catalog.New(catalog.Settings{
		Use: cfg.Model.Use, Effort: cfg.Model.Effort, Record: cfg.Model.Record, Own: own, Catalog: filepath.Join(cfg.Dirs.Data, "models.json"),
		Env: func(name string) string { v, _ := env(name); return v },
	})
	if err != nil {
		return nil, exitcode.With(exitcode.Usage, err)
	}
	return models, nil
}

// UseBuiltIn replaces the built-in agent, for tests. The program does not assume that the other one
// obeys rules.
func (a *App) UseBuiltIn(agent *acp.Agent) {
	a.other = true
	_, _ = a.builtin.get(context.Background(), func() (*acp.Agent, error) { return agent, nil })
}
