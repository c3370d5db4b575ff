package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// hearing is what a gateway has said to a client beyond the protocol.
type hearing struct {
	presence chan Presence
	decided  chan Decided
	queued   chan Queued
}

// hears makes a client ask for presence, and collects what it gets.
func hears(readOnly bool) (*hearing, func(*acp.Client)) {
	h := &hearing{make(chan Presence, 100), make(chan Decided, 100), make(chan Queued, 100)}
	return h, func(c *acp.Client) {
		c.Meta = json.RawMessage(fmt.Sprintf(`{%q:{"presence":true,"readOnly":%v}}`, metaKey, readOnly))
		c.Extensions = func(mux *jsonrpc.Mux) {
			jsonrpc.Notification[Presence]{Name: MethodPresence}.Handle(mux, func(_ context.Context, p *Presence) error { h.presence <- *p; return nil })
			jsonrpc.Notification[Decided]{Name: MethodDecided}.Handle(mux, func(_ context.Context, p *Decided) error { h.decided <- *p; return nil })
			jsonrpc.Notification[Queued]{Name: MethodQueued}.Handle(mux, func(_ context.Context, p *Queued) error { h.queued <- *p; return nil })
		}
	}
}

// until waits until a client knows how many are there, and returns who.
func (h *hearing) until(n int) Presence {
	for {
		if p := <-h.presence; len(p.People)+p.More == n {
			return p
		}
	}
}

// TestPresence: those who ask for it learn who is there, and who has answered; the others get nothing of it.
func TestPresence(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		one, asOne := hears(false)
		two, asTwo := hears(false)
		never := asking(func(ctx context.Context, _ *acp.PermissionRequest) (acp.PermissionDecision, error) {
			<-ctx.Done()
			return acp.CancelPermission(), ctx.Err()
		})
		a := r.connect(version, asOne, never)
		s := a.new(t)
		if got := one.until(1); !cmp.Equal(got, Presence{SessionID: s.ID(), People: []Person{{"local", "approver", true}}}) {
			t.Errorf("alone: %+v", got)
		}
		plain := r.connect(version, func(c *acp.Client) { // has not asked for it
			_, listen := hears(false)
			listen(c)
			c.Meta = nil
		}, never)
		plain.load(t, s.ID())
		named := make(chan json.RawMessage, 1)
		b := r.connect(version, asTwo, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
			named <- req.Meta
			return req.Allow(), nil
		}))
		theirs := b.load(t, s.ID())
		one.until(3)
		two.until(3)
		var meta map[string]struct {
			Cursor uint64
			People []Person
		}
		if err := json.Unmarshal(theirs.Meta(), &meta); err != nil || len(meta[metaKey].People) != 2 {
			t.Errorf("_meta of the answer: %s, %v", theirs.Meta(), err)
		}
		say(t, s, "ask")
		if q := <-one.queued; q.SessionID != s.ID() || q.Before != 0 {
			t.Errorf("queued: %+v", q)
		}
		want := Decided{SessionID: s.ID(), Title: "Really?", By: "local", Outcome: "Allow"}
		got := <-one.decided
		var question map[string]struct{ Ask string }
		if err := json.Unmarshal(<-named, &question); err != nil || question[metaKey].Ask == "" {
			t.Errorf("the question has no name: %v", err)
		}
		want.Ask, want.Option = question[metaKey].Ask, "allow_once"
		if want.Outcome = got.Outcome; got != want || !strings.HasPrefix(got.Outcome, "Allow") {
			t.Errorf("decided: %+v", got)
		}
		if got := <-two.decided; !got.You {
			t.Errorf("decided, for the one who did: %+v", got)
		}
		_ = b.conn.Close()
		one.until(2)
		for r.g.Busy() != (Busy{Clients: 2}) { // the turn leaves the queue after its answer
			runtime.Gosched()
		}
	})
}

// TestReadOnly: a client that says it only watches is not asked, can send nothing, and can change and begin no session.
func TestReadOnly(t *testing.T) {
	r := newRig(t, talking(nil))
	a := r.connect(2, asking(func(_ context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
		return req.Allow(), nil
	}))
	s := a.new(t)
	watching, as := hears(true)
	b := r.connect(2, as, asking(func(context.Context, *acp.PermissionRequest) (acp.PermissionDecision, error) {
		t.Error("a watcher was asked")
		return acp.CancelPermission(), nil
	}))
	theirs := b.load(t, s.ID())
	if p := watching.until(2); p.People[0].Role != "viewer" && p.People[1].Role != "viewer" {
		t.Errorf("%+v", p)
	}
	say(t, s, "ask")
	if _, err := theirs.Prompt(t.Context(), acp.Text("hi")).Wait(); err == nil || !strings.Contains(err.Error(), "cannot send prompts") {
		t.Error(err)
	}
	for what, f := range map[string]func() error{
		"delete sessions": func() error { return b.conn.Delete(t.Context(), s.ID()) },
		"share this session": func() error {
			_, err := ShareMethod.Call(t.Context(), b.conn.Conn(), &ShareRequest{SessionID: s.ID(), User: "ben", Role: RoleViewer})
			return err
		},
		"begin sessions": func() error {
			_, err := b.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/project"})
			return err
		},
		"drain nodes": func() error {
			_, err := DrainMethod.Call(t.Context(), b.conn.Conn(), &DrainRequest{})
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "you are a viewer here: you cannot "+what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := a.conn.Delete(t.Context(), s.ID()); err != nil { // it is there still
		t.Error(err)
	}
}

// TestRunsAt: a client that comes while a turn runs learns that it does.
func TestRunsAt(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, talking(goOn))
	a := r.connect(2)
	s := a.new(t)
	say(t, s, "first")
	reply := s.Prompt(t.Context(), acp.Text("wait"))
	a.seen.until(t, "agent: waiting")
	states := make(chan string, 100)
	b := r.connect(2, func(c *acp.Client) {
		c.Update = func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			switch u.Update.(type) {
			case *acp.RunningStateUpdate:
				states <- "running"
			case *acp.IdleStateUpdate:
				states <- "idle"
			}
		}
	})
	b.load(t, s.ID())
	for range 10 {
		if <-states == "running" {
			break
		}
	}
	close(goOn)
	if _, err := reply.Wait(); err != nil {
		t.Error(err)
	}
	if got := <-states; got != "idle" {
		t.Error(got)
	}
}

// TestCrowd: the people who are named are bounded, and so are their names.
func TestCrowd(t *testing.T) {
	var p present
	for i := range maxPeople + 5 {
		w := &watcher{g: new(Gateway), id: "s", who: Who{User: "u", Name: fmt.Sprintf("%02d%s", i, strings.Repeat("é", 100))}, ctx: t.Context()}
		p.enter(w)
	}
	got := p.people("s", nil)
	if len(got.People) != maxPeople || got.More != 5 || p.count("s") != maxPeople+5 {
		t.Errorf("%d, %d more", len(got.People), got.More)
	}
	if name := got.People[0].Name; len(name) > maxPersonName+len("…") || !strings.HasPrefix(name, "00é") {
		t.Error(name)
	}
}

// A fakeSeat is the attendance of a client.
type fakeSeat struct{ away atomic.Bool }

func (s *fakeSeat) Present() bool               { return !s.away.Load() }
func (s *fakeSeat) Notify(func()) (stop func()) { return func() {} }

// TestKilledIsAway: a client that was killed does not count as here while its connection lives on, and sees itself.
func TestKilledIsAway(t *testing.T) {
	var p present
	var all []*watcher
	seat := new(fakeSeat)
	for i, s := range []*fakeSeat{seat, new(fakeSeat)} {
		w := &watcher{g: new(Gateway), id: "s", who: Who{User: "u", Name: fmt.Sprint(i)}, ctx: t.Context(), seat: s}
		p.enter(w)
		all = append(all, w)
	}
	if n, there := p.count("s"), p.people("s", nil).People; n != 2 || len(there) != 2 {
		t.Errorf("%d are here: %v", n, there)
	}
	seat.away.Store(true)
	if n, there := p.count("s"), p.people("s", all[1]).People; n != 1 || len(there) != 1 || !there[0].You {
		t.Errorf("%d are here: %v", n, there)
	}
	if there := p.people("s", all[0]).People; len(there) != 2 {
		t.Errorf("of itself it sees %v", there)
	}
}
