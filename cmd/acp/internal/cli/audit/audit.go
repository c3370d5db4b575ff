// Package audit is the command acp audit: it shows the audit log of a gateway, and checks that nobody has
// changed it.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// Options are the flags of the command.
type Options struct {
	App  *app.App
	Verb string // show or verify
	Dir  string // of the log; "" means the user's

	JSON          bool
	User, Session string // show only theirs
	Contains      string // the hash of an entry
}

const long = `A gateway writes into its audit log who has done what: which device was paired or revoked,
who has answered which permission request. Each entry has the hash of the one before, so
entries cannot be changed, removed or inserted unnoticed, except by writing all later ones
anew. What the last entry is, is kept beside the log, in audit.head, so a log that was deleted,
emptied or cut off is noticed, too. Whoever can write both can deceive both: keep the hash that
acp audit verify prints somewhere else, and check later that the log still contains it. The
newest 8 files of 16 MiB are kept.`

// NewCommand returns the command. If runF is not nil, it is called instead of the command itself.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	run := func(verb string) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, _ []string) error {
			o.Verb = verb
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		}
	}
	cmd := &cobra.Command{Use: "audit", Short: "Show and verify the audit log of a gateway", Long: long}
	show := &cobra.Command{Use: "show", Short: "Print the audit log, oldest entry first", Args: cobra.NoArgs, RunE: run("show")}
	f := show.Flags()
	f.BoolVar(&o.JSON, "json", false, "print one JSON object per entry")
	f.StringVar(&o.User, "user", "", "print the entries of the user `NAME` only")
	f.StringVar(&o.Session, "session", "", "print the entries of the session `ID` only")
	verify := &cobra.Command{
		Use: "verify", Short: "Check that the audit log was not changed", Args: cobra.NoArgs, RunE: run("verify"),
		Long: "Check that all entries of the audit log are as they were written, and that none is missing. The\nstatus is 1 if not, and if there is no log. The hash of the last entry is printed.",
	}
	verify.Flags().StringVar(&o.Contains, "contains", "", "check also that an entry has the hash `HASH`, as an earlier acp audit verify printed it")
	o.App.StateFlag(cmd.PersistentFlags())
	for _, sub := range []*cobra.Command{show, verify} {
		sub.Flags().StringVar(&o.Dir, "dir", "", "read the log in `DIR` instead of yours")
		_ = sub.MarkFlagDirname("dir")
		cmd.AddCommand(sub)
	}
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	dir := o.Dir
	if dir == "" {
		cfg, err := o.App.Config()
		if err != nil {
			return err
		}
		if cfg.Dirs.State == "" {
			return exitcode.Errorf(exitcode.Failed, "there is no home directory with an audit log; name its directory with --dir")
		}
		dir = identity.Dir(cfg.Dirs.State)
	} else if !filepath.IsAbs(dir) {
		dir = filepath.Join(o.App.Cwd, dir)
	}
	err := o.read(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) && o.Dir == "" {
		err = fmt.Errorf("%w%s", err, o.App.Elsewhere())
	}
	return err
}

// read shows or verifies the log in a directory.
func (o *Options) read(ctx context.Context, dir string) error {
	if o.Verb == "show" {
		return o.show(ctx, dir)
	}
	r, err := audit.Verify(dir, strings.ToLower(o.Contains))
	if err != nil {
		return err
	}
	out := o.App.Out
	if r.Entries == 0 {
		_, err = fmt.Fprintln(out, "the audit log is empty")
		return err
	}
	if r.Torn > 0 {
		fmt.Fprintf(o.App.Err, "the log ends within an entry that was being written: %d bytes\n", r.Torn)
	}
	_, err = fmt.Fprintf(out, "%d entries are as they were written, %d to %d; hash of the last one: %s\n", r.Entries, r.First, r.Last, r.Hash)
	return err
}

// maxText bounds a field that is shown, in cells.
const maxText = 300

// show prints the entries.
func (o *Options) show(ctx context.Context, dir string) error {
	enc := json.NewEncoder(o.App.Out)
	return audit.Read(dir, func(e audit.Entry) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if o.User != "" && e.User != o.User || o.Session != "" && e.Session != o.Session {
			return nil
		}
		if o.JSON {
			return enc.Encode(e)
		}
		who := e.User
		if e.Device != "" {
			who += "/" + e.Device
		}
		fields := []string{e.Time.Local().Format("2006-01-02 15:04:05"), who, e.Action, e.Outcome}
		for _, f := range [][2]string{{"session ", e.Session}, {"at ", e.Address}, {"shown ", e.Shown}, {"", e.Detail}} {
			if f[1] != "" {
				fields = append(fields, f[0]+f[1])
			}
		}
		for i, f := range fields {
			fields[i] = safetext.Line(f, maxText)
		}
		_, err := fmt.Fprintf(o.App.Out, "%d  %s\n", e.Seq, strings.Join(fields, "  "))
		return err
	})
}
