package conformance

import (
	"errors"
	"fmt"
	"time"
)

// ping asks the peer something that all answer: what nobody knows, which has to be
// refused. A client that does not answer that is asked for what it does know, and
// outside of a turn nothing: then there is no call.
func (p *player) ping() (*pending, error) {
	if g, ok := p.role.(*guest); ok && g.ignores {
		if g.turn == nil {
			return nil, nil
		}
		return g.ping(p)
	}
	return p.call("", "_check/alive", "{}")
}

// ping asks for a file, if the client offers to read them, which needs nobody's
// attention, and otherwise for permission.
func (g *guest) ping(p *player) (*pending, error) {
	fs := g.init.Get("clientCapabilities").Get("fs").Get("readTextFile")
	id, file := p.known["session"], p.known["file"]
	if g.version == 1 && fs != nil && fs.Text == "true" && id != nil && file != nil {
		return p.call("", "fs/read_text_file", `{"sessionId":`+id.Text+`,"path":`+file.Text+`}`)
	}
	return g.question(p, "", nil)
}

// alive holds that the peer answers, or at least stays.
func (p *player) alive() error {
	c, err := p.ping()
	switch {
	case err != nil:
		return err
	case c == nil:
		return p.gap(p.listenFor(settleTime))
	}
	return p.answered(c)
}

// idles waits for a client to continue that answers nothing outside of turns: it may
// prompt again, leave, or do nothing.
func (g *guest) idles(p *player) error {
	err := p.until(min(p.limit, settleTime), func() bool { return len(g.prompts) > 0 })
	if errors.Is(err, errTimeout) || p.link.dead() && p.banned == nil && p.ctx.Err() == nil {
		return nil
	}
	return err
}

// The rules that fail on a client that does not answer requests it does not know. Others
// are tried with what it does know.
const (
	unknownObserved = "client/answer/unknown-method"
	unknownPlayed   = "client/dispatch/unknown-request"
)

// acquaint finds out whether a client answers requests that it does not know. There are
// some that do not, and answer all others.
func (c *checker) acquaint(d *dialect) {
	if !c.pings(d.version) || c.ctx.Err() != nil || c.turnFor(d, false) != nil {
		return
	}
	p := newPlayer(c.ctx, c.side, d.version, d.link, &c.opt, &scenario{}, d.guest)
	d.guest.begin(p)
	answered := func(limit time.Duration, call *pending, err error) error {
		if err != nil {
			return err
		}
		return p.until(limit, func() bool { return call.reply != nil })
	}
	call, err := p.call("", "_check/alive", "{}")
	if !errors.Is(answered(p.limit, call, err), errTimeout) {
		return
	}
	asked := Seen{Out: true, Data: fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"_check/alive","params":{}}`, call.id)}
	call, err = d.guest.ping(p)
	if answered(max(p.limit, p.opt.Patience), call, err) != nil {
		return // it answers nothing at all
	}
	d.ignores = fmt.Sprintf("the client does not answer requests that it does not know: none came within %v", p.limit)
	c.watch.fail(unknownObserved, d.version, "did not answer the unknown request _check/alive", asked)
}

// pings reports whether a scenario of a version asks for what nobody knows.
func (c *checker) pings(version int) bool {
	for _, r := range c.rules {
		if t := c.all.tests[r]; t != nil && t.scenarios[version] != nil {
			if sc := t.scenarios[version]; sc.unknown || sc.verbs["alive"] || sc.verbs["over"] || sc.verbs["never"] {
				return true
			}
		}
	}
	return false
}
