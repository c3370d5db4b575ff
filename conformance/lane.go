package conformance

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/trace"
)

// A lane plays scenarios in one version of the protocol, one after another, on a
// connection that they share and on connections of their own. Several lanes may run
// at a time. A lane is used by one goroutine.
type lane struct {
	*checker
	*dialect
	order int    // of what is seen on its connections, among those of all lanes
	cwd   string // the directory of its sessions, "" before it is needed

	link     *link  // that scenarios share, or nil
	host     *host  // of link, if an agent is checked
	guest    *guest // of link, if a client is checked
	used     bool   // a scenario was played on link
	expired  bool   // in the last trial something did not come in time
	answered int    // calls, on all connections: see listened

	seen sync.Mutex // guards saw, since the connection that is being closed may still be read
	saw  evidence
}

// lane returns a lane whose connections come behind those of the lanes before.
func (c *checker) lane(d *dialect) *lane {
	c.lanes++
	return &lane{checker: c, dialect: d, order: c.lanes}
}

// connect opens a connection on which nothing was said.
func (c *lane) connect() (*link, error) {
	ctx, cancel := c.ctx, context.CancelFunc(func() {})
	if c.side == Agent { // a client may have to be started by hand
		ctx, cancel = context.WithTimeout(ctx, max(c.opt.timeout(), time.Minute))
	}
	defer cancel()
	peer, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	see := c.watch.connection(c.order)
	l := newLink(peer, func(out bool, data []byte) {
		dir := trace.ToClient
		if out == (c.side == Agent) {
			dir = trace.ToAgent
		}
		c.seen.Lock()
		defer c.seen.Unlock()
		c.saw.add(out, data)
		see(time.Since(c.start), dir, out, data)
		if c.opt.Record != nil {
			c.opt.Record(dir, data)
		}
	})
	l.answered = &c.answered
	return l, nil
}

// drop closes the connection that scenarios share.
func (c *lane) drop() {
	if c.link != nil {
		c.link.close()
	}
	c.link, c.host, c.guest, c.used = nil, nil, nil, false
}

// newHost returns what plays the client of a connection.
func (c *lane) newHost() (*host, error) {
	if c.cwd == "" {
		dir, err := c.opt.newCwd()
		if err != nil {
			return nil, err
		}
		c.cwd = dir
	}
	return newHost(c.version, c.cwd), nil
}

// decided says why a rule is skipped that has the network among its exceptions.
func decided(network string) string {
	return "over " + network + " this is decided by the transport and not by the agent"
}

// try tries a rule. It reports whether to try it again when nothing else is tried.
func (c *lane) try(t *trial) (again bool) {
	if c.passes(t) {
		return false
	}
	places := 1
	if t.test.scenarios[c.version].lonely() {
		places = c.gate.places()
	}
	used := c.link != nil && c.used && t.test.place == onShared
	err := c.attempt(t, places)
	if !c.doubtful(t, err, used) || c.mute() != "" {
		return false
	}
	if c.side == Agent {
		return true
	}
	c.retry(t)
	return false
}

// retry tries a rule for the second time, alone. What the first trial came to is not lost: it stays
// the result if there can be no second one, as the peer was given up since or cannot be started, and
// the result has it if the second one comes to something else.
func (c *lane) retry(t *trial) {
	c.order += again
	defer func() { c.order -= again }()
	c.drop()
	first := t.res
	if !c.passes(t) {
		_ = c.attempt(t, c.gate.places())
	}
	switch t.res.Status {
	case first.Status:
	case Broken:
		t.res = first
	default:
		t.res.First = overturned[first.Status] + ": " + first.Why
	}
}

// overturned says what a first trial came to that is tried again.
var overturned = map[Status]string{
	Fail:   "the first trial failed",
	Broken: "the first trial was broken",
	Unseen: "the first trial left the rule unseen",
}

// passes reports whether a rule is not tried, or not again, and says so in the result if it never was.
func (c *lane) passes(t *trial) bool {
	status, why := c.untried(t.rule, t.test)
	if status != "" && !t.tried {
		t.res = &Result{Rule: t.rule, Version: c.version, Status: status, Why: why}
	}
	return status != ""
}

// attempt plays the scenario of a rule when there is room for it.
func (c *lane) attempt(t *trial, places int) error {
	c.gate.enter(places)
	if c.passes(t) { // it was given up in the meantime
		c.gate.leave(places)
		return nil
	}
	start, before := time.Now(), c.answered
	err := c.trial(t.test, t.test.scenarios[c.version])
	t.took, t.tried = t.took+time.Since(start), true
	c.gate.leave(places)
	t.res = &Result{Rule: t.rule, Version: c.version, Took: t.took}
	t.res.judge(err)
	if t.res.Status != Skip {
		c.seen.Lock()
		t.res.Saw = append(slices.Clone(c.saw.first), c.saw.last...)
		c.seen.Unlock()
	}
	t.silent = c.listened(t.test, before, err)
	return err
}

// again is how far behind all others connections come on which a scenario is played once more.
const again = 1 << 30

// lonely reports whether nothing else may be tried while a scenario is played: it measures the
// peer, or signs in or out, which others would notice.
func (s *scenario) lonely() bool {
	return s.verbs["measure"] || s.verbs["login"] || s.verbs["logout"]
}

// doubtful reports whether what a trial has come to may be due to others: to those before it, if it
// used their connection, and otherwise to those beside it, which may have made it late or kept it from
// starting. Whatever else a peer did wrong on a new connection counts. That does not depend on how many
// trials run at a time, since an intermittent defect would have two chances with some numbers only.
func (c *lane) doubtful(t *trial, err error, used bool) bool {
	if err == nil || c.ctx.Err() != nil {
		return false
	}
	v, ok := errors.AsType[*verdict](err)
	switch {
	case c.side == Client: // they are tried one after another
		return used && ok && v.status == Fail
	case !used && t.test.scenarios[c.version].lonely():
		return false
	case !ok, v.status == Broken:
		return true
	case v.status == Fail:
		return used || v.late
	}
	return v.status == Unseen && c.expired
}

// judge enters what has become of a trial.
func (r *Result) judge(err error) {
	if r.Status = Pass; err == nil {
		return
	}
	r.Status, r.Why = Broken, clip(err.Error(), 600)
	if v, ok := errors.AsType[*verdict](err); ok {
		r.Status = v.status
	}
	if words, ok := strings.CutPrefix(r.Why, noWords); ok {
		r.Purpose, _, _ = strings.Cut(words, " ")
	}
}

// untried returns what becomes of a rule that is not tried, or "".
func (c *lane) untried(r *Rule, t *test) (Status, string) {
	switch {
	case c.skip != "":
		return Skip, c.skip
	case c.broken != "" || c.refused != "" && t.place != onBare:
		return Broken, c.broken + c.refused
	case slices.Contains(r.Except, c.network):
		return Skip, decided(c.network)
	}
	if why := c.unfit(r); why != "" {
		return Skip, why
	}
	if why := cmp.Or(c.mute(), c.noPrompt); c.mute() != "" || c.noPrompt != "" && t.place != onBare {
		return Broken, why
	}
	if c.ignores != "" && t.scenarios[c.version].unknown && r.ID != unknownPlayed {
		return Unseen, c.ignores
	}
	return "", ""
}

// trial plays a scenario once.
func (c *lane) trial(t *test, sc *scenario) error {
	c.expired = false
	if c.side == Client {
		return c.trialClient(t, sc)
	}
	c.forget()
	if t.place == onShared && !c.opt.Apart {
		if c.link != nil && c.link.dead() {
			c.drop()
		}
		if c.link == nil {
			l, h, err := c.initialized()
			if err != nil {
				return err
			}
			c.link, c.host = l, h
		}
		c.used = true
		now, clean, err := c.playOn(c.link, c.host, sc)
		if c.link = now; !clean {
			c.drop()
		}
		return err
	}
	c.drop()
	var l *link
	var h *host
	var err error
	if t.place != onBare {
		l, h, err = c.initialized()
	} else if h, err = c.newHost(); err == nil {
		if l, err = c.connect(); err != nil {
			err = broken("the agent could not be started: %s", clip(err.Error(), 300))
		}
	}
	if err != nil {
		return err
	}
	now, _, err := c.playOn(l, h, sc)
	now.close()
	return err
}

// forget begins new evidence.
func (c *lane) forget() {
	c.seen.Lock()
	c.saw = evidence{}
	c.seen.Unlock()
}

// initialized opens a connection and initializes it.
func (c *lane) initialized() (*link, *host, error) {
	answered := c.answered
	defer func() { c.answered = answered }() // that it does this says nothing of the rest
	h, err := c.newHost()
	if err != nil {
		return nil, nil, err
	}
	l, err := c.connect()
	if err != nil {
		return nil, nil, broken("the agent could not be started: %s", clip(err.Error(), 300))
	}
	p := c.player(l, &scenario{}, h)
	_, refused, err := p.greet(h)
	if err == nil && refused != nil {
		err = broken("the agent refused initialize with %s", describeError(refused))
	}
	if err == nil {
		err = h.login(p)
	}
	if err != nil {
		l.close()
		return nil, nil, &verdict{status: Broken, why: err.Error(), late: causeOf(err) == CauseLate}
	}
	return l, h, nil
}

// player returns what plays a scenario on a connection, on which ours is who we are.
func (c *lane) player(l *link, sc *scenario, ours role) *player {
	p := newPlayer(c.ctx, c.side, c.version, l, &c.opt, sc, ours)
	p.expired = &c.expired
	return p
}

// playOn plays a scenario on a connection; clean says that it can be used again.
// now is the connection that has taken its place, or l.
func (c *lane) playOn(l *link, ours role, sc *scenario) (now *link, clean bool, err error) {
	switch {
	case sc.raw && l.peer.Raw == nil:
		return l, true, &verdict{status: Skip, why: "bytes cannot be written past this connection"}
	case sc.ends && l.peer.CloseWrite == nil:
		return l, true, &verdict{status: Skip, why: "this connection cannot be closed in one direction"}
	case sc.waits && l.peer.Wait == nil:
		return l, true, &verdict{status: Skip, why: "the end of the peer's process cannot be seen on this connection"}
	case sc.stderr && l.peer.Stderr == nil:
		return l, true, &verdict{status: Skip, why: "nothing can be written to the agent's standard error here"}
	}
	p := c.player(l, sc, ours)
	if c.side == Client {
		p.reconnect = c.connect
	} else {
		p.reconnect = func() (*link, error) {
			l, _, err := c.initialized()
			return l, err
		}
	}
	if g, ok := ours.(*guest); ok {
		g.ignores = c.ignores != ""
	}
	ours.begin(p)
	if h, ok := ours.(*host); ok {
		defer h.closeProbe()
	}
	if err = p.play(sc.steps); err == nil {
		err = p.last()
	}
	v, ok := errors.AsType[*verdict](err)
	if err != nil && (!ok || v.status != Unseen) || p.gone != nil || p.mute {
		return p.link, false, err
	}
	return p.link, ours.leave(p), err
}

// leave ends what a scenario has begun on a connection that is used again, and
// reports whether that was possible.
func (h *host) leave(p *player) bool {
	p.link.listen(true)
	if p.sc.mine {
		h.session = nil
	}
	p.sc = &scenario{}
	for _, m := range p.inbox {
		if m.request() {
			p.reply(m)
		}
	}
	if len(h.turns) == 0 || h.over(p) {
		return true
	}
	for _, t := range h.turns {
		if t.call.session == "" {
			return false
		}
		cancel := `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + t.call.session + `}}`
		if p.write(cancel) != nil {
			return false
		}
	}
	return p.until(min(p.limit, 5*time.Second), func() bool { return h.over(p) }) == nil
}

// dead reports whether the peer has closed the connection.
func (l *link) dead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed || l.over || l.werr != nil
}
