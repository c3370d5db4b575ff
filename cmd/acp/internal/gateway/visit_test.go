package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

// through sends a prompt through a visit and waits for its end.
func through(t *testing.T, v *visit, m *turn) turnEnd {
	t.Helper()
	m.by, m.done = local, make(chan struct{})
	if m.content == nil {
		m.content = []acp.ContentBlock{acp.Text("hello")}
	}
	if _, err := v.submit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	select {
	case <-m.done:
		return m.turnEnd
	case <-v.gone():
		t.Fatal("the visit has ended: ", context.Cause(v.ctx))
		return turnEnd{}
	}
}

// pair returns two nodes, the first of which owns a session.
func pair(t *testing.T, goOn <-chan struct{}) (a, b *member, first *client, s *acp.ClientSession) {
	dir := t.TempDir()
	a = newMember(t, dir, "a", talking(goOn))
	b = newMember(t, dir, "b", talking(nil))
	first = a.connect(1)
	return a, b, first, first.new(t)
}

// visiting visits a session on node a.
func (m *member) visiting(t *testing.T, id acp.SessionID) *visit {
	t.Helper()
	v, err := m.g.visit(t.Context(), "a", string(id), false)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// queued waits until that many prompts run or wait in a session of the node.
func (m *member) queued(id acp.SessionID, want int) {
	s := m.g.session(string(id))
	for n := -1; n != want; {
		s.mu.Lock()
		n = len(s.queue)
		s.mu.Unlock()
	}
}

// TestVisitAfterAnother: the end of a visit, of which the owner may not know when the next one begins, leaves that alone.
func TestVisitAfterAnother(t *testing.T) {
	a, b, _, s := pair(t, nil)
	for i := range 20 {
		v := b.visiting(t, s.ID())
		if end := through(t, v, &turn{id: acp.MessageID(fmt.Sprint("m", i))}); end.err != nil {
			t.Fatal(i, end.err)
		}
		switch i % 2 {
		case 0: // as if the owner had not got the message that says so
			v.end(context.Canceled)
		case 1: // which comes late
			go v.rest()
			<-v.gone()
		}
		for b.visiting(t, s.ID()) == v {
		}
	}
	owned := a.g.session(string(s.ID()))
	owned.mu.Lock()
	defer owned.mu.Unlock()
	if n := len(owned.guests); n != 1 {
		t.Errorf("%d visits", n)
	}
}

// TestVisitStale: what is about a visit that has ended changes nothing about the next one.
func TestVisitStale(t *testing.T) {
	_, b, _, s := pair(t, nil)
	old := b.visiting(t, s.ID())
	old.end(errGone)
	v := b.visiting(t, s.ID())
	p := old.wire()
	if err := v.l.ended(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	old.depart()
	if end := through(t, v, &turn{id: "m"}); end.err != nil {
		t.Error(end.err)
	}
	res, err := rpcOpen.Call(t.Context(), v.l.conn, &wireOpen{p, "b"}) // as a broken connection may bring it late
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Failure.err(); !errors.Is(err, errGone) {
		t.Error("an earlier visit:", err)
	}
	if end := through(t, v, &turn{id: "n"}); end.err != nil {
		t.Error(end.err)
	}
}

// TestVisitGivenUp: a visit whose beginning failed here is not kept by the owner.
func TestVisitGivenUp(t *testing.T) {
	a, b, _, s := pair(t, nil)
	v := b.visiting(t, s.ID())
	v.end(errGone)
	v.depart()
	owned := a.g.session(string(s.ID()))
	for n := 1; n > 0; {
		owned.mu.Lock()
		n = len(owned.guests)
		owned.mu.Unlock()
	}
}

// cut breaks the connections to other nodes.
func (m *member) cut() {
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	for _, l := range m.g.links {
		_ = l.conn.Close()
	}
}

// TestWaitsOn: a prompt that waits at the owner when the connection breaks runs, once.
func TestWaitsOn(t *testing.T) {
	goOn := make(chan struct{})
	a, b, first, s := pair(t, goOn)
	other := b.connect(1).load(t, s.ID())
	running := s.Prompt(t.Context(), acp.Text("wait one"))
	first.seen.until(t, "agent: waiting")
	waiting := other.Prompt(t.Context(), acp.Text("two"))
	a.queued(s.ID(), 2)
	b.cut()
	close(goOn)
	for _, reply := range []*acp.Reply{running, waiting} {
		if res, err := reply.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
			t.Error(res, err)
		}
	}
	say(t, s, "three")
	if got, want := prompts(t, a.rig, s.ID()), "wait one|two|three"; got != want {
		t.Errorf("%q have run, want %q", got, want)
	}
}

// TestRunsOn: a prompt that runs when the connection to its owner breaks ends as it ends there.
func TestRunsOn(t *testing.T) {
	goOn := make(chan struct{})
	_, b, _, s := pair(t, goOn)
	c := b.connect(1)
	running := c.load(t, s.ID()).Prompt(t.Context(), acp.Text("wait one"))
	c.seen.until(t, "agent: waiting")
	b.cut()
	close(goOn)
	if res, err := running.Wait(); err != nil || res.StopReason != acp.StopEndTurn {
		t.Error(res, err)
	}
}

// TestCancelUnknown: a cancellation that overtakes its prompt counts, and few of them are kept.
func TestCancelUnknown(t *testing.T) {
	a, b, _, s := pair(t, nil)
	v := b.visiting(t, s.ID())
	for i := range 4 * maxCancelled {
		if err := rpcCancel.Notify(t.Context(), v.l.conn, &wireCancel{v.wire(), acp.MessageID(fmt.Sprint("m", i)), local, local}); err != nil {
			t.Fatal(err)
		}
	}
	last := acp.MessageID(fmt.Sprint("m", 4*maxCancelled-1))
	if end := through(t, v, &turn{id: last, content: []acp.ContentBlock{acp.Text("wait")}}); end.stop != acp.StopCancelled {
		t.Errorf("%+v", end)
	}
	owned := a.g.session(string(s.ID()))
	owned.mu.Lock()
	defer owned.mu.Unlock()
	for guest := range owned.guests {
		guest.mu.Lock()
		if n := len(guest.cancelled); n >= maxCancelled {
			t.Errorf("%d are kept", n)
		}
		guest.mu.Unlock()
	}
}

// TestVisitFrom: others see who has sent a prompt through another node.
func TestVisitFrom(t *testing.T) {
	a, b, _, s := pair(t, nil)
	if end := through(t, b.visiting(t, s.ID()), &turn{id: "m", from: "Jo's phone"}); end.err != nil {
		t.Fatal(end.err)
	}
	var got []string
	err := a.log.Read(t.Context(), string(s.ID()), 0, func(r engine.Record) error {
		if r.Kind == kindPrompt {
			p, err := records.DecodePrompt(r.Data)
			if err != nil {
				return err
			}
			got = append(got, p.From)
		}
		return nil
	})
	if err != nil || !slices.Equal(got, []string{"Jo's phone"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestWithdrawnEarly: a question that is withdrawn while a visit begins is not asked any more once it has begun.
func TestWithdrawnEarly(t *testing.T) {
	_, b, _, s := pair(t, nil)
	v := b.visiting(t, s.ID())
	form := json.RawMessage(`{"type":"object","properties":{}}`)
	for _, test := range []struct {
		id   string
		gone bool
	}{{"ask_1", true}, {"ask_2", false}} {
		v.early = map[string]bool{}
		if test.gone {
			v.withdraw(test.id)
		}
		if err := v.put(&wireAsk{ID: test.id, Form: form}); err != nil {
			t.Fatal(err)
		}
		if got := v.question(test.id) == nil; got != test.gone {
			t.Errorf("%s: %v", test.id, got)
		}
	}
	for i := range 2 * engine.MaxRecords {
		v.withdraw(fmt.Sprint(i))
	}
	if n := len(v.early); n > engine.MaxRecords {
		t.Errorf("%d are kept", n)
	}
}

// TestUndrain: a node that takes sessions again gives up none any more.
func TestUndrain(t *testing.T) {
	a, _, first, s := pair(t, nil)
	s.Prompt(t.Context(), acp.Text("wait"))
	first.seen.until(t, "agent: waiting")
	done := make(chan error, 1)
	go func() { done <- a.g.Drain(t.Context()) }()
	for !a.g.isDraining() {
	}
	a.g.Undrain(t.Context())
	if err := <-done; !errors.Is(err, errUndrained) {
		t.Error(err)
	}
	idle := first.new(t)
	a.g.yield()
	if a.g.session(string(idle.ID())) == nil {
		t.Error("a session was given up")
	}
}
