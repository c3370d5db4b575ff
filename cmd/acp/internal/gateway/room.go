package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// roomPatience is how long a request waits for an agent's place that is not a prompt. A prompt waits until it is cancelled.
const roomPatience = 30 * time.Second

// roomNotice is how long somebody waits for an agent's place until the session says so.
const roomNotice = time.Second

// errNoRoom is why somebody is not admitted whose patience is over.
var errNoRoom = errors.New("all agents are at work")

// admitAgent counts another agent of a user. If there are as many as may run, of the user unless it runs already, or of all,
// the one that has been idle for longest is stopped first; if none is idle, it waits for one, for as long as patience says:
// not at all if that is negative, and until ctx is done if it is 0. Call dismissAgent when the agent has ended.
func (g *Gateway) admitAgent(ctx context.Context, user string, groups []string, runs bool, patience time.Duration) error {
	waiting := ctx
	if patience != 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeoutCause(ctx, max(patience, 0), errNoRoom)
		defer cancel()
	}
	t := &g.tenancy
	p, limit := g.policy(user, groups), 0
	if p != nil && !runs {
		limit = p.Limits().Agents
	}
	if limit == 0 {
		t.admit(user, 0, false) // which cannot refuse
	} else {
		err := g.makeRoom(ctx, waiting, &user, func(promised bool) (bool, error) { return t.admit(user, limit, promised), nil }, func() { t.release(user) })
		if errors.Is(err, errNoRoom) {
			return quota(p, "agents", time.Minute, "%d agents of %s are at work, which is the most: wait until one is idle, or delete its session", limit, user)
		}
		if err != nil {
			return err
		}
	}
	err := g.makeRoom(ctx, waiting, nil, g.admit, g.dismiss)
	if errors.Is(err, errNoRoom) {
		err = &jsonrpc.Failure{Message: fmt.Sprintf("%d agents are at work, which is the most", g.cfg.MaxAgents), Reason: "agents", RetryAfter: time.Minute}
	}
	if err != nil {
		t.release(user)
		g.tenancy.lobby.stir()
	}
	return err
}

// spareAgent counts another agent of a user if there is a place for it that nobody waits for. Unlike admitAgent it stops no
// other one, and does not wait. Call dismissAgent when the agent has ended.
func (g *Gateway) spareAgent(user string, groups []string) error {
	t := &g.tenancy
	p, limit := g.policy(user, groups), 0
	if p != nil {
		limit = p.Limits().Agents
	}
	if limit > 0 && t.lobby.waited("user "+user) || !t.admit(user, limit, false) {
		return quota(p, "agents", time.Minute, "%d agents of %s run, which is the most", limit, user)
	}
	var ok bool
	var err error
	if !t.lobby.waited("") {
		ok, err = g.admit(false)
	}
	if !ok {
		t.release(user)
		t.lobby.stir()
		if err == nil {
			err = &jsonrpc.Failure{Message: fmt.Sprintf("%d agents run, which is the most", g.cfg.MaxAgents), Reason: "agents", RetryAfter: time.Minute}
		}
	}
	return err
}

// dismissAgent reports the end of an agent of a user.
func (g *Gateway) dismissAgent(user string) {
	g.tenancy.release(user)
	g.dismiss()
	g.tenancy.lobby.stir()
}

// admit counts another agent, unless as many run as may. promised says that one of these ends before the other one begins.
func (g *Gateway) admit(promised bool) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return false, ErrClosed
	case g.agents >= g.cfg.MaxAgents && !promised:
		return false, nil
	}
	g.agents++
	return true, nil
}

func (g *Gateway) dismiss() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.agents--
}

// admit counts another agent of a user, as [Gateway.admit] does; limit is how many may run, 0 for any number.
func (t *tenancy) admit(user string, limit int, promised bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.tenant(user)
	if limit > 0 && u.agents >= limit && !promised {
		return false
	}
	u.agents++
	return true
}

// release reports that one agent less of a user runs.
func (t *tenancy) release(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tenant(user).agents--
}

// makeRoom has admit count an agent, once it is its turn in the line of the user, or of all if user is nil. If there is no
// room, it stops an idle agent of the user, or of anybody; admit is promised its place before it has ended, so that nobody
// else takes that. If none is idle, it waits for one until waiting is done. dismiss takes the count back if ctx is done.
func (g *Gateway) makeRoom(ctx, waiting context.Context, user *string, admit func(promised bool) (bool, error), dismiss func()) error {
	line := ""
	if user != nil {
		line = "user " + *user
	}
	leave, err := g.tenancy.lobby.enter(waiting, line)
	if err != nil {
		return err
	}
	idle, err := g.nextPlace(waiting, user, admit)
	leave() // the next one need not wait for the end of the idle agent
	if idle == nil {
		return err
	}
	if err != nil {
		<-idle.s.starting
		return err
	}
	g.work.Go(func() {
		idle.stop()
		<-idle.s.starting
	})
	select {
	case <-idle.ended:
		return nil
	case <-ctx.Done():
		dismiss()
		g.tenancy.lobby.stir()
		return context.Cause(ctx)
	}
}

// nextPlace waits until admit has counted an agent. It returns the agent whose end it was promised, if any: see idlest.
func (g *Gateway) nextPlace(ctx context.Context, user *string, admit func(promised bool) (bool, error)) (*backend, error) {
	for {
		changed := g.tenancy.lobby.change() // what changes from here on is not missed
		if ok, err := admit(false); ok || err != nil {
			return nil, err
		}
		if idle := g.idlest(user); idle != nil {
			_, err := admit(true)
			return idle, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// idlest returns the agent that has been idle for longest, of the user or of anybody; those of sessions that nobody watches
// come first. The caller must stop it, and has the place that it leaves. It holds starting of the session: prompts that come
// meanwhile wait, and start the agent again. It returns nil if none is idle; whatever may change that stirs the lobby.
func (g *Gateway) idlest(user *string) *backend {
	type candidate struct {
		b       *backend
		watched bool
		used    time.Time
	}
	var all []candidate
	g.mu.Lock()
	running := slices.Collect(maps.Keys(g.running))
	g.mu.Unlock()
	for _, b := range running {
		s := b.s
		s.mu.Lock()
		if (user == nil || s.info.Owner == *user) && b.isIdle() {
			all = append(all, candidate{b, len(s.watchers)+len(s.guests) > 0, s.used})
		}
		s.mu.Unlock()
	}
	sort.Slice(all, func(i, j int) bool {
		x, y := all[i], all[j]
		if x.watched != y.watched {
			return y.watched
		}
		return cmp.Or(x.used.Compare(y.used), cmp.Compare(x.b.s.id, y.b.s.id)) < 0
	})
	for _, c := range all {
		s := c.b.s
		select {
		case s.starting <- struct{}{}:
		default: // it has just been started, or is about to be stopped
			continue
		}
		s.mu.Lock()
		still := c.b.isIdle()
		if still {
			c.b.why.Store(new("stopped"))
		}
		s.mu.Unlock()
		if still {
			return c.b
		}
		<-s.starting
	}
	return nil
}

// runs notes an agent that runs, and ran one that has ended, and is not counted any more.
func (g *Gateway) runs(b *backend) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running[b] = true
}

func (g *Gateway) ran(b *backend) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.running, b)
}

// ends reports whether the agent is ending.
func (b *backend) ends() bool { return b.why.Load() != nil || b.conn.Conn().Err() != nil }

// isIdle reports whether the agent may be stopped, since it has nothing to do. The caller holds the lock of its session.
func (b *backend) isIdle() bool {
	s := b.s
	select {
	case <-s.opened:
	default: // what an earlier gateway has left is still being continued
		return false
	}
	return s.agent == b && !s.closed && !b.ends() && (len(s.queue) == 0 || s.isOver()) && !s.asksOrChanges()
}

// isOver reports whether the last turn that was queued has ended, and everybody knows. The caller holds s.mu.
func (s *session) isOver() bool {
	if len(s.queue) != 1 {
		return false
	}
	select {
	case <-s.queue[0].ran:
		return true
	default:
		return false
	}
}

// busy reports whether the agent of the session is needed. The caller holds s.mu.
func (s *session) busy() bool { return len(s.queue) > 0 || s.asksOrChanges() }

// asksOrChanges reports whether a question is open or an option being changed. The caller holds s.mu.
func (s *session) asksOrChanges() bool { return len(s.dealing) > 0 || s.changing > 0 }

// changes notes that an option of the agent is changed, until the function is called that it returns: the agent is not idle.
func (s *session) changes() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changing++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changing--
		s.touch()
	}
}
