// Package config is the command acp config: it shows and changes settings, and manages the trust in
// projects. What the settings are, and how files are read and written, is package internal/config's
// business. The commands that repair a file (set, unset, edit, path) work even if it has errors.
package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/mcp"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// Verbs of the command.
const (
	verbList    = "list"
	verbGet     = "get"
	verbSet     = "set"
	verbUnset   = "unset"
	verbPath    = "path"
	verbEdit    = "edit"
	verbTrust   = "trust"
	verbUntrust = "untrust"
)

// Options are the flags and arguments of the command.
type Options struct {
	App  *app.App
	Verb string // list, get, set, unset, path, edit, trust or untrust
	JSON bool
	Key  string
	// Value is the new value of Key, as text.
	Value string
	Dirs  []string // the projects to trust or untrust
}

const about = `Show the settings in effect, one per line: key, value, and where the value comes from.

Each of these sources overrides the ones before it: the defaults, the user's settings
file, the project's file ` + config.ProjectFile + `, environment variables such as ACP_UI_PLAIN, and
flags. Settings of a project that concern programs and permissions take effect only
after you trust the project: see acp config trust.`

// NewCommand returns the command. If runF is not nil, it is called instead of the command itself.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	run := func(verb string, parse func(args []string)) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			o.Verb = verb
			if parse != nil {
				parse(args)
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		}
	}
	key := func(args []string) { o.Key = args[0] }
	cmd := &cobra.Command{
		Use: "config", Short: "Show and change settings", Long: about,
		Args: cobra.NoArgs, RunE: run(verbList, nil),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print a JSON object with the members files, settings and untrusted")
	get := &cobra.Command{
		Use: "get KEY", Short: "Print the value of a setting, or all settings below a key",
		Args: cobra.ExactArgs(1), RunE: run(verbGet, key), ValidArgsFunction: completeKey,
	}
	get.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object per line, with key, value and origin")
	set := &cobra.Command{
		Use: "set KEY VALUE", Short: "Change a setting in the user's settings file",
		Long: `Change a setting in the user's settings file. Comments and everything else in the file
stay as they are.

Write a list as an array, as in the file, or with one entry per line.`,
		Example: `  acp config set agent gemini
  acp config set ui.theme dark
  acp config set permissions.allow '["read path:./**", "command:go test *"]'`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: completeKey,
		RunE: run(verbSet, func(args []string) { o.Key, o.Value = args[0], args[1] }),
	}
	dirs := func(args []string) { o.Dirs = args }
	cmd.AddCommand(get, set,
		&cobra.Command{
			Use: "unset KEY", Short: "Remove a setting, and all below it, from the user's settings file",
			Args: cobra.ExactArgs(1), RunE: run(verbUnset, key), ValidArgsFunction: completeKey,
		},
		&cobra.Command{
			Use: "path", Short: "Print the path of the user's settings file",
			Args: cobra.NoArgs, RunE: run(verbPath, nil),
		},
		&cobra.Command{
			Use: "edit", Short: "Open the user's settings file in an editor",
			Long: "Open the user's settings file in the editor that VISUAL or EDITOR names, and check the file\nafterwards.",
			Args: cobra.NoArgs, RunE: run(verbEdit, nil),
		},
		&cobra.Command{
			Use: "trust [DIR]...", Short: "Trust the settings of a project",
			Long: `Allow the settings of a project, as they are now, to start programs and to loosen
permissions.

A project's file comes with the repository you cloned, so it may not be yours. Until you
trust the project, its settings about agents, MCP servers, the policy and the store have
no effect, and neither has its ` + config.MCPFile + `. When one of these files changes, you must
trust the project again.`,
			RunE: run(verbTrust, dirs), Args: cobra.ArbitraryArgs,
		},
		&cobra.Command{
			Use: "untrust [DIR]...", Short: "No longer trust the settings of a project",
			RunE: run(verbUntrust, dirs), Args: cobra.ArbitraryArgs,
		})
	return cmd
}

// completeKey completes the keys of settings and, for set, the allowed values.
func completeKey(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, s := range config.Known() {
		switch {
		case len(args) == 0 && s.Env != "":
			out = append(out, s.Key)
		case len(args) == 1 && cmd.Name() == "set" && s.Key == args[0]:
			out = s.Values
			if s.Type == "true or false" {
				out = []string{"true", "false"}
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (o *Options) run(ctx context.Context) error {
	switch o.Verb {
	case verbGet:
		return o.get()
	case verbSet, verbUnset:
		return o.change()
	case verbPath:
		return o.path()
	case verbEdit:
		return o.edit(ctx)
	case verbTrust, verbUntrust:
		return o.trust()
	}
	return o.list()
}

// line makes text safe to print on one line of a terminal.
func line(s string) string { return safetext.Line(s, 4096) }

// source returns where the settings of a are read from.
func source(a *app.App) config.Options {
	home, _ := os.UserHomeDir() // without one, XDG directories may be set
	return config.Options{Cwd: a.Cwd, Home: home, Environ: a.Environ, Flags: a.Flags, File: a.ConfigFile}
}

// located returns the paths of the files without reading them, so that files with errors can be
// repaired.
func (o *Options) located() (*config.Config, error) { return config.Locate(source(o.App)) }

// A listing is what acp config --json prints.
type listing struct {
	Files struct {
		User    string `json:"user,omitempty"`
		Project string `json:"project,omitempty"`
		MCP     string `json:"mcp,omitempty"`
	} `json:"files"`
	Settings  []config.Value `json:"settings"`
	Untrusted []string       `json:"untrusted,omitempty"`
}

// list prints every setting with its value and where that comes from.
func (o *Options) list() error {
	c, err := o.App.Config()
	if err != nil {
		return err
	}
	file, servers, err := o.App.ShownMCP()
	if err != nil {
		return err
	}
	values := slices.DeleteFunc(c.Values(), func(v config.Value) bool {
		return slices.ContainsFunc(servers, func(s mcp.Server) bool {
			return s.Source == mcp.SourceFlag && strings.HasPrefix(v.Key, config.KeyOf("mcp", s.Name)+".")
		})
	})
	values = append(values, mcp.Values(servers)...)
	if o.JSON {
		l := listing{Settings: values, Untrusted: o.App.Untrusted()}
		l.Files.User, l.Files.Project, l.Files.MCP = c.UserFile, c.ProjectFile, file
		return safetext.PrintJSON(o.App.Out, l)
	}
	if err := table(o.App.Out, values); err != nil {
		return err
	}
	for _, text := range o.App.Untrusted() {
		fmt.Fprintf(o.App.Err, "acp: %s\n", line(text))
	}
	o.warn(c)
	return nil
}

// warn reports patterns in rules that can never match.
func (o *Options) warn(c *config.Config) {
	for _, w := range config.ReadRules(c.Permissions, o.App.Cwd).Warnings() {
		fmt.Fprintf(o.App.Err, "acp: %s\n", line(w))
	}
}

// table prints settings in columns. Values of more than 40 bytes do not widen their column.
func table(w io.Writer, values []config.Value) error {
	const widest = 40
	rows := make([][3]string, len(values))
	var key, value int
	for i, v := range values {
		rows[i] = [3]string{line(v.Key), v.Text(), line(v.Origin)}
		key, value = max(key, len(rows[i][0])), max(value, min(len(rows[i][1]), widest))
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%-*s  %-*s  %s\n", key, r[0], value, r[1], r[2])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// get prints one setting, or a table of them.
func (o *Options) get() error {
	c, err := o.App.Config()
	if err != nil {
		return err
	}
	values, err := c.Get(o.Key)
	if err != nil {
		return err
	}
	if len(values) == 0 {
		return exitcode.Errorf(exitcode.Failed, "key %q is not set", o.Key)
	}
	for _, v := range values {
		switch text, ok := v.Value.(string); {
		case o.JSON:
			err = safetext.PrintJSON(o.App.Out, v)
		case len(values) > 1 || v.Key != o.Key:
			_, err = fmt.Fprintf(o.App.Out, "%s = %s\n", line(v.Key), v.Text())
		case ok: // without quotes, so that scripts can use it
			_, err = fmt.Fprintln(o.App.Out, safetext.Text(text))
		default:
			_, err = fmt.Fprintln(o.App.Out, v.Text())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// change sets or removes a setting in the user's file.
func (o *Options) change() error {
	c, err := o.located()
	if err != nil {
		return err
	}
	e, err := config.OpenEdit(c.UserFile)
	if err != nil {
		return err
	}
	if o.Verb == verbUnset {
		had, err := e.UnsetKey(o.Key)
		if err == nil && !had {
			err = exitcode.Errorf(exitcode.Failed, "key %q is not in %s", o.Key, c.UserFile)
		}
		if err != nil {
			return err
		}
	} else if err := e.SetText(o.Key, o.Value); err != nil {
		return err
	}
	if err := e.Save(); err != nil {
		return err
	}
	return o.checkChange()
}

// checkChange warns after a change if the settings have an error, or if another source overrides
// the new value. The change has been made, so neither makes the command fail.
func (o *Options) checkChange() error {
	c, err := config.Load(source(o.App))
	if err != nil {
		fmt.Fprintf(o.App.Err, "acp: the change was saved, but the settings have an error: %s\n", line(err.Error()))
		return nil
	}
	if o.Verb != verbSet {
		return nil
	}
	if strings.HasPrefix(o.Key, "permissions.") {
		o.warn(c)
	}
	values, err := c.Get(o.Key)
	if err != nil {
		return nil //nolint:nilerr // the key was checked before
	}
	for _, v := range values {
		if !strings.Contains(v.Origin, c.UserFile+":") {
			fmt.Fprintf(o.App.Err, "acp: the change was saved, but %s overrides it\n", line(v.Origin))
		}
	}
	return nil
}

// path prints the name of the user's file, which need not exist.
func (o *Options) path() error {
	c, err := o.located()
	if err != nil {
		return err
	}
	if c.UserFile == "" {
		return errNowhere
	}
	_, err = fmt.Fprintln(o.App.Out, c.UserFile)
	return err
}

var errNowhere = exitcode.With(exitcode.Usage, errors.New("there is no directory for settings: set HOME or XDG_CONFIG_HOME"))

// trust trusts or untrusts projects.
func (o *Options) trust() error {
	c, err := o.located()
	if err != nil {
		return err
	}
	dirs := o.Dirs
	if len(dirs) == 0 {
		dirs = []string{filepath.Dir(c.ProjectFile)}
		if c.ProjectFile == "" {
			dirs[0] = o.App.Cwd
		}
	}
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(o.App.Cwd, dir)
		}
		if filepath.Base(dir) == config.ProjectFile || filepath.Base(dir) == config.MCPFile {
			dir = filepath.Dir(dir) // the files of a project are trusted together
		}
		if o.Verb == verbUntrust {
			err = o.untrustDir(c, dir)
		} else {
			err = o.trustDir(c, dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// trustDir trusts the files of a project and prints what they contain, because their settings take
// effect from now on.
func (o *Options) trustDir(c *config.Config, dir string) error {
	files, err := config.ProjectFiles(dir)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return exitcode.Errorf(exitcode.Usage, "%s has neither %s nor %s", dir, config.ProjectFile, config.MCPFile)
	}
	contents, err := config.ReadAll(files...)
	if err == nil {
		err = c.TrustContent(contents)
	}
	if err != nil {
		return err
	}
	at := source(o.App)
	at.Cwd = dir
	now, err := config.Load(at)
	if err != nil {
		return err
	}
	if len(now.Untrusted()) > 0 { // what is shown is not what was trusted
		_, err := c.Untrust(files...)
		return errors.Join(exitcode.Errorf(exitcode.Failed, "somebody has changed the files in %s just now, so they are not trusted; look at them and try again", dir), err)
	}
	// Each file is followed by its settings.
	for _, f := range files {
		var says []config.Value
		switch filepath.Base(f) {
		case config.ProjectFile:
			says = now.Written(f)
		case config.MCPFile:
			says = serversIn(f, contents[f])
		}
		if _, err := fmt.Fprintf(o.App.Out, "trusted %s\n", line(f)); err != nil {
			return err
		}
		for _, v := range says {
			if _, err := fmt.Fprintf(o.App.Out, "  %s = %s\n", line(v.Key), v.Text()); err != nil {
				return err
			}
		}
	}
	changed := "one of these files changes"
	if len(files) == 1 {
		changed = "the file changes"
	}
	fmt.Fprintf(o.App.Err, "acp: the trust ends when %s; to end it now, type acp config untrust %s\n", changed, line(roster.Quote(dir)))
	return nil
}

// serversIn returns the servers of a file that was just trusted. An error in the file is reported
// when the file is used.
func serversIn(file string, data []byte) []config.Value {
	servers, _, err := mcp.ParseFile(file, data, nil)
	if err != nil {
		return nil
	}
	return mcp.Written(servers)
}

// untrustDir ends the trust in the files of a project, including those that do not exist any more.
func (o *Options) untrustDir(c *config.Config, dir string) error {
	all, err := c.TrustedFiles()
	if err != nil {
		return err
	}
	// The project's files may be gone, and a policy file may have been named by an earlier version.
	files := []string{filepath.Join(dir, config.ProjectFile), filepath.Join(dir, config.MCPFile)}
	if named, err := config.ProjectFiles(dir); err == nil {
		files = append(files, named...)
	}
	for _, f := range all {
		if rel, err := filepath.Rel(dir, f); err == nil && filepath.IsLocal(rel) {
			files = append(files, f)
		}
	}
	had, err := c.Untrust(files...)
	if err != nil {
		return err
	}
	if len(had) == 0 {
		return exitcode.Errorf(exitcode.Failed, "nothing in %s is trusted", dir)
	}
	for _, f := range had {
		if _, err := fmt.Fprintf(o.App.Out, "no longer trusted %s\n", line(f)); err != nil {
			return err
		}
	}
	return nil
}
