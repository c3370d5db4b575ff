package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/holder"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/cmd/acp/internal/isolate"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/policy"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/jsonrpc"
)

// People are the flags about who is served. They override the settings serve.oidc and serve.isolation.
type People struct {
	Issuer, Client, Isolation string
}

func (p *People) flags(f *pflag.FlagSet) {
	f.StringVar(&p.Issuer, "oidc-issuer", "", "accept tokens of the OpenID Connect issuer at `URL`; roles are those of its groups in the settings")
	f.StringVar(&p.Client, "oidc-client", "", "with --oidc-issuer: tokens must be for the client or the audience `ID`")
	f.StringVar(&p.Isolation, "isolation", "", "run agents in `MODE`: none, bwrap or container (default: the setting serve.isolation.mode)")
}

// apply adds the flags to the settings, before these are read.
func (p *People) apply(flags map[string]any) {
	for key, value := range map[string]string{"serve.oidc.issuer": p.Issuer, "serve.oidc.client": p.Client, "serve.isolation.mode": p.Isolation} {
		if value != "" && flags != nil {
			flags[key] = value
		}
	}
}

// isMany reports whether settings are for several users.
func isMany(c config.Serve) bool {
	if c.OIDC.Issuer != "" || len(c.Groups) > 0 {
		return true
	}
	me := identity.CurrentUser()
	for name := range c.Users {
		if name != me {
			return true
		}
	}
	return false
}

// tenants is what people may do, and what their agents run in.
type tenants struct {
	many     bool
	policies *policy.Set
	isolate  isolate.Config
	environ  []string // of the server
	builtIn  []string // arguments of this program that make it the built-in agent, in the directory cwd
	cwd      string
}

// newTenants checks what the settings say of people.
func (o *Options) newTenants(cfg *config.Config, log *audit.Log) (*tenants, error) {
	c := cfg.Serve
	if c.LiveAgents < 0 {
		return nil, exitcode.Errorf(exitcode.Usage, "serve.live_agents must not be negative")
	}
	t := &tenants{many: isMany(c), environ: os.Environ(), cwd: o.App.Cwd}
	var err error
	if t.builtIn, err = o.App.ServedArgs(); err != nil {
		return nil, err
	}
	t.isolate = isolate.Config{
		Mode: isolate.Mode(c.Isolation.Mode), NoNetwork: c.Isolation.NoNetwork, ReadOnly: c.Isolation.ReadOnly, Pass: c.Isolation.Pass,
		Template: c.Isolation.Container, Homes: filepath.Join(cfg.Dirs.State, "homes"),
	}
	if t.many && (t.isolate.Mode == isolate.None || t.isolate.Mode == "") {
		return nil, exitcode.Errorf(exitcode.Usage, "the settings serve.users, serve.groups or serve.oidc are for several users, whose agents must not reach each other's files: set --isolation bwrap or container")
	}
	if err := t.isolate.Check(); err != nil {
		return nil, exitcode.Errorf(exitcode.Usage, "serve.isolation: %w", err)
	}
	private := []string{cfg.Dirs.State}
	if t.many { // somebody who is alone may well have an agent edit the settings
		private = append(private, cfg.Dirs.Config)
	}
	t.policies, err = policy.New(c, policy.Options{
		Many: t.many, Private: private,
		Refused: func(user, reason, detail string) {
			log.Note(o.App.Logger, audit.Entry{User: user, Action: "policy.refused", Outcome: reason, Detail: detail})
		},
	})
	return t, exitcode.With(exitcode.Usage, err)
}

// rights adapts a policy to the gateway.
type rights struct{ *policy.Policy }

// Limits implements [gateway.Policy].
func (r rights) Limits() gateway.Limits { return gateway.Limits(r.Policy.Limits()) }

func (t *tenants) policy(user string, groups []string) gateway.Policy {
	return rights{t.policies.User(user, groups)}
}

// isolated reports whether agents run in something.
func (t *tenants) isolated() bool { return t.isolate.Mode != isolate.None && t.isolate.Mode != "" }

// check returns why an agent is not started for a user in a directory, or nil.
func (t *tenants) check(agent roster.Agent, dir string, tenant gateway.Tenant) error {
	if !t.isolated() && tenant.User != identity.CurrentUser() {
		return fmt.Errorf("this server does not isolate agents, so it starts none for %s: set --isolation bwrap or container", tenant.User)
	}
	if t.isolated() && agent.URL != "" && !t.policies.User(tenant.User, tenant.Groups).Names(agent.Name) {
		return fmt.Errorf("the agent %s runs elsewhere, with the server's credentials: the rights of %s must name it", agent.Name, tenant.User)
	}
	if agent.URL != "" || t.isolate.Mode == isolate.Container { // its directories are not those of this machine
		return nil
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the directory %s does not exist", dir)
	case err == nil && !info.IsDir():
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s is not a directory", dir)
	}
	return nil
}

// directories returns the directories of a session without links, or why its user may not work in them. The policy
// is asked at every start, since the user's agents may have replaced a directory by a link to anything meanwhile.
func (t *tenants) directories(tenant gateway.Tenant) ([]string, error) {
	of := t.policies.User(tenant.User, tenant.Groups)
	var all []string
	for _, dir := range tenant.Directories {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			err = of.Directory(real)
		}
		if err != nil {
			return nil, fmt.Errorf("the directory of the session: %w", err)
		}
		all = append(all, real)
	}
	return all, nil
}

// command returns the command of an agent for a user, isolated, with the environment of that user.
func (t *tenants) command(ctx context.Context, agent roster.Agent, dir string, tenant gateway.Tenant) (isolate.Command, error) {
	agent.LoginEnv = false // that of the server's user
	p, err := launch.Process(ctx, agent, dir)
	if err != nil {
		return isolate.Command{}, err
	}
	env, err := t.env(agent, tenant)
	if err != nil {
		return isolate.Command{}, err
	}
	workspaces, err := t.directories(tenant)
	if err != nil {
		return isolate.Command{}, err
	}
	if p.Dir == dir && len(workspaces) > 0 {
		p.Dir = workspaces[0]
	}
	return t.isolate.Wrap(isolate.Command{Path: p.Path, Args: p.Args, Dir: p.Dir}, isolate.Tenant{User: tenant.User, Workspaces: workspaces, Env: env}, t.environ)
}

// env returns what an agent gets of its settings and of those of its user. These count more.
func (t *tenants) env(agent roster.Agent, tenant gateway.Tenant) ([]string, error) {
	env := agent.Upon(nil)
	of := t.policies.User(tenant.User, tenant.Groups).Env()
	for _, name := range slices.Sorted(maps.Keys(of)) {
		value := of[name]
		source := remote.Source{}
		file, isFile := strings.CutPrefix(value, "file:")
		key, isKey := strings.CutPrefix(value, "keyring:")
		switch {
		case isFile:
			source.File = file
		case isKey:
			source.Keyring = key
		}
		if source.Named() {
			var err error
			if value, err = source.Token(); err != nil {
				return nil, fmt.Errorf("the variable %s of %s: %w", name, tenant.User, err)
			}
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}

// start starts an agent as a child of this process, or reaches one that runs elsewhere.
func (t *tenants) start(ctx context.Context, agent roster.Agent, dir string, o launch.Options) (acp.Transport, error) {
	tenant, _ := gateway.TenantOf(ctx)
	if err := t.check(agent, dir, tenant); err != nil {
		return nil, err
	}
	if !t.isolated() || agent.URL != "" {
		return launch.Transport(agent, o)
	}
	c, err := t.command(ctx, agent, dir, tenant)
	if err != nil {
		return nil, err
	}
	return &acp.CommandTransport{Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, Stderr: o.Stderr}, nil
}

// held returns the command of an agent in a process that outlives this one. It reports false for agents that start is for.
func (t *tenants) held(ctx context.Context, agent roster.Agent, dir string) (c holder.Command, ok bool, err error) {
	tenant, _ := gateway.TenantOf(ctx)
	if err := t.check(agent, dir, tenant); err != nil {
		return c, false, err
	}
	switch {
	case agent.URL != "":
		return c, false, nil
	case t.isolated():
		cmd, err := t.command(ctx, agent, dir, tenant)
		return holder.Command{Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env}, err == nil, err
	case agent.LoginEnv:
		return c, false, nil
	case agent.Builtin:
		self, err := os.Executable()
		args := t.builtIn
		if err == nil && len(agent.Proxies) > 0 {
			args, err = launch.Conducted(agent, t.cwd, append([]string{self}, args...)...)
		}
		return holder.Command{Path: self, Args: args, Dir: t.cwd}, err == nil, err
	case len(agent.Proxies) > 0:
		p, err := launch.Process(ctx, agent, dir)
		return holder.Command{Path: p.Path, Args: p.Args, Dir: p.Dir, Env: p.Env}, err == nil, err
	}
	cmd := agent.Transport(dir)
	return holder.Command{Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env}, true, nil
}

// shared notes in the audit log who was given a role in a session.
func (d *durable) shared(by, session, user, role string) {
	d.gate.Audit.Note(d.gate.Logger, audit.Entry{User: by, Action: "session.share", Session: session, Outcome: role, Detail: user})
}

// refused notes in the audit log what a client may not do.
func (d *durable) refused(r gateway.Refusal) {
	detail := r.Text
	if r.More > 0 {
		detail = fmt.Sprintf("%s (and %d times before)", detail, r.More)
	}
	d.gate.Audit.Note(d.gate.Logger, audit.Entry{User: r.User, Device: r.Device, Action: "role.refused", Session: r.Session, Outcome: r.Method, Detail: detail})
}

// mayCommand reports whether a client may name an agent by a command line: who could run the command without the server, and
// has lost nothing of that by a scope.
func mayCommand(p identity.Principal) bool {
	return p.May(identity.Owner) && (p.Kind == identity.KindDevice || p.Kind == identity.KindLocal) &&
		p.User == identity.CurrentUser() && len(p.Scope.Agents)+len(p.Scope.Sessions) == 0
}

// decided notes in the audit log how a question of an agent was answered.
func (d *durable) decided(session, by string, what *history.Decision) {
	outcome := "cancelled"
	switch {
	case what.Rejects():
		outcome = "rejected"
	case what.Outcome != outcome:
		outcome = "allowed"
	}
	e := audit.Entry{User: by, Device: what.By, Action: "permission.answer", Session: session, Outcome: outcome, Detail: what.Title}
	if what.Rule {
		e.User, e.Device, e.Detail = "", "", "a rule: "+e.Detail
	}
	d.gate.Audit.Note(d.gate.Logger, e)
}

// mayOperate reports whether a client may ask about nodes and drain them. A device of another user may not, whatever its
// role: that is about the sessions of its user.
func mayOperate(p identity.Principal) bool {
	return p.May(identity.Owner) && (p.Kind != identity.KindDevice || p.User == identity.CurrentUser())
}
