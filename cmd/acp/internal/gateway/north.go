package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// agent returns what clients see.
func (g *Gateway) agent() *acp.Agent {
	return &acp.Agent{
		Info:                  g.cfg.Info,
		Logger:                g.cfg.Logger,
		Initialize:            g.introduce,
		Queue:                 g.receive,
		Cancel:                g.cancel,
		Steer:                 g.steer,
		NewSession:            g.newSession,
		ResumeSession:         g.resumeSession,
		ForkSession:           g.forkSession,
		ForkSessionAt:         g.forkSessionAt,
		ListSessions:          g.listSessions,
		CloseSession:          func(context.Context, *acp.AgentSession) error { return nil }, // the others stay
		DeleteSession:         g.deleteSession,
		SetOption:             g.setOption,
		SessionOptions:        g.sessionOptions,
		SetTitle:              g.setTitle,
		ArchiveSession:        g.archiveSession,
		SessionStatus:         g.sessionStatus,
		Content:               acp.PromptContent{Image: true, Audio: true, EmbeddedContext: true, Skill: true},
		MCP:                   acp.MCPTransports{Stdio: true, HTTP: true, SSE: true},
		AdditionalDirectories: true,
		MaxHeld:               maxOwnTurns,
		Extensions:            g.extensions,
		Middleware:            []acp.Middleware{g.watchCalls},
		Engine:                jsonrpc.Settings{Incoming: []jsonrpc.Middleware{g.noteRefusals}, Outgoing: []jsonrpc.Middleware{g.tellPositions}},
	}
}

// metaKey is where _meta has what is said to the gateway.
const metaKey = ownmeta.Key

// introduce returns _meta of the answer to initialize, by which clients recognize a gateway.
func (g *Gateway) introduce(ctx context.Context, c *acp.AgentConn) (json.RawMessage, error) {
	g.read(ctx, c)
	return json.RawMessage(`{"` + metaKey + `":{"gateway":true,"begun":true}}`), nil
}

// meta is what clients say to the gateway in _meta.
type meta struct {
	Agent     string  `json:"agent"`       // of session/new: the agent's name
	Operation string  `json:"operationId"` // of session/prompt: the prompt runs once, however often it is sent
	Cursor    uint64  `json:"cursor"`      // of session/resume: the last record the client has
	Mark      string  `json:"mark"`        // what came with the cursor, if anything
	Part      int     `json:"part"`        // and how much of the next one
	Lend      bool    `json:"lend"`        // of requests that open a session: the agent may use the client's files and terminals
	At        *uint64 `json:"at"`          // of session/fork: the last record of the history
	Tail      *int    `json:"tail"`        // of requests that open a session: how many records of the history are sent
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
	if !who.may(MayPrompt) || who.Session != nil {
		return who.errRole("begin sessions")
	}
	name, err := g.agentOf(&who, m.Agent)
	if err != nil {
		return err
	}
	known, err := g.asked(ctx, as, &who, name)
	if err != nil {
		return err
	}
	if m.Lend && g.suits(as.Cwd()) {
		known.Lent = lentBy(as.Conn())
	}
	id := newID(records.GatewayID)
	_, err = g.cfg.Log.Create(ctx, engine.Session{
		ID: id, Agent: name, Cwd: as.Cwd(), Owner: who.User, State: records.StateIdle, Attributes: encode(known),
	})
	if err != nil {
		return unkeptSession(err)
	}
	p, err := g.begin(ctx, id, as.Cwd())
	if err != nil {
		if errors.Is(err, errors.ErrUnsupported) && len(known.Directories) > 0 { // which is not known before the agent runs
			err = oneDirectory(name)
		}
		return errors.Join(err, g.remove(context.WithoutCancel(ctx), id))
	}
	as.SetID(acp.SessionID(id))
	as.SetAnswerMeta(g.answerMeta(ctx, id, 0, nil)) // a client that returns before it was sent anything begins there
	pos, forget := g.position(as)
	return g.lendOn(as, m.Lend, g.join(ctx, p, id, as, 0, pos, forget))
}

// oneDirectory is why an agent cannot have a session with further directories.
func oneDirectory(agent string) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "additionalDirectories: the agent %s works in one directory only", agent)
}

// agentOf returns the name of the agent that a client means, which it may leave out.
func (g *Gateway) agentOf(who *Who, named string) (name string, err error) {
	name = cmp.Or(named, g.cfg.Agent)
	switch {
	case named == "" || slices.Contains(g.cfg.Agents, named):
	case g.cfg.Knows == nil || !g.cfg.Knows(named):
		return "", jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no agent %q", named)
	case !who.may(MayCommand):
		return "", who.errRole("begin sessions of agents that are not in the settings of the server")
	}
	if who.Agent != nil && !who.Agent(name) {
		return "", &jsonrpc.Failure{Message: "you cannot use the agent " + name, Reason: reasonRole}
	}
	return name, nil
}

// join makes a client a watcher of a session, which sees everything that follows a record. forget is called when it is
// one no more.
func (g *Gateway) join(ctx context.Context, p place, id string, as *acp.AgentSession, after uint64, pos *position, forget func()) error {
	who, _, err := g.lookUp(ctx, acp.SessionID(id))
	if err != nil {
		forget()
		return err
	}
	hello, err := p.greeting(ctx)
	if err != nil {
		forget()
		return err
	}
	w, start, err := g.watch(p, id, as, who, after, pos, forget)
	for errors.Is(err, errGone) { // meanwhile
		if p, err = g.come(ctx, id); err == nil {
			w, start, err = g.watch(p, id, as, who, after, pos, forget)
		}
	}
	if err != nil {
		forget()
		return err
	}
	as.Value = w
	w.appear()
	if len(hello.Options) > 0 {
		err = as.SetOptions(passable(hello.Options)...)
	}
	if err == nil && len(hello.Commands) > 0 {
		err = w.sendCommands(hello.Commands)
	}
	if len(hello.Suggested) > 0 || after > 0 { // it may have some that do not count any more
		w.suggested = &acpv2.PromptSuggestionsUpdate{Suggestions: hello.Suggested}
	}
	if err == nil && hello.Title != "" {
		err = as.SetTitle(hello.Title)
	}
	if err == nil && hello.Running { // sent by the watcher: the library says idle before the answer
		w.turn, err = g.turnAt(ctx, id, after)
		w.returns = true
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
func (g *Gateway) find(ctx context.Context, id acp.SessionID) (place, error) {
	if _, _, err := g.lookUp(ctx, id); err != nil {
		return nil, err
	}
	return g.come(ctx, string(id))
}

// resumeSession lets a client join a session.
func (g *Gateway) resumeSession(ctx context.Context, as *acp.AgentSession, replay bool) error {
	m, err := metaOf(as.Meta())
	if err != nil {
		return err
	}
	p, err := g.find(ctx, as.ID())
	pos, forget := g.position(as)
	joins := false
	defer func() {
		if !joins {
			forget()
		}
	}()
	if err != nil {
		return err
	}
	after, err := p.last(ctx)
	if err != nil {
		return err
	}
	var from *uint64
	switch {
	case m.Tail != nil:
		from, after, err = g.resumeTail(ctx, as, &m, after, pos)
	case replay:
		after, err = g.replay(ctx, string(as.ID()), 0, as, pos)
	case m.hasCursor:
		var skip int
		after, skip, err = g.from(ctx, string(as.ID()), &m, after)
		if errors.Is(err, engine.ErrCompacted) {
			after, err = g.reload(ctx, string(as.ID()), as, pos)
		} else if err == nil {
			pos.resume(after, skip, m.Mark)
			err = g.recall(ctx, as, after, pos)
		}
	}
	if err != nil {
		return err
	}
	if err := g.staysIn(ctx, as); err != nil {
		return err
	}
	as.SetAnswerMeta(g.answerMeta(ctx, string(as.ID()), after, from))
	joins = true
	return g.lendOn(as, m.Lend, g.join(ctx, p, string(as.ID()), as, after, pos, forget))
}

// staysIn tells a client that names another directory than that of the session that the session stays where it is. The root
// names no project: clients send it that do not know.
func (g *Gateway) staysIn(ctx context.Context, as *acp.AgentSession) error {
	info, err := g.cfg.Log.Session(ctx, string(as.ID()))
	if err != nil {
		return err
	}
	cwd := filepath.Clean(as.Cwd())
	if as.Cwd() == "" || cwd == filepath.Clean(info.Cwd) || filepath.Dir(cwd) == cwd {
		return nil
	}
	return as.Notice(acp.NoticeSeverityInfo, "The session stays in its directory.", "The agent works in "+info.Cwd+", not in "+as.Cwd()+".")
}

// replay sends the history after a record, and returns the last record of it.
func (g *Gateway) replay(ctx context.Context, id string, after uint64, as *acp.AgentSession, pos *position) (last uint64, err error) {
	ctx, end := g.cfg.Observer.Begin(ctx, Span{Kind: SpanReplay, Session: id})
	defer func() { end(outcomeOf(err)) }()
	last = after
	principal := g.who(ctx).User
	var usage *acp.UsageUpdate
	err = g.cfg.Log.Read(ctx, id, after, func(r engine.Record) error {
		last = r.Seq
		pos.at(&r)
		defer pos.past(&r)
		if r.Kind == kindUpdate {
			u, err := records.DecodeUpdate(r.Data)
			if now, ok := u.(*acp.UsageUpdate); ok {
				usage = usageAfter(usage, now)
			}
			if err != nil || isMomentary(u) {
				return err
			}
			return as.Send(u)
		}
		if r.Kind == kindChild {
			if _, u, err := records.DecodeChild(r.Data); err != nil || isMomentary(u) {
				return err
			}
		}
		return sendRecord(as, principal, &pos.children, r)
	})
	if damage := (*engine.DamageError)(nil); errors.As(err, &damage) {
		err = as.Notice(acp.NoticeSeverityError, damagedTitle, damage.Summary())
	}
	if err == nil && usage != nil { // of which the last one alone counts, and is so still
		pos.hide(1)
		defer pos.hide(-1)
		err = as.Send(usage)
	}
	return last, err
}

func (g *Gateway) deleteSession(ctx context.Context, _ *acp.AgentConn, id acp.SessionID) error {
	who, _, err := g.lookUp(ctx, id)
	if err != nil {
		return err
	}
	if !who.owns() {
		return who.errRole("delete sessions")
	}
	return g.remove(ctx, string(id))
}

// setOption changes an option of the agent's session.
func (g *Gateway) setOption(ctx context.Context, as *acp.AgentSession, id acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
	w, ok := as.Value.(*watcher)
	if !ok {
		return acp.SessionNotFound(as.ID())
	}
	who, err := w.entitled(ctx)
	if err != nil {
		return err
	}
	if !who.may(MayApprove) {
		return who.errRole("change options")
	}
	defer w.optionsAgain(ctx)()
	return w.setOption(ctx, id, v)
}
