package tui

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/backend"
)

// TestOneClock: a slow start has one clock, which counts.
func TestOneClock(t *testing.T) {
	r := newRig(t, 80, 24, nil)
	r.now = r.now.Add(39 * time.Second)
	r.send(noteMsg{backend.Note{Kind: backend.NoteSlow, Text: "fake has been starting for 3s and has not answered yet"}})
	r.wants("starting Fake · no answer yet 39s")
	r.lacks("3s and")
}

// TestQuestionMark: ? shows the help, and a prompt may begin with it all the same.
func TestQuestionMark(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.keys("?")
	r.wants("Keys and commands")
	r.keys("?")
	r.lacks("Keys and commands")
	r.keys("?", "what is this")
	r.lacks("Keys and commands")
	r.wants("› ?what is this")
}

// TestQueueOfSession: prompts that wait belong to their session.
func TestQueueOfSession(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.run(r.keys("one", "enter"))
	r.keys("two", "enter")
	r.run(r.keys("esc"))
	r.send(turnMsg{attempt: r.m.attempt, talk: r.talk, result: &acp.Result{StopReason: acp.StopCancelled}})
	r.wants("waiting")
	r.run(r.keys("/new", "enter"))
	r.wants("1 waiting prompt was for the session before")
	r.lacks("waiting two")
	r.keys("enter")
	if n := len(r.talk.sent()); n != 1 {
		t.Errorf("%d prompts were sent", n)
	}
	r.keys("up", "up")
	r.wants("› two")
}

// TestOpenElsewhere: why a session cannot be opened is said once, in words.
func TestOpenElsewhere(t *testing.T) {
	r := newRig(t, 100, 24, nil).start()
	r.send(openedMsg{attempt: r.m.attempt, err: &acp.Failure{Code: -32001, Message: "session sess_X is open in another place: close it there first", Reason: "session_open", Scope: "session"}})
	r.wants("! the session cannot be opened: session sess_X is open in another place: close it there first")
	r.lacks("-32001", "session_open")
}

// TestNothingToPaste: an empty clipboard is no riddle.
func TestNothingToPaste(t *testing.T) {
	r := newRig(t, 100, 24, nil).start()
	t.Setenv("PATH", t.TempDir())
	msg, _ := pasteClipboard().(pastedMsg)
	if msg.err == nil {
		t.Skip("there is a clipboard")
	}
	r.send(msg)
	if !strings.Contains(r.screen(), "the clipboard is empty or out of reach") || errors.Unwrap(msg.err) == nil {
		t.Errorf("%v\n%s", msg.err, r.screen())
	}
}

// TestHeadings: what is found in a list keeps the heading of its group.
func TestHeadings(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.talk.options = []acp.SessionConfigOption{
		acp.ChoiceOption("mode", "Mode", "mode", "ask", "ask", "code"), acp.ChoiceOption("model", "Model", "model", "fast", "fast", "coder"),
	}
	r.keys("ctrl+o", "cod")
	r.wants("Mode\n", "  code", "Model\n", "  coder")
	r.lacks("  ask", "  fast")
}

// TestAfterCrash: what the agent has written before it exited is one key away, and how to restart it is
// on the screen, whatever is typed.
func TestAfterCrash(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.stderr("Traceback (most recent call last):", "  File \"x.py\", line 3", "ValueError: boom")
	r.send(endedMsg{r.m.attempt})
	r.wants("The agent has exited", "Alt+E shows all that it has written", "r restarts the agent")
	r.lacks("Ctrl+C clears")
	r.keys("a draft")
	r.wants("› a draft", "Ctrl+C clears the input; r then restarts the agent")
	r.keys("alt+e")
	r.wants("  File \"x.py\", line 3")
}
