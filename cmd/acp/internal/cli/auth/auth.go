// Package auth is the command acp auth: it logs in to agents and out of them. Credentials are the
// agents' own; acp neither sees nor stores them. How each kind of login works is package backend's
// business.
package auth

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/pty"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// Verbs of the command.
const (
	verbStatus = "status"
	verbLogin  = "login"
	verbLogout = "logout"
)

// Options are the flags and arguments of the command.
type Options struct {
	App    *app.App
	Verb   string // status, login or logout
	Agent  string // name or command line; "" means the default agent
	Method string // the id of a login method; "" means that the user chooses
	JSON   bool
}

// NewCommand returns the command. If runF is not nil, it is called instead of the command itself.
func NewCommand(a *app.App, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{App: a}
	run := func(verb string) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			o.Verb = verb
			if len(args) > 0 {
				o.Agent = args[0]
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		}
	}
	cmd := &cobra.Command{
		Use: "auth", Short: "Log in to agents and out of them",
		Long: `Some agents require a login. Each offers one or more methods: the agent logs in itself,
perhaps with a browser; it reads variables in its environment; or it runs a program in
your terminal.

You rarely need these commands: when a conversation requires a login, acp logs in on its
own if no input is needed, and otherwise asks you if it can.`,
	}
	status := &cobra.Command{
		Use: "status [AGENT]", Short: "Show whether a login is needed, and the login methods",
		Args: cobra.MaximumNArgs(1), RunE: run(verbStatus),
	}
	status.Flags().BoolVar(&o.JSON, "json", false, "print one JSON object")
	login := &cobra.Command{
		Use: "login [AGENT]", Short: "Log in to an agent",
		Args: cobra.MaximumNArgs(1), RunE: run(verbLogin),
	}
	login.Flags().StringVar(&o.Method, "method", "", "log in by the method `ID`: see acp auth status")
	logout := &cobra.Command{
		Use: "logout [AGENT]", Short: "Log out of an agent",
		Args: cobra.MaximumNArgs(1), RunE: run(verbLogout),
	}
	cmd.AddCommand(status, login, logout)
	return cmd
}

// run logs in or out, or prints the state, as the verb says.
func (o *Options) run(ctx context.Context) (err error) {
	a := o.App
	agent, err := a.Agent(o.Agent)
	if err != nil {
		return err
	}
	front := backend.Frontend{Note: func(n backend.Note) {
		switch n.Kind {
		case backend.NoteSlow, backend.NoteLogin:
			fmt.Fprintln(a.Err, n.Text)
		}
	}}
	in, inOK := a.In.(*os.File)
	out, outOK := a.Out.(*os.File)
	if a.InTerminal && a.OutTerminal && inOK && outOK {
		front.RunInTerminal = func(ctx context.Context, cmd *exec.Cmd) error { return pty.Run(ctx, cmd, in, out) }
	} else if o.Verb == verbStatus {
		// Agents offer terminal logins only to clients that have a terminal. Status runs none of
		// them.
		front.RunInTerminal = func(context.Context, *exec.Cmd) error { return errors.ErrUnsupported }
	}
	if o.Verb == verbLogin {
		agent.Env = leaveBrowsers(agent.Env)
	}
	h, err := a.Open(ctx, agent, front)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	switch o.Verb {
	case verbLogin:
		return o.login(ctx, h)
	case verbLogout:
		if err := h.Logout(ctx); err != nil {
			if errors.Is(err, errors.ErrUnsupported) {
				return fmt.Errorf("%s does not support logging out", agent.Name)
			}
			return err
		}
		fmt.Fprintln(a.Out, "logged out of "+safetext.Line(agent.Name, 100))
		return nil
	}
	return o.status(ctx, h, agent.Name)
}

// leaveBrowsers returns env without the mark that makes acp end everything the agent has started.
// An agent that is started only to log in may open a browser or a key agent; those belong to the
// user and must outlive it.
func leaveBrowsers(env map[string]string) map[string]string {
	out := map[string]string{process.MarkVar: process.NoMark}
	for k, v := range env {
		if k != process.MarkVar {
			out[k] = v
		}
	}
	return out
}

// login logs in by the method of --method, of the agent's settings, the only one there is, or the
// one that the user chooses.
func (o *Options) login(ctx context.Context, h *backend.Host) error {
	methods := h.Conn().AuthMethods()
	name := safetext.Line(h.Agent().Name, 100)
	id := acp.AuthMethodID(o.Method)
	switch {
	case len(methods) == 0:
		return fmt.Errorf("%s offers no login method", name)
	case id == "" && h.Agent().Auth != "":
		id = acp.AuthMethodID(h.Agent().Auth)
	case id == "" && len(methods) == 1:
		id = backend.Describe(methods[0]).ID
	case id == "":
		var err error
		if id, err = o.choose(methods); err != nil {
			return err
		}
	}
	known := slices.ContainsFunc(methods, func(m acp.AuthMethod) bool { return backend.Describe(m).ID == id })
	if !known {
		return exitcode.Errorf(exitcode.Usage, "%s has no login method %q: see acp auth status %s", name, id, name)
	}
	if err := h.Login(ctx, id); err != nil {
		if wants, ok := errors.AsType[*backend.AuthError](err); ok && wants.Reason != "" {
			return exitcode.Errorf(exitcode.Auth, "cannot log in to %s by %s: %s", name, safetext.Line(string(id), 100), wants.Reason)
		}
		return err
	}
	if err := h.TryLogin(ctx); err != nil {
		return err
	}
	fmt.Fprintf(o.App.Out, "logged in to %s by %s\n", name, safetext.Line(string(id), 100))
	return nil
}

// choose asks the user which of several methods to use.
func (o *Options) choose(methods []acp.AuthMethod) (acp.AuthMethodID, error) {
	a := o.App
	var ids []string
	for _, m := range methods {
		ids = append(ids, safetext.Line(string(backend.Describe(m).ID), 60))
	}
	if !a.InTerminal || !a.ErrTerminal {
		return "", exitcode.Errorf(exitcode.Usage, "there are several login methods; choose one with --method: %s", strings.Join(ids, ", "))
	}
	for i, m := range methods {
		d := backend.Describe(m)
		fmt.Fprintf(a.Err, "%d. %s  %s\n", i+1, ids[i], safetext.Line(d.Name+"  "+d.Description, 120))
		if run := d.Command(); run != "" {
			fmt.Fprintf(a.Err, "   It runs %s\n", run)
		}
	}
	fmt.Fprint(a.Err, "Which one? ")
	line, err := bufio.NewReader(a.In).ReadString('\n')
	line = strings.TrimSpace(line)
	if n, bad := strconv.Atoi(line); bad == nil && n >= 1 && n <= len(methods) {
		return backend.Describe(methods[n-1]).ID, nil
	}
	if i := slices.Index(ids, line); i >= 0 {
		return backend.Describe(methods[i]).ID, nil
	}
	if err != nil || line == "" {
		return "", exitcode.Errorf(exitcode.Cancelled, "no login method was chosen")
	}
	return "", exitcode.Errorf(exitcode.Usage, "there is no login method %q", line)
}

// A Status is what acp auth status --json prints. Members may be added, but never change.
type Status struct {
	Agent    string `json:"agent"` // the name by which the user chose it
	Name     string `json:"name,omitempty"`
	Version  string `json:"version,omitempty"`
	Protocol int    `json:"protocol"`
	// State is what the agent reports: authenticated, unauthenticated, not_required or unknown.
	// For an agent that cannot report it, acp opens a session: if that is refused, State is
	// unauthenticated, and otherwise not_required.
	State    string    `json:"state"`
	Accounts []Account `json:"accounts"`
	Methods  []Method  `json:"methods"`
	// Error is the reason why the state is not known, or "".
	Error string `json:"error,omitempty"`
}

// An Account is an account that is logged in.
type Account struct {
	Label        string `json:"label"`
	Name         string `json:"name,omitempty"`
	Email        string `json:"email,omitempty"`
	Organization string `json:"organization,omitempty"`
	Active       *bool  `json:"active,omitempty"`
}

// A Method is a login method.
type Method struct {
	ID          string   `json:"id"`
	Kind        string   `json:"kind"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Variables   []string `json:"variables,omitempty"`
	Missing     []string `json:"missing,omitempty"` // required variables that are not set
	Link        string   `json:"link,omitempty"`
	Command     string   `json:"command,omitempty"` // what a terminal login runs, if it is not the agent's own program
}

// status prints the state of the login and the ways to log in.
func (o *Options) status(ctx context.Context, h *backend.Host, agent string) error {
	conn := h.Conn()
	info := conn.Agent()
	st := Status{
		Agent: agent, Name: info.Name, Version: info.Version, Protocol: conn.Version(),
		Accounts: []Account{}, Methods: []Method{},
	}
	for _, m := range conn.AuthMethods() {
		d := backend.Describe(m)
		out := Method{ID: string(d.ID), Kind: string(d.Kind), Name: d.Name, Description: d.Description, Link: d.Link, Missing: h.MissingVars(d), Command: d.Command()}
		for _, v := range d.Vars {
			out.Variables = append(out.Variables, v.Name)
		}
		st.Methods = append(st.Methods, out)
	}
	o.state(ctx, h, &st)
	if o.JSON {
		return json.NewEncoder(o.App.Out).Encode(st)
	}
	w := o.App.Out
	line := func(s string) string { return safetext.Line(s, 200) }
	fmt.Fprintf(w, "agent     %s (%s %s, protocol %d)\n", line(st.Agent), line(st.Name), line(st.Version), st.Protocol)
	fmt.Fprintf(w, "state     %s\n", line(map[string]string{
		"authenticated": "logged in", "unauthenticated": "a login is needed", "not_required": "no login is needed", "unknown": "not known",
	}[st.State]))
	if st.Error != "" {
		fmt.Fprintf(w, "          %s\n", line(st.Error))
	}
	for _, acc := range st.Accounts {
		fmt.Fprintf(w, "account   %s\n", line(strings.TrimSpace(acc.Label+" "+acc.Email)))
	}
	for _, m := range st.Methods {
		fmt.Fprintf(w, "method    %s  %s: %s\n", line(m.ID), m.Kind, line(m.Name))
		if m.Description != "" {
			fmt.Fprintf(w, "          %s\n", line(m.Description))
		}
		if m.Command != "" {
			fmt.Fprintf(w, "          runs %s\n", m.Command)
		}
		if len(m.Missing) > 0 {
			fmt.Fprintf(w, "          not set: %s\n", line(strings.Join(m.Missing, ", ")))
		}
	}
	if len(st.Methods) == 0 {
		fmt.Fprintln(w, "method    none")
	}
	return nil
}

// add takes what the agent reports.
func (st *Status) add(auth *acp.AuthStatus) {
	switch auth.State {
	case acp.AuthStateAuthenticated, acp.AuthStateUnauthenticated, acp.AuthStateNotRequired:
		st.State = string(auth.State)
	}
	for _, acc := range auth.Accounts {
		st.Accounts = append(st.Accounts, Account{acc.Label, acc.Name, acc.Email, acc.Organization, acc.Active})
	}
}

// state finds out whether a user is logged in. If the agent cannot report that, state opens a
// session and deletes or closes it again.
func (o *Options) state(ctx context.Context, h *backend.Host, st *Status) {
	conn := h.Conn()
	st.State = string(acp.AuthStateUnknown)
	auth, err := conn.AuthStatus(ctx)
	if err == nil {
		st.add(auth)
		return
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		st.Error = safetext.Line(err.Error(), 300)
		return
	}
	s, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: o.App.Cwd})
	switch {
	case errors.Is(err, jsonrpc.ErrAuthRequired):
		st.State = string(acp.AuthStateUnauthenticated)
	case err != nil:
		st.Error = safetext.Line(err.Error(), 300)
	default:
		st.State = string(acp.AuthStateNotRequired) // or the user is logged in already
		if pushed := h.AuthStatus(); pushed != nil && pushed.State == acp.AuthStateAuthenticated {
			st.add(pushed)
		}
		if s.Delete(ctx) != nil {
			_ = s.Close(ctx)
		}
	}
}
