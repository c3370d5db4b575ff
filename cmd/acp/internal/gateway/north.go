package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/jsonrpc"
)

// agent returns what clients see.
func (g *Gateway) agent() *acp.Agent {
	return &acp.Agent{
		Info:                  g.cfg.Info,
		Logger:                g.cfg.Logger,
		Accept:                g.accept,
		Prompt:                g.prompt,
		NewSession:            g.newSession,
		ResumeSession:         g.resumeSession,
		ListSessions:          g.listSessions,
		CloseSession:          func(context.Context, *acp.AgentSession) error { return nil }, // the others stay
		DeleteSession:         g.deleteSession,
		SetOption:             g.setOption,
		Content:               acp.PromptContent{Image: true, Audio: true, EmbeddedContext: true},
		MCP:                   acp.MCPTransports{Stdio: true, HTTP: true, SSE: true},
		AdditionalDirectories: true,
		MaxHeld:               maxTurns,
		Engine:                jsonrpc.Settings{Incoming: []jsonrpc.Middleware{g.watchCancels}},
	}
}

// metaKey is where _meta has what is said to the gateway.
const metaKey = "github.com/goacp/acp"

// meta is what clients say to the gateway in _meta.
type meta struct {
	Agent     string `json:"agent"`       // of session/new: the agent's name
	Operation string `json:"operationId"` // of session/prompt: the prompt runs once, however often it is sent
	Cursor    uint64 `json:"cursor"`      // of session/resume: the last record the client has
	hasCursor bool
}

func metaOf(raw json.RawMessage) (m meta, err error) {
	var all map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &all) != nil || len(all[metaKey]) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(all[metaKey], &m); err != nil {
		return m, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "_meta[%q]: %v", metaKey, err)
	}
	var has struct{ Cursor *uint64 }
	_ = json.Unmarshal(all[metaKey], &has)
	m.hasCursor = has.Cursor != nil
	return m, nil
}

// newSession begins a session: of the gateway, and in an agent.
func (g *Gateway) newSession(ctx context.Context, as *acp.AgentSession) error {
	m, err := metaOf(as.Meta())
	if err != nil {
		return err
	}
	who := g.who(ctx)
	if !who.Prompt || who.Session != nil {
		return errRole("begin sessions")
	}
	name := g.cfg.Agent
	if m.Agent != "" {
		if !slices.Contains(g.cfg.Agents, m.Agent) {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no agent %q", m.Agent)
		}
		name = m.Agent
	}
	if who.Agent != nil && !who.Agent(name) {
		return errRole("use the agent " + name)
	}
	if !filepath.IsAbs(as.Cwd()) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "cwd must be absolute")
	}
	known := attributes{Directories: as.AdditionalDirectories()}
	for _, server := range as.MCPServers() {
		if _, command := server.(*acpv2.MCPServerStdio); command && !who.Approve {
			return errRole("have the agent start MCP servers")
		}
		raw, err := json.Marshal(server)
		if err != nil {
			return err
		}
		known.MCP = append(known.MCP, raw)
	}
	id := newID("s_")
	_, err = g.cfg.Log.Create(ctx, engine.Session{
		ID: id, Agent: name, Cwd: as.Cwd(), Owner: who.User, State: stateIdle, Attributes: encode(known),
	})
	if err != nil {
		return fmt.Errorf("keep the session: %w", err)
	}
	s, err := g.open(ctx, id)
	if err == nil {
		_, err = s.backend(ctx)
	}
	if err != nil {
		return errors.Join(err, g.remove(context.WithoutCancel(ctx), id))
	}
	as.SetID(acp.SessionID(id))
	return g.join(ctx, s, as, 0)
}

// join makes a client a watcher of a session, which sees everything that follows a record.
func (g *Gateway) join(ctx context.Context, s *session, as *acp.AgentSession, after uint64) error {
	s.mu.Lock()
	options, commands, title := s.known.options, s.known.commands, s.info.Title
	s.mu.Unlock()
	w, start, err := s.attach(as, g.who(ctx), after)
	if err != nil {
		return err
	}
	as.Value = w
	if len(options) > 0 {
		err = as.SetOptions(options...)
	}
	if err == nil && len(commands) > 0 {
		err = as.SetCommands(commandsOf(commands)...)
	}
	if err == nil && title != "" {
		err = as.SetTitle(title)
	}
	if err != nil {
		w.cancel()
		return err
	}
	// What is sent before the answer would be history.
	if r := jsonrpc.RequestFrom(ctx); r != nil {
		r.AfterAnswer(start)
	} else {
		start()
	}
	return nil
}

// find returns a session that a client may use.
func (g *Gateway) find(ctx context.Context, id acp.SessionID) (*session, error) {
	who := g.who(ctx)
	info, err := g.cfg.Log.Session(ctx, string(id))
	if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrInvalid) || err == nil && !who.sees(&info) {
		return nil, acp.SessionNotFound(id)
	}
	if err != nil {
		return nil, err
	}
	return g.open(ctx, string(id))
}

// resumeSession lets a client join a session.
func (g *Gateway) resumeSession(ctx context.Context, as *acp.AgentSession, replay bool) error {
	m, err := metaOf(as.Meta())
	if err != nil {
		return err
	}
	s, err := g.find(ctx, as.ID())
	if damage := (*engine.DamageError)(nil); errors.As(err, &damage) {
		if replay { // it can be read, up to the damage
			_, err = g.replay(ctx, string(as.ID()), as, 0)
		} else {
			err = as.Notice(acp.NoticeSeverityError, "The rest of this session is damaged.", damage.Error())
		}
		return err
	}
	if err != nil {
		return err
	}
	after := s.log.last()
	switch {
	case replay:
		if after, err = g.replay(ctx, s.id, as, 0); err != nil {
			return err
		}
	case m.hasCursor:
		if m.Cursor > after {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the cursor %d is after the end, which is %d", m.Cursor, after)
		}
		after = m.Cursor
	}
	as.SetAnswerMeta(encode(map[string]any{metaKey: map[string]any{"cursor": after}}))
	return g.join(ctx, s, as, after)
}

// replay sends the history that follows a record, and returns the last record of it.
func (g *Gateway) replay(ctx context.Context, id string, as *acp.AgentSession, after uint64) (uint64, error) {
	last := after
	err := g.cfg.Log.Read(ctx, id, after, func(r engine.Record) error {
		last = r.Seq
		if r.Kind == kindUpdate {
			u, err := decodeUpdate(r.Data)
			if err != nil || acp.IsMomentary(u) {
				return err
			}
		}
		return sendRecord(as, r)
	})
	damage := (*engine.DamageError)(nil)
	if errors.As(err, &damage) {
		return last, as.Notice(acp.NoticeSeverityError, "The rest of this session is damaged.", damage.Error())
	}
	return last, err
}

func (g *Gateway) listSessions(ctx context.Context, _ *acp.AgentConn, q *acp.SessionQuery) (*acp.SessionPage, error) {
	page := new(acp.SessionPage)
	who := g.who(ctx)
	query := engine.Query{Owner: who.User, Limit: 100}
	if q.Cursor != nil {
		query.Cursor = string(*q.Cursor)
	}
	found, err := g.cfg.Log.List(ctx, query)
	if errors.Is(err, engine.ErrInvalid) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown cursor")
	}
	if err != nil {
		return nil, err
	}
	for _, info := range found.Sessions {
		if q.Cwd != "" && q.Cwd != info.Cwd || !who.sees(&info) {
			continue
		}
		page.Sessions = append(page.Sessions, acp.SessionInfo{
			SessionID: acp.SessionID(info.ID), Cwd: info.Cwd, Title: info.Title, UpdatedAt: info.Updated.UTC().Format(time.RFC3339),
			Meta: encode(map[string]any{metaKey: map[string]any{"agent": info.Agent, "state": info.State, "damaged": info.Damaged != ""}}),
		})
	}
	if found.Next != "" {
		page.NextCursor = (*acpv2.SessionListCursor)(&found.Next)
	}
	return page, nil
}

func (g *Gateway) deleteSession(ctx context.Context, _ *acp.AgentConn, id acp.SessionID) error {
	who := g.who(ctx)
	info, err := g.cfg.Log.Session(ctx, string(id))
	if errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrInvalid) || err == nil && !who.sees(&info) {
		return acp.SessionNotFound(id)
	}
	if err != nil {
		return err
	}
	if !who.Prompt {
		return errRole("delete sessions")
	}
	return g.remove(ctx, string(id))
}

// remove ends a session and deletes everything of it.
func (g *Gateway) remove(ctx context.Context, id string) error {
	if s := g.session(id); s != nil {
		if err := s.close(); err != nil {
			return err
		}
	}
	return g.cfg.Log.Delete(ctx, id)
}

// setOption changes an option of the agent's session.
func (g *Gateway) setOption(ctx context.Context, as *acp.AgentSession, id acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
	w, ok := as.Value.(*watcher)
	if !ok {
		return acp.SessionNotFound(as.ID())
	}
	if !w.who.Approve {
		return errRole("change options")
	}
	b, err := w.s.backend(ctx)
	if err != nil {
		return err
	}
	if err := b.session.SetOption(ctx, id, v); err != nil {
		return err
	}
	u := &acp.ConfigOptionUpdate{ConfigOptions: b.session.Options()}
	raw, err := json.Marshal(u)
	if err != nil {
		return err
	}
	if err := w.s.keep(ctx, func(a *attributes) { a.note(u, raw) }); err != nil {
		return err
	}
	return w.s.log.put(ctx, kindUpdate, encode(updateRecord{Update: raw}), nil)
}

// accept queues a prompt, and waits until its turn has come and the client was sent everything before it.
// The turn continues if the client leaves.
func (g *Gateway) accept(ctx context.Context, t *acp.Turn) error {
	w, ok := t.Session().Value.(*watcher)
	if !ok {
		return &jsonrpc.Failure{Message: "the session is damaged, and can only be read", Reason: "damaged"}
	}
	if !w.who.Prompt {
		return errRole("send prompts")
	}
	m, err := metaOf(t.Meta())
	if err != nil {
		return err
	}
	o := &ownTurn{arrived: make(chan struct{}), started: make(chan struct{})}
	if m.Operation != "" {
		if err := w.s.room(); err != nil { // before it counts as begun
			return err
		}
		if o.turn, err = g.begun(ctx, w, t, m.Operation); err != nil {
			return err
		}
	}
	queued := o.turn == nil
	if queued {
		o.turn = &turn{id: t.PromptID(), by: w.who.User, content: t.Blocks(), operation: m.Operation}
		o.turn.done = make(chan struct{})
	}
	w.mu.Lock()
	w.own[t.PromptID()], w.cancelled, w.noticed = o, false, false
	w.mu.Unlock()
	if !queued {
		return nil // it runs, or has ended
	}
	if err := w.s.enqueue(o.turn); err != nil {
		w.answered(t.PromptID())
		return err
	}
	select {
	case <-o.arrived:
		return nil
	case <-o.turn.done:
		return nil // without having begun
	case <-ctx.Done():
	}
	if errors.Is(context.Cause(ctx), acp.ErrCancelled) { // otherwise it has left
		w.cancels(o)
	}
	w.answered(t.PromptID())
	return context.Cause(ctx)
}

// cancels cancels a prompt of the client.
func (w *watcher) cancels(o *ownTurn) {
	w.mu.Lock()
	w.cancelled, w.noticed = !w.noticed, false
	w.mu.Unlock()
	o.turn.cancel(errCancelled)
}

// answered is called when a prompt of the client has an answer.
func (w *watcher) answered(id acp.MessageID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.own, id)
}

// prompt waits until the agent has handled a prompt that was accepted.
func (g *Gateway) prompt(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
	w, ok := t.Session().Value.(*watcher)
	if !ok {
		return "", acp.SessionNotFound(t.Session().ID())
	}
	o := w.owns(t.PromptID())
	if o == nil {
		return "", fmt.Errorf("the prompt %s was not accepted", t.PromptID())
	}
	defer w.answered(t.PromptID())
	close(o.started)
	select {
	case <-o.turn.done:
	case <-ctx.Done():
		if !errors.Is(context.Cause(ctx), acp.ErrCancelled) {
			return "", context.Cause(ctx) // the client has left
		}
		w.cancels(o)
		<-o.turn.done
	}
	w.reached(w.ctx, o.turn.seq)
	return o.turn.stop, o.turn.err
}

// A receipt is what is kept of a prompt that was handled.
type receipt struct {
	Stop  acp.StopReason `json:"stop,omitempty"`
	Error string         `json:"error,omitempty"`
}

// begun returns the turn of a prompt that was sent before, under the name of an operation; nil if it was
// not.
func (g *Gateway) begun(ctx context.Context, w *watcher, t *acp.Turn, operation string) (*turn, error) {
	content, err := json.Marshal(acpv2.PromptRequest{SessionID: acp.SessionID(w.s.id), Prompt: t.Blocks()})
	if err != nil {
		return nil, err
	}
	fingerprint := sha256.Sum256(content)
	op, err := g.cfg.Log.Begin(ctx, w.who.User, operation, fingerprint[:])
	switch {
	case errors.Is(err, engine.ErrConflict):
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the operation %q was another prompt", operation)
	case err != nil || op.State == engine.OperationNew:
		return nil, err
	case op.State == engine.OperationRunning:
		if running := w.s.turnOf(w.who.User, operation); running != nil {
			return running, nil
		}
		return nil, &jsonrpc.Failure{Message: "the prompt was sent before, and " + jsonrpc.ErrOutcomeUnknown.Error(), Reason: "outcome_unknown"}
	}
	var r receipt
	if err := json.Unmarshal(op.Receipt, &r); err != nil {
		return nil, err
	}
	ended := &turn{stop: r.Stop, done: make(chan struct{}), cancel: func(error) {}}
	if r.Error != "" {
		ended.err = &jsonrpc.Failure{Message: r.Error, Reason: "agent"}
	}
	close(ended.done)
	return ended, nil
}

// turnOf returns the turn of an operation that has not ended.
func (s *session) turnOf(by, operation string) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.queue {
		if t.by == by && t.operation == operation {
			return t
		}
	}
	return nil
}

// finish keeps what became of an operation.
func (s *session) finish(t *turn) {
	if t.operation == "" || s.gone() {
		return
	}
	r := receipt{Stop: t.stop}
	if t.err != nil {
		r.Error = t.err.Error()
	}
	if err := s.g.cfg.Log.Finish(s.ctx, t.by, t.operation, encode(r)); err != nil {
		s.logger().Warn("gateway: a receipt cannot be kept", "error", err)
	}
}

// watchCancels notices that a client wants the running turn of another one to be cancelled. Its own are
// cancelled by the library.
func (g *Gateway) watchCancels(next jsonrpc.Handler) jsonrpc.Handler {
	return func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		var id acp.SessionID
		switch p := r.Params.(type) {
		case *acpv1.CancelNotification:
			id = acp.SessionID(p.SessionID)
		case *acpv2.CancelSessionNotification:
			id = p.SessionID
		}
		if c := acp.AgentConnFrom(ctx); id != "" && c != nil {
			if as, ok := c.Session(id); ok {
				if w, ok := as.Value.(*watcher); ok && w.who.Prompt && !w.cancelsOwn() {
					w.s.cancelRunning(w.who.User)
				}
			}
		}
		return next(ctx, r)
	}
}
