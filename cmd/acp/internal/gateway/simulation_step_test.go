package gateway

import (
	"context"
	"errors"
	"slices"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// step takes a step, and often waits until nothing more follows from it.
func (w *world) step() {
	if w.server.dead.Load() {
		w.restart()
	}
	switch n := w.random.IntN(100); {
	case n < 20:
		w.promptStep()
	case n < 60:
		w.actStep()
	case n < 72:
		w.answerStep()
	case n < 75:
		w.cancelStep()
	case n < 78:
		w.steerStep()
	case n < 81:
		if len(w.all) < 4 {
			c := w.join(1 + w.random.IntN(2))
			w.note("client %d of version %d joins", len(w.all)-1, c.version)
			if c.conn != nil {
				w.enter(c, true)
			}
		}
	case n < 88:
		w.comeOrGoStep()
	case n < 93:
		w.server.left.Store(1 + w.random.Int64N(8))
		w.note("the server is killed after %d records", w.server.left.Load())
	case n < 95:
		w.note("the server is killed")
		w.server.kill()
	case n < 96:
		w.server.once.Do(func() { w.server.after = w.server.dir }) // it is not killed while it ends
		w.note("the server ends")
		w.restart()
	case n < 97:
		w.agentDies()
	default:
		d := time.Duration(w.random.IntN(2000)) * time.Millisecond
		w.note("%v pass", d)
		time.Sleep(d)
	}
	if w.random.IntN(3) > 0 {
		synctest.Wait()
	}
}

func (w *world) promptStep() {
	i := w.random.IntN(len(w.all))
	c := w.all[i]
	if c.waits(); c.session == nil || len(c.prompts) == maxSimPrompts {
		return
	}
	p := &simPrompt{text: w.name("p")}
	if n := len(c.had); n > 0 && w.random.IntN(4) == 0 {
		p.text = c.had[w.random.IntN(n)] // although it knows the end, or is waiting for that
	} else {
		c.had = append(c.had, p.text)
	}
	w.sent, c.prompts = append(w.sent, p), append(c.prompts, p)
	w.note("client %d prompts %s", i, p.text)
	c.send(p)
}

// maxSimPrompts is how many prompts of a client run or wait at once.
const maxSimPrompts = 3

// waits reports whether a client has prompts that have not ended, as far as it knows, and notes which have.
func (c *simClient) waits() bool {
	c.prompts = slices.DeleteFunc(c.prompts, func(p *simPrompt) bool {
		select {
		case <-p.reply.Done():
		default:
			return false
		}
		res, err := p.reply.Wait()
		if errors.Is(err, jsonrpc.ErrClosed) || errors.Is(err, acp.ErrOutcomeUnknown) {
			return false // it is sent again
		}
		if err != nil {
			c.w.note("%sfails: %v", p.text, err)
		} else if p.stop = res.StopReason; p.stop != acp.StopEndTurn {
			c.w.note("%shas ended: %s", p.text, p.stop)
		}
		p.ended = true
		return true
	})
	return len(c.prompts) > 0
}

func (w *world) actStep() {
	t := w.running()
	if t == nil {
		return
	}
	if len(t.acts) > cap(t.acts)/2 {
		return
	}
	name := w.name("a")
	switch n := w.random.IntN(20); {
	case n < 9:
		w.note("the agent says %s", name)
		t.acts <- func(turn *acp.Turn) error {
			return t.says("agent "+name, turn.Say(name))
		}
	case n < 11:
		w.note("the agent thinks %s", name)
		t.acts <- func(turn *acp.Turn) error {
			return t.says("thought "+name, turn.Think(name))
		}
	case n < 14:
		w.note("the agent calls %s", name)
		t.acts <- func(turn *acp.Turn) error {
			call := turn.ToolCall(acp.ToolCall{Title: name, Kind: acp.ToolKindExecute, Status: acpv2.ToolCallStatusInProgress})
			if err := turn.Err(); err != nil {
				return err
			}
			i := t.calls(name)
			t.status(i, name, acpv2.ToolCallStatusCompleted)
			return call.Complete()
		}
	case n < 17:
		w.note("the agent asks %s", name)
		t.acts <- func(turn *acp.Turn) error {
			call := turn.ToolCall(acp.ToolCall{Title: name, Kind: acp.ToolKindExecute})
			if err := turn.Err(); err != nil {
				return err
			}
			i := t.calls(name)
			answer, err := call.Ask(acp.Permission{Title: name})
			if err != nil {
				return err
			}
			t.mu.Lock()
			t.asks = append(t.asks, name+string(answer.Option.OptionID))
			t.mu.Unlock()
			if answer.Cancelled {
				return nil
			}
			t.status(i, name, acpv2.ToolCallStatusCompleted)
			return call.Complete()
		}
	case n < 19:
		w.note("the turn ends")
		t.acts <- func(*acp.Turn) error { return errFinish }
	default:
		w.note("the turn fails")
		t.acts <- func(*acp.Turn) error { return errors.New(name) }
	}
}

func (w *world) answerStep() {
	for _, i := range w.random.Perm(len(w.all)) {
		if w.all[i].answer(w.random.IntN(2) == 0) {
			w.note("client %d answers", i)
			return
		}
	}
}

// answer answers a question, if there is one.
func (c *simClient) answer(allow bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) == 0 {
		return false
	}
	a := c.asked[0]
	c.asked = c.asked[1:]
	if allow {
		a.answer <- a.request.Allow()
	} else {
		a.answer <- a.request.Reject()
	}
	return true
}

func (w *world) cancelStep() {
	i := w.random.IntN(len(w.all))
	if c := w.all[i]; c.session != nil {
		w.cancelled = true
		w.note("client %d cancels", i)
		_ = c.session.Cancel(context.Background())
	}
}

// steerStep has a client say something to the turn that runs.
func (w *world) steerStep() {
	i := w.random.IntN(len(w.all))
	s := w.all[i].session
	if s == nil || w.running() == nil {
		return
	}
	text := w.name("s")
	w.note("client %d says %s", i, text)
	w.steer.Go(func() { _, _ = s.Steer(context.Background(), acp.Text(text)) })
}

func (w *world) comeOrGoStep() {
	i := w.random.IntN(len(w.all))
	switch c := w.all[i]; {
	case c.conn == nil:
		w.note("client %d comes back", i)
		w.back(c)
	case w.random.IntN(2) == 0:
		w.note("client %d leaves", i)
		c.leave()
	default:
		w.note("client %d is cut off, and comes back", i)
		c.leave()
		w.back(c)
	}
}

// back has a client come back, which sends its prompts again.
func (w *world) back(c *simClient) {
	if c.connect(); c.conn == nil {
		return
	}
	if w.enter(c, w.random.IntN(4) == 0) && c.waits() {
		for _, p := range c.prompts {
			c.send(p)
		}
	}
}

// enter has a client enter the session. It fails if the server dies.
func (w *world) enter(c *simClient, anew bool) bool {
	err := c.enter(anew)
	if err != nil {
		c.leave()
		if !w.server.dead.Load() {
			w.note("that fails: %v", err)
			w.t.Errorf("a client cannot enter: %v", err)
		}
	}
	return err == nil
}

// agentDies has the agent end that was started last.
func (w *world) agentDies() {
	w.mu.Lock()
	agents := w.agents
	w.mu.Unlock()
	if len(agents) == 0 {
		return
	}
	last := agents[len(agents)-1]
	w.note("the agent dies")
	w.lose()
	last.over.Store(true)
	_ = last.conn.Close()
}

// lose notes that the turns that run come to no end, and perhaps not all is kept that the agent says in them.
func (w *world) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.turns {
		select {
		case <-t.over:
		default:
			t.killed = true
		}
	}
}

// stop takes the server from its clients, in an orderly way unless it is dead.
func (w *world) stop() {
	s := w.server
	if !w.held || !s.dead.Load() {
		w.lose()
	}
	for _, c := range w.all {
		c.waits()
		if c.conn != nil {
			c.leave()
		}
	}
	if s.dead.Load() {
		w.dead = append(w.dead, s)
		return
	}
	if err := s.g.Close(); err != nil {
		w.t.Error(err)
	}
	if err := s.log.Close(); err != nil {
		w.t.Error(err)
	}
}

// begin starts a server, and has some clients come back.
func (w *world) begin(dir string) {
	w.serve(dir)
	for i, c := range w.all {
		if w.server.dead.Load() {
			return
		}
		if w.random.IntN(4) > 0 {
			w.note("client %d comes back", i)
			w.back(c)
		}
	}
}

func (w *world) restart() {
	if w.server.dead.Load() {
		w.server.kill() // which may be under way
	}
	w.note("another server takes its place")
	w.stop()
	w.begin(w.server.after)
}

// settle has everything come to its end.
func (w *world) settle() {
	w.note("everything comes to its end")
	for range 1000 {
		w.server.left.Store(0)
		synctest.Wait()
		if w.server.dead.Load() {
			w.restart()
			continue
		}
		waits := false
		for _, c := range w.all {
			if c.conn == nil {
				w.back(c)
			}
			if c.waits() {
				waits = true
			}
			for c.answer(true) {
			}
		}
		t := w.running()
		if t == nil && !waits {
			return
		}
		if t != nil && len(t.acts) == 0 {
			t.acts <- func(*acp.Turn) error { return errFinish }
		}
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
	}
	for _, p := range w.sent {
		if !p.ended {
			w.t.Errorf("%s has no end", p.text)
		}
	}
}
