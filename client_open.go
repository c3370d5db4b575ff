package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/cursors"
	"github.com/goacp/acp/internal/timeline"
	"github.com/goacp/acp/jsonrpc"
)

// A SessionConfig says how a session is opened.
type SessionConfig struct {
	// Cwd is the absolute working directory; "" means that of this process.
	Cwd                   string
	AdditionalDirectories []string // further roots, absolute
	// MCPServers are servers the agent is to connect to. One that the agent
	// reaches over this connection ([MCPServerACP]) is served by [Client.MCP].
	// A server of a transport that the agent has not advertised is an error; in
	// version 2 that includes servers on standard streams, which every agent of
	// version 1 can use. See [ClientConn.SupportsMCP]. The open sessions of a
	// connection may have 4,096 servers that this client serves, by their ids.
	MCPServers []MCPServer
	// SystemPrompt changes the agent's instructions. Experimental.
	SystemPrompt *SystemPrompt
	// Options are the values that options are to begin with. An agent that takes such
	// values is sent them with the request; what it has not taken, and all of them if it
	// does not, is set as [ClientSession.SetOption] does once the session is open. If that
	// fails, the session is open all the same, and [ClientSession.RejectedOptions] says why.
	// Experimental.
	Options []InitialOption
	// Meta is _meta of the request: an object, or nil.
	Meta json.RawMessage
	// Replay makes [ClientConn.Restore] prefer a way that includes the session's
	// history.
	Replay bool

	asIs bool           // options the agent has not taken are not set
	at   acpv2.CursorID // of a fork
}

// check fills in the working directory and refuses what no agent, or not this
// one, would accept.
func (c *ClientConn) check(cfg *SessionConfig) error {
	if cfg.Cwd == "" {
		cwd, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("acp: SessionConfig.Cwd: %w", err)
		}
		cfg.Cwd = cwd
	}
	if !filepath.IsAbs(cfg.Cwd) {
		return fmt.Errorf("acp: SessionConfig.Cwd must be absolute, not %q", cfg.Cwd)
	}
	caps := c.Capabilities().Session
	if caps == nil {
		return unsupported("sessions")
	}
	for _, d := range cfg.AdditionalDirectories {
		if !filepath.IsAbs(d) {
			return fmt.Errorf("acp: SessionConfig.AdditionalDirectories must be absolute, not %q", d)
		}
	}
	if len(cfg.AdditionalDirectories) > 0 && caps.AdditionalDirectories == nil {
		return unsupported("additional directories")
	}
	can, names := c.proto().servers(), map[string]bool{}
	for _, m := range cfg.MCPServers {
		name, transport, ok := serverTransport(m, can)
		switch {
		case !ok:
			return unsupported("mcp servers over " + transport)
		case names[name]:
			return fmt.Errorf("acp: two mcp servers are called %q", name) // S86
		case transport == "acp" && c.client.MCP == nil:
			return fmt.Errorf("acp: mcp server %q is served by this client, which has no MCP hook", name)
		}
		names[name] = true
	}
	return clientCheckSystemPrompt(caps.SystemPrompt, cfg.SystemPrompt)
}

// SupportsMCP reports whether the agent can use an MCP server: whether it has
// advertised the server's transport. Callers that want to leave out the other
// servers rather than fail can use it with [slices.DeleteFunc]. It may be called
// from any goroutine.
func (c *ClientConn) SupportsMCP(server MCPServer) bool {
	if c.Capabilities().Session == nil {
		return false
	}
	_, transport, ok := serverTransport(server, c.proto().servers())
	return ok && (transport != "acp" || c.client.MCP != nil)
}

// clientCheckSystemPrompt refuses what the agent would have to refuse (S85).
func clientCheckSystemPrompt(caps *acpv2.SessionSystemPromptCapabilities, p *SystemPrompt) error {
	if p == nil {
		return nil
	}
	if caps == nil {
		return unsupported("a system prompt")
	}
	switch {
	case p.Mode == acpv2.SystemPromptModeAppend:
	case p.Mode == acpv2.SystemPromptModeOverride && caps.Mode != nil && caps.Mode.Override != nil:
	default:
		return unsupported("system prompt mode " + string(p.Mode))
	}
	if len(p.Content) == 0 {
		return errors.New("acp: a system prompt must not be empty")
	}
	for _, b := range p.Content {
		if _, ok := b.(*TextContent); !ok {
			return unsupported("a system prompt of anything but text")
		}
	}
	return nil
}

// clientCheckContent refuses content of prompts that the agent has not
// advertised.
func clientCheckContent(caps *acpv2.PromptCapabilities, blocks []ContentBlock) error {
	if len(blocks) == 0 {
		return errors.New("acp: a prompt must not be empty")
	}
	if caps == nil {
		caps = new(acpv2.PromptCapabilities)
	}
	for i, b := range blocks {
		var what string
		var ok bool
		switch b := b.(type) {
		case *TextContent, *ResourceLink:
			ok = true
		case *ImageContent:
			what, ok = "images", caps.Image != nil
		case *AudioContent:
			what, ok = "audio", caps.Audio != nil
		case *EmbeddedResource:
			what, ok = "embedded resources", caps.EmbeddedContext != nil
		case *acpv2.SkillReference:
			what, ok = "a skill at this place", caps.Skill != nil && (i == 0 || caps.Skill.Inline != nil)
		case *UnknownContentBlock:
			// A vendor's block; whoever sends it knows the agent (S84).
			what, ok = "content of type "+b.Type, len(b.Type) > 0 && b.Type[0] == '_'
		default:
			return errors.New("acp: a prompt holds a nil block")
		}
		if !ok {
			return unsupported(what + " in prompts")
		}
	}
	return nil
}

// NewSession opens a new session. Updates of the session that arrive before its
// id is known are kept, up to 4,096 of them and 1 MiB, and delivered first. A
// request of the agent about it waits up to 2 s for the id and is then answered
// with -32002, since the agent may be waiting for that answer before it sends its
// own.
func (c *ClientConn) NewSession(ctx context.Context, cfg SessionConfig) (*ClientSession, error) {
	return c.openNew(ctx, clientOpenNew, "", &cfg)
}

// Fork opens a new session that begins with a copy of another one's conversation.
// Experimental.
func (c *ClientConn) Fork(ctx context.Context, source SessionID, cfg SessionConfig) (*ClientSession, error) {
	return c.openNew(ctx, clientOpenFork, source, &cfg)
}

// ForkAt is Fork up to a cursor of the source: one that [ClientSession.Cursors] has, with
// fork in its capabilities. For any other cursor of a session that is open here it fails with
// an error that wraps [errors.ErrUnsupported], and sends nothing: an agent that does not know
// the cursor might copy all of the session. If the source is not open here, the caller must
// have the cursor from another connection to the agent. Experimental.
func (c *ClientConn) ForkAt(ctx context.Context, source SessionID, at acpv2.CursorID, cfg SessionConfig) (*ClientSession, error) {
	if err := c.canForkAt(source, at); err != nil {
		return nil, err
	}
	cfg.at = at
	return c.openNew(ctx, clientOpenFork, source, &cfg)
}

// canForkAt says why the agent is not asked for a fork at a cursor.
func (c *ClientConn) canForkAt(source SessionID, at acpv2.CursorID) error {
	if at == "" {
		return nil
	}
	refuse := func(why string) error {
		return &shownError{
			fmt.Errorf("acp: the session cannot be forked at the cursor %.100q: %s: %w", at, why, errors.ErrUnsupported),
			invalidParams("cursorId", why),
		}
	}
	if c.Version() == 1 && !c.client.Cursors {
		return refuse("cursors were not asked for")
	}
	s, open := c.Session(source)
	if !open {
		return nil
	}
	switch cursor := s.cursor(at); {
	case cursor == nil:
		return refuse("unknown cursor")
	case !cursors.Forks(cursor):
		return refuse("the agent does not fork there")
	}
	return nil
}

func (c *ClientConn) openNew(ctx context.Context, how clientOpening, source SessionID, cfg *SessionConfig) (*ClientSession, error) {
	if err := errors.Join(c.proto().canOpen(how), c.check(cfg)); err != nil {
		return nil, err
	}
	c.beginOpening()
	defer c.endOpening()
	// The answer to a request that is given up may still open a session, which nobody
	// would know here. So somebody waits for it.
	if ctx.Done() == nil || ctx.Err() != nil {
		return c.openNow(ctx, how, source, cfg)
	}
	if c.lateOpenings.Add(1) > maxLateOpenings {
		defer c.lateOpenings.Add(-1)
		return c.openNow(ctx, how, source, cfg)
	}
	type opened struct {
		s   *ClientSession
		err error
	}
	answered := make(chan opened) // nobody receives once it was given up
	run := func() {
		defer c.lateOpenings.Add(-1)
		o := opened{err: errNotAnswered} // stays so if middleware ends the goroutine
		defer func() {
			select {
			case answered <- o:
			case <-ctx.Done():
				if o.s != nil {
					_ = c.CloseSession(c.ctx, o.s.id) // if this fails, the connection has
				}
			}
		}()
		o.s, o.err = c.openNow(ctx, how, source, cfg, jsonrpc.AwaitAnswer())
	}
	if !c.spawn(run) {
		c.lateOpenings.Add(-1)
		return nil, c.explain(c.conn.Err())
	}
	select {
	case o := <-answered:
		return o.s, o.err
	case <-ctx.Done():
		return nil, notAwaited(ctx, "opening a session")
	}
}

// maxLateOpenings bounds the requests for new sessions whose answers are waited for
// although they were given up.
const maxLateOpenings = 64

// openNow makes a request for a new session and waits for the answer.
func (c *ClientConn) openNow(ctx context.Context, how clientOpening, source SessionID, cfg *SessionConfig, opts ...jsonrpc.CallOption) (*ClientSession, error) {
	if err := c.mcp.offer(cfg.MCPServers); err != nil {
		return nil, err
	}
	// The session is made as its answer arrives, so that nothing after the answer is
	// missed; its updates wait until the answer has been examined.
	var s, old *ClientSession
	m := &timeline.Mark[clientItem]{Done: make(chan struct{})}
	known := func(id SessionID) {
		s = c.newSession(id, cfg.Cwd)
		old = c.add(s, m)
	}
	res, err := c.proto().open(ctx, how, source, cfg, append(opts, jsonrpc.OnReply(func(result any, err error) {
		if id, ok := openedSession(result); ok {
			known(id)
		}
	}))...)
	if err != nil {
		c.mcp.retract(cfg.MCPServers)
		if s != nil {
			s.forget()
			s.discard(m)
		}
		return nil, c.explain(err)
	}
	if s != nil && s.id != res.id { // middleware knows better
		c.drop(s)
		s = nil
	}
	if s == nil {
		known(res.id)
	}
	if old != nil {
		old.shut(ErrSessionClosed)
	}
	s.resolve(ctx, m, func(context.Context) { s.apply(cfg, res) })
	s.setRest(ctx, cfg)
	return s, nil
}

// Resume opens an earlier session without its history. If the session is already
// open on this connection, Resume returns that one.
func (c *ClientConn) Resume(ctx context.Context, id SessionID, cfg SessionConfig) (*ClientSession, error) {
	return c.openAgain(ctx, clientOpenResume, id, &cfg)
}

// Load opens an earlier session and has the agent send its history, as updates
// marked as replayed, before it returns. If that fails after a part of the history has
// arrived, the error wraps [ErrTruncated], if the agent tells where a history ends.
func (c *ClientConn) Load(ctx context.Context, id SessionID, cfg SessionConfig) (*ClientSession, error) {
	return c.openAgain(ctx, clientOpenLoad, id, &cfg)
}

func (c *ClientConn) openAgain(ctx context.Context, how clientOpening, id SessionID, cfg *SessionConfig) (*ClientSession, error) {
	if err := errors.Join(c.proto().canOpen(how), c.check(cfg)); err != nil {
		return nil, err
	}
	if err := c.mcp.offer(cfg.MCPServers); err != nil {
		return nil, err
	}
	s := c.known(id, cfg.Cwd)
	last := sync.OnceValue(func() bool { return c.endOpeningAgain(s) })
	defer last()
	if how == clientOpenLoad {
		s.mu.Lock()
		s.said = nil // all of it is sent again
		s.replay.until = clientReplayUntilAnswer
		if c.Version() == 2 {
			s.replay.until = clientReplayUntilState
		}
		s.replay.arrives, s.replay.begins, s.replay.complete = true, true, false
		s.mu.Unlock()
		c.replayChildren(s)
	}
	var res *clientOpened
	err := s.orderedAfter(ctx, func() { c.replayed(s) }, func(opt jsonrpc.CallOption) (err error) {
		res, err = c.proto().open(ctx, how, id, cfg, opt)
		return err
	}, func(context.Context) { s.apply(cfg, res) })
	c.replayed(s) // there may have been no response
	if err == nil {
		s.setRest(ctx, cfg)
		return s, nil
	}
	if how == clientOpenLoad {
		err = s.truncated(err)
	}
	c.mcp.retract(cfg.MCPServers)
	if last() { // otherwise another one may open it
		s.mu.Lock()
		s.replay.until = clientLive
		usable := s.opened
		s.mu.Unlock()
		if !usable {
			s.forget()
		}
	}
	return nil, err
}

// apply adopts what the answer that opened the session says.
func (s *ClientSession) apply(cfg *SessionConfig, res *clientOpened) {
	s.v1.SetOptions(res.options)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = true
	s.replay.until = clientLive
	s.conn.mcp.retract(s.cfg.MCPServers)
	s.cfg = *cfg
	s.meta, s.modesV1 = res.meta, res.modes
	s.state.options = res.options
	if res.commands != nil {
		s.state.commands = res.commands
	}
}

// Restored says how [ClientConn.Restore] opened a session.
type Restored uint8

// The ways to come by a session.
const (
	RestoredNew     Restored = iota + 1 // it is a new one
	RestoredResumed                     // it continues; its history was not sent
	RestoredLoaded                      // it continues; its history was sent
)

// String returns "new", "resumed" or "loaded".
func (r Restored) String() string {
	switch r {
	case RestoredNew:
		return "new"
	case RestoredResumed:
		return "resumed"
	case RestoredLoaded:
		return "loaded"
	}
	return "not restored"
}

// Restore opens an earlier session in the best way the agent offers, and returns
// which one that was. If [SessionConfig.Replay] is set it prefers
// [ClientConn.Load], and otherwise [ClientConn.Resume]; if the agent offers only
// the other, it uses that. It opens a new session, with another id, if the agent
// offers neither, if it does not have the session (see [IsSessionNotFound]), or
// if id is empty. To open that session or none, for a user who has chosen it, use Load or
// Resume.
func (c *ClientConn) Restore(ctx context.Context, id SessionID, cfg SessionConfig) (*ClientSession, Restored, error) {
	ways := []clientOpening{clientOpenResume, clientOpenLoad}
	if cfg.Replay {
		slices.Reverse(ways)
	}
	for _, how := range ways {
		if id == "" || c.proto().canOpen(how) != nil {
			continue
		}
		s, err := c.openAgain(ctx, how, id, &cfg)
		switch {
		case err == nil && how == clientOpenLoad:
			return s, RestoredLoaded, nil
		case err == nil:
			return s, RestoredResumed, nil
		case !IsSessionNotFound(err):
			return nil, 0, err
		}
		break // it does not have it in the other way either
	}
	s, err := c.NewSession(ctx, cfg)
	if err != nil {
		return nil, 0, err
	}
	return s, RestoredNew, nil
}

// ListOptions filters a list of sessions.
type ListOptions struct {
	Cwd string // only sessions with this working directory, absolute; "" for all
	// Archived says whether archived sessions are listed; "" excludes them.
	// Experimental.
	Archived SessionArchiveFilter
	// Meta is _meta of the requests: an object, or nil.
	Meta json.RawMessage
}

// maxSessionPages bounds the pages of an agent's list.
const maxSessionPages = 10_000

// ListSessions lists the sessions the agent knows. Pages are requested as they are
// needed. An error is the last thing it yields. An endless list (10,000 pages, or a
// repeated cursor) is reported as an error. Sessions that are open on this
// connection are returned by [ClientConn.OpenSessions].
func (c *ClientConn) ListSessions(ctx context.Context, o ListOptions) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		q := &SessionQuery{Cwd: o.Cwd, Archived: o.Archived, Meta: o.Meta}
		fail := func(err error) { yield(SessionInfo{}, err) }
		if o.Cwd != "" && !filepath.IsAbs(o.Cwd) {
			fail(fmt.Errorf("acp: ListOptions.Cwd must be absolute, not %q", o.Cwd))
			return
		}
		if caps := c.Capabilities().Session; o.Archived != "" && (caps == nil || caps.Archive == nil) {
			fail(unsupported("archived sessions"))
			return
		}
		seen := map[acpv2.SessionListCursor]bool{}
		for range maxSessionPages {
			page, err := c.proto().listSessions(ctx, q)
			if err != nil {
				fail(c.explain(err))
				return
			}
			for _, info := range page.Sessions {
				if !yield(info, nil) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			if seen[*page.NextCursor] {
				fail(errors.New("acp: the agent's list of sessions repeats itself"))
				return
			}
			seen[*page.NextCursor] = true
			q.Cursor = page.NextCursor
		}
		fail(errors.New("acp: the agent's list of sessions does not end"))
	}
}

// concern makes a call about a session, in the session's timeline if it is open
// here. then, which may be nil, is called if the call has succeeded.
func (c *ClientConn) concern(ctx context.Context, id SessionID, call func(opt jsonrpc.CallOption) error, then func(s *ClientSession)) error {
	s, ok := c.Session(id)
	if !ok {
		defer c.release(id)
		return c.explain(call(jsonrpc.OnReply(func(any, error) {})))
	}
	return s.ordered(ctx, call, func(context.Context) {
		if then != nil {
			then(s)
		}
	})
}

// Unarchive takes a session out of the archive. Experimental.
func (c *ClientConn) Unarchive(ctx context.Context, id SessionID) error {
	return c.concern(ctx, id, func(opt jsonrpc.CallOption) error {
		return c.proto().archiveSession(ctx, id, false, opt)
	}, nil)
}

// Status reports whether the agent has a session in memory and, in version 2,
// what it is doing. A status that is not known counts as saved. Experimental.
func (c *ClientConn) Status(ctx context.Context, id SessionID) (*acpv2.SessionStatusResponse, error) {
	if s, ok := c.Session(id); ok {
		defer s.calling()()
	} else {
		defer c.release(id)
	}
	res, err := c.proto().sessionStatus(ctx, id)
	return res, c.explain(err)
}

// SetTitle gives a session a title and returns the title as the agent stored it.
// Experimental.
func (c *ClientConn) SetTitle(ctx context.Context, id SessionID, title string) (string, error) {
	var stored string
	err := c.concern(ctx, id, func(opt jsonrpc.CallOption) (err error) {
		stored, err = c.proto().setTitle(ctx, id, title, opt)
		return err
	}, func(s *ClientSession) {
		s.mu.Lock()
		s.state.title = stored
		s.mu.Unlock()
	})
	return stored, err
}

// Login logs in by one of the agent's [ClientConn.AuthMethods]. Those of type
// terminal cannot be used in this way: the user has to run them.
func (c *ClientConn) Login(ctx context.Context, id AuthMethodID) error {
	return c.explain(c.proto().login(ctx, id))
}

// Logout logs out.
func (c *ClientConn) Logout(ctx context.Context) error { return c.explain(c.proto().logout(ctx)) }

// AuthStatus asks who is logged in. Experimental.
func (c *ClientConn) AuthStatus(ctx context.Context) (*AuthStatus, error) {
	res, err := c.proto().authStatus(ctx)
	return res, c.explain(err)
}

// Providers lists the providers of language models that the agent can be
// configured for. Experimental.
func (c *ClientConn) Providers(ctx context.Context) ([]ProviderInfo, error) {
	res, err := c.proto().providers(ctx)
	return res, c.explain(err)
}

// SetProvider configures how the agent reaches a provider. Experimental.
func (c *ClientConn) SetProvider(ctx context.Context, p *ProviderSetting) error {
	return c.explain(c.proto().setProvider(ctx, p))
}

// DisableProvider makes the agent stop using a provider. Experimental.
func (c *ClientConn) DisableProvider(ctx context.Context, id ProviderID) error {
	return c.explain(c.proto().disableProvider(ctx, id))
}
