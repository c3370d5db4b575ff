package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// A backend is the agent of a session, while it runs.
type backend struct {
	s       *session
	conn    *acp.ClientConn
	session *acp.ClientSession
	names   *naming       // of what it sends
	ended   chan struct{} // closed when it has ended
	held    Held          // of an agent that outlives the gateway; nil otherwise
	stream  *heldStream   // likewise

	why atomic.Pointer[string] // it was ended; see exit

	pace   pace // of its updates
	events int  // that it may send in a second, if there is a limit

	mu         sync.Mutex
	steering   []*steering                     // messages that it is about to have
	early      []earlyUpdate                   // before the session is open
	children   map[acp.SessionID]chan struct{} // sessions of subagents, closed when the log announces them
	calls      calls                           // what it has said of them
	replayed   account                         // what it has replayed
	ready      bool
	transcript string // what a new session of the agent has to know, until the agent has it
	handed     bool   // it was sent
	unfit      int    // updates that did not fit the protocol, and were not told yet
	misfit     string // the member that did not fit in the first of those
}

// maxEarly bounds the updates that are held until a session is open.
const maxEarly = 4096

// backend returns the agent of the session, started if it does not run. patience is how long it may wait for its place: see
// admitAgent.
func (s *session) backend(ctx context.Context, patience time.Duration) (*backend, error) {
	select {
	case s.starting <- struct{}{}:
		defer func() {
			<-s.starting
			s.g.tenancy.lobby.stir() // nobody could stop it while that was held
		}()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	b, closed := s.agent, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, errGone
	case b != nil && b.conn.Conn().Err() == nil:
		return b, nil
	}
	return s.start(ctx, patience)
}

// start starts the agent and opens the session in it.
func (s *session) start(ctx context.Context, patience time.Duration) (_ *backend, err error) {
	s.mu.Lock()
	owner, groups := s.info.Owner, s.known.Groups
	s.mu.Unlock()
	says := time.AfterFunc(roomNotice, func() {
		note := records.Notice{Severity: acp.NoticeSeverityInfo, Title: "All agents that may run at once are at work.", Description: "This begins when one of them is idle."}
		_ = s.log.put(s.ctx, kindNotice, encode(note), nil)
	})
	err = s.g.admitAgent(ctx, owner, groups, false, patience)
	says.Stop()
	if err != nil {
		return nil, err
	}
	running := false
	ctx, started := s.g.cfg.Observer.Begin(ctx, Span{Kind: SpanStart, Session: s.id, Agent: s.agentName()})
	defer func() {
		started(outcomeOf(err))
		if !running {
			s.g.dismissAgent(owner)
		}
	}()
	if err := s.keep(ctx, func(a *attributes) { a.Starts++ }); err != nil {
		return nil, err
	}
	if err := s.offer(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	info, known := s.info, s.known
	s.mu.Unlock()
	b := &backend{s: s, names: newNaming(known.Starts, &s.begunAt), ended: make(chan struct{}), events: s.g.events(owner, groups)}
	transport, err := b.reach(s.forTenant(ctx, info), info)
	if err != nil {
		return nil, err
	}
	if b.conn, err = b.client().Connect(ctx, transport); err != nil {
		err = b.failed(ctx, info.Agent, err)
	}
	if err == nil {
		if err = b.open(ctx, info, known); err != nil {
			_ = b.conn.Close()
		}
	}
	if err == nil && b.stream != nil {
		err = b.keep(ctx)
	}
	if err != nil {
		if b.held != nil {
			err = errors.Join(err, b.held.Stop(context.WithoutCancel(ctx)))
		}
		return nil, err
	}
	if err := s.run(b); err != nil {
		return nil, err
	}
	running = true
	return b, nil
}

// reach starts the agent and returns the way to it.
func (b *backend) reach(ctx context.Context, info engine.Session) (acp.Transport, error) {
	s := b.s
	if s.g.cfg.Hold != nil {
		h, err := s.g.cfg.Hold(ctx, info.Agent, info.Cwd)
		if err != nil {
			return nil, b.failed(ctx, info.Agent, err)
		}
		if h != nil {
			_, err = s.log.commit(ctx, kindStart, []byte("{}"))
			if err == nil {
				err = s.keep(ctx, func(a *attributes) { a.Held = &heldState{Socket: h.Socket(), Token: h.Token()} })
			}
			if err != nil {
				return nil, errors.Join(err, h.Stop(context.WithoutCancel(ctx)))
			}
			b.held = h
			b.stream = newHeldStream(h, s, s.wirePrefix(), nil)
			return acp.Over(b.stream), nil
		}
	}
	if err := s.keep(ctx, func(a *attributes) { a.Held = nil }); err != nil {
		return nil, err
	}
	t, err := s.g.cfg.Start(ctx, info.Agent, info.Cwd)
	if err != nil {
		err = b.failed(ctx, info.Agent, err)
	}
	return t, err
}

// keep keeps what another gateway has to know in order to take the agent over.
func (b *backend) keep(ctx context.Context) error {
	state := heldState{Socket: b.held.Socket(), Token: b.held.Token(), Version: b.conn.Version()}
	b.stream.mu.Lock()
	state.Initialize, state.Loaded = b.stream.results["initialize"], b.stream.loaded
	for _, method := range []string{"session/new", "session/load", "session/resume"} {
		if raw := b.stream.results[method]; raw != nil {
			state.Opened = raw
		}
	}
	b.stream.mu.Unlock()
	return b.s.keep(ctx, func(a *attributes) { a.Held = &state })
}

// client returns the client of the agent.
func (b *backend) client() *acp.Client {
	cfg := &b.s.g.cfg
	c := &acp.Client{
		Info: cfg.Info, Logger: cfg.Logger, CancelGrace: cfg.CancelGrace,
		Update: b.update, RequestPermission: b.permission, Elicit: b.elicit, ShowsTerminals: true,
		Suggestions: &acp.PromptContent{}, // what every client can offer
		Cursors:     true,
		Skills:      true,
	}
	c.Engine.Diagnose = b.noticed
	b.s.lend(c)
	return c
}

// noticed counts updates that do not fit the protocol, so that they are ignored.
func (b *backend) noticed(e jsonrpc.Event) {
	if e.Kind != jsonrpc.EventMalformedNotification {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unfit++; b.unfit == 1 {
		b.misfit = e.Path[:min(len(e.Path), maxMisfit)]
	}
}

// maxMisfit bounds the name of a member in a notice, in bytes.
const maxMisfit = 200

// missing has the log say that updates were ignored since it last did.
func (b *backend) missing(ctx context.Context) {
	b.mu.Lock()
	n, at := b.unfit, b.misfit
	b.unfit, b.misfit = 0, ""
	b.mu.Unlock()
	if n == 0 {
		return
	}
	what := "A message does not fit the protocol: "
	if n > 1 {
		what = fmt.Sprintf("%d messages do not fit the protocol. The first: ", n)
	}
	note := records.Notice{Severity: acp.NoticeSeverityWarning, Title: "Something the agent has sent is missing.", Description: what + strings.ToValidUTF8(at, "") + "."}
	_ = b.s.log.put(ctx, kindNotice, encode(note), nil)
}

// run makes an agent that is connected the session's, or ends it if the session was closed meanwhile.
func (s *session) run(b *backend) error {
	s.g.runs(b)
	s.mu.Lock()
	closed, owner := s.closed || s.given(), s.info.Owner
	if !closed {
		s.agent = b
		s.touch()
	}
	s.mu.Unlock()
	if closed {
		s.g.ran(b)
		b.release()
		_ = b.conn.Close()
		return ErrClosed
	}
	s.g.work.Go(func() {
		<-b.conn.Done()
		_ = b.conn.Wait()
		if err := s.unsuggest(s.ctx); err != nil && !s.given() { // before another agent suggests something
			s.logger().Warn("gateway: suggested prompts cannot be withdrawn", "error", err)
		}
		s.mu.Lock()
		if s.agent == b {
			s.agent = nil
		}
		closed := s.closed
		s.mu.Unlock()
		if !closed { // otherwise the next owner does
			if err := s.withdrawQuestions(s.ctx); err != nil && !s.given() {
				s.logger().Warn("gateway: questions cannot be withdrawn", "error", err)
			}
		}
		b.release() // it has nothing more to say
		s.g.dismissAgent(owner)
		s.g.ran(b)
		s.g.cfg.Observer.Happened(Event{Kind: EventExit, Agent: s.agentName(), Why: b.exit()})
		close(b.ended)
	})
	return nil
}

// release ends an agent that outlives the gateway otherwise.
func (b *backend) release() {
	if b.held == nil {
		return
	}
	bound, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	_ = b.held.Stop(bound)
}

// stopTime is how long an agent may take to end.
const stopTime = 15 * time.Second

// open opens the session in the agent: a new one, or the one it had, or a new one that gets what was
// said as text. Then a notice says so to everybody.
func (b *backend) open(ctx context.Context, info engine.Session, known attributes) error {
	cfg := acp.SessionConfig{Cwd: info.Cwd, AdditionalDirectories: known.Directories}
	for _, raw := range known.MCP {
		server, err := acpv2.UnmarshalMCPServer(raw)
		if err != nil {
			return fmt.Errorf("an MCP server: %w", err)
		}
		cfg.MCPServers = append(cfg.MCPServers, server)
	}
	if info.AgentSession == "" {
		cfg.Options = known.Initial // what the agent does not take is set afterwards; what it refuses, the client finds out
	} else if caps := b.conn.Capabilities().Session; caps != nil && caps.Options != nil {
		cfg.Options = inForce(known.options) // it may have forgotten them, or the session
	}
	var err error
	switch {
	case info.AgentSession != "":
		err = b.restore(ctx, acp.SessionID(info.AgentSession), cfg, known)
	case known.Fork != nil:
		err = b.fork(ctx, cfg, known.Fork)
	default:
		if b.session, err = b.conn.NewSession(ctx, cfg); err == nil {
			err = b.opened(ctx, new(uint64))
		}
	}
	if err != nil {
		return err
	}
	return b.begin(ctx)
}

// restore brings the agent's session back.
func (b *backend) restore(ctx context.Context, id acp.SessionID, cfg acp.SessionConfig, known attributes) error {
	session, how, err := b.conn.Restore(ctx, id, cfg)
	switch {
	case err != nil && (ctx.Err() != nil || b.conn.Conn().Err() != nil):
		return err
	case err == nil && how != acp.RestoredNew:
		b.session = session
		if known.Handover { // it was stopped before it got that
			b.transcript, _, err = b.s.transcript(ctx)
		} else if how == acp.RestoredLoaded {
			err = b.compare(ctx, known)
		}
		if err != nil {
			return err
		}
		return b.names.remembers(ctx, b.s.g.cfg.Log, b.s.id)
	}
	var since uint64
	var lost error
	if b.transcript, since, lost = b.s.transcript(ctx); lost != nil {
		return lost
	}
	if err != nil {
		if session, err = b.conn.NewSession(ctx, cfg); err != nil {
			return err
		}
	}
	b.session = session
	if err := b.opened(ctx, &since); err != nil || b.transcript == "" {
		return err
	}
	return b.s.notice(ctx, acp.NoticeSeverityWarning, "The agent does not remember this session.",
		"It could not bring the session back, so it works in a new one. It gets what was said here as text, and nothing of what it had seen otherwise.")
}

// opened keeps which session of the agent it is, after which record that has begun, and whether it knows what was said
// before. It is not known after which record if since is nil.
func (b *backend) opened(ctx context.Context, since *uint64) error {
	return b.s.keep(ctx, func(a *attributes) {
		a.Handover, a.Since, a.Differs, a.Initial = b.transcript != "", since, "", nil
	}, func(info *engine.Session) { info.AgentSession = string(b.session.ID()) })
}

// begin takes what the agent has said so far, and everything from then on.
func (b *backend) begin(ctx context.Context) error {
	options := &acp.ConfigOptionUpdate{ConfigOptions: b.session.Options()}
	raw, err := json.Marshal(options)
	if err != nil {
		return err
	}
	if len(options.ConfigOptions) > 0 {
		if err := b.s.keep(ctx, func(a *attributes) { a.note(options, raw) }); err != nil {
			return err
		}
	}
	if list := b.session.Commands(); len(list) > 0 { // the answer of version 2 has them
		commands := &acp.AvailableCommandsUpdate{AvailableCommands: list}
		if raw, err = json.Marshal(commands); err != nil {
			return err
		}
		if err := b.s.keep(ctx, func(a *attributes) { a.note(commands, raw) }); err != nil {
			return err
		}
	}
	for {
		b.mu.Lock()
		early := b.early
		b.early = nil
		if len(early) == 0 {
			b.ready = true
			b.mu.Unlock()
			return nil
		}
		b.mu.Unlock()
		for _, u := range early {
			b.record(ctx, u.child, u.Update)
			u.told()
		}
	}
}

// An earlyUpdate is an update that comes before the session is open.
type earlyUpdate struct {
	*acp.Update
	child acp.SessionID
	told  func() // is called when it is in the log
}

// update takes an update of the agent.
func (b *backend) update(ctx context.Context, cs *acp.ClientSession, u *acp.Update) {
	child := childIn(cs)
	if u.Replayed && !u.Synthetic && child == "" {
		b.mu.Lock()
		b.replayed.add(u.Update)
		b.mu.Unlock()
	}
	told := b.told(u)
	if m := b.steered(child, u); m != nil {
		if err := b.keepSteered(ctx, m, u.Frame); err != nil && !b.s.given() {
			b.s.logger().Error("gateway: a message is not kept", "error", err)
		}
		told()
		return
	}
	if child == "" && !u.Replayed {
		b.echoed(u.Update)
	}
	if u.Replayed || u.Synthetic || b.stream.introduces(u) {
		b.stream.dropped(u.Frame)
		told()
		return // it is in the log, or is written by the turn
	}
	if child != "" && !b.wait(ctx, child, u, told) {
		return
	}
	b.mu.Lock()
	if !b.ready {
		full := len(b.early) == maxEarly
		if !full {
			b.early = append(b.early, earlyUpdate{u, child, told})
		}
		b.mu.Unlock()
		if full {
			b.s.logger().Warn("gateway: an update before the session was open is dropped")
			b.stream.dropped(u.Frame)
			told()
		}
		return
	}
	b.mu.Unlock()
	b.record(ctx, child, u)
	told()
}

// echoed notes which id the agent has for the message of the prompt that runs, if an update is that message.
func (b *backend) echoed(u acp.SessionUpdate) {
	var id acp.MessageID
	switch u := u.(type) {
	case *acp.UserMessage:
		id = u.MessageID
	case *acp.UserMessageChunk:
		id = u.MessageID
	default:
		return
	}
	b.s.mu.Lock()
	prompt := ""
	if len(b.s.queue) > 0 {
		prompt = string(b.s.queue[0].id)
	}
	b.s.mu.Unlock()
	b.names.prompted(id, prompt)
}

// records reports whether an update is for the log. It notes the event of one that is not.
func (b *backend) records(child acp.SessionID, u acp.SessionUpdate, event uint64) bool {
	switch u.(type) {
	case *acp.IdleStateUpdate:
		if child == "" {
			b.stream.idle(event)
			return false
		}
	case acp.StateUpdate, *acpv2.ReplayComplete: // the turn writes states, those of a subagent are in its parent's updates, and clients are replayed the log
	case *acp.UserMessage, *acp.UserMessageChunk: // prompts have records of their own
		if child != "" {
			return true
		}
	case *acpv2.PromptSuggestionsUpdate: // nobody prompts a subagent
		if child == "" {
			return true
		}
	default:
		return true
	}
	b.stream.dropped(event)
	return false
}

// record writes an update down. child is the session of the subagent that it is about, or "".
func (b *backend) record(ctx context.Context, child acp.SessionID, u *acp.Update) {
	s := b.s
	event, owner := u.Frame, s.owner()
	kind := kindUpdate
	if !b.records(child, u.Update, event) {
		return
	}
	own, said := child, b.names.update(child, u, event)
	if child == "" {
		s.turning.Load().update(u.Update)
	} else {
		kind, child = kindChild, childOf(s.id, child)
	}
	if subagent, ok := u.Update.(*acp.SubagentUpdate); ok && len(subagent.SessionID) > maxChildName {
		s.logger().Error("gateway: a subagent with too long a name is dropped", "bound", maxChildName)
		b.stream.dropped(event)
		return
	}
	update := withChild(s.id, b.session.ID(), b.names, said)
	raw, err := update.AppendJSON(nil)
	if err != nil {
		s.logger().Error("gateway: an update cannot be encoded", "kind", u.Kind(), "error", err)
		b.stream.dropped(event)
		return
	}
	r := records.Update{Update: raw, Child: child, Stamp: b.stream.stamp(event)}
	if len(r.Update) > maxRecord {
		s.logger().Error("gateway: an update is too large to keep", "kind", u.Kind(), "bytes", len(r.Update))
		note := records.Notice{Severity: acp.NoticeSeverityError, Title: "Something the agent has sent is missing.", Description: fmt.Sprintf("It is too large to keep: %d bytes.", len(r.Update))}
		_ = s.log.put(ctx, kindNotice, encode(note), nil)
		b.stream.dropped(event)
		return
	}
	if call, ok := said.(*acp.ToolCallUpdate); ok {
		b.mu.Lock()
		b.calls.note(own, call, len(raw))
		b.mu.Unlock()
	}
	b.pace.wait(ctx, b.events)
	if _, ok := update.(*acp.ConfigOptionUpdate); ok && child == "" {
		done, err := s.choose(ctx)
		if err != nil {
			return // the session was given up
		}
		defer done()
	}
	s.g.tenancy.spent(owner, len(r.Update))
	data, committed := r.Encode(), b.stream.committed(r.Stamp)
	if err := s.log.put(ctx, kind, data, func(seq uint64, err error) {
		if err == nil {
			s.g.decoded.learn(s.id, &decoded{child: child, update: update, seq: seq, size: len(data)})
		}
		if committed != nil {
			committed(seq, err)
		}
	}); err != nil {
		return // the code that closed the log has reported it
	}
	if child != "" {
		return // what is known of the session is not about its subagents
	}
	switch update := update.(type) {
	case *acp.ConfigOptionUpdate, *acp.AvailableCommandsUpdate, *acpv2.PromptSuggestionsUpdate:
		err = s.keep(ctx, func(a *attributes) { a.note(update, raw) })
	case *acp.SessionInfoUpdate:
		if title, ok := update.Title.Get(); ok {
			err = s.update(ctx, func(info *engine.Session) { info.Title = title })
		}
	}
	if err != nil && !s.given() {
		s.logger().Warn("gateway: an attribute cannot be kept", "error", err)
	}
}

// stop ends the agent and waits until it has.
func (b *backend) stop() {
	b.why.CompareAndSwap(nil, new("stopped"))
	b.release()
	_ = b.conn.Close()
	<-b.ended
}

// kill ends the agent at once.
func (b *backend) kill() {
	b.why.CompareAndSwap(nil, new("killed"))
	if b.held != nil {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = b.held.Stop(now)
	}
	_ = b.conn.Kill()
	<-b.ended
}

var errNoAnswer = errors.New("nobody has answered")
