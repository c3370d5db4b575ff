package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/own"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// Status is what acp serve status says.
type Status struct {
	own.Server
	Running int `json:"running"` // sessions in which a turn runs
	Waiting int `json:"waiting"` // sessions in which a question waits for an answer
	Stored  int `json:"stored"`  // all sessions
	Clients int `json:"clients"` // that are attached to sessions
}

// newStatus returns the command that shows the user's own gateway.
func newStatus(a *app.App) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the gateway of yours that runs on this machine",
		Long: `Show the gateway of yours that runs on this machine: one that acp chat --detach or acp
exec --no-wait has started in the background, or an acp serve. The status is 1 if none
runs.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := status(cmd.Context(), a)
			if err != nil {
				return err
			}
			return s.print(a, asJSON, time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// status asks the gateway how much happens in it.
func status(ctx context.Context, a *app.App) (*Status, error) {
	found, ok, err := a.FindOwn(ctx)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, exitcode.Errorf(exitcode.Failed, "%w%s", app.ErrNoOwn, a.Service())
	}
	agent, err := a.At(app.Own)
	if err != nil {
		return nil, err
	}
	h, err := a.Open(ctx, agent, backend.Frontend{})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	all, err := at.Sessions(ctx, h.Conn(), "")
	if err != nil {
		return nil, err
	}
	s := &Status{Server: found, Stored: len(all)}
	for i := range all {
		s.Clients += all[i].Here
		switch all[i].State {
		case at.Running:
			s.Running++
		case at.Waiting:
			s.Waiting++
		}
	}
	return s, nil
}

func (s *Status) print(a *app.App, asJSON bool, now time.Time) error {
	if asJSON {
		data, err := json.Marshal(s)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Out, "%s\n", safetext.JSON(data))
		return err
	}
	how := "acp serve"
	if s.Background {
		how = "in the background; ends by itself when nothing is left to keep"
	}
	table := [][]string{
		{"process", fmt.Sprintf("%d, for %v, %s", s.PID, max(now.Sub(s.Started), 0).Truncate(time.Second), how)},
		{"address", safetext.Line(s.URL, 300)},
		{"sessions", fmt.Sprintf("%d running, %d waiting for an answer, %d in all", s.Running, s.Waiting, s.Stored)},
		{"attached", fmt.Sprint(s.Clients)},
	}
	if s.Log != "" {
		table = append(table, []string{"log", safetext.Line(s.Log, 300)})
	}
	return at.Table(a.Out, table, at.Width(a))
}

// stopTime bounds how long acp serve stop waits.
const stopTime = 30 * time.Second

// newStop returns the command that ends the user's own gateway.
func newStop(a *app.App) *cobra.Command {
	force := false
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "End the gateway of yours that runs on this machine",
		Long: `End the gateway of yours that runs on this machine, and its agents: see acp serve status.
Its sessions are kept. If a turn runs or a question waits for an answer, --force is needed:
such turns end as cancelled. To restart a gateway without ending a turn, send it SIGTERM.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return stop(cmd.Context(), a, force) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "end it even if a turn runs")
	return cmd
}

func stop(ctx context.Context, a *app.App, force bool) error {
	s, err := status(ctx, a)
	switch {
	case errors.Is(err, app.ErrNoOwn):
		return err
	case err != nil && !force:
		return fmt.Errorf("%w; --force ends it without asking what runs", err)
	case err == nil && !force && s.Running+s.Waiting > 0:
		return exitcode.Errorf(exitcode.Failed, "sessions are at work: %d running, %d waiting for an answer; acp attach shows them, and --force ends them", s.Running, s.Waiting)
	}
	found, ok, err := a.FindOwn(ctx)
	if err != nil || !ok {
		return errors.Join(err, exitcode.With(exitcode.Failed, app.ErrNoOwn))
	}
	cfg, err := a.Config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	if err := own.Stop(ctx, cfg.Dirs.State, found); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Err, "the gateway has ended; its sessions are kept")
	return err
}
