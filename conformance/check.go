package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/internal/pattern"
	"github.com/goacp/acp/trace"
)

// ErrNoRule says that no rule fits the options of a check.
var ErrNoRule = errors.New("no rule fits the selection")

// CheckAgent checks an agent. open connects to it; it is called again for
// scenarios that want a connection of their own, and after one was spoilt, and
// each time has to lead to an agent that nobody has spoken to. The streams are
// closed when they are not needed any more.
//
// The error is that of ctx, or says that no rule fits the options; all that is
// wrong with the agent is in the report, which is there in any case. If ctx has ended
// it has what was seen until then, without the rule that was being tried.
func CheckAgent(ctx context.Context, open func(ctx context.Context) (*Peer, error), opt Options) (*Report, error) {
	c := newChecker(ctx, Agent, open, opt)
	if len(c.rules) == 0 {
		return c.report, ErrNoRule
	}
	// Scenarios that share a connection come first: no two are open at once, so that
	// what was recorded is one conversation after another.
	slices.SortStableFunc(c.rules, func(a, b *Rule) int { return cmp.Compare(c.placeOf(a), c.placeOf(b)) })
	var speaks []*dialect
	for _, version := range opt.versions() {
		d := c.probe(version)
		if speaks = append(speaks, d); len(opt.versions()) > 1 {
			d.drop()
		}
	}
	c.judge(speaks)
	for _, d := range speaks {
		c.run(d)
	}
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

	answered int    // calls, on all connections: see listened
	network  string // of the last connection: see Peer.Network

	mu  sync.Mutex
	saw evidence
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
	c.watch = newWatch(side)
	return c
}

// A dialect is a version of the protocol that is being checked.
type dialect struct {
	version int
	link    *link  // that scenarios share, or nil
	host    *host  // of link, if an agent is checked
	guest   *guest // of link, if a client is checked
	used    bool   // a scenario was played on link
	init    *pattern.Value
	speaks  bool   // the peer speaks it
	ignores string // that the client does not answer requests it does not know, or ""
	refused string // why initialize was refused, or ""
	skip    string // why nothing is checked, or ""
	broken  string // why nothing can be checked, or ""
	cause   Cause  // of broken

	silent int    // trials in a row in which nothing was answered
	mute   string // why nothing is tried any more, as the peer answers nothing, or ""

	absent   bool   // the client has not connected
	noTurns  int    // connections in which a client sent no prompt, in a row
	noPrompt string // why no turn is waited for any more, or ""
}

// connect opens a connection on which nothing was said.
func (c *checker) connect() (*link, error) {
	ctx, cancel := c.ctx, context.CancelFunc(func() {})
	if c.side == Agent { // a client may have to be started by hand
		ctx, cancel = context.WithTimeout(ctx, max(c.opt.timeout(), time.Minute))
	}
	defer cancel()
	peer, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	c.network = peer.Network
	see := c.watch.connection()
	l := newLink(peer, func(out bool, data []byte) {
		dir := trace.ToClient
		if out == (c.side == Agent) {
			dir = trace.ToAgent
		}
		c.mu.Lock() // several connections may be open at once
		defer c.mu.Unlock()
		c.saw.add(out, data)
		see(time.Since(c.start), dir, out, data)
		if c.opt.Record != nil {
			c.opt.Record(dir, data)
		}
	})
	l.answered = &c.answered
	return l, nil
}

// probe finds out whether the agent speaks a version.
func (c *checker) probe(version int) *dialect {
	d := &dialect{version: version}
	if c.ctx.Err() != nil {
		return d
	}
	l, err := c.connect()
	if err != nil {
		d.broken, d.cause = "the agent could not be started: "+clip(err.Error(), 300), causeOf(err)
		return d
	}
	h := newHost(version, c.opt.cwd())
	p := newPlayer(c.ctx, c.side, version, l, &c.opt, &scenario{}, h)
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
		d.skip = fmt.Sprintf("the agent does not speak version %d", version)
		if v := result.Get("protocolVersion"); v != nil {
			d.skip += ", it answered " + clip(v.Text, 20)
		}
	default:
		d.speaks, d.init = true, result
		if err = h.login(p); err == nil {
			d.link, d.host = l, h
			return d
		}
	}
	l.close()
	return d
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

// run tries the rules in one version.
func (c *checker) run(d *dialect) {
	defer d.drop()
	if c.report.Mute != "" && d.speaks {
		c.ask(d) // what is so in one version is likely so in the other one
	}
	if c.side == Client && d.speaks {
		c.acquaint(d)
	}
	for _, r := range c.rules {
		t := c.all.tests[r]
		if c.ctx.Err() != nil {
			return
		}
		if t == nil || t.scenarios[d.version] == nil {
			continue
		}
		res := c.try(d, r, t)
		if c.ctx.Err() != nil && res.Status != Pass {
			return // the interruption may be to blame
		}
		c.add(res)
	}
}

// decided says why a rule is skipped that has the network among its exceptions.
func (c *checker) decided() string {
	return "over " + c.network + " this is decided by the transport and not by the agent"
}

func (c *checker) add(r *Result) {
	c.report.Results = append(c.report.Results, r)
	if c.opt.OnResult != nil {
		c.opt.OnResult(r)
	}
}

// drop closes the connection that scenarios share.
func (d *dialect) drop() {
	if d.link != nil {
		d.link.close()
	}
	d.link, d.host, d.guest, d.used = nil, nil, nil, false
}

// try tries a rule.
func (c *checker) try(d *dialect, r *Rule, t *test) *Result {
	start := time.Now()
	res := &Result{Rule: r, Version: d.version}
	sc := t.scenarios[d.version]
	switch {
	case d.skip != "":
		res.Status, res.Why = Skip, d.skip
		return res
	case d.broken != "" || d.refused != "" && t.place != onBare:
		res.Status, res.Why = Broken, d.broken+d.refused
		return res
	}
	if slices.Contains(r.Except, c.network) {
		res.Status, res.Why = Skip, c.decided()
		return res
	}
	if res.Why = d.unfit(r); res.Why != "" {
		res.Status = Skip
		return res
	}
	if d.mute != "" || d.noPrompt != "" && t.place != onBare {
		res.Status, res.Why = Broken, cmp.Or(d.mute, d.noPrompt)
		return res
	}
	if d.ignores != "" && sc.unknown && r.ID != unknownPlayed {
		res.Status, res.Why = Unseen, d.ignores
		return res
	}
	before, trials := c.answered, 1
	used := d.link != nil && d.used && t.place == onShared
	trial := c.trial
	if c.side == Client {
		trial = c.trialClient
	}
	err := trial(d, t, sc)
	if v, ok := errors.AsType[*verdict](err); ok && v.status == Fail && used && d.link == nil && c.ctx.Err() == nil {
		// An earlier scenario may be to blame: only what fails alone counts.
		err, trials = trial(d, t, sc), 2
	}
	res.Took = time.Since(start)
	res.Status = Pass
	if err != nil {
		res.Status, res.Why = Broken, clip(err.Error(), 600)
		if v, ok := errors.AsType[*verdict](err); ok {
			res.Status = v.status
		}
		if words, ok := strings.CutPrefix(res.Why, noWords); ok {
			res.Purpose, _, _ = strings.Cut(words, " ")
		}
	}
	if res.Status != Skip {
		c.mu.Lock()
		res.Saw = append(slices.Clone(c.saw.first), c.saw.last...)
		c.mu.Unlock()
	}
	if t.place != onBare && c.ctx.Err() == nil {
		c.listened(d, trials, c.answered > before, res.Status)
	}
	return res
}

// trial plays a scenario once.
func (c *checker) trial(d *dialect, t *test, sc *scenario) error {
	c.forget()
	if t.place == onShared && !c.opt.Apart {
		if d.link != nil && d.link.dead() {
			d.drop()
		}
		if d.link == nil {
			l, h, err := c.initialized(d)
			if err != nil {
				return err
			}
			d.link, d.host = l, h
		}
		d.used = true
		now, clean, err := c.playOn(d.link, d.host, d, sc)
		if d.link = now; !clean {
			d.drop()
		}
		return err
	}
	d.drop()
	var l *link
	h := newHost(d.version, c.opt.cwd())
	var err error
	if t.place == onBare {
		l, err = c.connect()
		if err != nil {
			err = broken("the agent could not be started: %s", clip(err.Error(), 300))
		}
	} else {
		l, h, err = c.initialized(d)
	}
	if err != nil {
		return err
	}
	now, _, err := c.playOn(l, h, d, sc)
	now.close()
	return err
}

// initialized opens a connection and initializes it.
func (c *checker) initialized(d *dialect) (*link, *host, error) {
	answered := c.answered
	defer func() { c.answered = answered }() // that it does this says nothing of the rest
	l, err := c.connect()
	if err != nil {
		return nil, nil, broken("the agent could not be started: %s", clip(err.Error(), 300))
	}
	h := newHost(d.version, c.opt.cwd())
	p := newPlayer(c.ctx, c.side, d.version, l, &c.opt, &scenario{}, h)
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

// playOn plays a scenario on a connection; clean says that it can be used again.
// now is the connection that has taken its place, or l.
func (c *checker) playOn(l *link, ours role, d *dialect, sc *scenario) (now *link, clean bool, err error) {
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
	p := newPlayer(c.ctx, c.side, d.version, l, &c.opt, sc, ours)
	if c.side == Client {
		p.reconnect = c.connect
	} else {
		p.reconnect = func() (*link, error) {
			l, _, err := c.initialized(d)
			return l, err
		}
	}
	if g, ok := ours.(*guest); ok {
		g.ignores = d.ignores != ""
	}
	ours.begin(p)
	if h, ok := ours.(*host); ok {
		defer h.closeProbe()
	}
	if err = p.play(sc.steps); err == nil {
		err = p.last()
	}
	v, ok := errors.AsType[*verdict](err)
	if err != nil && (!ok || v.status != Unseen) || p.gone != nil {
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
		if err := p.write(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + t.call.session + `}}`); err != nil {
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

// observed returns what became of an observed rule. Of a peer that is none, or
// does not speak the version, nothing is said.
func (c *checker) observed(r *Rule, d *dialect) *Result {
	switch {
	case d.broken != "":
		return &Result{Rule: r, Version: d.version, Status: Broken, Why: d.broken}
	case d.skip != "":
		return &Result{Rule: r, Version: d.version, Status: Skip, Why: d.skip}
	case slices.Contains(r.Except, c.network):
		return &Result{Rule: r, Version: d.version, Status: Skip, Why: c.decided()}
	}
	res := c.watch.result(r, d)
	if res.Status == Unseen && res.Why == "" {
		res.Why = "nothing that it is about was seen"
	}
	return res
}

// finish adds what was observed and closes the report.
func (c *checker) finish(all []*dialect) (*Report, error) {
	for _, d := range all {
		d.drop()
	}
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
