package tui

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/jsonrpc"
)

// atGateway is a rig whose conversation is kept by a gateway.
func atGateway(t *testing.T) *rig {
	return newRig(t, 80, 24, func(o *Options) { o.Agent.Gateway = true }).start()
}

// TestBroken: while there is no connection, the screen says so and does not claim that the agent works.
func TestBroken(t *testing.T) {
	r := atGateway(t)
	if _, again := r.m.reconnect(jsonrpc.ErrClosed); !again {
		t.Fatal("it does not try again")
	}
	r.wants("the connection to the gateway broke: acp tries to return for 5 minutes", "connecting to Fake")
	r.lacks("works on", "starting")
	r.send(startedMsg{r.m.attempt, nil, exitcode.Errorf(exitcode.Agent, "cannot connect")})
	r.wants("connecting to Fake")
	r.m.brokeAt = r.m.now().Add(-time.Hour)
	r.send(startedMsg{r.m.attempt, nil, exitcode.Errorf(exitcode.Agent, "cannot connect")})
	r.wants("There is no connection to the gateway", "cannot connect", "r tries again")
	r.lacks("5 minutes", "doctor")
}

// TestRevoked: the screen of a device that was revoked does not ask to wait.
func TestRevoked(t *testing.T) {
	r := atGateway(t)
	err := fmt.Errorf("%w: %w", jsonrpc.ErrClosed, &acphttp.BrokenError{Err: &acphttp.StatusError{Status: http.StatusUnauthorized}})
	if _, again := r.m.reconnect(err); !again { // a server that starts again leaves a new token
		t.Fatal("it does not try again")
	}
	r.m.brokeAt = r.m.now().Add(-time.Minute)
	r.send(startedMsg{r.m.attempt, nil, exitcode.With(exitcode.Auth, err)})
	r.wants("this device was revoked, or its token is wrong")
	r.lacks("5 minutes", "jsonrpc", "connecting")
}

// TestAside: where others may answer, Esc leaves a question to them, and the user can come back to it.
func TestAside(t *testing.T) {
	r := atGateway(t)
	ask := func() *ask {
		a := someAsk(0)
		r.now = r.now.Add(2 * time.Second)
		r.send(askMsg{a})
		r.now = r.now.Add(2 * time.Second)
		return a
	}
	a := ask()
	r.keys("esc")
	if got := <-a.answer; got != "" { // nobody else is there
		t.Errorf("%q", got)
	}
	r.lacks("still open")

	r.send(noteMsg{backend.Note{Kind: backend.NoteHere, Session: r.m.session, Text: "ann"}})
	a = ask()
	r.wants("Esc leaves it to others")
	r.keys("esc")
	r.wants("? a question is still open · Tab shows it")
	if len(a.answer) != 0 {
		t.Error("it was answered")
	}
	b := ask()
	r.keys("esc")
	r.wants("? 2 questions are still open · Tab shows them")
	r.send(askGoneMsg{b})
	r.wants("? a question is still open · Tab shows it")
	r.keys("tab")
	r.wants("Permission")
	r.lacks("still open")
	r.now = r.now.Add(2 * time.Second)
	r.keys("y")
	if got := <-a.answer; got != a.req.Allow() {
		t.Errorf("%q", got)
	}
	c := ask()
	r.keys("esc")
	r.m.dismissAll()
	if got := <-c.answer; got != "" {
		t.Errorf("%q", got)
	}
	r.lacks("still open")
}

// TestWatches: a viewer is not asked to type.
func TestWatches(t *testing.T) {
	r := atGateway(t)
	here := func(role string) {
		r.send(noteMsg{backend.Note{Kind: backend.NoteHere, Session: r.m.session, Text: "ann", Role: role}})
	}
	here("viewer")
	r.wants("you only watch", "with ann")
	r.lacks("type a prompt")
	here("prompter")
	r.wants("type a prompt")
}

// TestGatewayHelp: the help says what Ctrl+C does to an agent that is a gateway's.
func TestGatewayHelp(t *testing.T) {
	r := atGateway(t)
	r.keys("?")
	r.wants("again: leave, and the agent works on")
	r.lacks("end the agent")
}

// TestOutage: while nothing arrives, the screen says so and not that the agent works, and marks what waits.
func TestOutage(t *testing.T) {
	r := atGateway(t)
	outage := func(err error) { r.send(noteMsg{backend.Note{Kind: backend.NoteOutage, Err: err}}) }
	seq, _ := r.talk.conv.Asked(&acpv2.RequestPermissionRequest{Title: "Do it?", Options: someAsk(0).req.Options})
	r.m.show(nil)
	outage(jsonrpc.ErrClosed)
	r.wants("No connection. Trying again.")
	r.lacks("not sent yet", "working")
	r.talk.conv.Answered(seq, &acpv2.SelectedPermissionOutcome{OptionID: "yes"})
	r.m.show(nil)
	r.wants("No connection. Trying again. Your answer is not sent yet.", " · not sent yet")
	outage(nil)
	r.lacks("No connection", "not sent yet")
	outage(jsonrpc.ErrClosed)
	r.lacks("not sent yet") // what was answered before
	r.keys("h", "i", "enter")
	r.wants("No connection. Trying again. Your prompt is not sent yet.")
	outage(nil)
	r.lacks("No connection", "not sent yet")
}

// TestGatewayLeave: the agent of a gateway works on when somebody leaves, so Ctrl+D need not ask whether a turn is to end. What a
// gateway says of the beginning of a prompt is no line.
func TestGatewayLeave(t *testing.T) {
	r := atGateway(t)
	r.keys("go on", "enter")
	r.send(noteMsg{backend.Note{Kind: backend.NoteBegun, Session: r.m.session, Text: "msg_zncy4c_1"}})
	r.lacks("msg_zncy4c_1")
	r.run(r.keys("ctrl+d"))
	r.lacks("ends it")
	if !r.quit {
		t.Error("it does not leave")
	}
}
