package tui

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// TestGiveBack puts a prompt that the agent has refused to take back where it can be sent again.
func TestGiveBack(t *testing.T) {
	failed := errors.New("no room for this")
	r := newRig(t, 80, 24, nil).start()
	r.run(r.keys("a long prompt", "enter"))
	r.send(turnMsg{attempt: 1, talk: r.talk, err: failed, text: "a long prompt"})
	r.wants("! no room for this", "› a long prompt")

	r.run(r.keys("enter")) // what is typed meanwhile stays
	r.keys("something else")
	r.send(turnMsg{attempt: 1, talk: r.talk, err: failed, text: "a long prompt"})
	r.wants("› something else")
	r.keys("ctrl+c")

	r = newRig(t, 80, 24, nil).start() // what is in the conversation is there
	r.run(r.keys("seen", "enter"))
	r.said(&acpv2.UserMessage{MessageID: "u", Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text("seen")})})
	r.send(turnMsg{attempt: 1, talk: r.talk, err: failed, text: "seen"})
	r.wants("! no room for this", "type a prompt")
}

// TestRemarkOrder shows no remark below one that is newer.
func TestRemarkOrder(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.send(saidMsg{"an older remark"})
	r.wants("an older remark")
	r.send(failedMsg{errors.New("a newer failure")})
	r.wants("a newer failure")
	r.lacks("an older remark")
	r.send(saidMsg{"a remark"})
	r.run(r.keys("go", "enter"))
	r.lacks("a remark", "a newer failure")
	r.send(turnMsg{attempt: 1, talk: r.talk, result: &acp.Result{StopReason: acp.StopEndTurn}})
}

func TestExportExists(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, 200, 24, func(o *Options) { o.cwd = dir }).start()
	if err := os.WriteFile(filepath.Join(dir, "talk.md"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.run(r.m.export("talk.md"))
	r.wants("exists already: use another")
	if b, err := os.ReadFile(filepath.Join(dir, "talk.md")); err != nil || string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestFitHint(t *testing.T) {
	const hint = "type a prompt · / commands · @ files · ? keys"
	for _, tt := range []struct {
		width int
		want  string
	}{{100, hint}, {45, hint}, {44, "type a prompt · / commands · @ files"}, {20, "type a prompt"}, {5, "type…"}} {
		if got := fitHint(hint, tt.width); got != tt.want {
			t.Errorf("%d: %q, want %q", tt.width, got, tt.want)
		}
	}
}

func TestShortVersion(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "1.2.3": "1.2.3", "v1.2.3-rc.1": "v1.2.3-rc.1",
		"0.0.0-20261121142837-c3bb781a0346":        "dev c3bb781",
		"v1.2.4-0.20261121142837-c3bb781a0346":     "dev c3bb781",
		"0.0.0-20261121142837-c3bb781a0346+dirty":  "dev c3bb781",
		"v1.2.3-rc.1.0.20261121142837-c3bb781a034": "v1.2.3-rc.1.0.20261121142837-c3bb781a034",
	} {
		if got := shortVersion(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestUnseen tells of what is new below, and not of what the status line has.
func TestUnseen(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	r.said(&acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text(strings.Repeat("more\n\n", 40))})
	r.keys("home")
	r.said(&acpv2.UsageUpdate{Used: 1, Size: 2})
	r.wants("↓", "50% of context")
	r.lacks("↓ new")
	r.said(&acpv2.AgentMessageChunk{MessageID: "m", Content: acpv2.Text("and more")})
	r.wants("↓ new")
}
