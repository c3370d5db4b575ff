package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/jsonrpc"
)

// A session is a conversation that this process owns: its queue of prompts, its agent while it has one,
// and the clients that watch it.
type session struct {
	g      *Gateway
	id     string
	opened chan error // closed once it is claimed; has the error if that failed

	ctx    context.Context // until the session is given up
	cancel context.CancelCauseFunc
	own    *engine.Owned
	log    *writer

	starting chan struct{} // holds one while an agent is started, or an idle one is stopped
	over     chan struct{} // closed when the session has been closed
	keeping  sync.Mutex    // one change of known is stored at a time

	mu       sync.Mutex
	info     engine.Session
	known    attributes
	queue    []*turn // the first one runs
	agent    *backend
	idle     *time.Timer
	watchers map[*watcher]bool
	asks     map[string]*ask
	closed   bool
}

// attributes are what the engine keeps of a session without looking into it.
type attributes struct {
	Directories []string                  `json:"directories,omitempty"`
	MCP         []json.RawMessage         `json:"mcp,omitempty"`
	Starts      int                       `json:"starts,omitempty"`   // of its agent, so far
	Held        *heldState                `json:"held,omitempty"`     // its agent, if that outlives the gateway
	Options     json.RawMessage           `json:"options,omitempty"`  // the last config_option_update
	Commands    json.RawMessage           `json:"commands,omitempty"` // the last available_commands_update
	options     []acp.SessionConfigOption // of Options
	commands    []acp.AvailableCommand    // of Commands
}

func newSession(g *Gateway, id string) *session {
	s := &session{
		g: g, id: id, opened: make(chan error, 1), starting: make(chan struct{}, 1), over: make(chan struct{}),
		watchers: make(map[*watcher]bool), asks: make(map[string]*ask),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

func (s *session) logger() *slog.Logger { return s.g.cfg.Logger.With("session", s.id) }

// claim makes this process the owner of the session, and settles what an earlier owner has left.
func (s *session) claim(ctx context.Context) error {
	l := s.g.cfg.Log
	own, err := l.Claim(ctx, s.id, s.g.cfg.Lease)
	if err != nil {
		return err
	}
	s.own = own
	if s.info, err = l.Session(ctx, s.id); err == nil {
		err = s.known.decode(s.info.Attributes)
	}
	if err != nil {
		return errors.Join(err, own.Release(context.WithoutCancel(ctx)))
	}
	s.log = newWriter(s.ctx, own, s.lost, func(err error) {
		s.logger().Warn("gateway: the log cannot be written, and is tried again", "error", err)
	})
	s.g.work.Go(s.log.run)
	s.mu.Lock()
	s.idle = time.AfterFunc(s.g.cfg.IdleAgent, s.rest)
	s.mu.Unlock()
	if err := s.takeOver(ctx); err != nil {
		s.mu.Lock()
		s.closed = true
		s.idle.Stop()
		b := s.agent
		s.mu.Unlock()
		if b != nil {
			b.stop()
		}
		s.cancel(err)
		<-s.log.done
		return errors.Join(err, own.Release(context.WithoutCancel(ctx)))
	}
	return nil
}

// takeOver continues with what an earlier owner has left, or ends it.
func (s *session) takeOver(ctx context.Context) error {
	if adopted, err := s.adopt(ctx); adopted || err != nil {
		return err
	}
	if _, err := s.own.Expire(ctx); err != nil {
		return err
	}
	if s.info.State == stateRunning {
		return s.endInterrupted(ctx)
	}
	return nil
}

func (a *attributes) decode(data json.RawMessage) error {
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, a); err != nil {
		return fmt.Errorf("the attributes: %w", err)
	}
	for _, raw := range []json.RawMessage{a.Options, a.Commands} {
		if len(raw) > 0 {
			if u, err := acpv2.UnmarshalSessionUpdate(raw); err == nil {
				a.note(u, raw)
			}
		}
	}
	return nil
}

// note keeps what an update says of options or commands. It reports whether it says anything.
func (a *attributes) note(u acp.SessionUpdate, raw json.RawMessage) bool {
	switch u := u.(type) {
	case *acp.ConfigOptionUpdate:
		a.Options, a.options = raw, u.ConfigOptions
	case *acp.AvailableCommandsUpdate:
		a.Commands, a.commands = raw, u.AvailableCommands
	default:
		return false
	}
	return true
}

// endInterrupted ends a turn that died with its owner.
func (s *session) endInterrupted(ctx context.Context) error {
	var open string
	err := s.g.cfg.Log.Read(ctx, s.id, 0, func(r engine.Record) error {
		switch r.Kind {
		case kindPrompt:
			p, err := decodePrompt(r.Data)
			if err != nil {
				return err
			}
			open = p.ID
		case kindEnd:
			open = ""
		}
		return nil
	})
	if err != nil {
		return err
	}
	if open != "" {
		if _, err := s.log.commit(ctx, kindEnd, encode(endRecord{Prompt: open, Stop: acp.StopCancelled, Lost: true})); err != nil {
			return err
		}
		if err := s.notice(ctx, acp.NoticeSeverityWarning, "The turn was interrupted.",
			"The gateway that ran it has ended. What the agent did last may not be shown, and may not be finished."); err != nil {
			return err
		}
	}
	return s.setState(ctx, stateIdle)
}

// notice says something to everybody who watches.
func (s *session) notice(ctx context.Context, severity acp.NoticeSeverity, title, description string) error {
	_, err := s.log.commit(ctx, kindNotice, encode(noticeRecord{severity, title, description}))
	return err
}

// setState keeps the state of the session.
func (s *session) setState(ctx context.Context, state string) error {
	return s.update(ctx, func(info *engine.Session) { info.State = state })
}

// update keeps attributes of the session.
func (s *session) update(ctx context.Context, change func(*engine.Session)) error {
	info, err := s.g.cfg.Log.Update(ctx, s.id, func(info *engine.Session) error {
		change(info)
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if info.Version > s.info.Version {
		s.info = info
	}
	return nil
}

// keep stores what is known of the session. change is called with the lock held.
func (s *session) keep(ctx context.Context, change func(*attributes)) error {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	s.mu.Lock()
	change(&s.known)
	kept := s.known
	s.mu.Unlock()
	data, err := json.Marshal(kept)
	// What an agent makes too large is not kept, apart from what it cannot be started without.
	for _, leave := range []func(){
		func() { kept.Commands = nil },
		func() { kept.Options = nil },
		func() { kept.Held = nil },
	} {
		if err != nil || len(data) <= engine.MaxValue {
			break
		}
		leave()
		data, err = json.Marshal(kept)
	}
	if err != nil {
		return err
	}
	return s.update(ctx, func(info *engine.Session) { info.Attributes = data })
}

// gone reports whether the session was given up.
func (s *session) gone() bool { return s.ctx.Err() != nil }

// lost is called when nothing more can be written: another process owns the session, or its log is
// damaged.
func (s *session) lost(err error) {
	s.mu.Lock()
	b, orderly := s.agent, s.closed
	s.mu.Unlock()
	if !orderly {
		s.logger().Error("gateway: the session is given up", "error", err)
	}
	s.cancel(err)
	s.g.forget(s)
	if b != nil {
		s.g.work.Go(b.stop)
	}
}

// close stops the agent, waits for what is being written and gives the session up.
func (s *session) close() error {
	<-s.opened
	s.mu.Lock()
	if s.closed || s.log == nil {
		failed := s.log == nil || s.idle == nil
		s.mu.Unlock()
		if !failed {
			select {
			case <-s.over:
			case <-s.ctx.Done():
			}
		}
		return nil
	}
	s.closed = true
	s.idle.Stop()
	queue := slices.Clone(s.queue)
	s.mu.Unlock()
	for _, t := range queue {
		t.cancel(ErrClosed)
	}
	s.starting <- struct{}{} // what is being started ends at once
	return s.finishClose(queue)
}

// finishClose is close once nothing new can begin. The caller holds s.starting.
func (s *session) finishClose(queue []*turn) error {
	defer close(s.over)
	s.mu.Lock()
	b := s.agent
	s.mu.Unlock()
	if b != nil {
		b.stop()
	}
	<-s.starting
	for _, t := range queue {
		<-t.done
	}
	s.g.forget(s)
	err := s.own.Release(context.Background())
	s.cancel(ErrClosed)
	<-s.log.done
	if errors.Is(err, engine.ErrFenced) {
		err = nil
	}
	return err
}

// rest is called when nothing has happened for a while: the agent is stopped, and a session that nobody
// watches is given up.
func (s *session) rest() {
	select {
	case s.starting <- struct{}{}: // prompts that come meanwhile wait, and start the agent again
	default:
		return
	}
	s.mu.Lock()
	if s.closed || len(s.queue) > 0 || len(s.asks) > 0 {
		s.mu.Unlock()
		<-s.starting
		return
	}
	b := s.agent
	s.closed = len(s.watchers) == 0
	unwatched := s.closed
	s.mu.Unlock()
	if unwatched {
		if err := s.finishClose(nil); err != nil {
			s.logger().Warn("gateway: an idle session cannot be given up", "error", err)
		}
		return
	}
	if b != nil {
		b.stop()
	}
	<-s.starting
}

// touch puts off what happens to sessions that are idle. The caller holds s.mu.
func (s *session) touch() {
	if !s.closed && s.idle != nil {
		s.idle.Reset(s.g.cfg.IdleAgent)
	}
}

// maxTurns bounds the prompts that wait in a session.
const maxTurns = 64

// A turn is a prompt of a client, from when it is queued to its end.
type turn struct {
	id      acp.MessageID
	by      string
	content []acp.ContentBlock
	adopted bool // it was begun by an earlier gateway
	// operation is the client's name for it, by which it knows repetitions; or "".
	operation string

	ctx    context.Context
	cancel context.CancelCauseFunc

	done chan struct{} // closed at the end; the rest is set then
	stop acp.StopReason
	err  error
	seq  uint64 // of its last record
}

// errCancelled is why a turn is cancelled whose client wants that.
var errCancelled = errors.New("cancelled by a client")

// room returns why there is no room for another prompt, or nil.
func (s *session) room() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roomLocked()
}

// roomLocked is room for those who hold s.mu.
func (s *session) roomLocked() error {
	switch {
	case s.closed || s.gone():
		return cmp.Or(context.Cause(s.ctx), ErrClosed)
	case len(s.queue) > maxTurns:
		return &jsonrpc.Failure{Message: "too many prompts are waiting in this session", Reason: "busy", RetryAfter: 10 * time.Second}
	}
	return nil
}

// enqueue adds a prompt to the queue. t has what the client wants, and done.
func (s *session) enqueue(t *turn) error {
	t.ctx, t.cancel = context.WithCancelCause(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.roomLocked(); err != nil {
		return err
	}
	s.queue = append(s.queue, t)
	s.touch()
	if len(s.queue) == 1 {
		s.g.work.Go(s.runTurns)
	}
	return nil
}

// runTurns runs what is queued.
func (s *session) runTurns() {
	for {
		s.mu.Lock()
		t := s.queue[0]
		s.mu.Unlock()
		s.runTurn(t)
		s.finish(t)
		t.cancel(nil)
		close(t.done)
		s.mu.Lock()
		s.queue = s.queue[1:]
		over := len(s.queue) == 0
		if over {
			s.queue = nil
			s.touch()
		}
		s.mu.Unlock()
		if over {
			return
		}
	}
}

// runTurn has the agent handle a prompt.
func (s *session) runTurn(t *turn) {
	if t.ctx.Err() != nil && !t.adopted {
		t.stop = acp.StopCancelled
		return
	}
	if err := s.beginTurn(t); err != nil {
		t.err = err
		return
	}
	end := s.prompt(t)
	end.Prompt = string(t.id)
	s.mu.Lock()
	b := s.agent
	s.mu.Unlock()
	var settle func(uint64, error)
	if b != nil {
		b.stream.resume() // also if the turn was cancelled before
		end.stamp = b.stream.stamp(b.stream.turnEnd())
		settle = b.stream.committed(end.stamp)
	}
	t.stop = end.Stop
	if end.Error != "" {
		t.err = &jsonrpc.Failure{Message: end.Error, Reason: "agent"}
	}
	var err error
	if t.seq, err = s.log.commit(s.ctx, kindEnd, encode(end)); err == nil {
		if settle != nil {
			settle(t.seq, nil)
		}
		err = s.setState(s.ctx, stateIdle)
	}
	if err != nil {
		t.err = err
	}
}

// beginTurn writes down that a turn begins.
func (s *session) beginTurn(t *turn) error {
	if t.adopted {
		return nil
	}
	data, err := encodePrompt(promptRecord{ID: string(t.id), By: t.by, Operation: t.operation, Content: t.content})
	if err != nil {
		return err
	}
	if len(data) > maxRecord {
		return &jsonrpc.Failure{Message: fmt.Sprintf("a prompt of %d bytes is too large to keep", len(data)), Reason: "too_large"}
	}
	if err := s.setState(t.ctx, stateRunning); err != nil {
		return err
	}
	_, err = s.log.commit(s.ctx, kindPrompt, data)
	return err
}

// prompt has the agent handle a prompt that was committed.
func (s *session) prompt(t *turn) endRecord {
	b, err := s.backend(t.ctx)
	if err != nil {
		if t.ctx.Err() != nil {
			return endRecord{Stop: acp.StopCancelled}
		}
		return endRecord{Error: "the agent cannot be started: " + err.Error()}
	}
	res, err := b.session.Prompt(t.ctx, b.handover(t.content)...).Wait()
	switch {
	case b.conn.Conn().Err() != nil && (err != nil || res == nil): // it has ended in the turn
		if context.Cause(t.ctx) != nil {
			return endRecord{Stop: acp.StopCancelled, Lost: true}
		}
		return endRecord{Error: "the agent has ended in the turn: " + err.Error(), Lost: true}
	case t.ctx.Err() != nil:
		return endRecord{Stop: acp.StopCancelled}
	case err != nil:
		return endRecord{Error: err.Error()}
	}
	return endRecord{Stop: cmp.Or(res.StopReason, acp.StopEndTurn)}
}

// cancelRunning cancels the turn that runs, if the principal may do that.
func (s *session) cancelRunning(by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 && (s.queue[0].by == by || s.info.Owner == by) {
		s.queue[0].cancel(errCancelled)
	}
}
