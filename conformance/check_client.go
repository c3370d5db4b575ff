package conformance

import (
	"context"
	"errors"
	"fmt"
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
	c.inOrder()
	var speaks []*dialect
	for _, version := range opt.versions() {
		l := c.lane(newDialect(version))
		if n := len(speaks); n > 0 && speaks[n-1].absent {
			l.broken, l.absent = speaks[n-1].broken, true
		} else {
			l.meet()
		}
		speaks = append(speaks, l.dialect)
		if l.speaks {
			c.play(l)
		}
		l.drop()
	}
	c.judge(speaks)
	for _, d := range speaks {
		if !d.speaks {
			c.play(c.lane(d))
		}
	}
	return c.finish(speaks)
}

// play tries all rules in a lane.
func (c *checker) play(l *lane) {
	var q queue
	q.add(c, l)
	q.run(c)
}

func (c *checker) placeOf(r *Rule) place {
	if t := c.all.tests[r]; t != nil {
		return t.place
	}
	return onShared
}

// meet waits for the client and finds out which version it asks for.
func (c *lane) meet() {
	d, version := c.dialect, c.version
	if c.ctx.Err() != nil {
		return
	}
	l, err := c.connect()
	if err != nil {
		d.absent, d.broken, d.cause = true, "the client did not connect: "+clip(err.Error(), 300), causeOf(err)
		return
	}
	g := &guest{version: version}
	p := c.player(l, &scenario{}, g)
	p.reconnect = c.connect
	err = p.until(p.patience(), func() bool { return g.init != nil })
	if err != nil {
		d.broken, d.cause = p.noPeer(p.missing(err, "initialize"))
		l.close()
		return
	}
	d.init = g.init
	if asked := g.asked(); asked != 0 && asked < version {
		d.skip = fmt.Sprintf("the client does not speak version %d, it asks for %d", version, asked)
		l.close()
		return
	}
	err = p.until(p.patience(), func() bool { return g.sessions > 0 || len(g.prompts) > 0 })
	if err != nil && g.asked() > version {
		d.skip = fmt.Sprintf("the client does not speak version %d, which it was offered in the place of %d", version, g.asked())
		p.link.close()
		return
	}
	d.init = g.init
	// A client that fails here may do so because of what our rules are about.
	d.speaks, c.link, c.guest = true, p.link, g
}

// trialClient plays a scenario with a client once.
func (c *lane) trialClient(t *test, sc *scenario) error {
	switch t.place {
	case onShared, onTurn:
		if err := c.turnFor(t.place == onTurn || c.opt.Apart); err != nil {
			return err
		}
		c.forget()
		c.used, c.guest.used = true, true
		g := c.guest
		l, clean, err := c.playOn(c.link, g, sc)
		c.link = l
		err = g.excuse(l, err, c.opt.timeout())
		if !clean {
			c.drop()
		}
		return err
	}
	c.drop() // a client may not be there twice
	l, err := c.connect()
	if err != nil {
		return broken("the client did not connect: %s", clip(err.Error(), 300))
	}
	defer func() { l.close() }()
	c.forget()
	g := &guest{version: c.version}
	if t.place == onFresh {
		if l, err = c.begin(l, g); err != nil {
			return err
		}
	}
	l, _, err = c.playOn(l, g, sc)
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

// turnFor makes sure that there is a turn, one in which nothing was played if
// own is set.
func (c *lane) turnFor(own bool) error {
	if c.link != nil && c.link.dead() {
		c.drop()
	}
	if c.link != nil && c.guest.turn != nil && c.guest.used && own {
		p := c.player(c.link, &scenario{}, c.guest)
		c.guest.begin(p)
		if c.guest.stop(p, "end_turn", nil) != nil {
			c.drop()
		}
	}
	if c.link != nil && c.guest.turn == nil {
		p := c.player(c.link, &scenario{}, c.guest)
		c.guest.begin(p)
		limit := p.patience()
		if c.used && c.opt.Patience == 0 {
			limit = settleTime // most clients that were started for this send one prompt
		}
		if err := c.guest.take(p, limit); err != nil {
			if !c.used {
				c.link.close()
				return c.noTurn(p, err)
			}
			c.drop()
		}
	}
	if c.link != nil {
		return nil
	}
	l, err := c.connect()
	if err != nil {
		return broken("the client did not connect: %s", clip(err.Error(), 300))
	}
	g := &guest{version: c.version}
	l, err = c.begin(l, g)
	if err != nil {
		l.close()
		return err
	}
	c.link, c.guest, c.used = l, g, false
	c.noTurns = 0
	return nil
}

// begin waits for the first turn of a connection, or of the one that the client
// makes in its place.
func (c *lane) begin(l *link, g *guest) (*link, error) {
	p := c.player(l, &scenario{}, g)
	p.reconnect = c.connect
	if err := g.take(p, p.patience()); err != nil {
		return p.link, c.noTurn(p, err)
	}
	return p.link, nil
}

// maxNoTurns is how many connections without a prompt are enough.
const maxNoTurns = 3

// noTurn is the error of a client that did not prompt. When it has not for some
// times, the rest is not tried.
func (c *lane) noTurn(p *player, err error) error {
	bad := broken("%s", p.missing(err, "session/prompt"))
	if c.noTurns++; c.noTurns >= maxNoTurns {
		c.noPrompt = bad.Error()
	}
	return bad
}
