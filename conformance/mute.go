package conformance

import "github.com/goacp/acp/internal/pattern"

// hears returns how many frames were received.
func (c *checker) hears() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// maxSilent is how many rules are tried in a row with an agent that says nothing behind
// initialize, before it is asked whether it says anything at all. Each may take as long as a step
// may.
const maxSilent = 5

// listened gives up an agent that says nothing any more. One that only does not answer what it does
// not like opens a session.
func (c *checker) listened(d *dialect, heard bool, s Status) {
	if heard || s != Fail && s != Broken {
		d.silent = 0
		return
	}
	if d.silent++; d.silent < maxSilent || c.ctx.Err() != nil {
		return
	}
	d.silent = 0
	l, h, err := c.initialized(d)
	if err == nil {
		before := c.hears()
		p := newPlayer(c.ctx, c.side, d.version, l, &c.opt, &scenario{}, h)
		call, e := p.call("", "session/new", `{"cwd":`+pattern.Quote(h.cwd)+`,"mcpServers":[]}`)
		if err = e; err == nil {
			_, _, err = p.outcome(call)
		}
		l.close()
		if c.hears() > before {
			return
		}
	}
	if err != nil && c.ctx.Err() == nil {
		d.mute = "not tried: the agent says nothing after initialize any more; session/new: " + clip(err.Error(), 300)
	}
}
