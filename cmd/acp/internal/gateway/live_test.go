package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/jsonrpc"
)

// listing is what a client was sent about sessions.
type listing struct {
	changes chan SessionsChanged
	t       *testing.T
}

// aboutSession is what lists say of a session beyond the protocol.
type aboutSession struct {
	Agent, State, Owner, Role string
	Waiting, Here             int
}

func aboutOf(t *testing.T, info *acp.SessionInfo) aboutSession {
	t.Helper()
	var meta map[string]aboutSession
	if err := json.Unmarshal(info.Meta, &meta); err != nil {
		t.Fatal(err)
	}
	return meta[metaKey]
}

// live makes a client one that is notified.
func (w *listing) live(c *acp.Client) {
	c.Meta = json.RawMessage(`{"` + metaKey + `":{"sessions":true}}`)
	c.Extensions = func(mux *jsonrpc.Mux) {
		jsonrpc.Notification[SessionsChanged]{Name: MethodSessions}.Handle(mux, func(_ context.Context, said *SessionsChanged) error {
			w.changes <- *said
			return nil
		})
	}
}

// until waits until what is said of a session is as wanted.
func (w *listing) until(id acp.SessionID, what string, ok func(info *acp.SessionInfo) bool) {
	w.t.Helper()
	for {
		select {
		case said := <-w.changes:
			if i := slices.IndexFunc(said.Sessions, func(s acp.SessionInfo) bool { return s.SessionID == id }); i >= 0 && ok(&said.Sessions[i]) {
				return
			}
			if slices.Contains(said.Removed, id) && ok(nil) {
				return
			}
		case <-w.t.Context().Done():
			w.t.Fatalf("session %s: no notification that %s", id, what)
		}
	}
}

// TestSessionsLive: a client that wants it is notified of each session that its user sees as it comes, changes and goes, on
// any node, and of no other.
func TestSessionsLive(t *testing.T) {
	for version := 1; version <= 2; version++ {
		dir := t.TempDir()
		goOn := make(chan struct{})
		a := newMember(t, dir, "a", talking(goOn))
		b := newMember(t, dir, "b", talking(goOn))
		byUser(a.rig)
		byUser(b.rig)
		b.g.board.every = 50 * time.Millisecond
		for _, node := range []*member{a, b} {
			w := &listing{make(chan SessionsChanged, 1000), t}
			watcher := node.as("ann", version, w.live)
			stranger := &listing{make(chan SessionsChanged, 1000), t}
			other := node.as("bob", version, stranger.live)
			answer := make(chan struct{})
			author := a.as("ann", 2, asking(func(ctx context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
				select {
				case <-answer:
				case <-ctx.Done():
				}
				return req.Allow(), nil
			}))
			s := author.new(t)
			about := func(ok func(aboutSession) bool) func(*acp.SessionInfo) bool {
				return func(info *acp.SessionInfo) bool { return info != nil && ok(aboutOf(t, info)) }
			}
			w.until(s.ID(), "it is there", about(func(said aboutSession) bool { return said.Agent == "test" && said.State == records.StateIdle }))
			reply := s.Prompt(t.Context(), acp.Text("ask"))
			w.until(s.ID(), "it waits", about(func(said aboutSession) bool { return said.State == records.StateRunning && said.Waiting == 1 }))
			close(answer)
			if _, err := reply.Wait(); err != nil {
				t.Fatal(err)
			}
			w.until(s.ID(), "it is idle", about(func(said aboutSession) bool { return said.State == records.StateIdle && said.Waiting == 0 }))
			if _, err := s.SetTitle(t.Context(), "a title"); err != nil {
				t.Fatal(err)
			}
			w.until(s.ID(), "it has a title", func(info *acp.SessionInfo) bool { return info != nil && info.Title == "a title" })
			if err := author.conn.Archive(t.Context(), s.ID()); err != nil {
				t.Fatal(err)
			}
			w.until(s.ID(), "it is archived", func(info *acp.SessionInfo) bool { return info != nil && info.Archived != nil && *info.Archived })
			if n := len(stranger.changes); n > 0 {
				t.Errorf("another user is notified of %d changes: %+v", n, <-stranger.changes)
			}
			if node == a { // those of other nodes are noticed when something else changes
				author.share(t, s.ID(), "bob", RoleViewer)
				stranger.until(s.ID(), "it is shared", about(func(said aboutSession) bool { return said.Owner == "ann" && said.Role == RoleViewer }))
				author.share(t, s.ID(), "bob", RoleNone)
				stranger.until(s.ID(), "it is not shared any more", func(info *acp.SessionInfo) bool { return info == nil })
			}
			if err := author.conn.Delete(t.Context(), s.ID()); err != nil {
				t.Fatal(err)
			}
			w.until(s.ID(), "it is gone", func(info *acp.SessionInfo) bool { return info == nil })
			_, _, _ = watcher.conn.Close(), other.conn.Close(), author.conn.Close()
		}
	}
}

// TestSessionsListed: a client is notified of the end of a session that it has from a list only.
func TestSessionsListed(t *testing.T) {
	r := newRig(t, talking(nil))
	author := r.connect(2)
	s := author.new(t)
	w := &listing{make(chan SessionsChanged, 100), t}
	c := r.connect(2, w.live)
	if got := c.listed(t); len(got) != 1 {
		t.Fatal(got)
	}
	if err := author.conn.Delete(t.Context(), s.ID()); err != nil {
		t.Fatal(err)
	}
	w.until(s.ID(), "it is gone", func(info *acp.SessionInfo) bool { return info == nil })
}

// TestSessionsBounds: however much changes, what waits for a client is bounded, and then it is to list the sessions again.
func TestSessionsBounds(t *testing.T) {
	r := &lister{bell: make(chan struct{}, 1), pending: make(map[string]*acp.SessionInfo), shown: make(map[string]uint64)}
	for i := range maxPending + 1 {
		r.put(fmt.Sprint(i), &acp.SessionInfo{SessionID: acp.SessionID(fmt.Sprint(i))})
	}
	if len(r.pending) != maxPending {
		t.Errorf("%d wait", len(r.pending))
	}
	if said := r.take(); !said.More || len(said.Sessions) > 0 || len(r.pending) > 0 {
		t.Errorf("%t, %d sessions, %d are left", said.More, len(said.Sessions), len(r.pending))
	}
	r.put("3", &acp.SessionInfo{SessionID: "3"}) // as it was
	if said := r.take(); said.More || len(said.Sessions) > 0 {
		t.Errorf("%+v", said)
	}
	r.put("unknown", nil)
	r.put("3", nil)
	if said := r.take(); len(said.Removed) != 1 || said.Removed[0] != "3" {
		t.Errorf("%+v", said)
	}
	for i := range maxShown + 10 {
		r.show(fmt.Sprint(i), 0)
	}
	if len(r.shown) > maxShown {
		t.Errorf("%d are known", len(r.shown))
	}
	g := new(Gateway)
	g.board.dirty, g.board.bell = make(map[string]bool), make(chan struct{}, 1)
	g.changed("nobody listens")
	g.board.listers.Store(1)
	for i := range maxDirty + 1 {
		g.changed(fmt.Sprint(i))
	}
	if len(g.board.dirty) != maxDirty || !g.board.lost || g.board.dirty["nobody listens"] {
		t.Errorf("%d have changed", len(g.board.dirty))
	}
}

// TestSessionsManyChanges: while a session changes all the time, a client that does not read holds up nobody, and learns the
// last state.
func TestSessionsManyChanges(t *testing.T) {
	r := newRig(t, talking(nil))
	w := &listing{make(chan SessionsChanged, 1000), t}
	r.connect(2, w.live)
	s := r.connect(2).new(t)
	for i := range 30 {
		if _, err := s.SetTitle(t.Context(), fmt.Sprint("title ", i)); err != nil {
			t.Fatal(err)
		}
	}
	w.until(s.ID(), "the last title", func(info *acp.SessionInfo) bool { return info != nil && info.Title == "title 29" })
}

// TestSessionsPace: a client is notified every boardEvery at most, and then of the last state.
func TestSessionsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type notified struct {
			at    time.Time
			title string
		}
		all := make(chan notified, 1000)
		theirs, ours := jsonrpc.Pipe()
		mux := new(jsonrpc.Mux)
		jsonrpc.Notification[SessionsChanged]{Name: MethodSessions}.Handle(mux, func(_ context.Context, said *SessionsChanged) error {
			all <- notified{time.Now(), said.Sessions[0].Title}
			return nil
		})
		far, near := jsonrpc.NewConn(theirs, jsonrpc.Config{Mux: mux}), jsonrpc.NewConn(ours, jsonrpc.Config{})
		g := new(Gateway)
		g.ctx, g.stop = context.WithCancel(t.Context())
		r := &lister{conn: near, bell: make(chan struct{}, 1), pending: make(map[string]*acp.SessionInfo), shown: make(map[string]uint64)}
		g.work.Go(func() { r.run(g) })
		const changes, each = 500, 10 * time.Millisecond
		for i := range changes {
			r.put("s", &acp.SessionInfo{SessionID: "s", Title: fmt.Sprint(i)})
			time.Sleep(each)
		}
		time.Sleep(boardEvery)
		synctest.Wait()
		close(all)
		var last notified
		n := 0
		for said := range all {
			if gap := said.at.Sub(last.at); n > 0 && gap < boardEvery {
				t.Errorf("%q comes %v after %q", said.title, gap, last.title)
			}
			last = said
			n++
		}
		if least := int(changes * each / boardEvery); n < least || last.title != fmt.Sprint(changes-1) {
			t.Errorf("%d notifications, at least %d, and the last one is of %q", n, least, last.title)
		}
		g.stop()
		_, _ = far.Close(), near.Close()
		_, _ = far.Wait(), near.Wait()
		g.work.Wait()
	})
}

// TestSessionsOvertaken: a client whose list was read before a change, and comes after the notification of that, is notified
// of it once more.
func TestSessionsOvertaken(t *testing.T) {
	r := newRig(t, talking(nil))
	var hold atomic.Bool
	reading, goOn := make(chan struct{}), make(chan struct{})
	r.g.cfg.Who = func(context.Context) Who {
		who := Who{User: "ann", Rights: MayPrompt | MayApprove}
		if hold.Swap(false) { // which is the list: it has been read when this is called
			first := sync.OnceFunc(func() {
				close(reading)
				<-goOn
			})
			who.Agent = func(string) bool { first(); return true }
		}
		return who
	}
	author := r.connect(2)
	s := author.new(t)
	if _, err := s.SetTitle(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	w := &listing{make(chan SessionsChanged, 100), t}
	c := r.connect(2, w.live)
	hold.Store(true)
	titles := make(chan string, 1)
	go func() {
		defer close(titles)
		for info, err := range c.conn.ListSessions(t.Context(), acp.ListOptions{}) {
			if err != nil {
				t.Error(err)
				return
			}
			titles <- info.Title
		}
	}()
	<-reading
	if _, err := s.SetTitle(t.Context(), "new"); err != nil {
		t.Fatal(err)
	}
	isNew := func(info *acp.SessionInfo) bool { return info != nil && info.Title == "new" }
	w.until(s.ID(), "it has a new title", isNew)
	close(goOn)
	if title := <-titles; title != "old" {
		t.Fatalf("the list has the title %q", title)
	}
	w.until(s.ID(), "it has a new title still", isNew)
}

// TestSessionsLate: what a client is notified of behind a list is bounded, and is what it was notified of last.
func TestSessionsLate(t *testing.T) {
	r := &lister{bell: make(chan struct{}, 1), pending: make(map[string]*acp.SessionInfo), shown: make(map[string]uint64)}
	info := func(id, title string) *acp.SessionInfo {
		return &acp.SessionInfo{SessionID: acp.SessionID(id), Title: title}
	}
	r.put("before", info("before", "1"))
	r.take()
	r.lists = 2
	r.put("changes", info("changes", "1"))
	r.put("changes", info("changes", "2"))
	r.put("before", info("before", "1")) // as it is known
	r.put("unknown", nil)                // which the list may have
	if said := r.take(); len(said.Sessions) != 1 || len(said.Removed) != 0 {
		t.Errorf("before the answer: %+v", said)
	}
	for range 2 {
		r.show("unknown", 0)
		r.listed()
		said := r.take()
		if len(said.Sessions) != 2 || said.Sessions[0].Title != "1" || said.Sessions[1].Title != "2" || len(said.Removed) != 1 || said.More {
			t.Errorf("behind the answer: %+v", said)
		}
		if _, known := r.shown["unknown"]; known {
			t.Error("it is known still")
		}
	}
	if r.lists != 0 || len(r.late) != 0 {
		t.Errorf("%d lists, %d sessions", r.lists, len(r.late))
	}
	r.lists = 1
	for i := range maxPending + 1 {
		r.put(fmt.Sprint(i), info(fmt.Sprint(i), ""))
		r.take()
	}
	if len(r.late) != maxPending {
		t.Errorf("%d wait for the answer", len(r.late))
	}
	r.listed()
	if said := r.take(); !said.More || r.lateMore {
		t.Errorf("%+v", said)
	}
}

// A forgetful database does not find out about a session for some time.
type forgetful struct {
	engine.Database
	id    string
	fails atomic.Int32
}

func (d *forgetful) Session(ctx context.Context, id string) (engine.Session, error) {
	if id == d.id && d.fails.Add(-1) >= 0 {
		return engine.Session{}, errors.New("the database is away")
	}
	return d.Database.Session(ctx, id)
}

// TestSessionsUnread: a session that cannot be read for a while, or not all of it, makes no client list the sessions again:
// clients are notified of it as soon as it can be read, or of what can be.
func TestSessionsUnread(t *testing.T) {
	dir := t.TempDir()
	d := &forgetful{id: "s_away"}
	a := joinedMember(t, dir, "a", logOver(t, dir, leaseOfTests, &d.Database, d), talking(nil))
	w := &listing{make(chan SessionsChanged, 100), t}
	c := a.connect(2, w.live)
	for _, s := range []engine.Session{{ID: "s_bad", Attributes: json.RawMessage(`{"archived":"perhaps"}`)}, {ID: d.id}} {
		s.Agent, s.Cwd, s.Owner, s.State = "test", "/project", "local", records.StateIdle
		if _, err := a.log.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	d.fails.Store(2)
	for _, id := range []string{"s_bad", d.id} {
		a.g.changed(id)
	}
	left := map[acp.SessionID]bool{"s_bad": true, "s_away": true}
	for len(left) > 0 {
		said := <-w.changes
		if said.More {
			t.Error("the client is to list the sessions again")
		}
		for _, s := range said.Sessions {
			delete(left, s.SessionID)
		}
	}
	if n := d.fails.Load(); n >= 0 {
		t.Errorf("it could be read %d tries early", n)
	}
	got := c.listed(t)
	slices.Sort(got)
	if !slices.Equal(got, []acp.SessionID{"s_away", "s_bad"}) {
		t.Errorf("listed: %q", got)
	}
	synctest.Test(t, func(t *testing.T) {
		var u unread
		for i := range maxDirty {
			u.note(fmt.Sprint(i), errors.New("away"))
		}
		if u.note("more", errors.New("away")) || !u.note("1", errors.New("away")) || len(u.ids) != maxDirty {
			t.Errorf("%d are to be read", len(u.ids))
		}
		begin := time.Now()
		for range 10 {
			u.rest()
			<-u.due
			u.due = nil
		}
		if took := time.Since(begin); took != 127*boardAgain+3*maxBoardAgain {
			t.Errorf("10 tries in %v", took)
		}
	})
}
