package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/transcript"
)

// TestStderrInOrder: the lines of standard error come in the order in which they were written.
func TestStderrInOrder(t *testing.T) {
	got := make(chan string)
	f := &front{send: func(msg tea.Msg) { got <- msg.(noteMsg).note.Text }}
	var want, have []string
	for i := range maxNotes {
		want = append(want, fmt.Sprint(i))
		f.note(backend.Note{Kind: backend.NoteStderr, Text: want[i]})
	}
	for range want {
		have = append(have, <-got)
	}
	if !slices.Equal(have, want) {
		t.Errorf("got %q", have)
	}
}

// TestBackgroundEnds: a command that no tool call shows is said to run in the background, too, until the
// agent ends.
func TestBackgroundEnds(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.said(&acpv2.TerminalUpdate{TerminalID: "t", Command: acpv2.Set("make serve")})
	r.wants("make serve · not finished")
	r.talk.runs = []*transcript.Terminal{r.talk.conv.Snapshot().Terminal("t")}
	r.said(&acpv2.IdleStateUpdate{})
	r.wants("make serve · running in the background", "1 in the background")
	r.send(endedMsg{r.m.attempt})
	r.wants("make serve · not finished")
	r.lacks("in the background")
}

// TestFitExit: of a hint that does not fit, what leads out remains.
func TestFitExit(t *testing.T) {
	const hint = "Ctrl+S sends · Tab next · Space chooses · Esc dismisses"
	for _, tt := range []struct {
		width int
		want  string
	}{{100, hint}, {54, "Ctrl+S sends · Tab next · Esc dismisses"}, {30, "Ctrl+S sends · Esc dismisses"}, {20, "Ctrl+S sends"}, {5, "Ctrl…"}} {
		if got := fitExit(hint, tt.width); got != tt.want {
			t.Errorf("%d: %q, want %q", tt.width, got, tt.want)
		}
	}
}

// TestRemarkWhole: a remark is shown whole on a small screen, also while a turn is running.
func TestRemarkWhole(t *testing.T) {
	r := newRig(t, 40, 15, nil).start()
	r.m.remark("there is no command /chnages; did you mean /changes? · Enter again sends it")
	r.wants("· there is no command /chnages; did you", "  mean /changes? · Enter again sends it")
	r.keys("go on", "enter")
	r.keys("ctrl+d")
	r.wants("· a turn is running: Ctrl+D again ends", "  it and leaves")
}

// TestChosenWhole: the item that is chosen is shown whole, and the notes of the others have some room.
func TestChosenWhole(t *testing.T) {
	r := newRig(t, 40, 15, nil).start()
	long := "show what this session has changed, and take changes back"
	items := []item{{title: "Yes, run: npm install -g some/agent/of/a/long/name"}, {title: long, note: "Alt+C"}, {title: "No"}}
	p := newPicker("Install it?", items, nil)
	r.m.overlay = p
	r.wants("▸   Yes, run: npm install -g", "    some/agent/of/a/long/name", "    show what this session has c…  Alt+C")
	r.keys("down")
	r.wants("▸   show what this session has changed,", "    and take changes back  Alt+C")
	for range 30 {
		p.items = append(p.items, item{title: long, note: strings.Repeat("a note ", 10)})
	}
	p.search()
	for range p.items {
		r.keys("down")
		r.wants("▸", "Enter chooses")
	}
}

// TestSmallStart: on a small terminal, too, the first screen offers agents; what is not shown has no key.
func TestSmallStart(t *testing.T) {
	r := newRig(t, 40, 15, func(o *Options) { o.Agent.Builtin = true }).start()
	var all []contact
	for i := range 9 {
		all = append(all, contact{roster.Agent{Name: fmt.Sprintf("agent-%d", i+1)}, false})
	}
	r.send(contactsMsg{all})
	r.wants("It has no language model. Talk to", "1  agent-1", "4  agent-4", "?       all keys")
	r.lacks("5  agent-5")
	r.keys("5")
	r.wants("› 5")
	r.keys("backspace", "?")
	r.lacks("all keys\n──")
	r.keys("esc")
	r.send(tea.WindowSizeMsg{Width: 40, Height: 9})
	r.lacks("Talk to")
	r.keys("1")
	r.wants("› 1")
}

// TestSmallQuestion: what is written for an answer is seen whole on a small screen, with the cursor in
// it, and a question that is seen whole has no full screen.
func TestSmallQuestion(t *testing.T) {
	r := newRig(t, 40, 15, nil).start()
	a := someAsk(2)
	a.req.Session = "s-1"
	r.send(askMsg{a})
	r.now = r.now.Add(2 * time.Second)
	r.keys("f")
	r.wants("r  Reject, and tell")
	r.now = r.now.Add(2 * time.Second)
	r.keys("r", "Keep the greeting, but add a function that says good night")
	r.wants("› Keep the greeting, but add a function", "\n   that says good night", "Esc goes back")
	if _, cursor := r.m.draw(); cursor == nil || cursor.X != len("   that says good night") {
		t.Errorf("the cursor is at %v", cursor)
	}
	r.keys(strings.Repeat(" and on", 200))
	r.wants("What should the agent do instead?", "Esc goes back")
	r.keys("home")
	r.wants("› Keep the greeting")
}

// TestLoginBack: while a login waits for something, what the agent writes to its standard error is shown, and Esc ends the agent and
// starts it again, which leads to the ways to log in.
func TestLoginBack(t *testing.T) {
	r := newRig(t, 80, 24, nil)
	r.send(startedMsg{r.m.attempt, r.link, nil})
	r.m.noted(backend.Note{Kind: backend.NoteLogin, Text: "logging in: Google"})
	r.wants("logging in: Google", "Esc goes back")
	r.m.noted(backend.Note{Kind: backend.NoteStderr, Text: "set DOOR_KEY"})
	r.wants("agent says: set DOOR_KEY")
	was := r.m.attempt
	r.keys("esc")
	if r.m.phase != starting || r.m.attempt == was {
		t.Errorf("phase %v, attempt %d", r.m.phase, r.m.attempt)
	}
	select {
	case <-r.link.Done():
	default:
		t.Error("the agent has not been ended")
	}
	r.lacks("Esc goes back", "DOOR_KEY")
	r.send(startedMsg{r.m.attempt, r.link, nil})
	r.send(openedMsg{attempt: r.m.attempt, talk: r.talk})
	r.lacks("logging in")
}
