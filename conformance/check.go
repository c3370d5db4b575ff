package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/internal/pattern"
)

// ErrNoRule says that no rule fits the options of a check.
var ErrNoRule = errors.New("no rule fits the selection")

// CheckAgent checks an agent. open connects to it; it is called again for
// scenarios that want a connection of their own, and after one was spoilt, and
// each time has to lead to an agent that nobody has spoken to. With [Options.Jobs]
// above 1, several goroutines call it at a time. The streams are closed when they
// are not needed any more.
//
// The error is that of ctx, or says that no rule fits the options; all that is
// wrong with the agent is in the report, which is there in any case. If ctx has ended
// it has what was seen until then, without the rule that was being tried.
func CheckAgent(ctx context.Context, open func(ctx context.Context) (*Peer, error), opt Options) (*Report, error) {
	c := newChecker(ctx, Agent, open, opt)
	if len(c.rules) == 0 {
		return c.report, ErrNoRule
	}
	c.inOrder()
	var speaks []*dialect
	var lanes []*lane
	for _, version := range opt.versions() {
		l := c.lane(newDialect(version))
		if l.probe(); len(opt.versions()) > 1 {
			l.drop()
		}
		speaks, lanes = append(speaks, l.dialect), append(lanes, l)
	}
	c.judge(speaks)
	var q queue
	for _, l := range lanes {
		q.add(c, l)
	}
	q.run(c)
	return c.finish(speaks)
}

// A checker runs a check.
type checker struct {
	ctx    context.Context
	side   Side
	open   func(ctx context.Context) (*Peer, error)
	opt    Options
	rules  []*Rule // that were selected
	all    *catalog
	report *Report
	start  time.Time
	watch  *watch
	gate   *gate
	lanes  int // how many there are

	mu sync.Mutex // guards Mute and Cause of report, and what dialects share
}

func newChecker(ctx context.Context, side Side, open func(ctx context.Context) (*Peer, error), opt Options) *checker {
	c := &checker{ctx: ctx, side: side, open: open, opt: opt, all: builtin(), report: &Report{Side: side}, start: time.Now()}
	if opt.catalog != nil {
		c.all = opt.catalog
	}
	for _, r := range c.all.rules {
		if r.Side == side && opt.wants(r) {
			c.rules = append(c.rules, r)
		}
	}
	c.watch, c.gate = newWatch(side), newGate(opt.jobs(side))
	return c
}

// A dialect is a version of the protocol that is being checked.
type dialect struct {
	version int
	init    *pattern.Value
	speaks  bool   // the peer speaks it
	network string // of the connection on which that was found out: see Peer.Network
	ignores string // that the client does not answer requests it does not know, or ""
	refused string // why initialize was refused, or ""
	skip    string // why nothing is checked, or ""
	broken  string // why nothing can be checked, or ""
	cause   Cause  // of broken
	left    int    // trials that have no result yet

	groups int           // that have ended
	awake  chan struct{} // closed when all of them may run: see wake
	heard  bool          // something was answered in a trial
	silent int           // trials in a row in which nothing was answered
	asked  bool          // the peer was asked whether it answers, since it was given up in another version
	given  string        // why nothing is tried any more, as the peer answers nothing, or ""

	absent   bool   // the client has not connected
	noTurns  int    // connections in which a client sent no prompt, in a row
	noPrompt string // why no turn is waited for any more, or ""
}

func newDialect(version int) *dialect {
	return &dialect{version: version, awake: make(chan struct{})}
}

// probe finds out whether the agent speaks a version.
func (c *lane) probe() {
	d := c.dialect
	if c.ctx.Err() != nil {
		return
	}
	h, err := c.newHost()
	if err != nil {
		d.broken = err.Error()
		return
	}
	l, err := c.connect()
	if err != nil {
		d.broken, d.cause = "the agent could not be started: "+clip(err.Error(), 300), causeOf(err)
		return
	}
	d.network = l.peer.Network
	p := c.player(l, &scenario{}, h)
	h.begin(p)
	result, refused, err := p.greet(h)
	switch {
	case err != nil:
		d.broken, d.cause = p.noPeer(err)
	case refused != nil && len(p.inbox) > 0 && p.inbox[0].method == "initialize":
		d.broken, d.cause = p.noPeer(nil)
	case refused != nil:
		d.refused = "the agent refused initialize with " + describeError(refused)
	case isMCP(result):
		d.broken, d.cause = "this is not an ACP agent: it is an MCP server", CauseNoPeer
	case !h.spoken(result):
		d.skip = fmt.Sprintf("the agent does not speak version %d", c.version)
		if v := result.Get("protocolVersion"); v != nil {
			d.skip += ", it answered " + clip(v.Text, 20)
		}
	default:
		d.speaks, d.init = true, result
		if err = h.login(p); err == nil {
			c.link, c.host = l, h
			return
		}
	}
	l.close()
}

// greet initializes a connection.
func (p *player) greet(h *host) (result, refused *pattern.Value, err error) {
	c, err := p.call("", "initialize", h.hello(nil, nil))
	if err != nil {
		return nil, nil, err
	}
	result, refused, err = p.outcome(c)
	if result != nil {
		h.greeted(result)
	}
	return result, refused, err
}

// spoken reports whether the agent answered initialize in the version that is checked.
// The rules judge anything that is not a version.
func (h *host) spoken(result *pattern.Value) bool {
	v := result.Get("protocolVersion")
	return v == nil || v.Kind != pattern.Scalar || v.Text == fmt.Sprint(h.version) || v.Text != "1" && v.Text != "2"
}

// isMCP reports whether initialize was answered by a server of the Model Context Protocol, which
// has a method of that name, too. Its versions are dates.
func isMCP(result *pattern.Value) bool {
	v := result.Get("protocolVersion")
	return v != nil && v.Kind == pattern.String && strings.Count(v.Str, "-") == 2 && result.Get("serverInfo") != nil
}

// login logs in if the options say how.
func (h *host) login(p *player) error {
	if p.opt.Login == "" {
		return nil
	}
	method := "authenticate"
	if h.version == 2 {
		method = "auth/login"
	}
	c, err := p.call("", method, `{"methodId":`+pattern.Quote(p.opt.Login)+`}`)
	if err != nil {
		return err
	}
	_, refused, err := p.outcome(c)
	if err == nil && refused != nil {
		return broken("the login with %s failed: %s", p.opt.Login, describeError(refused))
	}
	return err
}

// noPeer says in a line what is wrong with a peer that did not answer
// initialize.
func (p *player) noPeer(err error) (why string, cause Cause) {
	no := func(format string, args ...any) (string, Cause) {
		return fmt.Sprintf("this is not an ACP %s: ", p.side) + fmt.Sprintf(format, args...), CauseNoPeer
	}
	for _, m := range p.inbox {
		switch {
		case m.val == nil && strings.HasPrefix(m.raw, "HTTP/"):
			return no("it speaks HTTP")
		case m.val == nil && strings.HasPrefix(m.raw, "Content-Length:"):
			return no("it speaks in frames with headers, as language servers do")
		case m.val == nil:
			if p.gone == nil {
				return no("it sent %s", m)
			}
			return no("it sent %s%s", m, p.link.ended())
		case p.side == Agent && m.method == "initialize":
			return no("it sends back what it is sent")
		}
	}
	return err.Error(), causeOf(err)
}

// judge decides what a version is that initialize was refused in: one that the
// agent does not speak, unless it speaks none.
func (c *checker) judge(all []*dialect) {
	speaks := slices.ContainsFunc(all, func(d *dialect) bool { return d.speaks })
	for _, d := range all {
		switch {
		case d.speaks:
			c.report.Versions = append(c.report.Versions, d.version)
			c.report.introduce(d.init)
		case speaks && d.skip == "":
			d.skip = fmt.Sprintf("the %s does not speak version %d: %s", c.side, d.version, d.refused+d.broken)
			d.refused, d.broken = "", ""
		}
	}
	if !speaks {
		for _, d := range all {
			c.report.Broken, c.report.Cause = d.broken+d.refused+d.skip, d.cause
			break
		}
	}
}

// introduce keeps how the peer introduced itself.
func (r *Report) introduce(init *pattern.Value) {
	for _, key := range []string{"agentInfo", "clientInfo", "info"} {
		if info := init.Get(key); info != nil {
			r.Name, r.Release = clip(info.StringAt("name"), 100), clip(info.StringAt("version"), 100)
		}
	}
}

func (c *checker) add(r *Result) {
	c.report.Results = append(c.report.Results, r)
	if c.opt.OnResult != nil {
		c.opt.OnResult(r)
	}
}

// observed returns what became of an observed rule. Of a peer that is none, or
// does not speak the version, nothing is said.
func (c *checker) observed(r *Rule, d *dialect) *Result {
	switch {
	case d.broken != "":
		return &Result{Rule: r, Version: d.version, Status: Broken, Why: d.broken}
	case d.skip != "":
		return &Result{Rule: r, Version: d.version, Status: Skip, Why: d.skip}
	case slices.Contains(r.Except, d.network):
		return &Result{Rule: r, Version: d.version, Status: Skip, Why: decided(d.network)}
	}
	res := c.watch.result(r, d)
	if res.Status == Unseen && res.Why == "" {
		res.Why = "nothing that it is about was seen"
	}
	return res
}

// finish adds what was observed and closes the report.
func (c *checker) finish(all []*dialect) (*Report, error) {
	if c.ctx.Err() != nil {
		c.report.Interrupted = true
		c.watch.interrupted()
	}
	for _, r := range c.rules {
		for _, d := range all {
			switch t := c.all.tests[r]; {
			case r.Observed && slices.Contains(r.Versions, d.version):
				res := c.observed(r, d)
				if c.report.Interrupted && res.Status != Pass && res.Status != Fail {
					c.report.Left++
					continue
				}
				c.add(res)
			case c.report.Interrupted && t != nil && t.scenarios[d.version] != nil && c.report.Result(r.ID, d.version) == nil:
				c.report.Left++
			}
		}
	}
	if c.report.Interrupted && c.report.Broken != "" {
		c.report.Broken, c.report.Cause = "", CauseOther // nobody knows
	}
	c.report.sort()
	c.report.Took = time.Since(c.start)
	return c.report, cause(c.ctx)
}
