package gateway

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// alive counts the agents of a rig that run, and returns how many there are, and have been at most.
func (r *rig) alive() (now, most *atomic.Int64) {
	now, most = new(atomic.Int64), new(atomic.Int64)
	start := r.g.cfg.Start
	r.g.cfg.Start = func(ctx context.Context, name, cwd string) (acp.Transport, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		t, err := start(ctx, name, cwd)
		if err != nil {
			now.Add(-1)
			return nil, err
		}
		return counted{t, sync.OnceFunc(func() { now.Add(-1) })}, nil
	}
	return now, most
}

// A counted transport calls a function when the agent has ended.
type counted struct {
	acp.Transport
	ended func()
}

func (c counted) Open(ctx context.Context) (jsonrpc.Stream, error) {
	s, err := c.Transport.Open(ctx)
	return countedStream{s, c.ended}, err
}

type countedStream struct {
	jsonrpc.Stream
	ended func()
}

func (s countedStream) Close() error {
	defer s.ended()
	return s.Stream.Close()
}

// hasAgent reports whether the agent of a session runs.
func (r *rig) hasAgent(id acp.SessionID) bool {
	s := r.g.session(string(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agent != nil
}

// TestRoom: when as many agents run as may, the one is stopped that has been idle for longest, of a session that nobody
// watches if there is one. Those that are at work stay.
func TestRoom(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		goOn := make(chan struct{})
		r := newRig(t, talking(goOn))
		r.max = agent
		r.g.cfg.MaxAgents = 3
		_, most := r.alive()
		c := r.connect(version)
		var all []*acp.ClientSession
		running := func(want string) {
			t.Helper()
			got := ""
			for i, s := range all {
				if r.hasAgent(s.ID()) {
					got += fmt.Sprint(i)
				}
			}
			if got != want {
				t.Errorf("the agents of %s run, want %s", got, want)
			}
		}
		for range 3 {
			all = append(all, c.new(t))
		}
		finish := func(s *acp.ClientSession, text string) {
			t.Helper()
			say(t, s, text)
			r.finishes(s.ID())
		}
		finish(all[0], "one")
		running("012")
		all = append(all, c.new(t)) // stops 1
		running("023")
		finish(all[1], "two") // stops 2
		running("013")
		if text, _, err := all[2].Prompt(t.Context(), acp.Text("three")).Text(); err != nil || !strings.HasSuffix(text, "three") { // stops 0
			t.Error(text, err)
		}
		r.finishes(all[2].ID())
		running("123")

		left := r.connect(version)
		other := left.new(t) // stops 3
		_ = left.conn.Close()
		gs := r.g.session(string(other.ID()))
		for n := 1; n > 0; {
			gs.mu.Lock()
			n = len(gs.watchers)
			gs.mu.Unlock()
		}
		finish(all[0], "four")
		running("012")
		if r.hasAgent(other.ID()) {
			t.Error("the agent that nobody watches runs still")
		}

		var replies []*acp.Reply
		for _, s := range all[:3] {
			replies = append(replies, s.Prompt(t.Context(), acp.Text("wait")))
		}
		for range 3 {
			c.seen.until(t, "agent: waiting")
			c.seen.forget("agent: waiting")
		}
		r.g.tenancy.lobby.waits = time.Nanosecond
		if _, err := c.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project"}); reason(err) != "agents" {
			t.Errorf("another agent where all are at work: %v", err)
		}
		later := all[3].Prompt(t.Context(), acp.Text("x"))
		again := c.load(t, other.ID())
		stopped := again.Prompt(t.Context(), acp.Text("never"))
		lobby := &r.g.tenancy.lobby
		for n := 0; n != 2; {
			runtime.Gosched()
			lobby.mu.Lock()
			n = lobby.waiting[""]
			lobby.mu.Unlock()
		}
		if err := again.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if res, err := stopped.Wait(); err != nil || res.StopReason != acp.StopCancelled {
			t.Errorf("a prompt that waited for an agent, cancelled: %v, %v", res, err)
		}
		close(goOn)
		if text, _, err := later.Text(); err != nil || !strings.HasSuffix(text, "x") {
			t.Errorf("a prompt that waited for an agent: %q, %v", text, err)
		}
		for _, reply := range replies {
			if _, err := reply.Wait(); err != nil {
				t.Error(err)
			}
		}
		say(t, all[3], "five") // the turns before may not be written down yet
		if n := most.Load(); n != 3 {
			t.Errorf("%d agents ran at once", n)
		}
	})
}

// forget removes the first text that is equal.
func (s *seen) forget(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, said := range s.text {
		if said == text {
			s.text = append(s.text[:i:i], s.text[i+1:]...)
			return
		}
	}
}

// drop removes all texts that are equal.
func (s *seen) drop(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = slices.DeleteFunc(s.text, func(said string) bool { return said == text })
}

// TestRoomOfUser: a quota of agents has the user's own idle agent stopped, and nobody else's.
func TestRoomOfUser(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	mine := &rights{prompts: 100, limits: Limits{Agents: 1}}
	r.g.cfg.Policy = func(string, []string) Policy { return mine }
	byUser(r)
	ann, bob := r.as("ann", 2), r.as("bob", 2)
	theirs := bob.new(t)
	first := ann.new(t)
	second := ann.new(t)
	if r.hasAgent(first.ID()) || !r.hasAgent(second.ID()) || !r.hasAgent(theirs.ID()) {
		t.Errorf("agents: %v, %v, %v", r.hasAgent(first.ID()), r.hasAgent(second.ID()), r.hasAgent(theirs.ID()))
	}
	if text, _, err := first.Prompt(t.Context(), acp.Text("again")).Text(); err != nil || !strings.HasSuffix(text, "again") {
		t.Error(text, err)
	}
	reply := first.Prompt(t.Context(), acp.Text("wait"))
	ann.seen.until(t, "agent: waiting")
	r.g.tenancy.lobby.waits = time.Nanosecond
	if _, err := ann.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project"}); reason(err) != "quota.agents" {
		t.Errorf("another agent of one whose agent is at work: %v", err)
	}
	if want := []string{"quota.agents"}; !cmp.Equal(mine.refused, want) {
		t.Errorf("reported: %q", mine.refused)
	}
	close(goOn)
	if _, err := reply.Wait(); err != nil {
		t.Error(err)
	}
}

// TestRoomRaces: prompts to more sessions than agents may run at once come whenever they like. Each waits until there is an
// agent for it, and never more agents run than may.
func TestRoomRaces(t *testing.T) {
	const sessions, prompts, bound = 4, 6, 2
	r := newRig(t, talking(nil))
	r.g.cfg.MaxAgents = bound
	now, most := r.alive()
	var clients []*client
	var all []*acp.ClientSession
	for i := range sessions {
		clients = append(clients, r.connect(1+i%2))
		all = append(all, clients[i].new(t))
	}
	var work sync.WaitGroup
	for i, s := range all {
		c := clients[i]
		work.Go(func() {
			for n := range prompts {
				want := fmt.Sprint(i, "-", n)
				text, _, err := s.Prompt(t.Context(), acp.Text(want)).Text()
				if err != nil || !strings.HasSuffix(text, want) { // before that, that the agent remembers nothing
					t.Errorf("%q, %v; want %q", text, err, want)
					return
				}
				if n%3 == 2 {
					if err := c.conn.Delete(t.Context(), s.ID()); err != nil {
						t.Error(err)
					}
					s, err = c.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project"})
					if err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	work.Wait()
	if n := most.Load(); n > bound {
		t.Errorf("%d agents ran at once", n)
	}
	r.close()
	if n := now.Load(); n != 0 {
		t.Errorf("%d agents run after the end", n)
	}
	r.g = nil
}

// TestRoomGivenUp: a session whose client does not wait for an agent that is stopped has not taken its place.
func TestRoomGivenUp(t *testing.T) {
	r := newRig(t, talking(nil))
	r.g.cfg.MaxAgents = 1
	c := r.connect(2)
	s := c.new(t)
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone"))
	for range 3 {
		if err := r.g.admitAgent(gone, "local", nil, false, 0); err == nil { // it may have ended just in time
			r.g.dismissAgent("local")
		}
		say(t, s, "x")
	}
	if text, _, err := c.new(t).Prompt(t.Context(), acp.Text("y")).Text(); err != nil || text != "y" {
		t.Error(text, err)
	}
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	if r.g.agents != 1 {
		t.Errorf("%d agents are counted", r.g.agents)
	}
}

// TestLobby: whoever waits for longest tries first, in each line, and a line has a bound.
func TestLobby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lobby
		ctx, cancel := context.WithCancel(t.Context())
		turn := make(chan string, 8)
		leaves := map[string]chan struct{}{}
		join := func(ctx context.Context, line, name string) {
			leaves[name] = make(chan struct{})
			go func() {
				leave, err := l.enter(ctx, line)
				if err != nil {
					turn <- name + " is gone"
					return
				}
				turn <- name
				<-leaves[name]
				leave()
			}()
			synctest.Wait()
		}
		had := func() (names []string) {
			synctest.Wait()
			for len(turn) > 0 {
				names = append(names, <-turn)
			}
			return names
		}
		join(t.Context(), "", "a")
		join(ctx, "", "b")
		join(t.Context(), "", "c")
		join(t.Context(), "user ann", "other")
		if got := had(); !slices.Equal(got, []string{"a", "other"}) {
			t.Errorf("%q try first", got)
		}
		cancel()
		if got := had(); !slices.Equal(got, []string{"b is gone"}) {
			t.Errorf("%q when the second is gone", got)
		}
		close(leaves["a"])
		if got := had(); !slices.Equal(got, []string{"c"}) {
			t.Errorf("%q try next", got)
		}
		changed := l.change()
		l.stir()
		select {
		case <-changed:
		default:
			t.Error("nobody tries again")
		}
		close(leaves["c"])
		close(leaves["other"])
		synctest.Wait()
		if len(l.waiting) != 0 {
			t.Errorf("some wait: %v", l.waiting)
		}
		l.waiting = map[string]int{"": maxLine - 1}
		if leave, err := l.enter(t.Context(), ""); err != nil {
			t.Errorf("refused: %v", err)
		} else {
			if _, err := l.enter(t.Context(), ""); err != errNoRoom {
				t.Errorf("a line has no bound: %v", err)
			}
			leave()
		}
	})
}
