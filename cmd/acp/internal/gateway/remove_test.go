package gateway

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/transcript"
)

// TestRemoveElsewhere: a session that is deleted through another node than its owner ends there, whether a turn runs or
// not; one whose owner cannot be reached is deleted all the same.
func TestRemoveElsewhere(t *testing.T) {
	for _, test := range []struct {
		name       string
		runs, away bool
	}{{"idle", false, false}, {"running", true, false}, {"owner away", false, true}} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			a, b := newMember(t, dir, "a", talking(nil)), newMember(t, dir, "b", talking(nil))
			c := a.connect(1)
			s := c.new(t)
			var running *acp.Reply
			if test.runs {
				running = s.Prompt(t.Context(), acp.Text("wait one"))
				c.seen.until(t, "agent: waiting")
			}
			owned := a.g.session(string(s.ID()))
			owned.mu.Lock()
			agent := owned.agent
			owned.mu.Unlock()
			if test.away {
				close(b.without(a).give)
			}
			if err := b.connect(2).conn.Delete(t.Context(), s.ID()); err != nil {
				t.Error(err)
			}
			if _, err := a.log.Session(t.Context(), string(s.ID())); !errors.Is(err, engine.ErrNotFound) {
				t.Error("it is there:", err)
			}
			if test.away {
				return
			}
			if a.g.session(string(s.ID())) != nil {
				t.Error("the owner has it open")
			}
			select {
			case <-agent.ended:
			default:
				t.Error("its agent runs")
			}
			if running != nil {
				if res, err := running.Wait(); err == nil && res.StopReason != acp.StopCancelled {
					t.Error(res, err)
				}
			}
		})
	}
}

// TestRemoveTexts: nothing of the text of a session that was deleted is remembered, on any node where a client had it
// open.
func TestRemoveTexts(t *testing.T) {
	dir := t.TempDir()
	a := newMember(t, dir, "a", talking(nil))
	b := newMember(t, dir, "b", talking(nil), func(c *Config) { c.Workspaces = []string{"/nowhere"} }) // it takes no session
	var s *acp.ClientSession
	clients := make(map[*member]*client)
	for _, node := range []*member{a, b} {
		node.g.cfg.Markdown = rendering(func(w io.Writer, _ *transcript.Snapshot) error {
			_, err := io.WriteString(w, "text")
			return err
		})
		c := node.connect(2)
		clients[node] = c
		if s == nil {
			s = c.new(t)
			say(t, s, "one")
		} else {
			c.load(t, s.ID())
		}
		if _, err := ExportMethod.Call(t.Context(), c.conn.Conn(), &ExportRequest{SessionID: s.ID()}); err != nil {
			t.Fatal(err)
		}
		if _, err := node.g.backdrop(t.Context(), string(s.ID()), 1); err != nil {
			t.Fatal(err)
		}
		if exports, backdrops := node.texts(); exports != 1 || backdrops != 1 {
			t.Fatalf("%d exports, %d backdrops", exports, backdrops)
		}
	}
	r := watcherOf(t, b, s.ID())
	if err := clients[a].conn.Delete(t.Context(), s.ID()); err != nil {
		t.Fatal(err)
	}
	<-r.over // it has noticed
	for _, node := range []*member{a, b} {
		if exports, backdrops := node.texts(); exports+backdrops != 0 {
			t.Errorf("node %s: %d exports, %d backdrops", node.name, exports, backdrops)
		}
	}
}

// texts returns how many texts of sessions a node remembers.
func (m *member) texts() (exports, backdrops int) {
	m.g.exports.mu.Lock()
	defer m.g.exports.mu.Unlock()
	m.g.backdrops.mu.Lock()
	defer m.g.backdrops.mu.Unlock()
	return len(m.g.exports.all), len(m.g.backdrops.by)
}

// watcherOf returns the client of a session on a node.
func watcherOf(t *testing.T, m *member, id acp.SessionID) *watcher {
	t.Helper()
	m.g.present.mu.Lock()
	defer m.g.present.mu.Unlock()
	for w := range m.g.present.in[string(id)] {
		return w
	}
	t.Fatal("nobody is there")
	return nil
}

// A pausing database calls a function before it deletes a session. It fails with fails instead, or with left afterwards.
type pausing struct {
	engine.Database
	before      func(id string)
	fails, left error
}

func (p *pausing) DeleteSession(ctx context.Context, id string) (string, error) {
	if p.before != nil {
		p.before(id)
	}
	if p.fails != nil {
		return "", p.fails
	}
	owner, err := p.Database.DeleteSession(ctx, id)
	return owner, errors.Join(err, p.left)
}

// nodes starts two nodes that share a log. The first one uses the database.
func (p *pausing) nodes(t *testing.T) (a, b *member) {
	t.Helper()
	dir := t.TempDir()
	a = joinedMember(t, dir, "a", logOver(t, dir, leaseOfTests, &p.Database, p), talking(nil))
	return a, newMember(t, dir, "b", talking(nil))
}

// TestRemoveOwned: no other node can claim a session that its owner deletes, and clients of other nodes learn that it
// was deleted.
func TestRemoveOwned(t *testing.T) {
	p := new(pausing)
	a, b := p.nodes(t)
	c := a.connect(1)
	s := c.new(t)
	b.connect(2).load(t, s.ID())
	r := watcherOf(t, b, s.ID())
	p.before = func(id string) {
		if _, err := b.g.own(context.Background(), id); !errors.Is(err, engine.ErrOwned) {
			t.Fatalf("another node claims it: %v", err)
		}
	}
	if err := a.g.remove(t.Context(), string(s.ID())); err != nil {
		t.Error(err)
	}
	<-r.over
	if err := r.ended(); reason(err) != "deleted" {
		t.Error(err)
	}
}

// TestRemoveClaimed: a node that claims a session just before another one deletes it learns of the deletion, and so do its clients.
func TestRemoveClaimed(t *testing.T) {
	p := new(pausing)
	a, b := p.nodes(t)
	c := a.connect(1)
	s := c.new(t)
	was := watcherOf(t, a, s.ID())
	_ = c.conn.Close()
	<-was.over // otherwise it claims the session again
	if err := a.g.session(string(s.ID())).close(); err != nil {
		t.Fatal(err)
	}
	d := b.connect(2)
	var r *watcher
	p.before = func(string) {
		theirs := d.load(t, s.ID())
		r = watcherOf(t, b, s.ID())
		say(t, theirs, "one") // its agent runs
	}
	if err := a.connect(1).conn.Delete(t.Context(), s.ID()); err != nil {
		t.Error(err)
	}
	if b.g.session(string(s.ID())) != nil {
		t.Fatal("the node that has claimed it has it open")
	}
	<-r.over
	if err := r.ended(); reason(err) != "deleted" {
		t.Error(err)
	}
}

// TestRemoveFails: a session that cannot be deleted is given up, and can be used again.
func TestRemoveFails(t *testing.T) {
	p := new(pausing)
	a, b := p.nodes(t)
	c := a.connect(1)
	s := c.new(t)
	r := watcherOf(t, a, s.ID())
	_ = c.conn.Close()
	<-r.over // otherwise it claims the session again
	p.fails = engine.ErrReadOnly
	if err := a.g.remove(t.Context(), string(s.ID())); !errors.Is(err, engine.ErrReadOnly) {
		t.Error(err)
	}
	p.fails = nil
	if owner, err := a.log.Owner(t.Context(), string(s.ID())); err != nil || owner != "" {
		t.Errorf("owner %q: %v", owner, err)
	}
	say(t, b.connect(1).load(t, s.ID()), "one")
}

// TestRemoveLeft: a deletion that has begun continues when its client leaves; and who has the session open learns of it, though
// records may be left.
func TestRemoveLeft(t *testing.T) {
	p := &pausing{left: engine.ErrUnpurged}
	a, _ := p.nodes(t)
	c := a.connect(2)
	s := c.new(t)
	r := watcherOf(t, a, s.ID())
	ctx, cancel := context.WithCancel(t.Context())
	p.before = func(string) { cancel() }
	if err := a.g.remove(ctx, string(s.ID())); !errors.Is(err, engine.ErrUnpurged) {
		t.Error(err)
	}
	if _, err := a.log.Session(t.Context(), string(s.ID())); !errors.Is(err, engine.ErrNotFound) {
		t.Error("it is there:", err)
	}
	<-r.over
	if err := r.ended(); reason(err) != "deleted" {
		t.Error(err)
	}
}
