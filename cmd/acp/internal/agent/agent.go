// Package agent is the built-in agent. Users type slash commands, which use real tools
// with real permissions; with a language model, what they type otherwise goes to that, which
// uses the same tools.
//
// It is written on package acp and serves both versions of the protocol. Each update of
// a session is written to the session's journal before it is sent, so a client can be
// sent its conversation again even if this program was killed. Package agent/tool has
// the tools.
//
// Bounds: 1,024 open sessions per connection, 256 MiB per journal, 64 MiB per record
// of one; in memory 256 sessions of 32 MiB.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/agent/guide"
	"github.com/goacp/acp/cmd/acp/internal/agent/loop"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/model"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/withheld"
	"github.com/goacp/acp/jsonrpc"
)

// Name is the name with which the agent introduces itself to clients.
const Name = "acp"

// Options configure the agent. The zero value keeps sessions in memory.
type Options struct {
	// Dir is the directory in which sessions are kept. It is created with the first
	// session. "" keeps sessions in memory until the program ends: up to 256 of
	// 32 MiB each. When there is no room, the session that was closed first is dropped.
	Dir string
	// Version is the version of the program.
	Version string
	// Logger receives failures that cannot be reported to a client. Nil discards them.
	Logger *slog.Logger
	// Policy has rules for the agent, whatever the mode of a session: it does not do what they deny, and asks
	// where they say so. Nil means no rules. Only [acphost.Policy.Judge] and the like are called.
	Policy *acphost.Policy
	// Told says that the client decides by the same Policy and informs the user. The agent then asks the
	// client for what a rule denies as well; otherwise it refuses that at once.
	Told bool
	// Models are those that answer prompts other than commands; nil means that nothing does.
	Models model.Source
	// Home is where skills and prompts of the user are.
	Home guide.Home
	// Limits bound each turn with the model.
	Limits loop.Limits
	// Session is what a session may cost in all; 0 is no limit. No request is sent once it has.
	Session float64
	// Keys are kept from commands and MCP servers; nil means none.
	Keys *withheld.Keys
}

// DefaultDir returns the directory in which the program keeps the agent's sessions, or ""
// if the environment names no directory for data.
func DefaultDir() string {
	data := config.DirsOf(os.Environ(), "").Data
	if data == "" {
		return ""
	}
	return filepath.Join(data, "agent", "sessions")
}

// DeleteSession deletes the session id from dir, a directory of the agent's sessions. Nothing happens if there is none, and
// an error is returned if it is open somewhere.
func DeleteSession(dir string, id acp.SessionID) error {
	if dir == "" {
		return nil
	}
	s := newStore(dir, slog.New(slog.DiscardHandler))
	s.removeBlank(id)
	if !s.exists(id) {
		return nil
	}
	return s.remove(id)
}

// New returns the agent. It may serve any number of connections at once. It need not be
// closed: journals are closed with their sessions. It starts nothing before the first
// prompt, and touches no file before the first session.
func New(o Options) (*acp.Agent, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "0"
	}
	if o.Dir != "" {
		dir, err := filepath.Abs(o.Dir)
		if err != nil {
			return nil, err
		}
		o.Dir = dir
	}
	b := &builtin{
		store: newStore(o.Dir, o.Logger), log: o.Logger, policy: o.Policy, told: o.Told,
		models: o.Models, limits: o.Limits, most: o.Session, web: tool.NewWeb(false), home: o.Home, keys: o.Keys,
	}
	prompts := acp.SystemPromptNone
	if o.Models != nil {
		prompts = acp.SystemPromptOverride
	}
	a := &acp.Agent{
		Info:                  acp.Implementation{Name: Name, Title: "Built-in agent", Version: o.Version},
		Initialize:            introduce,
		Prompt:                b.prompt,
		Record:                b.record,
		Accept:                b.accept,
		Busy:                  acp.BusySteer,
		NewSession:            b.newSession,
		ResumeSession:         b.resumeSession,
		ForkSession:           b.forkSession,
		ListSessions:          b.listSessions,
		CloseSession:          func(_ context.Context, s *acp.AgentSession) error { return sessionOf(s).close() },
		DeleteSession:         b.deleteSession,
		SessionStatus:         b.sessionStatus,
		SetTitle:              b.setTitle,
		SetOption:             b.setOption,
		SessionOptions:        b.previewOptions,
		SystemPrompt:          prompts,
		Content:               acp.PromptContent{Image: true, Audio: true, EmbeddedContext: true, Skill: o.Models != nil},
		MCP:                   acp.MCPTransports{Stdio: true, HTTP: true, ACP: true},
		AdditionalDirectories: true,
		Logger:                o.Logger,
	}
	if o.Models != nil {
		a.ListProviders, a.SetProvider, a.DisableProvider = b.listProviders, b.setProvider, b.disableProvider
	}
	return a, nil
}

// introduce says that a gateway may let people prompt the agent who may not approve what it does.
func introduce(context.Context, *acp.AgentConn) (json.RawMessage, error) {
	return ownmeta.Of(ownmeta.Ranks{Ranks: true}), nil
}

// builtin is what the hooks share.
type builtin struct {
	store  *store
	log    *slog.Logger
	policy *acphost.Policy
	told   bool // the client has the same policy
	models model.Source
	limits loop.Limits
	most   float64 // that a session may cost
	web    *http.Client
	home   guide.Home
	keys   *withheld.Keys

	mu   sync.Mutex
	open map[*acp.AgentConn]int          // sessions
	own  map[*acp.AgentConn]model.Source // that clients have set up
}

func sessionOf(s *acp.AgentSession) *session { return s.Value.(*session) }

func (b *builtin) newSession(_ context.Context, s *acp.AgentSession) error {
	v := newSession(b, s)
	if err := b.begin(s, v); err != nil {
		return err
	}
	v.setBlank()
	return nil
}

// maxOpen bounds the sessions that a connection may have open at a time.
const maxOpen = 1024

// opens counts a session of a connection, or refuses it if there are too many. done is
// called when the session is closed.
func (b *builtin) opens(c *acp.AgentConn) (done func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[c] >= maxOpen {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%d sessions are open on this connection: close one first", maxOpen)
	}
	if b.open == nil {
		b.open = map[*acp.AgentConn]int{}
	}
	b.open[c]++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.open[c]--; b.open[c] == 0 {
			delete(b.open, c)
		}
	}, nil
}

// begin makes a session ready for prompts, be it new or resumed.
func (b *builtin) begin(s *acp.AgentSession, v *session) error {
	done, err := b.opens(s.Conn())
	if err != nil {
		return err
	}
	v.done = sync.OnceFunc(done)
	s.Value = v
	context.AfterFunc(s.Context(), func() {
		if err := v.close(); err != nil {
			b.log.Error("agent: close the journal of a session", "error", err)
		}
	})
	v.choose(s.Context(), false)
	if err := s.SetOptions(v.options()...); err != nil {
		return err
	}
	err = s.SetCommands(announced(v.prompts())...)
	if skills := v.invoked(); err == nil && len(skills) > 0 {
		err = s.SetSkills(skills...)
	}
	return err
}

// resumeSession is the hook of that name. A session that is open already is only replayed.
func (b *builtin) resumeSession(_ context.Context, s *acp.AgentSession, replay bool) error {
	v, open := s.Value.(*session)
	if now, ok := s.Conn().Session(s.ID()); ok && now != s {
		if v, ok := now.Value.(*session); ok { // s is for the history alone
			return v.replay(s)
		}
	}
	if !open {
		v = newSession(b, s)
		if err := v.load(); err != nil {
			return err
		}
		if err := b.begin(s, v); err != nil {
			_ = v.close()
			return err
		}
	}
	if replay {
		if err := v.replay(s); err != nil {
			return err
		}
	}
	if title := v.currentTitle(); title != "" {
		return s.SetTitle(title)
	}
	return nil
}

// forkSession is the hook of that name: the new session begins with a copy of the other one's
// journal.
func (b *builtin) forkSession(_ context.Context, s *acp.AgentSession, from acp.SessionID) error {
	v := newSession(b, s)
	if err := v.fork(from); err != nil {
		return err
	}
	if err := b.begin(s, v); err != nil {
		_ = v.close()
		return err
	}
	if title := v.currentTitle(); title != "" {
		return s.SetTitle(title)
	}
	return nil
}

func (b *builtin) listSessions(_ context.Context, _ *acp.AgentConn, q *acp.SessionQuery) (*acp.SessionPage, error) {
	return b.store.list(q, pageSize)
}

func (b *builtin) deleteSession(_ context.Context, _ *acp.AgentConn, id acp.SessionID) error {
	return b.store.remove(id)
}

func (b *builtin) sessionStatus(_ context.Context, _ *acp.AgentConn, id acp.SessionID) (acp.SessionStatus, error) {
	if !b.store.exists(id) && !b.store.readBlank(id, nil) {
		return "", acp.SessionNotFound(id)
	}
	return acp.SessionStatusSaved, nil
}

// setTitle is the hook of that name. The session need not be open: then its journal is opened for
// this change alone.
func (b *builtin) setTitle(_ context.Context, c *acp.AgentConn, id acp.SessionID, title string) (string, error) {
	title = prose.OneLine(title, maxTitle)
	if s, ok := c.Session(id); ok {
		return title, sessionOf(s).setTitle(title)
	}
	j, err := b.store.open(id, nil)
	if err != nil {
		return "", err
	}
	if j.lost != nil {
		return "", unsaved(id, j.lost)
	}
	return title, errors.Join(j.set(func(a *about) { a.Title = title }), j.close())
}

func (b *builtin) setOption(_ context.Context, s *acp.AgentSession, id acp.SessionConfigID, v acp.SessionConfigOptionValue) error {
	own := sessionOf(s)
	more, err := own.optionChanged(id, v)
	if err != nil || !more {
		return err
	}
	return s.SetOptions(own.options()...)
}
