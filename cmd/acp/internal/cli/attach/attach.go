// Package attach is the command acp attach: it lists what runs in a gateway, and opens one of its
// conversations, which others may watch at the same time. The conversation itself is package tui's screen or
// package plain's lines.
package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/ui/plain"
	"github.com/goacp/acp/cmd/acp/internal/ui/tui"
)

// Options are the flags and arguments of the command.
type Options struct {
	App     *app.App
	At      string // the gateway
	Session string // to open: an ID, the beginning of one, or a handle; "" lists what runs

	ReadOnly bool // send nothing
	All      bool // list idle sessions as well
	JSON     bool
	NoBell   bool
	// Now is the clock; nil means the real one.
	Now func() time.Time
}

const long = `Open a conversation that takes place in a gateway: your own one (see acp chat --detach), or
that of --at. It is shown from the beginning, with
what happens from now on. Others may have it open at the same time. Everybody sees the
prompts of the others; a question of the agent is put to everybody who may answer it,
and the first answer counts. When you leave, the agent works on.

Without SESSION, acp attach lists the sessions in which a turn runs or a question waits
for an answer; --all lists the others, too. SESSION is an ID, which may be abbreviated, - for
the latest session of this directory, or @N, which the list has in its first column.

Without a terminal, the conversation takes place line by line.`

// NewCommand returns the command. If runF is not nil, it is called instead of [Run].
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "attach [SESSION]",
		Short: "Open a conversation of a gateway, or list what runs there",
		Long:  long,
		Example: `  acp attach
  acp attach --at http://127.0.0.1:7842/acp
  acp attach 3f9a --at http://127.0.0.1:7842/acp
  acp attach - --read-only --at unix:/run/user/1000/acp.sock`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Session = ""
			if len(args) > 0 {
				o.Session = args[0]
			}
			if err := o.check(len(args) > 0); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.At, "at", "", app.AtUsage)
	f.BoolVar(&o.ReadOnly, "read-only", false, "watch only: send no prompts, answer no questions")
	f.BoolVar(&o.All, "all", false, "list all sessions, also those in which nothing happens")
	f.BoolVar(&o.JSON, "json", false, "list one JSON object per line, one for each session")
	f.BoolVar(&o.NoBell, "no-bell", false, "do not ring the bell when the agent needs you and the terminal has lost focus")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return at.Complete(cmd.Context(), a, cmp.Or(o.At, app.Own), begin), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// check refuses flags that do not belong together.
func (o *Options) check(named bool) error {
	switch {
	case named && o.Session == "":
		return exitcode.Errorf(exitcode.Usage, "SESSION is empty")
	case named && (o.All || o.JSON):
		return exitcode.Errorf(exitcode.Usage, "--all and --json are for the list of sessions: leave them out, or SESSION")
	case !named && o.ReadOnly:
		return exitcode.Errorf(exitcode.Usage, "--read-only needs a SESSION")
	}
	return nil
}

// Run lists what runs, or opens a conversation and returns when the user leaves.
func Run(ctx context.Context, o *Options) error {
	a := o.App
	h, agent, err := at.Open(ctx, a, o.At)
	if errors.Is(err, app.ErrNoOwn) && o.Session == "" && !o.JSON {
		_, err := fmt.Fprintln(a.Err, err.Error())
		return err
	}
	if err != nil {
		return err
	}
	if o.Session == "" {
		defer h.Close()
		return o.list(ctx, h)
	}
	found, err := at.Find(ctx, h.Conn(), agent.Name, o.Session, a.Cwd)
	_ = h.Close()
	if err != nil {
		return err
	}
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	agent.ReadOnly = o.ReadOnly
	if found.Cwd != "" {
		if _, err := os.Stat(found.Cwd); err == nil { // the files that are mentioned are those of the session
			a.Cwd = found.Cwd
		}
	}
	if cfg.UI.Plain || !a.InTerminal || !a.OutTerminal || os.Getenv("TERM") == "dumb" {
		return plain.Run(ctx, plain.Options{App: a, Agent: agent, Session: found.ID})
	}
	return tui.Run(ctx, tui.Options{App: a, Agent: agent, Session: found.ID, NoBell: o.NoBell})
}

// list prints what runs and what waits for an answer.
func (o *Options) list(ctx context.Context, h *backend.Host) error {
	a := o.App
	all, err := at.Sessions(ctx, h.Conn(), "")
	if err != nil {
		return err
	}
	shown := all
	if !o.All {
		shown = slices.DeleteFunc(slices.Clone(all), func(s at.Session) bool { return !s.Active() })
	}
	if len(shown) == 0 && !o.JSON {
		text := "no sessions"
		if len(all) > 0 {
			text = "nothing runs, and nothing waits for an answer; --all lists all sessions"
		}
		_, err := fmt.Fprintln(a.Err, text) // not an item of the list
		return err
	}
	now := time.Now()
	if o.Now != nil {
		now = o.Now()
	}
	return at.Print(a, shown, o.JSON, now)
}
