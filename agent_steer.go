package acp

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
