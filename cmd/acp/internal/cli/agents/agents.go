// Package agents is the command acp agents: it lists the agents that acp knows, adds them to the
// user's file and removes them, and examines them (acp agents doctor). Which agents there are is
// package roster's business.
//
// Doctor starts one agent at a time and leaves nothing running. Opening a session may take 30
// seconds; of standard error, the last 16 KiB are kept; of the lines on standard output that are
// not messages, the first 8.
package agents

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// Verbs of the command.
const (
	verbList   = "list"
	verbAdd    = "add"
	verbRemove = "remove"
	verbDoctor = "doctor"
)

// Options are the flags and arguments of the command.
type Options struct {
	App       *app.App
	Verb      string   // list, add, remove or doctor
	Names     []string // of the agents to add (one), remove or examine
	JSON      bool
	Installed bool // list installed agents only
	All       bool // examine all installed agents

	// The following are for add.
	Command  []string
	Env      []string // NAME=VALUE
	URL      string
	Dir      string
	Protocol int
	LoginEnv bool
	Auth     string
	Force    bool

	// The following are for doctor.
	Fix     bool
	Timeout time.Duration // for starting and initializing; 0 means the setting
}

// NewCommand returns the command. If runF is not nil, it is called instead of the command itself.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	run := func(verb string) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			o.Verb = verb
			if at := cmd.ArgsLenAtDash(); verb == verbAdd && at >= 0 {
				args, o.Command = args[:at], args[at:]
				if len(args) == 0 {
					return exitcode.Errorf(exitcode.Usage, "the name is missing: acp agents add NAME -- %s", roster.Join(o.Command))
				}
			} else if verb == verbAdd && len(args) > 1 {
				return exitcode.Errorf(exitcode.Usage, "write -- before the command: acp agents add %s -- %s", args[0], roster.Join(args[1:]))
			}
			o.Names = args
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		}
	}
	cmd := &cobra.Command{Use: "agents", Short: "List, add and examine agents"}
	list := &cobra.Command{
		Use: "list", Short: "List the agents that acp knows by name",
		Args: cobra.NoArgs, RunE: run(verbList),
	}
	list.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object per line, one for each agent")
	list.Flags().BoolVar(&o.Installed, "installed", false, "list only installed agents")

	add := &cobra.Command{
		Use: "add NAME [flags] -- COMMAND [ARG]...", Short: "Give an agent a name",
		Long: `Give an agent a name: write its command, or the URL of a running agent, to the user's
settings file. A connection to --url is neither encrypted nor authenticated: whoever
listens at that address receives everything you send to the agent.`,
		Example: `  acp agents add mine -- my-agent --acp
  acp agents add gemini --env GEMINI_API_KEY='${MY_KEY}'   # a known agent, with a variable
  acp agents add far --url tcp://127.0.0.1:3000            # an agent that is already running`,
		Args: cobra.MinimumNArgs(1), RunE: run(verbAdd),
	}
	f := add.Flags()
	f.StringArrayVar(&o.Env, "env", nil, "add `NAME=VALUE` to the agent's environment; ${NAME} in the value is replaced when the agent starts (repeatable)")
	f.StringVar(&o.URL, "url", "", "connect to a running agent at `URL`, such as https://HOST/acp, instead of starting one")
	f.StringVar(&o.Dir, "dir", "", "run the agent in `DIR` instead of the session's directory")
	f.IntVar(&o.Protocol, "protocol", 0, "speak only protocol version `N`: 1 or 2")
	f.BoolVar(&o.LoginEnv, "login-env", false, "start the agent with the environment of a login shell")
	f.StringVar(&o.Auth, "auth", "", "log in by the method `ID` without asking")
	f.BoolVar(&o.Force, "force", false, "replace the agent that already has this name")

	remove := &cobra.Command{
		Use: "remove NAME...", Short: "Remove agents from the user's settings file", Aliases: []string{"rm"},
		Args: cobra.MinimumNArgs(1), RunE: run(verbRemove), ValidArgsFunction: completeNames(a),
	}
	doctor := &cobra.Command{
		Use: "doctor [NAME]...", Short: "Start agents and diagnose what does not work",
		Long: `Start agents (the default one if you name none), examine everything that a
conversation needs, and report what does not work and how to fix it. Doctor opens a
session, sends no prompt, and leaves nothing running. For each MCP server of the
settings, the project and --mcp it reports whether the agent supports the server
directly, reaches it through a bridge, or cannot use it. It starts no MCP server.

The marks are ✓ for what works, ! for what may cause trouble, and ✗ for what must be
fixed. The exit status is 0 if nothing is marked ✗.`,
		RunE: run(verbDoctor), ValidArgsFunction: completeNames(a), Args: cobra.ArbitraryArgs,
	}
	f = doctor.Flags()
	f.BoolVar(&o.JSON, "json", false, "print one JSON object per line, one for each agent")
	f.BoolVar(&o.Fix, "fix", false, "write fixes to the user's settings file where possible")
	f.BoolVar(&o.All, "all", false, "examine all installed agents")
	f.DurationVar(&o.Timeout, "timeout", 0, "give an agent this long to start (default: the setting timeouts.connect)")
	cmd.AddCommand(list, add, remove, doctor)
	return cmd
}

// completeNames returns a completion for the names of agents.
func completeNames(a *app.App) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		cfg, err := a.Config()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return roster.New(cfg).Names(), cobra.ShellCompDirectiveNoFileComp
	}
}

func (o *Options) run(ctx context.Context) error {
	switch o.Verb {
	case verbAdd:
		return o.add()
	case verbRemove:
		return o.remove()
	case verbDoctor:
		return o.doctor(ctx)
	}
	return o.list()
}

// line makes text safe to print on one line of a terminal.
func line(s string) string { return safetext.Line(s, 4096) }

// A row is an agent in the form of --json.
type row struct {
	Name      string   `json:"name"`
	Title     string   `json:"title"`
	Source    string   `json:"source"`
	Default   bool     `json:"default,omitempty"`
	Installed bool     `json:"installed"`
	Path      string   `json:"path,omitempty"` // of the program, if the agent is installed
	Command   []string `json:"command,omitempty"`
	URL       string   `json:"url,omitempty"`
	Protocol  int      `json:"protocol,omitempty"`
	Dir       string   `json:"dir,omitempty"`
	Env       []string `json:"env,omitempty"` // names only
	Homepage  string   `json:"homepage,omitempty"`
	Install   string   `json:"install,omitempty"`
}

// list prints the agents; those that the user has configured or can use come first.
func (o *Options) list() error {
	cfg, err := o.App.Config()
	if err != nil {
		return err
	}
	agents := roster.New(cfg)
	usual := cfg.Agent
	if usual == "" {
		usual = roster.Builtin
	}
	var rows []row
	all := agents.All()
	// The agents that the user has configured or can use come first.
	sort.SliceStable(all, func(i, j int) bool { return rank(agents, all[i]) < rank(agents, all[j]) })
	for _, a := range all {
		path, ok := agents.Installed(a)
		if o.Installed && !ok {
			continue
		}
		command := a.Argv()
		if a.URL != "" {
			command = nil
		}
		rows = append(rows, row{
			Name: a.Name, Title: a.Title, Source: a.Source, Default: a.Name == usual, Installed: ok, Path: path,
			Command: command, URL: a.URL, Protocol: a.Protocol, Dir: a.Dir, Env: slices.Sorted(maps.Keys(a.Env)),
			Homepage: a.Homepage, Install: a.Install,
		})
	}
	if o.JSON {
		for _, r := range rows {
			if err := safetext.PrintJSON(o.App.Out, r); err != nil {
				return err
			}
		}
		return nil
	}
	for _, text := range cfg.Untrusted() {
		fmt.Fprintf(o.App.Err, "acp: %s\n", line(text))
	}
	return printRows(o.App.Out, rows)
}

// rank orders the list: the built-in agent, configured ones, installed presets, all others.
func rank(all *roster.Roster, a roster.Agent) int {
	_, installed := all.Installed(a)
	switch {
	case a.Builtin:
		return 0
	case a.Source != roster.SourcePreset:
		return 1
	case installed:
		return 2
	}
	return 3
}

// printRows prints the agents as a table.
func printRows(w io.Writer, rows []row) error {
	cells := [][]string{{"NAME", "TITLE", "FROM", "INSTALLED", "COMMAND"}}
	for _, r := range rows {
		name, installed, command := r.Name, "no", roster.Join(r.Command)
		if r.Installed {
			installed = "yes"
		}
		if r.Default {
			name += " *"
		}
		switch {
		case r.URL != "":
			command = r.URL
		case r.Command == nil:
			command = "(this program)"
		case !r.Installed && r.Install != "":
			command = "to install: " + r.Install
		}
		cells = append(cells, []string{line(name), line(r.Title), r.Source, installed, line(command)})
	}
	width := make([]int, 5)
	for _, c := range cells {
		for i := range c {
			width[i] = max(width[i], len([]rune(c[i])))
		}
	}
	var b strings.Builder
	for _, c := range cells {
		for i := range c[:4] {
			fmt.Fprintf(&b, "%-*s  ", width[i], c[i])
		}
		b.WriteString(c[4] + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// userFile opens the user's settings file for a change. It does not load the settings, so that
// agents can be added and removed even if the file has errors.
func (o *Options) userFile() (*config.Config, *config.Edit, error) {
	home, _ := os.UserHomeDir() // without one, XDG directories may be set
	c, err := config.Locate(config.Options{Cwd: o.App.Cwd, Home: home, Environ: o.App.Environ, File: o.App.ConfigFile})
	if err != nil {
		return nil, nil, err
	}
	e, err := config.OpenEdit(c.UserFile)
	return c, e, err
}

// add adds an agent to the user's settings, and writes them only if they are valid then.
func (o *Options) add() error {
	name := o.Names[0]
	if len(o.Names) > 1 {
		return exitcode.Errorf(exitcode.Usage, "add takes one name; write the command after --")
	}
	if err := config.CheckAgentName(name); err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	c, e, err := o.userFile()
	if err != nil {
		return err
	}
	if err := o.checkAdded(name); err != nil {
		return err
	}
	if e.Has("agents", name) {
		if !o.Force {
			return exitcode.Errorf(exitcode.Usage, "agent %q is already in %s; use --force to replace it", name, c.UserFile)
		}
		if _, err := e.Unset("agents", name); err != nil {
			return err
		}
	}
	if err := o.writeAgent(e, name); err != nil {
		return err
	}
	if err := e.Check(); err != nil {
		return err
	}
	if err := e.Save(); err != nil {
		return err
	}
	fmt.Fprintf(o.App.Err, "acp: agent %s was added to %s; %s\n", name, line(c.UserFile), line(o.next(name)))
	return nil
}

// checkAdded checks the agent before anything is written. Mistakes that would only show when the
// agent starts, such as a command in one word, are caught here, where the user can still see the
// cause.
func (o *Options) checkAdded(name string) error {
	if o.Protocol < 0 || o.Protocol > 2 {
		return exitcode.Errorf(exitcode.Usage, "--protocol %d: the version must be 1 or 2", o.Protocol)
	}
	if o.Dir != "" {
		if info, err := os.Stat(o.absolute(o.Dir)); !strings.HasPrefix(o.Dir, "~/") && (err != nil || !info.IsDir()) {
			return exitcode.Errorf(exitcode.Usage, "--dir: %s is not a directory", o.absolute(o.Dir))
		}
	}
	switch {
	case o.URL != "" && len(o.Command) > 0:
		return exitcode.Errorf(exitcode.Usage, "both --url and a command: acp either connects to an agent or starts it")
	case o.URL != "":
		if err := roster.CheckURL(o.URL); err != nil {
			return exitcode.Errorf(exitcode.Usage, "--url: %w", err)
		}
	case len(o.Command) == 0 && !roster.IsPreset(name):
		return exitcode.Errorf(exitcode.Usage, "the command is missing: acp agents add %s -- COMMAND [ARG]...", name)
	}
	if len(o.Command) == 1 {
		if words := roster.Apart(roster.Agent{Command: o.Command[0]}); words != nil {
			return exitcode.Errorf(exitcode.Usage, "there is no program %q; leave out the quotes: acp agents add %s -- %s", o.Command[0], roster.Quote(name), roster.Join(words))
		}
	}
	return nil
}

// writeAgent writes the settings of an agent to the opened file. Only flags that were given become
// settings, so that a preset keeps its other values.
func (o *Options) writeAgent(e *config.Edit, name string) error {
	type setting struct {
		key   string
		value any
		given bool
	}
	settings := []setting{
		{"command", "", len(o.Command) > 0},
		{"args", []string(nil), len(o.Command) > 1},
		{"dir", o.Dir, o.Dir != ""},
		{"url", o.URL, o.URL != ""},
		{"protocol", o.Protocol, o.Protocol != 0},
		{"login_env", true, o.LoginEnv},
		{"auth", o.Auth, o.Auth != ""},
	}
	if len(o.Command) > 0 {
		settings[0].value, settings[1].value = o.fromHere(o.Command[0]), o.Command[1:]
	}
	if o.Dir != "" {
		settings[2].value = o.absolute(o.Dir)
	}
	some := len(o.Env) > 0
	for _, s := range settings {
		if some = some || s.given; !s.given {
			continue
		}
		if err := e.Set(s.value, "agents", name, s.key); err != nil {
			return err
		}
	}
	if !some {
		return exitcode.Errorf(exitcode.Usage, "%q is known already; to change it, give a command or flags", name)
	}
	for _, kv := range o.Env {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return exitcode.Errorf(exitcode.Usage, "--env %q: write NAME=VALUE", kv)
		}
		if err := e.Set(v, "agents", name, "env", k); err != nil {
			return err
		}
	}
	return nil
}

// next returns what the user can do next with the added agent.
func (o *Options) next(name string) string {
	path := func(kv string) bool { return strings.HasPrefix(kv, "PATH=") }
	if len(o.Command) > 0 && !o.LoginEnv && !strings.HasPrefix(o.Command[0], "~/") && !slices.ContainsFunc(o.Env, path) {
		environ := o.App.Environ
		if environ == nil {
			environ = os.Environ()
		}
		if _, err := roster.LookPath(o.fromHere(o.Command[0]), o.App.Cwd, environ); err != nil {
			return fmt.Sprintf("its program %s was not found: see acp agents doctor %s", o.Command[0], name)
		}
	}
	return "to talk to it, type acp chat " + name
}

// fromHere makes a relative path of a program absolute, because the agent will be started in other
// directories. A bare name stays as it is and is looked up in PATH.
func (o *Options) fromHere(command string) string {
	if !strings.ContainsAny(command, "/"+string(filepath.Separator)) {
		return command
	}
	return o.absolute(command)
}

func (o *Options) absolute(name string) string {
	if filepath.IsAbs(name) || strings.HasPrefix(name, "~/") {
		return name
	}
	return filepath.Join(o.App.Cwd, name)
}

// remove removes all named agents, or none if one of them is not in the user's file.
func (o *Options) remove() error {
	c, e, err := o.userFile()
	if err != nil {
		return err
	}
	for _, name := range o.Names {
		had, err := e.Unset("agents", name)
		if err != nil {
			return err
		}
		if !had {
			why := "is not in " + c.UserFile
			if roster.IsPreset(name) || name == roster.Builtin {
				why += "; it is built into acp"
			}
			return exitcode.Errorf(exitcode.Usage, "agent %q %s", name, why)
		}
	}
	if err := e.Save(); err != nil {
		return err
	}
	for _, name := range o.Names {
		fmt.Fprintf(o.App.Err, "acp: agent %s was removed from %s\n", line(name), line(c.UserFile))
	}
	return nil
}
