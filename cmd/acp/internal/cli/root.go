package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// about is the first text that a new user reads.
const about = `acp talks to coding agents over the Agent Client Protocol: to the built-in agent,
to agents that are installed, and to any other agent by its command line.

Without arguments, acp opens a conversation with the default agent in the current
directory. If it does not run in a terminal, it prints this help instead.`

// The groups of the commands, in the order of help.
const (
	groupTalk = "talk"
	groupSet  = "set"
	groupWire = "wire"
)

// globals are the values of the flags that every command accepts.
type globals struct {
	agent, cwd, config, policy, log    string
	model, effort                      string
	addDirs, mcp, headers, allow, deny []string
	noStore, plain, verbose            bool
	connect                            time.Duration
}

// newRoot returns the command tree. Only the command that runs changes a, when it begins; started
// then becomes true. Until then every failure is one of usage. The tree need not have more than what args call for.
func newRoot(a *app.App, args ...string) (root *cobra.Command, started *bool) {
	g := new(globals)
	root = &cobra.Command{
		Use:   "acp",
		Short: "Talk to coding agents over the Agent Client Protocol",
		Long:  about,
		Example: `  acp                                    talk to the default agent, or choose one
  acp chat gemini
  acp exec "fix the failing test"
  acp exec --allow 'command:go test *' -- my-agent --acp
  acp sessions resume -                  the latest conversation of this directory
  acp serve                              let other programs talk to the agent`,
		SilenceUsage:  true,
		SilenceErrors: true,

		// The program has its own command of that name.
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddGroup(
		&cobra.Group{ID: groupTalk, Title: "Talking to agents:"},
		&cobra.Group{ID: groupSet, Title: "Setting up:"},
		&cobra.Group{ID: groupWire, Title: "For other programs:"})
	root.SetHelpCommandGroupID(groupSet)
	g.register(root)
	chat := addCommands(root, a, args)
	addCompletions(root, a, g)
	root.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case cmd.ArgsLenAtDash() == 0 && len(args) > 0:
			return exitcode.Errorf(exitcode.Usage, "to talk to an agent by its command, write acp chat -- %s", roster.Join(args))
		case len(args) > 0 && roster.IsPreset(args[0]):
			return exitcode.Errorf(exitcode.Usage, "%s is an agent: to talk to it, write acp chat %s", args[0], args[0])
		case len(args) > 0:
			return unknownCommand(root, args[0])
		}
		return nil
	}
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if chat == nil || !a.InTerminal || !a.OutTerminal {
			return cmd.Help()
		}
		chat.SetContext(cmd.Context())
		return chat.RunE(chat, nil)
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := "see " + cmd.CommandPath() + " --help"
		if near := nearFlag(cmd, err); near != "" {
			hint = "did you mean " + near + "?"
		}
		return exitcode.Errorf(exitcode.Usage, "%w; %s", wrongValue(err), hint)
	})
	root.InitDefaultHelpCmd()
	strictHelp(root)
	explainArgs(root)
	started = new(bool)
	prepare(root, func(cmd *cobra.Command) error {
		if err := g.apply(a); err != nil {
			return exitcode.With(exitcode.Usage, err)
		}
		*started = true
		return nil
	})
	addVersion(root)
	return root, started
}

// nearFlag returns the flag that was meant by one that is not known, or "".
func nearFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	near := config.Near(unknown.GetSpecifiedName(), names)
	if near == "" {
		return ""
	}
	return "--" + near
}

// prepare makes every command call begin before it runs. A command that only groups others lists
// what it is about when it is called alone, or prints its help where nothing can be listed, and an
// error when it is followed by anything unknown.
func prepare(cmd *cobra.Command, begin func(*cobra.Command) error) {
	for _, sub := range cmd.Commands() {
		prepare(sub, begin)
	}
	if cmd.Name() == "help" {
		return // it works whatever the flags say
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := begin(cmd); err != nil {
				return err
			}
			return run(cmd, args)
		}
		return
	}
	if cmd.HasSubCommands() && cmd.Run == nil {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			for _, sub := range cmd.Commands() {
				if sub.Name() == "list" {
					sub.SetContext(cmd.Context())
					return sub.RunE(sub, nil) // which was prepared
				}
			}
			return cmd.Help()
		}
	}
}

// unknownCommand returns the error for a name that is not a command below cmd, with a suggestion.
func unknownCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	hint := "see " + cmd.CommandPath() + " --help"
	switch {
	case cmd.HasParent():
	case strings.ContainsFunc(name, unicode.IsSpace):
		hint = "to send a prompt, use acp exec"
	default:
		hint += "; to send a prompt, use acp exec"
	}
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return exitcode.Errorf(exitcode.Usage, "unknown command %q for %q; %s", name, cmd.CommandPath(), hint)
}

// register declares the flags on root, from which all commands inherit them.
func (g *globals) register(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVarP(&g.agent, "agent", "a", "", "`NAME`, URL or command line of the agent (default: the setting agent, else the built-in one)")
	f.StringVarP(&g.cwd, "cwd", "C", "", "work in `DIR` instead of the current directory")
	f.StringArrayVar(&g.addDirs, "add-dir", nil, "let the session also work in `DIR` (repeatable)")
	f.StringVar(&g.config, "config", "", "read settings from `FILE` instead of the user's file")
	f.StringArrayVar(&g.mcp, "mcp", nil, "give sessions an MCP server: `NAME=COMMAND ARGS` or NAME=URL (repeatable)")
	f.StringArrayVar(&g.headers, "mcp-header", nil, "send a header to an MCP server of --mcp: `NAME:KEY=VALUE` (repeatable)")
	f.StringVar(&g.policy, "policy", "", "decide permission requests by the JSON policy in `FILE`")
	f.StringArrayVar(&g.allow, "allow", nil, "allow what `RULE` matches, such as 'command:go test *' (repeatable)")
	f.StringArrayVar(&g.deny, "deny", nil, "deny what `RULE` matches, even if it is allowed elsewhere (repeatable)")
	f.StringVar(&g.model, "model", "", "have the built-in agent use the language model `REF`: PROVIDER/MODEL, script:FILE or cassette:FILE; in chat and exec also the model of another agent, as it calls it")
	f.StringVar(&g.effort, "effort", "", "have the model think as much as `LEVEL` says, such as low or high")
	f.DurationVar(&g.connect, "connect-timeout", 0, "fail if the agent has not answered within `TIME` of its start")
	f.BoolVar(&g.noStore, "no-store", false, "do not store the conversation")
	f.BoolVar(&g.plain, "plain", false, "use lines of text instead of a full screen, for screen readers and simple terminals")
	f.StringVar(&g.log, "log", "", "write a log to `FILE` (events only, no message content)")
	f.BoolVar(&g.verbose, "verbose", false, "write a log to standard error (events only, no message content)")
	_ = root.MarkPersistentFlagFilename("config", "toml")
	_ = root.MarkPersistentFlagFilename("policy", "json")
	_ = root.MarkPersistentFlagDirname("cwd")
	_ = root.MarkPersistentFlagDirname("add-dir")
}

// apply copies the flags into a, as settings that override all files. It checks what can be checked
// without reading a file.
func (g *globals) apply(a *app.App) error {
	var err error
	if a.Cwd, err = directory("--cwd", g.cwd); err != nil {
		return err
	}
	a.Roots = nil
	for _, d := range g.addDirs {
		dir, err := directory("--add-dir", d)
		if err != nil {
			return err
		}
		a.Roots = append(a.Roots, dir)
	}
	a.ConfigFile, a.MCPFlags, a.MCPHeaders, a.Flags = g.config, g.mcp, g.headers, map[string]any{}
	set := func(key string, value any, given bool) {
		if given {
			a.Flags[key] = value
		}
	}
	if g.policy != "" {
		if g.policy, err = filepath.Abs(g.policy); err != nil {
			return fmt.Errorf("--policy: %w", err)
		}
	}
	set("agent", g.agent, g.agent != "")
	set("model.use", g.model, g.model != "")
	set("model.effort", g.effort, g.effort != "")
	set("permissions.policy", g.policy, g.policy != "")
	set("permissions.allow", g.allow, len(g.allow) > 0)
	set("permissions.deny", g.deny, len(g.deny) > 0)
	if g.connect < 0 {
		return fmt.Errorf("--connect-timeout %s is negative", g.connect)
	}
	set("timeouts.connect", g.connect.String(), g.connect > 0)
	set("store.off", true, g.noStore)
	set("ui.plain", true, g.plain)
	return g.openLog(a)
}

// openLog opens the log. Nothing closes the file before the process exits, because the last entries
// come from closing everything else.
func (g *globals) openLog(a *app.App) error {
	var w io.Writer
	level := slog.LevelInfo
	if g.verbose {
		w, level = a.Err, slog.LevelDebug
	}
	if g.log != "" {
		f, err := os.OpenFile(g.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("--log: %w", err)
		}
		w = f
	}
	if w != nil {
		a.Logger = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
	}
	return nil
}

// readable returns an error for a directory whose files cannot be listed: an agent would find nothing
// in it.
func readable(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// directory returns the absolute path of the directory that a flag names; "" means the current one.
func directory(flag, dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s: %s is not a directory", flag, abs)
	}
	if err := readable(abs); err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	return abs, nil
}
