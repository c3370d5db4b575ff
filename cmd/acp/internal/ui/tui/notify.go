package tui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/goacp/acp/transcript"
)

// The events of which users are notified, as the command of the user gets them.
const (
	eventAsk   = "ask"   // the agent asks something
	eventDone  = "done"  // a turn has ended
	eventEnded = "ended" // the agent has exited
)

// unseenAfter is how long no key may have been pressed before a user counts as away at a terminal that
// does not report its focus.
const unseenAfter = 30 * time.Second

// looksAway reports whether the user probably does not see the screen.
func (m *model) looksAway() bool {
	if m.reports {
		return m.away
	}
	last := m.lastKey
	if last.Before(m.born) {
		last = m.born
	}
	return m.now().Sub(last) > unseenAfter
}

// ring notifies a user who looks elsewhere: through the terminal, and by the user's own command.
func (m *model) ring(event, text string) tea.Cmd {
	if !m.looksAway() || m.opt.NoBell {
		return nil
	}
	title := safeLine(m.agentTitle(), 60)
	if dir := filepath.Base(m.opt.cwd); dir != "." && dir != string(filepath.Separator) {
		title += " · " + safeLine(dir, 60)
	}
	text = safeLine(text, 200)
	cmds := []tea.Cmd{tea.Raw(notification(m.opt.ui.NotifyBy, os.Getenv, title, text))}
	if argv := m.opt.ui.NotifyCommand; len(argv) > 0 {
		env := []string{
			"ACP_EVENT=" + event, "ACP_TITLE=" + title, "ACP_TEXT=" + text,
			"ACP_AGENT=" + m.opt.Agent.Name, "ACP_SESSION=" + string(m.session), "ACP_CWD=" + m.opt.cwd,
		}
		cmds = append(cmds, notifyBy(m.ctx, argv, m.opt.cwd, env, text))
	}
	return tea.Batch(cmds...)
}

// notifyTime bounds the user's command.
const notifyTime = 10 * time.Second

// notifyBy runs the user's command with the text as its last argument.
func notifyBy(ctx context.Context, argv []string, dir string, env []string, text string) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, notifyTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, argv[0], append(argv[1:len(argv):len(argv)], text)...)
		cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), env...), time.Second
		if err := cmd.Run(); err != nil && ctx.Err() != context.Canceled {
			return failedMsg{fmt.Errorf("the command in ui.notify_command: %w", err)}
		}
		return nil
	}
}

// notification returns what makes a terminal notify the user: one of three sequences with text, of which
// no terminal knows all, or a bell, which every terminal knows. by is the user's setting.
func notification(by string, env func(string) string, title, text string) string {
	if by == "" || by == "auto" {
		by = knownNotification(env)
	}
	// A text must not end the sequence or a field of it.
	title = strings.ReplaceAll(title, ";", ",")
	seq := "\a"
	switch by {
	case "osc9": // not with a digit first, which some terminals take for a command
		return through(env, ansi.Notify(title+": "+text))
	case "osc777":
		seq = "\x1b]777;notify;" + title + ";" + text + "\a"
	case "osc99":
		seq = ansi.DesktopNotification(title, "i=acp", "d=0") + ansi.DesktopNotification(text, "i=acp", "d=1", "p=body")
	default:
		return seq
	}
	return through(env, seq)
}

// knownNotification returns the notification that the terminal is known to show.
func knownNotification(env func(string) string) string {
	term, program := env("TERM"), env("TERM_PROGRAM")
	switch {
	case multiplexed(env): // what the terminal around it knows is not known
		return "bell"
	case term == "xterm-kitty" || env("KITTY_WINDOW_ID") != "":
		return "osc99"
	case term == "xterm-ghostty" || program == "ghostty" || strings.HasPrefix(term, "foot") || strings.HasPrefix(term, "rxvt"):
		return "osc777"
	case program == "iTerm.app" || env("LC_TERMINAL") == "iTerm2" || program == "WezTerm" || program == "WarpTerminal":
		return "osc9"
	}
	return "bell"
}

// multiplexed reports whether tmux or GNU Screen is between acp and the terminal.
func multiplexed(env func(string) string) bool {
	term := env("TERM")
	return env("TMUX") != "" || env("STY") != "" || strings.HasPrefix(term, "tmux") || strings.HasPrefix(term, "screen")
}

// through passes a sequence through tmux or GNU Screen to the terminal around it.
func through(env func(string) string, seq string) string {
	switch {
	case env("TMUX") != "" || strings.HasPrefix(env("TERM"), "tmux"):
		return ansi.TmuxPassthrough(seq)
	case multiplexed(env):
		return ansi.ScreenPassthrough(seq, 0)
	}
	return seq
}

// showsProgress reports whether the terminal is known to show progress, in its tab or in the taskbar.
// Others may take the sequence for a notification.
func showsProgress(setting string, env func(string) string) bool {
	switch setting {
	case "on":
		return true
	case "off":
		return false
	}
	vte, _ := strconv.Atoi(env("VTE_VERSION"))
	return !multiplexed(env) && (env("WT_SESSION") != "" || env("ConEmuANSI") == "ON" || env("TERM_PROGRAM") == "ghostty" ||
		env("TERM") == "xterm-ghostty" || vte >= 8000)
}

// progress returns the progress that the terminal shows, or nil for none.
func (m *model) progress() *tea.ProgressBar {
	switch {
	case !m.progresses:
		return nil
	case m.phase == dead:
		return tea.NewProgressBar(tea.ProgressBarError, 100)
	case len(m.demands) > 0:
		return tea.NewProgressBar(tea.ProgressBarWarning, 100)
	case m.busy() || m.phase != ready:
		return tea.NewProgressBar(tea.ProgressBarIndeterminate, 0)
	}
	return nil
}

// lastSaid returns how the agent's last message begins, or "".
func (m *model) lastSaid() string {
	if m.talk == nil {
		return ""
	}
	for e := range m.talk.Snapshot().Backward() {
		msg, ok := e.(*transcript.Message)
		if ok && msg.Role == transcript.RoleUser {
			break
		}
		if ok && msg.Role == transcript.RoleAgent {
			return safeLine(msg.Text(), 160)
		}
	}
	return ""
}
