package gateway

import (
	"context"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// tells has a gateway tell devices, and returns what it tells them.
func tells(g *Gateway) chan *Waiting {
	told := make(chan *Waiting, 100)
	g.cfg.Waits = func(w *Waiting) { told <- w }
	return told
}

// hide says whether a client can be seen.
func (c *client) hide(t *testing.T, hidden bool) { c.say(t, Hidden{Hidden: hidden}) }

// say says what of a client can be seen.
func (c *client) say(t *testing.T, h Hidden) {
	t.Helper()
	if _, err := HiddenMethod.Call(t.Context(), c.conn.Conn(), &h); err != nil {
		t.Fatal(err)
	}
}

// phone is a device of the user to whom sessions belong where nobody says who clients are.
var phone = Who{User: "local", Rights: MayPrompt | MayApprove}

// answerable asks a client, which answers when give is closed.
func answerable(give <-chan struct{}) func(*acp.Client) {
	return asking(func(ctx context.Context, req *acp.PermissionRequest) (acp.PermissionDecision, error) {
		select {
		case <-give:
			return req.Allow(), nil
		case <-ctx.Done():
			return acp.CancelPermission(), ctx.Err()
		}
	})
}

// TestQuestionWaits: a user is notified of a question at once if nobody of the user is there, later if somebody is who may not
// look, and never if somebody sees it.
func TestQuestionWaits(t *testing.T) {
	for _, tt := range []struct {
		name         string
		says, hidden bool
		at           int // which call is for the user; 0 means none
	}{{"a terminal", false, false, 2}, {"a page that is hidden", true, true, 1}, {"a page that is seen", true, false, 0}} {
		r := newRig(t, talking(nil))
		r.g.lookout.patience = 1
		told, give := tells(r.g), make(chan struct{})
		c := r.connect(2, answerable(give))
		if tt.says {
			c.hide(t, !tt.hidden) // the last one counts
			c.hide(t, tt.hidden)
		}
		s := c.new(t)
		turn := s.Prompt(t.Context(), acp.Text("ask"))
		calls := 2
		if tt.says { // nobody is there who could see it later, or everybody sees it
			calls = 1
		}
		for i := 1; i <= calls; i++ {
			w := <-told
			if !w.Question || w.Session != string(s.ID()) {
				t.Errorf("%s: %+v", tt.name, w)
			}
			if got := w.For(phone); got != (i == tt.at) {
				t.Errorf("%s, call %d: %v", tt.name, i, got)
			}
		}
		close(give)
		if _, err := turn.Wait(); err != nil {
			t.Error(err)
		}
		r.close()
	}
}

// TestQuestionAnswered: nobody is notified of a question that has an answer already.
func TestQuestionAnswered(t *testing.T) {
	r := newRig(t, talking(nil)) // whose patience is longer than the test
	told, give := tells(r.g), make(chan struct{})
	c := r.connect(2, answerable(give))
	s := c.new(t)
	turn := s.Prompt(t.Context(), acp.Text("ask"))
	if w := <-told; w.For(phone) {
		t.Error("somebody is there")
	}
	close(give)
	if _, err := turn.Wait(); err != nil {
		t.Error(err)
	}
	if w := <-told; w.Question || w.For(phone) {
		t.Errorf("after the question the turn ends: %+v", w)
	}
}

// TestElsewhereWaits: a page that shows another session than one that it is in, or none, sees nothing of that.
func TestElsewhereWaits(t *testing.T) {
	r := newRig(t, talking(nil))
	told := tells(r.g)
	c := r.connect(2)
	s := c.new(t)
	other, none, own := acp.SessionID("s_other"), acp.SessionID(""), s.ID()
	for _, tt := range []struct {
		name string
		said Hidden
		want bool
	}{
		{"another one", Hidden{Shows: &other}, true}, {"none", Hidden{Shows: &none}, true}, {"this one", Hidden{Shows: &own}, false},
		{"this one, hidden", Hidden{Hidden: true, Shows: &own}, true},
	} {
		c.say(t, tt.said)
		say(t, s, "one")
		if w := <-told; w.For(phone) != tt.want {
			t.Errorf("%s: %+v", tt.name, w)
		}
	}
}

// TestTurnWaits: a user is notified of the end of a turn unless somebody of the user is there, or has cancelled it.
func TestTurnWaits(t *testing.T) {
	r := newRig(t, talking(nil))
	told := tells(r.g)
	c := r.connect(2)
	s := c.new(t)
	for i, tt := range []struct{ says, hidden, want bool }{{false, false, false}, {true, true, true}, {true, false, false}} {
		if tt.says {
			c.hide(t, tt.hidden)
		}
		say(t, s, "one")
		if w := <-told; w.Question || w.For(phone) != tt.want {
			t.Errorf("%d: %+v", i, w)
		}
	}
	c.hide(t, true)
	cancelled := s.Prompt(t.Context(), acp.Text("wait"))
	c.seen.until(t, "agent: waiting")
	if err := s.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if res, err := cancelled.Wait(); err != nil || res.StopReason != acp.StopCancelled {
		t.Fatal(res, err)
	}
	say(t, s, "two")
	<-told
	r.close() // everything has happened
	if len(told) > 0 {
		t.Error("somebody is notified of a turn that was cancelled")
	}
}

// TestWaitsFor: which users are notified.
func TestWaitsFor(t *testing.T) {
	w := Waiting{Session: "s", by: "bob", info: &engine.Session{ID: "s", Owner: "ann", Agent: "gemini"}, shares: []engine.Share{
		{User: "bob", Role: "prompter"}, {User: "cid", Role: "approver"}, {User: "dan", Role: "viewer"}, {User: "eve", Role: "owner"}, {User: "fay", Role: "none"},
	}}
	other := func(string) bool { return false }
	for _, tt := range []struct {
		who           Who
		question, end bool
	}{
		{Who{User: "ann", Rights: MayPrompt | MayApprove}, true, true},
		{Who{User: "ann", Rights: MayPrompt}, false, true},
		{Who{User: "ann"}, false, true},
		{Who{User: "ann", Agent: other, Rights: MayPrompt | MayApprove}, false, false},
		{Who{User: "ann", Session: other, Rights: MayPrompt | MayApprove}, false, false},
		{Who{User: "bob", Rights: MayPrompt | MayApprove}, false, true},
		{Who{User: "cid", Rights: MayPrompt | MayApprove}, true, false},
		{Who{User: "cid", Rights: MayPrompt}, false, false},
		{Who{User: "dan", Rights: MayPrompt | MayApprove}, false, false},
		{Who{User: "eve", Rights: MayPrompt | MayApprove}, true, true},
		{Who{User: "fay", Rights: MayPrompt | MayApprove}, false, false},
		{Who{User: "gil", Rights: MayPrompt | MayApprove}, false, false},
		{Who{Rights: MayPrompt | MayApprove}, false, false},
	} {
		for _, question := range []bool{true, false} {
			w.Question = question
			want := tt.end
			if question {
				want = tt.question
			}
			if got := w.For(tt.who); got != want {
				t.Errorf("%+v, question %v: %v", tt.who, question, got)
			}
			limited := w
			limited.skip = []string{tt.who.User}
			if limited.For(tt.who) {
				t.Error("a user is notified who is there")
			}
			limited = w
			limited.only = []string{"nobody"}
			if limited.For(tt.who) {
				t.Error("a user is notified again")
			}
		}
	}
}

// TestNodesWait: the devices of all nodes are notified, each by its own node, and who looks on any of them counts.
func TestNodesWait(t *testing.T) {
	dir := t.TempDir()
	give := make(chan struct{})
	here, there := make(chan *Waiting, 100), make(chan *Waiting, 100)
	a := newMember(t, dir, "a", talking(nil), func(cfg *Config) { cfg.Waits = func(w *Waiting) { here <- w } })
	b := newMember(t, dir, "b", talking(nil), func(cfg *Config) { cfg.Waits = func(w *Waiting) { there <- w } })
	one := a.connect(2, answerable(give))
	one.hide(t, true)
	s := one.new(t)
	say(t, s, "hello")
	for _, told := range []chan *Waiting{here, there} {
		if w := <-told; w.Question || !w.For(phone) || w.Session != string(s.ID()) {
			t.Errorf("%+v", w)
		}
	}
	two := b.connect(2, answerable(give))
	two.hide(t, false)
	two.load(t, s.ID())
	turn := s.Prompt(t.Context(), acp.Text("ask"))
	for _, told := range []chan *Waiting{here, there} {
		if w := <-told; !w.Question || w.For(phone) {
			t.Errorf("%+v", w)
		}
	}
	close(give)
	if _, err := turn.Wait(); err != nil {
		t.Error(err)
	}
}
