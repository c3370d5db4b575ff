package tui

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// TestNotification: a terminal gets the sequence that it is known to show, and otherwise a bell; tmux and
// Screen pass on what the user has asked for.
func TestNotification(t *testing.T) {
	for _, tt := range []struct {
		by, env, want string
	}{
		{"auto", "TERM=xterm-256color", "\a"},
		{"", "TERM=xterm-kitty", "\x1b]99;i=acp:d=0;a, b\a\x1b]99;i=acp:d=1:p=body;text; more\a"},
		{"auto", "TERM=foot", "\x1b]777;notify;a, b;text; more\a"},
		{"auto", "TERM=xterm-256color TERM_PROGRAM=iTerm.app", "\x1b]9;a, b: text; more\a"},
		{"auto", "TERM=screen-256color KITTY_WINDOW_ID=1", "\a"},
		{"auto", "TERM=xterm-kitty TMUX=x", "\a"},
		{"osc9", "TERM=xterm", "\x1b]9;a, b: text; more\a"},
		{"osc9", "TERM=screen TMUX=x", "\x1bPtmux;\x1b\x1b]9;a, b: text; more\a\x1b\\"},
		{"osc777", "TERM=screen STY=1", "\x1bP\x1b]777;notify;a, b;text; more\a\x1b\\"},
		{"bell", "TERM=xterm-kitty", "\a"},
	} {
		env := map[string]string{}
		for kv := range strings.FieldsSeq(tt.env) {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		if got := notification(tt.by, func(k string) string { return env[k] }, "a; b", "text; more"); got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.by, tt.env, got, tt.want)
		}
	}
}

func TestShowsProgress(t *testing.T) {
	for _, tt := range []struct {
		setting, name, value string
		want                 bool
	}{
		{"auto", "TERM", "xterm-256color", false}, {"on", "TERM", "xterm", true}, {"off", "WT_SESSION", "x", false},
		{"auto", "WT_SESSION", "x", true}, {"auto", "TERM_PROGRAM", "ghostty", true}, {"auto", "VTE_VERSION", "8001", true}, {"auto", "VTE_VERSION", "7600", false},
	} {
		got := showsProgress(tt.setting, func(k string) string {
			if k == tt.name {
				return tt.value
			}
			return ""
		})
		if got != tt.want {
			t.Errorf("%s, %s=%s: %v", tt.setting, tt.name, tt.value, got)
		}
	}
}

// TestProgress: the tab of the terminal shows that the agent works, that it waits, and that it is gone.
func TestProgress(t *testing.T) {
	r := newRig(t, 80, 24, func(o *Options) { o.ui.Progress = "on" })
	state := func() tea.ProgressBarState {
		if p := r.m.View().ProgressBar; p != nil {
			return p.State
		}
		return tea.ProgressBarNone
	}
	wants := func(want tea.ProgressBarState) {
		t.Helper()
		if got := state(); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	wants(tea.ProgressBarIndeterminate)
	r.start()
	wants(tea.ProgressBarNone)
	r.run(r.keys("one", "enter"))
	wants(tea.ProgressBarIndeterminate)
	r.send(loginMsg{&login{}})
	wants(tea.ProgressBarWarning)
	r.m.demands = nil
	r.send(endedMsg{r.m.attempt})
	wants(tea.ProgressBarError)
}

// TestNotifyCommand: the user's command gets the event and the text, which is what the agent said.
func TestNotifyCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	file := filepath.Join(t.TempDir(), "out")
	r := newRig(t, 80, 24, func(o *Options) {
		o.ui.NotifyCommand = []string{"sh", "-c", `printf '%s|%s|%s|%s' "$ACP_EVENT" "$ACP_AGENT" "$ACP_SESSION" "$1" > "$0"`, file}
	}).start()
	r.run(r.keys("one", "enter"))
	r.send(tea.BlurMsg{})
	r.said(&acpv2.AgentMessageChunk{MessageID: "a", Content: acpv2.Text("It is\nfinished.")})
	r.now = r.now.Add(time.Minute)
	r.run(r.send(turnMsg{attempt: r.m.attempt, talk: r.talk, result: &acp.Result{StopReason: acp.StopEndTurn}}))
	data, err := os.ReadFile(file)
	if err != nil || string(data) != "done|fake|s-1|It is finished." {
		t.Errorf("%q, %v", data, err)
	}
	r.m.opt.ui.NotifyCommand = []string{filepath.Join(t.TempDir(), "none")}
	r.run(r.m.ring(eventAsk, "x"))
	r.wants("the command in ui.notify_command: ")
}
