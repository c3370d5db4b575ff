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
	"github.com/goacp/acp/internal/timeline"
	"github.com/goacp/acp/jsonrpc"
)

// A SessionConfig is what a session is opened with.
type SessionConfig struct {
	// Cwd is the working directory, absolute; "" is that of this process.
	Cwd                   string
	AdditionalDirectories []string // further roots, absolute
	// MCPServers are servers the agent is to connect to. One that the agent
	// reaches over this connection ([MCPServerACP]) is served by [Client.MCP].
	// A server of a transport that the agent has not advertised is an error; in
	// version 2 that includes servers on standard streams, which every agent of
	// version 1 can use. See [ClientConn.SupportsMCP].
	MCPServers []MCPServer
	// SystemPrompt changes the agent's instructions. Experimental.
	SystemPrompt *SystemPrompt
	// Meta is _meta of the request: an object, or nil.
	Meta json.RawMessage
	// Replay says that [ClientConn.Restore] is to prefer a way that tells the
	// session's history.
	Replay bool
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

// clientCheckContent refuses content of prompts the agent did not ask for.
func clientCheckContent(caps *acpv2.PromptCapabilities, blocks []ContentBlock) error {
	if len(blocks) == 0 {
		return errors.New("acp: a prompt must not be empty")
	}
	if caps == nil {
		caps = new(acpv2.PromptCapabilities)
	}
	for _, b := range blocks {
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
		case *UnknownContentBlock:
			// A vendor's block; who sends it knows the agent (S84).
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

// NewSession opens a new session. Updates of it that arrive before it is known
// here are kept, up to 1 MiB and 4,096 updates, and told first. A request of the
// agent about it waits for up to 2 s for the session to be known; then it is
// answered with -32002, since the agent may be waiting for it before it answers.
func (c *ClientConn) NewSession(ctx context.Context, cfg SessionConfig) (*ClientSession, error) {
	return c.openNew(ctx, clientOpenNew, "", &cfg)
}

// Fork opens a new session that begins with a copy of another one's
// conversation. Experimental.
func (c *ClientConn) Fork(ctx context.Context, source SessionID, cfg SessionConfig) (*ClientSession, error) {
	return c.openNew(ctx, clientOpenFork, source, &cfg)
}

func (c *ClientConn) openNew(ctx context.Context, how clientOpening, source SessionID, cfg *SessionConfig) (*ClientSession, error) {
	if err := errors.Join(c.proto().canOpen(how), c.check(cfg)); err != nil {
		return nil, err
	}
	c.mcp.offer(cfg.MCPServers)
	c.beginOpening()
	defer c.endOpening()
	// The session is made where its answer arrives, so that nothing behind it
	// is missed; what is told of it waits until the answer was looked at.
	var s, old *ClientSession
	m := &timeline.Mark[clientItem]{Done: make(chan struct{})}
	known := func(id SessionID) {
		s = c.newSession(id, cfg.Cwd)
		old = c.add(s, m)
	}
	res, err := c.proto().open(ctx, how, source, cfg, jsonrpc.OnReply(func(result any, err error) {
		if id, ok := clientSessionOf(result); ok {
			known(id)
		}
	}))
	if err != nil {
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
	return s, nil
}

// Resume opens an earlier session without its history. If the session is open
// on this connection already, that is what is returned.
func (c *ClientConn) Resume(ctx context.Context, id SessionID, cfg SessionConfig) (*ClientSession, error) {
	return c.openAgain(ctx, clientOpenResume, id, &cfg)
}

// Load opens an earlier session and has its history told, as updates that are
// marked as replayed, before it returns.
func (c *ClientConn) Load(ctx context.Context, id SessionID, cfg SessionConfig) (*ClientSession, error) {
	return c.openAgain(ctx, clientOpenLoad, id, &cfg)
}

func (c *ClientConn) openAgain(ctx context.Context, how clientOpening, id SessionID, cfg *SessionConfig) (*ClientSession, error) {
	if err := errors.Join(c.proto().canOpen(how), c.check(cfg)); err != nil {
		return nil, err
	}
	c.mcp.offer(cfg.MCPServers)
	s := c.known(id, cfg.Cwd)
	last := sync.OnceValue(func() bool { return c.endOpeningAgain(s) })
	defer last()
	if how == clientOpenLoad {
		s.mu.Lock()
		s.said = nil // it is all told again
		s.replay = clientReplayUntilAnswer
		if c.Version() == 2 {
			s.replay = clientReplayUntilState
		}
		s.mu.Unlock()
	}
	var res *clientOpened
	err := s.ordered(ctx, func(opt jsonrpc.CallOption) (err error) {
		res, err = c.proto().open(ctx, how, id, cfg, opt)
		return err
	}, func(context.Context) { s.apply(cfg, res) })
	if err == nil {
		return s, nil
	}
	if last() { // otherwise another one may open it
		s.mu.Lock()
		s.replay = clientLive
		usable := s.opened
		s.mu.Unlock()
		if !usable {
			s.forget()
		}
	}
	return nil, err
}

// apply takes the answer that opened the session in.
func (s *ClientSession) apply(cfg *SessionConfig, res *clientOpened) {
	s.v1.SetOptions(res.options)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = true
	s.replay = clientLive
	s.cwd, s.meta, s.modesV1 = cfg.Cwd, res.meta, res.modes
	s.state.options = res.options
	if res.commands != nil {
		s.state.commands = res.commands
	}
}

// Restored says how [ClientConn.Restore] came by a session.
type Restored uint8

// The ways to come by a session.
const (
	RestoredNew     Restored = iota + 1 // it is a new one
	RestoredResumed                     // it goes on; its history was not told
	RestoredLoaded                      // it goes on; its history was told
)

// String returns new, resumed or loaded.
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

// Restore opens an earlier session in the best way the agent offers, and says
// which it was: with its history if [SessionConfig.Replay] is set and else
// without, or in the other way if the agent offers only that. If the agent
// offers neither or does not have the session (see [IsSessionNotFound]), or id is
// empty, it opens a new one, whose id is another.
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

// ListOptions narrows a list of sessions down.
type ListOptions struct {
	Cwd string // only sessions with this working directory, absolute; "" for all
	// Archived says whether archived sessions are listed; "" for not.
	// Experimental.
	Archived SessionArchiveFilter
	// Meta is _meta of the requests: an object, or nil.
	Meta json.RawMessage
}

// maxSessionPages bounds how long a list an agent may tell.
const maxSessionPages = 10_000

// Sessions lists the sessions the agent knows, page by page as they are asked
// for. An error is the last thing it yields; an agent whose list does not end,
// after 10,000 pages or because it comes back to where it was, is one.
func (c *ClientConn) Sessions(ctx context.Context, o ListOptions) iter.Seq2[SessionInfo, error] {
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
// here. then, which may be nil, runs when the call has succeeded.
func (c *ClientConn) concern(ctx context.Context, id SessionID, call func(opt jsonrpc.CallOption) error, then func(s *ClientSession)) error {
	s, ok := c.Session(id)
	if !ok {
		return c.explain(call(jsonrpc.OnReply(func(any, error) {})))
	}
	return s.ordered(ctx, call, func(context.Context) {
		if then != nil {
			then(s)
		}
	})
}

// gone makes the answer that a session does not exist a success (S31).
func gone(err error) error {
	if errors.Is(err, jsonrpc.ErrResourceNotFound) {
		return nil
	}
	return err
}

// Delete removes a session from the agent's list; if it is open here, it is
// closed. That the agent does not have it is no error (S31).
func (c *ClientConn) Delete(ctx context.Context, id SessionID) error {
	return c.concern(ctx, id, func(opt jsonrpc.CallOption) error {
		return gone(c.proto().deleteSession(ctx, id, opt))
	}, (*ClientSession).forget)
}

// CloseSession closes a session: see [ClientSession.Close].
func (c *ClientConn) CloseSession(ctx context.Context, id SessionID) error {
	if s, ok := c.Session(id); ok && !c.proto().canClose() {
		return s.abandon(ctx)
	}
	return c.concern(ctx, id, func(opt jsonrpc.CallOption) error {
		return gone(c.proto().closeSession(ctx, id, opt))
	}, (*ClientSession).forget)
}

// Archive puts a session aside; if it is open here, it is closed.
// Experimental.
func (c *ClientConn) Archive(ctx context.Context, id SessionID) error {
	return c.concern(ctx, id, func(opt jsonrpc.CallOption) error {
		return c.proto().archiveSession(ctx, id, true, opt)
	}, (*ClientSession).forget)
}

// Unarchive takes a session back from where Archive put it. Experimental.
func (c *ClientConn) Unarchive(ctx context.Context, id SessionID) error {
	return c.concern(ctx, id, func(opt jsonrpc.CallOption) error {
		return c.proto().archiveSession(ctx, id, false, opt)
	}, nil)
}

// Status tells whether the agent has a session in memory and, in version 2,
// what it is doing. A status that is not known counts as saved (S85).
// Experimental.
func (c *ClientConn) Status(ctx context.Context, id SessionID) (*acpv2.SessionStatusResponse, error) {
	if s, ok := c.Session(id); ok {
		defer s.calling()()
	}
	res, err := c.proto().sessionStatus(ctx, id)
	return res, c.explain(err)
}

// SetTitle gives a session a title and returns it as the agent stored it.
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

// Login logs in by one of the agent's [ClientConn.AuthMethods]; those of type
// terminal are not for this but for the user to run.
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

// Providers lists the providers of language models the agent can be told how to
// reach. Experimental.
func (c *ClientConn) Providers(ctx context.Context) ([]ProviderInfo, error) {
	res, err := c.proto().providers(ctx)
	return res, c.explain(err)
}

// SetProvider tells the agent how to reach a provider. Experimental.
func (c *ClientConn) SetProvider(ctx context.Context, p *ProviderSetting) error {
	return c.explain(c.proto().setProvider(ctx, p))
}

// DisableProvider tells the agent to do without a provider. Experimental.
func (c *ClientConn) DisableProvider(ctx context.Context, id ProviderID) error {
	return c.explain(c.proto().disableProvider(ctx, id))
}
