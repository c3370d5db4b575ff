package tui

import (
	"errors"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

func TestStart(t *testing.T) {
	r := newRig(t, 80, 24, nil)
	r.wants("starting Fake", "Ctrl+C leaves")
	r.now = r.now.Add(5 * time.Second)
	r.wants("5s")
	r.send(startedMsg{1, r.link, nil})
	r.wants("opening a session", "Fake 1.2.3", "version 2")
	r.send(openedMsg{attempt: 1, talk: r.talk})
	r.wants("type a prompt", "? keys")
	r.lacks("starting", "opening")
}

// What is typed before the agent is there is sent when it is.
func TestEarlyPrompt(t *testing.T) {
	r := newRig(t, 80, 24, nil)
	r.run(r.keys("hello", "enter"))
	r.wants("queued  hello")
	r.send(startedMsg{1, r.link, nil})
	r.run(r.send(openedMsg{attempt: 1, talk: r.talk}))
	r.lacks("queued  hello")
	if len(r.talk.sent()) != 1 {
		t.Errorf("%d prompts were sent", len(r.talk.sent()))
	}
}

func TestStartFails(t *testing.T) {
	r := newRig(t, 60, 20, nil)
	r.send(startedMsg{1, nil, errors.New("start \x1b[2Jfake: no such file")})
	r.wants("cannot be used", "no such file", "acp agents doctor fake", "r tries again")
	r.keys("r")
	if r.m.attempt != 2 || r.m.phase != starting {
		t.Errorf("attempt %d, phase %v after r", r.m.attempt, r.m.phase)
	}
	r.wants("starting Fake")
}

func TestTurn(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.keys("hello there")
	r.wants("› hello there")
	r.run(r.keys("enter"))
	if len(r.talk.sent()) != 1 {
		t.Fatalf("%d prompts were sent", len(r.talk.sent()))
	}
	r.lacks("› hello there")
	r.said(&acpv2.AgentMessageChunk{MessageID: "m1", Content: acpv2.Text("hi back")})
	r.wants("hi back", "writing", "Esc cancels")
	r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopEndTurn}})
	r.lacks("Esc cancels")
	r.keys("up")
	r.wants("› hello there")
}

func TestQueue(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.run(r.keys("one", "enter"))
	r.run(r.keys("two", "enter"))
	r.run(r.keys("three", "enter"))
	r.wants("queued  two", "queued  three")
	r.keys("up")
	r.wants("› three")
	r.lacks("queued  three")
	r.keys("ctrl+c") // the turn, not what is typed
	r.wants("cancelling", "› three", "waiting two")
	r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopCancelled}})
	r.wants("cancelled", "waiting two")
	if len(r.talk.sent()) != 1 {
		t.Errorf("%d prompts were sent", len(r.talk.sent()))
	}
	r.keys("ctrl+c")
	r.run(r.keys("enter"))
	if len(r.talk.sent()) != 2 {
		t.Errorf("%d prompts were sent after Enter", len(r.talk.sent()))
	}
}

func TestInterrupt(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.run(r.keys("one", "enter"))
	r.run(r.keys("ctrl+c"))
	if r.talk.cancels != 1 {
		t.Errorf("%d cancels", r.talk.cancels)
	}
	r.wants("Ctrl+C again ends the agent")
	r.run(r.keys("ctrl+c"))
	select {
	case <-r.link.done:
	default:
		t.Error("the agent lives after the second Ctrl+C")
	}
	r.send(endedMsg{1})
	r.wants("The agent has exited", "you have killed it", "r restarts the agent")
	r.keys("r")
	if r.m.session != "s-1" {
		t.Errorf("session %q is to be restored", r.m.session)
	}
}

func TestLeave(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.keys("some text")
	r.keys("ctrl+c")
	r.lacks("some text")
	r.keys("ctrl+c")
	r.wants("press Ctrl+C again to leave")
	r.run(r.keys("ctrl+c"))
	if !r.quit {
		t.Error("Ctrl+C twice with nothing typed does not leave")
	}
	r.quit = false
	r.run(r.keys("ctrl+d"))
	if !r.quit {
		t.Error("Ctrl+D with nothing typed does not leave")
	}
}
