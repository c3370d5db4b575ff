package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/jsonrpc"
)

// A Config says what a gateway hosts, and where it keeps it.
type Config struct {
	// Log and Lease are where sessions are kept, and what entitles this process to own them. The caller
	// keeps the lease, and closes the gateway when it lapses.
	Log   *engine.Engine
	Lease *engine.Lease
	// Start returns the way to an agent by its name. It is called for each session that needs one, and
	// may be called concurrently. The transport is opened once.
	Start func(ctx context.Context, name string, cwd string) (acp.Transport, error)
	// Hold does the same for agents that outlive the gateway, and Rehold attaches to one again, whose
	// events up to seq are known. Hold returns nil for an agent that Start is for. Both may be nil.
	Hold   func(ctx context.Context, name string, cwd string) (Held, error)
	Rehold func(ctx context.Context, socket, token string, seq uint64) (Held, error)
	// Agent is the agent of a session whose client does not name one. Agents are all that may be named.
	Agent  string
	Agents []string
	// Who says who a client is. Nil means that sessions belong to the [acphttp.Principal], who may do
	// everything with them.
	Who func(ctx context.Context) Who
	// Info names the gateway.
	Info acp.Implementation
	// IdleAgent is how long an agent is kept that has nothing to do; 0 means 10 minutes.
	IdleAgent time.Duration
	// AskTimeout is how long a question waits for an answer; 0 means 24 hours.
	AskTimeout time.Duration
	// MaxAgents bounds the agents that run at once; 0 means 64. A further session that needs one is
	// refused.
	MaxAgents int
	// Logger gets what goes wrong, without payload; nil means [slog.Default].
	Logger *slog.Logger
}

// A Gateway hosts sessions. Its methods may be called from any goroutine. It must be closed.
type Gateway struct {
	cfg   Config
	north *acp.Agent
	work  sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*session
	agents   int // that run, or start
	closed   bool
}

// ErrClosed is why calls fail after [Gateway.Close].
var ErrClosed = errors.New("the gateway is closed")

// New returns a gateway.
func New(cfg Config) *Gateway {
	cfg.IdleAgent = cmp.Or(cfg.IdleAgent, 10*time.Minute)
	cfg.AskTimeout = cmp.Or(cfg.AskTimeout, 24*time.Hour)
	cfg.MaxAgents = cmp.Or(cfg.MaxAgents, 64)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	g := &Gateway{cfg: cfg, sessions: make(map[string]*session)}
	g.north = g.agent()
	return g
}

// Serve serves a client until it leaves. ctx has its principal: see [acphttp.Principal].
func (g *Gateway) Serve(ctx context.Context, t acp.Transport) error { return g.north.Serve(ctx, t) }

// Recover continues the turns that an earlier process has left unfinished, or ends them and says so in their
// sessions. A session with which that is not possible is logged.
func (g *Gateway) Recover(ctx context.Context) error {
	q := engine.Query{State: stateRunning}
	for {
		page, err := g.cfg.Log.List(ctx, q)
		if err != nil {
			return err
		}
		for _, info := range page.Sessions {
			if _, err := g.open(ctx, info.ID); err != nil && !errors.Is(err, engine.ErrOwned) {
				g.cfg.Logger.Error("gateway: a session cannot be recovered", "session", info.ID, "error", err)
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return nil
		}
	}
}

// Close stops all agents, gives the sessions up and waits until everything has ended. Clients must have
// left before.
func (g *Gateway) Close() error {
	g.mu.Lock()
	g.closed = true
	sessions := make([]*session, 0, len(g.sessions))
	for _, s := range g.sessions {
		sessions = append(sessions, s)
	}
	g.mu.Unlock()
	var errs []error
	for _, s := range sessions {
		errs = append(errs, s.close())
	}
	g.work.Wait()
	return errors.Join(errs...)
}

// newID returns a random id that begins with a prefix.
func newID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

// session returns a session that is open in this process.
func (g *Gateway) session(id string) *session {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sessions[id]
}

// open returns a session, which this process owns from then on.
func (g *Gateway) open(ctx context.Context, id string) (*session, error) {
	for {
		g.mu.Lock()
		if g.closed {
			g.mu.Unlock()
			return nil, ErrClosed
		}
		s := g.sessions[id]
		if s == nil {
			s = newSession(g, id)
			g.sessions[id] = s
			g.mu.Unlock()
			if err := s.claim(ctx); err != nil {
				g.forget(s)
				s.cancel(err)
				close(s.opened)
				return nil, err
			}
			close(s.opened)
			return s, nil
		}
		g.mu.Unlock()
		select {
		case <-s.opened:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if s.gone() { // try it ourselves
			g.forget(s)
			continue
		}
		s.mu.Lock()
		closing := s.closed
		s.mu.Unlock()
		if !closing {
			return s, nil
		}
		select {
		case <-s.over:
			g.forget(s)
		case <-s.ctx.Done():
			g.forget(s)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// forget removes a session that is not open any more.
func (g *Gateway) forget(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[s.id] == s {
		delete(g.sessions, s.id)
	}
}

// admit reports whether another agent may run. Its end must be reported with dismiss.
func (g *Gateway) admit() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return ErrClosed
	case g.agents >= g.cfg.MaxAgents:
		return &jsonrpc.Failure{Message: fmt.Sprintf("%d agents are running, which is the most", g.agents), Reason: "agents", RetryAfter: time.Minute}
	}
	g.agents++
	return nil
}

func (g *Gateway) dismiss() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.agents--
}

// Who is who a client is, and what it may do with the sessions of its user.
type Who struct {
	User string
	// Prompt is to send prompts, and to begin and delete sessions. Approve is to answer the agent's
	// questions, and what amounts to that: to change options, such as a mode in which there are none, and
	// to give a session MCP servers that are commands.
	Prompt, Approve bool
	// Agent reports whether it may use the sessions of an agent, Session whether it may use a session; nil
	// means all. One that may use some sessions begins none.
	Agent   func(name string) bool
	Session func(id string) bool
}

// who returns who a client is.
func (g *Gateway) who(ctx context.Context) Who {
	if g.cfg.Who != nil {
		return g.cfg.Who(ctx)
	}
	return Who{User: cmp.Or(acphttp.Principal(ctx), "local"), Prompt: true, Approve: true}
}

// sees reports whether the client may use a session.
func (w *Who) sees(info *engine.Session) bool {
	return w.User != "" && info.Owner == w.User && (w.Agent == nil || w.Agent(info.Agent)) && (w.Session == nil || w.Session(info.ID))
}

// errRole is why a client may not do something.
func errRole(what string) error {
	return &jsonrpc.Failure{Message: "this device may not " + what, Reason: "role"}
}
