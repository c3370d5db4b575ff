package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/translate"
	"github.com/goacp/acp/jsonrpc"
)

// A Bridge serves clients of either protocol version with an agent of either
// version. Every client gets an agent of its own.
//
// A bridge is a client to the agent and an agent to the client. It passes on
// verbs, not messages: what one side advertises is advertised to the other as far
// as both versions have it, and every update, question and answer is put into the
// other version's words. An agent that speaks both versions is spoken to in its
// client's, so that the client's files and terminals remain available to it.
// Methods that are not part of the protocol are passed on unchanged, in both
// directions. docs/guide.md lists what cannot be expressed.
type Bridge struct {
	// Agent is the way to the agent. It is opened once for each client, and again
	// if the agent has to be asked for another version.
	Agent Transport
	// Info names the bridge to clients; by default it is the agent's.
	Info Implementation
	// ClientVersions and AgentVersions bound the versions spoken with either
	// side, lowest and highest; 0 means 1 and 2.
	ClientVersions, AgentVersions [2]int
	// Reach, if set, connects client to the agent; by default the bridge calls
	// client.Connect(ctx, b.Agent). It may change the parts of client that the
	// bridge does not set, such as Engine. ctx is done when the client leaves. A
	// [*jsonrpc.Error] from Reach is returned to the client as the answer to
	// initialize; the text of any other error is withheld. Reach is called again
	// when the client asks again.
	Reach func(ctx context.Context, client *Client) (*ClientConn, error)
	// Hooks change what passes.
	Hooks BridgeHooks
	// Logger gets diagnostics of the wire and failures of the bridge, never
	// payload. If it is nil, the failures go to [slog.Default].
	Logger *slog.Logger
}

// bridgeLinger is how long the agent may take to start for a client that sends
// nothing more. The client's requests then get the usual grace.
const bridgeLinger = 5 * time.Second

// Serve serves one client until it or the agent leaves, or ctx is done. It is not
// an error if the client leaves, unless the agent could not be reached before.
func (b *Bridge) Serve(ctx context.Context, client Transport) error {
	l := &bridgeLink{
		b: b, ctx: ctx, sessions: map[SessionID]*bridgedSession{}, reached: make(chan struct{}), answered: make(chan struct{}),
	}
	agent := &Agent{
		Info:       b.Info,
		MinVersion: b.ClientVersions[0], MaxVersion: b.ClientVersions[1],
		Logger:     b.Logger,
		Extensions: l.clientExtensions,
		prepare:    l.connect,
		linger:     l.linger,
	}
	c, err := agent.Connect(ctx, client)
	if err != nil {
		return err
	}
	defer l.close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	err = c.Wait()
	if failed := l.close(); failed != nil {
		return fmt.Errorf("acp: bridge: the agent has ended: %w", failed)
	}
	if unreached := l.whyUnreached(); unreached != nil && ctx.Err() == nil {
		return fmt.Errorf("acp: bridge: the agent cannot be reached: %w", unreached)
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// bridgeLink joins one client with its agent.
type bridgeLink struct {
	b   *Bridge
	ctx context.Context

	up *AgentConn // towards the client; set before the agent is reached

	mu       sync.Mutex
	down     *ClientConn // towards the agent; nil before it has been reached
	failed   error       // the agent ended first
	closed   bool
	login    jsonrpc.ID // of the client's latest request that is about no session
	sessions map[SessionID]*bridgedSession
	reached  chan struct{} // closed when there is an agent
	answered chan struct{} // closed when the client knows of it, by once
	once     sync.Once

	unreached error // why there is none, after the last attempt
}

// bridgedSession is a session of both sides, under one id.
type bridgedSession struct {
	known chan struct{} // closed when up and down are set, or will not be
	up    *AgentSession
	down  *ClientSession
	turn  *bridgedTurn // the prompt that is held or runs, nil when there is none
	quiet bool         // the client does not want the history that is being sent
}

// know wakes the goroutines that wait for the two ends. It is called with the
// link's mu held, and again when a session is opened again.
func (b *bridgedSession) know() {
	select {
	case <-b.known:
	default:
		close(b.known)
	}
}

// connect reaches the agent once the client has identified itself, and advertises
// what the agent can do.
func (l *bridgeLink) connect(ctx context.Context, up *AgentConn) error {
	if l.up == nil {
		l.up = up // before there is an agent that may ask for it
	}
	l.mu.Lock()
	l.login = jsonrpc.RequestFrom(ctx).ID
	l.mu.Unlock()
	client := &Client{
		Info: up.Client(), Meta: up.Meta(), Logger: l.b.Logger,
		MinVersion: l.b.AgentVersions[0], MaxVersion: l.b.AgentVersions[1],
		FirstVersion:      up.Version(), // nothing gets lost between equal versions
		Update:            l.update,
		RequestPermission: l.permission,
		MCP:               l.mcp,
		AuthStatus:        func(ctx context.Context, s *AuthStatus) { _ = up.AuthStatusChanged(ctx, s) },
		Extensions:        l.agentExtensions,
	}
	caps := up.Capabilities()
	if e := caps.Elicitation; e != nil && (e.Form != nil || e.URL != nil) {
		client.Elicit = l.elicit
		client.Elicits = ElicitationKinds{Form: e.Form != nil, URL: e.URL != nil}
		client.ElicitationComplete = func(ctx context.Context, id ElicitationID) {
			_ = up.peer.Load().proto.elicited(ctx, id)
		}
	}
	client.TerminalAuth = caps.Auth != nil && caps.Auth.Terminal != nil
	client.ShowsTerminals = true
	understands(client, up)
	if v1 := up.CapabilitiesV1(); v1 != nil {
		client.ShowsTerminals, _ = translate.TerminalReports(v1.Meta)
		if v1.FS.ReadTextFile {
			client.Files = bridgedFiles{up}
			if !v1.FS.WriteTextFile {
				client.Files = ReadOnly(client.Files)
			}
		}
		if v1.Terminal {
			client.Terminals = func(*ClientConn) TerminalHost { return bridgedTerminals{up} }
		}
	}
	reach := l.b.Reach
	if reach == nil {
		reach = func(ctx context.Context, client *Client) (*ClientConn, error) { return client.Connect(ctx, l.b.Agent) }
	}
	down, err := reach(ctx, client)
	if ctx.Err() == nil {
		l.mu.Lock()
		l.unreached = err
		l.mu.Unlock()
	}
	if err != nil {
		if we, ok := errors.AsType[*jsonrpc.Error](err); ok {
			return we
		}
		return fmt.Errorf("acp: bridge: %w", err)
	}
	l.mu.Lock()
	again := l.down
	l.down = down
	closed := l.closed
	l.mu.Unlock()
	if again != nil {
		_ = again.Close() // the client initialized again
	} else {
		close(l.reached)
	}
	if closed {
		_ = down.Close()
		return jsonrpc.ErrClosed
	}
	up.background(func() { l.watch(up, down) })
	up.agent.Store(l.agent(up, down))
	jsonrpc.RequestFrom(ctx).AfterAnswer(func() { l.once.Do(func() { close(l.answered) }) })
	return nil
}

// watch ends the client's connection when the agent has ended.
func (l *bridgeLink) watch(up *AgentConn, down *ClientConn) {
	select {
	case <-down.Done():
	case <-up.Done():
		return
	}
	l.mu.Lock()
	current := l.down == down && !l.closed
	if current && l.failed == nil {
		l.failed = jsonrpc.ErrClosed
	}
	l.mu.Unlock()
	if !current {
		return
	}
	// Waiting for the agent's end includes waiting for its last updates, which may
	// need the client to read, or to have left.
	go func() { _ = up.conn.Close() }()
	if err := down.Wait(); err != nil {
		l.mu.Lock()
		l.failed = err
		l.mu.Unlock()
	}
}

// linger gives the agent time to start.
func (l *bridgeLink) linger(ctx context.Context) {
	timer := time.NewTimer(bridgeLinger)
	defer timer.Stop()
	select {
	case <-l.reached:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (l *bridgeLink) whyUnreached() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unreached
}

// close ends the agent's connection and returns why it had ended before.
func (l *bridgeLink) close() error {
	l.mu.Lock()
	l.closed = true
	down, failed := l.down, l.failed
	l.mu.Unlock()
	if down != nil {
		_ = down.Close()
	}
	return failed
}

// agent is the configuration that advertises what the agent can do.
func (l *bridgeLink) agent(up *AgentConn, down *ClientConn) *Agent {
	a := *up.agent.Load()
	caps := down.Capabilities()
	if l.b.Info.Name == "" {
		a.Info = down.Agent()
	}
	a.Initialize = func(context.Context, *AgentConn) (json.RawMessage, error) { return down.Meta(), nil }
	a.NewSession = func(ctx context.Context, s *AgentSession) error {
		config, err := l.config(ctx, s, "")
		if err != nil {
			return err
		}
		d, err := down.NewSession(ctx, config)
		if err == nil && l.has(d.ID()) {
			return jsonrpc.Errorf(jsonrpc.CodeInternalError, "The agent gave a new session the id of an open one").
				WithData(map[string]SessionID{"sessionId": d.ID()})
		}
		return l.opened(s, d, err)
	}
	a.Accept = l.accept
	a.Prompt = l.prompt
	a.SetOption = l.setOption
	if supportsSteering(down.Meta()) {
		a.Steer = l.steer
	}
	a.CloseSession = func(ctx context.Context, s *AgentSession) error {
		defer l.forget(s.ID())
		return down.CloseSession(ctx, s.ID())
	}
	l.agentSessions(&a, down)
	if len(down.AuthMethods()) > 0 {
		a.AuthMethods = down.AuthMethods()
		a.Login = func(ctx context.Context, _ *AgentConn, id AuthMethodID) error {
			l.mu.Lock()
			l.login = jsonrpc.RequestFrom(ctx).ID
			l.mu.Unlock()
			return down.Login(ctx, id)
		}
	}
	if v1 := down.CapabilitiesV1(); len(a.AuthMethods) > 0 && (v1 == nil || v1.Auth.Logout != nil) {
		a.Logout = func(ctx context.Context, _ *AgentConn) error { return down.Logout(ctx) }
	}
	if caps.Auth != nil && caps.Auth.Status != nil {
		a.AuthStatus = func(ctx context.Context, _ *AgentConn) (*AuthStatus, error) { return down.AuthStatus(ctx) }
	}
	if caps.Providers != nil {
		a.ListProviders = func(ctx context.Context, _ *AgentConn) ([]ProviderInfo, error) { return down.Providers(ctx) }
		a.SetProvider = func(ctx context.Context, _ *AgentConn, p *ProviderSetting) error { return down.SetProvider(ctx, p) }
		a.DisableProvider = func(ctx context.Context, _ *AgentConn, id ProviderID) error { return down.DisableProvider(ctx, id) }
	}
	return &a
}

// agentSessions sets the hooks for what the agent can do with sessions.
func (l *bridgeLink) agentSessions(a *Agent, down *ClientConn) {
	session := down.Capabilities().Session
	if session == nil {
		session = new(acpv2.SessionCapabilities)
	}
	v1 := down.CapabilitiesV1()
	if v1 == nil || v1.LoadSession || v1.SessionCapabilities.Resume != nil {
		a.resumesOpen = true
		a.ResumeSession = func(ctx context.Context, s *AgentSession, replay bool) error {
			return l.resume(ctx, down, s, replay)
		}
	}
	if v1 == nil || v1.SessionCapabilities.List != nil {
		a.ListSessions = func(ctx context.Context, _ *AgentConn, q *SessionQuery) (*SessionPage, error) {
			return l.list(ctx, down, q)
		}
	}
	if session.Delete != nil {
		a.DeleteSession = func(ctx context.Context, _ *AgentConn, id SessionID) error { return down.Delete(ctx, id) }
	}
	if session.Fork != nil {
		a.ForkSessionAt = func(ctx context.Context, s *AgentSession, from SessionID, at acpv2.CursorID) error {
			config, err := l.config(ctx, s, "")
			if err != nil {
				return err
			}
			d, err := down.ForkAt(ctx, from, at, config)
			return l.opened(s, d, err)
		}
		a.ForkSession = func(ctx context.Context, s *AgentSession, from SessionID) error {
			return a.ForkSessionAt(ctx, s, from, "")
		}
	}
	if session.Archive != nil {
		a.ArchiveSession = func(ctx context.Context, _ *AgentConn, id SessionID, archived bool) error {
			if archived {
				return down.Archive(ctx, id)
			}
			return down.Unarchive(ctx, id)
		}
	}
	if session.Status != nil {
		a.SessionStatus = func(ctx context.Context, _ *AgentConn, id SessionID) (SessionStatus, error) {
			res, err := down.Status(ctx, id)
			if err != nil {
				return "", err
			}
			return res.Status, nil
		}
	}
	if session.Options != nil {
		a.SessionOptions = func(ctx context.Context, _ *AgentConn, q *OptionsQuery) (*OptionsPreview, error) {
			return down.SessionOptions(ctx, *q)
		}
	}
	if session.Title != nil {
		a.SetTitle = func(ctx context.Context, _ *AgentConn, id SessionID, title string) (string, error) {
			return down.SetTitle(ctx, id, title)
		}
	}
	if p := session.Prompt; p != nil {
		a.Content = PromptContent{Image: p.Image != nil, Audio: p.Audio != nil, EmbeddedContext: p.EmbeddedContext != nil,
			Skill: p.Skill != nil, SkillInline: p.Skill != nil && p.Skill.Inline != nil}
	}
	if m := session.MCP; m != nil {
		a.MCP = MCPTransports{Stdio: m.Stdio != nil, HTTP: m.HTTP != nil, ACP: m.ACP != nil}
	}
	if v1 != nil {
		a.MCP.Stdio, a.MCP.SSE = true, v1.MCPCapabilities.SSE
	}
	a.AdditionalDirectories = session.AdditionalDirectories != nil
	if p := session.SystemPrompt; p != nil {
		a.SystemPrompt = SystemPromptAppend
		if p.Mode != nil && p.Mode.Override != nil {
			a.SystemPrompt = SystemPromptOverride
		}
	}
}

// opened joins the two ends of a session that was opened.
func (l *bridgeLink) opened(s *AgentSession, d *ClientSession, err error) error {
	if err != nil {
		return err
	}
	if s.ID() != d.ID() { // one that is opened again may be in use
		s.SetID(d.ID())
	}
	s.SetAnswerMeta(d.Meta())
	s.mu.Lock()
	s.options.of = d.Options
	s.replaceOptions(d.Options())
	s.commands = d.Commands()
	s.mu.Unlock()
	s.keepApart() // our ids stand beside the agent's, which may be of the same make
	b := l.session(d.ID())
	l.mu.Lock()
	defer l.mu.Unlock()
	b.up, b.down = s, d
	b.know()
	return nil
}

// has reports whether a session is open.
func (l *bridgeLink) has(id SessionID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.sessions[id]
	return b != nil && b.up != nil
}

// session returns the entry of a session, which may not be known yet.
func (l *bridgeLink) session(id SessionID) *bridgedSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.sessions[id]
	if b == nil {
		b = &bridgedSession{known: make(chan struct{})}
		l.sessions[id] = b
	}
	return b
}

func (l *bridgeLink) forget(id SessionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sessions, id)
	for child, b := range l.sessions {
		for p := b.down; p != nil; p = p.Parent() {
			if p.ID() == id {
				delete(l.sessions, child)
				b.know() // nobody will
			}
		}
	}
}

// resume opens an earlier session. If the agent can only load sessions, the
// history it sends is not passed on, because the client has not asked for it.
func (l *bridgeLink) resume(ctx context.Context, down *ClientConn, s *AgentSession, replay bool) error {
	config, err := l.config(ctx, s, s.ID())
	if err != nil {
		return err
	}
	// What is replayed arrives before the answer does.
	b := l.session(s.ID())
	open := down.Resume
	quiet := !replay && down.proto().canOpen(clientOpenResume) != nil
	if replay || quiet && down.proto().canOpen(clientOpenLoad) == nil {
		open = down.Load
	}
	l.mu.Lock()
	known := b.up != nil && b.down != nil
	if quiet && known {
		l.mu.Unlock()
		return nil // it is open, and some agents refuse to load it again
	}
	b.up, b.quiet = s, quiet
	b.know()
	l.mu.Unlock()
	d, err := open(ctx, s.ID(), config)
	l.mu.Lock()
	b.quiet = false
	l.mu.Unlock()
	if err != nil && !known {
		l.forget(s.ID())
	}
	return l.opened(s, d, err)
}

func (l *bridgeLink) list(ctx context.Context, down *ClientConn, q *SessionQuery) (*SessionPage, error) {
	if q.Cursor != nil {
		return nil, invalidParams("cursor", "unknown cursor") // there is one page
	}
	page := new(SessionPage)
	for info, err := range down.ListSessions(ctx, ListOptions{Cwd: q.Cwd, Archived: q.Archived, Meta: q.Meta}) {
		if err != nil {
			return nil, err
		}
		page.Sessions = append(page.Sessions, info)
	}
	return page, nil
}

func (l *bridgeLink) setOption(ctx context.Context, s *AgentSession, id SessionConfigID, v SessionConfigOptionValue) error {
	b := l.session(s.ID())
	l.mu.Lock()
	d := b.down
	l.mu.Unlock()
	if d == nil {
		return SessionNotFound(s.ID()) // it has just been closed
	}
	return d.SetOption(ctx, id, v)
}
