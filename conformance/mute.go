package conformance

import "github.com/goacp/acp/internal/pattern"

// maxSilent is how many trials in a row, each on a connection of its own, may fail without an answer
// to anything before the peer is asked whether it answers at all. Each may take as long as a step may.
const maxSilent = 5

// listened notes whether anything was answered in some trials of a rule, but initialize and logins,
// and gives up a peer that answers nothing.
func (c *checker) listened(d *dialect, trials int, answered bool, s Status) {
	switch {
	case answered:
		d.silent = 0
	case s == Fail || s == Broken: // else nothing may have been asked
		if d.silent += trials; d.silent >= maxSilent {
			c.ask(d)
		}
	}
}

// ask asks the peer something that all answer: some do not answer only what they do not like. If
// nothing comes the rest is not tried.
func (c *checker) ask(d *dialect) {
	d.silent = 0
	before, err := c.answered, error(nil)
	if c.side == Agent {
		err = c.askAgent(d)
	} else {
		err = c.askClient(d)
	}
	if err == nil || c.answered > before || c.ctx.Err() != nil {
		return
	}
	why := "the " + string(c.side) + " answers nothing any more: " + clip(err.Error(), 300)
	d.mute = "not tried: " + why
	if c.report.Mute == "" {
		c.report.Mute, c.report.Cause = why, causeOf(err)
	}
}

// askAgent opens a session.
func (c *checker) askAgent(d *dialect) error {
	l, h, err := c.initialized(d)
	if err != nil {
		return err
	}
	defer l.close()
	p := newPlayer(c.ctx, c.side, d.version, l, &c.opt, &scenario{}, h)
	call, err := p.call("", "session/new", `{"cwd":`+pattern.Quote(h.cwd)+`,"mcpServers":[]}`)
	if err == nil {
		_, _, err = p.outcome(call)
	}
	return err
}

// askClient asks in a turn for what all answer. Of one that begins no turn others tell.
func (c *checker) askClient(d *dialect) error {
	if c.turnFor(d, false) != nil {
		return nil
	}
	defer d.drop()
	p := newPlayer(c.ctx, c.side, d.version, d.link, &c.opt, &scenario{}, d.guest)
	d.guest.begin(p)
	d.guest.ignores = d.ignores != ""
	call, err := p.ping()
	if err == nil {
		_, _, err = p.outcome(call)
	}
	return err
}
