package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/sleep"
)

// A watcher is a client of a session. It sends what is in the log, in order, from where the client came,
// wherever the session runs.
type watcher struct {
	g         *Gateway
	id        string
	session   *acp.AgentSession
	who       Who
	changed   atomic.Pointer[Who] // what it is since a role of its user has changed; nil before
	ctx       context.Context     // until the client has left the session
	cancel    context.CancelFunc
	work      sync.WaitGroup // its questions
	over      chan struct{}  // closed when nothing more is sent
	why       error          // then; nil if the client has left
	key       string         // by which it knows its own answers
	herald    herald
	seat      seat
	turn      uint64                         // the prompt of the turn that runs, as far as the client was sent the log
	returns   bool                           // the client may have sent it, on an earlier connection
	suggested *acpv2.PromptSuggestionsUpdate // when the client came, which it is sent first; or nil
	pos       *position
	saying
	forgets func() // the position
	chosen  chosen
	telling sync.Mutex // held while the client is sent a record, or something between two; guards turn and returns

	mu       sync.Mutex
	at       place         // where the session runs, or has run last
	last     uint64        // the last record there was when the client came there
	moved    chan struct{} // closed when that changes
	asked    map[*ask]bool // questions the client has
	own      []*ownPrompt  // prompts of the client that are not over, in order of arrival
	sent     uint64        // the last record the client was sent
	advanced notice        // that sent changes
}

// Saying is what a client has said to turns that run.
type saying struct {
	said []acp.MessageID // messages that it is about to be sent; guarded by the watcher's mu
	paid atomic.Bool     // one that could not be given to a turn was counted: the client's next prompt is not
}

// A notice tells those who wait that something has changed. The zero value is ready for use; a lock must be held around its
// methods.
type notice struct{ c chan struct{} }

// wait returns what is closed at the next change.
func (n *notice) wait() <-chan struct{} {
	if n.c == nil {
		n.c = make(chan struct{})
	}
	return n.c
}

// give is called with a change.
func (n *notice) give() {
	if n.c != nil {
		close(n.c)
		n.c = nil
	}
}

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// watch makes a client a watcher. It is sent what follows a record once start is called.
func (g *Gateway) watch(p place, id string, as *acp.AgentSession, who Who, after uint64, pos *position, forget func()) (w *watcher, start func(), err error) {
	w = &watcher{
		g: g, id: id, session: as, who: who, over: make(chan struct{}), key: newID(""), at: p, moved: make(chan struct{}), pos: pos, forgets: forget,
		asked: make(map[*ask]bool), sent: after, seat: acphttp.PresenceOf(as.Context()),
	}
	w.ctx, w.cancel = context.WithCancel(as.Context())
	if err := p.enter(w); err != nil {
		w.cancel()
		return nil, nil, err
	}
	g.watching.Add(1)
	g.decoded.join(id, 1)
	started := make(chan struct{})
	g.work.Go(func() {
		defer w.end()
		select {
		case <-started:
			w.run()
		case <-w.ctx.Done():
		case <-g.ctx.Done():
		}
	})
	return w, sync.OnceFunc(func() { close(started) }), nil
}

// end is called when nothing more is sent to the client.
func (w *watcher) end() {
	w.g.watching.Add(-1)
	w.g.decoded.join(w.id, -1)
	w.cancel()
	w.g.present.leave(w)
	w.mu.Lock() // nothing more is asked
	p := w.at
	w.mu.Unlock()
	w.work.Wait()
	w.forgets()
	if errors.Is(w.why, engine.ErrNotFound) { // another node may have deleted it
		w.g.dropTexts(w.id)
	}
	close(w.over)
	w.tellEnds()
	p.leave(w)
}

// run sends what comes, until the client leaves.
func (w *watcher) run() {
	ctx, cancel := either(w.ctx, w.g.ctx)
	defer cancel()
	if w.turn > 0 {
		_ = w.session.Send(&acp.RunningStateUpdate{}) // fails if the client has left, or is of version 1
	}
	if w.suggested != nil {
		_ = w.session.Send(w.suggested) // likewise
	}
	for {
		w.mu.Lock()
		p, sent := w.at, w.sent
		w.resolve()
		w.mu.Unlock()
		for _, a := range p.questions(sent) {
			w.ask(a, a.seq)
		}
		if !w.stay(ctx, p) {
			if s, here := p.(*session); here && errors.Is(w.why, engine.ErrDeleted) && !s.given() {
				s.lost(w.why) // by another node: it would notice when it writes next
			}
			select { // what is asked may still be answered
			case <-ctx.Done():
			case <-p.gone(): // and the log ends here: there is no next place
			}
			return
		}
		w.mu.Lock()
		for _, o := range w.own {
			if o.state == ownQueued {
				o.state = ownLost
			}
		}
		w.mu.Unlock()
		p.leave(w)
		if w.why = w.move(ctx); w.why != nil {
			return
		}
	}
}

// followAgain is how long a watcher waits when it could not read the log.
const followAgain = time.Second

// stay follows the session while it is at a place. It reports whether it is to be followed elsewhere.
func (w *watcher) stay(ctx context.Context, p place) bool {
	here, cancel := context.WithCancel(ctx)
	defer cancel()
	w.g.work.Go(func() {
		select {
		case <-p.gone():
			cancel()
		case <-here.Done():
		}
	})
	for w.follow(ctx, here) {
		sleep.For(here, followAgain)
	}
	return isClosed(p.gone()) && ctx.Err() == nil
}

// follow sends what follows the last record that the client was sent, until here is done. It reports whether
// it is to be called again.
func (w *watcher) follow(ctx, here context.Context) bool {
	w.mu.Lock()
	after := w.sent
	w.mu.Unlock()
	for r, err := range w.g.cfg.Log.Follow(here, w.id, after) {
		damage := (*engine.DamageError)(nil)
		switch {
		case err == nil:
		case errors.As(err, &damage):
			w.damaged(damage)
			continue
		case here.Err() != nil:
			return false
		case errors.Is(err, engine.ErrDeleted), errors.Is(err, engine.ErrClosed):
			w.why = err
			return false
		default:
			w.g.logger(w.id).Warn("gateway: the log cannot be read, and is tried again", "error", err)
			return true
		}
		if err := w.tell(&r); err != nil {
			if errors.Is(err, acphttp.ErrStalled) {
				w.cut()
			}
			return false
		}
		w.mu.Lock()
		p, all := w.at, r.Seq == w.last
		w.mu.Unlock()
		if r.Kind == kindAsk { // only now, since questions that come from elsewhere look at sent
			w.opened(p, r)
		}
		if all {
			w.mu.Lock()
			w.resolve()
			w.mu.Unlock()
		}
	}
	return false
}

// tell sends the client a record. An error says that nothing more can be sent: the client has left, or does not read.
func (w *watcher) tell(r *engine.Record) error {
	w.telling.Lock()
	defer w.telling.Unlock()
	w.pos.at(r)
	if err := w.send(*r); err != nil {
		if w.ctx.Err() != nil || w.session.Context().Err() != nil {
			return err
		}
		w.g.logger(w.id).Error("gateway: a record cannot be sent", "record", r.Seq, "error", err)
		if errors.Is(err, acphttp.ErrStalled) {
			return err
		}
	}
	w.pos.past(r)
	if r.Kind == kindEnd {
		w.tellEnded() // not as a part of the record
	}
	w.g.arrived(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = r.Seq
	w.advanced.give()
	return nil
}

// opened asks the client what a record asks, if that is open still.
func (w *watcher) opened(p place, r engine.Record) {
	var record records.Asked
	if err := json.Unmarshal(r.Data, &record); err != nil {
		w.g.logger(w.id).Error("gateway: a question cannot be read", "record", r.Seq, "error", err)
		return
	}
	if a := p.question(record.ID); a != nil {
		w.ask(a, r.Seq)
	}
}

// has reports whether the client was sent everything up to a record.
func (w *watcher) has(seq uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent >= seq
}

// reached waits until the client was sent everything up to a record, or something else is closed, or nothing more is sent.
func (w *watcher) reached(ctx context.Context, seq uint64, or <-chan struct{}) error {
	for {
		w.mu.Lock()
		if w.sent >= seq {
			w.mu.Unlock()
			return nil
		}
		changed := w.advanced.wait()
		w.mu.Unlock()
		select {
		case <-changed:
		case <-or:
			return nil
		case <-w.over:
			return w.ended()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// send sends a record that has just been committed.
func (w *watcher) send(r engine.Record) error {
	switch r.Kind {
	case kindPrompt:
		p, err := records.DecodePrompt(r.Data)
		if err != nil {
			return err
		}
		return w.sendPrompt(&p, r.Seq)
	case kindEnd:
		w.turn = 0
		end, err := records.DecodeEnd(r.Data)
		if err != nil {
			return err
		}
		return w.sendEnd(&end, &r)
	case kindAnswer:
		if err := w.decided(r.Data); err != nil {
			return err
		}
	case kindShare:
		return w.shared(r.Data)
	case kindUpdate, kindChild:
		said, err := w.g.decoded.of(w.id, &r)
		if err != nil {
			return err
		}
		w.pos.says(said)
		if r.Kind == kindChild {
			return w.pos.children.of(said.child).Send(said.update)
		}
		switch u := said.update.(type) {
		case *acp.ConfigOptionUpdate:
			return w.sendOptions(u.ConfigOptions)
		case *acp.AvailableCommandsUpdate:
			return w.sendCommands(u.AvailableCommands)
		}
		if w.shows(said.update) {
			return nil
		}
		return w.session.Send(said.update)
	}
	return sendRecord(w.session, w.who.User, &w.pos.children, r)
}

// sendCommands sends the client the commands, and the skills, of a kind that this version knows.
func (w *watcher) sendCommands(list []acp.AvailableCommand) error {
	return w.session.SetAvailableCommands(slices.DeleteFunc(slices.Clone(list), func(c acp.AvailableCommand) bool {
		switch c.(type) {
		case *acp.SlashCommand, *acpv2.Skill:
			return false
		}
		return true
	})...)
}

// sendRecord sends what a record is part of a conversation to a client of a principal.
func sendRecord(as *acp.AgentSession, principal string, c *children, r engine.Record) error {
	switch r.Kind {
	case kindPrompt:
		p, err := records.DecodePrompt(r.Data)
		if err != nil {
			return err
		}
		return as.Send(p.Message(principal))
	case kindUpdate:
		u, err := records.DecodeUpdate(r.Data)
		if err != nil {
			return err
		}
		return as.Send(u)
	case kindChild:
		id, u, err := records.DecodeChild(r.Data)
		if err != nil {
			return err
		}
		return c.of(id).Send(u)
	case kindNotice:
		var n records.Notice
		if err := json.Unmarshal(r.Data, &n); err != nil {
			return err
		}
		if as.Conn().Version() > 1 {
			return as.Notice(n.Severity, n.Title, n.Description)
		}
		return as.Send(lineOf(r.Seq, plainNotice(n.Title, n.Description)))
	case kindEnd:
		end, err := records.DecodeEnd(r.Data)
		if err != nil {
			return err
		}
		return sendEnd(as, &end, &r)
	case kindAnswer:
		return sendDecision(as, c, &r)
	case kindOutput:
		var o records.Output
		if err := json.Unmarshal(r.Data, &o); err != nil {
			return err
		}
		return as.Send(o.Update())
	}
	return nil
}
