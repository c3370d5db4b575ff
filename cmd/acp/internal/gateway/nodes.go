package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/sleep"
	"github.com/goacp/acp/jsonrpc"
)

// Nodes reaches the other nodes that share the log.
type Nodes interface {
	// Info says how this node can be reached.
	Info() json.RawMessage
	// Dial connects to a node that has said that of itself. What it serves with [Gateway.ServeNode] is at the
	// other end.
	Dial(ctx context.Context, info json.RawMessage) (jsonrpc.Stream, error)
}

// A NodeInfo is what a node says of itself.
type NodeInfo struct {
	Name string `json:"-"`
	Live bool   `json:"-"`

	Transport json.RawMessage `json:"transport,omitempty"`
	Version   string          `json:"version,omitempty"`
	Started   time.Time       `json:"started"`
	// Draining is set if the node takes no sessions any more.
	Draining bool `json:"draining,omitempty"`
	// Workspaces are the directories whose sessions it takes; none means all that it has.
	Workspaces []string `json:"workspaces,omitempty"`
	// Sessions are those it owns, Agents those that run.
	Sessions int `json:"sessions"`
	Agents   int `json:"agents"`
}

// has reports whether sessions in a directory belong on the node.
func (n *NodeInfo) has(dir string) bool {
	if len(n.Workspaces) == 0 {
		return true
	}
	return slices.ContainsFunc(n.Workspaces, func(root string) bool {
		rel, err := filepath.Rel(root, dir)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	})
}

// self returns what this node says of itself.
func (g *Gateway) self() NodeInfo {
	g.mu.Lock()
	defer g.mu.Unlock()
	info := NodeInfo{
		Name: g.lease.Node(), Live: true, Version: g.cfg.Info.Version, Started: g.started, Draining: g.draining,
		Workspaces: g.cfg.Workspaces, Sessions: len(g.sessions), Agents: min(g.agents, g.cfg.MaxAgents),
	}
	if g.cfg.Nodes != nil {
		info.Transport = g.cfg.Nodes.Info()
	}
	return info
}

// suits reports whether this node takes a session in a directory. One that has no workspaces takes those in
// directories that exist here.
func (g *Gateway) suits(dir string) bool {
	self := g.self()
	if self.Draining || !self.has(dir) {
		return false
	}
	if g.cfg.Nodes == nil || len(self.Workspaces) > 0 {
		return true
	}
	return g.exists(dir)
}

// exists reports whether this machine has something of a name.
func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// Members returns all nodes that are known, this one among them.
func (g *Gateway) Members(ctx context.Context) ([]NodeInfo, error) {
	if g.cfg.Nodes == nil {
		return []NodeInfo{g.self()}, nil
	}
	known, err := g.cfg.Log.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]NodeInfo, 0, len(known))
	for _, n := range known {
		info := NodeInfo{Name: n.Name, Live: n.Live}
		if err := json.Unmarshal(n.Info, &info); err != nil {
			g.cfg.Logger.Warn("gateway: what a node says of itself cannot be read", "node", n.Name, "error", err)
		}
		all = append(all, info)
	}
	return all, nil
}

// node returns what another node says of itself.
func (g *Gateway) node(ctx context.Context, name string) (NodeInfo, error) {
	all, err := g.Members(ctx)
	if err != nil {
		return NodeInfo{}, err
	}
	for _, n := range all {
		switch {
		case n.Name != name:
		case !n.Live:
			return NodeInfo{}, fmt.Errorf("node %s: %w", name, errAway)
		default:
			return n, nil
		}
	}
	return NodeInfo{}, fmt.Errorf("node %s: %w", name, errNoNode)
}

// errAway and errNoNode are why a node cannot be reached.
var (
	errAway   = errors.New("its lease has lapsed")
	errNoNode = errors.New("there is no such node")
)

// choose returns other nodes for a session in a directory, the best one first: that with the fewest agents.
func (g *Gateway) choose(ctx context.Context, dir string) ([]string, error) {
	all, err := g.Members(ctx)
	if err != nil {
		return nil, err
	}
	me := g.self().Name
	all = slices.DeleteFunc(all, func(n NodeInfo) bool { return n.Name == me || !n.Live || n.Draining || !n.has(dir) })
	sort.SliceStable(all, func(i, j int) bool { return all[i].Agents < all[j].Agents })
	names := make([]string, len(all))
	for i, n := range all {
		names[i] = n.Name
	}
	return names, nil
}

// visitAny visits a session that nobody owns on the first node that takes it: one without workspaces may not have its
// directory.
func (g *Gateway) visitAny(ctx context.Context, id, dir string, begin bool) (place, error) {
	nodes, err := g.choose(ctx, dir)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		v, failed := g.visit(ctx, node, id, begin)
		switch {
		case failed == nil:
			return v, nil
		case errors.Is(failed, errUnreached), errors.Is(failed, errAway):
			err = failed
		case !errors.Is(failed, errUnsuited):
			return nil, failed
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Failure{Message: "no node takes sessions in " + dir, Reason: "no_node", RetryAfter: 10 * time.Second}
}

// errUnsuited is why a node does not take a session that it does not own.
var errUnsuited = errors.New("the node does not take sessions in this directory")

// takes returns why another node cannot visit a session here, or nil: this node owns it, or suits. Whether a third node
// owns it is another question.
func (g *Gateway) takes(ctx context.Context, id string) error {
	draining := g.isDraining()
	if s := g.session(id); s != nil && (!draining || s.stays()) {
		return nil
	}
	info, err := g.cfg.Log.Session(ctx, id)
	if err != nil || g.suits(info.Cwd) {
		return err
	}
	owner, err := g.cfg.Log.Owner(ctx, id)
	if err == nil && (draining || owner != g.self().Name) {
		err = errUnsuited
	}
	return err
}

// open returns where a session runs: here, if no other node owns it and this one suits.
func (g *Gateway) open(ctx context.Context, id string) (place, error) {
	if g.cfg.Nodes == nil {
		p, err := placeOf(g.own(ctx, id))
		return p, openElsewhere(err)
	}
	if s := g.session(id); s != nil && (!g.isDraining() || s.stays()) {
		if s, err := g.own(ctx, id); err == nil || !errors.Is(err, engine.ErrOwned) {
			return placeOf(s, err)
		}
	}
	info, err := g.cfg.Log.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	if g.suits(info.Cwd) {
		if s, err := g.own(ctx, id); err == nil || !errors.Is(err, engine.ErrOwned) {
			return placeOf(s, err)
		}
	}
	node, err := g.cfg.Log.Owner(ctx, id)
	if err != nil {
		return nil, err
	}
	if node != "" && node != g.self().Name {
		switch v, err := g.visit(ctx, node, id, false); {
		case err == nil:
			return v, nil
		case !errors.Is(err, errAway) && !errors.Is(err, errGone):
			return nil, err
		}
	}
	// It belongs to nobody, and not here.
	return g.visitAny(ctx, id, info.Cwd, false)
}

// openElsewhere returns an error as clients read it if another program on this machine owns the session.
func openElsewhere(err error) error {
	owned, ok := errors.AsType[*journal.OwnedError](err)
	if !ok {
		return err
	}
	return &jsonrpc.Failure{
		Message: "the session is open in " + cmp.Or(owned.Who, "another program") + ": close it there first", Reason: "open", RetryAfter: 5 * time.Second,
	}
}

// stays reports whether the session is not about to be given up.
func (s *session) stays() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed
}

// reach is open for a client that comes: while a session moves, that takes time.
func (g *Gateway) reach(ctx context.Context, id string) (place, error) {
	bound, cancel := context.WithTimeout(ctx, moveTime)
	defer cancel()
	for {
		p, err := g.open(bound, id)
		if err == nil || g.cfg.Nodes == nil || errors.Is(err, ErrClosed) || errors.Is(err, engine.ErrNotFound) {
			return p, err
		}
		if !sleep.For(bound, moveAgain) {
			return nil, err
		}
	}
}

// anywhere calls use with the place where a session runs, and again with the next one if the session moves meanwhile. It
// looks for one every moveAgain, for moveTime.
func (g *Gateway) anywhere(ctx context.Context, id string, use func(p place) error) error {
	bound, cancel := context.WithTimeout(ctx, moveTime)
	defer cancel()
	for {
		p, err := g.reach(bound, id)
		late := err != nil && errors.Is(err, context.Cause(bound)) // which is nil before
		if err == nil {
			err = use(p)
		}
		switch {
		case !late && !errors.Is(err, errGone):
			return err
		case sleep.For(bound, moveAgain):
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			return errMoving
		}
	}
}

// placeOf keeps a nil pointer from becoming a place.
func placeOf(s *session, err error) (place, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// begin opens a session that is new, and its agent, here if this node suits.
func (g *Gateway) begin(ctx context.Context, id, dir string) (place, error) {
	if g.suits(dir) {
		s, err := g.own(ctx, id)
		if err == nil {
			_, err = s.backend(ctx, s.g.tenancy.lobby.patience())
		}
		return placeOf(s, err)
	}
	return g.visitAny(ctx, id, dir, true)
}

func (g *Gateway) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// Lease returns what entitles this process to own sessions.
func (g *Gateway) Lease() *engine.Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lease
}

const (
	// leaseAgain is how long a node waits that could not get a lease.
	leaseAgain = time.Second
	// tick is how often a node says what it does, and looks for turns that others have left.
	tick = 5 * time.Second
)

// Keep renews the lease until ctx ends. When it lapses, the sessions are given up and their agents killed at once,
// since others may own them soon; then a new lease is taken as soon as that is possible. It also finishes what
// nodes have left unfinished whose lease has lapsed. It returns when it has stopped, which Close does not wait for.
func (g *Gateway) Keep(ctx context.Context) {
	for {
		lapse := make(chan error, 1)
		lease := g.Lease()
		keep, stop := context.WithCancel(ctx)
		go func() { lapse <- lease.Keep(keep) }()
		left, err := g.attend(ctx, lapse)
		stop()
		if err == nil {
			<-left
			return
		}
		g.cfg.Logger.Error("gateway: all sessions are given up", "error", err)
		g.cfg.Observer.Happened(Event{Kind: EventLease, Why: "lapsed"})
		g.abandon(err)
		<-left
		if !g.renew(ctx, lease.Node()) {
			return
		}
	}
}

// attend does what is due from time to time until the lease lapses, with its error, or ctx ends, with nil. It returns
// at once then: what is due asks the database, which may be why the lease has lapsed. left ends when that has ended.
func (g *Gateway) attend(ctx context.Context, lapse <-chan error) (left <-chan struct{}, err error) {
	work, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.tend(work)
	}()
	return done, <-lapse
}

// tend says what the node does, and looks for turns that others have left, until ctx ends.
func (g *Gateway) tend(ctx context.Context) {
	due := time.NewTicker(tick)
	defer due.Stop()
	for g.cfg.Nodes == nil {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			g.settleLeft(ctx)
		}
	}
	for {
		g.describe(ctx)
		if g.isDraining() {
			g.yield()
		} else {
			if err := g.Recover(ctx); err != nil && ctx.Err() == nil {
				g.cfg.Logger.Warn("gateway: unfinished turns cannot be listed", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-due.C:
		}
	}
}

// settleLeft ends turns whose program was killed: chats, and runs of acp exec, on this machine.
func (g *Gateway) settleLeft(ctx context.Context) {
	left, err := g.cfg.Log.Listed(ctx, engine.Query{State: records.StateRunning, Limit: maxSettled})
	if err != nil && ctx.Err() == nil {
		g.cfg.Logger.Warn("gateway: unfinished turns cannot be listed", "error", err)
	}
	for _, info := range left.Sessions {
		if g.session(info.ID) != nil {
			continue
		}
		if who, err := g.cfg.Log.Owner(ctx, info.ID); err != nil || who != "" {
			continue
		}
		if _, err := g.own(ctx, info.ID); err != nil && !errors.Is(err, engine.ErrOwned) && ctx.Err() == nil {
			g.logger(info.ID).Warn("gateway: an unfinished turn cannot be ended", "error", err)
		}
	}
}

// maxSettled bounds the turns that are ended at a time.
const maxSettled = 100

// describe stores what this node says of itself.
func (g *Gateway) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tick)
	defer cancel()
	if err := g.Lease().Describe(ctx, encode(g.self())); err != nil && ctx.Err() == nil {
		g.cfg.Logger.Warn("gateway: other nodes cannot find this one", "error", err)
	}
}

// renew takes a new lease. It reports false if ctx ends before.
func (g *Gateway) renew(ctx context.Context, node string) bool {
	for {
		try, cancel := context.WithTimeout(ctx, tick)
		lease, err := g.cfg.Log.Lease(try, node)
		cancel()
		if err == nil {
			g.mu.Lock()
			g.lease = lease
			g.mu.Unlock()
			g.cfg.Observer.Happened(Event{Kind: EventLease, Why: "taken"})
			return true
		}
		if !sleep.For(ctx, leaseAgain) {
			return false
		}
	}
}

// abandon gives all sessions up.
func (g *Gateway) abandon(err error) {
	for _, s := range g.all() {
		s.abandon(err)
	}
}

// Drain makes the node take no sessions any more, and gives up those it owns, each when no turn runs in it and nothing
// is asked. It returns when all are given up, with the error of ctx, or when Undrain is called.
func (g *Gateway) Drain(ctx context.Context) error {
	if g.cfg.Nodes == nil {
		return errors.New("there is no other node")
	}
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	g.describe(ctx)
	again := time.NewTicker(drainAgain)
	defer again.Stop()
	for {
		left := g.yield()
		if left == 0 {
			g.describe(ctx)
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%d sessions are busy: %w", left, context.Cause(ctx))
		}
		if !g.isDraining() {
			return errUndrained
		}
	}
}

// errUndrained is why a node has not given up all its sessions.
var errUndrained = errors.New("the node takes sessions again")

// yield gives up the sessions that do nothing. It returns how many it had before.
func (g *Gateway) yield() int {
	sessions := g.all()
	for _, s := range sessions {
		if g.isDraining() {
			s.yield()
		}
	}
	return len(sessions)
}

// all returns the sessions of this process.
func (g *Gateway) all() []*session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.sessions))
}

// Undrain makes the node take sessions again.
func (g *Gateway) Undrain(ctx context.Context) {
	g.mu.Lock()
	g.draining = false
	g.mu.Unlock()
	g.describe(ctx)
}

// drainAgain is how often a node that drains looks whether a turn has ended.
const drainAgain = 100 * time.Millisecond
