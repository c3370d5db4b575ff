package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/atotto/clipboard"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/bounded"
	"github.com/goacp/acp/cmd/acp/internal/pty"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/transcript"
)

// copyText copies text to the clipboard in two ways: through the terminal, which also works over
// SSH, and with the system's own tool, because many terminals do not support the former.
func (m *model) copyText(what, text string) tea.Cmd {
	if strings.TrimSpace(text) == "" {
		return m.remark("there is nothing to copy")
	}
	text = safetext.Text(text)
	return tea.Batch(
		tea.SetClipboard(text),
		func() tea.Msg { _ = clipboard.WriteAll(text); return nil },
		m.remark(fmt.Sprintf("copied %s, %d characters", what, len([]rune(text)))),
	)
}

// openCopy offers the latest messages, and the code in the agent's, for copying.
func (m *model) openCopy() tea.Cmd {
	t := m.shown()
	if t == nil {
		return m.remark("there is nothing to copy")
	}
	s := t.Snapshot()
	var items []item
	const most = 20 // answers to choose from
	answers := 0
	for e := range s.Backward() {
		msg, ok := e.(*transcript.Message)
		if !ok || msg.Role == transcript.RoleThought {
			continue
		}
		text := msg.Text()
		who := "answer     "
		if msg.Role == transcript.RoleUser {
			who = "your prompt"
		}
		if text != "" {
			items = append(items, item{title: who, note: one(text), value: text})
		}
		if msg.Role == transcript.RoleAgent {
			for _, code := range m.screen.tr.CodeBlocks(msg.Seq()) {
				items = append(items, item{title: "  code     ", note: one(code), value: code})
			}
		}
		if answers++; answers == most {
			break
		}
	}
	p := newPicker("Copy", items, func(m *model, it item) tea.Cmd {
		text, _ := it.value.(string)
		return m.copyText("the "+strings.TrimPrefix(strings.TrimSpace(it.title), "your "), text)
	})
	p.empty = "there are no messages yet"
	m.overlay = p
	return nil
}

// openable returns an error for an address that acp does not open: only web addresses are safe to
// pass to the system's opener, which might run a program for others.
func openable(link string) error {
	u, err := url.Parse(link)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("acp opens only web addresses")
	}
	return nil
}

// openURL opens an address in the user's browser.
func openURL(link string) tea.Cmd {
	return func() tea.Msg {
		var cmd *exec.Cmd
		switch runtime.GOOS {
		case "darwin":
			cmd = exec.Command("open", link)
		case "windows":
			cmd = exec.Command("rundll32", "url.dll,FileProtocolHandler", link)
		default:
			cmd = exec.Command("xdg-open", link)
		}
		if err := cmd.Start(); err != nil {
			return failedMsg{fmt.Errorf("opening the browser: %w; copy the address instead", err)}
		}
		// Wait only reaps the opener. The browser keeps running.
		go func() { _ = cmd.Wait() }()
		return saidMsg{"opened in the browser"}
	}
}

type editedMsg struct {
	path string
	err  error
}

// editor lets the user edit the prompt in an editor.
func (m *model) editor() tea.Cmd {
	words, _, err := app.Editor(os.Environ())
	if err != nil {
		m.say(err.Error(), true)
		return nil
	}
	f, err := os.CreateTemp("", "acp-prompt-*.md")
	if err != nil {
		m.say("creating a file for the editor failed: "+err.Error(), true)
		return nil
	}
	path := f.Name()
	_, err = io.WriteString(f, m.input.spelled())
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
		m.say("writing the file for the editor failed: "+err.Error(), true)
		return nil
	}
	cmd := exec.Command(words[0], append(words[1:], path)...)
	return m.lend(cmd, func(err error) tea.Msg { return editedMsg{path, err} })
}

// lend runs a program of the user's on the terminal, which is as it was before when done is called.
// The program gets the terminal itself: os/exec would copy from a keyboard, which is not a file.
func (m *model) lend(cmd *exec.Cmd, done func(error) tea.Msg) tea.Cmd {
	cmd.Stdin = m.opt.In
	if m.opt.Out != nil {
		cmd.Stdout = m.opt.Out // a program of the terminal must not get a pipe: see filled
	}
	return tea.ExecProcess(cmd, done)
}

// edited replaces the input by the text that the editor has saved.
func (m *model) edited(msg editedMsg) tea.Cmd {
	defer os.Remove(msg.path)
	if msg.err != nil {
		m.say("the editor failed: "+msg.err.Error(), true)
		return nil
	}
	data, err := os.ReadFile(msg.path)
	if err != nil {
		m.say("reading the edited prompt failed: "+err.Error(), true)
		return nil
	}
	if len(data) > maxPrompt {
		m.say(fmt.Sprintf("the edited prompt has more than %d MB", maxPrompt>>20), true)
		return nil
	}
	m.input.clear()
	m.input.insert(m.input.folded(strings.TrimRight(string(data), "\n")))
	m.input.resize(m.w, m.inputLimit())
	return nil
}

// runInTerminal lends the terminal to a program.
func (m *model) runInTerminal(msg runMsg) tea.Cmd {
	return tea.Exec(&lent{msg.ctx, msg.cmd, m.opt.In, m.opt.Out}, func(err error) tea.Msg {
		msg.done <- err
		return nil
	})
}

// A lent is a program that uses the user's terminal through a pseudo-terminal. The program and
// everything it starts end when ctx is done or this process dies, and the user's terminal is then
// as it was before. It implements [tea.ExecCommand].
type lent struct {
	ctx     context.Context
	cmd     *exec.Cmd
	in, out *os.File
}

// SetStdin implements [tea.ExecCommand]. It does nothing, like the two below: the program gets in, and
// out also for its standard error.
func (l *lent) SetStdin(io.Reader) {}

// SetStdout implements [tea.ExecCommand].
func (l *lent) SetStdout(io.Writer) {}

// SetStderr implements [tea.ExecCommand].
func (l *lent) SetStderr(io.Writer) {}

// Run implements [tea.ExecCommand].
func (l *lent) Run() error {
	return pty.Run(l.ctx, l.cmd, l.in, l.out)
}

type pastedMsg struct {
	text  string
	image image
	err   error
}

// dropped handles a picture that was dropped on the terminal. It returns nil if text is anything
// else.
func (m *model) dropped(text string) tea.Cmd {
	path, ok := droppedPath(text)
	if !ok {
		return nil
	}
	return func() tea.Msg {
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			return pastedMsg{text: text}
		}
		if strings.ContainsAny(path, " \t") {
			path = `"` + path + `"`
		}
		return pastedMsg{text: "@" + path + " "}
	}
}

// pasteClipboard reads the clipboard: a picture if there is one, and otherwise text.
func pasteClipboard() tea.Msg {
	if data := clipboardImage(); data != nil {
		return pastedMsg{image: image{mime: sniff(data), data: data}}
	}
	text, err := clipboard.ReadAll()
	if err != nil {
		return pastedMsg{err: fmt.Errorf("there is nothing to paste: the clipboard is empty or out of reach (%w)", err)}
	}
	return pastedMsg{text: text}
}

// clipboardImage reads a picture from the clipboard with the usual tool of the platform, if that is
// installed.
func clipboardImage() []byte {
	var tools [][]string
	switch {
	case runtime.GOOS == "darwin":
		tools = [][]string{{"pngpaste", "-"}}
	case runtime.GOOS == "windows":
		return nil
	case os.Getenv("WAYLAND_DISPLAY") != "":
		tools = [][]string{{"wl-paste", "--no-newline", "--type", "image/png"}}
	case os.Getenv("DISPLAY") != "":
		tools = [][]string{{"xclip", "-selection", "clipboard", "-target", "image/png", "-out"}}
	}
	for _, t := range tools {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		cmd := exec.CommandContext(ctx, t[0], t[1:]...)
		cmd.WaitDelay = time.Second
		out := &bounded.Buffer{Max: maxImage + 1}
		cmd.Stdout = out
		err := cmd.Run()
		cancel()
		if err == nil && !out.Full && sniff(out.Bytes()) != "" {
			return bytes.Clone(out.Bytes())
		}
	}
	return nil
}

// pasted inserts the content of the clipboard, which pasteClipboard has read.
func (m *model) pasted(msg pastedMsg) tea.Cmd {
	switch {
	case msg.err != nil:
		return m.remark(msg.err.Error())
	case msg.image.data != nil:
		if m.link != nil && !m.link.Takes().Image {
			return m.remark("the agent does not accept pictures")
		}
		m.input.insertImage(msg.image)
	case msg.text != "":
		m.input.insert(msg.text)
	}
	m.input.resize(m.w, m.inputLimit())
	return nil
}
