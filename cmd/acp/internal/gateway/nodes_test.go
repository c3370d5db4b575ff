package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/node"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/logtest"
	"github.com/goacp/acp/internal/long"
)

// A member is a node of a cluster in this process.
type member struct {
	*rig
	name    string
	net     *node.Listener
	keeping context.CancelFunc
	serving context.CancelFunc
	work    sync.WaitGroup
	dead    bool
}

// leaseOfTests does not lapse, however busy the machine: some tests do not renew it. lapsingLease is for tests in which a
// node notices that it cannot renew its lease, which it tries three times in that time.
const (
	leaseOfTests = time.Hour
	lapsingLease = 8 * time.Second
)

// A hung database does not answer what is due from time to time, once hang is closed, not even when its context
// ends, until release is.
type hung struct {
	engine.Database
	hang, release chan struct{}
}

func (h *hung) ListSessions(ctx context.Context, q engine.Query, after engine.Position, n int) ([]engine.Session, error) {
	select {
	case <-h.hang:
		<-h.release
	default:
	}
	return h.Database.ListSessions(ctx, q, after, n)
}

// A refusing database refuses to append, some times.
type refusing struct {
	engine.Database
	times atomic.Int64
}

func (r *refusing) Append(ctx context.Context, b []engine.Batch) ([]bool, error) {
	if r.times.Add(-1) >= 0 {
		return nil, errors.New("the server starts")
	}
	return r.Database.Append(ctx, b)
}

// TestStateRefused: a turn begins, and ends as it has ended, although neither could be kept at first, and the session has the
// state that belongs to it.
func TestStateRefused(t *testing.T) {
	dir := t.TempDir()
	r, goOn := new(refusing), make(chan struct{})
	a := joinedMember(t, dir, "a", logOver(t, dir, leaseOfTests, &r.Database, r), talking(goOn))
	c := a.connect(1)
	s := c.new(t)
	is := func(want string) {
		t.Helper()
		if info, err := a.log.Session(t.Context(), string(s.ID())); err != nil || info.State != want {
			t.Errorf("state %q, want %q, %v", info.State, want, err)
		}
	}
	refusals := int64(1) // the engine tries again at once
	if long.All() {
		refusals = 3 // and the gateway later
	}
	r.times.Store(refusals)
	running := s.Prompt(t.Context(), acp.Text("wait one"))
	c.seen.until(t, "agent: waiting")
	is(records.StateRunning)
	left := r.times.Load()
	r.times.Store(refusals)
	close(goOn)
	if res, err := running.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
		t.Error(res, err)
	}
	is(records.StateIdle)
	if left >= 0 || r.times.Load() >= 0 {
		t.Errorf("%d and %d refusals are left", left+1, r.times.Load()+1)
	}
}

// TestLapseWhileHung: a node whose database hangs notices that its lease has lapsed, and gives its sessions up.
func TestLapseWhileHung(t *testing.T) {
	dir := t.TempDir()
	h := &hung{hang: make(chan struct{}), release: make(chan struct{})}
	log := logOver(t, dir, lapsingLease, &h.Database, h)
	release := sync.OnceFunc(func() { close(h.release) })
	defer release()
	a := joinedMember(t, dir, "a", log, talking(nil))
	c := a.connect(1)
	s := c.new(t)
	s.Prompt(t.Context(), acp.Text("wait"))
	c.seen.until(t, "agent: waiting")
	owned := a.g.session(string(s.ID()))
	close(h.hang)
	if _, err := log.Lease(t.Context(), "a"); err != nil { // which takes it away
		t.Fatal(err)
	}
	<-owned.ctx.Done()
	if err := context.Cause(owned.ctx); !errors.Is(err, engine.ErrLapsed) {
		t.Error(err)
	}
	release()
}

// logOver opens the log in dir over a database of the test's, which gets the one that stores in below.
func logOver(t *testing.T, dir string, ttl time.Duration, below *engine.Database, over engine.Database) *engine.Engine {
	t.Helper()
	w, err := sqlite.OpenWitness(t.Context(), filepath.Join(dir, "heads.db"))
	if err != nil {
		t.Fatal(err)
	}
	if *below, err = sqlite.OpenDatabase(t.Context(), filepath.Join(dir, "log.db"), 0); err != nil {
		t.Fatal(err)
	}
	return engine.New(over, w, engine.Options{LeaseTTL: ttl, Says: Says})
}

// sharedLog opens a log in dir that several nodes share.
func sharedLog(t *testing.T, dir string, ttl time.Duration) *engine.Engine {
	t.Helper()
	d := new(struct{ engine.Database })
	return logOver(t, dir, ttl, &d.Database, d)
}

// newMember starts a node that shares the log in dir.
func newMember(t *testing.T, dir, name string, agent *acp.Agent, change ...func(*Config)) *member {
	t.Helper()
	return joinedMember(t, dir, name, sharedLog(t, dir, leaseOfTests), agent, change...)
}

// joinedMember is newMember with a log that is open.
func joinedMember(t *testing.T, dir, name string, log *engine.Engine, agent *acp.Agent, change ...func(*Config)) *member {
	t.Helper()
	m := &member{rig: &rig{t: t, dir: dir, agent: agent, quiet: logtest.New(t)}, name: name}
	m.log = log
	var err error
	if m.lease, err = m.log.Lease(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if m.net, err = node.Listen(t.Context(), "127.0.0.1:0", ""); err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Log: m.log, Lease: m.lease, Agent: "test", Agents: []string{"test"}, Start: m.start, Nodes: m.net, Workspaces: []string{"/"},
		Logger: m.quiet.With("node", name),
	}
	for _, f := range change {
		f(&cfg)
	}
	m.g = New(cfg)
	var keep, serve context.Context
	keep, m.keeping = context.WithCancel(context.Background())
	serve, m.serving = context.WithCancel(context.Background())
	m.work.Go(func() { m.g.Keep(keep) })
	m.work.Go(func() {
		_ = m.net.Serve(serve, func(ctx context.Context, key string) (bool, error) {
			all, err := m.log.Nodes(ctx)
			return slices.ContainsFunc(all, func(n engine.Node) bool { return strings.Contains(string(n.Info), key) }), err
		}, m.g.ServeNode, m.quiet)
	})
	for { // until it can be found
		all, err := m.log.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(all, func(n engine.Node) bool { return n.Name == name }) {
			break
		}
	}
	t.Cleanup(func() {
		m.die()
		m.work.Wait()
		if err := m.g.Close(); err != nil && !m.dead {
			t.Error(err)
		}
		_ = m.lease.Release(context.Background())
		if err := m.log.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// die cuts the node off: it renews no lease, and cannot be reached.
func (m *member) die() {
	m.keeping()
	_ = m.net.Close()
	m.serving()
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	for _, l := range m.g.links {
		_ = l.conn.Close()
	}
}

// lapse has the lease of a node that has died lapse at once.
func (m *member) lapse() {
	m.t.Helper()
	log := sharedLog(m.t, m.dir, time.Millisecond)
	if _, err := log.Lease(m.t.Context(), m.name); err != nil { // which takes the other one away
		m.t.Error(err)
	}
	if err := log.Close(); err != nil {
		m.t.Error(err)
	}
}

// TestVisit: clients of two nodes share a session, whichever owns it.
func TestVisit(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		dir := t.TempDir()
		a := newMember(t, dir, "a", talking(nil))
		b := newMember(t, dir, "b", talking(nil))
		a.max = agent
		first := a.connect(version)
		s := first.new(t)
		say(t, s, "one two")
		second := b.connect(3 - version)
		theirs := second.load(t, s.ID())
		history := []string{"user: one two", "agent: one", "agent: two"}
		if version == 1 { // the second one gets the states
			history = append(history, "end: end_turn")
		}
		if got := second.seen.take(); !cmp.Equal(got, history) {
			t.Errorf("history %q", got)
		}
		say(t, s, "three")
		second.seen.until(t, "agent: three")
		if res := say(t, theirs, "four"); res.StopReason != acp.StopEndTurn {
			t.Error(res)
		}
		if got := first.seen.until(t, "agent: four"); !slices.Contains(got, "user: four") {
			t.Errorf("first %q", got)
		}
		if got := second.seen.until(t, "agent: four"); !slices.Contains(got, "user: three") {
			t.Errorf("second %q", got)
		}
		if n := b.starts.Load(); n != 0 {
			t.Errorf("the other node has started %d agents", n)
		}
	})
}

// TestVisitAsks: clients of all nodes are asked, and exactly one answer counts.
func TestVisitAsks(t *testing.T) {
	dir := t.TempDir()
	a := newMember(t, dir, "a", talking(nil))
	b := newMember(t, dir, "b", talking(nil))
	var mu sync.Mutex
	withdrawn := make(chan error, 1)
	asked := make(chan struct{})
	first := a.connect(1, func(c *acp.Client) {
		c.RequestPermission = func(ctx context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			mu.Lock()
			close(asked)
			mu.Unlock()
			<-ctx.Done()
			withdrawn <- context.Cause(ctx)
			return acp.CancelPermission(), nil
		}
	})
	s := first.new(t)
	second := b.connect(2, func(c *acp.Client) {
		c.RequestPermission = func(ctx context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			<-asked
			return r.Allow(), nil
		}
	})
	second.load(t, s.ID())
	if text, _, err := s.Prompt(t.Context(), acp.Text("ask")).Text(); err != nil || !strings.HasSuffix(text, "true") {
		t.Error(text, err)
	}
	if err := <-withdrawn; err == nil {
		t.Error("the question was not withdrawn")
	}
}

// TestVisitDismissed: that a client of another node dismisses a question counts if nobody else is asked.
func TestVisitDismissed(t *testing.T) {
	dir := t.TempDir()
	a := newMember(t, dir, "a", talking(nil))
	b := newMember(t, dir, "b", talking(nil))
	first := a.connect(1)
	s := first.new(t)
	_ = first.conn.Close()
	second := b.connect(2, func(c *acp.Client) {
		c.RequestPermission = func(context.Context, *acp.PermissionRequest) (acp.PermissionDecision, error) {
			return acp.CancelPermission(), nil
		}
	})
	theirs := second.load(t, s.ID())
	if text, _, err := theirs.Prompt(t.Context(), acp.Text("ask")).Text(); err != nil || text != "false" {
		t.Error(text, err)
	}
}

// TestVisitCancel: a prompt is cancelled by the client that has sent it, through another node.
func TestVisitCancel(t *testing.T) {
	dir := t.TempDir()
	a := newMember(t, dir, "a", talking(nil))
	b := newMember(t, dir, "b", talking(nil))
	s := a.connect(1).new(t)
	c := b.connect(2)
	theirs := c.load(t, s.ID())
	ctx, cancel := context.WithCancel(t.Context())
	reply := theirs.Prompt(ctx, acp.Text("wait"))
	c.seen.until(t, "agent: waiting")
	cancel()
	if _, err := reply.Wait(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if res := say(t, s, "next"); res.StopReason != acp.StopEndTurn {
		t.Error(res)
	}
}

// TestOwnerDies: when the owner of a session is gone, clients of another node continue there. The turn
// that ran ends with an error, since nobody has cancelled it, and a notice; a prompt that waited runs there.
func TestOwnerDies(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			dir := t.TempDir()
			a := newMember(t, dir, "a", talking(nil))
			b := newMember(t, dir, "b", talking(nil))
			s := a.connect(1).new(t)
			say(t, s, "one")
			c, d := b.connect(version), b.connect(version)
			mine, other := c.load(t, s.ID()), d.load(t, s.ID())
			running := mine.Prompt(t.Context(), acp.Text("wait"))
			c.seen.until(t, "agent: waiting")
			var waiting *acp.Reply
			if version == 1 { // in version 2 the library waits until the state is idle
				waiting = other.Prompt(t.Context(), acp.Text("two"))
				owned := a.g.session(string(s.ID()))
				for n := 0; n < 2; {
					owned.mu.Lock()
					n = len(owned.queue)
					owned.mu.Unlock()
				}
			}
			a.die()
			a.dead = true
			a.lapse()
			if res, err := running.Wait(); err == nil || !strings.Contains(err.Error(), "the gateway that ran it has ended") {
				t.Error(res, err)
			}
			if waiting != nil {
				if res, err := waiting.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
					t.Error(res, err)
				}
			}
			if res := say(t, mine, "three"); res.StopReason != acp.StopEndTurn {
				t.Error(res)
			}
			got := d.seen.until(t, "agent: three")
			text := strings.Join(got, "|")
			want := "user: one|agent: one|end: end_turn|user: wait|agent: waiting|end: error|notice: The turn was interrupted.|user: three|notice: The agent does not remember this session.|agent: three"
			if version == 1 {
				want = strings.NewReplacer(
					"|end: end_turn", "", "|end: error", "", "notice: The turn", "agent: The turn",
					"user: three|notice: The agent does not remember this session.", "agent: The agent does not remember this session.|agent: two|user: three",
				).Replace(want)
				text = shortenNotices(text)
			}
			if text != want {
				t.Errorf("\n%q\nwant\n%q", text, want)
			}
			if n := b.starts.Load(); n != 1 {
				t.Errorf("%d starts", n)
			}
		})
	}
}

// TestComesMeanwhile: a client that comes while the owner of a session is dead, and keeps its lease, gets the history at
// once, and continues once another node owns it.
func TestComesMeanwhile(t *testing.T) {
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			dir := t.TempDir()
			a := newMember(t, dir, "a", talking(nil))
			b := newMember(t, dir, "b", talking(nil))
			first := a.connect(1)
			s := first.new(t)
			say(t, s, "one")
			s.Prompt(t.Context(), acp.Text("wait"))
			first.seen.until(t, "agent: waiting")
			a.die()
			a.dead = true
			c := b.connect(version, newLender("lender").lend)
			mine, err := c.conn.Load(t.Context(), s.ID(), acp.SessionConfig{Cwd: "/project", Meta: json.RawMessage(`{"` + metaKey + `":{"lend":true}}`)})
			if err != nil { // the lease lapses only below
				t.Fatal(err)
			}
			c.seen.until(t, "agent: waiting")
			next := mine.Prompt(t.Context(), acp.Text("two")) // waits for an owner
			a.lapse()
			if res, err := next.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
				t.Error(res, err)
			}
			got := shortenNotices(strings.Join(c.seen.until(t, "agent: two"), "|"))
			if want := "The turn was interrupted."; strings.Count(got, want) != 1 || strings.Count(got, "user: two") != version-1 {
				t.Error(got)
			}
			for version == 1 && !b.g.session(string(s.ID())).lending.has() { // in version 2 nothing can be lent
				runtime.Gosched()
			}
		})
	}
}

// shortenNotices removes the descriptions of notices, which are in the same text in version 1.
func shortenNotices(text string) string {
	parts := strings.Split(text, "|")
	for i, p := range parts {
		if strings.HasPrefix(p, "agent: The ") {
			parts[i] = p[:strings.Index(p, ".")+1]
		}
	}
	return strings.Join(parts, "|")
}

// TestDrain: a node that drains gives each session up between its turns; clients of it stay connected, and
// no request of theirs fails.
func TestDrain(t *testing.T) {
	dir := t.TempDir()
	goOn := make(chan struct{})
	a := newMember(t, dir, "a", talking(goOn))
	b := newMember(t, dir, "b", talking(nil))
	c := a.connect(1)
	s, idle := c.new(t), c.new(t)
	say(t, idle, "zero")
	running := s.Prompt(t.Context(), acp.Text("wait one"))
	c.seen.until(t, "agent: waiting")
	drained := make(chan error, 1)
	go func() { drained <- a.g.Drain(t.Context()) }()
	if res := say(t, idle, "two"); res.StopReason != acp.StopEndTurn { // perhaps elsewhere
		t.Error(res)
	}
	close(goOn)
	if res, err := running.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
		t.Error(res, err)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	for _, s := range []*acp.ClientSession{s, idle} {
		if res := say(t, s, "three"); res.StopReason != acp.StopEndTurn {
			t.Error(res)
		}
	}
	c.new(t) // which another node takes
	if n := b.starts.Load(); n != 3 {
		t.Errorf("%d starts on the other node", n)
	}
	if n := len(a.g.all()); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	members, err := b.g.Members(t.Context())
	if err != nil || len(members) != 2 || !members[0].Draining || members[1].Draining {
		t.Error(members, err)
	}
}

// TestWorkspaces: a session runs on a node that has its directory.
func TestWorkspaces(t *testing.T) {
	dir := t.TempDir()
	at := func(root string) func(*Config) { return func(c *Config) { c.Workspaces = []string{root} } }
	a := newMember(t, dir, "a", talking(nil), at("/elsewhere"))
	b := newMember(t, dir, "b", talking(nil), at("/project"))
	c := a.connect(2)
	say(t, c.new(t), "one")
	if x, y := a.starts.Load(), b.starts.Load(); x != 0 || y != 1 {
		t.Error(x, y)
	}
	if _, err := c.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/nowhere"}); err == nil {
		t.Error("a session where no node is")
	}
}

// TestUnsuited: a session runs on a node that has its directory, also if the nodes do not say which ones they have.
func TestUnsuited(t *testing.T) {
	dir := t.TempDir()
	anywhere := func(c *Config) { c.Workspaces = nil }
	var missing atomic.Bool
	has := map[string]bool{"c": true}
	join := func(name string) *member {
		m := newMember(t, dir, name, talking(nil), anywhere)
		m.g.mu.Lock()
		m.g.exists = func(string) bool { return has[name] && !missing.Load() }
		m.g.mu.Unlock()
		return m
	}
	a, b, c := join("a"), join("b"), join("c")
	d := a.connect(2)
	s := d.new(t)
	say(t, s, "one")
	if x, y, z := a.starts.Load(), b.starts.Load(), c.starts.Load(); x != 0 || y != 0 || z != 1 {
		t.Error(x, y, z)
	}
	missing.Store(true)
	say(t, b.connect(1).load(t, s.ID()), "two") // the owner keeps it
	if _, err := d.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project"}); err == nil || !strings.Contains(err.Error(), "no node takes") {
		t.Error(err)
	}
	if x, y, z := a.starts.Load(), b.starts.Load(), c.starts.Load(); x != 0 || y != 0 || z != 1 {
		t.Error(x, y, z)
	}
}

// TestLapse: a node that could not renew its lease kills its agents, and begins anew.
func TestLapse(t *testing.T) {
	dir := t.TempDir()
	a := joinedMember(t, dir, "a", sharedLog(t, dir, lapsingLease), talking(nil))
	c := a.connect(1)
	s := c.new(t)
	running := s.Prompt(t.Context(), acp.Text("wait"))
	c.seen.until(t, "agent: waiting")
	// Another process takes the name, as an administrator might do by mistake.
	thief, err := a.log.Lease(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	_ = thief
	if res, err := running.Wait(); err == nil || !strings.Contains(err.Error(), "the gateway that ran it has ended") {
		t.Error(res, err)
	}
	if res := say(t, s, "two"); res.StopReason != acp.StopEndTurn {
		t.Error(res)
	}
	if n := a.starts.Load(); n != 2 {
		t.Errorf("%d starts", n)
	}
}

// FuzzWire: what another node sends is read or refused.
func FuzzWire(f *testing.F) {
	f.Add([]byte(`{"session":"s","id":"a","seq":3,"title":"t","permission":{"sessionId":"s","title":"t","options":[]}}`))
	f.Add([]byte(`{"session":"s","id":"a","form":{"type":"object","properties":{}},"message":"m"}`))
	f.Add([]byte(`{"session":"s","records":[{"n":1,"e":2,"t":3,"k":"update","d":"e30=","h":"AAAA"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var question wireAsk
		if json.Unmarshal(data, &question) == nil {
			if a, err := question.ask(); err == nil {
				again, err := a.toWire(question.Session)
				if err != nil {
					t.Fatalf("%s: %v", data, err)
				}
				if _, err := again.ask(); err != nil {
					t.Fatalf("%s: %v", data, err)
				}
			}
		}
		var records wireRecords
		if json.Unmarshal(data, &records) == nil {
			for i := range records.Records {
				if r, err := records.Records[i].record(); err == nil && !cmp.Equal(toWire(r), records.Records[i], cmp.Transformer("empty", func(b []byte) string { return string(b) })) {
					t.Errorf("%s: %v", data, r)
				}
			}
		}
		var f wireFailure
		if json.Unmarshal(data, &f) == nil {
			_ = f.err()
		}
	})
}
