// Package devices is the command acp devices: it pairs devices with a gateway, lists and revokes them,
// and joins a gateway with this machine. What a device is is package identity's business, how a
// credential is kept on the side of the device is package remote's.
package devices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// Verbs of the command.
const (
	verbList   = "list"
	verbPair   = "pair"
	verbRevoke = "revoke"
	verbJoin   = "join"
	verbLeave  = "leave"
)

// Options are the flags and arguments of the command.
type Options struct {
	App  *app.App
	Verb string // list, pair, revoke, join or leave
	Args []string
	JSON bool

	Paired bool // revoke what the devices have paired, too
	All    bool // revoke all

	Role, Name, User string        // of the new device; Name is also what this machine calls itself
	URL              string        // of the gateway; "" means what it has said itself
	Agents, Sessions []string      // the only ones that it may use
	Lifetime         time.Duration // of its credential; 0 means unlimited
	Fingerprint      string        // of the gateway's certificate
	Insecure         bool          // join without TLS
}

const long = `Each client of a gateway has a credential of its own: a phone, a laptop, a program. A
device gets it by being paired, has a role, and can be revoked alone. Its live
connections then end within a second.

  viewer    reads
  prompter  also sends prompts and cancels them
  approver  also answers permission requests
  owner     may do everything`

const longPair = `Make a ticket for one device, and wait until the device has used it. The ticket is valid
for two minutes and ends with this command.

In a terminal, acp shows a QR code. It has the URL of the gateway, the fingerprint of its
certificate if the gateway has made that itself, and the ticket, which is worth nothing by
itself: you approve the device here when it asks, or type the six digits on it. On another
computer, run the command that is shown instead. After five wrong codes the ticket is dead.`

const longJoin = `Join the gateway at URL with this machine. CODE is the six digits that acp devices pair
shows there. URL may be the link of acp devices pair; without CODE, somebody then has to
approve this machine there. The credential is kept in a file that only you can read, and is
used by acp chat URL, acp connect URL and the other commands.

A gateway that has made its certificate itself is recognized by the fingerprint in the
link, or that of --fingerprint.`

// NewCommand returns the command. If runF is not nil, it is called instead of the command itself.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	run := func(verb string) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			o.Verb, o.Args = verb, args
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		}
	}
	cmd := &cobra.Command{Use: "devices", Short: "Pair, list and revoke the devices of a gateway", Long: long}
	list := &cobra.Command{Use: "list", Short: "List the devices", Args: cobra.NoArgs, RunE: run(verbList)}
	list.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object per device")
	pair := &cobra.Command{
		Use: "pair", Short: "Give a device access to the gateway", Long: longPair, Args: cobra.NoArgs, RunE: run(verbPair),
		Example: `  acp devices pair
  acp devices pair --role viewer --name tablet --user jo --expires 24h`,
	}
	f := pair.Flags()
	f.StringVar(&o.Role, "role", "approver", "what the device may do: `ROLE` is viewer, prompter, approver or owner")
	f.StringVar(&o.Name, "name", "", "call the device `NAME` (default: what it calls itself)")
	f.StringVar(&o.User, "user", "", "the device belongs to the user `NAME` (default: you)")
	f.StringVar(&o.URL, "url", "", "the device reaches the gateway at `URL` (default: what the gateway says)")
	f.StringVar(&o.Fingerprint, "fingerprint", "", "the certificate at --url has this `SHA256`, and no authority vouches for it")
	f.StringArrayVar(&o.Agents, "only-agent", nil, "the device may use the agent `NAME` only (repeatable)")
	f.StringArrayVar(&o.Sessions, "only-session", nil, "the device may use the session `ID` only (repeatable)")
	f.DurationVar(&o.Lifetime, "expires", 0, "the credential ends after `TIME`, such as 24h (default: never)")
	f.BoolVar(&o.JSON, "json", false, "print one JSON object with the ticket, and one with the device")
	revoke := &cobra.Command{
		Use: "revoke [NAME…]", Short: "Take access away from devices", RunE: run(verbRevoke),
		Long: "Take access away from the devices with these names. Their credentials are refused from now on,\nand their live connections end within a second.",
	}
	revoke.Flags().BoolVar(&o.All, "all", false, "revoke all devices, and all tickets")
	revoke.Flags().BoolVar(&o.Paired, "with-paired", false, "revoke the devices that these have paired as well, and those that these have")
	join := &cobra.Command{
		Use: "join URL [CODE]", Short: "Join a gateway with this machine", Long: longJoin, Args: cobra.RangeArgs(1, 2), RunE: run(verbJoin),
		Example: `  acp devices join https://agents.example 123456
  acp chat --at https://agents.example`,
	}
	j := join.Flags()
	j.StringVar(&o.Name, "name", "", "call this machine `NAME` (default: its host name)")
	j.StringVar(&o.Fingerprint, "fingerprint", "", "accept the certificate with this `SHA256` only")
	j.BoolVar(&o.Insecure, "insecure", false, "join even if the credential is sent unencrypted to another machine")
	leave := &cobra.Command{
		Use: "leave URL", Short: "Remove the credential for a gateway from this machine", Args: cobra.ExactArgs(1), RunE: run(verbLeave),
		Long: "Remove the credential for the gateway at URL from this machine. It stays valid until it is\nrevoked there.",
	}
	o.App.StateFlag(cmd.PersistentFlags())
	cmd.AddCommand(list, pair, revoke, join, leave)
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	cfg, err := o.App.Config()
	if err != nil {
		return err
	}
	state := cfg.Dirs.State
	if state == "" {
		return exitcode.Errorf(exitcode.Failed, "there is no home directory to keep devices in")
	}
	switch o.Verb {
	case verbJoin:
		return o.join(ctx, state)
	case verbLeave:
		return o.leave(state)
	}
	if _, err := os.Stat(identity.Dir(state)); errors.Is(err, fs.ErrNotExist) && o.Verb != verbPair {
		return exitcode.Errorf(exitcode.Failed, "no gateway has kept devices in %s%s", identity.Dir(state), o.App.Elsewhere())
	}
	s, err := identity.Open(ctx, identity.Dir(state), o.App.Logger)
	if err != nil {
		return err
	}
	log := audit.Open(identity.Dir(state))
	switch o.Verb {
	case verbPair:
		err = o.pair(ctx, s, log)
	case verbRevoke:
		err = o.revoke(ctx, s, log)
	default:
		err = o.list(ctx, s)
	}
	return errors.Join(err, s.Close())
}

// maxShown bounds a text that is shown, in cells.
const maxShown = 100

func line(text string) string { return safetext.Line(text, maxShown) }

// when returns a time for people.
func when(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// list prints the devices.
func (o *Options) list(ctx context.Context, s *identity.Store) error {
	all, err := s.Devices(ctx)
	if err != nil {
		return err
	}
	if o.JSON {
		enc := json.NewEncoder(o.App.Out)
		for _, d := range all {
			if err := enc.Encode(d); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		fmt.Fprintln(o.App.Err, "no devices; to pair one: acp devices pair")
		return nil
	}
	w := tabwriter.NewWriter(o.App.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tUSER\tROLE\tCREATED\tLAST USED\tEXPIRES\tONLY")
	for _, d := range all {
		only := strings.Join(append(append([]string{}, d.Scope.Agents...), d.Scope.Sessions...), " ")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", line(d.Name), line(d.User), d.Role, when(d.Created), when(d.Used), when(d.Expires), line(only))
	}
	return w.Flush()
}

// revoke revokes the devices that were named, or all.
func (o *Options) revoke(ctx context.Context, s *identity.Store, log *audit.Log) error {
	if o.All == (len(o.Args) > 0) {
		return exitcode.Errorf(exitcode.Usage, "name the devices to revoke, or write --all; see acp devices list")
	}
	var gone []identity.Device
	var failed error
	if o.All {
		gone, failed = s.RevokeAll(ctx)
	}
	for _, name := range o.Args {
		d, err := s.Revoke(ctx, name)
		if errors.Is(err, identity.ErrNotFound) {
			err = exitcode.Errorf(exitcode.Usage, "there is no device %s; see acp devices list", line(name))
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		gone = append(gone, d)
		paired, err := s.Paired(ctx, d.ID)
		if err == nil && o.Paired {
			paired, err = s.RevokePaired(ctx, d.ID)
			gone, paired = append(gone, paired...), nil
		}
		failed = errors.Join(failed, err)
		for _, c := range paired {
			fmt.Fprintf(o.App.Err, "acp: %s has paired %s (user %s), which is not revoked: acp devices revoke %s\n", line(d.Name), line(c.Name), line(c.User), line(c.Name))
		}
	}
	for _, d := range gone {
		fmt.Fprintf(o.App.Out, "revoked %s (user %s)\n", line(d.Name), line(d.User))
		failed = errors.Join(failed, log.Append(audit.Entry{
			User: identity.CurrentUser(), Action: "device.revoke", Outcome: "done", Detail: fmt.Sprintf("device %s of %s", d.Name, d.User),
		}))
	}
	return failed
}
