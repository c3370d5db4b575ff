package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/transcript"
)

// states are what can be on the screen; each brings a started model there.
var states = map[string]func(r *rig){
	"empty": func(r *rig) {},
	"talk":  talkative,
	"working": func(r *rig) {
		r.run(r.keys("one", "enter"))
		r.keys("two", "enter", "three", "enter", "four", "enter", "five", "enter", "six", "enter")
		r.said(&acpv2.ToolCallUpdate{ToolCallID: "t", Title: acpv2.Set("a very long title of a tool call that does not fit anywhere"), Status: acpv2.Set(acpv2.ToolCallStatus("in_progress"))})
		r.m.say(strings.Repeat("a remark that is long ", 20), true)
	},
	"dead": func(r *rig) {
		r.link.err = errors.New(strings.Repeat("the reason why it ended ", 30))
		r.send(endedMsg{r.m.attempt})
	},
	"typed":      func(r *rig) { r.keys(strings.Repeat("typed text ", 60)) },
	"commands":   func(r *rig) { r.keys("/") },
	"help":       func(r *rig) { r.keys("?") },
	"search":     func(r *rig) { r.keys("ctrl+f", "words") },
	"browse":     func(r *rig) { talkative(r); r.keys("tab", "up", "up") },
	"scrolled":   func(r *rig) { talkative(r); r.keys("pgup") },
	"options":    func(r *rig) { r.talk.options = someOptions(); r.keys("ctrl+o") },
	"permission": func(r *rig) { r.send(askMsg{someAsk(20)}) },
	"form":       func(r *rig) { r.send(formMsg{newForm(someForm())}) },
	"url": func(r *rig) {
		r.send(formMsg{newForm(&acp.ElicitationRequest{Message: "go there", URL: "https://user@xn--e1awd7f.example/" + strings.Repeat("long/", 80)})})
	},
	"noted": func(r *rig) {
		r.send(noteMsg{backend.Note{Kind: backend.NoteStore, Text: "cannot be kept", Err: errors.New("x")}})
	},
}

func talkative(r *rig) {
	for i := range 30 {
		text := fmt.Sprintf("message %d 世界 %s", i, strings.Repeat("word ", i))
		r.said(&acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(fmt.Sprint(i)), Content: acpv2.Text(text)})
	}
}

func someOptions() []acp.SessionConfigOption {
	mode := acp.ChoiceOption("mode", "Mode", acpv2.SessionConfigOptionCategoryMode, "ask", "ask", "code", "plan")
	model := acp.ChoiceOption("model", "Model", acpv2.SessionConfigOptionCategoryModel, "big", "big", "small")
	return []acp.SessionConfigOption{mode, model, acp.SwitchOption("quick", "Quick", true)}
}

func someAsk(lines int) *ask {
	return &ask{
		req: acphost.Request{
			Session: "s-1", Title: "Do it?", Description: strings.Repeat("a line of what would be done\n", lines), Command: "rm -r \x1b[31m/",
			Options: []acpv2.PermissionOption{
				{OptionID: "yes", Name: "Allow", Kind: acpv2.PermissionOptionKindAllowOnce},
				{OptionID: "no", Name: "Reject", Kind: acpv2.PermissionOptionKindRejectOnce},
			},
		},
		answer: make(chan acp.PermissionOptionID, 1),
	}
}

func someForm() *acp.ElicitationRequest {
	var schema acpv2.ElicitationSchema
	err := json.Unmarshal([]byte(`{"type":"object","title":"Set up","properties":{
		"name":{"type":"string","title":"Name","minLength":2,"description":"what to call it"},
		"mail":{"type":"string","format":"email"},
		"count":{"type":"integer","minimum":1,"maximum":9,"default":3},
		"ratio":{"type":"number"},
		"sure":{"type":"boolean","default":true},
		"colour":{"type":"string","enum":["red","green"]},
		"sizes":{"type":"array","minItems":1,"items":{"type":"string","enum":["s","m","l"]}}
	},"required":["name","sizes"]}`), &schema)
	if err != nil {
		panic(err)
	}
	return &acp.ElicitationRequest{Message: "Fill in, please", Form: &schema}
}

func TestSizes(t *testing.T) {
	for name, bring := range states {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 80, 24, nil).start()
			bring(r)
			for _, w := range []int{1, 2, 5, 10, 20, 30, 40, 60, 80, 200} {
				for _, h := range []int{1, 2, 3, 4, 5, 7, 10, 13, 16, 24, 60} {
					r.send(tea.WindowSizeMsg{Width: w, Height: h})
					if s := r.screen(); strings.ContainsAny(s, "\x1b\x07") {
						t.Fatalf("control characters at %dx%d: %q", w, h, s)
					}
					_, at := r.m.draw()
					if at != nil && (at.X < 0 || at.X >= w || at.Y < 0 || at.Y >= h) {
						t.Errorf("the cursor is at %v on %dx%d", *at, w, h)
					}
					if t.Failed() {
						t.Fatalf("at %dx%d", w, h)
					}
				}
			}
		})
	}
}

func TestFallAway(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	states["working"](r)
	tests := []struct {
		h           int
		want, lacks []string
	}{
		{24, []string{"──", "queued  two", "and 2 more", "a very long title", "Fake"}, nil},
		{15, []string{"queued  two", "a very long title", "Fake"}, []string{"──"}},
		{11, []string{"5 queued", "Fake"}, []string{"queued  two"}},
		{6, []string{"5 queued", "Fake"}, []string{"a very long title"}},
		{4, []string{"›"}, []string{"Fake"}},
	}
	for _, tt := range tests {
		r.send(tea.WindowSizeMsg{Width: 80, Height: tt.h})
		r.wants(tt.want...)
		r.lacks(tt.lacks...)
	}
}

func TestPermission(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	a := someAsk(2)
	r.send(askMsg{a})
	r.wants("Permission", "Do it?", "1 y  Allow", "2 n  Reject")
	r.keys("n")
	if id := <-a.answer; id != "no" {
		t.Errorf("answered %q", id)
	}
	r.lacks("Do it?")
}

// TestPermissionScroll looks at what led to a question while it is asked.
func TestPermissionScroll(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.said(&acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("the first line\n\n" + strings.Repeat("more\n\n", 40) + "the last line")})
	a := someAsk(2)
	r.send(askMsg{a})
	r.wants("the last line", "Do it?")
	r.keys("pgup", "pgup", "pgup", "pgup", "pgup", "pgup", "pgup", "pgup")
	r.wants("the first line", "Do it?")
	r.lacks("the last line")
	r.keys("end")
	r.wants("the last line", "Do it?")
	r.keys("home")
	r.wants("the first line")
	for range 40 {
		r.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	}
	r.wants("the last line", "Do it?")
	select {
	case id := <-a.answer:
		t.Errorf("answered %q", id)
	default:
	}
}

func TestPermissionQueue(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	a, b, c := someAsk(2), someAsk(2), someAsk(2)
	for _, x := range []*ask{a, b, c} {
		r.send(askMsg{x})
	}
	r.wants("1 of 3")
	r.keys("y")
	r.wants("1 of 2")
	r.keys("y") // too soon after the last key: it is typed
	select {
	case id := <-b.answer:
		t.Errorf("the second was answered %q by a key that repeats", id)
	default:
	}
	r.send(askGoneMsg{b})
	r.lacks("1 of 2")
	r.now = r.now.Add(time.Second)
	r.keys("esc")
	if id := <-c.answer; id != "" {
		t.Errorf("dismissed with %q", id)
	}
}

func TestPermissionWhileTyping(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.keys("I am typ")
	a := someAsk(2)
	r.send(askMsg{a})
	r.keys("y")
	r.now = r.now.Add(100 * time.Millisecond)
	r.keys("ing", "enter", "1")
	select {
	case id := <-a.answer:
		t.Fatalf("typing has answered %q", id)
	default:
	}
	r.wants("once you stop typing")
	r.now = r.now.Add(time.Second)
	r.keys("y")
	if id := <-a.answer; id != "yes" {
		t.Errorf("answered %q", id)
	}
	r.wants("› I am typying1")
}

func TestPermissionRemembered(t *testing.T) {
	policy, err := acphost.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, 80, 24, func(o *Options) { o.policy = func() (*acphost.Policy, error) { return policy, nil } }).start()
	a := someAsk(2)
	a.req.Kind = "execute"
	r.send(askMsg{a})
	r.wants("3 a  Allow this command whenever it is asked for in this session", "4 N  Reject")
	r.run(r.keys("a"))
	if id := <-a.answer; id != "yes" {
		t.Errorf("answered %q", id)
	}
	if got := policy.Remembered(); len(got) != 1 || got[0].Effect != acphost.EffectAllow {
		t.Errorf("remembered %v", got)
	}
}

func TestForm(t *testing.T) {
	r := newRig(t, 90, 40, nil).start()
	f := newForm(someForm())
	r.send(formMsg{f})
	r.wants("Set up", "Name *", "what to call it", "› 3", "[x] yes", "( ) red", "[ ] s")
	r.keys("x", "ctrl+s")
	r.wants("✗ at least 2 characters", "✗ choose at least 1")
	r.keys("y", "tab", "nobody", "tab", "backspace", "99", "tab", "1.5", "tab", "space", "tab", "down", "space", "down", "space", "down", "space", "ctrl+s")
	r.wants("✗ not an e-mail address", "✗ at most 9")
	r.keys("ctrl+u", "a@b.example", "tab", "ctrl+u", "9", "ctrl+s")
	select {
	case res := <-f.answer:
		b, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"accept"`, `"name":"xy"`, `"count":9`, `"ratio":1.5`, `"sure":false`, `"colour":"green"`, `"sizes":["s","m"]`} {
			if !strings.Contains(string(b), want) {
				t.Errorf("the answer lacks %s: %s", want, b)
			}
		}
	default:
		t.Fatalf("no answer; the screen is\n%s", r.screen())
	}
}

func TestFormLeft(t *testing.T) {
	for key, want := range map[string]string{"esc": `"cancel"`, "ctrl+x": `"decline"`} {
		r := newRig(t, 80, 24, nil).start()
		f := newForm(someForm())
		r.send(formMsg{f})
		r.keys(key)
		b, _ := json.Marshal(<-f.answer)
		if !strings.Contains(string(b), want) {
			t.Errorf("%s answers %s", key, b)
		}
	}
}

func TestURL(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	f := newForm(&acp.ElicitationRequest{Message: "log in there", URL: "https://good.example@evil.example/x", ElicitationID: "e1"})
	r.send(formMsg{f})
	r.wants("log in there", "evil.example", "make it look like another", "https://good.example@evil.example/x", "o opens it")
	r.send(formDone{"e1"})
	r.lacks("log in there")
	for _, bad := range []string{"file:///etc/passwd", "javascript:alert(1)", "https:", "\x1b]8;;"} {
		if openable(bad) == nil {
			t.Errorf("%q would be opened", bad)
		}
	}
}

// TestNew: that something is new below is said of what the user has not seen, and not of what was on the
// screen before the change was told.
func TestNew(t *testing.T) {
	r := newRig(t, 60, 20, nil).start()
	apply := func(i int) []transcript.Change {
		return []transcript.Change{r.talk.conv.Apply(&acpv2.AgentMessageChunk{MessageID: acpv2.MessageID(fmt.Sprint(i)), Content: acpv2.Text(fmt.Sprintf("word%d", i))})}
	}
	tell := func(changes []transcript.Change) {
		r.m.front.changed(r.talk.id, changes)
		r.send(changedMsg{})
	}
	for i := range 30 {
		tell(apply(i))
	}
	first, second := apply(30), apply(31)
	tell(first) // and the second is shown with it
	r.wants("word31")
	r.keys("home")
	tell(second)
	r.wants("word0", "more")
	r.lacks("new")
	tell(apply(32))
	r.wants("new ·")
	r.keys("end")
	r.lacks("new")
}

// TestNarrowTexts: what has to be read is broken, not cut, where there is little room.
func TestNarrowTexts(t *testing.T) {
	r := newRig(t, 40, 30, nil).start()
	r.keys("?")
	r.wants("Ctrl+C         cancel the turn; again:\n", "               end the agent. Idle:\n", "               clear the input; again:\n")
	for range 60 {
		r.keys("down")
	}
	r.lacks("…, …", "Ctrl+C")
	r.keys("esc")

	r = newRig(t, 40, 24, nil).start()
	a := someAsk(2)
	for i, name := range []string{"Always allow changes to files of the session in this session", "Never allow changes to files of the session in this session"} {
		a.req.Options[i].Name = name
	}
	r.send(askMsg{a})
	r.wants("Always allow changes to files of\n       the session in this session\n", "Never allow changes to files of\n       the session in this session\n")
	r.send(tea.WindowSizeMsg{Width: 40, Height: 10}) // there is no room for that
	r.wants("Always allow changes to files of…", "Never allow changes to files of …")
}

// TestDoctorHint: the command that looks for the cause can be copied as a whole, and is not told of where
// the cause is no matter of the agent.
func TestDoctorHint(t *testing.T) {
	r := newRig(t, 40, 24, func(o *Options) { o.Agent = roster.Agent{Name: strings.Repeat("a-long-name ", 5) + "end"} })
	r.send(startedMsg{1, nil, errors.New("it is gone")})
	r.wants("acp agents doctor", "end' looks for the cause")
	r = newRig(t, 80, 24, nil)
	r.send(startedMsg{1, nil, errors.New("it is gone; for what to do see acp agents doctor x")})
	r.wants("acp agents doctor x")
	r.lacks("looks for the cause")
	r = newRig(t, 40, 24, nil)
	r.send(startedMsg{1, nil, exitcode.Errorf(exitcode.Usage, "MCP server x cannot be run")})
	r.wants("MCP server x cannot be run")
	r.lacks("acp agents doctor")
}
