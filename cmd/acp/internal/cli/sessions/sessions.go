// Package sessions is the command acp sessions: what is known of earlier conversations, here and by
// the agents.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// A Verb is what the command does.
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

// Options are what the command is told to do.
type Options struct {
	App   *app.App
	Verb  Verb
	IDs   []string // of sessions, or their beginnings
	Words string   // to search for

	// Here leaves only sessions of the directory App works in, All and Limit say how many.
	Here   bool
	All    bool
	Limit  int
	Remote bool // ask the agent too
	Local  bool // do not
	// Wait bounds asking the agent.
	Wait time.Duration

	JSON     bool
	Markdown bool
	Format   export.Format // "" is by the name of the file
	File     string        // "" is standard output
	Force    bool          // write over the file
	Yes      bool          // do not ask
	AgentToo bool          // delete it there, too

	// ResumeSession opens a conversation on a session; nil cannot.
	ResumeSession func(context.Context, store.Session) error
	// Connect connects to the agent of a name; nil is by App.
	Connect func(ctx context.Context, agent string) (Remote, error)
	// Now is the clock; nil is the real one.
	Now func() time.Time
	// Width is that of the terminal in cells; 0 asks it.
	Width int
}

// A Remote is what an agent knows of its sessions.
type Remote interface {
	Sessions(ctx context.Context) ([]acp.SessionInfo, error)
	Delete(ctx context.Context, id acp.SessionID) error
	io.Closer
}

// NewCommand returns the command; runF, if not nil, runs in place of it. Nothing can be resumed: see
// [NewCommandResume].
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	return NewCommandResume(a, nil, runF)
}

// NewCommandResume is like [NewCommand], with the function that opens a conversation on a session.
func NewCommandResume(a *app.App, resume func(context.Context, store.Session) error, runF func(context.Context, *Options) error) *cobra.Command {
	if runF == nil {
		runF = Run
	}
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, search, resume and delete earlier conversations",
		Long: `Conversations are kept on this machine as they happen. Agents may know more of them.

ID is the id that the agent gave the session, or the unique id of the conversation:
acp sessions list --json prints both. You may abbreviate it as long as it is
unambiguous; --agent helps if two agents use the same ids. If an agent gave several
sessions the same id, it means the latest one; the list shows the others by the ids of
their conversations.`,
		Aliases: []string{"session"},
	}
	add := func(verb Verb, use, short string, args cobra.PositionalArgs, set func(*Options, *cobra.Command), take func(*Options, []string)) {
		o := &Options{App: a, Verb: verb, ResumeSession: resume}
		sub := &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
			if take != nil {
				take(o, args)
			}
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
		cmd.AddCommand(sub)
	}
	ids := func(o *Options, args []string) { o.IDs = args }
	add(List, "list", "List sessions, the latest first", cobra.NoArgs, (*Options).listCommand, nil)
	add(Show, "show ID", "Print a conversation", cobra.ExactArgs(1), (*Options).showCommand, ids)
	add(Resume, "resume ID", "Resume a conversation", cobra.ExactArgs(1), nil, ids)
	add(Export, "export ID", "Write a conversation to a file or to standard output", cobra.ExactArgs(1), func(o *Options, c *cobra.Command) {
		f := c.Flags()
		f.Var(&formatFlag{&o.Format}, "format", "markdown, html, json or text (default: by the name of the file, else markdown)")
		f.StringVarP(&o.File, "output", "o", "", "write to `FILE` instead of standard output")
		f.BoolVar(&o.Force, "force", false, "write over FILE if it is there")
		_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"markdown", "html", "json", "text"}, cobra.ShellCompDirectiveNoFileComp))
	}, ids)
	add(Delete, "delete ID...", "Delete what was kept of conversations", cobra.MinimumNArgs(1), func(o *Options, c *cobra.Command) {
		f := c.Flags()
		f.BoolVarP(&o.Yes, "yes", "y", false, "do not ask")
		f.BoolVar(&o.AgentToo, "agent-too", false, "have the agent delete them as well")
		f.BoolVar(&o.Local, "local", false, "delete only what was kept here (the default)")
		f.DurationVar(&o.Wait, "wait", 15*time.Second, "how long to wait for the agent")
		c.MarkFlagsMutuallyExclusive("agent-too", "local")
	}, ids)
	add(Search, "search WORDS", "Find sessions by words in titles and messages", cobra.MinimumNArgs(1), func(o *Options, c *cobra.Command) {
		o.listFlags(c)
		c.Long = `Find sessions that were kept on this machine by words. Each word must be in the
title or in what was said, as the beginning of a word; letter case and accents
do not matter.`
		c.ValidArgsFunction = nil
	}, func(o *Options, args []string) { o.Words = strings.Join(args, " ") })
	return cmd
}

// listCommand sets what acp sessions list has of its own.
func (o *Options) listCommand(c *cobra.Command) {
	o.listFlags(c)
	f := c.Flags()
	f.BoolVar(&o.Remote, "remote", false, "ask the agent for the sessions it knows, too; --agent alone does as well")
	f.BoolVar(&o.Local, "local", false, "ask no agent")
	f.DurationVar(&o.Wait, "wait", 15*time.Second, "how long to wait for the agent")
	c.Long = `List sessions, the latest first: those that were kept on this machine and, with
--agent or --remote, those that the agent knows. The column FROM then says who
knows each: stored, agent or both. If the agent cannot be asked, or does not answer
in time, the list still has what was kept here, and the exit status is not 0.`
}

// showCommand sets what acp sessions show has of its own.
func (o *Options) showCommand(c *cobra.Command) {
	c.Flags().BoolVar(&o.JSON, "json", false, "print the JSON form of acp sessions export")
	c.Flags().BoolVar(&o.Markdown, "markdown", false, "print it as Markdown")
	c.MarkFlagsMutuallyExclusive("json", "markdown")
	c.Long = `Print a conversation

The conversation is printed as it was kept on this machine. History that the agent
replayed when the session was continued, and that was not kept before, stands at its
end and is marked. A turn that did not end normally is followed by how it ended:
cancelled, failed and why, or not at all. Of the output of a command the first and the
last MiB are kept, with the size of the gap.`
}

// listFlags adds the flags that list and search share.
func (o *Options) listFlags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&o.Here, "here", false, "only those of the current directory (or that of --cwd)")
	f.BoolVar(&o.All, "all", false, "all, not only the latest")
	f.IntVarP(&o.Limit, "limit", "n", 50, "at most `N`; 0 is all")
	f.BoolVar(&o.JSON, "json", false, "print an object for each session, one in each line")
	c.MarkFlagsMutuallyExclusive("all", "limit")
}

// A formatFlag is the value of --format.
type formatFlag struct{ f *export.Format }

// String implements pflag.Value.
func (v *formatFlag) String() string { return string(*v.f) }

// Type implements pflag.Value.
func (v *formatFlag) Type() string { return "FORMAT" }

// Set implements pflag.Value.
func (v *formatFlag) Set(s string) (err error) {
	*v.f, err = export.ParseFormat(s)
	return err
}

// check finds what is wrong with the options before anything is done.
func (o *Options) check() error {
	switch {
	case o.Limit < 0:
		return errors.New("--limit must not be negative")
	case o.Verb == Search && !hasWord(o.Words):
		return errors.New("there is no word to search for")
	case o.Verb == List && o.Remote && o.Local:
		return errors.New("--remote and --local exclude each other")
	}
	for _, id := range o.IDs {
		if id == "" {
			return errors.New("a session's id is empty")
		}
	}
	if o.Verb == Export && o.Format == "" {
		o.Format = export.Markdown
		if o.File != "" && o.File != "-" {
			var err error
			o.Format, err = export.FormatOf(o.File)
			return err
		}
	}
	return nil
}

// agent is the name that --agent gives, or "".
func (o *Options) agent() string {
	name, _ := o.App.Flags["agent"].(string)
	return name
}

// Run does what the options say.
func Run(ctx context.Context, o *Options) error {
	switch o.Verb {
	case List:
		return o.list(ctx)
	case Search:
		return o.search(ctx)
	case Delete:
		return o.delete(ctx)
	}
	st, err := o.store(ctx)
	if err != nil {
		return err
	}
	s, err := o.find(ctx, st, o.IDs[0])
	if err != nil {
		return err
	}
	switch o.Verb {
	case Show:
		return o.show(ctx, st, s)
	case Export:
		return o.export(ctx, st, s)
	case Resume:
		if o.ResumeSession == nil {
			return errors.New("this build has no conversation to resume in")
		}
		return o.ResumeSession(ctx, s)
	}
	return fmt.Errorf("unknown verb %q", string(o.Verb))
}

// store returns the store, which must be there.
func (o *Options) store(ctx context.Context) (*store.Store, error) {
	st, err := o.App.Store(ctx)
	if err == nil && st == nil {
		err = errors.New("no conversations are kept: the store is turned off or cannot be opened")
	}
	return st, err
}

// find returns the session that an id or its beginning means.
func (o *Options) find(ctx context.Context, st *store.Store, id string) (store.Session, error) {
	s, err := st.Find(ctx, o.agent(), id)
	if errors.Is(err, store.ErrNotFound) {
		of := ""
		if a := o.agent(); a != "" {
			of = " of " + safetext.Line(a, 100)
		}
		return s, &missing{fmt.Sprintf("there is no session %q%s; acp sessions list shows those there are", safetext.Line(id, 100), of)}
	}
	return s, err
}

// complete completes ids of sessions for the shell. It never says why it cannot.
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

// missing is the error that there is no such session, in words that say it once.
type missing struct{ text string }

func (e *missing) Error() string { return e.text }

// Unwrap returns [store.ErrNotFound].
func (*missing) Unwrap() error { return store.ErrNotFound }
