package conformance

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/internal/pattern"
)

// step plays one step.
func (p *player) step(s *step) error {
	switch s.verb {
	case "call":
		_, err := p.call(s.name, s.method, p.fill(s.val))
		return err
	case "notify":
		if h, ok := p.role.(*host); ok && s.method == "session/cancel" {
			h.stops(p, s)
		}
		return p.write(`{"jsonrpc":"2.0","method":` + pattern.Quote(s.method) + `,"params":` + p.fill(s.val) + `}`)
	case "send":
		frame := s.val.Fill(p.known)
		if s.name != "" {
			p.sending(s.name, frame)
		}
		return p.write(frame)
	case "line":
		return p.write(s.val.Str)
	case "raw":
		return p.raw(s.val.Str)
	case "result", "error", "reply":
		return p.judge(s)
	case "settled":
		return p.settled()
	case "expect", "await":
		_, err := p.awaitWhat(s)
		return err
	case "before":
		return p.before(s)
	case "never":
		p.bans = append(p.bans, ban{s, s.what, p.cursor})
		for _, m := range p.inbox[p.cursor:] {
			if p.forbids(s.what, m) {
				return failed("%s came where it must not: %s", m, s.text)
			}
		}
		return nil
	case "quiet":
		return p.quiet(s)
	case "answer", "refuse":
		return p.answer(s)
	case "alive":
		return p.alive()
	case "closed":
		return p.closed()
	case "hangup":
		p.mute = true
		p.link.close()
		return nil
	case "eof":
		p.mute = true
		p.link.tellRaw("")
		if err := p.link.peer.CloseWrite(); err != nil {
			return broken("the peer's input could not be closed: %v", err)
		}
		return nil
	case "exit":
		return p.exit(s)
	}
	return p.control(s)
}

// control plays the steps that have nothing to do with the peer.
func (p *player) control(s *step) error {
	switch s.verb {
	case "let":
		v, err := pattern.Parse(s.val.Fill(p.known))
		if err != nil {
			return broken("line %d: %v", s.line, err)
		}
		p.known[s.name] = v
	case "fill":
		p.known[s.name] = pattern.Text(strings.Repeat(s.val.Str, max(0, s.n)))
	case "join":
		p.known[s.name] = pattern.Text(p.join(s.val.Elems))
	case "measure":
		return p.measure(s)
	case "spare":
		return p.spare(s)
	case "together":
		return p.together(s)
	case "is", "isnt", "need":
		return p.compare(s)
	case "within":
		p.limit = time.Duration(float64(s.dur) * float64(p.opt.timeout()) / float64(DefaultTimeout))
	case "wait":
		return p.gap(p.listenFor(s.dur))
	case "deaf", "listen":
		p.link.listen(s.verb == "listen")
		if s.dur > 0 {
			l := p.link
			time.AfterFunc(s.dur, func() { l.listen(true) })
		}
	case "repeat":
		again := p.anew()
		for i := range s.n {
			again()
			p.known["n"] = number(i)
			if err := p.loop(s.body); err != nil {
				return err
			}
		}
		p.spendAll(s.body)
	case "each":
		list := p.known[s.other]
		if list == nil || list.Kind != pattern.Array {
			return broken("line %d: $%s is no list", s.line, s.other)
		}
		again := p.anew()
		for i, v := range list.Elems {
			again()
			p.known["n"], p.known[s.name] = number(i), v
			if err := p.loop(s.body); err != nil {
				return err
			}
		}
		p.spendAll(s.body)
	default:
		return p.role.step(p, s)
	}
	return nil
}

// anew returns what forgets the names that are not known yet, for steps that are done
// more than once.
func (p *player) anew() func() {
	known := maps.Clone(p.known)
	return func() {
		maps.DeleteFunc(p.known, func(name string, _ *pattern.Value) bool { return known[name] == nil })
	}
}

// join returns texts, and what names stand for, as one text.
func (p *player) join(parts []*pattern.Value) string {
	var b strings.Builder
	for _, v := range parts {
		if v.Kind == pattern.Name {
			v = p.known[v.Str]
		}
		switch {
		case v == nil:
		case v.Kind == pattern.String:
			b.WriteString(v.Str)
		default:
			b.WriteString(v.Text)
		}
	}
	return b.String()
}

// together sends all that the steps within send in one write, where that is
// possible, and one right behind the other elsewhere.
func (p *player) together(s *step) error {
	if p.link.peer.Raw == nil {
		return p.play(s.body)
	}
	p.held = new(strings.Builder)
	err := p.play(s.body)
	held := p.held.String()
	p.held = nil
	if err != nil || held == "" {
		return err
	}
	return p.raw(held)
}

// fill returns a template as JSON; {} if there is none.
func (p *player) fill(v *pattern.Value) string {
	if v == nil {
		return "{}"
	}
	return v.Fill(p.known)
}

// gap makes the end of the connection the peer's failure, where it was not asked
// for.
func (p *player) gap(err error) error {
	if errors.Is(err, errClosed) {
		return failed("the peer closed the connection%s", p.link.ended())
	}
	return err
}

// raw writes bytes as they are.
func (p *player) raw(data string) error {
	if err := p.pull(); err != nil {
		return err
	}
	p.cursor = len(p.inbox)
	p.link.tellRaw(data)
	done := make(chan error, 1)
	go func() {
		_, err := p.link.peer.Raw.Write([]byte(data))
		done <- err
		signal(p.link.ready)
	}()
	var werr error
	over := false
	err := p.until(p.limit, func() bool {
		if !over {
			select {
			case werr = <-done:
				over = true
			default:
			}
		}
		return over
	})
	if !over {
		p.link.close()
		await(done)
	}
	switch {
	case over && werr != nil:
		return p.link.unsent(werr)
	case errors.Is(err, errTimeout):
		return overdue("the peer did not read what it was sent within %v", p.limit)
	case over && errors.Is(err, errClosed): // it may have closed one direction
		return nil
	}
	return p.gap(err)
}

// judge looks at the answer to a call.
func (p *player) judge(s *step) error {
	c := p.calls[s.name]
	if c == nil {
		return broken("line %d: $%s is no call", s.line, s.name)
	}
	if s.verb == "reply" {
		if err := p.answered(c); err != nil || s.val == nil {
			return err
		}
		if bad := pattern.MatchMessage(s.val, c.reply.val, p.known); bad != nil {
			return failed("the answer to %s: %s", c.method, bad)
		}
		return nil
	}
	result, refused, err := p.outcome(c)
	switch {
	case err != nil:
		return err
	case s.verb == "result" && refused != nil && p.side == Client && declined(c.method, refused):
		return unseen("%s was refused with %s: the client does not let an agent do that", c.method, describeError(refused))
	case s.verb == "result" && refused != nil:
		return failed("%s was answered with the error %s, expected a result", c.method, describeError(refused))
	case s.verb == "result":
		if s.val != nil {
			if bad := pattern.Match(s.val, result, p.known); bad != nil {
				return failed("the result of %s: %s", c.method, strings.Replace(bad.Error(), "the frame", "it", 1))
			}
		}
		return nil
	case refused == nil:
		return failed("%s was answered with the result %s, expected %s", c.method, clip(result.Text, 200), codesText(s.codes))
	}
	if !hasCode(refused, s.codes) {
		return failed("%s was answered with the error %s, expected %s", c.method, describeError(refused), codesText(s.codes))
	}
	if s.val != nil {
		if bad := pattern.Match(object(s.val), refused, p.known); bad != nil {
			return failed("the error of %s: %s", c.method, strings.Replace(bad.Error(), "the frame", "it", 1))
		}
	}
	return nil
}

// declined reports whether a client has refused what people may not want an agent to
// do, or its policy does not, and not the way it was asked for.
func declined(method string, refused *pattern.Value) bool {
	switch method {
	case "fs/write_text_file", "terminal/create":
		return !hasCode(refused, []int{-32700, -32600, -32601, -32602})
	}
	return false
}

func hasCode(refused *pattern.Value, codes []int) bool {
	code := refused.Get("code")
	if code == nil {
		return false
	}
	for _, c := range codes {
		if strconv.Itoa(c) == code.Text {
			return true
		}
	}
	return len(codes) == 0
}

// settled waits until every call was answered.
func (p *player) settled() error {
	err := p.until(p.limit, func() bool { return p.open == 0 })
	for _, c := range p.byID {
		if err != nil && c.reply == nil {
			return p.missing(err, "the answer to %s, and %d more,", c.method, p.open-1)
		}
	}
	return err
}

// before waits for something that has to come ahead of an answer.
func (p *player) before(s *step) error {
	c := p.calls[s.name]
	if c == nil {
		return broken("line %d: $%s is no call", s.line, s.name)
	}
	// What came before the call has nothing to do with it.
	p.passed[s.what.method] = max(p.passed[s.what.method], c.at)
	m, err := p.awaitWhat(s)
	if err != nil {
		return err
	}
	if c.reply != nil && c.reply.at < m.at {
		return failed("%s came behind the answer to %s", s.what, c.method)
	}
	return nil
}

// quiet listens for a while, in which nothing must come, or not what is named.
func (p *player) quiet(s *step) error {
	if err := p.pull(); err != nil {
		return err
	}
	from := len(p.inbox)
	var seen *letter
	err := p.until(s.dur, func() bool {
		for ; from < len(p.inbox); from++ {
			if m := p.inbox[from]; s.what == nil || p.fits(s.what, m) == nil {
				seen = m
				return true
			}
		}
		return false
	})
	switch {
	case seen != nil:
		return failed("%s came where nothing was to come for %v", seen, s.dur)
	case errors.Is(err, errTimeout):
		return nil
	}
	return p.gap(err)
}

// answer answers a request of the peer.
func (p *player) answer(s *step) error {
	m := p.asked[s.name]
	if m == nil || m.done {
		return broken("line %d: $%s is no request that can be answered", s.line, s.name)
	}
	m.done = true
	what := `"result":` + p.fill(s.val)
	if h, ok := p.role.(*host); ok && s.verb == "answer" && m.method == "session/request_permission" {
		if v, err := pattern.Parse(p.fill(s.val)); err == nil {
			h.answers(m, v.Get("outcome"))
		}
	}
	if s.verb == "refuse" {
		message := "refused"
		if s.val != nil {
			message = s.val.Str
		}
		what = `"error":{"code":` + strconv.Itoa(s.n) + `,"message":` + pattern.Quote(message) + `}`
	}
	return p.write(`{"jsonrpc":"2.0","id":` + m.id.Text + `,` + what + `}`)
}

// closed waits for the peer to close the connection.
func (p *player) closed() error {
	p.reconnect = nil
	err := p.until(p.limit, func() bool { return false })
	switch {
	case errors.Is(err, errClosed):
		return nil
	case errors.Is(err, errTimeout):
		return overdue("the peer did not close the connection within %v", p.limit)
	}
	return err
}

// exit waits for the end of the peer's process.
func (p *player) exit(s *step) error {
	ctx, cancel := context.WithTimeout(p.ctx, p.limit)
	defer cancel()
	type end struct {
		status int
		err    error
	}
	if p.side == Client {
		p.reconnect = nil // it is not to come back
	}
	ended, l := make(chan end, 1), p.link
	go func() {
		status, err := l.peer.Wait(ctx)
		ended <- end{status, err}
		signal(l.ready)
	}()
	// It may have something to say before, which must not hold it up.
	heard := p.until(p.limit, func() bool { return len(ended) > 0 })
	if isVerdict(heard) {
		cancel()
	}
	e := <-ended
	status, err := e.status, e.err
	switch {
	case isVerdict(heard):
		return heard
	case p.ctx.Err() != nil:
		return cause(p.ctx)
	case ctx.Err() != nil && err != nil:
		return overdue("the peer's process did not end within %v", p.limit)
	case err != nil:
		return failed("the peer's process: %s", clip(err.Error(), 200))
	case s.n >= 0 && status != s.n:
		return failed("the peer's process ended with status %d, expected %d", status, s.n)
	}
	return nil
}

// compare looks at a value that was captured.
func (p *player) compare(s *step) error {
	v := p.known[s.name]
	if v == nil {
		return broken("line %d: there is no $%s", s.line, s.name)
	}
	bad := pattern.Match(s.val, v, p.known)
	switch {
	case s.verb == "isnt" && bad == nil:
		return failed("%s is %s, expected something else", s.name, clip(v.Text, 200))
	case s.verb == "is" && bad != nil:
		return failed("%s: %s", s.name, strings.Replace(bad.Error(), "the frame", "it", 1))
	case s.verb == "need" && bad != nil:
		return unseen("%s: %s", s.name, strings.Replace(bad.Error(), "the frame", "it", 1))
	}
	return nil
}
