package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/skills"
	"github.com/goacp/acp/jsonrpc"
)

// A steering is a message of a client for the turn that runs.
type steering struct {
	id      acp.MessageID // in the log
	by      string
	from    string // what others see of by
	rank    string
	content []acp.ContentBlock
	raw     json.RawMessage // the update that is kept once the agent has the message
	text    string          // of what the agent gets
	session acp.SessionID   // as the agent calls it

	written chan uint64 // gets the record of that
	adopted atomic.Bool // nobody waits for the answer: an earlier gateway has sent it, or it comes too late
}

// methodSteering is what is not there for a session whose agent cannot be steered.
const methodSteering = "_session/steering"

// methodGoose is that of goose for the same.
const methodGoose = "_goose/unstable/session/steer"

// steer has the agent of a session take a message into the turn that runs, as far as it can. Otherwise the client is answered
// as if there was no such method: it sends a prompt, which the gateway queues.
func (g *Gateway) steer(ctx context.Context, as *acp.AgentSession, r *acp.SteerMessage) (acp.SteerOutcome, error) {
	w, ok := as.Value.(*watcher)
	if !ok {
		return "", acp.SessionNotFound(as.ID())
	}
	who, err := w.entitled(ctx)
	if err != nil {
		return "", err
	}
	if !who.may(MayPrompt) {
		return "", who.errRole("send prompts")
	}
	content := skills.Plain(r.Prompt)
	if err := w.allowCommand(ctx, &who, content); err != nil {
		return "", err
	}
	p, err := w.here(ctx)
	if err == nil {
		err = g.allowPrompt(ctx, &who, false)
	}
	if err != nil {
		return "", err
	}
	m := &steering{id: acp.MessageID(newID("u_")), by: w.who.User, from: w.who.name(), rank: who.rank(), content: content}
	forget := w.says(m.id)
	outcome, seq, err := p.steer(ctx, m)
	if !isTaken(outcome) {
		forget()
	}
	switch {
	case isMoving(err), errors.Is(err, jsonrpc.ErrMethodNotFound), acp.IsSteerRefused(err), err == nil && outcome == acp.SteerQueued:
		w.paid.Store(true)
		return "", jsonrpc.MethodNotFound(methodSteering)
	case err != nil:
		return "", unkept(err)
	case outcome == acp.SteerPromptRequired:
		if w.paid.Store(true); r.Begin {
			return acp.SteerFailed, nil // no turn begins without a prompt, whose end the client would not learn
		}
	case seq > 0:
		err = w.reached(ctx, seq, nil) // in version 2 the client would show it twice otherwise
	}
	return outcome, err
}

func isTaken(outcome acp.SteerOutcome) bool {
	return outcome == acp.SteerInjected || outcome == acp.SteerStartedNewTurn
}

// says notes that the client itself has sent a message, which it shows in version 1 without being sent it.
func (w *watcher) says(id acp.MessageID) (forget func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, id)
	return func() { w.hasSaid(id) }
}

// hasSaid reports, once, whether the client itself has sent a message.
func (w *watcher) hasSaid(id acp.MessageID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.said, id)
	if i >= 0 {
		w.said = slices.Delete(w.said, i, i+1)
	}
	return i >= 0
}

// shows reports whether the client shows an update without being sent it.
func (w *watcher) shows(u acp.SessionUpdate) bool {
	m, ok := u.(*acp.UserMessage)
	return ok && w.hasSaid(m.MessageID) && w.session.Conn().Version() == 1
}

// steer implements place.
func (s *session) steer(ctx context.Context, m *steering) (acp.SteerOutcome, uint64, error) {
	s.mu.Lock()
	var t *turn
	if len(s.queue) > 0 {
		t = s.queue[0]
	}
	b := s.agent
	s.mu.Unlock()
	switch {
	case s.given():
		return "", 0, errGone
	case t == nil:
		return acp.SteerPromptRequired, 0, nil
	case b == nil || t.stage.Load() != turnBegun || !reaches(m.rank, t.rank):
		return acp.SteerQueued, 0, nil // what somebody says who may do less waits for a turn of its own
	}
	p := records.Prompt{ID: string(m.id), By: m.by, From: m.from, Content: m.content}
	raw, err := json.Marshal(p.Message(""))
	if err != nil {
		return "", 0, fmt.Errorf("a message cannot be encoded: %w", err)
	}
	if len(raw) > maxRecord {
		return "", 0, tooLarge("message", len(raw))
	}
	m.raw, m.written, m.session = raw, make(chan uint64, 1), b.session.ID()
	if !b.expects(m) {
		return acp.SteerQueued, 0, nil
	}
	type result struct {
		outcome acp.SteerOutcome
		seq     uint64
		err     error
	}
	done := make(chan result, 1)
	s.g.work.Go(func() { // the agent may take it when the client has left
		outcome, seq, err := s.hand(context.WithoutCancel(ctx), b, t, m)
		done <- result{outcome, seq, err}
	})
	select {
	case r := <-done:
		return r.outcome, r.seq, r.err
	case <-ctx.Done():
		return "", 0, context.Cause(ctx)
	}
}

// hand has the agent take a message into the turn that runs, and waits until the log has it.
func (s *session) hand(ctx context.Context, b *backend, t *turn, m *steering) (acp.SteerOutcome, uint64, error) {
	over := b.stream.sendsSteer(m)
	defer over()
	outcome, err := b.session.SteerRequest(ctx, &acpv2.PromptRequest{Prompt: b.session.UseSkills(m.content), Meta: b.rankMeta(t)})
	switch {
	case errors.Is(err, acp.ErrCancelled):
		b.forgets(m)
		return "", 0, jsonrpc.ErrRequestCancelled
	case errors.Is(err, acp.ErrOutcomeUnknown):
		if b.stream == nil {
			b.forgets(m)
		}
		return "", 0, outcomeUnknown() // the agent may have it all the same, until the turn ends
	}
	defer b.forgets(m)
	switch {
	case errors.As(err, new(*jsonrpc.Error)):
		return "", 0, err
	case err != nil && outcome != "":
		return outcome, 0, nil // which the client knows no better
	case err != nil:
		return acp.SteerFailed, 0, nil
	case !isTaken(outcome):
		return outcome, 0, nil
	}
	if b.forgets(m) { // nothing that the agent has sent was taken for it, and nothing will be
		if err := b.keepSteered(s.ctx, m, 0); err != nil {
			return outcome, 0, nil // the code that closed the log has reported it
		}
	}
	select {
	case seq := <-m.written:
		return outcome, seq, nil
	case <-s.ctx.Done():
	case <-b.ended:
	}
	return outcome, 0, nil // the agent has it, whatever becomes of the session
}

// expects notes that the agent is about to have a message, until forgets is called. It reports false if as many are
// expected as may be, or an equal one is.
func (b *backend) expects(m *steering) bool {
	m.text = textOf(skills.Plain(b.session.UseSkills(m.content)))
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.steering) >= maxTurns {
		return false
	}
	equal := func(o *steering) bool { return o.text == m.text && !o.adopted.Load() }
	if b.stream != nil && slices.ContainsFunc(b.steering, equal) {
		return false // it would not be known which one the agent has taken
	}
	b.steering = append(b.steering, m)
	return true
}

// forgets reports whether the agent had the message still to come: steered does not return it any more.
func (b *backend) forgets(m *steering) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.steering, m)
	if i >= 0 {
		b.steering = slices.Delete(b.steering, i, i+1)
	}
	return i >= 0
}

// steered returns the message of a client that an update says the agent has, once; or nil. The update may be a piece that
// has all of the message.
func (b *backend) steered(child acp.SessionID, u *acp.Update) *steering {
	var content []acp.ContentBlock
	var id acp.MessageID
	switch said := u.Update.(type) {
	case *acp.UserMessage:
		content, id = said.Content.Or(nil), said.MessageID
	case *acp.UserMessageChunk:
		content, id = []acp.ContentBlock{said.Content}, said.MessageID
	default:
		return nil
	}
	if child != "" || u.Replayed {
		return nil
	}
	text := textOf(skills.Plain(content))
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.steering, func(m *steering) bool { return m.id == id }) // see takesSteer
	for _, adopted := range []bool{false, true} {
		if i < 0 {
			i = slices.IndexFunc(b.steering, func(m *steering) bool { return m.text == text && m.adopted.Load() == adopted })
		}
	}
	if i < 0 {
		return nil
	}
	m := b.steering[i]
	b.steering = slices.Delete(b.steering, i, i+1)
	return m
}

// adopts has the agent's messages be expected that an earlier gateway has sent it, until the turn ends.
func (b *backend) adopts(all []*sentRecord) {
	for _, o := range all {
		u, err := acpv2.UnmarshalSessionUpdate(o.Steer)
		said, ok := u.(*acp.UserMessage)
		if err != nil || !ok {
			continue
		}
		m := &steering{id: said.MessageID, content: said.Content.Or(nil), raw: o.Steer, session: b.session.ID(), written: make(chan uint64, 1)}
		m.adopted.Store(true)
		if b.expects(m) {
			b.stream.steers(o.Wire, m)
		}
	}
}

// forgetsAdopted is called when a turn has ended: the agent takes nothing into that any more.
func (b *backend) forgetsAdopted() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steering = slices.DeleteFunc(b.steering, func(m *steering) bool { return m.adopted.Load() })
}

// textOf returns the text of content.
func textOf(content []acp.ContentBlock) (text string) {
	for _, c := range content {
		if t, ok := c.(*acp.TextContent); ok {
			text += t.Text + "\n"
		}
	}
	return text
}

// keepSteered writes down a message that the agent has taken, where it has. event is that which says so, or 0.
func (b *backend) keepSteered(ctx context.Context, m *steering, event uint64) error {
	stamp := records.Stamp{}
	if event = b.stream.steeredBy(m, event); event > 0 {
		stamp = b.stream.stamp(event)
	}
	committed := b.stream.committed(stamp)
	return b.s.log.put(ctx, kindUpdate, (&records.Update{Update: m.raw, Stamp: stamp}).Encode(), func(seq uint64, err error) {
		if event > 0 {
			committed(seq, err)
			b.stream.keptSteer(m)
		}
		if err == nil {
			m.written <- seq
		}
	})
}

// steer implements place.
func (v *visit) steer(ctx context.Context, m *steering) (acp.SteerOutcome, uint64, error) {
	content, err := json.Marshal(acpv2.PromptRequest{Prompt: m.content})
	if err != nil {
		return "", 0, err
	}
	res, err := rpcSteer.Call(ctx, v.l.conn, &wireSteer{v.wire(), m.id, m.by, m.from, m.rank, content})
	if err != nil {
		return "", 0, err
	}
	return res.Outcome, res.Seq, res.Failure.err()
}

// steer is called by another node.
func (h *host) steer(ctx context.Context, p *wireSteer) (*wireSteered, error) {
	v := h.guest(&p.wireSession)
	if v == nil {
		return &wireSteered{Failure: failed(errGone)}, nil
	}
	var req acpv2.PromptRequest
	if err := json.Unmarshal(p.Content, &req); err != nil {
		return nil, fmt.Errorf("the message: %w", err)
	}
	outcome, seq, err := v.s.steer(ctx, &steering{id: p.ID, by: p.By, from: p.From, rank: p.Rank, content: req.Prompt})
	return &wireSteered{outcome, seq, failed(err)}, nil
}

type wireSteer struct {
	wireSession
	ID      acp.MessageID   `json:"id"`
	By      string          `json:"by"`
	From    string          `json:"from,omitempty"`
	Rank    string          `json:"rank,omitempty"`
	Content json.RawMessage `json:"content"` // a prompt request of version 2
}

type wireSteered struct {
	Outcome acp.SteerOutcome `json:"outcome,omitempty"`
	Seq     uint64           `json:"seq,omitempty"`
	Failure *wireFailure     `json:"failure,omitempty"`
}

var rpcSteer = jsonrpc.Method[wireSteer, wireSteered]{Name: "steer"}
