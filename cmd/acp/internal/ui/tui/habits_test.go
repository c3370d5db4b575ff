package tui

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/transcript"
)

// TestEscape: Esc cancels a turn, and never ends the agent or discards what is typed.
func TestEscape(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.run(r.keys("one", "enter"))
	r.wants("Esc cancels")
	r.keys("two")
	r.run(r.keys("esc"))
	if r.talk.cancels != 1 {
		t.Errorf("%d cancels", r.talk.cancels)
	}
	r.run(r.keys("esc", "esc"))
	select {
	case <-r.link.done:
		t.Error("Esc has ended the agent")
	default:
	}
	r.wants("cancelling", "› two")
	r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopCancelled}})
	r.keys("esc", "esc", "esc")
	r.wants("› two")
	r.lacks("Go back to")
}

// TestRewind: Esc Esc lists the prompts, also over a slow line; one that is chosen is in the input
// of a new session, with what was said before it in a placeholder.
func TestRewind(t *testing.T) {
	r := newRig(t, 100, 24, nil).start()
	say := func(id, prompt, answer string) {
		r.said(&acpv2.UserMessage{MessageID: acpv2.MessageID("u" + id), Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text(prompt)})})
		r.said(&acpv2.AgentMessageChunk{MessageID: acpv2.MessageID("a" + id), Content: acpv2.Text(answer)})
	}
	say("1", "first thing", "first answer")
	say("2", "second thing", "second answer")
	say("3", "third thing", "third answer")
	r.keys("esc")
	r.now = r.now.Add(2 * time.Second)
	r.keys("esc") // too late
	r.lacks("Go back to")
	r.now = r.now.Add(400 * time.Millisecond)
	r.keys("esc")
	r.keys("esc")
	r.now = r.now.Add(2 * time.Second)
	r.send(tea.KeyPressMsg{Code: tea.KeyEscape, Mod: tea.ModAlt}) // both arrive together
	r.wants("Go back to before", "first thing", "second thing", "▸   third thing")
	opened := r.link.opened
	r.keys("down")
	r.run(r.keys("enter"))
	if r.link.opened != opened+1 {
		t.Error("no session was opened")
	}
	r.wants("[#1 the conversation so far,", "second thing", "files are as they are now")
	_, long := r.m.input.attached(r.m.input.value())
	if len(long) != 1 {
		t.Fatalf("%q", long)
	}
	for _, text := range long {
		if !strings.Contains(text, "User:\nfirst thing\n\nAgent:\nfirst answer") || strings.Contains(text, "second") {
			t.Error(text)
		}
	}
	// The first prompt has nothing before it.
	r.keys("ctrl+c")
	r.keys("/back", "enter", "first")
	r.run(r.keys("enter"))
	if got := r.m.input.value(); got != "first thing" {
		t.Errorf("%q", got)
	}
}

// TestPrompts: Ctrl+R finds earlier prompts by any part of them, the latest first.
func TestPrompts(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.keys("ctrl+r")
	r.wants("Earlier prompts", "nothing was typed in this directory yet")
	r.keys("esc")
	r.send(historyMsg{[]string{"fix the parser", "write tests", "fix the lexer", "fix the parser"}})
	r.keys("fix")
	r.keys("ctrl+r")
	r.wants("› fix", "▸   fix the parser", "fix the lexer")
	r.lacks("write tests")
	r.keys(" the l")
	r.lacks("parser")
	r.keys("enter")
	r.wants("› fix the lexer")
	if len(r.talk.sent()) != 0 {
		t.Error("it was sent")
	}
}

// TestPalette: Ctrl+P finds everything that can be done, says its key, and does it.
func TestPalette(t *testing.T) {
	r := newRig(t, 90, 40, nil).start()
	r.talk.commands = []acp.AvailableCommand{
		&acpv2.Command{Name: "deploy", Description: "put it out", Input: &acpv2.TextCommandInput{Hint: "WHERE"}},
	}
	r.keys("ctrl+p")
	r.wants("Keys", "search earlier prompts", "Ctrl+R", "Alt+R")
	for _, a := range actions()[1:] {
		if a.name == "" || a.what == "" || a.run == nil {
			t.Errorf("%+v", a)
		}
	}
	r.keys("put it")
	r.wants("Commands of the agent", "put it out", "/deploy WHERE")
	r.keys("enter")
	r.wants("› /deploy")
	r.keys("ctrl+c", "ctrl+p", "standard error", "enter")
	r.wants("has written nothing to its standard error")
}

// TestMisspelt: a slash command that nobody has is sent only when the user insists.
func TestMisspelt(t *testing.T) {
	r := newRig(t, 90, 24, nil).start()
	r.talk.commands = []acp.AvailableCommand{&acpv2.Command{Name: "deploy", Description: "put it out"}}
	r.run(r.keys("/optoins", "esc", "enter"))
	r.wants("there is no command /optoins; did you mean /options?", "› /optoins")
	if len(r.talk.sent()) != 0 {
		t.Fatal("it was sent")
	}
	r.run(r.keys("enter"))
	if len(r.talk.sent()) != 1 {
		t.Error("it was not sent when the user insisted")
	}
	r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopEndTurn}})
	r.run(r.keys("/etc/hosts is wrong", "enter"))
	if len(r.talk.sent()) != 2 {
		t.Error("a path is not a command")
	}
	r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopEndTurn}})
	r.run(r.keys("/deploy! now", "enter"))
	if len(r.talk.sent()) != 3 {
		t.Error("/deploy! is not sent")
	}
}

// TestMisspeltElsewhere: an agent that has no commands is not sent a misspelt one either, nor does
// Ctrl+S send what is not for the agent.
func TestMisspeltElsewhere(t *testing.T) {
	r := newRig(t, 90, 24, nil).start()
	r.run(r.keys("/optoins", "enter"))
	r.wants("there is no command /optoins; did you mean /options?", "› /optoins")
	r.keys("ctrl+u")
	r.run(r.keys("one", "enter"))
	r.run(r.keys("/reume", "ctrl+s"))
	r.wants("there is no command /reume; did you mean /resume?", "› /reume")
	r.keys("ctrl+u")
	r.run(r.keys("/help", "ctrl+s"))
	r.wants("Keys and commands")
	if n := len(r.talk.sent()); n != 1 {
		t.Errorf("%d prompts were sent", n)
	}
}

// TestBang: ! runs a command here and puts its output into the prompt; it can be ended.
func TestBang(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	r := newRig(t, 90, 24, nil).start()
	r.m.input.history.path = "" // a write may come after the end of the test
	if err := os.WriteFile(filepath.Join(r.m.opt.cwd, "a file.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.runAll(r.keys("!ls; echo \x1b[31mred; exit 3", "enter"))
	r.wants("! ls; echo", "a file.txt", "red", "exit status 3")
	r.keys("esc")
	r.wants("[#1 output of ls; echo", "3 lines]")
	_, long := r.m.input.attached(r.m.input.value())
	for _, text := range long {
		if !strings.HasPrefix(text, "```\n$ ls; echo") || !strings.Contains(text, "a file.txt\n") || strings.Contains(text, "\x1b") {
			t.Errorf("%q", text)
		}
	}
	r.keys("ctrl+c")
	cmd := r.keys("!sleep 100", "enter")
	r.wants("! sleep 100", "Esc ends it")
	r.keys("!ls", "enter")
	r.wants("a command is running")
	r.keys("esc")
	r.runAll(cmd)
	r.wants("you ended it")
	r.keys("esc")
	r.m.input.clear()
	r.run(r.keys(" !important: read this", "enter"))
	if n := len(r.talk.sent()); n != 1 {
		t.Errorf("%d prompts were sent: a space before the ! is for the agent", n)
	}
}

// TestStderr: what the agent has written to its standard error can be read, all of it.
func TestStderr(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	for range 3 {
		r.stderr("Traceback (most recent call last):", "  File \"x.py\", line 3", "ValueError: boom")
	}
	r.keys("alt+e")
	r.wants("Standard error of Fake", "Traceback", "ValueError: boom")
	for range maxStderr {
		r.stderr("more")
	}
	if n := len(r.m.stderr); n > maxStderr {
		t.Errorf("%d lines", n)
	}
}

// TestHandover: another agent takes over with the conversation so far in the prompt.
func TestHandover(t *testing.T) {
	var started []string
	r := newRig(t, 100, 24, nil)
	fake := r.link
	r.m.opt.open = func(_ context.Context, a roster.Agent, _ *front) (link, error) {
		started = append(started, a.Name)
		return fake, nil
	}
	r.start()
	r.said(&acpv2.UserMessage{MessageID: "u", Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text("build it")})})
	r.said(&acpv2.ToolCallUpdate{ToolCallID: "t", Title: acpv2.Set("Run make"), Status: acpv2.Set(acpv2.ToolCallStatusFailed)})
	r.said(&acpv2.AgentMessageChunk{MessageID: "a", Content: acpv2.Text("It fails.")})
	r.keys("why?")
	r.runAll(r.m.change(roster.Agent{Name: "other", Title: "Other"}))
	if len(started) != 1 || started[0] != "other" {
		t.Errorf("%q", started)
	}
	r.wants("[#1 the conversation so far,", "why?", "the agent has not seen what was said so far")
	_, long := r.m.input.attached(r.m.input.value())
	for _, text := range long {
		if !strings.Contains(text, "User:\nbuild it\n\n(The agent used a tool: Run make, failed)\n\nAgent:\nIt fails.") {
			t.Error(text)
		}
	}
}

// TestHandoverEdited: what is handed over can be read and changed in the editor before it is sent, and
// is a placeholder again afterwards, whether it was changed or not.
func TestHandoverEdited(t *testing.T) {
	r := newRig(t, 100, 24, nil).start()
	talk := handover(r.talk.Snapshot(), nil)
	if talk != "" {
		t.Errorf("nothing was said: %q", talk)
	}
	r.said(&acpv2.UserMessage{MessageID: "u", Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text("the password is x")})})
	r.m.handOver(handover(r.talk.Snapshot(), nil), "why?")
	text := r.m.input.spelled()
	if !strings.Contains(text, "User:\nthe password is x\n") || !strings.HasSuffix(text, "why?") {
		t.Fatalf("the editor has %q", text)
	}
	for _, now := range []string{text, strings.Replace(text, "password is x", "colour is red", 1)} {
		path := filepath.Join(t.TempDir(), "prompt.md")
		if err := os.WriteFile(path, []byte(now+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.send(editedMsg{path: path})
		if v := r.m.input.value(); !strings.HasPrefix(v, "[#") || !strings.HasSuffix(v, " lines] why?") {
			t.Errorf("the input is %q", v)
		}
		if got := r.m.input.spelled(); got != now {
			t.Errorf("%q, want %q", got, now)
		}
	}
	r.run(r.keys("enter"))
	sent := r.talk.sent()[0]
	first, _ := sent[0].(*acp.TextContent)
	if len(sent) != 2 || first == nil || !strings.Contains(first.Text, "colour is red") {
		t.Errorf("%+v", sent)
	}
}

// TestOffers: an agent without a language model leads to others: those that are installed first,
// with a digit each, others with the command that installs them, which is asked for.
func TestOffers(t *testing.T) {
	var started []string
	r := newRig(t, 80, 30, func(o *Options) { o.Agent = roster.Agent{Name: "builtin", Title: "Built-in agent", Builtin: true} })
	fake := r.link
	r.m.opt.open = func(_ context.Context, a roster.Agent, _ *front) (link, error) {
		started = append(started, a.Name)
		return fake, nil
	}
	r.start()
	r.lacks("Talk to")
	r.send(contactsMsg{[]contact{
		{roster.Agent{Name: "gemini", Title: "Gemini CLI"}, true},
		{roster.Agent{Name: "claude", Title: "Claude", Install: "npm install -g claude"}, false},
		{roster.Agent{Name: "cursor", Title: "Cursor", Install: "see cursor.com"}, false},
	}})
	r.wants("Talk to", "1  Gemini CLI  installed", "2  Claude      npm install -g claude", "3  Cursor      not installed")
	r.keys("2")
	r.wants("Install Claude?", "Yes, run: npm install -g claude")
	r.keys("esc", "3")
	r.wants("cursor is not installed: see cursor.com")
	r.keys("4 things")
	r.wants("› 4 things")
	r.keys("ctrl+c", "x1")
	r.wants("› x1")
	r.keys("ctrl+c")
	r.runAll(r.keys("1"))
	if len(started) != 1 || started[0] != "gemini" {
		t.Errorf("%q", started)
	}
	r.lacks("Talk to")
	if installs("see the project's page") || !installs("npm install -g x") {
		t.Error("what installs")
	}
}

// TestContacts: the order of the agents.
func TestContacts(t *testing.T) {
	all := contacts(roster.New(&config.Config{}))
	if len(all) < 20 {
		t.Fatalf("%d agents", len(all))
	}
	were := true
	for _, c := range all {
		if c.agent.Builtin || c.installed && !were {
			t.Errorf("%s is at the wrong place", c.agent.Name)
		}
		were = c.installed
	}
}

// runAll runs a command, waits for what came of the user's command or of a start in it, and gives
// that to the model.
func (r *rig) runAll(cmd tea.Cmd) {
	r.t.Helper()
	got := make(chan tea.Msg, 1)
	var leaves func(tea.Cmd)
	leaves = func(cmd tea.Cmd) {
		if cmd == nil {
			return
		}
		go func() {
			switch msg := cmd().(type) {
			case tea.BatchMsg:
				for _, c := range msg {
					leaves(c)
				}
			case shellResult, startedMsg:
				got <- msg
			}
		}()
	}
	leaves(cmd)
	r.send(<-got)
}

// stderr has the agent write lines to its standard error.
func (r *rig) stderr(lines ...string) {
	for _, l := range lines {
		r.send(noteMsg{backend.Note{Kind: backend.NoteStderr, Text: l}})
	}
}

// TestBackground: a command that runs on after its turn is said to, counted, listed, and can be
// stopped. Once it has ended nothing is said of it.
func TestBackground(t *testing.T) {
	r := newRig(t, 100, 30, nil).start()
	r.keys("alt+b")
	r.wants("no command is running")
	r.said(&acpv2.ToolCallUpdate{ToolCallID: "c", Title: acpv2.Set("serve"), Kind: acpv2.Set(acpv2.ToolKindExecute), Status: acpv2.Set(acpv2.ToolCallStatusInProgress),
		Content: acpv2.Set([]acpv2.ToolCallContent{&acpv2.Terminal{TerminalID: "t"}})})
	r.said(&acpv2.TerminalUpdate{TerminalID: "t", Command: acpv2.Set("make serve")})
	r.said(&acpv2.TerminalOutputChunk{TerminalID: "t", Data: base64.StdEncoding.EncodeToString([]byte("begins\nlistens on 8080\n"))})
	r.wants("not finished")
	r.talk.runs = []*transcript.Terminal{r.talk.conv.Snapshot().Terminal("t")}
	r.said(&acpv2.IdleStateUpdate{})
	r.wants("running in the background", "1 in the background")
	r.lacks("not finished")
	r.keys("alt+b")
	r.wants("$ make serve  listens on 8080", "Enter stops it")
	r.run(r.keys("enter"))
	if diff := cmp.Diff([]acp.TerminalID{"t"}, r.talk.stopped); diff != "" {
		t.Errorf("stopped (-want +got):\n%s", diff)
	}
	r.talk.runs = nil
	r.said(&acpv2.TerminalUpdate{TerminalID: "t", ExitStatus: acpv2.Set(acpv2.TerminalExitStatus{Signal: "SIGTERM"})})
	r.lacks("in the background")
}

// TestModeKeys: keys that come faster than the agent's answers all count, and end at the right mode.
func TestModeKeys(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.talk.options = []acp.SessionConfigOption{acp.ChoiceOption("mode", "Mode", acpv2.SessionConfigOptionCategoryMode, "a", "a", "b", "c", "d")}
	first := r.keys("shift+tab")
	if cmd := r.keys("shift+tab", "shift+tab"); cmd != nil {
		t.Error("requests at the same time")
	}
	second := r.send(first())
	if second == nil {
		t.Fatal("no request for the last mode")
	}
	r.send(second())
	var got []string
	for _, v := range r.talk.set {
		if id, ok := v.(*acpv2.SessionConfigOptionValueID); ok {
			got = append(got, string(id.Value))
		}
	}
	if diff := cmp.Diff([]string{"b", "d"}, got); diff != "" || r.m.mode != nil {
		t.Errorf("(-want +got)\n%s", diff)
	}
	r.wants("Mode: d")
}
