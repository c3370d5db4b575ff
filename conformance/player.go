package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/internal/pattern"
)

// A verdict is an error that says how a scenario ended other than well.
type verdict struct {
	status Status
	why    string
	late   bool // something did not come in time
}

func (v *verdict) Error() string { return v.why }

func failed(format string, args ...any) error { return newVerdict(Fail, format, args) }
func unseen(format string, args ...any) error { return newVerdict(Unseen, format, args) }
func broken(format string, args ...any) error { return newVerdict(Broken, format, args) }

// overdue is failed for what did not come or happen in time.
func overdue(format string, args ...any) error {
	v := newVerdict(Fail, format, args)
	v.late = true
	return v
}

func newVerdict(s Status, format string, args []any) *verdict {
	return &verdict{status: s, why: fmt.Sprintf(format, args...)}
}

var errTimeout = errors.New("timeout")

// settleTime bounds the wait for what belongs to a turn that has ended.
const settleTime = time.Second

// A player plays one scenario on a link.
type player struct {
	ctx     context.Context
	side    Side // of the peer
	version int
	link    *link
	opt     *Options
	sc      *scenario
	role    role

	known pattern.Captures
	calls map[string]*pending // by name
	byID  map[string]*pending
	open  int                // calls that were not answered
	asked map[string]*letter // requests of the peer, by name
	spent map[*what]bool     // what steps that are not played again were about
	loops int                // how many blocks are being played that may be played again

	inbox   []*letter
	bytes   int
	cursor  int            // behind the last letter that a step was about
	passed  map[string]int // the same by method, for notifications
	bans    []ban
	banned  error
	limit   time.Duration
	gone    error // why nothing more can be read
	mute    bool  // nothing more can be sent
	expired *bool // set when something did not come in time
	taken   Usage // by the peer when it was measured

	held *strings.Builder // what is to be sent in one write, or nil

	// reconnect waits for the client to connect again; nil where that is useless.
	reconnect func() (*link, error)
}

// A role is what the side we play does by itself.
type role interface {
	// begin makes a player ready for a scenario.
	begin(p *player)
	// leave ends what a scenario has begun on a connection that is used again,
	// and reports whether that was possible.
	leave(p *player) bool
	// auto answers a request that no step is about: with a member result or
	// error, or with "" not yet.
	auto(p *player, m *letter) string
	// saw is called with every notification and response.
	saw(p *player, m *letter)
	// step plays a step that only this side has.
	step(p *player, s *step) error
}

// A pending is a call that was made.
type pending struct {
	id, method string
	session    string // text of the id of the session it is about, or ""
	at         int    // how many letters there were
	reply      *letter
}

// A ban is something that must not come.
type ban struct {
	step *step
	what *what
	from int
}

func newPlayer(ctx context.Context, side Side, version int, l *link, opt *Options, sc *scenario, r role) *player {
	return &player{
		ctx: ctx, side: side, version: version, link: l, opt: opt, sc: sc, role: r,
		known: pattern.Captures{"version": number(version)},
		calls: map[string]*pending{}, byID: map[string]*pending{}, asked: map[string]*letter{},
		passed: map[string]int{}, spent: map[*what]bool{}, limit: opt.timeout(), expired: new(bool),
	}
}

func number(n int) *pattern.Value {
	return &pattern.Value{Kind: pattern.Scalar, Text: strconv.Itoa(n), Rest: -1}
}

func (p *player) play(steps []*step) error {
	for _, s := range steps {
		if err := p.step(s); err != nil {
			return err
		}
		if p.banned != nil {
			return p.banned
		}
	}
	return nil
}

// pull takes what was received and deals with what no step is about.
func (p *player) pull() error {
	for _, a := range p.link.take() {
		if a.data == nil {
			p.gone = ending(a.err)
			continue
		}
		m := newLetter(len(p.inbox), a)
		p.inbox = append(p.inbox, m)
		if p.bytes += len(m.raw); len(p.inbox) > maxKept || p.bytes > maxKeptBytes {
			p.link.close()
			return failed("more came than %d frames or %d MiB that nobody asked for", maxKept, maxKeptBytes>>20)
		}
		p.sort(m)
	}
	return p.banned
}

// sort deals with a letter that arrived.
func (p *player) sort(m *letter) {
	if c := p.called(m); c != nil {
		c.reply, m.due = m, true
		p.open--
		*p.link.answered++
	}
	for _, b := range p.bans {
		if m.at >= b.from && p.banned == nil && p.forbids(b.what, m) {
			p.banned = failed("%s came where it must not: %s", m, b.step.text)
		}
	}
	switch {
	case m.response():
		p.role.saw(p, m)
	case m.request():
		if !p.wanted(m) {
			p.reply(m)
		}
	case m.method != "":
		p.role.saw(p, m)
	}
}

// called returns the call that a letter is the first answer to, or nil.
func (p *player) called(m *letter) *pending {
	if !m.response() {
		return nil
	}
	if c := p.byID[m.id.Text]; c != nil && c.reply == nil {
		return c
	}
	return nil
}

// forbids reports whether a letter is what must not come. Answers to calls always
// may.
func (p *player) forbids(w *what, m *letter) bool {
	return !(w.method == "" && m.due) && p.fits(w, m) == nil
}

// wanted reports whether a step of the scenario that is still to come may be about
// a request.
func (p *player) wanted(m *letter) bool {
	return p.sc.uses[m.method] && slices.ContainsFunc(p.sc.whats[m.method], func(w *what) bool { return !p.spent[w] && p.fits(w, m) == nil })
}

// spend notes that a step was played that waited for w. Requests that only this
// step could have been about are answered: whoever asks is owed an answer.
func (p *player) spend(w *what) {
	if p.loops > 0 || p.side == Client {
		return // the step may be played again; what a client asks for again is the scenario's to answer
	}
	p.spent[w] = true
	if !p.sc.uses[w.method] {
		return
	}
	for _, m := range p.inbox {
		if m.request() && !m.used && !m.done && m.method == w.method && !p.wanted(m) {
			p.reply(m)
		}
	}
}

// spendAll notes that steps will not be played again.
func (p *player) spendAll(steps []*step) {
	for _, s := range steps {
		if s.what != nil {
			p.spend(s.what)
		}
		p.spendAll(s.body)
	}
}

// loop plays the steps of a block that may be played again.
func (p *player) loop(body []*step) error {
	p.loops++
	defer func() { p.loops-- }()
	return p.play(body)
}

// reply lets our side answer a request by itself.
func (p *player) reply(m *letter) {
	if m.done || p.mute { // what cannot arrive was not sent either
		return
	}
	if answer := p.role.auto(p, m); answer != "" {
		m.done = true
		p.link.send([]byte(`{"jsonrpc":"2.0","id":` + m.id.Text + `,` + answer + `}`))
	}
}

// fits reports why a letter is not what is waited for, or nil. It captures
// nothing.
func (p *player) fits(w *what, m *letter) error {
	known := make(pattern.Captures, len(p.known))
	for k, v := range p.known {
		known[k] = v
	}
	return p.match(w, m, known)
}

var errOther = errors.New("something else")

// match is fits, and captures into known. Its error is errOther when the letter
// is about something else altogether.
func (p *player) match(w *what, m *letter, known pattern.Captures) error {
	var bad *pattern.Mismatch
	switch {
	case m.val == nil:
		return errOther
	case w.method == "":
		bad = pattern.MatchMessage(w.val, m.val, known)
	case m.method != w.method || w.name != "" && m.id == nil:
		return errOther
	case w.update:
		params := m.params()
		if s := p.known["session"]; s != nil && params.StringAt("sessionId") != s.Str {
			return errOther
		}
		update := params.Get("update")
		if update == nil {
			return errors.New("params.update is missing")
		}
		if w.val != nil {
			bad = pattern.Match(w.val, update, known)
		}
	case w.val != nil:
		bad = pattern.Match(w.val, m.params(), known)
	}
	if bad != nil {
		return bad
	}
	return nil
}

// until waits until done holds, for at most limit.
func (p *player) until(limit time.Duration, done func() bool) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		if err := p.pull(); err != nil {
			return err
		}
		if done() {
			return nil
		}
		if p.gone != nil {
			if g, ok := p.role.(*guest); ok && g.rejoin(p) {
				timer.Reset(limit)
				continue
			}
			return p.gone
		}
		select {
		case <-p.link.ready:
		case <-timer.C:
			*p.expired = true
			return errTimeout
		case <-p.ctx.Done():
			return cause(p.ctx)
		}
	}
}

// listenFor takes what comes for a while.
func (p *player) listenFor(d time.Duration) error {
	was := *p.expired
	err := p.until(d, func() bool { return false })
	*p.expired = was
	if errors.Is(err, errTimeout) {
		return nil
	}
	return err
}

// missing turns an error of until into what it means for a step that waited for
// something.
func (p *player) missing(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	switch {
	case errors.Is(err, errTimeout):
		return overdue("%s did not come within %v", what, p.limit)
	case errors.Is(err, errClosed):
		return failed("the peer closed the connection where %s was due%s", what, p.link.ended())
	case p.ctx.Err() != nil, isVerdict(err):
		return err
	}
	return failed("reading failed where %s was due: %s", what, clip(err.Error(), 200))
}

func isVerdict(err error) bool {
	_, ok := errors.AsType[*verdict](err)
	return ok
}

// write sends a frame and waits until it is on its way, taking what comes in the
// meantime.
func (p *player) write(frame string) error {
	if err := p.pull(); err != nil {
		return err
	}
	p.cursor = len(p.inbox)
	if p.held != nil {
		p.held.WriteString(frame + "\n")
		return nil
	}
	l := p.link
	n := l.send([]byte(frame))
	var werr error
	err := p.until(p.limit, func() bool {
		ok, err := l.sent(n)
		werr = err
		return ok || err != nil || p.link != l
	})
	switch {
	case p.link != l: // it has read enough to connect again
		return err
	case werr != nil && p.ctx.Err() == nil:
		if err := p.listenFor(settleTime); isVerdict(err) { // what it said before it went away
			return err
		}
		return p.link.unsent(werr)
	case errors.Is(err, errTimeout):
		p.link.close()
		return overdue("the peer did not read what it was sent within %v", p.limit)
	case err == nil, errors.Is(err, errClosed) && werr == nil: // it may have closed one direction
		return nil
	}
	return p.missing(err, "room for a frame")
}

// call makes a request, under a name if it is not "".
func (p *player) call(name, method, params string) (*pending, error) {
	c := &pending{id: p.link.id(), method: method, at: len(p.inbox)}
	if v, err := pattern.Parse(params); err == nil && v.Get("sessionId") != nil {
		c.session = v.Get("sessionId").Text
	}
	p.enter(c)
	if name != "" {
		p.calls[name] = c
		v, _ := pattern.Parse(c.id)
		p.known[name] = v
	}
	return c, p.write(`{"jsonrpc":"2.0","id":` + c.id + `,"method":` + pattern.Quote(method) + `,"params":` + params + `}`)
}

// sending makes a frame that is a request a call.
func (p *player) sending(name, frame string) {
	c := &pending{at: len(p.inbox)}
	if v, err := pattern.Parse(frame); err == nil && v.Get("id") != nil {
		c.id, c.method = v.Get("id").Text, v.StringAt("method")
		if s := v.Get("params").Get("sessionId"); s != nil {
			c.session = s.Text
		}
		p.enter(c)
		p.known[name] = v.Get("id")
	}
	p.calls[name] = c
}

// enter notes a call that is to be answered.
func (p *player) enter(c *pending) {
	if old := p.byID[c.id]; old == nil || old.reply != nil {
		p.open++
	}
	p.byID[c.id] = c
	if h, ok := p.role.(*host); ok && c.method == "session/prompt" {
		delete(h.stopped, c.session)
	}
}

// answered waits for the answer to a call.
func (p *player) answered(c *pending) error {
	err := p.until(p.limit, func() bool { return c.reply != nil })
	if err != nil {
		return p.missing(err, "the answer to %s", c.method)
	}
	p.use(c.reply)
	return nil
}

// use notes that a step is about a letter.
func (p *player) use(m *letter) {
	m.used = true
	p.cursor = max(p.cursor, m.at+1)
	if m.method != "" && m.id == nil {
		p.passed[m.method] = m.at + 1
	}
}

// outcome waits for the answer to a call and returns its result or error.
func (p *player) outcome(c *pending) (result, errorObject *pattern.Value, err error) {
	if err := p.answered(c); err != nil {
		return nil, nil, err
	}
	result, errorObject = c.reply.val.Get("result"), c.reply.val.Get("error")
	if (result == nil) == (errorObject == nil) {
		return nil, nil, failed("%s was answered with neither result nor error alone: %s", c.method, clip(c.reply.raw, 200))
	}
	return result, errorObject, nil
}

// find looks for what is waited for among what came. When there is nothing it
// says what came nearest to it, in near.
func (p *player) find(w *what) (found *letter, near error) {
	from := 0
	if w.name == "" {
		from = p.passed[w.method]
	}
	for _, m := range p.inbox[min(from, len(p.inbox)):] {
		if m.used || m.done && w.name != "" {
			continue
		}
		err := p.match(w, m, p.known)
		if err == nil {
			return m, nil
		}
		if err != errOther && w.method != "" {
			near = err
		}
	}
	return nil, near
}

// awaitWhat waits for what a step is about.
func (p *player) awaitWhat(s *step) (*letter, error) {
	var found *letter
	var near error
	over := false
	look := func() bool {
		found, near = p.find(s.what)
		over = p.over()
		return found != nil || over || p.instead(s.what) != nil
	}
	wait, limit := p.until, p.limit
	if s.verb == "await" && p.side == Client && p.opt.Patience == 0 {
		wait, limit = p.silence, min(limit, 2*settleTime) // what clients do by themselves they do at once
	}
	err := wait(limit, look)
	if other := p.instead(s.what); err == nil && found == nil && other != nil {
		return nil, other
	}
	if err == nil && found == nil { // what would come belongs to a turn that has ended
		limit = min(limit, settleTime)
		err = p.silence(limit, func() bool { found, near = p.find(s.what); return found != nil })
	}
	if err == nil {
		p.use(found)
		if s.what.name != "" {
			p.asked[s.what.name] = found
			p.known[s.what.name] = found.id
			if h, ok := p.role.(*host); ok && found.method == "session/request_permission" {
				h.asked = true
			}
		}
		p.spend(s.what)
		return found, nil
	}
	if s.verb == "await" && (errors.Is(err, errTimeout) || p.side == Client && errors.Is(err, errClosed)) {
		return nil, unseen("the peer never sent %s", s.what)
	}
	bad := p.missing(err, "%s", s.what)
	if v, ok := errors.AsType[*verdict](bad); ok && v.status == Fail {
		if over && errors.Is(err, errTimeout) {
			v.why = fmt.Sprintf("the turn ended without %s", s.what)
		}
		if near != nil {
			v.why += "; what came instead: " + near.Error()
		}
	}
	return nil, bad
}

// over reports whether all prompts of the scenario have been carried out, and
// there were some.
func (p *player) over() bool {
	h, ok := p.role.(*host)
	return ok && h.over(p)
}

// instead reports that the client has done something else than what is waited for.
func (p *player) instead(w *what) error {
	if g, ok := p.role.(*guest); ok {
		return g.instead(w.method)
	}
	return nil
}

// object returns a pattern of an object as one that allows for other members.
func object(v *pattern.Value) *pattern.Value {
	if v.Kind != pattern.Object || v.Open {
		return v
	}
	open := *v
	open.Open = true
	return &open
}

// codesText returns the codes that are expected.
func codesText(codes []int) string {
	if len(codes) == 0 {
		return "an error"
	}
	var all []string
	for _, c := range codes {
		all = append(all, strconv.Itoa(c))
	}
	return "the error " + strings.Join(all, " or ")
}
