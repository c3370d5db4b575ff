// Package cancel is the command acp cancel: it ends a turn that runs in a gateway.
package cancel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// Options are the flags and arguments of the command.
type Options struct {
	App     *app.App
	At      string // the gateway; "" means the user's own
	Session string // "" means the only one in which a turn runs
	Wait    time.Duration
}

const long = `Cancel the turn that runs in a session of a gateway: your own one (see acp chat --detach),
or that of --at. Without SESSION, it is the only session in which a turn runs. Prompts
that wait in the session stay, and the next one runs.

SESSION is an ID, which may be abbreviated, - for the latest session of this directory, or
@N for row N of acp sessions list --at. acp cancel waits until the turn has ended. The
status is 1 if no turn runs, and 8 if it has not ended in time.`

// NewCommand returns the command. If runF is not nil, it is called instead of [Run].
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	cmd := &cobra.Command{
		Use:   "cancel [SESSION]",
		Short: "Cancel a turn that runs in a gateway",
		Long:  long,
		Example: `  acp cancel
  acp cancel 3f9a --at http://127.0.0.1:7842/acp`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Session = ""
			if len(args) > 0 {
				if o.Session = args[0]; o.Session == "" {
					return exitcode.Errorf(exitcode.Usage, "SESSION is empty")
				}
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.At, "at", "", app.AtUsage)
	cmd.Flags().DurationVar(&o.Wait, "wait", 30*time.Second, "how long to wait for the end of the turn")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return at.Complete(cmd.Context(), a, cmp.Or(o.At, app.Own), begin), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// Run cancels a turn.
func Run(ctx context.Context, o *Options) error {
	h, agent, err := at.Open(ctx, o.App, o.At)
	if err != nil {
		return err
	}
	defer h.Close()
	c := h.Conn()
	found, err := o.find(ctx, c, agent.Name)
	if err != nil {
		return err
	}
	id := safetext.Line(string(found.ID), 100)
	if !found.Active() {
		return exitcode.Errorf(exitcode.Failed, "no turn runs in session %s", id)
	}
	s, err := c.Resume(ctx, found.ID, acp.SessionConfig{Cwd: cmp.Or(found.Cwd, o.App.Cwd)})
	if err != nil {
		return at.Refusal(err)
	}
	if err := s.Cancel(ctx); err != nil {
		return fmt.Errorf("cancelling the turn of session %s: %w", id, at.Refusal(err))
	}
	if err := o.ended(ctx, c, found.ID); err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.App.Err, "cancelled the turn of session %s\n", id)
	return err
}

// find returns the session that the user means.
func (o *Options) find(ctx context.Context, c *acp.ClientConn, where string) (at.Session, error) {
	if o.Session != "" {
		return at.Find(ctx, c, where, o.Session, o.App.Cwd)
	}
	all, err := at.Sessions(ctx, c, "")
	if err != nil {
		return at.Session{}, err
	}
	all = slices.DeleteFunc(all, func(s at.Session) bool { return !s.Active() })
	switch len(all) {
	case 0:
		return at.Session{}, exitcode.Errorf(exitcode.Failed, "no turn runs")
	case 1:
		return all[0], nil
	}
	return at.Session{}, exitcode.Errorf(exitcode.Usage, "a turn runs in %d sessions: name one; acp attach lists them", len(all))
}

// every is how often the gateway is asked whether the turn has ended.
const every = 50 * time.Millisecond

// ended waits until no turn runs in the session, or the time is over.
func (o *Options) ended(ctx context.Context, c *acp.ClientConn, id acp.SessionID) error {
	bound, cancel := context.WithTimeout(ctx, o.Wait)
	defer cancel()
	for {
		all, err := at.Sessions(bound, c, "")
		if err != nil && !errors.Is(bound.Err(), context.DeadlineExceeded) {
			return err
		}
		if err == nil {
			i := slices.IndexFunc(all, func(s at.Session) bool { return s.ID == id })
			if i < 0 || !all[i].Active() {
				return nil
			}
		}
		timer := time.NewTimer(every)
		select {
		case <-timer.C:
		case <-bound.Done():
			timer.Stop()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return exitcode.Errorf(exitcode.Timeout, "the turn was asked to end; after %v one still runs in session %s", o.Wait, safetext.Line(string(id), 100))
		}
	}
}
