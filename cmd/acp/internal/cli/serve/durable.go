package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
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
}

// openDurable opens the gateway in a directory. lapsed is called if its sessions may have another owner.
func (o *Options) openDurable(ctx context.Context, dir string, agent roster.Agent, builtIn *acp.Agent, lapsed func(error)) (_ *durable, err error) {
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
	if ok, err := filelock.TryLock(d.lock, true); err == nil && !ok {
		return nil, exitcode.Errorf(exitcode.Failed, "another acp serve keeps its sessions in %s", dir)
	}
	node, err := nodeName(filepath.Join(dir, "node"))
	if err != nil {
		return nil, err
	}
	if d.log, err = sqlite.Open(ctx, dir, sqlite.Options{Options: engine.Options{Alarm: func(session string, err error) {
		o.note(fmt.Sprintf("session %s: %v", session, err))
	}}}); err != nil {
		return nil, err
	}
	if d.lease, err = d.log.Lease(ctx, node); err != nil {
		return nil, err
	}
	a := o.App
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
