// Package sessions is the command acp sessions: it lists, searches, prints, exports, resumes and
// deletes earlier conversations. Conversations come from package store; lists can also contain the
// sessions that an agent knows, at most 10,000 of them. Formats are package export's.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/ui/export"
)

// A Verb is the subcommand to run.
type Verb string

// The verbs.
const (
	List   Verb = "list"
	Show   Verb = "show"
	Resume Verb = "resume"
	Export Verb = "export"
	Delete Verb = "delete"
	Search Verb = "search"
)

// Options are the flags and arguments of the command.
type Options struct {
	App   *app.App
	Verb  Verb
	IDs   []string // of sessions, or their beginnings
	Words string   // to search for

	// Here restricts the list to sessions of the App's directory. Limit is the maximum number
	// of rows; All means no limit.
	Here   bool
	All    bool
	Limit  int
	Remote bool // ask the agent, too
	Local  bool // do not ask the agent
	// Wait bounds the time for asking the agent; 0 means no bound.
	Wait time.Duration

	JSON     bool
	Markdown bool
	Format   export.Format // "" means by the name of the file
	File     string        // "" means standard output
	Force    bool          // overwrite the file
	Yes      bool          // do not ask for confirmation
	AgentToo bool          // have the agent delete the session as well
	User     string        // with whom a session is shared, in the role Role
	Role     string
	At       string // the gateway whose sessions are meant, instead of those that are stored here

	// ResumeSession opens a conversation that continues a session. If it is nil, acp sessions
	// resume fails.
	ResumeSession func(context.Context, store.Session) error
	// ResumeAt does the same with a session of a gateway.
	ResumeAt func(ctx context.Context, where, id string) error
	// Choose lets the user choose a session; nil means that an ID is required. It returns false if
	// the user leaves without a choice.
	Choose func(context.Context) (store.Session, bool, error)
	// Forget removes prompts from the history of what the user typed in a directory; nil means that there is none.
	Forget func(cwd string, prompts []string) error
	// Connect connects to the agent of that name; nil means to start it through App.
	Connect func(ctx context.Context, agent string) (Remote, error)
	// Now is the clock; nil means the real one.
	Now func() time.Time
	// Width is the width of the terminal in cells; 0 means to ask the terminal.
	Width int
}

// A Remote is a connection to an agent that lists and deletes sessions.
type Remote interface {
	// Sessions returns those that the agent knows: of a directory, or all with "". With an error it returns
	// those that came before it.
	Sessions(ctx context.Context, cwd string) ([]acp.SessionInfo, error)
	Delete(ctx context.Context, id acp.SessionID) error
	io.Closer
}

// NewCommand returns the command. If runF is not nil, it is called instead of [Run]. The command
// cannot resume sessions: see [NewCommandResume].
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	return NewCommandResume(a, Interfaces{}, runF)
}

// Interfaces are the functions that hold conversations, for which this package has none: see the fields of
// [Options] of the same names. All may be nil.
type Interfaces struct {
	ResumeSession func(context.Context, store.Session) error
	ResumeAt      func(ctx context.Context, where, id string) error
	Choose        func(context.Context) (store.Session, bool, error)
	Forget        func(cwd string, prompts []string) error
}

// NewCommandResume is like [NewCommand], with the functions that continue a session and that let the
// user choose one. They are parameters because this package must not depend on the interfaces that
// hold conversations.
func NewCommandResume(a *app.App, with Interfaces, runF func(context.Context, *Options) error) *cobra.Command {
	if runF == nil {
		runF = Run
	}
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, search, resume and delete earlier conversations",
		Long: `Work with earlier conversations. acp stores conversations on this machine as they happen,
those of your gateway included; agents may know further sessions.

An ID is either the id that the agent has given the session, or the unique id of the
conversation; acp sessions list --json prints both. You can abbreviate it as long as it
stays unambiguous. If two agents use the same id, add --agent. If an agent has used the
same id for several sessions, it stands for the latest one; the list shows the others
by the ids of their conversations.

Two handles save typing: - is the latest session of this directory, and @N the session
in row N of acp sessions list.

With --at, the sessions are those that a gateway lists (see acp serve). What your own has
is in the list without it, too.`,
		Aliases: []string{"session"},
	}
	add := func(verb Verb, use, short string, args cobra.PositionalArgs, set func(*Options, *cobra.Command), parse func(*Options, []string)) {
		o := &Options{App: a, Verb: verb, ResumeSession: with.ResumeSession, ResumeAt: with.ResumeAt, Choose: with.Choose, Forget: with.Forget}
		sub := &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
			if parse != nil {
				parse(o, args)
			}
			// A directory that is given explicitly is meant as a filter.
			if f := cmd.Flags().Lookup("cwd"); f != nil && f.Changed {
				o.Here = true
			}
			if err := o.check(); err != nil {
				return exitcode.With(exitcode.Usage, err)
			}
			return runF(cmd.Context(), o)
		}}
		sub.ValidArgsFunction = o.complete
		if set != nil {
			set(o, sub)
		}
		sub.Flags().StringVar(&o.At, "at", "", app.AtUsage)
		cmd.AddCommand(sub)
	}
	ids := func(o *Options, args []string) { o.IDs = args }
	add(List, "list", "List sessions, the latest first", cobra.NoArgs, (*Options).listCommand, nil)
	add(Show, "show ID", "Print a conversation", cobra.ExactArgs(1), (*Options).showCommand, ids)
	add(Resume, "resume [ID]", "Resume a conversation", cobra.MaximumNArgs(1), func(_ *Options, c *cobra.Command) {
		c.Long = "Resume a conversation where it took place. Without an ID, choose it from a list that can be\nsearched, also for what was said."
	}, ids)
	add(Export, "export ID", "Write a conversation to a file or to standard output", cobra.ExactArgs(1), func(o *Options, c *cobra.Command) {
		f := c.Flags()
		f.Var(&formatFlag{&o.Format}, "format", "markdown, html, json, text, or with --at acptrace: a recording of its prompts and of everything that was said (default: by the extension of FILE, otherwise markdown)")
		f.StringVarP(&o.File, "output", "o", "", "write to `FILE` instead of standard output")
		f.BoolVar(&o.Force, "force", false, "overwrite FILE if it exists")
		_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"markdown", "html", "json", "text", string(recording)}, cobra.ShellCompDirectiveNoFileComp))
	}, ids)
	add(Delete, "delete ID...", "Delete stored conversations", cobra.MinimumNArgs(1), func(o *Options, c *cobra.Command) {
		c.Long = `Delete stored conversations, and their prompts from the history of what you typed in
their directories (what ↑ and Ctrl+R find in acp chat). Prompts that are in no record,
because they were never sent for example, stay there until newer ones replace them.

The built-in agent's own copy is deleted, too. Other agents have copies of their own,
which stay unless --agent-too is given.`
		f := c.Flags()
		f.BoolVarP(&o.Yes, "yes", "y", false, "do not ask for confirmation")
		f.BoolVar(&o.AgentToo, "agent-too", false, "have the agent delete them as well")
		f.BoolVar(&o.Local, "local", false, "keep the agent's own copies (the default, except for the built-in agent)")
		f.DurationVar(&o.Wait, "wait", 15*time.Second, "how long to wait for the agent")
		c.MarkFlagsMutuallyExclusive("agent-too", "local")
	}, ids)
	add(Share, "share ID [USER ROLE]", "Share a session of a gateway", checkShareArgs, (*Options).shareCommand, shareArgs)
	add(Search, "search WORDS", "Find sessions by words in titles and messages", cobra.MinimumNArgs(1), func(o *Options, c *cobra.Command) {
		o.listFlags(c)
		c.Long = `Find stored sessions that contain all the given words in their title or messages. Each
word matches the beginning of a word; letter case and accents do not matter.

With --at, the sessions are those of a gateway, the latest first. Their histories are read
until the limit is reached: on a server with many long sessions that takes a while, and
--here or a small --limit makes it shorter.`
		c.ValidArgsFunction = nil
	}, func(o *Options, args []string) { o.Words = strings.Join(args, " ") })
	return cmd
}

// listCommand adds the flags and the help of acp sessions list.
func (o *Options) listCommand(c *cobra.Command) {
	o.listFlags(c)
	f := c.Flags()
	f.BoolVar(&o.Remote, "remote", false, "also list the sessions that the agent knows; --agent implies this")
	f.BoolVar(&o.Local, "local", false, "do not ask the agent")
	f.DurationVar(&o.Wait, "wait", 15*time.Second, "how long to wait for the agent")
	c.Long = `List sessions, the latest first: those that are stored on this machine and, with --agent
or --remote, those that the agent knows. The column FROM then shows where each session
is known: stored, agent or both. STATE is running while a turn runs, interrupted if its
program was killed in the middle, or how the last turn has ended: idle, failed or stopped.
If the agent cannot be asked or does not answer in
time, the list contains the stored sessions only, and the exit status is not 0.

With --at, the list has the sessions that a gateway keeps (see acp serve). STATE is also
waiting, while a question of the agent waits for an answer, or elsewhere, while a turn runs
in a chat or acp exec on the machine of the gateway. HERE is the number of clients
that have the session open.`
	c.Example = `  acp sessions list --here
  acp sessions list --at own
  acp sessions list --at https://agents.example`
}

// showCommand adds the flags and the help of acp sessions show.
func (o *Options) showCommand(c *cobra.Command) {
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON, as acp sessions export does")
	c.Flags().BoolVar(&o.Markdown, "markdown", false, "print Markdown")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	c.Long = `Print a stored conversation.

When a session resumes, the agent may replay history that was not stored before. That
history is at the end and is marked. A turn that did not end normally is followed by a
note: cancelled, failed and why, or interrupted. Of a command's output, the first and
the last MiB are stored, and the size of the gap between them.`
}

// listFlags adds the flags that list and search share.
func (o *Options) listFlags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&o.Here, "here", false, "list only sessions of the current directory, or of --cwd")
	f.BoolVar(&o.All, "all", false, "list all sessions, not only the latest")
	f.IntVarP(&o.Limit, "limit", "n", 50, "list at most `N` sessions; 0 means all")
	f.BoolVar(&o.JSON, "json", false, "print one JSON object per line, one for each session")
	c.MarkFlagsMutuallyExclusive("all", "limit")
}

// A formatFlag adapts an [export.Format] to pflag.
type formatFlag struct{ f *export.Format }

// String implements pflag.Value.
func (v *formatFlag) String() string { return string(*v.f) }

// Type implements pflag.Value.
func (v *formatFlag) Type() string { return "FORMAT" }

// Set implements pflag.Value.
func (v *formatFlag) Set(s string) (err error) {
	if export.Format(s) == recording {
		*v.f = recording
		return nil
	}
	*v.f, err = export.ParseFormat(s)
	return err
}

// check validates the options before anything is read or written, and sets the default format.
func (o *Options) check() error {
	switch {
	case o.Limit < 0:
		return errors.New("--limit must not be negative")
	case o.Verb == Search && !hasWord(o.Words):
		return errors.New("no word to search for")
	case o.At != "" && (o.Remote || o.Local || o.AgentToo):
		return errors.New("--at is about sessions of a gateway: --remote, --local and --agent-too are for those that are stored here")
	case o.Verb == Share:
		return o.checkShare()
	case o.Verb == List && o.Remote && o.Local:
		return errors.New("--remote and --local cannot be combined")
	}
	for _, id := range o.IDs {
		if id == "" {
			return errors.New("an ID is empty")
		}
	}
	if o.Format == recording && o.At == "" {
		return errors.New("--format acptrace is for sessions of a gateway, with --at; acp tap records other agents")
	}
	if o.Verb == Export && o.Format == "" {
		o.Format = export.Markdown
		if o.At != "" && filepath.Ext(o.File) == "."+string(recording) {
			o.Format = recording
		} else if o.File != "" && o.File != "-" {
			var err error
			o.Format, err = export.FormatOf(o.File)
			return err
		}
	}
	return nil
}

// agent returns the value of --agent, or "".
func (o *Options) agent() string {
	name, _ := o.App.Flags["agent"].(string)
	return name
}

// Run runs the subcommand.
func Run(ctx context.Context, o *Options) error {
	if o.At != "" {
		return o.runAt(ctx)
	}
	switch o.Verb {
	case List, Search:
		o.Width = o.width() // which is that of the terminal, also in a pager
		return o.App.Paged(func() error {
			if o.Verb == Search {
				return o.search(ctx)
			}
			return o.list(ctx)
		})
	case Delete:
		return o.delete(ctx)
	}
	st, err := o.store(ctx)
	if err != nil {
		return err
	}
	s, err := o.chosen(ctx, st)
	if err != nil || s.Conversation == "" {
		return err
	}
	switch o.Verb {
	case Show:
		return o.App.Paged(func() error { return o.show(ctx, st, s) })
	case Export:
		return o.export(ctx, st, s)
	case Resume:
		if o.ResumeSession == nil {
			return errors.New("this build cannot resume sessions")
		}
		return o.ResumeSession(ctx, s)
	}
	return fmt.Errorf("unknown verb %q", string(o.Verb))
}

// chosen returns the session of the arguments. Without arguments the user chooses one, or none.
func (o *Options) chosen(ctx context.Context, st *store.Store) (store.Session, error) {
	switch {
	case len(o.IDs) > 0:
		return o.find(ctx, st, o.IDs[0])
	case o.Choose == nil || !o.App.InTerminal || !o.App.OutTerminal:
		return store.Session{}, exitcode.Errorf(exitcode.Usage, "which session? acp sessions list shows their IDs; - is the latest one of this directory")
	}
	s, _, err := o.Choose(ctx)
	return s, err
}

// store returns the store. It is an error if there is none.
func (o *Options) store(ctx context.Context) (*store.Store, error) {
	st, err := o.App.Store(ctx)
	if err == nil && st == nil {
		err = errors.New("there are no stored conversations: the store is turned off or cannot be opened")
	}
	return st, err
}

// find returns the session that an id or its beginning stands for.
func (o *Options) find(ctx context.Context, st *store.Store, id string) (store.Session, error) {
	s, err := o.App.Kept(ctx, st, o.agent(), id)
	if errors.Is(err, store.ErrNotFound) {
		of := ""
		if a := o.agent(); a != "" {
			of = " of " + safetext.Line(a, 100)
		}
		return s, &missing{fmt.Sprintf("there is no session %q%s; acp sessions list shows all sessions", safetext.Line(id, 100), of)}
	}
	return s, err
}

// complete completes ids of sessions for the shell. Errors are swallowed: the shell would print
// them into the command line that the user is typing.
func (o *Options) complete(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
	if o.Verb != Delete && len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	st, err := o.App.Store(cmd.Context())
	if err != nil || st == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, err := st.List(cmd.Context(), store.Query{Agent: o.agent()})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := st.Names(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var all []string
	for _, m := range found {
		if id := names.Of(m.Session); strings.HasPrefix(id, begin) && safetext.Line(id, 1000) == id {
			all = append(all, id+"\t"+safetext.Line(m.Agent+": "+m.Title, 60))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// missing is [store.ErrNotFound] with a text of its own, which wrapping would only lengthen.
type missing struct{ text string }

func (e *missing) Error() string { return e.text }

// Unwrap returns [store.ErrNotFound].
func (*missing) Unwrap() error { return store.ErrNotFound }
