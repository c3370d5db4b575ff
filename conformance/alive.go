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

// calm is how long is listened at the end of a scenario in which something must
// not come, behind the answer to a request and ahead of another one.
const calm = 100 * time.Millisecond

// last is what the end of a scenario says about what must not come: the peer is
// asked something, since what it has to say before the answer comes before it.
func (p *player) last() error {
	if len(p.bans) == 0 || p.gone != nil || p.mute {
		return p.banned
	}
	err := p.roundTrip()
	if late := errors.Is(err, errTimeout); err == nil || late {
		if err = p.listenFor(calm); err == nil && !late {
			err = p.roundTrip()
		}
	}
	if v, ok := errors.AsType[*verdict](err); ok && v != p.banned || p.ctx.Err() != nil {
		return err
	}
	return p.banned
}

// roundTrip asks the peer something that all answer and waits for the answer. A person
// who is asked has other things to do.
func (p *player) roundTrip() error {
	c, err := p.ping()
	if err != nil || c == nil {
		return err
	}
	limit := p.limit
	if c.method == "session/request_permission" {
		limit = min(limit, settleTime)
	}
	return p.until(limit, func() bool { return c.reply != nil })
}

// silence waits for what should or must not come, for d and then until the peer has
// answered a request: on a busy machine it may not have run meanwhile. It returns nil if
// come holds, and errTimeout if it does not.
func (p *player) silence(d time.Duration, come func() bool) error {
	was := *p.expired
	defer func() { *p.expired = was }()
	err := p.until(d, come)
	g, client := p.role.(*guest)
	if !errors.Is(err, errTimeout) || p.mute || p.held != nil || client && g.init == nil {
		return err
	}
	if c, failed := p.ping(); failed == nil && c != nil {
		_ = p.until(min(p.limit, DefaultTimeout), func() bool { return come() || c.reply != nil })
	}
	switch {
	case p.ctx.Err() != nil:
		return cause(p.ctx)
	case p.banned != nil:
		return p.banned
	case come():
		return nil
	}
	return errTimeout
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
func (c *lane) acquaint() {
	if !c.pings(c.version) || c.ctx.Err() != nil || c.turnFor(false) != nil {
		return
	}
	p := c.player(c.link, &scenario{}, c.guest)
	c.guest.begin(p)
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
	call, err = c.guest.ping(p)
	if answered(max(p.limit, p.opt.Patience), call, err) != nil {
		return // it answers nothing at all
	}
	c.ignores = fmt.Sprintf("the client does not answer requests that it does not know: none came within %v", p.limit)
	c.watch.fail(unknownObserved, c.version, "did not answer the unknown request _check/alive", asked)
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
