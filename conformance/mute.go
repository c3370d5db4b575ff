package conformance

import (
	"errors"

	"github.com/goacp/acp/internal/pattern"
)

// maxSilent is how many trials in a row, each on a connection of its own, may fail without an answer
// to anything before the peer is asked whether it answers at all. Each may take as long as a step may.
const maxSilent = 5

// listened notes whether anything was answered in a trial, but initialize and logins, and gives up a
// peer that answers nothing. before is how many calls were answered earlier. It reports whether the
// trial failed and nothing was answered.
func (c *lane) listened(t *test, before int, err error) (silent bool) {
	if t.place == onBare || c.ctx.Err() != nil {
		return false
	}
	v, ok := errors.AsType[*verdict](err)
	// If a trial was neither failed nor broken nothing may have been asked.
	silent = c.answered == before && err != nil && (!ok || v.status == Fail || v.status == Broken)
	c.mu.Lock()
	if c.answered > before {
		c.heard, c.silent = true, 0
		c.wake()
	}
	if silent {
		c.silent++
	}
	ask := c.silent >= maxSilent
	if ask {
		c.silent = 0
	}
	c.mu.Unlock()
	if ask {
		c.ask()
	}
	return silent
}

// mute returns why nothing more is tried, since the peer answers nothing, or "".
func (c *lane) mute() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.given
}

// ask asks the peer something that all answer: some do not answer only what they do not like. If
// nothing comes the rest is not tried.
func (c *lane) ask() {
	c.gate.enter(c.gate.places())
	defer c.gate.leave(c.gate.places())
	if c.mute() != "" {
		return // another lane has asked
	}
	before, err := c.answered, error(nil)
	if c.side == Agent {
		err = c.askAgent()
	} else {
		err = c.askClient()
	}
	if err == nil || c.answered > before || c.ctx.Err() != nil {
		return
	}
	why := "the " + string(c.side) + " answers nothing any more: " + clip(err.Error(), 300)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given = "not tried: " + why
	c.wake()
	if c.report.Mute == "" {
		c.report.Mute, c.report.Cause = why, causeOf(err)
	}
}

// askAgent opens a session.
func (c *lane) askAgent() error {
	l, h, err := c.initialized()
	if err != nil {
		return err
	}
	defer l.close()
	p := c.player(l, &scenario{}, h)
	call, err := p.call("", "session/new", `{"cwd":`+pattern.Quote(h.cwd)+`,"mcpServers":[]}`)
	if err == nil {
		_, _, err = p.outcome(call)
	}
	return err
}

// askClient asks in a turn for what all answer. Of one that begins no turn others tell.
func (c *lane) askClient() error {
	if c.turnFor(false) != nil {
		return nil
	}
	defer c.drop()
	p := c.player(c.link, &scenario{}, c.guest)
	c.guest.begin(p)
	c.guest.ignores = c.ignores != ""
	call, err := p.ping()
	if err == nil {
		_, _, err = p.outcome(call)
	}
	return err
}
