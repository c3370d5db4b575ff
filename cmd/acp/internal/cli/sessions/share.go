package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/at"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// Share is the subcommand that shares a session of a gateway.
const Share Verb = "share"

// shareRoles are the roles that a user can be given.
var shareRoles = []string{gateway.RoleViewer, gateway.RolePrompter, gateway.RoleApprover, gateway.RoleOwner, gateway.RoleNone}

// shareCommand adds the flags and the help of acp sessions share.
func (o *Options) shareCommand(c *cobra.Command) {
	c.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	c.Long = `Share a session of a gateway with another user of it, or end that. Without a user, print
with whom it is shared. --at names the gateway.

  viewer    reads
  prompter  sends prompts too, and cancels those
  approver  answers the agent's questions too, and changes its options
  owner     may do everything, such as share and delete the session
  none      it is not shared any more

What a role permits is bounded by what the device of the user may do. A change counts at
once, also where the session is open.`
	c.Example = `  acp sessions share @1 jo viewer --at https://agents.example
  acp sessions share @1 jo none --at https://agents.example
  acp sessions share @1 --at https://agents.example`
}

// shareArgs takes the arguments of acp sessions share.
func shareArgs(o *Options, args []string) {
	o.IDs = args[:1]
	if len(args) == 3 {
		o.User, o.Role = args[1], args[2]
	}
}

// checkShareArgs refuses a user without a role.
func checkShareArgs(c *cobra.Command, args []string) error {
	if len(args) == 2 {
		return errors.New("which role? acp sessions share SESSION USER ROLE, where ROLE is " + strings.Join(shareRoles, ", "))
	}
	return cobra.RangeArgs(1, 3)(c, args)
}

// checkShare refuses what makes no sense.
func (o *Options) checkShare() error {
	o.At = cmp.Or(o.At, app.Own)
	switch {
	case o.Role != "" && !slices.Contains(shareRoles, o.Role):
		return fmt.Errorf("there is no role %q: %s", o.Role, strings.Join(shareRoles, ", "))
	}
	return nil
}

// shareAt shares a session of the gateway, and prints with whom it is shared.
func (o *Options) shareAt(ctx context.Context) error {
	h, _, err := at.Open(ctx, o.App, o.At)
	if err != nil {
		return err
	}
	defer h.Close()
	found, err := at.Find(ctx, h.Conn(), o.At, o.IDs[0], o.App.Cwd)
	if err != nil {
		return err
	}
	res, err := gateway.ShareMethod.Call(ctx, h.Conn().Conn(), &gateway.ShareRequest{SessionID: found.ID, User: o.User, Role: o.Role})
	switch {
	case errors.Is(err, jsonrpc.ErrMethodNotFound):
		return exitcode.Errorf(exitcode.Protocol, "that server shares no sessions: it is no gateway")
	case err != nil:
		return at.Refusal(err)
	}
	if o.JSON {
		data, err := json.Marshal(res)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(o.App.Out, "%s\n", safetext.JSON(data))
		return err
	}
	table := [][]string{{"USER", "ROLE"}, {safetext.Line(res.Owner, 100), gateway.RoleOwner}}
	for _, s := range res.Shares {
		table = append(table, []string{safetext.Line(s.User, 100), safetext.Line(s.Role, 20)})
	}
	return at.Table(o.App.Out, table, at.Width(o.App))
}
