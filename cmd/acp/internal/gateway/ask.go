package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// An ask is a question of the agent, until it has an answer.
type ask struct {
	id         string
	title      string
	permission *acp.Permission // one of these
	rule       *decision       // the answer of the owner's rules; nil if people are asked
	form       *acp.FormRequest
	link       *acp.LinkRequest
	call       acp.ToolCallID // that it is about, as the log has it; or ""
	child      acp.SessionID  // the session of the subagent whose call that is, or ""
	subagent   bool           // a subagent asks
	detail     string         // what would be done, if it is about no call
	describes  *engine.Record // of the call, which precedes the question; nil if the log knows as much

	seq    uint64 // of its record
	ctx    context.Context
	cancel context.CancelFunc // withdraws the question everywhere
	asked  int                // clients that are being asked; guarded by the session's lock

	deciding sync.Mutex
	settled  *decision     // the one that counts; nil until there is one
	done     chan struct{} // closed then
}

// A decision is the answer to an ask.
type decision struct {
	Option   acp.PermissionOptionID     `json:"option,omitempty"`
	Accepted bool                       `json:"accepted,omitempty"`
	Declined bool                       `json:"declined,omitempty"`
	Content  map[string]json.RawMessage `json:"content,omitempty"`
	From     string                     `json:"from,omitempty"` // what others see of by
	Key      string                     `json:"key,omitempty"`  // the client that has answered
	by       string
}

// maxAnswer bounds what a client answers, in bytes.
const maxAnswer = 248 << 10

// errMisfit is why a client cannot answer a form whose answers do not fit it.
var errMisfit = errors.New("the answers do not fit the form")

var errAnswerSize = errors.New("the answer is too large")

// dismissed reports whether an answer decides nothing.
func (d *decision) dismissed() bool { return d.Option == "" && !d.Accepted && !d.Declined }

func (d *decision) outcome() records.Outcome {
	switch {
	case d.Option != "":
		return records.Outcome(d.Option)
	case d.Accepted:
		return records.Accepted
	case d.Declined:
		return records.Declined
	}
	return records.Cancelled
}

// begin readies a question to be asked.
func (a *ask) begin() {
	a.id, a.done = newID("ask_"), make(chan struct{})
}

// settle decides a question with an answer, and reports whether that counts: the first one does.
func (a *ask) settle(d decision) bool {
	a.deciding.Lock()
	defer a.deciding.Unlock()
	if a.settled != nil {
		return false
	}
	a.settled = &d
	close(a.done)
	return true
}

// counts returns the decision on a question that is settled.
func (a *ask) counts() decision {
	a.deciding.Lock()
	defer a.deciding.Unlock()
	return *a.settled
}

// ask puts a question to everybody who watches, and to those who come, until one of them has answered it. The answer is
// committed before the agent hears it.
func (s *session) ask(ctx context.Context, b *backend, a *ask) (decision, error) {
	a.begin()
	a.ctx, a.cancel = context.WithCancel(s.ctx)
	defer a.cancel()
	held, id := b.stream.asked(ctx)
	if held != nil {
		a.id = id
		if held.decided != nil { // the log has it, and it has not arrived
			return a.answered(held.decided), nil
		}
	}
	known := held != nil && held.known
	over, err := s.deals(a.id, known)
	if err != nil {
		return decision{}, err
	}
	defer over()
	if known && !s.log.open(a.id) {
		return decision{}, nil // it was withdrawn meanwhile
	}
	if a.rule == nil {
		s.mu.Lock()
		s.asks[a.id] = a
		s.mu.Unlock()
		s.g.changed(s.id)
	}
	observed := s.observeAsk(ctx)
	d := decision{}
	err = s.put(ctx, b, a, held)
	kept := err == nil
	var lookout sync.WaitGroup
	if kept && a.rule == nil && !known {
		lookout.Go(func() { s.lookAfter(a) })
	}
	switch {
	case err != nil:
	case a.rule != nil:
		d = *a.rule
		a.settle(d)
	default:
		d, err = s.await(ctx, a)
	}
	s.mu.Lock()
	delete(s.asks, a.id)
	s.touch()
	s.mu.Unlock()
	s.g.changed(s.id)
	a.cancel()
	lookout.Wait()
	observed(a, d, err)
	if !kept && (ctx.Err() == nil || s.given()) { // otherwise the question may be kept still
		return d, err
	}
	answer := a.answer(&d)
	if held != nil {
		answer.Content = d.Content
	}
	if e := s.keepAnswer(ctx, b, held, answer); err == nil {
		err = e
	}
	if f := s.g.cfg.Audit.Decided; f != nil {
		f(s.id, answer.By, answer.Decision(&engine.Record{}))
	}
	return d, err
}

// keepAnswer commits how a question was decided. If the agent outlives the gateway, that is done together with the frame in
// which the agent hears it.
func (s *session) keepAnswer(ctx context.Context, b *backend, held *heldAsk, answer *records.Decided) error {
	if b.stream.answers(held, answer) {
		return nil
	}
	if ctx.Err() != nil { // the agent does not wait for it
		return s.log.put(s.ctx, kindAnswer, encode(answer), nil)
	}
	done := make(chan error, 1)
	err := s.log.put(s.ctx, kindAnswer, encode(answer), func(_ uint64, err error) { done <- err })
	if err != nil {
		return err
	}
	select {
	case err = <-done:
	case <-ctx.Done(): // the agent does not wait any more
	}
	return err
}

// put writes a question down, unless that was done before, so that everybody who watches is asked.
func (s *session) put(ctx context.Context, b *backend, a *ask, held *heldAsk) error {
	if held != nil && held.known {
		if a.rule != nil {
			return nil
		}
		s.mu.Lock()
		a.seq = held.record
		watchers, guests := slices.Collect(maps.Keys(s.watchers)), slices.Collect(maps.Keys(s.guests))
		s.mu.Unlock()
		for _, v := range guests {
			if err := v.tell(v.h.connected(), a, a.seq); err != nil {
				s.logger().Warn("gateway: another node cannot be asked", "error", err)
			}
		}
		for _, w := range watchers {
			w.ask(a, a.seq)
		}
		return nil
	}
	r := records.Asked{ID: a.id, Title: a.title}
	if held != nil {
		r.Raw, r.Stamp = held.raw, b.stream.stamp(held.seq)
	}
	all := []engine.Record{{Kind: kindAsk, Data: encode(r)}}
	if a.describes != nil {
		all = []engine.Record{*a.describes, all[0]}
	}
	seq, err := s.log.commitAll(ctx, all...)
	if err != nil {
		return err
	}
	b.names.bounds()
	if held != nil {
		b.stream.settled(held.seq, false)
		b.stream.mark(r.Marked)
		b.stream.hasten() // a large one is all that may be in flight
	}
	s.numbered(a, seq)
	return nil
}

// numbered is called once the record of a question is committed. Followers may have read the record before: a client
// whose history ends behind it has not been asked when it came, since the question had no number then. What the rules
// answer is asked of nobody.
func (s *session) numbered(a *ask, seq uint64) {
	s.mu.Lock()
	a.seq = seq
	watchers := slices.Collect(maps.Keys(s.watchers))
	s.mu.Unlock()
	if a.rule != nil {
		return
	}
	for _, w := range watchers {
		if w.has(seq) { // the others are asked once they have come to it
			w.ask(a, seq)
		}
	}
}

// await waits for the answer. When nobody is to answer any more, that is a decision, too, so that a late answer is not taken
// for one.
func (s *session) await(ctx context.Context, a *ask) (decision, error) {
	timer := time.NewTimer(s.g.cfg.AskTimeout)
	defer timer.Stop()
	var err error
	select {
	case <-a.done:
	case <-timer.C:
		if a.settle(decision{}) {
			err = errNoAnswer
		}
	case <-ctx.Done(): // the agent does not wait for it
		a.settle(decision{})
		err = context.Cause(ctx)
	}
	return a.counts(), err
}

// question implements place.
func (s *session) question(id string) *ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks[id]
}

// questions implements place.
func (s *session) questions(upTo uint64) []*ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return openUpTo(s.asks, upTo)
}

// openUpTo returns the questions that were asked up to a record, in the order in which they were.
func openUpTo(all map[string]*ask, upTo uint64) (asks []*ask) {
	for _, a := range all {
		if a.seq > 0 && a.seq <= upTo { // 0 is one that is just being written down
			asks = append(asks, a)
		}
	}
	sort.Slice(asks, func(i, j int) bool { return asks[i].seq < asks[j].seq })
	return asks
}

// asking implements place.
func (s *session) asking(a *ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.asked++
}

// unanswered implements place.
func (s *session) unanswered(a *ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.asked--
}

// answered is called with what a client has answered. If it has dismissed the question, or cannot show it,
// that counts once there is nobody else to decide.
func (s *session) answered(a *ask, d decision) {
	s.mu.Lock()
	a.asked--
	others := a.asked > 0
	s.mu.Unlock()
	if d.dismissed() && others {
		return
	}
	if !a.settle(d) {
		s.late(a, d)
	}
}

// ask puts a question, whose record has a number, to the client, until it is answered or withdrawn.
func (w *watcher) ask(a *ask, seq uint64) {
	if !w.now().may(MayApprove) {
		return
	}
	w.mu.Lock()
	if w.asked[a] || a.ctx.Err() != nil || w.ctx.Err() != nil {
		w.mu.Unlock()
		return
	}
	w.asked[a] = true
	p := w.at
	w.work.Add(1) // with the lock held: nobody waits for it yet
	w.mu.Unlock()
	p.asking(a)
	go func() {
		defer w.work.Done()
		d, err := w.put(a, seq)
		if len(encode(d)) > maxAnswer {
			d, err = decision{}, errAnswerSize
		}
		d.by, d.From, d.Key = w.who.User, w.who.name(), w.key
		if left := d.dismissed() && w.leaves(a, err); left || a.ctx.Err() != nil || w.ctx.Err() != nil {
			if s, here := p.(*session); here {
				s.late(a, d)
			}
			p.unanswered(a)
			w.forget(a) // asked again when it is back
			return
		}
		if err != nil {
			w.g.logger(w.id).Info("gateway: a client cannot answer a question", "error", err)
		}
		if errors.Is(err, errMisfit) { // others may
			p.unanswered(a)
			return
		}
		if who, err := w.entitled(w.ctx); err != nil || !who.may(MayApprove) { // not any more
			p.unanswered(a)
			return
		}
		p.answered(a, d)
		context.AfterFunc(a.ctx, func() { w.forget(a) }) // until then it is not asked again
	}()
}

// forget forgets a question that the client does not have any more.
func (w *watcher) forget(a *ask) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.asked, a)
}

// named adds to the _meta of the question what a client with presence knows it by: its name, which [Decided] has, too, and
// the number of its record. Questions are put at once, so that they may arrive in another order than they were asked in.
func (w *watcher) named(a *ask, seq uint64, meta json.RawMessage) json.RawMessage {
	all := map[string]json.RawMessage{}
	if !wantsPresence(w.session.Conn()) || len(meta) > 0 && json.Unmarshal(meta, &all) != nil || all == nil {
		return meta
	}
	all[metaKey] = encode(struct {
		Ask    string `json:"ask"`
		Cursor uint64 `json:"cursor"`
	}{a.id, seq})
	return encode(all)
}

// put puts a question and returns the client's answer.
func (w *watcher) put(a *ask, seq uint64) (d decision, err error) {
	ctx, cancel := either(w.ctx, a.ctx)
	defer cancel()
	out := w.session.WithContext(ctx)
	switch {
	case a.permission != nil:
		p := *a.permission
		p.Meta = w.named(a, seq, p.Meta)
		answer, err := out.Ask(p)
		if err != nil || answer.Cancelled {
			return d, err
		}
		d.Option = answer.Option.OptionID
		return d, nil
	case a.form != nil:
		return w.fill(a, seq, out)
	default:
		l := *a.link
		l.Meta = w.named(a, seq, l.Meta)
		answer, done, err := out.ElicitURL(l)
		if err != nil {
			return d, err
		}
		d.Accepted, d.Declined = answer.Accepted, answer.Declined
		_ = done()
	}
	return d, nil
}

// fill puts a form and returns the client's answer. One that does not fit the form is refused, and the client asked again: no
// other client must lose its say to that.
func (w *watcher) fill(a *ask, seq uint64, out *acp.Output) (d decision, err error) {
	f := *a.form
	f.Meta = w.named(a, seq, f.Meta)
	for range maxTries {
		answer, err := out.Elicit(f)
		if err != nil {
			return d, err
		}
		why := ""
		if answer.Accepted {
			why = misfit(&f.Schema, answer.Content)
		}
		if why == "" {
			d.Accepted, d.Declined, d.Content = answer.Accepted, answer.Declined, answer.Content
			return d, nil
		}
		if err := out.Notice(acp.NoticeSeverityWarning, "The answer was refused.", why+"."); err != nil {
			return d, err
		}
	}
	return d, errMisfit
}

// permission puts a question of the agent to all clients.
func (b *backend) permission(ctx context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
	child := childIn(req.Session)
	a := &ask{title: req.Title, subagent: child != "", permission: &acp.Permission{
		Title: req.Title, Description: req.Description, Options: req.Options, Subject: b.names.subject(child, req.Subject), Meta: req.Meta,
	}}
	if err := b.describes(a, req, b.names.subject(child, req.V2.Subject)); err != nil {
		return acp.CancelPermission(), err
	}
	a.rule = b.s.rule(ctx, req)
	d, err := b.s.ask(ctx, b, a)
	if err != nil || d.Option == "" {
		return acp.CancelPermission(), err
	}
	return acp.SelectPermission(d.Option), nil
}

// elicit puts a form or a link to all clients.
func (b *backend) elicit(ctx context.Context, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
	b.mu.Lock()
	ready := b.ready
	b.mu.Unlock()
	if req.Session == nil && !ready { // about a request that opens the session: nobody is there yet
		return acp.CancelElicitation(), nil
	}
	a := &ask{title: req.Message, subagent: childIn(req.Session) != ""}
	call := b.names.mentioned(childIn(req.Session), req.ToolCallID)
	if req.Form != nil {
		a.form = &acp.FormRequest{Message: req.Message, Schema: *req.Form, ToolCallID: call, Meta: req.Meta}
	} else {
		a.link = &acp.LinkRequest{Message: req.Message, URL: req.URL, ToolCallID: call, Meta: req.Meta}
	}
	d, err := b.s.ask(ctx, b, a)
	switch {
	case err != nil:
		return acp.CancelElicitation(), err
	case d.Accepted:
		return acp.AcceptElicitation(d.Content), nil
	case d.Declined:
		return acp.DeclineElicitation(), nil
	}
	return acp.CancelElicitation(), nil
}
