package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/ownmeta"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/internal/sleep"
	"github.com/goacp/acp/jsonrpc"
)

// MethodSessions is a notification to clients whose initialize has "sessions": true in its part of _meta. It says what has
// changed in the list of sessions that the client's user may see: a [SessionsChanged].
const MethodSessions = ownmeta.Method + "sessions"

// A SessionsChanged says how a list of sessions has changed.
type SessionsChanged struct {
	Sessions []acp.SessionInfo `json:"sessions"`       // that are new, or are different, as session/list has them
	Removed  []acp.SessionID   `json:"removed"`        // that the client knows, and that its user does not see any more
	More     bool              `json:"more,omitempty"` // too much has changed to say it: the client should list the sessions again
}

const (
	// boardEvery is how long changes are collected, and the least time between two notifications.
	boardEvery = 250 * time.Millisecond
	// boardPoll is how often a node looks for changes of sessions that run on others.
	boardPoll = 5 * time.Second
	// boardRecent is for how long something counts as new when a node looks for the first time.
	boardRecent = 30 * time.Second
	// maxDirty bounds the sessions that have changed and were not looked at, maxPending those that a client is to be
	// sent, and maxShown those that it knows.
	maxDirty   = 1024
	maxPending = 500
	maxShown   = 10_000
	// boardAgain is how long a node waits before it looks again at sessions that it could not read, the first time; then
	// twice as long each time, up to maxBoardAgain.
	boardAgain    = 500 * time.Millisecond
	maxBoardAgain = time.Minute
	// boardPage bounds the sessions of a user that are looked at on others' behalf: the latest.
	boardPage = 100
)

// A board notifies clients of changes of their lists of sessions. The zero value is ready for use.
type board struct {
	once    sync.Once
	bell    chan struct{} // holds one if something has changed
	every   time.Duration // how often others' sessions are looked at; 0 means boardPoll
	listers atomic.Int32

	mu    sync.Mutex
	by    map[*acp.AgentConn]*lister
	dirty map[string]bool
	lost  bool // more has changed than dirty has

	seen map[string]map[string]seenSession // by user and session, what the log had; of the goroutine that runs it
}

// A seenSession is what was seen of a session in the log.
type seenSession struct {
	version int64
	updated time.Time
}

// A lister is a client that is notified of changes.
type lister struct {
	conn *jsonrpc.Conn
	who  Who
	bell chan struct{} // holds one if there is something to send

	mu      sync.Mutex
	pending map[string]*acp.SessionInfo // nil for one that is gone
	shown   map[string]uint64           // sessions that the client knows, with a hash of what it was sent last, or 0
	more    bool

	lists    int                         // lists that the client has asked for and has no answer to
	late     map[string]*acp.SessionInfo // what it was notified of meanwhile, which the answers may not have
	lateMore bool                        // or more than that
}

// changed says that what lists say of a session has changed, or may have. It never waits.
func (g *Gateway) changed(id string) {
	b := &g.board
	if b.listers.Load() == 0 {
		return
	}
	b.mu.Lock()
	if len(b.dirty) < maxDirty {
		b.dirty[id] = true
	} else {
		b.lost = true
	}
	b.mu.Unlock()
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// read has a client notified of changes from now on, once it has the answer to the request of ctx, until it leaves.
func (g *Gateway) read(ctx context.Context, c *acp.AgentConn) {
	q := jsonrpc.RequestFrom(ctx)
	if q == nil || !wishesOf(c).Sessions {
		return
	}
	b := &g.board
	r := &lister{conn: q.Conn(), who: g.who(ctx), bell: make(chan struct{}, 1), pending: make(map[string]*acp.SessionInfo), shown: make(map[string]uint64)}
	b.once.Do(func() {
		b.by, b.dirty, b.bell = make(map[*acp.AgentConn]*lister), make(map[string]bool), make(chan struct{}, 1)
		b.seen = make(map[string]map[string]seenSession)
		g.work.Go(g.runBoard)
	})
	b.mu.Lock()
	twice := b.by[c] != nil
	if !twice {
		b.by[c] = r
	}
	b.mu.Unlock()
	if twice {
		return
	}
	b.listers.Add(1)
	answered := make(chan struct{})
	g.work.Go(func() {
		select {
		case <-answered:
			r.run(g)
		case <-r.conn.Done():
		case <-g.ctx.Done():
		}
		b.listers.Add(-1)
		b.mu.Lock()
		delete(b.by, c)
		b.mu.Unlock()
	})
	q.AfterAnswer(func() { close(answered) })
}

// listed notes that a client was sent a session in a list.
func (b *board) listed(c *acp.AgentConn, id string) {
	if b.listers.Load() == 0 {
		return
	}
	b.mu.Lock()
	r := b.by[c]
	b.mu.Unlock()
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.show(id, 0)
	}
}

// all returns all clients.
func (b *board) all() []*lister {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*lister, 0, len(b.by))
	for _, r := range b.by {
		all = append(all, r)
	}
	return all
}

// runBoard looks at what has changed, until the gateway closes.
func (g *Gateway) runBoard() {
	b := &g.board
	var poll <-chan time.Time
	if g.cfg.Nodes != nil {
		due := time.NewTicker(cmp.Or(b.every, boardPoll))
		defer due.Stop()
		poll = due.C
	}
	var failed unread
	for {
		select {
		case <-b.bell:
		case <-poll:
			g.pollBoard(g.ctx)
		case <-failed.due:
			failed.due = nil
			for id := range failed.ids {
				g.changed(id)
			}
		case <-g.ctx.Done():
			return
		}
		b.mu.Lock()
		dirty, lost := b.dirty, b.lost
		b.dirty, b.lost = make(map[string]bool), false
		b.mu.Unlock()
		counts := g.counts(g.ctx, slices.Collect(maps.Keys(dirty)))
		for id := range dirty {
			err := g.post(g.ctx, id, counts[id])
			if err != nil && g.ctx.Err() == nil {
				g.logger(id).Debug("gateway: clients are not notified of a change of a session yet", "error", err)
			}
			lost = !failed.note(id, err) || lost
		}
		failed.rest()
		if lost {
			for _, r := range b.all() {
				r.again()
			}
		}
		if len(dirty) > 0 && !sleep.For(g.ctx, boardEvery) {
			return
		}
	}
}

// unread are sessions that have changed and could not be read. The zero value has none.
type unread struct {
	ids  map[string]bool
	due  <-chan time.Time // when they are looked at again; nil if that is not known
	wait time.Duration    // for how long was waited last
}

// note notes whether a session could be read. It reports false if there are more than maxDirty that could not.
func (u *unread) note(id string, err error) bool {
	switch {
	case err == nil:
		delete(u.ids, id)
	case len(u.ids) >= maxDirty && !u.ids[id]:
		return false
	case u.ids == nil:
		u.ids = map[string]bool{id: true}
	default:
		u.ids[id] = true
	}
	return true
}

// rest decides when those that could not be read are looked at again.
func (u *unread) rest() {
	switch {
	case len(u.ids) == 0:
		u.due, u.wait = nil, 0
	case u.due == nil:
		u.wait = min(max(2*u.wait, boardAgain), maxBoardAgain)
		u.due = time.After(u.wait)
	}
}

// post has everybody who may see a session notified of what it is now. n is how much
// happens in it.
func (g *Gateway) post(ctx context.Context, id string, n count) error {
	listers := g.board.all()
	info, err := g.cfg.Log.Session(ctx, id)
	gone := errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrDeleted)
	if err != nil && !gone {
		return err
	}
	var shares []engine.Share
	if !gone && slices.ContainsFunc(listers, func(r *lister) bool { return r.who.User != info.Owner }) {
		if shares, err = g.cfg.Log.Shares(ctx, id); err != nil {
			return err
		}
	}
	for _, r := range listers {
		who := r.who
		if gone || who.stand(&info, shares) != nil {
			r.put(id, nil)
			continue
		}
		said := g.sessionInfo(&who, &info, n)
		r.put(id, &said)
	}
	return nil
}

// pollBoard looks for sessions that have changed on other nodes.
func (g *Gateway) pollBoard(ctx context.Context) {
	b := &g.board
	users := make(map[string]bool)
	for _, r := range b.all() {
		if r.who.User != "" {
			users[r.who.User] = true
		}
	}
	for user := range b.seen {
		if !users[user] {
			delete(b.seen, user)
		}
	}
	for user := range users {
		page, err := g.cfg.Log.List(ctx, engine.Query{Reader: user, Limit: boardPage})
		if err != nil {
			continue // the next time
		}
		before, known := b.seen[user]
		now := make(map[string]seenSession, len(page.Sessions))
		for i := range page.Sessions {
			s := &page.Sessions[i]
			now[s.ID] = seenSession{s.Version, s.Updated}
			was, listed := before[s.ID]
			switch {
			case known && (!listed || was.version != s.Version), !known && time.Since(s.Updated) < boardRecent,
				s.State == records.StateRunning && g.session(s.ID) == nil: // questions are not in the version
				g.changed(s.ID)
			}
		}
		for id, was := range before {
			if _, listed := now[id]; !listed && (page.Next == "" || was.updated.After(page.Sessions[len(page.Sessions)-1].Updated)) {
				g.changed(id)
			}
		}
		b.seen[user] = now
	}
}

// sessionInfo returns a session as clients see it in lists. n is how much happens in it.
func (g *Gateway) sessionInfo(who *Who, info *engine.Session, n count) acp.SessionInfo {
	aside := g.aside(info)
	return acp.SessionInfo{
		SessionID: acp.SessionID(info.ID), Cwd: info.Cwd, Title: info.Title, Archived: &aside, UpdatedAt: info.Updated.UTC().Format(time.RFC3339),
		Meta: about(who, info, n),
	}
}

// aside reports whether a session is archived. One of which that cannot be read is not, so that it can be found.
func (g *Gateway) aside(info *engine.Session) bool {
	aside, err := archived(info)
	if err != nil {
		g.logger(info.ID).Warn("gateway: the attributes of a session cannot be read", "error", err)
		return false
	}
	return aside
}

// lists is called before a client's list of sessions is read. The list may be older than what the client is notified of
// until it has the answer; so it is notified of that once more behind the answer.
func (b *board) lists(ctx context.Context, c *acp.AgentConn) {
	if b.listers.Load() == 0 {
		return
	}
	b.mu.Lock()
	r := b.by[c]
	b.mu.Unlock()
	q := jsonrpc.RequestFrom(ctx)
	if r == nil || q == nil {
		return
	}
	r.mu.Lock()
	r.lists++
	r.mu.Unlock()
	q.AfterAnswer(r.listed)
}

// listed is called when the client has the answer to a list.
func (r *lister) listed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lists--
	for id, info := range r.late {
		if info == nil {
			delete(r.shown, id)
		}
		r.hold(id, info)
	}
	if r.lateMore {
		r.more = true
	}
	if len(r.late) > 0 || r.lateMore {
		r.ring()
	}
	if r.lists == 0 {
		r.late, r.lateMore = nil, false
	}
}

// hold has the client sent something, or a notification that it should list the sessions. The caller holds r.mu.
func (r *lister) hold(id string, info *acp.SessionInfo) {
	if _, ok := r.pending[id]; !ok && len(r.pending) >= maxPending {
		r.more = true
		return
	}
	r.pending[id] = info
}

// behind keeps what the client is notified of while it waits for a list. The caller holds r.mu.
func (r *lister) behind(id string, info *acp.SessionInfo) {
	if r.lists == 0 {
		return
	}
	if r.late == nil {
		r.late = make(map[string]*acp.SessionInfo)
	}
	if _, ok := r.late[id]; !ok && len(r.late) >= maxPending {
		r.lateMore = true
		return
	}
	r.late[id] = info
}

// show notes what the client was sent about a session. The caller holds r.mu.
func (r *lister) show(id string, sum uint64) {
	if _, ok := r.shown[id]; !ok && len(r.shown) >= maxShown {
		for other := range r.shown { // it will not be notified of its end
			delete(r.shown, other)
			break
		}
	}
	r.shown[id] = sum
}

// put has the client notified of a session, or that it is gone if info is nil, unless it knows that.
func (r *lister) put(id string, info *acp.SessionInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behind(id, info)
	was, known := r.shown[id]
	if info == nil {
		if !known {
			return
		}
		delete(r.shown, id)
	} else {
		sum := sumOf(info)
		if known && was == sum {
			return
		}
		r.show(id, sum)
	}
	r.hold(id, info)
	r.ring()
}

// sumOf returns a hash of what is said of a session, which is not 0.
func sumOf(info *acp.SessionInfo) uint64 {
	h := fnv.New64a()
	data, err := json.Marshal(info)
	if err != nil {
		return 1
	}
	_, _ = h.Write(data)
	return max(h.Sum64(), 1)
}

// again has the client list the sessions again.
func (r *lister) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.more = true
	r.ring()
}

// ring has the client notified, soon.
func (r *lister) ring() {
	select {
	case r.bell <- struct{}{}:
	default:
	}
}

// take returns what the client is to be sent.
func (r *lister) take() (said SessionsChanged) {
	r.mu.Lock()
	defer r.mu.Unlock()
	said = SessionsChanged{Sessions: []acp.SessionInfo{}, Removed: []acp.SessionID{}, More: r.more}
	if !r.more {
		for id, info := range r.pending {
			if info == nil {
				said.Removed = append(said.Removed, acp.SessionID(id))
			} else {
				said.Sessions = append(said.Sessions, *info)
			}
		}
	}
	clear(r.pending)
	r.more = false
	sort.Slice(said.Sessions, func(i, j int) bool {
		a, b := said.Sessions[i], said.Sessions[j]
		return cmp.Or(cmp.Compare(b.UpdatedAt, a.UpdatedAt), cmp.Compare(a.SessionID, b.SessionID)) < 0
	})
	slices.Sort(said.Removed)
	return said
}

// run notifies the client, until it leaves or the gateway closes.
func (r *lister) run(g *Gateway) {
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	g.work.Go(func() {
		select {
		case <-r.conn.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	for {
		select {
		case <-r.bell:
		case <-ctx.Done():
			return
		}
		if said := r.take(); said.More || len(said.Sessions)+len(said.Removed) > 0 {
			if err := r.conn.Notify(ctx, MethodSessions, said); err != nil {
				return // it has left
			}
		}
		if !sleep.For(ctx, boardEvery) {
			return
		}
	}
}
