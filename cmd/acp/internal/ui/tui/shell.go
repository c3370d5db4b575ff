package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/internal/process"
)

// Bounds of a command of the user's.
const (
	maxShell  = 256 << 10 // bytes of its output that are kept: the end
	shellTime = 10 * time.Minute
)

// A shellResult is what came of a command.
type shellResult struct {
	command string
	output  string
	failed  string // how it failed; "" if it has not
	then    func(*model, shellResult) tea.Cmd
}

// shown returns what a terminal would show, without its escape sequences.
func (r shellResult) shown() string {
	text := "$ " + r.command + "\n" + r.output
	if r.failed != "" {
		text = strings.TrimSuffix(text, "\n") + "\n(" + r.failed + ")"
	}
	return strings.TrimSuffix(text, "\n")
}

// shell runs a command of the user's in the session's directory, and calls then with what came of
// it. One runs at a time; Esc and Ctrl+C end it, and so does leaving.
func (m *model) shell(command string, then func(*model, shellResult) tea.Cmd) tea.Cmd {
	if m.running != "" {
		return m.remark("a command is running: Esc ends it")
	}
	ctx, cancel := context.WithTimeout(m.ctx, shellTime)
	m.running, m.endShell, m.shellBegan = command, cancel, m.now()
	cwd := m.opt.cwd
	return tea.Batch(m.tick(), func() tea.Msg {
		defer cancel()
		res := runShell(ctx, cwd, command)
		res.then = then
		return res
	})
}

// runShell runs a command until it ends or ctx is done, which ends what it has started as well.
func runShell(ctx context.Context, cwd, command string) shellResult {
	res := shellResult{command: command}
	path, args := "/bin/sh", []string{"-c", command}
	if runtime.GOOS == "windows" {
		path, args = "cmd.exe", []string{"/c", command}
	}
	p, err := process.Start(ctx, process.Config{Path: path, Args: args, Dir: cwd, MergeStderr: true, NoStdin: true})
	if err != nil {
		res.failed = err.Error()
		if ctx.Err() != nil {
			res.failed = "you ended it"
		}
		return res
	}
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	var out tail
	_, _ = io.Copy(&out, p.Stdout()) // how the command ended is what Wait says
	err = p.Wait()
	res.output = safetext.Text(out.String())
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		res.failed = fmt.Sprintf("ended after %v", shellTime)
	case ctx.Err() != nil:
		res.failed = "you ended it"
	case err != nil:
		res.failed = err.Error()
	}
	return res
}

// A tail keeps the last maxShell bytes that were written to it.
type tail struct {
	buf []byte
	cut bool
}

// Write implements io.Writer. It never fails.
func (w *tail) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	if len(w.buf) > 2*maxShell {
		w.buf, w.cut = append(w.buf[:0], w.buf[len(w.buf)-maxShell:]...), true
	}
	return len(p), nil
}

// String returns what is kept.
func (w *tail) String() string {
	text, cut := w.buf, w.cut
	if over := len(text) - maxShell; over > 0 {
		text, cut = text[over:], true
	}
	if cut {
		return "(the beginning is left out)\n" + strings.ToValidUTF8(string(text), "")
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}

// bang runs what follows a ! and puts its output into the input, to be sent with the next prompt.
func (m *model) bang(command string) tea.Cmd {
	return m.shell(command, func(m *model, res shellResult) tea.Cmd {
		text := res.shown()
		lines := strings.Split(text, "\n")
		name := m.input.newMark(fmt.Sprintf("output of %s, %s", cut(one(command), 30), counted(len(lines)-1, "line", "lines")), func(name string) {
			m.input.pastes[name] = "```\n" + text + "\n```\n"
		})
		m.input.area.InsertString(name + " ")
		m.input.resize(m.w, m.inputLimit())
		m.overlay = &pager{title: "! " + cut(one(command), 60), lines: lines}
		return nil
	})
}
