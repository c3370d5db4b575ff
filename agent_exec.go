package acp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// An Exec is a command to run. Command is a program, not a line for a shell.
type Exec struct {
	ID      TerminalID    // of the terminal; generated when it is ""
	Command string        // the program; without a separator it is looked up in PATH
	Args    []string      // without the program's name
	Dir     string        // absolute; "" is the session's working directory
	Env     []EnvVariable // in addition to the environment there is
	// Environ is the environment there is, as NAME=value; nil means that of this
	// process. A terminal that the client lends has the client's.
	Environ []string
	// Hide are texts that the output must not contain: “•••” is put in the place of
	// each. An empty one hides nothing.
	Hide []string
	// Line is the command as a terminal of the agent's shows it; "" means Command
	// and Args, joined by spaces.
	Line string
	// OutputLimit is the number of bytes of output kept; older output is dropped.
	// 0 means 1 MiB.
	OutputLimit int
}

const defaultOutputLimit = 1 << 20

// TerminalState is what a terminal shows.
type TerminalState struct {
	Output    string              // what the command has written
	Truncated bool                // the beginning of Output was dropped
	Exit      *TerminalExitStatus // nil while it runs
	// Left is how many processes the command had started and left, which were ended with it.
	// It is 0 while the command runs, and where that is not known: in a client's terminal,
	// and on systems other than Linux.
	Left int
}

// A Terminal is a running command. It runs in the client's terminal if the client
// speaks version 1 and lends one, and here otherwise. Its methods may be called
// from any goroutine. It must be released.
type Terminal struct {
	o  *Output
	id TerminalID

	lent  *lentTerminal // where it runs, or
	child *child        // what runs here
	hide  []string      // of what is lent
}

// child is a command that runs here.
type child struct {
	p    *process.Process
	done chan struct{} // closed when its end was reported

	hide hiding // of report

	mu   sync.Mutex
	tail *process.Tail
}

// Run runs a command in a terminal that the call shows.
func (h *ToolCallHandle) Run(e Exec) (*Terminal, error) {
	return started(h.run(e))
}

// run is Run, except that a command that was started and then given up at once is
// returned with the error, and must be released.
func (h *ToolCallHandle) run(e Exec) (*Terminal, error) {
	return h.o.run(e, func(id TerminalID) error { return h.Append(&TerminalContent{TerminalID: id}) })
}

// started releases the terminal of a command that is given up at once.
func started(t *Terminal, err error) (*Terminal, error) {
	if err != nil && t != nil {
		_ = t.Release()
		t = nil
	}
	return t, err
}

// Run runs a command in a terminal of its own. The command ends with the turn, or
// with the session if the output is the session's. Version 2 clients can cancel
// it. A command that runs here and is ended by any of these gets SIGTERM, and
// SIGKILL after 2 s, together with everything it has started. Where there is no
// SIGTERM it is killed at once.
func (o *Output) Run(e Exec) (*Terminal, error) { return started(o.run(e, nil)) }

func (o *Output) run(e Exec, show func(TerminalID) error) (*Terminal, error) {
	if e.Dir == "" {
		e.Dir = o.s.Cwd()
	}
	if e.OutputLimit <= 0 {
		e.OutputLimit = defaultOutputLimit
	}
	if !filepath.IsAbs(e.Dir) {
		return nil, fmt.Errorf("acp: run %s: the directory is not absolute", e.Command)
	}
	if e.ID == "" {
		e.ID = TerminalID(o.s.nextCall())
	}
	if e.Line == "" {
		e.Line = strings.Join(append([]string{e.Command}, e.Args...), " ")
	}
	if lent := o.s.c.peer.Load().proto.clientTerminals(); lent != nil {
		t, err := o.runLent(lent, e, show)
		if t != nil {
			t.hide = e.Hide
		}
		return t, err
	}
	return o.runHere(e, show)
}

func (o *Output) runHere(e Exec, show func(TerminalID) error) (*Terminal, error) {
	env := slices.Clip(e.Environ)
	if env == nil {
		env = os.Environ()
	}
	for _, v := range e.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	p, err := process.Start(o.ctx, process.Config{
		Path: e.Command, Args: e.Args, Dir: e.Dir, Env: env, NoStdin: true, MergeStderr: true,
	})
	if err != nil {
		return nil, fmt.Errorf("acp: run: %w", err)
	}
	c := &child{p: p, done: make(chan struct{}), tail: process.NewTail(e.OutputLimit), hide: hiding{texts: e.Hide}}
	t := &Terminal{o: o, id: e.ID, child: c}
	o.s.setCancel(terminalCancelKey(t.id), func() { _ = p.End(context.Background()) })
	err = o.Send(&TerminalUpdate{
		TerminalID: t.id, Command: acpv2.Set(e.Line), Cwd: acpv2.Set(e.Dir),
		Capabilities: acpv2.Set(acpv2.TerminalCapabilities{Cancel: new(acpv2.TerminalCancelCapabilities)}),
	})
	if err == nil && show != nil {
		err = show(t.id)
	}
	if err != nil || !o.s.c.background(func() { t.report() }) {
		o.s.setCancel(terminalCancelKey(t.id), nil)
		_ = p.Stop(context.Background())
		if err == nil {
			err = ErrSessionClosed
		}
		return nil, err
	}
	return t, nil
}

// report sends what the command prints, and its end. It ends with the command,
// which ends with the output.
func (t *Terminal) report() {
	c := t.child
	defer close(c.done)
	stop := context.AfterFunc(t.o.ctx, func() { _ = c.p.End(context.Background()) })
	defer stop()
	// What left the tree of processes may hold its output open.
	read := make(chan struct{})
	defer close(read)
	go closeAfter(c.p, read)
	buf := make([]byte, 32<<10)
	for {
		n, err := c.p.Stdout().Read(buf)
		if data := c.hide.next(buf[:n], err != nil); len(data) > 0 {
			c.mu.Lock()
			_, _ = c.tail.Write(data) // never fails
			c.mu.Unlock()
			_ = t.o.Send(&TerminalOutputChunk{TerminalID: t.id, Data: base64.StdEncoding.EncodeToString(data)})
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.p.Kill()
			}
			break
		}
	}
	_ = c.p.Wait() // its status is asked for below
	_ = c.p.Stop(context.Background())
	t.o.s.setCancel(terminalCancelKey(t.id), nil)
	end := &TerminalUpdate{
		TerminalID: t.id, ExitStatus: acpv2.Set(*c.exit()), Capabilities: acpv2.Clear[acpv2.TerminalCapabilities](),
	}
	if t.o.Send(end) != nil {
		_ = t.o.s.Send(end) // the turn ended before its command did
	}
}

// exit returns the status of a command that has ended.
func (c *child) exit() *TerminalExitStatus {
	var e *process.ExitError
	switch err := c.p.Wait(); {
	case err == nil:
		return &TerminalExitStatus{ExitCode: new(int64(0))}
	case errors.As(err, &e) && e.Signal != "":
		return &TerminalExitStatus{Signal: e.Signal}
	case errors.As(err, &e):
		return &TerminalExitStatus{ExitCode: new(int64(e.Code))}
	}
	return &TerminalExitStatus{}
}

// Exec runs a command to its end in a terminal that the call shows, and returns
// its output and how it ended. A command that fails is not an error.
//
// If its context is done first, for example because the turn was cancelled, Exec
// ends the command as [Output.Run] describes, or has the client kill it within 4
// s. It then returns the cause of the context along with the output up to the
// command's end. When it returns an error, the state is nil if the command was
// not started, or if a client that runs it does not report its output.
func (h *ToolCallHandle) Exec(e Exec) (*TerminalState, error) {
	t, err := h.run(e)
	if t == nil {
		return nil, err
	}
	defer func() { _ = t.Release() }()
	var exit *TerminalExitStatus
	if err == nil {
		exit, err = t.Wait()
	}
	if err != nil {
		return t.abandon(), err
	}
	state, err := t.State()
	if err != nil {
		return nil, err
	}
	state.Exit = exit
	return state, nil
}

// abandonWait bounds how long a client may take to kill a command that was given
// up. It is less than the default of CancelGrace.
const abandonWait = 4 * time.Second

// abandon ends a command that is no longer waited for. It returns the command's
// final state, or nil if the client does not report it.
func (t *Terminal) abandon() *TerminalState {
	if t.lent == nil {
		_ = t.child.p.End(context.Background()) // if it fails there is output all the same
		<-t.child.done
		state, _ := t.State() // never fails here
		return state
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.o.ctx), abandonWait)
	defer cancel()
	// Each answer is worth having without the others.
	_ = t.lent.kill(ctx, t.o.s)
	exit, _ := t.lent.wait(ctx, t.o.s)
	state, err := t.lent.output(ctx, t.o.s)
	if err != nil {
		return nil
	}
	if state.Exit == nil {
		state.Exit = exit
	}
	return state
}

// WriteFile writes a file like [Output.WriteFile] and shows the change.
func (h *ToolCallHandle) WriteFile(path, text string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("acp: write %s: the path is not absolute", path)
	}
	before, err := h.o.ReadFile(path)
	created := errors.Is(err, fs.ErrNotExist)
	if err != nil && !created {
		return err
	}
	if err := h.o.WriteFile(path, text); err != nil {
		return err
	}
	if before == text && !created {
		return nil // there is nothing to show
	}
	return h.Change(FileChange{Path: path, Before: before, After: text, Created: created})
}

// ID returns the terminal's id, as tool calls show it. A client that lends the
// terminal has an id of its own for it.
func (t *Terminal) ID() TerminalID { return t.id }

// Wait waits for the command's end.
func (t *Terminal) Wait() (*TerminalExitStatus, error) {
	if t.lent != nil {
		return t.lent.wait(t.o.ctx, t.o.s)
	}
	select {
	case <-t.child.done:
		return t.child.exit(), nil
	case <-t.o.ctx.Done():
		return nil, context.Cause(t.o.ctx)
	}
}

// State returns the output so far and, after the end, the exit status.
func (t *Terminal) State() (*TerminalState, error) {
	if t.lent != nil {
		s, err := t.lent.output(t.o.ctx, t.o.s)
		if s != nil {
			s.Output = string((&hiding{texts: t.hide}).next([]byte(s.Output), true))
		}
		return s, err
	}
	c := t.child
	c.mu.Lock()
	text, truncated := c.tail.Text()
	c.mu.Unlock()
	s := &TerminalState{Output: text, Truncated: truncated}
	select {
	case <-c.done:
		s.Exit, s.Left = c.exit(), c.p.Left()
	default:
	}
	return s, nil
}

// Kill ends the command and everything it has started. Its output is kept.
func (t *Terminal) Kill() error {
	if t.lent != nil {
		return t.lent.kill(t.o.ctx, t.o.s)
	}
	t.child.p.Kill()
	return nil
}

// releaseWait bounds how long a client may take to release a terminal.
const releaseWait = 10 * time.Second

// Release ends the command, if it still runs, and forgets the terminal. It also
// works after the turn was cancelled.
func (t *Terminal) Release() error {
	if t.lent != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.o.ctx), releaseWait)
		defer cancel()
		return t.lent.release(ctx, t.o.s, t.id)
	}
	t.child.p.Kill()
	<-t.child.done
	return nil
}

// ReadFile returns the text of a file. A version 1 client that lends its files is
// asked, and returns unsaved changes too. Otherwise the file is read from disk;
// it must be a regular file of up to 64 MiB. The path is absolute. If the file
// does not exist, the error wraps [fs.ErrNotExist] in both cases.
func (o *Output) ReadFile(path string) (string, error) { return o.ReadLines(path, 0, 0) }

// ReadLines is ReadFile for limit lines, beginning with the given line. Lines are
// counted from 1. A line of 0 means the first line, and a limit of 0 means all
// lines. Lines beyond limit are dropped if the client sends more.
func (o *Output) ReadLines(path string, line, limit uint32) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("acp: read %s: the path is not absolute", path)
	}
	if read := o.s.c.peer.Load().proto.clientFiles().read; read != nil {
		text, err := read(o.ctx, o.s, path, line, limit)
		return lines(text, 1, limit), err
	}
	if err := context.Cause(o.ctx); err != nil {
		return "", err
	}
	data, err := readRegular(path)
	if err != nil {
		return "", err
	}
	return lines(string(data), line, limit), nil
}

// maxReadFile bounds the files that are read here, in bytes, to what fits into a
// message.
const maxReadFile = jsonrpc.DefaultMaxFrame

// readRegular reads a regular file. Reading anything else might never end.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	if info.Size() > maxReadFile {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("larger than %d bytes", maxReadFile)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, maxReadFile))
}

// WriteFile writes a file through the client, or on disk: see [Output.ReadFile]. On disk
// a new file takes the place of the old one, so that nobody sees a part of it, even if this
// program is killed meanwhile. It has the mode of the old one, but not its owner. A file
// that has several names (hard links) is written in place, so that all of them lead to the
// new text, and so is one where the directory does not allow another.
func (o *Output) WriteFile(path, text string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("acp: write %s: the path is not absolute", path)
	}
	if write := o.s.c.peer.Load().proto.clientFiles().write; write != nil {
		return write(o.ctx, o.s, path, text)
	}
	if err := context.Cause(o.ctx); err != nil {
		return err
	}
	return writeFile(path, text, func() error { return nil })
}

// ReplaceFile is WriteFile for a file whose text is known: if it is not old any more, or, if
// old is nil, if there is a file, nothing is written, and the error is [ErrFileChanged]. On
// disk that is looked at when the new text is ready to take the place of the old one; only what
// others write within these two system calls can be lost. A client that lends its files is
// asked for the text before it is sent the new one.
func (o *Output) ReplaceFile(path string, old *string, text string) error {
	if o.s.c.peer.Load().proto.clientFiles().write == nil && filepath.IsAbs(path) {
		if err := context.Cause(o.ctx); err != nil {
			return err
		}
		err := writeFile(path, text, func() error {
			data, err := readRegular(path)
			return has(string(data), err, old)
		})
		if errors.Is(err, errNew) { // it was there a moment ago
			return ErrFileChanged
		}
		return err
	}
	now, err := o.ReadFile(path)
	if err := has(now, err, old); err != nil && !errors.Is(err, errNew) {
		return err
	}
	return o.WriteFile(path, text)
}

// lines returns limit lines of text from the given one on.
func lines(text string, line, limit uint32) string {
	start := 0
	for n := uint32(1); n < line; n++ {
		i := nextLine(text, start)
		if i < 0 {
			return ""
		}
		start = i
	}
	if limit == 0 {
		return text[start:]
	}
	end := start
	for range limit {
		i := nextLine(text, end)
		if i < 0 {
			return text[start:]
		}
		end = i
	}
	return text[start:end]
}

// nextLine returns where the line after the one that begins at i begins, or -1.
func nextLine(text string, i int) int {
	for ; i < len(text); i++ {
		if text[i] == '\n' {
			return i + 1
		}
	}
	return -1
}
