package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A steer is how prompts reach a turn that runs. The session's mu guards what is not a channel.
type steer struct {
	prompts chan []ContentBlock // nil if nobody steers
	ended   chan struct{}       // closed when the turn takes none any more
	told    chan struct{}       // closed when the client knows of all that it has taken
	offers  int                 // prompts that it may take, or that the client does not know of yet
}

func newSteer() steer {
	return steer{prompts: make(chan []ContentBlock), ended: make(chan struct{}), told: make(chan struct{})}
}

// Steering returns a channel of the prompts that the client sends while the turn
// runs, under [BusySteer]. A prompt that is received becomes part of the
// conversation and does not get a turn of its own. The channel is never closed: a
// receiver must also wait for [Turn.Context]. Without BusySteer it is nil.
func (t *Turn) Steering() <-chan []ContentBlock { return t.steer.prompts }

// offer reports whether the turn may take a prompt. If so offered is called once it has not, or the client knows:
// the end of the turn is not sent before that.
func (t *Turn) offer() bool {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	if t.steer.prompts == nil || isClosed(t.steer.ended) {
		return false
	}
	t.steer.offers++
	return true
}

func (t *Turn) offered() {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	if t.steer.offers--; t.steer.offers == 0 && isClosed(t.steer.ended) {
		close(t.steer.told)
	}
}

// endSteering is called when the hook has returned.
func (t *Turn) endSteering() {
	if t.steer.prompts == nil {
		return
	}
	s := t.session
	s.mu.Lock()
	close(t.steer.ended)
	if t.steer.offers == 0 {
		close(t.steer.told)
	}
	s.mu.Unlock()
	select {
	case <-t.steer.told:
	case <-s.ctx.Done():
	}
}

// steer hands a prompt to the turn that runs, whose offered is called then. It returns a nil turn when that ended
// without taking it; accepted then says whether the Accept hook has accepted it.
func (c *AgentConn) steer(own *Turn) (t *Turn, accepted bool, err error) {
	p := own.p
	select {
	case <-p.second: // what came before has been handed over
	case <-p.ctx.Done():
		return nil, false, nil
	}
	if t = own.session.Turn(); t == nil {
		return nil, false, nil
	}
	if accept := c.agent.Load().Accept; accept != nil {
		if err := c.guard("Accept", func() error { return accept(&own.ctx, own) }); err != nil {
			return nil, false, err
		}
		accepted = true
	}
	if !t.offer() {
		return nil, accepted, nil
	}
	select {
	case t.steer.prompts <- own.blocks:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leave(own.session.id, p)
		return t, accepted, nil
	case <-t.steer.ended:
	case <-p.ctx.Done():
	}
	t.offered()
	return nil, accepted, nil
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
	own, before, err := c.enter(ctx, id, r.Prompt, r.Meta)
	if err != nil {
		return "", err
	}
	defer own.unlessBegun(&begun)
	accepted := false
	if before > 0 {
		var running *Turn
		if running, accepted, err = c.steer(own); err != nil {
			return "", err
		}
		if running != nil {
			defer running.offered()
			_, err = running.said(r.Prompt)
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

// said sends a prompt that the turn has taken, where there are updates for that.
func (t *Turn) said(blocks []ContentBlock) (MessageID, error) {
	s := t.session
	id := s.nextMessage()
	if !s.c.peer.Load().proto.states() {
		return id, nil // its client shows it
	}
	message := &UserMessage{MessageID: id, Content: acpv2.Set(blocks)}
	err := t.Send(message)
	if errors.Is(err, ErrTurnEnded) {
		err = s.Send(message) // it was taken all the same
	}
	return id, err
}
