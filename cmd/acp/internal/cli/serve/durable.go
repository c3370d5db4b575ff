package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/holder"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/serve"
)

// A durable is a gateway and what it stands on.
type durable struct {
	*gateway.Gateway
	lock    *os.File
	log     *engine.Engine
	lease   *engine.Lease
	keep    context.CancelFunc
	keeping sync.WaitGroup
	devices *identity.Store
	gate    *identity.Gate
	node    string
}

// openDurable opens the gateway in the directory for state. lapsed is called if its sessions may have
// another owner.
func (o *Options) openDurable(ctx context.Context, state string, agent roster.Agent, builtIn *acp.Agent, lapsed func(error)) (_ *durable, err error) {
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
	if d.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	switch ok, err := filelock.TryLock(d.lock, true); {
	case err != nil && !errors.Is(err, errors.ErrUnsupported):
		return nil, fmt.Errorf("locking %s: %w", d.lock.Name(), err)
	case err == nil && !ok:
		return nil, exitcode.Errorf(exitcode.Failed, "another acp serve keeps its sessions in %s", dir)
	}
	node, err := nodeName(filepath.Join(dir, "node"))
	if err != nil {
		return nil, err
	}
	d.node = node
	if d.log, err = sqlite.Open(ctx, dir, sqlite.Options{Options: engine.Options{LeaseTTL: leaseTime, Alarm: func(session string, err error) {
		o.note(fmt.Sprintf("session %s: %v", session, err))
	}}}); err != nil {
		return nil, err
	}
	if d.lease, err = d.log.Lease(ctx, node); err != nil {
		return nil, err
	}
	a := o.App
	if d.devices, err = identity.Open(ctx, identity.Dir(state), a.Logger); err != nil {
		return nil, err
	}
	d.gate = &identity.Gate{Store: d.devices, Audit: audit.Open(identity.Dir(state)), Logger: a.Logger}
	r, err := a.Roster()
	if err != nil {
		return nil, err
	}
	cfg := gateway.Config{
		Log: d.log, Lease: d.lease, Agent: agent.Name, Agents: []string{agent.Name},
		Info: acp.Implementation{Name: "acp", Version: a.Version}, Logger: a.Logger,
		Start: func(_ context.Context, name, cwd string) (acp.Transport, error) {
			start := agent
			if name != agent.Name {
				var err error
				if start, err = a.Agent(name); err != nil {
					return nil, err
				}
			}
			return launch.Transport(start, launch.Options{Dir: cwd, Stderr: serve.Lines(func(line string) {
				o.note(name + ": " + line)
			}), BuiltIn: builtIn})
		},
	}
	cfg.Who = who
	cfg.Hold, cfg.Rehold = o.holders(agent, node)
	for _, known := range r.All() {
		if known.Name != agent.Name && !known.Builtin {
			cfg.Agents = append(cfg.Agents, known.Name)
		}
	}
	d.Gateway = gateway.New(cfg)
	keep, cancel := context.WithCancel(context.Background())
	d.keep = cancel
	d.keeping.Go(func() {
		if err := d.lease.Keep(keep); err != nil {
			lapsed(err)
		}
	})
	return d, d.Recover(ctx)
}

// who says who a client is: the user, from a device that was paired, or anybody who has the token.
func who(ctx context.Context) gateway.Who {
	p, ok := identity.FromContext(ctx)
	switch {
	case ok:
	case isOwner(ctx):
		return gateway.Who{User: identity.CurrentUser(), Prompt: true, Approve: true}
	default: // it is not known who that is
		return gateway.Who{}
	}
	who := gateway.Who{User: p.User, Prompt: p.May(identity.Prompter), Approve: p.May(identity.Approver), Agent: p.Scope.Agent}
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

// admit lets devices in that were paired.
func (d *durable) admit(cfg *serve.Config) {
	d.gate.Hosts, d.gate.Origins = cfg.Hosts, cfg.Origins
	cfg.Paths = map[string]http.Handler{identity.PairPath: d.gate.Handler()}
	cfg.Others = func(r *http.Request) (string, bool, error) {
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !identity.IsCredential(strings.TrimSpace(token)) {
			return "", false, nil
		}
		principal, err := d.gate.Authenticate(r)
		return principal, true, err
	}
	all := cfg.Serve
	devices := d.gate.Serve(all)
	cfg.Serve = func(ctx context.Context, t acp.Transport) error {
		if isOwner(ctx) {
			return all(ctx, t)
		}
		return devices(ctx, t) // which refuses whom it does not know
	}
}

// announce makes known where devices are paired.
func (d *durable) announce(ctx context.Context, url string) error {
	if !strings.HasPrefix(url, "http") { // a socket is for the programs of the user
		return nil
	}
	return d.devices.Announce(ctx, identity.Endpoint{URL: url})
}

// holders starts agents in processes that outlive this one, where that is possible: an upgrade or a crash
// ends no turn then.
func (o *Options) holders(agent roster.Agent, node string) (
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
			if start, err = o.App.Agent(name); err != nil {
				return nil, err
			}
		}
		if start.Builtin || start.URL != "" || start.LoginEnv {
			return nil, nil
		}
		t := start.Transport(cwd)
		h, err := holder.Start(ctx, holder.Spec{Config: holder.Config{
			Dir: dir, Lease: heldFor, Command: holder.Command{Path: t.Path, Args: t.Args, Dir: t.Dir, Env: t.Env},
		}})
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

// leaseTime is how long this program may do nothing, such as on a laptop that sleeps, before it gives its
// sessions up. Nobody else can claim them: the directory is locked.
const leaseTime = 365 * 24 * time.Hour

// heldFor is how long agents wait for this program to be back.
const heldFor = time.Minute

// Close ends the agents and closes everything. Clients must have left.
func (d *durable) Close() error {
	var errs []error
	if d.Gateway != nil {
		errs = append(errs, d.Gateway.Close())
	}
	if d.keep != nil {
		d.keep()
		d.keeping.Wait()
	}
	if d.lease != nil {
		if err := d.lease.Release(context.Background()); !errors.Is(err, engine.ErrLapsed) {
			errs = append(errs, err)
		}
	}
	if d.log != nil {
		errs = append(errs, d.log.Close())
	}
	if dir := socketDir(d.node); dir != "" {
		_ = os.Remove(dir) // if it is empty
		_ = os.Remove(filepath.Dir(dir))
	}
	if d.devices != nil {
		errs = append(errs, d.devices.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	return errors.Join(errs...)
}

// nodeName returns the name of the node whose sessions are in a directory, made the first time.
func nodeName(file string) (string, error) {
	data, err := os.ReadFile(file)
	if name := strings.TrimSpace(string(data)); err == nil && name != "" {
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
