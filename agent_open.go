package acp

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// sessionRequest is what every request that opens a session asks for.
type sessionRequest struct {
	cwd         string
	directories []string
	servers     []MCPServer
	prompt      *SystemPrompt
	meta        json.RawMessage
	options     []InitialOption
}

var errHeldTooMuch = errors.New("acp: too many updates for a session whose id or history the client does not know yet")

// check refuses what the agent did not advertise.
func (o *sessionRequest) check(a *Agent, version int) error {
	if !filepath.IsAbs(o.cwd) {
		return invalidParams("cwd", "must be absolute")
	}
	for i, d := range o.directories {
		at := "additionalDirectories[" + strconv.Itoa(i) + "]"
		if !a.AdditionalDirectories {
			return invalidParams(at, "not advertised")
		}
		if !filepath.IsAbs(d) {
			return invalidParams(at, "must be absolute")
		}
	}
	can := a.MCP
	if version == 1 {
		can.Stdio = true // every agent of version 1 takes it
	} else {
		can.SSE = false // there is no such thing
	}
	names := map[string]bool{}
	for i, m := range o.servers {
		at := "mcpServers[" + strconv.Itoa(i) + "]"
		name, transport, ok := serverTransport(m, can)
		if !ok {
			return jsonrpc.ErrInvalidParams.WithData(map[string]string{ // S86
				"path": "params." + at + ".type", "reason": "transport not advertised", "type": transport,
			})
		}
		if names[name] {
			return jsonrpc.ErrInvalidParams.WithData(map[string]string{
				"path": "params." + at + ".name", "reason": "name used twice", "name": name,
			})
		}
		names[name] = true
	}
	return errors.Join(o.checkSystemPrompt(a), o.checkInitial(a))
}

// checkSystemPrompt refuses what the agent did not advertise instead of ignoring
// it (S85).
func (o *sessionRequest) checkSystemPrompt(a *Agent) error {
	if o.prompt == nil {
		return nil
	}
	switch {
	case a.SystemPrompt == SystemPromptNone:
		return invalidParams("systemPrompt", "not advertised")
	case o.prompt.Mode == acpv2.SystemPromptModeAppend:
	case o.prompt.Mode == acpv2.SystemPromptModeOverride && a.SystemPrompt == SystemPromptOverride:
	default:
		return invalidParams("systemPrompt.mode", "not advertised")
	}
	if len(o.prompt.Content) == 0 {
		return invalidParams("systemPrompt.content", "must not be empty")
	}
	for i, b := range o.prompt.Content {
		if _, ok := b.(*TextContent); !ok {
			return invalidParams("systemPrompt.content["+strconv.Itoa(i)+"]", "must be text")
		}
	}
	return nil
}

// serverTransport returns a server's name and transport, and whether the agent
// can use it.
func serverTransport(m MCPServer, can MCPTransports) (name, transport string, ok bool) {
	switch m := m.(type) {
	case *MCPServerStdio:
		return m.Name, "stdio", can.Stdio
	case *MCPServerHTTP:
		return m.Name, "http", can.HTTP
	case *MCPServerACP:
		return m.Name, "acp", can.ACP
	case *UnknownMCPServer:
		var named struct{ Name string }
		_ = json.Unmarshal(m.Raw, &named) // a server without a name is refused all the same
		return named.Name, m.Type, m.Type == "sse" && can.SSE
	}
	return "", "", false
}

// add registers a session once its id is settled.
func (c *AgentConn) add(s *AgentSession) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.sessions[s.id] != nil:
		return errors.New("acp: the session id is in use: " + string(s.id))
	case len(c.sessions) >= MaxSessions:
		return &Failure{Message: "too many open sessions", Reason: "sessions", Scope: "connection"}
	}
	c.number++
	s.number = c.number
	c.sessions[s.id] = s
	return nil
}

// open opens a new session, from nothing or from another one, up to a cursor unless that
// is empty. The updates that the hook sends are sent after the answer.
func (c *AgentConn) open(ctx context.Context, o *sessionRequest, from SessionID, at acpv2.CursorID) (*AgentSession, error) {
	a := c.agent.Load()
	if from != "" && a.ForkSession == nil {
		return nil, notFound(ctx)
	}
	if at != "" && a.ForkSessionAt == nil {
		return nil, invalidParams("cursorId", "unknown cursor") // the whole would be more than was asked for
	}
	if err := o.check(a, c.Version()); err != nil {
		return nil, err
	}
	s := c.newSession(randomSessionID(), o)
	if from != "" {
		s.keepApart()
	}
	s.hold()
	err := c.guard("NewSession", func() error {
		switch {
		case at != "":
			return a.ForkSessionAt(ctx, s, from, at)
		case from != "":
			return a.ForkSession(ctx, s, from)
		case a.NewSession != nil:
			return a.NewSession(ctx, s)
		}
		return nil
	})
	if err == nil {
		err = c.add(s)
	}
	if err != nil {
		s.stop(ErrSessionClosed)
		return nil, err
	}
	if err := c.givenUp(ctx, s); err != nil {
		return nil, err
	}
	s.begin(ctx, o.options)
	s.announce()
	context.AfterFunc(jsonrpc.RequestFrom(ctx).Context(), s.flush)
	return s, nil
}

// announce records that options and commands are part of the answer. Later
// changes must be sent.
func (s *AgentSession) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announced = true
	if !isClosed(s.ready) {
		close(s.ready)
	}
}

// resume brings a session back, with its history if replay is set.
func (c *AgentConn) resume(ctx context.Context, id SessionID, o *sessionRequest, replay bool) (*AgentSession, error) {
	s, err := c.restore(ctx, id, o, replay)
	if err == nil {
		s.begin(ctx, o.options)
	}
	return s, err
}

func (c *AgentConn) restore(ctx context.Context, id SessionID, o *sessionRequest, replay bool) (*AgentSession, error) {
	a := c.agent.Load()
	if err := o.check(a, c.Version()); err != nil {
		return nil, err
	}
	done, err := c.resuming(ctx, id)
	if err != nil {
		return nil, err
	}
	defer done()
	s, open := c.Session(id)
	if open {
		s.flush() // a client that resumes it knows its id, and receives all of it before the answer
		s.mu.Lock()
		s.asked = *o
		s.mu.Unlock()
	}
	switch {
	case a.ResumeSession == nil && !open:
		return nil, SessionNotFound(id)
	case a.ResumeSession == nil:
		return s, s.replayKept(ctx, replay)
	case open && !a.resumesOpen:
		if replay {
			err = s.replayAsked(ctx, o)
		}
		if err == nil {
			err = s.snapshot(ctx)
		}
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	if !open {
		s = c.newSession(id, o)
		s.keepApart()
		s.replaying.Store(true)
		// Registered now, since what the hook sends may be answered.
		if err := c.add(s); err != nil {
			s.stop(ErrSessionClosed)
			return nil, err
		}
	}
	if open && replay {
		if err := s.acquire(ctx); err != nil {
			return nil, err
		}
		s.history.end = replayEnd{}
		s.releaseSending()
	}
	err = c.guard("ResumeSession", func() error { return a.ResumeSession(ctx, s, replay) })
	if err == nil {
		s.replaying.Store(false)
		s.announce()
		if !open {
			err = c.givenUp(ctx, s)
		}
	}
	if err == nil && replay {
		err = s.endReplay(ctx, s)
	}
	if err == nil && !open {
		err = s.endLeft(ctx)
	}
	if err == nil {
		err = s.snapshot(ctx)
	}
	if err != nil {
		if !open {
			c.forget(s)
		}
		return nil, err
	}
	return s, nil
}

// replayAsked has the hook replay the history of a session that is open. The hook
// gets an AgentSession of its own, so that what it sets there does not replace
// what the open session has. What that sends meanwhile follows the history.
func (s *AgentSession) replayAsked(ctx context.Context, o *sessionRequest) error {
	if err := s.pause(ctx); err != nil {
		return err
	}
	defer s.sendHeld(true)
	end := s.c.newSessionIn(s.ctx, s.id, o)
	end.keepApart()
	end.replaying.Store(true)
	defer end.stop(ErrSessionClosed)
	err := s.c.guard("ResumeSession", func() error { return s.c.agent.Load().ResumeSession(ctx, end, true) })
	if errors.Is(err, jsonrpc.ErrResourceNotFound) {
		return s.endReplay(ctx, end) // nothing of it has been saved yet
	}
	end.mu.Lock()
	meta := end.meta
	end.mu.Unlock()
	if err == nil && meta != nil {
		s.SetAnswerMeta(meta)
	}
	if err == nil {
		err = s.endReplay(ctx, end)
	}
	return err
}

// resuming waits until no other request is resuming the session or ending it.
func (c *AgentConn) resuming(ctx context.Context, id SessionID) (done func(), err error) {
	for {
		c.mu.Lock()
		busy := c.resumes[id]
		if busy == nil {
			busy = c.ends[id]
		}
		if busy == nil {
			mine := make(chan struct{})
			c.resumes[id] = mine
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				delete(c.resumes, id)
				close(mine)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// snapshot reports the session's state (S89).
func (s *AgentSession) snapshot(ctx context.Context) error {
	if !s.recordsStates() {
		return nil
	}
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.releaseSending()
	return s.send(ctx, s.state())
}

// replayKept sends what the session remembers of its own history.
func (s *AgentSession) replayKept(ctx context.Context, replay bool) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.releaseSending()
	proto := s.c.peer.Load().proto
	if replay {
		var end replayEnd
		for _, u := range s.history.all() {
			if err := proto.update(ctx, s, u); err != nil {
				return err
			}
			end.see(u)
		}
		for _, id := range append(end.children, s.id) {
			if err := proto.replayed(ctx, id); err != nil {
				return err
			}
		}
	}
	return s.send(ctx, s.state())
}

// list answers session/list. Without a hook it lists the sessions that are open
// here.
func (c *AgentConn) list(ctx context.Context, q *SessionQuery) (page *SessionPage, err error) {
	switch q.Archived {
	case "", SessionArchiveFilterExclude, SessionArchiveFilterInclude, SessionArchiveFilterOnly:
	default:
		return nil, invalidParams("archived", "unknown filter") // S85
	}
	if c.agent.Load().ListSessions != nil {
		if q.Cursor != nil && !c.paged.Load() { // perhaps of another connection
			first := *q
			first.Cursor = nil
			if page, err = c.page(ctx, &first); err == nil && page.NextCursor == nil {
				err = invalidParams("cursor", "unknown cursor")
			}
			if err != nil {
				return nil, err
			}
		}
		return c.page(ctx, q)
	}
	page = new(SessionPage)
	if q.Cursor != nil {
		return nil, invalidParams("cursor", "unknown cursor")
	}
	for _, s := range c.OpenSessions() {
		if q.Cwd == "" || q.Cwd == s.Cwd() {
			page.Sessions = append(page.Sessions, SessionInfo{
				SessionID: s.id, Cwd: s.Cwd(), AdditionalDirectories: s.AdditionalDirectories(), Title: s.Title(),
			})
		}
	}
	return page, nil
}

// page has the ListSessions hook return a page.
func (c *AgentConn) page(ctx context.Context, q *SessionQuery) (page *SessionPage, err error) {
	err = c.guard("ListSessions", func() error {
		page, err = c.agent.Load().ListSessions(ctx, c, q)
		return err
	})
	switch {
	case err != nil:
		return page, err
	case page == nil:
		page = new(SessionPage)
	case page.NextCursor != nil:
		c.paged.Store(true)
	}
	if q.Cwd != "" {
		page.Sessions = slices.DeleteFunc(slices.Clone(page.Sessions), func(i SessionInfo) bool {
			return filepath.Clean(i.Cwd) != filepath.Clean(q.Cwd)
		})
	}
	return page, nil
}

func (c *AgentConn) status(ctx context.Context, id SessionID) (status SessionStatus, state StateUpdate, err error) {
	a := c.agent.Load()
	if a.SessionStatus == nil {
		return "", nil, notFound(ctx)
	}
	if s, ok := c.Session(id); ok {
		return SessionStatusOpen, s.state(), nil
	}
	err = c.guard("SessionStatus", func() error {
		status, err = a.SessionStatus(ctx, c, id)
		return err
	})
	return status, nil, err
}

func (c *AgentConn) setTitle(ctx context.Context, id SessionID, title string) (stored string, err error) {
	a := c.agent.Load()
	if a.SetTitle == nil {
		return "", notFound(ctx)
	}
	title = strings.TrimSpace(title)
	if title == "" {
		return "", invalidParams("title", "must not be blank")
	}
	err = c.guard("SetTitle", func() error {
		stored, err = a.SetTitle(ctx, c, id, title)
		return err
	})
	if s, ok := c.Session(id); ok && err == nil {
		s.mu.Lock()
		s.title = stored
		s.mu.Unlock()
	}
	return stored, err
}
