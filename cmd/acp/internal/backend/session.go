package backend

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/ids"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/title"
	"github.com/goacp/acp/internal/skills"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/transcript"
)

// A Session is a conversation with the agent. Its methods may be called from any goroutine.
type Session struct {
	host    *Host
	journal *recording

	// order is held from looking at something until it is in the journal, so that it keeps its
	// place. The writer must not need it.
	order     sync.Mutex
	successor *Session    // has replaced this one
	heard     atomic.Bool // the agent has said or done something in the turns that run
	past      *past       // the history that the agent replays; nil once that has ended
	ids       *identities // nil if nothing was kept before the agent was started
	calls     *ids.Calls  // names of the agent's tool calls since then
	runningPrompts
	prompted bool // the user has sent a prompt since the agent was started

	mu        sync.Mutex
	id        acp.SessionID
	client    *acp.ClientSession
	parent    *Session // whose subagent it belongs to, or nil
	cwd       string
	user      bool // it was opened for the user; others are of subagents
	told      []acp.SessionConfigOption
	lent      map[acp.TerminalID]func(context.Context) error // kill the commands that run in lent terminals
	kept      store.Session                                  // as it is in the store
	title     string
	named     bool   // the user has chosen the title, and the agent does not know it
	asked     string // the first prompt, which serves as a title
	turns     int    // that run
	begun     uint64 // turns so far
	pieces    pieces
	cancelled int      // how many of them the user has cancelled
	unbegun   []string // names of prompts that have not begun at a gateway
	unset     []error  // see Unset
	watched
}

// runningPrompts are those of the turns that run.
type runningPrompts struct {
	sent    []string                        // their texts
	taken   map[acp.MessageID]bool          // messages of the user that were echoed meanwhile; guarded by the session's mu
	awaited map[acp.MessageID]chan struct{} // closed as such messages are shown; guarded by the session's mu
	again   bool                            // one is sent again that was shown before; guarded by the session's mu
	echoes  []acp.MessageID                 // of the messages by which an agent of version 2 has confirmed them, or ""
}

// NewSession opens a session. If the agent requires a login, it logs in and opens the session
// again.
func (h *Host) NewSession(ctx context.Context) (*Session, error) {
	s, _, err := h.open(ctx, "")
	return s, err
}

// Restore continues a session with the history from the store. id is the agent's, or that of the
// conversation in the store. If the store has no history the agent is asked to replay it; otherwise
// only if it cannot resume a session without a replay. What an agent replays is compared with the
// store, and only what is new is added, marked as replayed: see package history. Restore reports
// how the agent restored the session; after [acp.RestoredNew] it is a new session, whose history is
// shown but not known to the agent.
func (h *Host) Restore(ctx context.Context, id acp.SessionID) (*Session, acp.Restored, error) {
	return h.open(ctx, id)
}

// open opens or continues a session on the current connection, and logs in if that is required.
func (h *Host) open(ctx context.Context, id acp.SessionID) (s *Session, how acp.Restored, err error) {
	var kept store.Session
	if id != "" {
		if kept, err = h.kept(ctx, id); err != nil {
			return nil, 0, h.coded("restoring session "+string(id), err)
		}
		if kept.ID != "" {
			id = acp.SessionID(kept.ID)
		}
	}
	err = h.authenticated(ctx, func() error {
		h.opening.RLock()
		defer h.opening.RUnlock()
		s, how, err = h.openOn(ctx, h.current(), id, kept)
		return err
	})
	if err != nil {
		what := "opening a session"
		if id != "" {
			what = "restoring session " + string(id)
		}
		return nil, 0, h.coded(what, err)
	}
	h.cfg.Logger.Info("session", "agent", h.name(), "id", s.ID(), "restored", how)
	return s, how, nil
}

// openOn opens a session on a connection: a new one, or the one with that id, of which kept is in
// the store.
func (h *Host) openOn(ctx context.Context, l *link, id acp.SessionID, kept store.Session) (*Session, acp.Restored, error) {
	cfg, err := h.sessionConfig(l)
	if err != nil {
		return nil, 0, err
	}
	if id == "" {
		begun := h.begin(ctx, l, "", &cfg)
		cs, err := l.conn.NewSession(ctx, cfg)
		if err != nil {
			return nil, 0, err
		}
		s := h.session(cs)
		s.opened(cs, cfg.Cwd)
		s.choose(ctx, cs, begun)
		s.journal.sync()
		return s, acp.RestoredNew, nil
	}
	old, isNew := h.expect(id)
	if isNew {
		if err := old.recall(ctx, kept); err != nil {
			h.forget(old)
			return nil, 0, err
		}
		old.mu.Lock()
		cfg.Cwd = cmp.Or(old.kept.Cwd, cfg.Cwd)
		old.mu.Unlock()
	}
	cfg.Replay = isNew && old.Snapshot().Len() == 0 // otherwise it is known
	begun := h.begin(ctx, l, id, &cfg)
	cs, how, err := l.conn.Restore(ctx, id, cfg)
	if err != nil {
		if isNew {
			h.forget(old)
		}
		return nil, 0, err
	}
	s := old
	switch {
	case how != acp.RestoredNew:
	case cs.ID() != id && isNew:
		s.replace(ctx, cs)
	default:
		if s = h.session(cs); s == old && isNew {
			s.forgetPast() // the agent has given the id to a new session
		}
	}
	s.settle()
	s.opened(cs, cfg.Cwd)
	if how == acp.RestoredNew && len(begun.chosen) == 0 {
		begun.chosen = h.cfg.Choices.of("") // what the lost session had is not there
	}
	s.choose(ctx, cs, begun)
	if how == acp.RestoredNew {
		s.retitle(ctx)
	}
	s.journal.sync()
	h.family(ctx, s)
	return s, how, nil
}

// sessionConfig returns the parameters with which sessions are opened.
func (h *Host) sessionConfig(l *link) (acp.SessionConfig, error) {
	servers, err := l.servers()
	return acp.SessionConfig{Cwd: h.cfg.Cwd, AdditionalDirectories: h.cfg.Roots, MCPServers: servers, Meta: h.hosted()}, err
}

// Session returns an open session by its id. That includes sessions of subagents once something has
// happened in them.
func (h *Host) Session(id acp.SessionID) (*Session, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, ok := h.sessions[id]
	return s, ok
}

// session returns the session of a client's session.
func (h *Host) session(cs *acp.ClientSession) *Session {
	s, _ := h.expect(cs.ID())
	s.mu.Lock()
	s.client = cs
	orphan := s.parent == nil && cs.Parent() != nil
	s.mu.Unlock()
	if orphan {
		if parent, ok := h.Session(cs.Parent().ID()); ok && parent != s {
			s.mu.Lock()
			s.parent = parent
			s.mu.Unlock()
		}
	}
	return s
}

// expect returns a session by its id, and makes it if there is none.
func (h *Host) expect(id acp.SessionID) (s *Session, isNew bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.sessions[id]; s != nil {
		return s, false
	}
	s = &Session{host: h, id: id, cwd: h.cfg.Cwd, calls: ids.NewCalls("")}
	s.journal = &recording{
		keeper: h.keeper,
		rec:    h.keeper.record(),
		killed: h.killed,
		conv:   transcript.New(store.Bounds()),
		about:  s.about,
	}
	if f := h.cfg.Front.Changed; f != nil {
		s.journal.changed = func(changes []transcript.Change) { f(s, changes) }
	}
	h.sessions[id] = s
	return s, true
}

// forget drops a session.
func (h *Host) forget(s *Session) {
	s.forgetPast()
	s.journal.close()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[s.ID()] == s {
		delete(h.sessions, s.ID())
	}
}

// opened records what the answer that opened the session says, which is not an update.
func (s *Session) opened(cs *acp.ClientSession, cwd string) {
	s.mu.Lock()
	s.client, s.cwd, s.user = cs, cwd, true
	s.mu.Unlock()
	s.host.opens(cs.Meta())
	s.catchUp()
}

// isOpened reports whether the user has opened the session.
func (s *Session) isOpened() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.user
}

// anew prepares for another connection, on which invented ids begin again.
func (s *Session) anew() {
	s.journal.sync()
	now := s.Snapshot()
	s.order.Lock()
	defer s.order.Unlock()
	s.dropPast()
	s.journal.forgetCursors()
	s.calls = ids.NewCalls("")
	if s.ids = newIdentities(now); s.ids != nil {
		s.past = newPast(now)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = nil
}

// catchUp adds options that answers contained to the conversation.
func (s *Session) catchUp() {
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.Lock()
	var news []acp.SessionUpdate
	if c := s.client; c != nil {
		if options := c.Options(); options != nil && !sameList(options, s.told) {
			s.told = options
			news = append(news, &acp.ConfigOptionUpdate{ConfigOptions: options})
		}
		if title := c.Title(); !s.named && title != "" && title != s.title {
			s.title = title
			news = append(news, &acp.SessionInfoUpdate{Title: acp.Set(title)})
		}
	}
	s.mu.Unlock()
	for _, u := range news {
		s.put(u)
	}
}

func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// update is the hook that is called with updates.
func (h *Host) update(_ context.Context, cs *acp.ClientSession, u *acp.Update) {
	s := h.session(cs)
	if isEmpty(u.Update) {
		return // it is not the latest any more
	}
	if plain := skills.PlainUpdate(u.Update); plain != u.Update { // as it was typed
		typed := *u
		typed.Update = plain
		u = &typed
	}
	s.begins(u.Update)
	s = s.actual()
	defer s.order.Unlock()
	if !s.tells(u) {
		s.live(u)
	}
}

// put records an update.
func (s *Session) put(u acp.SessionUpdate) {
	it := item{update: u}
	now := false // it means nothing to who restores the session
	switch u.(type) {
	case *acpv2.PromptSuggestionsUpdate, *acpv2.CursorUpdate:
		now = true
	}
	if !now && (s.host.keeper.store != nil || textSize(u) < 0) {
		it.event = updateEvent(u)
	}
	s.journal.put(it)
}

// about returns what is known of the session apart from its events. The writer calls it.
func (s *Session) about() store.Session {
	s.mu.Lock()
	was, client, user, parent := s.kept, s.client, s.user, s.parent
	next := store.Session{
		Key: store.Key{Agent: s.host.cfg.Agent.Name, ID: string(s.id)}, Cwd: s.cwd, Title: title.Better(cmp.Or(s.title, was.Title), s.asked),
		Command: was.Command, Protocol: was.Protocol, Parent: was.Parent,
	}
	if was.ID == "" || was.By != "" { // what a person has begun remains a conversation
		next.By = s.host.cfg.By
	}
	s.mu.Unlock()
	if next.Command == nil {
		next.Command = s.host.cfg.Agent.Argv()
	}
	if client != nil {
		next.Protocol = client.Conn().Version()
	}
	if parent != nil && !user && next.Parent == "" {
		next.Parent = parent.journal.conversationID()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = next
	return next
}

// ID returns the agent's id of the session. It changes if a login restarts the agent and the agent
// has forgotten the session.
func (s *Session) ID() acp.SessionID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Cwd returns the working directory of the session.
func (s *Session) Cwd() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cwd
}

// Client returns the session for everything that has no method here: options, title, cancelling
// tool calls. After a login that restarted the agent it is another one.
func (s *Session) Client() *acp.ClientSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// Suggestions returns the prompts that the agent suggests at present. They are written nowhere: a session that is restored
// begins with none.
func (s *Session) Suggestions() []acpv2.PromptSuggestion {
	if c := s.Client(); c != nil {
		return c.Suggestions()
	}
	return nil
}

// Host returns the host it belongs to.
func (s *Session) Host() *Host { return s.host }

// Snapshot returns the conversation as it was kept and can be shown.
func (s *Session) Snapshot() *transcript.Snapshot { return s.journal.conversation().Snapshot() }

// Prompt sends a prompt and waits for the end of its turn. When it returns, everything of the turn
// is in the store and was passed to [Frontend.Changed]. Several prompts may be in flight: the agent
// decides what happens to the later ones. When ctx is done the turn is cancelled, and Prompt waits
// no longer than the client's grace. If the agent requires a login, the prompt is sent again after
// that.
//
// If the agent has ended, [Host.Done] is closed before Prompt returns, unless the agent was
// restarted.
func (s *Session) Prompt(ctx context.Context, content ...acp.ContentBlock) (*acp.Result, error) {
	if s.beginTurn(content) == 1 {
		s.heard.Store(false)
	}
	s.endChildren()
	s.tellUnheld(s.host.Unheld())
	var res *acp.Result
	var reply *acp.Reply
	var on *link
	var mark turnMark
	tried := false
	err := s.host.authenticated(ctx, func() (err error) {
		s.mu.Lock()
		s.again, tried = tried && s.client.Conn().Version() == 1, true
		s.mu.Unlock()
		s.host.opening.RLock()
		client := s.Client()
		if on = s.host.current(); on.conn != client.Conn() {
			on = nil
		} else {
			mark = on.mark()
		}
		s.host.opening.RUnlock()
		req, ended := s.request(client.UseSkills(content))
		defer ended()
		reply = client.PromptRequest(ctx, req)
		res, err = reply.Wait()
		return err
	})
	untaken := reply != nil && (ctx.Err() != nil || res == nil || res.StopReason == acp.StopCancelled) && s.untaken(reply.MessageID())
	s.mu.Lock()
	s.turns--
	idle := s.turns == 0
	if idle {
		s.granted.Clear()
		s.done.clear()
	}
	s.mu.Unlock()
	if idle {
		s.endPast()
	} else {
		s.settle()
	}
	s.catchUp()
	if on != nil && err == nil {
		s.quiet(on, mark, idle && !s.heard.Load() && res.StopReason == acp.StopEndTurn)
	}
	end := s.turnEnd(ctx, res, err)
	if untaken && (end.StopReason == acp.StopCancelled || ctx.Err() != nil) {
		s.keepUntaken(content)
	}
	s.journal.await(item{turn: end, event: turnEvent(end)})
	if on != nil && errors.Is(err, jsonrpc.ErrClosed) {
		<-on.settled
	}
	s.host.cfg.Logger.Info("turn", "id", s.ID(), "stopReason", end.StopReason, "by", end.By, "said", end.Said, "error", end.Error)
	if err != nil && res != nil && res.StopReason == acp.StopError {
		return res, s.host.coded("the turn failed", err)
	}
	return res, s.host.coded("prompt", err)
}

// Steer puts a message into the turn that runs, in the way that [acp.ClientSession.Steer] chooses. If the outcome is that it
// has to be a prompt, nothing was sent, and [Session.Prompt] sends it.
func (s *Session) Steer(ctx context.Context, content ...acp.ContentBlock) (acp.SteerOutcome, error) {
	s.order.Lock()
	s.expects(content)
	s.order.Unlock()
	s.tellUnheld(s.host.Unheld())
	client := s.Client()
	outcome, err := client.Steer(ctx, client.UseSkills(content)...)
	s.host.cfg.Logger.Info("steered", "id", s.ID(), "outcome", outcome, "error", err)
	return outcome, s.host.coded("steer", err)
}

// Cancel asks the agent to end the turns that run.
func (s *Session) Cancel(ctx context.Context) error {
	s.mu.Lock()
	s.cancelled = s.turns
	s.mu.Unlock()
	err := s.Client().Cancel(ctx)
	if errors.Is(err, jsonrpc.ErrClosed) || errors.Is(err, acp.ErrSessionClosed) {
		return nil // nothing runs
	}
	return s.host.coded("cancel", err)
}

// Close closes the session at the agent, if possible, and forgets it and the sessions of its subagents here. They stay in the
// store, where others can continue them.
func (s *Session) Close(ctx context.Context) error {
	err := s.Client().Close(ctx)
	s.host.policy.Forget(string(s.ID()))
	for _, other := range append(s.subagents(), s) {
		other.endPast()
		s.host.forget(other)
	}
	if errors.Is(err, jsonrpc.ErrClosed) || errors.Is(err, acp.ErrSessionClosed) {
		return nil
	}
	return s.host.coded("closing session "+string(s.ID()), err)
}

// Leave closes a session that the user has left for another one, so that another program can continue it. It does nothing if
// the session is not kept here, if anything runs in it, or if the agent cannot close sessions and restore them.
func (s *Session) Leave(ctx context.Context) error {
	client := s.Client()
	s.mu.Lock()
	busy := s.turns > 0
	s.mu.Unlock()
	if _, idle := client.State().(*acpv2.IdleStateUpdate); !idle || busy || s.host.cfg.Store == nil || len(s.Running()) > 0 || len(client.Background()) > 0 {
		return nil
	}
	if v1 := client.Conn().CapabilitiesV1(); v1 != nil {
		if can := v1.SessionCapabilities; can.Close == nil || can.Resume == nil && !v1.LoadSession {
			return nil
		}
	}
	return s.Close(ctx)
}
