package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/holder"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/cmd/acp/internal/isolate"
	"github.com/goacp/acp/cmd/acp/internal/notify"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/serve"
	"github.com/goacp/acp/cmd/acp/internal/telemetry"
)

// A durable is a gateway and what it stands on.
type durable struct {
	*gateway.Gateway
	lock     *os.File
	log      *engine.Engine
	nodes    *cluster // nil if this is the only one
	keep     context.CancelFunc
	keeping  sync.WaitGroup
	devices  *identity.Store
	gate     *identity.Gate
	link     string // the id of the ticket that opens the page, or ""
	node     string
	tenants  *tenants
	notifier *notify.Notifier // nil if browsers get no notifications
	logger   *slog.Logger

	leaves    bool                 // the agents, to the next acp serve
	telemetry *telemetry.Telemetry // nil if nothing is observed
	metrics   *telemetry.Server    // likewise
}

// openDurable opens the gateway, with what belongs to this machine in the directory for state.
func (o *Options) openDurable(ctx context.Context, state string, agent roster.Agent, builtIn *acp.Agent) (_ *durable, err error) {
	dir := filepath.Join(state, "gateway")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	d := new(durable)
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if err := d.claim(ctx, &o.Own, dir); err != nil {
		return nil, err
	}
	node := o.Cluster.Node
	if node == "" {
		if node, err = nodeName(filepath.Join(dir, "node")); err != nil {
			return nil, err
		}
	}
	d.node, d.logger = node, o.App.Logger.With("node", node)
	o.Cluster.notice = o.note
	if d.log, err = o.Cluster.open(ctx, o.App, dir, o.alarm); err != nil {
		return nil, err
	}
	lease, err := d.log.Lease(ctx, node)
	if err != nil {
		return nil, err
	}
	a := o.App
	if d.devices, err = identity.Open(ctx, identity.Dir(state), a.Logger); err != nil {
		return nil, err
	}
	settings, err := a.Config()
	if err != nil {
		return nil, err
	}
	d.gate = &identity.Gate{Store: d.devices, Audit: audit.Open(identity.Dir(state)), Logger: a.Logger}
	if d.tenants, err = o.newTenants(settings, d.gate.Audit); err == nil {
		err = errors.Join(d.open(o, settings.Serve), d.openPush(ctx, &o.Web))
	}
	if err != nil {
		return nil, err
	}
	r, err := a.Roster()
	if err != nil {
		return nil, err
	}
	cfg := gateway.Config{
		Log: d.log, Lease: lease, Agent: agent.Name,
		Info: acp.Implementation{Name: "acp", Version: a.Version}, Logger: d.logger,
		MaxAgents: settings.Serve.LiveAgents, Policy: d.tenants.policy, Many: d.tenants.many, Audit: gateway.Audit{Shared: d.shared, Refused: d.refused, Decided: d.decided},
		Start: func(ctx context.Context, name, cwd string) (acp.Transport, error) {
			return o.start(ctx, d.tenants, agent, builtIn, name, cwd)
		},
	}
	cfg.Who, cfg.Failed, cfg.Extend = who, o.failed, d.extend()
	cfg.Knows, cfg.Gone = o.knows, holder.Gone
	cfg.Hold, cfg.Rehold = o.holders(d.tenants, agent, node)
	cfg.Agents, cfg.Titles, cfg.Installed = d.named(r, agent)
	cfg.Markdown, cfg.Waits = newMarkdown, d.waits()
	if here, err := os.Getwd(); err == nil && !d.tenants.many && filepath.Dir(here) != here { // and not that of a service
		cfg.Directory = here
	}
	if d.nodes, err = o.Cluster.join(ctx, &cfg); err != nil {
		return nil, errors.Join(err, lease.Release(ctx))
	}
	if err := d.observe(ctx, &o.Operation, &cfg); err != nil {
		return nil, errors.Join(err, lease.Release(ctx))
	}
	d.Gateway = gateway.New(cfg)
	keep, cancel := context.WithCancel(context.Background())
	d.keep = cancel
	d.keeping.Go(func() { d.Keep(keep) })
	if d.nodes != nil {
		d.nodes.serve(d.Gateway, &cfg)
	}
	if err := d.show(ctx, o); err != nil {
		return nil, err
	}
	return d, d.Recover(ctx)
}

// start returns the way to the agent of a name in a directory.
func (o *Options) start(
	ctx context.Context, t *tenants, agent roster.Agent, builtIn *acp.Agent, name, cwd string,
) (acp.Transport, error) {
	if name != agent.Name {
		var err error
		if agent, err = o.App.Hosted(name); err != nil {
			return nil, err
		}
	}
	to, err := o.App.Launch()
	if err != nil {
		return nil, err
	}
	to.Dir, to.Env, to.BuiltIn = cwd, traceEnv(ctx), builtIn
	to.Stderr = serve.Lines(func(line string) { o.said(name, line) })
	return t.start(ctx, agent, cwd, to)
}

// named returns the agents that sessions may name beside the one that is served, what people call all of them, and what
// reports whether they are installed.
func (d *durable) named(r *roster.Roster, agent roster.Agent) (names []string, titles map[string]string, installed func(string) bool) {
	names, titles = []string{agent.Name}, map[string]string{agent.Name: agent.Title}
	all := map[string]roster.Agent{agent.Name: agent}
	for _, known := range r.All() {
		if known.Name != agent.Name && !known.Builtin {
			names, titles[known.Name], all[known.Name] = append(names, known.Name), known.Title, known
		}
	}
	if d.tenants.isolate.Mode == isolate.Container { // they are in there
		return names, titles, nil
	}
	return names, titles, func(name string) bool {
		_, ok := roster.Installed(all[name])
		return ok
	}
}

// claim keeps others from serving the sessions in a directory.
func (d *durable) claim(ctx context.Context, own *Own, dir string) (err error) {
	if d.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	switch ok, err := own.lock(ctx, d.lock); {
	case err != nil && !errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("locking %s: %w", d.lock.Name(), err)
	case err == nil && !ok:
		return exitcode.Errorf(exitcode.Failed, "another acp serve keeps its sessions in %s: acp serve status shows it; use that one, or --stateless", dir)
	}
	return nil
}

// who says who a client is: the user, from a device that was paired, or anybody who has the token.
func who(ctx context.Context) gateway.Who {
	p, ok := identity.FromContext(ctx)
	switch {
	case ok:
	case isOwner(ctx):
		return gateway.Who{User: identity.CurrentUser(), Role: "owner", Rights: gateway.MayAll}
	default: // it is not known who that is
		return gateway.Who{}
	}
	return whoIs(p)
}

// whoIs says what a principal is for the gateway.
func whoIs(p identity.Principal) gateway.Who {
	who := gateway.Who{User: p.User, Name: p.Name, Role: p.Role.String(), Agent: p.Scope.Agent, Groups: p.Groups}
	for _, r := range [...]struct {
		right gateway.Rights
		has   bool
	}{
		{gateway.MayPrompt, p.May(identity.Prompter)},
		{gateway.MayApprove, p.May(identity.Approver)},
		{gateway.MayOperate, mayOperate(p)},
		{gateway.MayCommand, mayCommand(p)},
		{gateway.MayGrant, p.May(identity.Owner)},
	} {
		if r.has {
			who.Rights |= r.right
		}
	}
	if len(p.Scope.Sessions) > 0 {
		who.Session = p.Scope.Session
	}
	return who
}

// isOwner reports whether a client has the token of the server, or needs none.
func isOwner(ctx context.Context) bool {
	switch acphttp.Principal(ctx) {
	case "", serve.Owner:
		return true
	}
	return false
}

// announce makes known where devices are paired.
func (d *durable) announce(ctx context.Context, url, fingerprint string, page bool) error {
	if !strings.HasPrefix(url, "http") { // a socket is for the programs of the user
		return nil
	}
	return d.devices.Announce(ctx, identity.Endpoint{URL: url, Fingerprint: fingerprint, Page: page})
}

// holders starts agents in processes that outlive this one, where that is possible: an upgrade or a crash
// ends no turn then.
func (o *Options) holders(people *tenants, agent roster.Agent, node string) (
	hold func(context.Context, string, string) (gateway.Held, error),
	rehold func(context.Context, string, string, uint64) (gateway.Held, error),
) {
	dir := socketDir(node)
	if _, err := os.Executable(); err != nil || runtime.GOOS == "windows" || dir == "" {
		return nil, nil
	}
	hold = func(ctx context.Context, name, cwd string) (gateway.Held, error) {
		start := agent
		if name != agent.Name {
			var err error
			if start, err = o.App.Hosted(name); err != nil {
				return nil, err
			}
		}
		cmd, ok, err := people.held(ctx, start, cwd)
		if err != nil || !ok {
			return nil, err
		}
		cmd.Env = withTrace(ctx, cmd.Env)
		h, err := holder.Start(ctx, holder.Spec{Config: holder.Config{Dir: dir, Lease: o.Cluster.held(), Command: cmd}})
		if err != nil {
			return nil, err
		}
		return h, nil
	}
	rehold = func(ctx context.Context, socket, token string, seq uint64) (gateway.Held, error) {
		h, err := holder.Attach(ctx, socket, token, holder.State{Seq: seq})
		if err != nil {
			return nil, err
		}
		return h, nil
	}
	return hold, rehold
}

// socketDir returns where the sockets of agents are, or "" if there is no place for them.
func socketDir(node string) string {
	const longest = 60 // of the directory: the paths of sockets are short
	own := fmt.Sprintf("acp-%d", os.Getuid())
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		if dir = filepath.Join(dir, own, node); filepath.IsAbs(dir) && len(dir) <= longest {
			return dir
		}
	}
	return ""
}

// heldFor is how long agents wait for this program to be back.
const heldFor = time.Minute

// alarm says what the log finds wrong: with a session, or with "" as a whole.
func (o *Options) alarm(session string, err error) {
	if session != "" {
		err = fmt.Errorf("session %s: %w", session, err)
	}
	o.note(err.Error())
}

// Close ends the agents and closes everything. Clients must have left.
func (d *durable) Close() error {
	if d.leaves {
		// The process ends now, as if it was killed: that is how agents are left to the next one. What has not been
		// committed by then they send again.
		return d.hide()
	}
	var errs []error
	if d.Gateway != nil {
		errs = append(errs, d.Gateway.Close())
	}
	if d.keep != nil {
		d.keep()
		d.keeping.Wait()
	}
	errs = append(errs, d.nodes.leave(), d.hide())
	if d.Gateway != nil {
		if err := d.Lease().Release(context.Background()); !errors.Is(err, engine.ErrLapsed) {
			errs = append(errs, err)
		}
	}
	if d.log != nil {
		errs = append(errs, d.log.Close())
	}
	if dir := socketDir(d.node); dir != "" && d.node != "" { // or it would be that of others
		_ = os.Remove(dir) // if it is empty
		_ = os.Remove(filepath.Dir(dir))
	}
	if d.notifier != nil {
		d.notifier.Close()
	}
	if d.devices != nil {
		errs = append(errs, d.uninvite(), d.devices.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// nodeName returns the name of the node whose sessions are in a directory, made the first time. It becomes part of a
// path, so one in the file must be as those of the flag are.
func nodeName(file string) (string, error) {
	data, err := os.ReadFile(file)
	if name := strings.TrimSpace(string(data)); err == nil && name != "" {
		if !nodePattern().MatchString(name) {
			return "", fmt.Errorf("%s has %.80q, which is not the name of a node", file, name)
		}
		return name, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	name := "node-" + hex.EncodeToString(b[:])
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(f, name+"\n")
	if err == nil {
		err = f.Sync()
	}
	return name, errors.Join(err, f.Close())
}
