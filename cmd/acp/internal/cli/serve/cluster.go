package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/postgres"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/gateway"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/node"
	"github.com/goacp/acp/cmd/acp/internal/own"
	"github.com/goacp/acp/jsonrpc"
)

// Cluster are the flags of a server that is one of several, which share a database.
type Cluster struct {
	Database   string        // postgres://…; "" means files of this machine
	Node       string        // the name of this server; "" means one that it has chosen the first time
	Listen     string        // where other nodes connect
	Address    string        // where they reach that, if it is another address
	Workspaces []string      // directories whose sessions this node takes
	Lease      time.Duration // how long the others wait for this node

	notice func(string) // is called with what a person should know of the log; nil discards it
}

// envDatabase has the database if there is no flag for it, since others can see flags.
const envDatabase = "ACP_DB"

func (c *Cluster) flags(f *pflag.FlagSet) {
	f.StringVar(&c.Database, "db", "", "keep sessions in the PostgreSQL database at `URL`, which several servers may share (default: $ACP_DB, or files)")
	f.StringVar(&c.Node, "node", "", "with --db: call this server `NAME`, which no other one has (default: a name that it keeps)")
	f.StringVar(&c.Listen, "node-listen", "", "with --db: other servers connect at `ADDR` (default 127.0.0.1 and any port)")
	f.StringVar(&c.Address, "node-address", "", "with --db: they reach it at `HOST:PORT` (default: where it listens)")
	f.StringArrayVar(&c.Workspaces, "workspace", nil, "with --db: run sessions in `DIR` and below (repeatable; default: wherever this machine has the directory)")
	f.DurationVar(&c.Lease, "node-lease", 0, "with --db: others take the sessions of this server if it is silent for `TIME` (default 10s)")
}

// leaseOfNodes is how long a node may be silent before others take its sessions.
const leaseOfNodes = 10 * time.Second

// nodePattern is what names of nodes are like: they are part of paths.
var nodePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$`) })

// check refuses flags that make no sense together.
func (c *Cluster) check() error {
	if c.Database == "" {
		c.Database = os.Getenv(envDatabase)
	}
	// No agent needs what gives access to everybody's sessions.
	if err := os.Unsetenv(envDatabase); err != nil {
		return err
	}
	if c.Database == "" {
		for name, given := range map[string]bool{
			"--node": c.Node != "", "--node-listen": c.Listen != "", "--node-address": c.Address != "", "--workspace": len(c.Workspaces) > 0, "--node-lease": c.Lease != 0,
		} {
			if given {
				return exitcode.Errorf(exitcode.Usage, "%s is for several servers that share a database: see --db", name)
			}
		}
		return nil
	}
	if scheme, _, ok := strings.Cut(c.Database, "://"); !ok || scheme != "postgres" && scheme != "postgresql" {
		return exitcode.Errorf(exitcode.Usage, "--db must be a URL that begins with postgres://")
	}
	if !nodePattern().MatchString(c.Node) && c.Node != "" {
		return exitcode.Errorf(exitcode.Usage, "--node: %q is not a name of up to 64 letters, digits, and - _ . inside", c.Node)
	}
	if c.Lease != 0 && c.Lease < 2*time.Second {
		return exitcode.Errorf(exitcode.Usage, "--node-lease must be 2s or longer")
	}
	for i, dir := range c.Workspaces {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		c.Workspaces[i] = abs
	}
	return nil
}

// open opens the log: that of this machine, or the database. dir is where this machine has what is not in the journals.
func (c *Cluster) open(ctx context.Context, a *app.App, dir string, alarm func(session string, err error)) (*engine.Engine, error) {
	if c.Database == "" {
		o, err := files(a)
		if err != nil {
			return nil, err
		}
		o.Alarm, o.Notice = alarm, c.notice
		return sqlite.Open(ctx, dir, own.Who(os.Getpid()), o)
	}
	lease := leaseOfNodes
	if c.Lease > 0 {
		lease = c.Lease
	}
	// The heads that this node has seen are in a file of its own: a database that loses its end does not
	// lose them.
	log, err := postgres.Open(ctx, c.Database, filepath.Join(dir, "heads-of-"+databaseName(c.Database)+".db"), engine.Options{LeaseTTL: lease, Alarm: alarm, Notice: c.notice, Says: gateway.Says})
	if err != nil {
		return nil, fmt.Errorf("--db: %w", err)
	}
	if err := os.Unsetenv("PGPASSWORD"); err != nil { // nor this, which the driver has read
		return nil, errors.Join(err, log.Close())
	}
	return log, nil
}

// files returns how sessions are kept in files: beside the conversations of this machine, unless those are not kept.
func files(a *app.App) (engine.Options, error) {
	dir, err := a.Journals()
	return engine.Options{Says: gateway.Says, Owner: identity.CurrentUser(), Journals: dir}, err
}

// held returns how long agents wait for this program to be back. In a cluster that must be less than the lease, which
// may be a third old when the program dies.
func (c *Cluster) held() time.Duration {
	switch {
	case c.Database == "":
		return heldFor
	case c.Lease > 0:
		return c.Lease / 2
	}
	return leaseOfNodes / 2
}

// A cluster is this node's part of one.
type cluster struct {
	*node.Listener
	stop context.CancelFunc
	work sync.WaitGroup
}

// join makes the gateway a node that others find.
func (c *Cluster) join(ctx context.Context, cfg *gateway.Config) (*cluster, error) {
	if c.Database == "" {
		return nil, nil
	}
	address := c.Listen
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := node.Listen(ctx, address, c.Address)
	if err != nil {
		return nil, fmt.Errorf("--node-listen: %w", err)
	}
	cfg.Nodes, cfg.Workspaces = l, c.Workspaces
	return &cluster{Listener: l}, nil
}

// serve serves the other nodes until the cluster is left.
func (c *cluster) serve(g *gateway.Gateway, cfg *gateway.Config) {
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	known := func(ctx context.Context, key string) (bool, error) {
		all, err := g.Members(ctx)
		return slices.ContainsFunc(all, func(n gateway.NodeInfo) bool { return n.Live && strings.Contains(string(n.Transport), `"`+key+`"`) }), err
	}
	c.work.Go(func() {
		err := c.Serve(ctx, known, func(ctx context.Context, s jsonrpc.Stream) error { return g.ServeNode(ctx, s) }, cfg.Logger)
		if err != nil {
			cfg.Logger.Error("other nodes are not served any more", "error", err)
		}
	})
}

// leave ends what serve has begun.
func (c *cluster) leave() error {
	if c == nil {
		return nil
	}
	err := c.Close()
	if c.stop != nil {
		c.stop()
	}
	c.work.Wait()
	return err
}

// databaseName returns a name for a file, from a URL: whatever is in it apart from the password.
func databaseName(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	rest, _, _ = strings.Cut(rest, "?")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	if _, path, ok := strings.Cut(rest, "/"); ok { // not the hosts: they may change
		rest = path
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, strings.ToLower(rest))
	if name == "" {
		return "postgres"
	}
	return name[:min(len(name), 64)]
}
