package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// known returns the two ends of a session, once it has both. The answer that
// makes it known may still be being handled, or, for a subagent's session, the
// update that does so, which is in another timeline. known returns nil if the
// session or the connection ends first.
func (l *bridgeLink) known(ctx context.Context, ds *ClientSession) *bridgedSession {
	b := l.session(ds.ID())
	if ds.Parent() != nil {
		l.mu.Lock()
		b.down = ds // for forget
		l.mu.Unlock()
	}
	select {
	case <-b.known:
	case <-ctx.Done():
		return nil
	case <-l.up.Done():
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.up == nil {
		return nil
	}
	return b
}

// introduced lets a subagent send, because an update of a session has introduced
// it to the client.
func (l *bridgeLink) introduced(s *AgentSession, ds *ClientSession, id SessionID) {
	child, ok := ds.conn.Session(id)
	if !ok || child.Parent() != ds {
		return // nobody's, or beyond the bound
	}
	b := l.session(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.up == nil {
		b.up, b.down = s.Child(id), child
		b.know()
	}
}

// update passes an update of the agent on, except states, which turns report, and
// prompts, which the client sent itself.
func (l *bridgeLink) update(ctx context.Context, ds *ClientSession, u *Update) {
	b := l.known(ctx, ds)
	if b == nil || u.Synthetic {
		return
	}
	l.mu.Lock()
	s, p, quiet := b.up, b.turn, b.quiet
	l.mu.Unlock()
	if quiet && u.Replayed && !ofSession(u.Update) {
		return
	}
	if p != nil && !u.Replayed {
		l.await(ctx, p, u.Update)
	} else {
		p = nil
	}
	switch v := u.Update.(type) {
	case *UserMessage:
		if p != nil && v.MessageID == p.t.message {
			return
		}
	case *UserMessageChunk:
		if p != nil && v.MessageID == p.t.message {
			return
		}
	case StateUpdate:
		if work, ok := backgroundOf(v); ok && !u.Replayed {
			_ = s.SetBackground(work...)
		}
		return
	case *ConfigOptionUpdate:
		_ = s.changeOptions(func([]SessionConfigOption) ([]SessionConfigOption, error) { return v.ConfigOptions, nil })
		return
	case *acpv2.ReplayComplete:
		return // ours follows when the agent has answered: it may be of version 1
	case *AvailableCommandsUpdate:
		_ = s.changeCommands(func([]AvailableCommand) []AvailableCommand { return v.AvailableCommands }, true)
		return
	case *SessionInfoUpdate:
		s.mu.Lock()
		v.Title.Apply(&s.title)
		s.mu.Unlock()
	case *ToolCallUpdate:
		if caps, ok := v.Capabilities.Get(); ok && caps.Cancel != nil {
			s.setCancel(toolCancelKey(v.ToolCallID), func() { _ = ds.CancelToolCall(s.ctx, v.ToolCallID) })
		} else if ok || v.Capabilities.IsClear() {
			s.setCancel(toolCancelKey(v.ToolCallID), nil)
		}
	case *TerminalUpdate:
		if caps, ok := v.Capabilities.Get(); ok && caps.Cancel != nil {
			s.setCancel(terminalCancelKey(v.TerminalID), func() { _ = ds.CancelTerminal(s.ctx, v.TerminalID) })
		} else if ok || v.Capabilities.IsClear() {
			s.setCancel(terminalCancelKey(v.TerminalID), nil)
		}
	}
	if shown := l.shown(ctx, u); shown != nil {
		_ = s.Send(shown) // the connection itself reports that it has failed
	}
	if v, ok := u.Update.(*SubagentUpdate); ok {
		l.introduced(s, ds, v.SessionID)
	}
}

// understands has a client understand what the client of a bridge does.
func understands(client *Client, up *AgentConn) {
	if s := up.Capabilities().Session; s != nil {
		if p := s.PromptSuggestions; p != nil {
			client.Suggestions = &PromptContent{Image: p.Image != nil, Audio: p.Audio != nil, EmbeddedContext: p.EmbeddedContext != nil}
		}
		client.Skills = s.Commands != nil && s.Commands.Skill != nil
	}
	if v1 := up.CapabilitiesV1(); v1 != nil {
		client.Cursors = v1.Session != nil && v1.Session.Cursors != nil
	}
}

// sameCommands reports whether two lists of commands say the same.
func sameCommands(a, b []AvailableCommand) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// ofSession reports whether an update describes the session rather than what was
// said in it.
func ofSession(u SessionUpdate) bool {
	switch u.(type) {
	case *SessionInfoUpdate, *ConfigOptionUpdate, *AvailableCommandsUpdate, *UsageUpdate:
		return true
	}
	return false
}

// await holds back what belongs to a turn until the client knows of the turn. u
// is nil for a question.
func (l *bridgeLink) await(ctx context.Context, p *bridgedTurn, u SessionUpdate) {
	if id, ok := takesUp(p.reply.s.conn.Version(), u); ok {
		p.once.Do(func() {
			p.id = id
			close(p.shown)
		})
	}
	select {
	case <-p.shown:
	case <-p.reply.takenUp():
	default:
		return // of something else
	}
	select {
	case <-p.begun:
	case <-p.t.settled:
	case <-ctx.Done():
	case <-l.up.Done():
	}
}

// takesUp reports whether an update, or a question if it is nil, shows that the
// agent has accepted the prompt it was sent, and under which id.
func takesUp(version int, u SessionUpdate) (id MessageID, ok bool) {
	if version == 1 { // its ids are of another kind
		switch u.(type) {
		case nil, *AgentMessageChunk, *AgentThoughtChunk, *UserMessageChunk, *ToolCallUpdate, *PlanUpdate:
			return "", true
		}
		return "", false
	}
	switch u := u.(type) {
	case *UserMessage:
		return u.MessageID, true
	case *UserMessageChunk:
		return u.MessageID, true
	case *RunningStateUpdate, *RequiresActionStateUpdate:
		return "", true
	}
	return "", false
}

// asked returns the client's session for a question of the agent's, once the
// client knows what the question is about.
func (l *bridgeLink) asked(ctx context.Context, ds *ClientSession) *AgentSession {
	b := l.session(ds.ID())
	if ds.Parent() != nil {
		if b = l.known(ctx, ds); b == nil {
			return nil
		}
	}
	l.mu.Lock()
	s, p := b.up, b.turn
	l.mu.Unlock()
	if p != nil {
		l.await(ctx, p, nil)
	}
	return s
}

// backgroundOf returns the background work that a state reports, if it does.
func backgroundOf(u StateUpdate) ([]BackgroundWork, bool) {
	var work []BackgroundWork
	switch u := u.(type) {
	case *IdleStateUpdate:
		work = u.Background
	case *RunningStateUpdate:
		work = u.Background
	case *RequiresActionStateUpdate:
		work = u.Background
	}
	return work, work != nil
}

func (l *bridgeLink) askClient(ctx context.Context, r *PermissionRequest) (PermissionDecision, error) {
	s := l.asked(ctx, r.Session)
	if s == nil {
		return CancelPermission(), nil
	}
	d, err := s.WithContext(ctx).Ask(Permission{
		Title: r.Title, Description: r.Description, Subject: r.asked, Options: r.Options, Meta: r.Meta,
	})
	if err != nil {
		return CancelPermission(), err
	}
	return PermissionDecision{OptionID: d.Option.OptionID, Cancelled: d.Cancelled, Meta: d.Meta}, nil
}

func (l *bridgeLink) elicit(ctx context.Context, r *ElicitationRequest) (*ElicitationResponse, error) {
	select {
	case <-l.answered: // the agent may be quicker
	case <-l.up.Done():
		return nil, jsonrpc.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	login := l.login
	l.mu.Unlock()
	var s *AgentSession
	var scope acpv2.ElicitationScope = &acpv2.ElicitationRequestScope{RequestID: login}
	if r.Session != nil {
		s = l.asked(ctx, r.Session)
		scope = &acpv2.ElicitationSessionScope{SessionID: r.Session.ID(), ToolCallID: r.ToolCallID}
	}
	req := &acpv2.CreateElicitationRequest{Message: r.Message, Meta: r.Meta}
	if r.Form != nil {
		req.Mode = &acpv2.ElicitationFormMode{RequestedSchema: *r.Form, Scope: scope}
	} else {
		req.Mode = &acpv2.ElicitationURLMode{ElicitationID: r.ElicitationID, URL: r.URL, Scope: scope}
	}
	if s != nil {
		done, err := s.WithContext(ctx).asking()
		if err != nil {
			return nil, err
		}
		defer done()
	}
	return l.up.peer.Load().proto.elicit(ctx, s, req)
}

func (l *bridgeLink) mcp(ctx context.Context, m *MCPCall) (json.RawMessage, error) {
	l.up.calls.add(m.RequestID, func(method string, params json.RawMessage) { _ = m.Notify(ctx, method, params) })
	defer l.up.calls.remove(m.RequestID)
	res, err := l.up.peer.Load().proto.callMCP(ctx, &acpv2.MessageMCPRequest{
		ServerID: m.Server, RequestID: m.RequestID, Method: m.Method, Params: m.Params,
	})
	if said, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, &mcpBindingError{said}
	}
	if err != nil {
		return nil, err
	}
	if e := res.Error; e != nil && res.Result == nil {
		return nil, &MCPFailure{Code: int(e.Code), Message: e.Message, Data: e.Data}
	}
	return res.Result, nil
}

// steer passes a message for the turn that runs on to the agent. Its client learns of it from an update, if its version has
// one for that, before it has the answer.
func (l *bridgeLink) steer(ctx context.Context, s *AgentSession, r *SteerMessage) (SteerOutcome, error) {
	b := l.session(s.ID())
	l.mu.Lock()
	d := b.down
	l.mu.Unlock()
	if d == nil {
		return "", SessionNotFound(s.ID()) // it has just been closed
	}
	outcome, err := d.SteerRequest(ctx, &acpv2.PromptRequest{Prompt: r.Prompt, Meta: r.Meta})
	switch {
	case outcome == SteerPromptRequired && r.Begin:
		return SteerFailed, nil // no turn begins without a prompt here
	case err != nil && outcome != "":
		return outcome, nil // which the client knows no better
	case err != nil:
		return "", err
	case outcome == SteerQueued:
		return "", notFound(ctx)
	case outcome != SteerPromptRequired && d.conn.Version() == 1 && s.c.Version() == 2:
		err = s.Send(&UserMessage{MessageID: s.nextMessage(), Content: Set(r.Prompt)})
	}
	return outcome, err
}

// clientExtensions passes the client's extension methods on to the agent.
func (l *bridgeLink) clientExtensions(mux *jsonrpc.Mux) {
	forward(mux, func(ctx context.Context) *jsonrpc.Conn {
		select {
		case <-l.reached: // notifications may come before that
		case <-ctx.Done():
			return nil
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.down.Conn()
	})
}

// agentExtensions passes the agent's extension methods on to the client.
func (l *bridgeLink) agentExtensions(mux *jsonrpc.Mux) {
	forward(mux, func(context.Context) *jsonrpc.Conn {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.down == nil {
			return nil // the agent is only being asked who it is
		}
		return l.up.Conn()
	})
}

// forward passes vendors' methods on unchanged. The bridge itself handles all
// others.
func forward(mux *jsonrpc.Mux, to func(ctx context.Context) *jsonrpc.Conn) {
	mine := func(req *jsonrpc.Request) bool { return len(req.Method) > 0 && req.Method[0] == '_' }
	mux.Fallback(func(ctx context.Context, req *jsonrpc.Request) (any, error) {
		if !mine(req) {
			return nil, jsonrpc.MethodNotFound(req.Method)
		}
		conn := to(ctx)
		if conn == nil {
			return nil, jsonrpc.MethodNotFound(req.Method)
		}
		var res json.RawMessage
		err := conn.Call(ctx, req.Method, req.Params, &res, jsonrpc.AwaitAnswer())
		return res, err
	})
	mux.FallbackNotification(func(ctx context.Context, req *jsonrpc.Request) (any, error) {
		if !mine(req) {
			return nil, nil
		}
		if conn := to(ctx); conn != nil {
			return nil, conn.Notify(ctx, req.Method, req.Params)
		}
		return nil, nil
	})
}

// bridgedFiles are the client's files for the agent.
type bridgedFiles struct{ up *AgentConn }

func (f bridgedFiles) ReadTextFile(ctx context.Context, r *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	return call(ctx, acpv1.MethodFSReadTextFile, f.up.conn, r)
}

func (f bridgedFiles) WriteTextFile(ctx context.Context, r *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	return call(ctx, acpv1.MethodFSWriteTextFile, f.up.conn, r)
}

// bridgedTerminals are the client's terminals for the agent.
type bridgedTerminals struct{ up *AgentConn }

func (t bridgedTerminals) CreateTerminal(ctx context.Context, r *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error) {
	res, err := call(ctx, acpv1.MethodTerminalCreate, t.up.conn, r)
	if err != nil {
		return nil, err
	}
	if s, ok := t.up.Session(SessionID(r.SessionID)); ok && s.acquire(ctx) == nil {
		s.toV1.ClientTerminal(TerminalID(res.TerminalID)) // it can be shown as it is
		s.releaseSending()
	}
	return res, nil
}

func (t bridgedTerminals) TerminalOutput(ctx context.Context, r *acpv1.TerminalOutputRequest) (*acpv1.TerminalOutputResponse, error) {
	return call(ctx, acpv1.MethodTerminalOutput, t.up.conn, r)
}

func (t bridgedTerminals) WaitForTerminalExit(ctx context.Context, r *acpv1.WaitForTerminalExitRequest) (*acpv1.WaitForTerminalExitResponse, error) {
	return call(ctx, acpv1.MethodTerminalWaitForExit, t.up.conn, r)
}

func (t bridgedTerminals) KillTerminal(ctx context.Context, r *acpv1.KillTerminalRequest) (*acpv1.KillTerminalResponse, error) {
	return call(ctx, acpv1.MethodTerminalKill, t.up.conn, r)
}

func (t bridgedTerminals) ReleaseTerminal(ctx context.Context, r *acpv1.ReleaseTerminalRequest) (*acpv1.ReleaseTerminalResponse, error) {
	return call(ctx, acpv1.MethodTerminalRelease, t.up.conn, r)
}

// ReleaseSession has nothing to do: the terminals are the client's.
func (t bridgedTerminals) ReleaseSession(acpv1.SessionID) {}

// Close likewise.
func (t bridgedTerminals) Close() error { return nil }
