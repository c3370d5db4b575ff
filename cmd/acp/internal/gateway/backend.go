package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// A backend is the agent of a session, while it runs.
type backend struct {
	s       *session
	conn    *acp.ClientConn
	session *acp.ClientSession
	prefix  string        // of the ids of its messages
	ended   chan struct{} // closed when it has ended
	held    Held          // of an agent that outlives the gateway; nil otherwise
	stream  *heldStream   // likewise

	mu         sync.Mutex
	early      []*acp.Update // before the session is open
	ready      bool
	transcript string // what a new session of the agent has to know, until it was handed over
}

// maxEarly bounds the updates that are held until a session is open.
const maxEarly = 4096

// backend returns the agent of the session, started if it does not run.
func (s *session) backend(ctx context.Context) (*backend, error) {
	select {
	case s.starting <- struct{}{}:
		defer func() { <-s.starting }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	b, closed := s.agent, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case b != nil && b.conn.Conn().Err() == nil:
		return b, nil
	}
	return s.start(ctx)
}

// start starts the agent and opens the session in it.
func (s *session) start(ctx context.Context) (_ *backend, err error) {
	if err := s.g.admit(); err != nil {
		return nil, err
	}
	running := false
	defer func() {
		if !running {
			s.g.dismiss()
		}
	}()
	if err := s.keep(ctx, func(a *attributes) { a.Starts++ }); err != nil {
		return nil, err
	}
	s.mu.Lock()
	info, known := s.info, s.known
	s.mu.Unlock()
	b := &backend{s: s, prefix: fmt.Sprintf("%d.", known.Starts), ended: make(chan struct{})}
	transport, err := b.reach(ctx, info)
	if err != nil {
		return nil, err
	}
	b.conn, err = b.client().Connect(ctx, transport)
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
			return nil, err
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
	return s.g.cfg.Start(ctx, info.Agent, info.Cwd)
}

// keep keeps what another gateway has to know in order to take the agent over.
func (b *backend) keep(ctx context.Context) error {
	state := heldState{Socket: b.held.Socket(), Token: b.held.Token(), Version: b.conn.Version()}
	b.stream.mu.Lock()
	state.Initialize = b.stream.results["initialize"]
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
	return &acp.Client{
		Info: cfg.Info, Logger: cfg.Logger,
		Update: b.update, RequestPermission: b.permission, Elicit: b.elicit,
	}
}

// run makes an agent that is connected the session's, or ends it if the session was closed meanwhile.
func (s *session) run(b *backend) error {
	s.mu.Lock()
	closed := s.closed || s.gone()
	if !closed {
		s.agent = b
		s.touch()
	}
	s.mu.Unlock()
	if closed {
		b.release()
		_ = b.conn.Close()
		return ErrClosed
	}
	s.g.work.Go(func() {
		<-b.conn.Done()
		_ = b.conn.Wait()
		s.mu.Lock()
		if s.agent == b {
			s.agent = nil
		}
		s.mu.Unlock()
		b.release() // it has nothing more to say
		s.g.dismiss()
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
	s := b.s
	cfg := acp.SessionConfig{Cwd: info.Cwd, AdditionalDirectories: known.Directories}
	for _, raw := range known.MCP {
		server, err := acpv2.UnmarshalMCPServer(raw)
		if err != nil {
			return fmt.Errorf("an MCP server: %w", err)
		}
		cfg.MCPServers = append(cfg.MCPServers, server)
	}
	var err error
	var how acp.Restored
	if info.AgentSession != "" {
		b.session, how, err = b.conn.Restore(ctx, acp.SessionID(info.AgentSession), cfg)
		switch {
		case err == nil && how != acp.RestoredNew:
			return b.begin(ctx)
		case ctx.Err() != nil || b.conn.Conn().Err() != nil:
			return err
		}
		var lost error
		if b.transcript, lost = s.transcript(ctx); lost != nil {
			return lost
		}
	}
	again := b.transcript != ""
	if info.AgentSession == "" || err != nil {
		if b.session, err = b.conn.NewSession(ctx, cfg); err != nil {
			return err
		}
	}
	if err := s.update(ctx, func(info *engine.Session) { info.AgentSession = string(b.session.ID()) }); err != nil {
		return err
	}
	if again {
		if err := s.notice(ctx, acp.NoticeSeverityWarning, "The agent does not remember this session.",
			"It could not bring the session back, so it works in a new one. It gets what was said here as text, and nothing of what it had seen otherwise."); err != nil {
			return err
		}
	}
	return b.begin(ctx)
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
			b.record(ctx, u)
		}
	}
}

// update takes an update of the agent.
func (b *backend) update(ctx context.Context, _ *acp.ClientSession, u *acp.Update) {
	if u.Replayed || u.Synthetic {
		b.stream.dropped(eventOfUpdate(u))
		return // it is in the log, or is written by the turn
	}
	b.mu.Lock()
	if !b.ready {
		full := len(b.early) == maxEarly
		if !full {
			b.early = append(b.early, u)
		}
		b.mu.Unlock()
		if full {
			b.s.logger().Warn("gateway: an update before the session was open is dropped")
			b.stream.dropped(eventOfUpdate(u))
		}
		return
	}
	b.mu.Unlock()
	b.record(ctx, u)
}

// record writes an update down.
func (b *backend) record(ctx context.Context, u *acp.Update) {
	s := b.s
	event := eventOfUpdate(u)
	switch u.Update.(type) {
	case *acp.IdleStateUpdate:
		b.stream.idle(event)
		return
	case *acp.UserMessage, *acp.UserMessageChunk, acp.StateUpdate:
		b.stream.dropped(event)
		return // the turn writes them
	}
	update := qualify(u.Update, b.prefix)
	raw, err := json.Marshal(update)
	if err != nil {
		s.logger().Error("gateway: an update cannot be encoded", "kind", u.Kind(), "error", err)
		b.stream.dropped(event)
		return
	}
	r := updateRecord{Update: raw, stamp: b.stream.stamp(event)}
	if u.V1 != nil {
		if r.V1, err = json.Marshal(u.V1.Update); err != nil {
			r.V1 = nil
		}
	}
	if len(r.Update)+len(r.V1) > maxRecord {
		r.V1 = nil
	}
	if len(r.Update) > maxRecord {
		s.logger().Error("gateway: an update is too large to keep", "kind", u.Kind(), "bytes", len(r.Update))
		note := noticeRecord{Severity: acp.NoticeSeverityError, Title: "Something the agent has sent is missing.", Description: fmt.Sprintf("It is too large to keep: %d bytes.", len(r.Update))}
		_ = s.log.put(ctx, kindNotice, encode(note), nil)
		b.stream.dropped(event)
		return
	}
	if err := s.log.put(ctx, kindUpdate, encode(r), b.stream.committed(r.stamp)); err != nil {
		return // whoever gave the session up has said so
	}
	switch update := update.(type) {
	case *acp.ConfigOptionUpdate, *acp.AvailableCommandsUpdate:
		err = s.keep(ctx, func(a *attributes) { a.note(update, raw) })
	case *acp.SessionInfoUpdate:
		if title, ok := update.Title.Get(); ok {
			err = s.update(ctx, func(info *engine.Session) { info.Title = title })
		}
	}
	if err != nil && !s.gone() {
		s.logger().Warn("gateway: an attribute cannot be kept", "error", err)
	}
}

// handover returns what the agent gets for a prompt: the first time in a session that does not remember
// what was said, that comes first.
func (b *backend) handover(content []acp.ContentBlock) []acp.ContentBlock {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.transcript == "" {
		return content
	}
	text := "This conversation was begun in a session that could not be brought back. What was said so far:\n\n" + b.transcript + "\n\nThe next message of the user follows."
	b.transcript = ""
	return append([]acp.ContentBlock{acp.Text(text)}, content...)
}

// eventOfUpdate returns the number of the event that an update has come in, or 0.
func eventOfUpdate(u *acp.Update) uint64 {
	switch {
	case u.V1 != nil:
		return eventOf(u.V1.Unknown)
	case u.V2 != nil:
		return eventOf(u.V2.Unknown)
	}
	return 0
}

// stop ends the agent and waits until it has.
func (b *backend) stop() {
	b.release()
	_ = b.conn.Close()
	<-b.ended
}

// maxTranscript bounds a transcript, in bytes. The end is what is kept.
const maxTranscript = 64 << 10

// transcript returns what was said in the session, without the turn that runs.
func (s *session) transcript(ctx context.Context) (string, error) {
	var t strings.Builder
	last, ended := "", 0
	say := func(who, text string) {
		if who != last {
			if t.Len() > 0 {
				t.WriteString("\n\n")
			}
			t.WriteString(who + ": ")
			last = who
		}
		t.WriteString(text)
	}
	err := s.g.cfg.Log.Read(ctx, s.id, 0, func(r engine.Record) error {
		switch r.Kind {
		case kindPrompt:
			p, err := decodePrompt(r.Data)
			if err != nil {
				return err
			}
			last, ended = "", t.Len()
			for _, block := range p.Content {
				if text, ok := block.(*acp.TextContent); ok {
					say("User", text.Text)
				}
			}
		case kindUpdate:
			u, err := decodeUpdate(r.Data)
			if err != nil {
				return err
			}
			if c, ok := u.(*acp.AgentMessageChunk); ok {
				if text, ok := c.Content.(*acp.TextContent); ok {
					say("Agent", text.Text)
				}
			}
		case kindEnd:
			ended = t.Len()
		}
		return nil
	})
	text := t.String()[:ended]
	if len(text) > maxTranscript {
		text = "…" + strings.ToValidUTF8(text[len(text)-maxTranscript:], "")
	}
	return text, err
}

// permission puts a question of the agent to all clients.
func (b *backend) permission(ctx context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
	a := &ask{title: req.Title, permission: &acp.Permission{
		Title: req.Title, Description: req.Description, Options: req.Options, Subject: req.Subject, Meta: req.Meta,
	}}
	data, err := json.Marshal(req.V2)
	if err != nil {
		return acp.CancelPermission(), err
	}
	d, err := b.s.ask(ctx, b, a, data)
	if err != nil || d.Option == "" {
		return acp.CancelPermission(), err
	}
	return acp.SelectPermission(d.Option), nil
}

// elicit puts a form or a link to all clients.
func (b *backend) elicit(ctx context.Context, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
	if req.Session == nil {
		return acp.CancelElicitation(), nil
	}
	a := &ask{title: req.Message}
	if req.Form != nil {
		a.form = &acp.FormRequest{Message: req.Message, Schema: *req.Form, ToolCallID: req.ToolCallID, Meta: req.Meta}
	} else {
		a.link = &acp.LinkRequest{Message: req.Message, URL: req.URL, ToolCallID: req.ToolCallID, Meta: req.Meta}
	}
	data, err := json.Marshal(struct {
		Message string                 `json:"message"`
		Form    *acp.ElicitationSchema `json:"form,omitempty"`
		URL     string                 `json:"url,omitempty"`
	}{req.Message, req.Form, req.URL})
	if err != nil {
		return acp.CancelElicitation(), err
	}
	d, err := b.s.ask(ctx, b, a, data)
	switch {
	case err != nil:
		return acp.CancelElicitation(), err
	case d.Accepted:
		return acp.AcceptElicitation(d.Content), nil
	case d.Declined:
		return acp.DeclineElicitation(), nil
	}
	return acp.CancelElicitation(), nil
}

var errNoAnswer = errors.New("nobody has answered")
