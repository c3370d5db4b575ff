package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// A watcher is a client of a session. It sends what is in the log, in order, from where the client came.
type watcher struct {
	s       *session
	session *acp.AgentSession
	who     Who
	ctx     context.Context // until the client has left the session
	cancel  context.CancelFunc
	work    sync.WaitGroup  // its questions
	asked   map[string]bool // questions the client has; guarded by the session's lock

	mu        sync.Mutex
	own       map[acp.MessageID]*ownTurn // prompts of the client that are not answered
	cancelled bool                       // it has cancelled a prompt of its own, and the message that says so will be handled
	noticed   bool                       // or that was handled, and the prompt will be cancelled
	sent      uint64                     // the last record the client was sent
	changed   chan struct{}              // closed when sent changes; nil unless somebody waits
}

// An ownTurn is a prompt of the client itself, which the library sends it as the beginning of a turn. That
// has its place among the records: the client gets everything before it first, and everything after it
// later.
type ownTurn struct {
	turn    *turn
	arrived chan struct{} // closed when the client was sent everything before the prompt
	started chan struct{} // closed when the library has sent it the prompt
}

// attach makes a client a watcher. It is sent what follows a record once start is called.
func (s *session) attach(as *acp.AgentSession, who Who, after uint64) (w *watcher, start func(), err error) {
	w = &watcher{s: s, session: as, who: who, asked: make(map[string]bool), own: make(map[acp.MessageID]*ownTurn), sent: after}
	w.ctx, w.cancel = context.WithCancel(as.Context())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.gone() {
		w.cancel()
		return nil, nil, ErrClosed
	}
	s.watchers[w] = true
	s.touch()
	started := make(chan struct{})
	s.g.work.Go(func() {
		defer s.detach(w)
		select {
		case <-started:
			w.run(after)
		case <-w.ctx.Done():
		case <-s.ctx.Done():
		}
	})
	return w, sync.OnceFunc(func() { close(started) }), nil
}

// detach is called when a client has left.
func (s *session) detach(w *watcher) {
	w.cancel()
	w.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers, w)
	s.touch()
}

// run sends what comes, until the client leaves.
func (w *watcher) run(after uint64) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	defer context.AfterFunc(w.s.ctx, cancel)()
	for _, a := range w.s.pending(after) {
		w.ask(a)
	}
	for w.follow(ctx) {
		timer := time.NewTimer(followAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	<-ctx.Done() // what is asked may still be answered
}

// followAgain is how long a watcher waits when it could not read the log.
const followAgain = time.Second

// follow sends what follows the last record that the client was sent. It reports whether it is to be called
// again.
func (w *watcher) follow(ctx context.Context) bool {
	w.mu.Lock()
	after := w.sent
	w.mu.Unlock()
	for r, err := range w.s.g.cfg.Log.Follow(ctx, w.s.id, after) {
		damage := (*engine.DamageError)(nil)
		switch {
		case err == nil:
		case errors.As(err, &damage):
			_ = w.session.Notice(acp.NoticeSeverityError, "The rest of this session is damaged.", damage.Error())
			return false
		case ctx.Err() != nil, errors.Is(err, engine.ErrDeleted), errors.Is(err, engine.ErrClosed):
			return false
		default:
			w.s.logger().Warn("gateway: the log cannot be read, and is tried again", "error", err)
			return true
		}
		if err := w.send(r); err != nil {
			if ctx.Err() != nil || w.session.Context().Err() != nil {
				return false // the client has left
			}
			w.s.logger().Error("gateway: a record cannot be sent", "record", r.Seq, "error", err)
		}
		w.mu.Lock()
		w.sent = r.Seq
		if w.changed != nil {
			close(w.changed)
			w.changed = nil
		}
		w.mu.Unlock()
	}
	return false
}

// pending returns the questions that were asked up to a record.
func (s *session) pending(upTo uint64) (asks []*ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asks {
		if a.seq <= upTo { // 0 is one that is just being written down
			asks = append(asks, a)
		}
	}
	return asks
}

// reached waits until the client was sent everything up to a record.
func (w *watcher) reached(ctx context.Context, seq uint64) {
	for {
		w.mu.Lock()
		if w.sent >= seq {
			w.mu.Unlock()
			return
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-w.s.ctx.Done():
			return
		}
	}
}

// owns returns a prompt of the client that is not answered, or nil.
func (w *watcher) owns(id acp.MessageID) *ownTurn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.own[id]
}

// cancelsOwn reports whether a cancellation of the client is about a prompt of its own. By the time it is
// handled that may have ended, because the library cancels at once.
func (w *watcher) cancelsOwn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.cancelled:
		w.cancelled = false
		return true
	case len(w.own) > 0:
		w.noticed = true
		return true
	}
	return false
}

// arrive has the library send the client a prompt of its own, and waits until it has.
func (w *watcher) arrive(o *ownTurn) {
	close(o.arrived)
	select {
	case <-o.started:
	case <-o.turn.done:
	case <-w.ctx.Done():
	}
}

// send sends a record that has just been committed.
func (w *watcher) send(r engine.Record) error {
	switch r.Kind {
	case kindPrompt:
		p, err := decodePrompt(r.Data)
		if err != nil {
			return err
		}
		if o := w.owns(acp.MessageID(p.ID)); o != nil {
			w.arrive(o)
			return nil
		}
		if err := sendRecord(w.session, r); err != nil {
			return err
		}
		return w.session.Send(&acp.RunningStateUpdate{})
	case kindEnd:
		var end endRecord
		if err := json.Unmarshal(r.Data, &end); err != nil || w.owns(acp.MessageID(end.Prompt)) != nil {
			return err
		}
		return w.session.Send(&acp.IdleStateUpdate{StopReason: end.Stop})
	case kindAsk:
		var a askRecord
		if err := json.Unmarshal(r.Data, &a); err != nil {
			return err
		}
		w.s.mu.Lock()
		pending := w.s.asks[a.ID]
		w.s.mu.Unlock()
		if pending != nil {
			w.ask(pending)
		}
		return nil
	case kindUpdate:
		u, err := decodeUpdate(r.Data)
		if err != nil {
			return err
		}
		switch u := u.(type) {
		case *acp.ConfigOptionUpdate:
			return w.session.SetOptions(u.ConfigOptions...)
		case *acp.AvailableCommandsUpdate:
			return w.session.SetCommands(commandsOf(u.AvailableCommands)...)
		case *acp.SessionInfoUpdate:
			if title, ok := u.Title.Get(); ok {
				return w.session.SetTitle(title)
			}
		}
	}
	return sendRecord(w.session, r)
}

// commandsOf returns the commands of a kind that this version knows.
func commandsOf(list []acp.AvailableCommand) (commands []acp.SlashCommand) {
	for _, c := range list {
		if c, ok := c.(*acp.SlashCommand); ok {
			commands = append(commands, *c)
		}
	}
	return commands
}

// sendRecord sends what a record is part of a conversation.
func sendRecord(as *acp.AgentSession, r engine.Record) error {
	switch r.Kind {
	case kindPrompt:
		p, err := decodePrompt(r.Data)
		if err != nil {
			return err
		}
		return as.Send(&acp.UserMessage{MessageID: acp.MessageID(p.ID), Content: acp.Set(p.Content)})
	case kindUpdate:
		u, err := decodeUpdate(r.Data)
		if err != nil {
			return err
		}
		return as.Send(u)
	case kindNotice:
		var n noticeRecord
		if err := json.Unmarshal(r.Data, &n); err != nil {
			return err
		}
		if as.Conn().Version() > 1 {
			return as.Notice(n.Severity, n.Title, n.Description)
		}
		// Version 1 has no notices.
		text := n.Title
		if n.Description != "" {
			text += " " + n.Description
		}
		return as.Send(&acp.AgentMessageChunk{Content: acp.Text(text), MessageID: acp.MessageID(newID("notice_"))})
	}
	return nil
}
