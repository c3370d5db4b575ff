package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/internal/sleep"
	"github.com/goacp/acp/jsonrpc"
)

// HiddenMethod is called by a client that shows sessions to somebody, each time that it is hidden or seen. A client that
// never calls it is there, but nobody knows whether anybody looks at it.
var HiddenMethod = jsonrpc.Method[Hidden, HiddenAnswer]{Name: ownmeta.Method + "hidden"}

// PingMethod is called by a client that wants to know whether the gateway is there: browsers can neither send pings over a
// WebSocket nor see those that come.
var PingMethod = jsonrpc.Method[Ping, Pong]{Name: ownmeta.Method + "ping"}

// A Ping says nothing, and neither does a Pong.
type (
	Ping struct{}
	Pong struct{}
)

// Hidden says whether what a client shows can be seen, and which session that is.
type Hidden struct {
	Hidden bool           `json:"hidden"`
	Shows  *acp.SessionID `json:"shows,omitempty"` // "" for none; nil means all that the client is in
}

// A HiddenAnswer says that the gateway knows.
type HiddenAnswer struct{}

// A Waiting is a session that waits for somebody.
type Waiting struct {
	Session, Title string
	Question       bool // a question is open; otherwise a turn has ended

	by         string // who has sent the prompt of the turn
	info       *engine.Session
	shares     []engine.Share
	skip, only []string // users; without only it is all
}

// For reports whether somebody is to be notified, away from the session. A question is for those who may answer it, unless
// somebody of the user sees it. The end of a turn is for the owner of the session and for the user who has sent the prompt,
// unless somebody of the user is there.
func (w *Waiting) For(who Who) bool {
	if w.only != nil && !slices.Contains(w.only, who.User) || slices.Contains(w.skip, who.User) || who.stand(w.info, w.shares) != nil {
		return false
	}
	if w.Question {
		return who.may(MayApprove)
	}
	return who.standing == RoleOwner || w.by == who.User
}

const (
	// waitsPatience is how long a question waits for those who are there, without anybody knowing whether they look, until
	// their user is notified elsewhere.
	waitsPatience = 30 * time.Second
	// waitsRounds is how often that is asked: a page that has lost its network is known to look for two minutes.
	waitsRounds = 10
	// waitsTime is how long other nodes may take, to say who is there and to tell their devices.
	waitsTime = 10 * time.Second
	// maxLookouts bounds how many sessions are looked after at once, so that the end of more turns notifies nobody.
	maxLookouts = 256
)

// A lookout knows who looks at sessions. The zero value is ready for use.
type lookout struct {
	patience time.Duration // 0 means waitsPatience
	hidden   sync.Map      // of *jsonrpc.Conn to Hidden: what a client has said last
	mu       sync.Mutex
	busy     int
}

// attention is how much of it a user has for a session.
type attention int

const (
	absent attention = iota
	there            // a client is, but nobody knows whether anybody looks at it
	looks
)

// hear serves [HiddenMethod].
func (g *Gateway) hear(ctx context.Context, p *Hidden) (*HiddenAnswer, error) {
	q := jsonrpc.RequestFrom(ctx)
	if q == nil {
		return &HiddenAnswer{}, nil
	}
	conn := q.Conn()
	if _, known := g.lookout.hidden.Swap(conn, *p); !known {
		g.work.Go(func() {
			select {
			case <-conn.Done():
			case <-g.ctx.Done():
			}
			g.lookout.hidden.Delete(conn)
		})
	}
	return &HiddenAnswer{}, nil
}

// attentive returns the users who are in a session on this node.
func (g *Gateway) attentive(id string) map[string]attention {
	p := &g.present
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[string]attention)
	for w := range p.in[id] {
		how := there
		if said, ok := g.lookout.hidden.Load(w.session.Conn().Conn()); ok {
			if said := said.(Hidden); said.Hidden || said.Shows != nil && *said.Shows != w.session.ID() {
				continue
			}
			how = looks
		}
		all[w.who.User] = max(all[w.who.User], how)
	}
	return all
}

// rpcAttentive asks another node who is in a session there, and rpcWaits has it tell its devices that one waits.
var (
	rpcAttentive = jsonrpc.Method[wireAttentive, wireAttention]{Name: "attentive"}
	rpcWaits     = jsonrpc.Method[wireWaits, struct{}]{Name: "waits"}
)

type wireAttentive struct {
	ID string `json:"id"`
}

type wireAttention struct {
	Users map[string]attention `json:"users,omitempty"`
}

type wireWaits struct {
	ID       string   `json:"id"`
	Question bool     `json:"question,omitempty"`
	By       string   `json:"by,omitempty"`
	Skip     []string `json:"skip,omitempty"`
	Only     []string `json:"only,omitempty"`
}

func (*wireAttentive) lane() string { return "attentive" } // they hold no session
func (*wireWaits) lane() string     { return "waits" }

// watchers returns the users who are in a session on all nodes that answer in time.
func (g *Gateway) watchers(ctx context.Context, id string) map[string]attention {
	all := g.attentive(id)
	var mu sync.Mutex
	g.eachNode(ctx, waitsTime, func(ctx context.Context, conn *jsonrpc.Conn) {
		res, err := rpcAttentive.Call(ctx, conn, &wireAttentive{id})
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for user, how := range res.Users {
			all[user] = max(all[user], how)
		}
	})
	return all
}

// eachNode calls f for every other node, and returns when that is done or the time has passed.
func (g *Gateway) eachNode(ctx context.Context, limit time.Duration, f func(ctx context.Context, conn *jsonrpc.Conn)) {
	if g.cfg.Nodes == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	nodes, err := g.Members(ctx)
	if err != nil {
		return
	}
	me := g.self().Name
	var asking sync.WaitGroup
	for _, n := range nodes {
		if n.Name == me || !n.Live {
			continue
		}
		asking.Go(func() {
			if l, err := g.link(ctx, n.Name); err == nil {
				f(ctx, l.conn)
			}
		})
	}
	asking.Wait()
}

// tellAll has each node tell its devices that a session waits: each device is known to one of them.
func (g *Gateway) tellAll(ctx context.Context, w *wireWaits) {
	if err := g.tellOwn(ctx, w); err != nil && ctx.Err() == nil {
		g.logger(w.ID).Warn("gateway: devices are not notified that a session waits", "error", err)
	}
	g.eachNode(ctx, waitsTime, func(ctx context.Context, conn *jsonrpc.Conn) { _, _ = rpcWaits.Call(ctx, conn, w) })
}

// tellOwn tells the devices of this node.
func (g *Gateway) tellOwn(ctx context.Context, w *wireWaits) error {
	if g.cfg.Waits == nil {
		return nil
	}
	info, err := g.cfg.Log.Session(ctx, w.ID)
	if err != nil {
		return err
	}
	shares, err := g.cfg.Log.Shares(ctx, w.ID)
	if err != nil {
		return err
	}
	g.cfg.Waits(&Waiting{Session: w.ID, Title: info.Title, Question: w.Question, by: w.By, info: &info, shares: shares, skip: w.Skip, only: w.Only})
	return nil
}

// told serves another node.
func (g *Gateway) told(ctx context.Context, w *wireWaits) (*struct{}, error) {
	return &struct{}{}, g.tellOwn(ctx, w)
}

// lookedAt serves another node.
func (g *Gateway) lookedAt(_ context.Context, p *wireAttentive) (*wireAttention, error) {
	return &wireAttention{g.attentive(p.ID)}, nil
}

// begin reports whether there is room to look after another session. Its end must be reported with end.
func (l *lookout) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy >= maxLookouts {
		return false
	}
	l.busy++
	return true
}

func (l *lookout) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy--
}

// tells reports whether anybody is notified that sessions wait.
func (g *Gateway) tells() bool { return g.cfg.Waits != nil || g.cfg.Nodes != nil }

// lookAfter tells those who are away that a question is open: at once those of whom nobody is there, and after a while
// those of whom nobody is known to look. It returns when that is done or the question has an answer.
func (s *session) lookAfter(a *ask) {
	g := s.g
	if !g.tells() || !g.lookout.begin() {
		return
	}
	defer g.lookout.end()
	w := wireWaits{ID: s.id, Question: true}
	before := g.watchers(a.ctx, s.id)
	for user := range before {
		w.Skip = append(w.Skip, user)
	}
	g.tellAll(a.ctx, &w)
	if len(before) == 0 {
		return
	}
	patience := g.lookout.patience
	if patience == 0 {
		patience = waitsPatience
	}
	// A page that has lost its network is known to look until its connection has ended, minutes later.
	left := w.Skip
	for range waitsRounds {
		if len(left) == 0 || !sleep.For(a.ctx, patience) {
			return
		}
		now, look := g.watchers(a.ctx, s.id), []string(nil)
		w.Only, w.Skip = nil, nil
		for _, user := range left {
			if now[user] == looks {
				look = append(look, user)
			} else {
				w.Only = append(w.Only, user)
			}
		}
		if left = look; len(w.Only) > 0 {
			g.tellAll(a.ctx, &w)
		}
	}
}

// ended tells those who are away that a turn has ended and that nothing else runs. It is called by runTurns.
func (s *session) ended(t *turn, end turnEnd) {
	g := s.g
	if end.refused || end.stop == acp.StopCancelled || s.ctx.Err() != nil || !g.tells() || !g.lookout.begin() {
		return
	}
	by := t.by
	g.work.Go(func() {
		defer g.lookout.end()
		w := wireWaits{ID: s.id, By: by}
		for user := range g.watchers(g.ctx, s.id) { // the session may close meanwhile
			w.Skip = append(w.Skip, user)
		}
		g.tellAll(g.ctx, &w)
	})
}
