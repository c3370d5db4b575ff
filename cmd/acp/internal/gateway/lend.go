package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/jsonrpc"
)

// LendMethod makes the client that calls it the one whose files and terminals the agent of a session uses, in place of
// the one there is. The client must have the session open, and be of version 1 and lend something.
var LendMethod = jsonrpc.Method[LendRequest, LendAnswer]{Name: ownmeta.Method + "lend"}

// A LendRequest names a session.
type LendRequest struct {
	SessionID acp.SessionID `json:"sessionId"`
}

// A LendAnswer says what of that the agent uses: it knows what it may use since it was started.
type LendAnswer struct {
	Read      bool `json:"readTextFile"`
	Write     bool `json:"writeTextFile"`
	Terminals bool `json:"terminal"`
}

// lent is what of a client an agent may use.
type lent struct {
	Read      bool `json:"read,omitempty"`
	Write     bool `json:"write,omitempty"`
	Terminals bool `json:"terminals,omitempty"`
}

// lentBy returns what a client lends.
func lentBy(c *acp.AgentConn) lent {
	caps := c.CapabilitiesV1()
	if caps == nil {
		return lent{}
	}
	return lent{caps.FS.ReadTextFile, caps.FS.ReadTextFile && caps.FS.WriteTextFile, caps.Terminal}
}

// A lending is whose files and terminals the agent of a session uses: those of one client, which has begun the session or
// has asked for it.
type lending struct {
	mu        sync.Mutex
	lender    *watcher
	terminals map[acpv1.TerminalID]*watcher // that the agent has not released, and whose they are
}

// maxTerminals bounds the terminals that an agent has of clients.
const maxTerminals = 64

// releaseTime is how long a client may take to release a terminal.
const releaseTime = 5 * time.Second

// errLender is why an agent cannot use files or terminals.
func errLender(what string) error {
	return &jsonrpc.Failure{Message: "no client that is attached to the session lends " + what, Reason: "no_lender"}
}

// take makes a client the one that lends.
func (l *lending) take(w *watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lender = w
}

// has reports whether a client lends.
func (l *lending) has() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lender != nil
}

// from returns the client that lends, if it has what an agent needs.
func (l *lending) from(what string, needs func(lent) bool) (*watcher, error) {
	l.mu.Lock()
	w := l.lender
	l.mu.Unlock()
	if w == nil || !needs(lentBy(w.session.Conn())) {
		return nil, errLender(what)
	}
	return w, nil
}

// leave is called when a client leaves. Its terminals are released, if it is there still.
func (s *session) stopsLending(w *watcher) {
	l := &s.lending
	l.mu.Lock()
	if l.lender == w {
		l.lender = nil
	}
	var left []acpv1.TerminalID
	for id, by := range l.terminals {
		if by == w {
			left = append(left, id)
			delete(l.terminals, id)
		}
	}
	l.mu.Unlock()
	if len(left) > 0 {
		s.g.work.Go(func() { releaseTerminals(w, left) })
	}
}

// releaseTerminals releases terminals of a client whose agent does not use them any more.
func releaseTerminals(w *watcher, ids []acpv1.TerminalID) {
	conn := w.session.Conn().Conn()
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	for _, id := range ids {
		if conn.Err() != nil {
			return // it has released them itself
		}
		req := &acpv1.ReleaseTerminalRequest{SessionID: acpv1.SessionID(w.id), TerminalID: id}
		if _, err := acpv1.MethodTerminalRelease.Call(ctx, conn, req); err != nil {
			w.g.logger(w.id).Info("gateway: a client has not released a terminal", "error", err)
		}
	}
}

// lendCall asks a client for something of its own on behalf of the agent, unless the client leaves.
func lendCall[P, R any](ctx context.Context, w *watcher, m jsonrpc.Method[P, R], req *P) (*R, error) {
	ctx, cancel := either(ctx, w.ctx)
	defer cancel()
	res, err := m.Call(ctx, w.session.Conn().Conn(), req)
	answer := (*jsonrpc.Error)(nil)
	if err != nil && !errors.As(err, &answer) && w.ctx.Err() != nil {
		return nil, errLender(m.Name + " any more")
	}
	return res, err
}

// lentFiles are the files of the client that lends.
type lentFiles struct{ s *session }

// ReadTextFile implements [acp.FileSystem].
func (f lentFiles) ReadTextFile(ctx context.Context, req *acpv1.ReadTextFileRequest) (*acpv1.ReadTextFileResponse, error) {
	w, err := f.s.lending.from("files", func(l lent) bool { return l.Read })
	if err != nil {
		return nil, err
	}
	r := *req
	r.SessionID = acpv1.SessionID(f.s.id)
	return lendCall(ctx, w, acpv1.MethodFSReadTextFile, &r)
}

// WriteTextFile implements [acp.FileSystem].
func (f lentFiles) WriteTextFile(ctx context.Context, req *acpv1.WriteTextFileRequest) (*acpv1.WriteTextFileResponse, error) {
	w, err := f.s.lending.from("files to write", func(l lent) bool { return l.Write })
	if err != nil {
		return nil, err
	}
	r := *req
	r.SessionID = acpv1.SessionID(f.s.id)
	return lendCall(ctx, w, acpv1.MethodFSWriteTextFile, &r)
}

// lentTerminals are the terminals of clients that an agent uses.
type lentTerminals struct{ s *session }

// CreateTerminal implements [acp.TerminalHost].
func (t lentTerminals) CreateTerminal(ctx context.Context, req *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error) {
	w, err := t.s.lending.from("terminals", func(l lent) bool { return l.Terminals })
	if err != nil {
		return nil, err
	}
	l := &t.s.lending
	l.mu.Lock()
	n := len(l.terminals)
	l.mu.Unlock()
	if n >= maxTerminals {
		return nil, &jsonrpc.Failure{Message: fmt.Sprintf("the session has %d terminals, which is the most", n), Reason: "terminals"}
	}
	r := *req
	r.SessionID = acpv1.SessionID(t.s.id)
	res, err := lendCall(ctx, w, acpv1.MethodTerminalCreate, &r)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	_, taken := l.terminals[res.TerminalID] // by another client
	if !taken && w.ctx.Err() == nil {
		if l.terminals == nil {
			l.terminals = make(map[acpv1.TerminalID]*watcher)
		}
		l.terminals[res.TerminalID] = w
		l.mu.Unlock()
		return res, nil
	}
	l.mu.Unlock()
	releaseTerminals(w, []acpv1.TerminalID{res.TerminalID})
	return nil, errLender("terminals any more")
}

// of returns whose terminal it is.
func (t lentTerminals) of(id acpv1.TerminalID) (*watcher, error) {
	l := &t.s.lending
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.terminals[id]; w != nil {
		return w, nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeResourceNotFound, "there is no terminal %.100q, or its client has left", id)
}

// TerminalOutput implements [acp.TerminalHost].
func (t lentTerminals) TerminalOutput(ctx context.Context, req *acpv1.TerminalOutputRequest) (*acpv1.TerminalOutputResponse, error) {
	w, err := t.of(req.TerminalID)
	if err != nil {
		return nil, err
	}
	r := *req
	r.SessionID = acpv1.SessionID(t.s.id)
	return lendCall(ctx, w, acpv1.MethodTerminalOutput, &r)
}

// WaitForTerminalExit implements [acp.TerminalHost].
func (t lentTerminals) WaitForTerminalExit(ctx context.Context, req *acpv1.WaitForTerminalExitRequest) (*acpv1.WaitForTerminalExitResponse, error) {
	w, err := t.of(req.TerminalID)
	if err != nil {
		return nil, err
	}
	r := *req
	r.SessionID = acpv1.SessionID(t.s.id)
	return lendCall(ctx, w, acpv1.MethodTerminalWaitForExit, &r)
}

// KillTerminal implements [acp.TerminalHost].
func (t lentTerminals) KillTerminal(ctx context.Context, req *acpv1.KillTerminalRequest) (*acpv1.KillTerminalResponse, error) {
	w, err := t.of(req.TerminalID)
	if err != nil {
		return nil, err
	}
	r := *req
	r.SessionID = acpv1.SessionID(t.s.id)
	return lendCall(ctx, w, acpv1.MethodTerminalKill, &r)
}

// ReleaseTerminal implements [acp.TerminalHost].
func (t lentTerminals) ReleaseTerminal(ctx context.Context, req *acpv1.ReleaseTerminalRequest) (*acpv1.ReleaseTerminalResponse, error) {
	w, err := t.of(req.TerminalID)
	if err != nil {
		return nil, err
	}
	l := &t.s.lending
	l.mu.Lock()
	delete(l.terminals, req.TerminalID)
	l.mu.Unlock()
	r := *req
	r.SessionID = acpv1.SessionID(t.s.id)
	return lendCall(ctx, w, acpv1.MethodTerminalRelease, &r)
}

// ReleaseSession implements [acp.TerminalHost].
func (t lentTerminals) ReleaseSession(acpv1.SessionID) {
	l := &t.s.lending
	l.mu.Lock()
	left := make(map[*watcher][]acpv1.TerminalID)
	for id, w := range l.terminals {
		left[w] = append(left[w], id)
	}
	clear(l.terminals)
	l.mu.Unlock()
	for w, ids := range left {
		t.s.g.work.Go(func() { releaseTerminals(w, ids) })
	}
}

// Close implements [acp.TerminalHost].
func (t lentTerminals) Close() error {
	t.ReleaseSession("")
	return nil
}

// offer says what the agent may use that is being started: what the client lends that begins the session, or that lends
// it now. The agent knows it until it ends.
func (s *session) offer(ctx context.Context) error {
	s.mu.Lock()
	known, begins := s.known, s.info.AgentSession == ""
	s.mu.Unlock()
	offered := lent{}
	if begins {
		offered = known.Lent
	} else if w, err := s.lending.from("", func(lent) bool { return true }); err == nil {
		offered = lentBy(w.session.Conn())
	}
	if offered == known.Offered {
		return nil
	}
	return s.keep(ctx, func(a *attributes) { a.Offered = offered })
}

// lend sets what the agent may use of clients.
func (s *session) lend(c *acp.Client) {
	s.mu.Lock()
	offered := s.known.Offered
	s.mu.Unlock()
	switch files := (lentFiles{s}); {
	case offered.Write:
		c.Files = files
	case offered.Read:
		c.Files = acp.ReadOnly(files)
	}
	if offered.Terminals {
		c.Terminals = func(*acp.ClientConn) acp.TerminalHost { return lentTerminals{s} }
	}
}

// lends registers [LendMethod].
func (g *Gateway) lends(mux *jsonrpc.Mux) {
	LendMethod.Handle(mux, func(ctx context.Context, r *LendRequest) (*LendAnswer, error) {
		c := acp.AgentConnFrom(ctx)
		if c == nil {
			return nil, acp.SessionNotFound(r.SessionID)
		}
		as, ok := c.Session(r.SessionID)
		if !ok {
			return nil, acp.SessionNotFound(r.SessionID)
		}
		return g.lend(ctx, as)
	})
}

// lane is the session's.
func (r *LendRequest) lane() string { return string(r.SessionID) }

// lend makes a client the one that lends to a session.
func (g *Gateway) lend(ctx context.Context, as *acp.AgentSession) (*LendAnswer, error) {
	w, ok := as.Value.(*watcher)
	if !ok {
		return nil, acp.SessionNotFound(as.ID())
	}
	who, err := w.entitled(ctx)
	if err != nil {
		return nil, err
	}
	// Somebody else could give the agent of the session's owner whatever files it reads.
	if !who.may(MayPrompt) || who.owner != who.User {
		return nil, who.errRole("lend files and terminals")
	}
	mine := lentBy(as.Conn())
	if mine == (lent{}) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the client lends neither files nor terminals")
	}
	p, err := w.here(ctx)
	if err != nil {
		return nil, err
	}
	s, ok := p.(*session)
	if !ok {
		return nil, &jsonrpc.Failure{Message: "the session runs on another node, where nothing can be lent to it", Reason: "node"}
	}
	s.lending.take(w)
	if w.ctx.Err() != nil { // meanwhile
		s.stopsLending(w)
	}
	s.mu.Lock()
	o := s.known.Offered
	s.mu.Unlock()
	return &LendAnswer{o.Read && mine.Read, o.Write && mine.Write, o.Terminals && mine.Terminals}, nil
}

// lendOn makes a client that has opened a session, unless that has failed, the one that lends to it if it wants that. If
// it cannot be that, nothing is lent; the client can ask for the reason with [LendMethod]. While the session has no place,
// that waits: the client looks for the next one only once it has the answer.
func (g *Gateway) lendOn(as *acp.AgentSession, wanted bool, err error) error {
	w, ok := as.Value.(*watcher)
	if err != nil || !wanted || !ok {
		return err
	}
	lend := func() error {
		_, err := g.lend(w.ctx, as)
		if err != nil && !errors.Is(err, errMoving) {
			g.logger(w.id).Info("gateway: a client cannot lend", "error", err)
		}
		return err
	}
	select {
	case <-w.place().gone():
		g.work.Go(func() {
			for errors.Is(lend(), errMoving) {
			}
		})
	default:
		_ = lend()
	}
	return nil
}
