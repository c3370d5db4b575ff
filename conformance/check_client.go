package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// CheckClient checks a client, by being an agent to it. accept waits for the
// client to connect; it is called again for scenarios that want a connection of
// their own, and after the client has gone away or one was spoilt. In each
// connection the client has to initialize, to open a session and to prompt the
// agent, as often as it likes: scenarios are played in its turns, as many as
// possible in each. A client that is offered an earlier version than it asked for
// may connect again, which accept should expect before it starts another one. The
// streams are closed when they are not needed any more.
//
// The error is as that of [CheckAgent].
func CheckClient(ctx context.Context, accept func(ctx context.Context) (*Peer, error), opt Options) (*Report, error) {
	c := newChecker(ctx, Client, accept, opt)
	if len(c.rules) == 0 {
		return c.report, ErrNoRule
	}
	// Scenarios that share a turn come first, so that the client has to be
	// started, or to prompt, as seldom as possible.
	slices.SortStableFunc(c.rules, func(a, b *Rule) int { return cmp.Compare(c.placeOf(a), c.placeOf(b)) })
	var speaks []*dialect
	for _, version := range opt.versions() {
		var d *dialect
		if n := len(speaks); n > 0 && speaks[n-1].absent {
			d = &dialect{version: version, broken: speaks[n-1].broken, absent: true}
		} else {
			d = c.meet(version)
		}
		speaks = append(speaks, d)
		if d.speaks {
			c.run(d)
		}
		d.drop()
	}
	c.judge(speaks)
	for _, d := range speaks {
		if !d.speaks {
			c.run(d)
		}
	}
	return c.finish(speaks)
}

func (c *checker) placeOf(r *Rule) place {
	if t := c.all.tests[r]; t != nil {
		return t.place
	}
	return onShared
}

// meet waits for the client and finds out which version it asks for.
func (c *checker) meet(version int) *dialect {
	d := &dialect{version: version}
	if c.ctx.Err() != nil {
		return d
	}
	l, err := c.connect()
	if err != nil {
		d.absent, d.broken, d.cause = true, "the client did not connect: "+clip(err.Error(), 300), causeOf(err)
		return d
	}
	g := &guest{version: version}
	p := newPlayer(c.ctx, c.side, version, l, &c.opt, &scenario{}, g)
	p.reconnect = c.connect
	err = p.until(p.patience(), func() bool { return g.init != nil })
	if err != nil {
		d.broken, d.cause = p.noPeer(p.missing(err, "initialize"))
		l.close()
		return d
	}
	d.init = g.init
	if asked := g.asked(); asked != 0 && asked < version {
		d.skip = fmt.Sprintf("the client does not speak version %d, it asks for %d", version, asked)
		l.close()
		return d
	}
	err = p.until(p.patience(), func() bool { return g.sessions > 0 || len(g.prompts) > 0 })
	if err != nil && g.asked() > version {
		d.skip = fmt.Sprintf("the client does not speak version %d, which it was offered in the place of %d", version, g.asked())
		p.link.close()
		return d
	}
	d.init = g.init
	// A client that fails here may do so because of what our rules are about.
	d.speaks, d.link, d.guest = true, p.link, g
	return d
}

// trialClient plays a scenario with a client once.
func (c *checker) trialClient(d *dialect, t *test, sc *scenario) error {
	switch t.place {
	case onShared, onTurn:
		if err := c.turnFor(d, t.place == onTurn || c.opt.Apart); err != nil {
			return err
		}
		c.forget()
		d.used, d.guest.used = true, true
		g := d.guest
		l, clean, err := c.playOn(d.link, g, d, sc)
		d.link = l
		err = g.excuse(l, err, c.opt.timeout())
		if !clean {
			d.drop()
		}
		return err
	}
	d.drop() // a client may not be there twice
	l, err := c.connect()
	if err != nil {
		return broken("the client did not connect: %s", clip(err.Error(), 300))
	}
	defer func() { l.close() }()
	c.forget()
	g := &guest{version: d.version}
	if t.place == onFresh {
		if l, err = c.begin(l, g, d); err != nil {
			return err
		}
	}
	l, _, err = c.playOn(l, g, d, sc)
	return g.excuse(l, err, c.opt.timeout())
}

// excuse makes a failure unseen that is only due to a client that has left after
// its turn, as those do that are started for one.
func (g *guest) excuse(l *link, err error, limit time.Duration) error {
	if v, ok := errors.AsType[*verdict](err); ok && v.status == Fail && g.left(l, limit) {
		return unseen("the client left when its turn was over")
	}
	return err
}

// forget begins new evidence.
func (c *checker) forget() {
	c.mu.Lock()
	c.saw = evidence{}
	c.mu.Unlock()
}

// turnFor makes sure that there is a turn, one in which nothing was played if
// own is set.
func (c *checker) turnFor(d *dialect, own bool) error {
	if d.link != nil && d.link.dead() {
		d.drop()
	}
	if d.link != nil && d.guest.turn != nil && d.guest.used && own {
		p := newPlayer(c.ctx, c.side, d.version, d.link, &c.opt, &scenario{}, d.guest)
		d.guest.begin(p)
		if d.guest.stop(p, "end_turn", nil) != nil {
			d.drop()
		}
	}
	if d.link != nil && d.guest.turn == nil {
		p := newPlayer(c.ctx, c.side, d.version, d.link, &c.opt, &scenario{}, d.guest)
		d.guest.begin(p)
		limit := p.patience()
		if d.used && c.opt.Patience == 0 {
			limit = settleTime // most clients that were started for this send one prompt
		}
		if err := d.guest.take(p, limit); err != nil {
			if !d.used {
				d.link.close()
				return c.noTurn(d, p, err)
			}
			d.drop()
		}
	}
	if d.link != nil {
		return nil
	}
	l, err := c.connect()
	if err != nil {
		return broken("the client did not connect: %s", clip(err.Error(), 300))
	}
	g := &guest{version: d.version}
	l, err = c.begin(l, g, d)
	if err != nil {
		l.close()
		return err
	}
	d.link, d.guest, d.used = l, g, false
	d.noTurns = 0
	return nil
}

// begin waits for the first turn of a connection, or of the one that the client
// makes in its place.
func (c *checker) begin(l *link, g *guest, d *dialect) (*link, error) {
	p := newPlayer(c.ctx, c.side, d.version, l, &c.opt, &scenario{}, g)
	p.reconnect = c.connect
	if err := g.take(p, p.patience()); err != nil {
		return p.link, c.noTurn(d, p, err)
	}
	return p.link, nil
}

// maxNoTurns is how many connections without a prompt are enough.
const maxNoTurns = 3

// noTurn is the error of a client that did not prompt. When it has not for some
// times, the rest is not tried.
func (c *checker) noTurn(d *dialect, p *player, err error) error {
	bad := broken("%s", p.missing(err, "session/prompt"))
	if d.noTurns++; d.noTurns >= maxNoTurns {
		d.noPrompt = bad.Error()
	}
	return bad
}
