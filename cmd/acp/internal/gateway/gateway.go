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
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// A Config says what a gateway hosts, and where it keeps it.
type Config struct {
	// Log and Lease are where sessions are kept, and what entitles this process to own them. The caller calls
	// [Gateway.Keep].
	Log   *engine.Engine
	Lease *engine.Lease
	// Start returns the way to an agent by its name. It is called for each session that needs one, and
	// may be called concurrently. The transport is opened once.
	Start func(ctx context.Context, name string, cwd string) (acp.Transport, error)
	// Hold does the same for agents that outlive the gateway, and Rehold attaches to one again, whose
	// events up to seq are known. Hold returns nil for an agent that Start is for. Both may be nil. Gone reports
	// that there is none to attach to, if that can be seen at once; nil means that it cannot.
	Hold   func(ctx context.Context, name string, cwd string) (Held, error)
	Rehold func(ctx context.Context, socket, token string, seq uint64) (Held, error)
	Gone   func(socket string) bool
	// Nodes reaches the other nodes that share the log; nil means that there are none. Workspaces are the
	// directories whose sessions this node takes, if not all.
	Nodes      Nodes
	Workspaces []string
	// Agent is the agent of a session whose client does not name one. Agents are all that may be named.
	// Titles are what people call them, where that is something else.
	Agent  string
	Agents []string
	Titles map[string]string
	// Installed reports whether an agent is there, as far as this node knows; nil means that all are.
	Installed func(name string) bool
	// Knows reports whether those with [MayCommand] may name an agent that is not among these; nil means that none may.
	Knows func(name string) bool
	// Who says who a client is. Nil means that sessions belong to the [acphttp.Principal], who may do
	// everything with them.
	Who func(ctx context.Context) Who
	// Policy says what a user may do who is in groups; nil means that everybody may do everything. Groups
	// are nil where they are not known.
	Policy func(user string, groups []string) Policy
	// Audit is called with what somebody may have to account for later.
	Audit Audit
	// Failed is called with the text of the error that a client gets if an agent did not start, and with its cause,
	// which the client does not get. Nil discards it. It may be called concurrently.
	Failed func(text string, err error)
	// Waits is called when a session waits for somebody who may be away. Nil tells nobody on this node. It may be called
	// concurrently, and must be quick.
	Waits func(w *Waiting)
	// Extend registers further methods of the gateway, for each connection. Nil registers none.
	Extend func(mux *jsonrpc.Mux)
	// Markdown returns what writes a session for people, for [ExportMethod]; nil means that there is no such method.
	Markdown func(id string) Rendering
	// Directory is offered to users who have had no session; "" means that none is.
	Directory string
	// Many says that sessions belong to several users, who must not see each other's files.
	Many bool
	// Info names the gateway.
	Info acp.Implementation
	// CancelGrace is how long an agent may take to end a turn that was cancelled; then the turn ends without it. 0 means 5 s.
	CancelGrace time.Duration
	// IdleAgent is how long an agent is kept that has nothing to do; 0 means 10 minutes.
	IdleAgent time.Duration
	// AskTimeout is how long a question waits for an answer; 0 means 24 hours.
	AskTimeout time.Duration
	// MaxAgents bounds the agents that run at once; 0 means 64. For a further one, the agent is stopped that has been
	// idle for longest; if none is, a prompt waits for one, and anything else for 30 s.
	MaxAgents int
	// Retention is how long what was said is kept.
	Retention Retention
	// Observer observes what happens; nil means that nobody does.
	Observer Observer
	// Logger gets what goes wrong, without payload; nil means [slog.Default].
	Logger *slog.Logger
}

// Audit has what is called when somebody does, or may not do, what is to be accounted for. Nil discards it. They may be called
// concurrently.
type Audit struct {
	// Shared is called when by gives a user a role in a session.
	Shared func(by, session, user, role string)
	// Refused is called when a client is refused something because of its role.
	Refused func(r Refusal)
	// Decided is called with the decision on a question of a session's agent, and with the user who has made it, "" if that
	// was a rule or nobody.
	Decided func(session, by string, d *history.Decision)
}

// A lifetime ends when cancel is called.
type lifetime struct {
	context.Context
	cancel context.CancelFunc
}

// A Gateway hosts sessions. Its methods may be called from any goroutine. It must be closed.
type Gateway struct {
	cfg   Config
	north *acp.Agent
	work  sync.WaitGroup
	ctx   context.Context // until the gateway closes
	stop  context.CancelFunc
	// ending ends endFor after Close was called.
	ending lifetime

	started   time.Time
	watching  atomic.Int64          // clients of sessions
	visits    atomic.Uint64         // the number of the last one; see wireOpen
	positions sync.Map              // of positionKey to *position
	exists    func(dir string) bool // here
	present   present
	decoded   decodedUpdates
	backdrops backdrops
	board     board
	fileLists fileLists
	exports   exports
	lookout   lookout
	refusals  refusals

	mu       sync.Mutex
	lease    *engine.Lease
	links    map[string]*link
	dials    map[string]*dialing // to nodes without a link
	tenancy  tenancy
	draining bool
	sessions map[string]*session
	deleting map[string]int // sessions that nobody opens any more, and how many delete them
	agents   int            // that run, or start; one that is stopped to make room counts until it has ended
	running  map[*backend]bool
	closed   bool
}

// ErrClosed is why calls fail after [Gateway.Close].
var ErrClosed = errors.New("the gateway is closed")

// New returns a gateway.
func New(cfg Config) *Gateway {
	cfg.IdleAgent = cmp.Or(cfg.IdleAgent, 10*time.Minute)
	cfg.CancelGrace = cmp.Or(cfg.CancelGrace, 5*time.Second)
	cfg.AskTimeout = cmp.Or(cfg.AskTimeout, 24*time.Hour)
	cfg.MaxAgents = cmp.Or(cfg.MaxAgents, 64)
	if cfg.Observer == nil {
		cfg.Observer = quiet{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	g := &Gateway{
		cfg: cfg, lease: cfg.Lease, started: time.Now(), exists: exists, links: make(map[string]*link), dials: make(map[string]*dialing),
		sessions: make(map[string]*session), deleting: make(map[string]int), running: make(map[*backend]bool),
	}
	g.ctx, g.stop = context.WithCancel(context.Background())
	g.ending.Context, g.ending.cancel = context.WithCancel(context.Background())
	g.north = g.agent()
	g.work.Go(g.expire)
	if cfg.Retention != (Retention{}) {
		g.work.Go(g.retain)
	}
	return g
}

// Serve serves a client until it leaves. ctx has its principal: see [acphttp.Principal].
func (g *Gateway) Serve(ctx context.Context, t acp.Transport) error { return g.north.Serve(ctx, t) }

// Recover continues the turns that an earlier process has left unfinished, or ends them and says so in their
// sessions. A session with which that is not possible is logged.
func (g *Gateway) Recover(ctx context.Context) error {
	q := engine.Query{State: records.StateRunning}
	for {
		page, err := g.cfg.Log.List(ctx, q)
		if err != nil {
			return err
		}
		for _, info := range page.Sessions {
			if g.cfg.Nodes != nil && !g.suits(info.Cwd) {
				continue
			}
			if _, err := g.own(ctx, info.ID); err != nil && !errors.Is(err, engine.ErrOwned) {
				g.cfg.Logger.Error("gateway: a session cannot be recovered", "session", info.ID, "error", err)
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return nil
		}
	}
}

// endFor is how long a gateway that closes tries to keep what it could not keep. Then it is lost, and nobody has seen it.
const endFor = 10 * time.Second

// Close stops all agents, gives the sessions up and waits until everything has ended. Clients must have
// left before. If the log cannot be written, the error says so, and Close returns nevertheless: what is tried again then is
// given up after 10 s.
func (g *Gateway) Close() error {
	defer time.AfterFunc(endFor, g.ending.cancel).Stop()
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.tenancy.lobby.stir()
	var errs []error
	for _, s := range g.all() {
		errs = append(errs, s.close())
	}
	g.stop()
	g.mu.Lock()
	for _, l := range g.links {
		_ = l.conn.Close()
	}
	g.mu.Unlock()
	g.work.Wait()
	return errors.Join(errs...)
}

// either returns a context that is done when one of two is.
func either(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(other, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// endingWith returns a context that ends with ctx, or when a gateway that closes has tried for long enough to keep what it could not
// keep.
func (g *Gateway) endingWith(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.ending, func() { cancel(ErrClosed) })
	context.AfterFunc(ctx, func() { stop() })
	return ctx
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

// logger returns the logger for a session.
func (g *Gateway) logger(id string) *slog.Logger { return g.cfg.Logger.With("session", id) }

// own returns a session, which this process owns from then on.
func (g *Gateway) own(ctx context.Context, id string) (*session, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s, first, err := g.entry(id)
		switch {
		case err != nil:
			return nil, err
		case first:
			g.work.Go(func() {
				defer func() {
					close(s.opened)
					g.tenancy.lobby.stir() // its agent may be idle
				}()
				if s.failed = s.claim(ctx); s.failed != nil {
					g.forget(s)
					s.cancel(s.failed)
				}
			})
		}
		select {
		case <-s.opened:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if first {
			return s, s.failed
		}
		if s.given() { // try it ourselves
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

// entry returns the session that is open, or being opened, in this process, and whether the caller is the first
// one, who opens it.
func (g *Gateway) entry(id string) (s *session, first bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch s := g.sessions[id]; {
	case g.closed:
		return nil, false, ErrClosed
	case g.deleting[id] > 0:
		return nil, false, fmt.Errorf("session %q: %w", id, engine.ErrNotFound)
	case s != nil:
		return s, false, nil
	}
	s = newSession(g, id)
	g.sessions[id] = s
	return s, true, nil
}

// forget removes a session that is not open any more.
func (g *Gateway) forget(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[s.id] == s {
		delete(g.sessions, s.id)
	}
}

// Rights are a set of rights.
type Rights uint8

// The rights of clients.
const (
	// MayPrompt is to send prompts, and to begin and delete sessions.
	MayPrompt Rights = 1 << iota
	// MayApprove is to answer the agent's questions, and what amounts to that: to change options, such as a mode in
	// which there are none, and to give a session MCP servers that are commands.
	MayApprove
	// MayOperate is to ask about all nodes, and to drain them.
	MayOperate
	// MayCommand is to begin sessions of agents that are not configured, such as command lines. It is to run any command
	// as the user of the server.
	MayCommand
	// MayGrant is to make others owners of a session: what they do then outlives the client's own rights.
	MayGrant

	// MayAll are all rights.
	MayAll = MayPrompt | MayApprove | MayOperate | MayCommand | MayGrant
)

// may reports whether the client has rights.
func (w *Who) may(r Rights) bool { return w.Rights&r == r }

// Who is who a client is, and what it may do with the sessions of its user.
type Who struct {
	User string
	// Name and Role are what others see of the client: what its device is called, and what it may do. Without them
	// it is the user and what follows from the rights.
	Name, Role string
	// Groups are those of the user that rights are about.
	Groups []string
	// Rights are what it may do; to watch needs none.
	Rights Rights
	// Agent reports whether it may use the sessions of an agent, Session whether it may use a session; nil
	// means all. One that may use some sessions begins none.
	Agent   func(name string) bool
	Session func(id string) bool

	owner, standing string // of a session, and the client's role in it: see stand
}

// who returns who a client is. One that has said that it only watches may do nothing else.
func (g *Gateway) who(ctx context.Context) Who {
	who := Who{User: cmp.Or(acphttp.Principal(ctx), "local"), Rights: MayAll}
	if g.cfg.Who != nil {
		who = g.cfg.Who(ctx)
	}
	if c := acp.AgentConnFrom(ctx); c != nil && wishesOf(c).ReadOnly {
		who.Rights, who.Role = 0, RoleViewer
	}
	return who
}

// errRole is why a client may not do something.
func (w *Who) errRole(what string) error {
	text := "you cannot " + what
	switch role := w.role(); role {
	case RoleOwner:
	case RoleApprover:
		text = "you are an approver here: " + text
	default:
		text = "you are a " + role + " here: " + text
	}
	return &jsonrpc.Failure{Message: text, Reason: reasonRole}
}
