package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A steer is how prompts reach a turn that runs. The session's mu guards what is not a channel.
type steer struct {
	prompts chan []ContentBlock // nil if nobody steers
	ended   chan struct{}       // closed when the turn takes none any more
	offers  []*offer            // that are not over
}

// An offer is a prompt that a turn may take. The turn sends nothing between taking it and the end of the offer, so that
// what the hook answers does not overtake what it answers to.
type offer struct {
	own    *Turn               // of the prompt
	t      *Turn               // that may take it
	takes  chan []ContentBlock // has the prompt for TakeSteering
	waits  chan struct{}       // a receive succeeds while the prompt has not been taken
	handed chan struct{}       // closed when it has
	over   chan struct{}       // closed when the turn has not taken it, or the client knows
}

func newSteer() steer {
	return steer{prompts: make(chan []ContentBlock), ended: make(chan struct{})}
}

// Steering returns a channel of the prompts that the client sends while the turn
// runs, under [BusySteer]. A prompt that is received becomes part of the
// conversation and does not get a turn of its own. The channel is never closed: a
// receiver must also wait for [Turn.Context]. Without BusySteer it is nil. A receive
// that does not wait may miss a prompt that is there: see [Turn.TakeSteering].
func (t *Turn) Steering() <-chan []ContentBlock { return t.steer.prompts }

// TakeSteering returns a prompt that has been sent while the turn runs, as a receive
// from [Turn.Steering] does, or false if there is none. It does not wait for one, and
// is for hooks that look for prompts between two steps. A further prompt is there
// once the client knows of the one before.
func (t *Turn) TakeSteering() (blocks []ContentBlock, ok bool) {
	t.session.mu.Lock()
	open := slices.Clone(t.steer.offers)
	t.session.mu.Unlock()
	for _, o := range open {
		select { // the goroutine that offers the prompt is ready to hand it over, or has done so
		case blocks := <-o.takes:
			return blocks, true
		case <-o.handed:
		case <-o.over:
		}
	}
	return nil, false
}

// offer returns an offer, or nil if the turn takes none. The end of the turn is not sent before that of the offer.
func (t *Turn) offer(own *Turn) *offer {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	if t.steer.prompts == nil || isClosed(t.steer.ended) {
		return nil
	}
	o := &offer{own: own, t: t, takes: make(chan []ContentBlock), waits: make(chan struct{}), handed: make(chan struct{}), over: make(chan struct{})}
	t.steer.offers = append(t.steer.offers, o)
	return o
}

// end ends an offer.
func (o *offer) end() {
	o.t.session.mu.Lock()
	defer o.t.session.mu.Unlock()
	if i := slices.Index(o.t.steer.offers, o); i >= 0 {
		o.t.steer.offers = slices.Delete(o.t.steer.offers, i, i+1)
		close(o.over)
	}
}

// afterOffers waits until the client knows of the prompts that the turn has taken.
func (s *AgentSession) afterOffers(ctx context.Context) error {
	s.mu.Lock()
	var open []*offer
	if s.turn != nil && len(s.turn.steer.offers) > 0 {
		open = slices.Clone(s.turn.steer.offers)
	}
	s.mu.Unlock()
	for _, o := range open {
		select {
		case <-o.waits:
		case <-o.over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// endSteering is called when the hook has returned.
func (t *Turn) endSteering() {
	if t.steer.prompts == nil {
		return
	}
	s := t.session
	s.mu.Lock()
	close(t.steer.ended)
	open := slices.Clone(t.steer.offers)
	s.mu.Unlock()
	for _, o := range open {
		select {
		case <-o.over:
		case <-s.ctx.Done():
		}
	}
}

// steer hands a prompt to the turn that runs. It returns a nil offer when that ended without taking it, and otherwise one
// that the caller has to end once the client knows; accepted says whether the Accept hook has accepted the prompt.
func (c *AgentConn) steer(own *Turn) (taken *offer, accepted bool, err error) {
	p := own.p
	select {
	case <-p.second: // what came before has been handed over
	case <-p.ctx.Done():
		return nil, false, nil
	}
	t := own.session.Turn()
	if t == nil {
		return nil, false, nil
	}
	if accept := c.agent.Load().Accept; accept != nil {
		if err := c.guard("Accept", func() error { return accept(&own.ctx, own) }); err != nil {
			return nil, false, err
		}
		accepted = true
	}
	o := t.offer(own)
	if o == nil {
		return nil, accepted, nil
	}
	for {
		select {
		case t.steer.prompts <- own.blocks:
			close(o.handed)
			return o, accepted, nil
		case o.takes <- own.blocks:
			close(o.handed)
			return o, accepted, nil
		case o.waits <- struct{}{}:
			continue
		case <-t.steer.ended:
		case <-p.ctx.Done():
		}
		o.end()
		return nil, accepted, nil
	}
}

// A SteerMessage is a message of the user for the turn that runs: see [Agent.Steer].
type SteerMessage struct {
	// Prompt is the message.
	Prompt []ContentBlock
	// Begin says that the agent is to begin a turn with the message if none runs.
	Begin bool
	// Meta is _meta of the request, or nil.
	Meta json.RawMessage
}

// queues puts a prompt into its session's queue, or a message for the turn that runs,
// which must not overtake the prompts before it.
func (c *AgentConn) queues(id SessionID, req *jsonrpc.Request) error {
	if a := c.agent.Load(); req.Method == methodSteering && (a.Steer != nil || a.Busy != BusySteer) {
		return nil
	}
	return c.arrived(id, req)
}

// steering handles a message for the turn that runs.
func (c *AgentConn) steering(ctx context.Context, id SessionID, blocks []ContentBlock, meta json.RawMessage) (*steeringResult, error) {
	if !c.agent.Load().steers() {
		return nil, notFound(ctx)
	}
	var said steeringMeta
	if len(meta) > 0 && json.Unmarshal(meta, &said) != nil {
		return nil, invalidParams("_meta.steering", "not an object")
	}
	idle := said.Steering.IdleBehavior
	if idle != nil && *idle != idlePromptRequired {
		return nil, invalidParams("_meta.steering.idleBehavior", "unknown")
	}
	r := &SteerMessage{Prompt: blocks, Begin: idle == nil, Meta: meta}
	var outcome SteerOutcome
	var err error
	if hook := c.agent.Load().Steer; hook != nil {
		outcome, err = c.steerThrough(ctx, id, r)
	} else {
		outcome, err = c.steerTurn(ctx, id, r)
	}
	if errors.Is(err, ErrCancelled) {
		return nil, jsonrpc.ErrRequestCancelled
	}
	if err != nil {
		return nil, err
	}
	res := &steeringResult{Outcome: outcome}
	if outcome == SteerPromptRequired {
		res.Reason = "noRunningTurn"
	}
	return res, nil
}

// steerThrough calls the Steer hook.
func (c *AgentConn) steerThrough(ctx context.Context, id SessionID, r *SteerMessage) (outcome SteerOutcome, err error) {
	s, err := c.sessionFor(ctx, id, r.Prompt)
	if err != nil {
		return "", err
	}
	err = c.guard("Steer", func() (err error) {
		outcome, err = c.agent.Load().Steer(ctx, s, r)
		return err
	})
	return outcome, err
}

// steerTurn hands a message to the turn that runs, under BusySteer.
func (c *AgentConn) steerTurn(ctx context.Context, id SessionID, r *SteerMessage) (_ SteerOutcome, err error) {
	var begun *Turn
	defer func() {
		if begun == nil {
			c.refuse(id, jsonrpc.RequestFrom(ctx)) // it must not be in the way of the prompt that it becomes
		}
	}()
	s, p, before, err := c.enter(ctx, id, r.Prompt)
	if err != nil {
		return "", err
	}
	own := newTurn(ctx, s, p, r.Prompt, r.Meta)
	defer own.unlessBegun(&begun)
	accepted := false
	if before > 0 {
		var taken *offer
		if taken, accepted, err = c.steer(own); err != nil {
			return "", err
		}
		if taken != nil {
			_, err = c.taken(ctx, taken)
			return SteerInjected, err
		}
	}
	if own.p.ctx.Err() != nil { // also if the turn had left before
		return "", own.p.refusal()
	}
	if !r.Begin {
		return SteerPromptRequired, nil
	}
	if err := c.receive(own); err != nil {
		return "", err
	}
	t, err := c.begin(own, accepted)
	if err != nil {
		return "", err
	}
	begun = t
	return SteerStartedNewTurn, c.runLater(ctx, t)
}

// taken has the client learn of a prompt that a turn has taken: from an update where there are any for that, or else from
// the answer to its request. It ends the offer.
func (c *AgentConn) taken(ctx context.Context, o *offer) (MessageID, error) {
	id := o.own.message
	if !c.peer.Load().proto.states() {
		o.t.parts()
		jsonrpc.RequestFrom(ctx).AfterAnswer(func() { c.known(o) })
		return id, nil
	}
	defer c.known(o)
	message := &UserMessage{MessageID: id, Content: acpv2.Set(o.own.blocks)}
	err := o.t.sendTaken(message)
	if errors.Is(err, ErrTurnEnded) {
		err = o.t.session.sendTaken(message) // it was taken all the same
	}
	return id, err
}

// parts makes what the hook says next begin a message: the user has said something in between.
func (t *Turn) parts() {
	if t.acquired(t.session.acquireBehind(t.sends, false)) == nil {
		t.kind = noMessage
		t.session.releaseSending()
	}
}

// known ends the offer of a prompt that a turn has taken, and lets the next prompt be offered.
func (c *AgentConn) known(o *offer) {
	c.mu.Lock()
	c.leave(o.t.session.id, o.own.p)
	c.mu.Unlock()
	o.end()
}

// sendTaken is Send for a prompt that the turn has taken, for which others wait.
func (o *Output) sendTaken(u *UserMessage) error {
	if err := o.acquired(o.s.acquireBehind(o.sends, false)); err != nil {
		return err
	}
	defer o.s.releaseSending()
	return o.sendLocked(u)
}
