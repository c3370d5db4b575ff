package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// A session is a conversation that this process owns: its queue of prompts, its agent while it has one,
// and the clients that watch it.
type session struct {
	g      *Gateway
	id     string
	opened chan struct{} // closed once it is claimed, or that has failed
	failed error         // why it has failed; then

	ctx    context.Context // until the session is given up
	cancel context.CancelCauseFunc
	own    *engine.Owned
	log    *writer

	submitting chan struct{} // holds one while a prompt with the name of an operation is submitted
	choosing   chan struct{} // holds one while options are written down
	starting   chan struct{} // holds one while an agent is started, or an idle one is stopped
	over       chan struct{} // closed when the session has been closed
	keeping    sync.Mutex    // one change of known is stored at a time

	state   state
	lending lending
	turning atomic.Pointer[observed]
	begunAt atomic.Uint64 // the record of the prompt that has begun last, as far as is known

	mu       sync.Mutex
	info     engine.Session
	known    attributes
	queue    []*turn // the first one runs
	agent    *backend
	idle     *time.Timer
	watchers map[*watcher]bool
	guests   map[*guest]bool // visits by other nodes
	asks     map[string]*ask
	dealing  map[string]bool // questions whose request is being handled, those included that rules answer
	changing int             // changes of options that are under way
	used     time.Time
	closed   bool
}

// attributes are what the engine keeps of a session without looking into it.
type attributes struct {
	Directories []string                  `json:"directories,omitempty"`
	MCP         []json.RawMessage         `json:"mcp,omitempty"`
	Groups      []string                  `json:"groups,omitempty"`  // of the owner, when the session began
	Starts      int                       `json:"starts,omitempty"`  // of its agent, so far
	Fork        *forkState                `json:"fork,omitempty"`    // what it was forked from
	Initial     []acp.InitialOption       `json:"initial,omitempty"` // what options are to begin with, until the agent has opened its session
	Since       *uint64                   `json:"since,omitempty"`   // the last record before the agent's session began
	Differs     string                    `json:"differs,omitempty"` // how the agent remembers it, as was said last
	Lent        lent                      `json:"lent,omitzero"`     // what the client lends that has begun it
	Offered     lent                      `json:"offered,omitzero"`  // what of clients its agent may use, since it was started
	Made        string                    `json:"made,omitempty"`    // the title that its first prompt makes; see session.name
	Archived    bool                      `json:"archived,omitempty"`
	Compacted   uint64                    `json:"compacted,omitempty"` // up to this record; see Retention
	Handover    bool                      `json:"handover,omitempty"`  // the agent does not know what was said before its session began
	Held        *heldState                `json:"held,omitempty"`      // its agent, if that outlives the gateway
	Options     json.RawMessage           `json:"options,omitempty"`   // the last config_option_update
	Commands    json.RawMessage           `json:"commands,omitempty"`  // the last available_commands_update
	Suggested   json.RawMessage           `json:"suggested,omitempty"` // the prompt_suggestions_update that counts; none without one
	options     []acp.SessionConfigOption // of Options
	commands    []acp.AvailableCommand    // of Commands
	suggested   []acpv2.PromptSuggestion  // of Suggested
}

func newSession(g *Gateway, id string) *session {
	s := &session{
		g: g, id: id, opened: make(chan struct{}), starting: make(chan struct{}, 1), choosing: make(chan struct{}, 1), submitting: make(chan struct{}, 1), over: make(chan struct{}),
		watchers: make(map[*watcher]bool), guests: make(map[*guest]bool), asks: make(map[string]*ask),
		dealing: make(map[string]bool),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

func (s *session) logger() *slog.Logger { return s.g.logger(s.id) }

// claimTime bounds a claim: it may read a long log.
const claimTime = time.Minute

// claim makes this process the owner of the session, and settles what an earlier owner has left. That continues when the
// caller leaves: an agent that is half adopted would be stopped.
func (s *session) claim(ctx context.Context) error {
	ctx, stop := either(context.WithoutCancel(ctx), s.ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	l := s.g.cfg.Log
	var asked records.Questions
	own, err := l.Claim(ctx, s.id, s.g.Lease(), s.state.apply, func(r *engine.Record) { asked.Apply(r) })
	s.g.cfg.Observer.Happened(Event{Kind: EventClaim, Why: outcomeOf(err)})
	if err != nil {
		return err
	}
	s.own = own
	if s.info, err = l.Session(ctx, s.id); err == nil {
		err = s.known.decode(s.info.Attributes)
	}
	if err != nil {
		return errors.Join(err, s.g.release(own))
	}
	s.log = newWriter(s.g.endingWith(s.ctx), own, &s.state, asked, s.lost)
	s.log.observe, s.log.stated = s.appending, s.stated
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
		return errors.Join(err, s.g.release(own))
	}
	return nil
}

// takeOver continues with what an earlier owner has left, or ends it.
func (s *session) takeOver(ctx context.Context) error {
	adopted, err := s.adopt(ctx)
	if err == nil && !adopted {
		err = s.unsuggest(ctx)
		if err == nil && s.info.State == records.StateRunning {
			err = s.endInterrupted(ctx)
		}
	}
	if err != nil {
		return err
	}
	return s.withdrawQuestions(ctx) // also if the agent has heard the answer, and the log does not say so
}

// withdrawQuestions decides the questions that nobody deals with.
func (s *session) withdrawQuestions(ctx context.Context) error {
	all := s.withdrawn()
	if len(all) == 0 {
		return nil
	}
	_, err := s.log.commitAll(ctx, all...)
	return err
}

// dismissQuestions ends the questions that are open when a turn is cancelled, and returns the decisions. The agent waits for
// no answer then (S41), and an agent of version 1 does not say so. Subagents may still wait for theirs.
func (s *session) dismissQuestions() (all []engine.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asks {
		if d := (decision{}); !a.subagent && a.settle(d) {
			all = append(all, engine.Record{Kind: kindAnswer, Data: encode(a.answer(&d))})
		}
	}
	return all
}

// withdrawn returns the decisions on the questions that nobody deals with.
func (s *session) withdrawn() []engine.Record {
	return s.log.withdrawn(func(id string) bool {
		s.mu.Lock()
		b, dealtWith := s.agent, s.dealing[id]
		s.mu.Unlock()
		return dealtWith || b != nil && b.stream.dealsWith(id)
	})
}

func (a *attributes) decode(data json.RawMessage) error {
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, a); err != nil {
		return fmt.Errorf("the attributes: %w", err)
	}
	for _, raw := range []json.RawMessage{a.Options, a.Commands, a.Suggested} {
		if len(raw) > 0 {
			if u, err := acpv2.UnmarshalSessionUpdate(raw); err == nil {
				a.note(u, raw)
			}
		}
	}
	return nil
}

// note keeps what an update says of options, commands or suggested prompts. It reports whether it says anything.
func (a *attributes) note(u acp.SessionUpdate, raw json.RawMessage) bool {
	switch u := u.(type) {
	case *acp.ConfigOptionUpdate:
		a.Options, a.options = raw, u.ConfigOptions
	case *acp.AvailableCommandsUpdate:
		a.Commands, a.commands = raw, u.AvailableCommands
	case *acpv2.PromptSuggestionsUpdate:
		if a.Suggested, a.suggested = raw, u.Suggestions; len(u.Suggestions) == 0 {
			a.Suggested = nil
		}
	default:
		return false
	}
	return true
}

// endInterrupted ends a turn that died with its owner.
func (s *session) endInterrupted(ctx context.Context) error {
	open, chat := s.state.prompt.ID, s.state.prompt.By == ""
	if open != "" { // at once: whoever claims the session next sees that the turn has ended, and says nothing
		end := records.End{Prompt: open, Error: "the gateway was restarted in the turn, and the agent has ended with it", Lost: true, Noted: true}
		why := "The gateway was restarted."
		if s.g.cfg.Nodes != nil { // it may be there, with a lease that has lapsed
			end.Error, why = "the turn was interrupted: the gateway that ran it has ended", "The turn was interrupted."
		}
		what := "gateway"
		if chat {
			end.Error, why, what = "the turn was interrupted: the program that ran it has ended", "The turn was interrupted.", "program"
		}
		note := records.Notice{Severity: acp.NoticeSeverityWarning, Title: why,
			Description: "The " + what + " that ran the turn has ended. What the agent did last may not be shown, and may not be finished."}
		_, err := s.log.commitState(ctx, end.State(), append(s.withdrawn(), engine.Record{Kind: kindEnd, Data: encode(end)}, engine.Record{Kind: kindNotice, Data: encode(note)})...)
		return err
	}
	return s.setState(ctx, cmp.Or(s.state.ended, records.StateIdle))
}

// notice says something to everybody who watches.
func (s *session) notice(ctx context.Context, severity acp.NoticeSeverity, title, description string) error {
	_, err := s.log.commit(ctx, kindNotice, encode(records.Notice{Severity: severity, Title: title, Description: description}))
	return err
}

// update keeps attributes of the session.
func (s *session) update(ctx context.Context, change func(*engine.Session)) error {
	ctx, cancel := either(ctx, s.g.ending)
	defer cancel()
	info, err := s.g.cfg.Log.Update(ctx, s.id, func(info *engine.Session) error {
		change(info)
		return nil
	})
	if err != nil {
		return err
	}
	s.g.changed(s.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if info.Version > s.info.Version {
		info.State = s.info.State // which stated and setState know
		s.info = info
	}
	return nil
}

// keep stores what is known of the session, and with it what else is to be changed. change is called with the lock held.
func (s *session) keep(ctx context.Context, change func(*attributes), also ...func(*engine.Session)) error {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	s.mu.Lock()
	change(&s.known)
	kept := s.known
	s.mu.Unlock()
	data, err := json.Marshal(kept)
	// What an agent makes too large is not kept, apart from what it cannot be started without.
	for _, leave := range []func(){
		func() { kept.Suggested = nil },
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
	return s.update(ctx, func(info *engine.Session) {
		info.Attributes = data
		for _, change := range also {
			change(info)
		}
	})
}

// gone implements place.
func (s *session) gone() <-chan struct{} { return s.ctx.Done() }

// given reports whether the session was given up.
func (s *session) given() bool { return s.ctx.Err() != nil }

// enter implements place.
func (s *session) enter(w *watcher) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.given() {
		return errGone
	}
	if len(s.watchers) >= maxWatchers {
		return errWatchers(len(s.watchers))
	}
	s.watchers[w] = true
	s.touch()
	return nil
}

// leave implements place.
func (s *session) leave(w *watcher) {
	s.mu.Lock()
	delete(s.watchers, w)
	s.touch()
	s.mu.Unlock()
	s.stopsLending(w)
}

// greeting implements place.
func (s *session) greeting(context.Context) (greeting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return greeting{Options: s.known.options, Commands: s.known.commands, Suggested: s.known.suggested, Title: s.known.titleGiven(s.info.Title), Running: s.info.State == records.StateRunning}, nil
}

// last implements place.
func (s *session) last(context.Context) (uint64, error) { return s.own.Head().Seq, nil }

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
		s.g.work.Go(b.kill)
	}
}

// touch puts off what happens to sessions that are idle. The caller holds s.mu.
func (s *session) touch() {
	s.used = time.Now()
	if !s.closed && s.idle != nil {
		s.idle.Reset(s.g.cfg.IdleAgent)
	}
	s.g.tenancy.lobby.stir() // it may be idle from now on
}

// maxTurns bounds the prompts that wait in a session.
const maxTurns = 64

// A turn is a prompt of a client, from when it is queued to its end.
type turn struct {
	id   acp.MessageID
	by   string
	from string // what others see of by
	// rank is what the client was in the session when it sent the prompt; "" is less than any. It bounds what the prompt
	// can cause.
	rank    string
	content []acp.ContentBlock
	adopted bool     // it was begun by an earlier gateway
	agent   *backend // that has got it then; nil for none
	// operation is the client's name for it, by which it knows repetitions; or "".
	operation string
	trace     acp.Trace   // of the client's request
	unqueued  atomic.Bool // its node did not queue it, or gave it back before it began
	stopped   error       // why it was cancelled before it was queued, if it was

	ctx    context.Context
	cancel context.CancelCauseFunc
	ran    chan struct{} // closed when this process is done with it
	beginning

	once    sync.Once
	done    chan struct{} // closed at the end; the rest is set then
	turnEnd               // see settle
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
	case s.closed || s.ctx.Err() != nil:
		return errGone // what there is instead is found out where it is looked for
	case len(s.queue) > maxTurns:
		return &jsonrpc.Failure{Message: "too many prompts are waiting in this session", Reason: "busy", RetryAfter: 10 * time.Second}
	}
	return nil
}

// enqueue adds a prompt to the queue. t has what the client wants, and done.
func (s *session) enqueue(t *turn) error {
	t.ctx, t.cancel = context.WithCancelCause(s.ctx)
	if t.trace.Parent != "" {
		t.ctx = acp.WithTrace(t.ctx, t.trace)
	}
	t.ran, t.written = make(chan struct{}), make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.roomLocked(); err != nil {
		t.cancel(err)
		return err
	}
	s.queue = append(s.queue, t)
	if t.stopped != nil {
		t.cancel(t.stopped)
	}
	ctx := t.ctx // runTurn gives the turn another one, which is done when this one is
	context.AfterFunc(ctx, func() { s.drop(ctx, t) })
	s.touch()
	if len(s.queue) == 1 {
		s.g.work.Go(s.runTurns)
	}
	return nil
}

// runTurns runs what is queued.
func (s *session) runTurns() {
	yields := false
	for {
		s.mu.Lock()
		t := s.queue[0]
		s.mu.Unlock()
		end := s.runTurn(t)
		end = s.finish(t, end)
		t.cancel(nil)
		s.mu.Lock()
		moves := end.err != nil && s.ctx.Err() != nil && !s.closed || errors.Is(end.err, errGone)
		s.mu.Unlock()
		if !moves { // otherwise the log knows, or the next owner
			t.settle(end)
		}
		close(t.ran)
		draining := s.g.isDraining()
		s.mu.Lock()
		s.queue = s.queue[1:]
		if draining && s.yields() {
			yields = true
		}
		over := len(s.queue) == 0
		if over {
			s.queue = nil
			s.touch()
		}
		s.mu.Unlock()
		if over {
			s.ended(t, end)
			if yields {
				s.starting <- struct{}{}
				s.leaveNode()
			}
			return
		}
	}
}

// runTurn has the agent handle a prompt.
func (s *session) runTurn(t *turn) turnEnd {
	if !t.begins() {
		if t.stage.Load() == turnDropped {
			<-t.done
		}
		return turnEnd{err: errGone, refused: true}
	}
	if t.ctx.Err() != nil && !t.adopted {
		if s.ctx.Err() != nil {
			return turnEnd{err: context.Cause(s.ctx), refused: true}
		}
		if s.closes(t) { // the next owner runs it, or whoever sends it again
			return turnEnd{err: errGone, refused: true}
		}
		return turnEnd{stop: acp.StopCancelled, refused: true}
	}
	o := s.observe(t)
	end, err := s.runPrompt(t, o.ctx)
	if err != nil {
		o.finish(records.End{}, err)
		return turnEnd{err: err, refused: true}
	}
	end.Prompt = string(t.id)
	b := s.bounds()
	var settle func(uint64, error)
	if b != nil {
		b.stream.resume() // also if the turn was cancelled before
		end.Stamp = b.stream.stamp(b.stream.turnEnd())
		settle = b.stream.committed(end.Stamp)
	}
	var all []engine.Record
	if end.Stop == acp.StopCancelled {
		all = s.dismissQuestions()
	}
	all = append(append(all, s.withdrawn()...), engine.Record{Kind: kindEnd, Data: encode(end)})
	seq, err := s.log.commitState(s.ctx, end.State(), all...)
	if err == nil && settle != nil {
		settle(seq, nil)
	}
	o.finish(end, err)
	if b != nil {
		b.forgetsAdopted()
	}
	outcome := outcomeOfEnd(&end, seq)
	if err != nil {
		outcome.err = err
	}
	return outcome
}

// bounds ends the messages that are being written, and returns the agent that writes them, if there is one.
func (s *session) bounds() *backend {
	s.mu.Lock()
	b := s.agent
	s.mu.Unlock()
	if b != nil {
		b.names.bounds()
	}
	return b
}

// cancelRunning implements place.
func (s *session) cancelRunning(by, from string, only acp.MessageID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 && (only == "" || s.queue[0].id == only) && (s.queue[0].by == by || s.info.Owner == by) {
		s.queue[0].cancel(&stopError{from})
	}
}
