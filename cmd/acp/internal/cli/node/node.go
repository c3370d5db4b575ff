// Package node is the command acp node: it shows the servers that share a database, and has one give up its
// sessions. What a node is, and who may drain it, is package gateway's business.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// Verbs of the command.
const (
	verbStatus  = "status"
	verbDrain   = "drain"
	verbUndrain = "undrain"
	verbForget  = "forget"
)

// Options are the flags and arguments of the command.
type Options struct {
	App  *app.App
	Verb string // status, drain, undrain or forget
	Node string // to drain or to forget; "" means the one at At

	At        string // the value of --at; "" means the server of this machine
	TokenFile string
	JSON      bool
	Timeout   time.Duration // how long a drain may take; 0 means unlimited
}

const long = `Several acp serve that share a database (acp serve --db) are nodes: each takes the sessions
that it can run, and any of them serves any client. The commands ask one node, the one at
--at, and reach the others through it. Only an owner may use them: whoever has the token of
acp serve, or a device that was paired as owner.`

const longDrain = `Have a node give up its sessions, so that it can be stopped without ending a turn. From then
on it takes no session any more. Each session is given up when no turn runs in it and
nothing is asked; its next prompt runs on another node. The command ends when all are given
up. If it is interrupted, or the time is up (status 8), the node continues to give them up.`

// NewCommand returns the command. If runF is not nil, it is called instead of the command itself.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	run := func(verb string) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			o.Verb = verb
			if len(args) > 0 {
				o.Node = args[0]
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		}
	}
	cmd := &cobra.Command{Use: "node", Short: "Show, drain and forget the servers that share a database", Long: long}
	o.App.StateFlag(cmd.PersistentFlags())
	status := &cobra.Command{Use: "status", Short: "List the nodes", Args: cobra.NoArgs, RunE: run(verbStatus),
		Long: "List the nodes: which are live, and how many sessions and agents each has. A node that is not live has not\nrenewed its lease; others take its sessions. A ~ before a number says that the node did not answer within a\nsecond: it is what the node last said of itself.",
	}
	status.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object per node")
	drain := &cobra.Command{Use: "drain [NODE]", Short: "Have a node give up its sessions", Long: longDrain, Args: cobra.MaximumNArgs(1), RunE: run(verbDrain)}
	drain.Flags().DurationVar(&o.Timeout, "timeout", 0, "wait no longer than `TIME` (default: until all sessions are given up)")
	undrain := &cobra.Command{Use: "undrain [NODE]", Short: "Have a node take sessions again", Args: cobra.MaximumNArgs(1), RunE: run(verbUndrain)}
	forget := &cobra.Command{Use: "forget NODE", Short: "Remove a node that is gone from the list", Args: cobra.ExactArgs(1), RunE: run(verbForget),
		Long: "Remove a node that is gone from the list, as after a machine was replaced. Its sessions are not touched: others\ntake them. A node that was gone for a day is forgotten by itself, as soon as another one has something to say.",
	}
	for _, sub := range []*cobra.Command{status, drain, undrain, forget} {
		f := sub.Flags()
		f.StringVar(&o.At, "at", "", app.AtUsage+" (default: the server of this machine)")
		f.StringVar(&o.TokenFile, "token-file", "", "send the token in `FILE`")
		_ = sub.MarkFlagFilename("token-file")
		cmd.AddCommand(sub)
	}
	return cmd
}

func (o *Options) run(ctx context.Context) error {
	conn, name, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	switch o.Verb {
	case verbStatus:
		return o.status(ctx, conn, name)
	case verbForget:
		return o.forget(ctx, conn, name)
	}
	return o.drain(ctx, conn, name)
}

// connect connects to the server, and returns what to call it.
func (o *Options) connect(ctx context.Context) (*acp.ClientConn, string, error) {
	a := o.App
	at := o.At
	if at == "" {
		cfg, err := a.Config()
		if err != nil {
			return nil, "", err
		}
		if at, err = announced(ctx, cfg.Dirs.State, a); err != nil {
			return nil, "", err
		}
	}
	agent, err := a.At(at)
	if err != nil {
		return nil, "", err
	}
	if o.TokenFile != "" {
		agent.Remote.Token = remote.Source{File: o.TokenFile}
	}
	way, err := launch.Transport(agent, launch.Options{})
	if err != nil {
		return nil, "", err
	}
	client := &acp.Client{Info: acp.Implementation{Name: "acp", Version: a.Version}, Logger: a.Logger}
	conn, err := client.Connect(ctx, way)
	if err != nil {
		if said := remote.Explain(line(at), err); said != nil {
			err = said
		}
		return nil, "", err
	}
	return conn, line(at), nil
}

// announced returns the URL of the server of this machine.
func announced(ctx context.Context, state string, a *app.App) (url string, err error) {
	if state != "" {
		s, err := identity.Open(ctx, identity.Dir(state), a.Logger)
		if err != nil {
			return "", err
		}
		at, err := s.Endpoint(ctx)
		if err = errors.Join(err, s.Close()); err != nil {
			return "", err
		}
		url = at.URL
	}
	if url == "" {
		return "", exitcode.Errorf(exitcode.Usage, "no server is known on this machine; name one with --at URL%s", a.Elsewhere())
	}
	return url, nil
}

// explain says what the error of a call means.
func explain(name string, err error) error {
	said, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case ok && said.Code == jsonrpc.CodeMethodNotFound:
		return exitcode.Errorf(exitcode.Protocol, "%s is not a gateway: acp serve is one, unless it is started with --stateless", name)
	case ok && said.Code == jsonrpc.CodeInvalidParams:
		return exitcode.Errorf(exitcode.Usage, "%s", line(said.Message))
	case ok:
		return exitcode.Errorf(exitcode.Failed, "%s: %s", name, line(said.Message))
	}
	if e := remote.Explain(name, err); e != nil {
		return e
	}
	return err
}

// status prints all nodes.
func (o *Options) status(ctx context.Context, conn *acp.ClientConn, name string) error {
	res, err := gateway.NodesMethod.Call(ctx, conn.Conn(), &gateway.NodesRequest{})
	if err != nil {
		return explain(name, err)
	}
	if o.JSON {
		enc := json.NewEncoder(o.App.Out)
		for _, n := range res.Nodes {
			if err := enc.Encode(n); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(o.App.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tSTATE\tSESSIONS\tAGENTS\tSTARTED\tVERSION\tWORKSPACES")
	for _, n := range res.Nodes {
		state := "live"
		switch {
		case !n.Live:
			state = "gone"
		case n.Draining && n.Sessions == 0:
			state = "drained"
		case n.Draining:
			state = "draining"
		}
		this := ""
		if n.This {
			this = " *"
		}
		about := ""
		if n.Earlier {
			about = "~"
		}
		fmt.Fprintf(w, "%s%s\t%s\t%s%d\t%s%d\t%s\t%s\t%s\n", line(n.Name), this, state, about, n.Sessions, about, n.Agents,
			n.Started.Local().Format("2006-01-02 15:04"), line(n.Version), line(strings.Join(n.Workspaces, " ")))
	}
	return w.Flush()
}

// drain drains a node, or undoes that.
func (o *Options) drain(ctx context.Context, conn *acp.ClientConn, name string) error {
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, errTimeout)
		defer cancel()
	}
	res, err := gateway.DrainMethod.Call(ctx, conn.Conn(), &gateway.DrainRequest{Node: o.Node, Undo: o.Verb == verbUndrain})
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errTimeout):
		return exitcode.Errorf(exitcode.Timeout, "sessions are still busy after %s; the node gives them up as their turns end, see acp node status", o.Timeout)
	case err != nil && ctx.Err() != nil:
		return exitcode.With(exitcode.Cancelled, fmt.Errorf("the node continues to drain, see acp node status: %w", context.Cause(ctx)))
	case err != nil:
		return explain(name, err)
	case res.Draining:
		fmt.Fprintf(o.App.Out, "%s is drained: it can be stopped; acp node undrain makes it take sessions again\n", line(res.Node))
	default:
		fmt.Fprintf(o.App.Out, "%s takes sessions\n", line(res.Node))
	}
	return nil
}

// forget removes a node from the list.
func (o *Options) forget(ctx context.Context, conn *acp.ClientConn, name string) error {
	if _, err := gateway.ForgetMethod.Call(ctx, conn.Conn(), &gateway.ForgetRequest{Node: o.Node}); err != nil {
		return explain(name, err)
	}
	fmt.Fprintf(o.App.Out, "%s is forgotten\n", line(o.Node))
	return nil
}

// errTimeout is that a drain took too long.
var errTimeout = errors.New("the time is up")

// maxShown bounds a text that is shown, in cells.
const maxShown = 100

func line(text string) string { return safetext.Line(text, maxShown) }
