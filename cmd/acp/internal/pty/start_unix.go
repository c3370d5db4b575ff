//go:build unix

package pty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/internal/process"
)

// Available reports that there are pseudo-terminals on this system.
const Available = true

// Terminals runs the commands of agents in pseudo-terminals: see [acphost.Terminals]. The zero
// value is ready for use, by any goroutine.
//
// A command has the terminal as its standard output, standard error and controlling terminal, and
// nothing to read: its standard input is the null device. It leads a session of its own. When this
// process dies, in whatever way, everything in that session is killed; on Linux that includes what
// has left the session, if its environment has the mark of the command: see [process.MarkVar].
type Terminals struct {
	Size Size // zero is DefaultSize
}

// Start starts a command. It implements [acphost.PTY].
func (t Terminals) Start(ctx context.Context, c acphost.PTYCommand) (acphost.PTYProcess, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	path := c.Path
	if strings.ContainsRune(path, filepath.Separator) && !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	path, err := process.LookPath(path, c.Env)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	cmd := &exec.Cmd{Path: path, Args: append([]string{c.Path}, c.Args...), Dir: c.Dir, Env: environment(c.Env)}
	size := t.Size
	if size.Cols <= 0 || size.Rows <= 0 {
		size = DefaultSize
	}
	p, err := start(cmd, size)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	return p, nil
}

// A command is one that was started.
type command struct {
	cmd    *exec.Cmd
	master *os.File
	dog    *watchdog
	mark   process.Mark
	held   holders       // of the command's number; written before done is closed
	done   chan struct{} // closed when the command has ended and was reaped

	once   sync.Once
	ended  chan struct{} // closed when everything has ended
	forced chan struct{} // closed to kill at once what was asked to end
	force  sync.Once
}

// start starts a command in a terminal of its own.
func start(cmd *exec.Cmd, size Size) (*command, error) {
	master, tty, err := pty.Open()
	if err != nil {
		return nil, err
	}
	defer tty.Close()
	null, err := os.Open(os.DevNull)
	if err == nil {
		defer null.Close()
		err = pty.Setsize(master, &pty.Winsize{Rows: uint16(size.Rows), Cols: uint16(size.Cols)})
	}
	if err != nil {
		_ = master.Close()
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	dieWithParent(cmd.SysProcAttr)
	c := &command{master: master, cmd: cmd, done: make(chan struct{}), ended: make(chan struct{}), forced: make(chan struct{})}
	cmd.Env, c.mark = process.Marked(cmd.Environ())
	started := make(chan error, 1)
	go c.run(started)
	if err := <-started; err != nil {
		_ = master.Close()
		return nil, err
	}
	return c, nil
}

// run starts the command and waits for it. It keeps its thread, since Linux kills the command when
// that ends.
func (c *command) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	if err == nil {
		// Without a shell there is no watchdog; closing the terminal has to do.
		c.dog, _ = watch(c.cmd.Process.Pid, c.mark)
	}
	started <- err
	if err != nil {
		return
	}
	_ = c.cmd.Wait()
	if c.held = holdersOf(c.cmd.Process.Pid); !c.held.any() && c.dog != nil {
		c.dog.forgetSession()
	}
	close(c.done)
}

// Read implements [acphost.PTYProcess]. The end of the output is io.EOF.
func (c *command) Read(b []byte) (int, error) {
	n, err := c.master.Read(b)
	if errors.Is(err, syscall.EIO) || errors.Is(err, os.ErrClosed) {
		err = io.EOF // nobody has the other end open any more
	}
	return n, err
}

// Wait implements [acphost.PTYProcess].
func (c *command) Wait() (code int, signal string) {
	<-c.done
	state := c.cmd.ProcessState
	if state == nil {
		return -1, ""
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, signalName(ws.Signal())
	}
	return state.ExitCode(), ""
}

// signalName returns the name of a signal as the protocol has it, such as SIGTERM.
func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGHUP:
		return "SIGHUP"
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGQUIT:
		return "SIGQUIT"
	case syscall.SIGABRT:
		return "SIGABRT"
	case syscall.SIGKILL:
		return "SIGKILL"
	case syscall.SIGSEGV:
		return "SIGSEGV"
	case syscall.SIGPIPE:
		return "SIGPIPE"
	case syscall.SIGTERM:
		return "SIGTERM"
	}
	return s.String()
}

// End implements [acphost.PTYProcess].
func (c *command) End(ctx context.Context) error {
	c.once.Do(func() { go c.end() })
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		c.force.Do(func() { close(c.forced) })
	}
	t := time.NewTimer(5 * time.Second)
	defer t.Stop()
	select {
	case <-c.ended:
		return nil
	case <-t.C:
		return fmt.Errorf("process %d does not end", c.cmd.Process.Pid)
	}
}

// session returns the number of the command, which is that of its session and group, or 0 if it may
// belong to another by now: the system reuses a number once the command was reaped and nothing is
// left of its session and group.
func (c *command) session() int {
	select {
	case <-c.done:
		if !c.held.any() {
			return 0
		}
	default:
	}
	return c.cmd.Process.Pid
}

// tree returns the processes of the command.
func (c *command) tree() tree {
	t := tree{}
	if session := c.session(); session > 0 {
		t = findTree(session)
	}
	t.add(marked(c.mark))
	return t
}

// end asks the processes of the command to end, and kills what is left after the grace.
func (c *command) end() {
	defer close(c.ended)
	tree := c.tree()
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-c.done:
	default:
		pid := c.session()
		tree.signal(pid, syscall.SIGHUP)
		tree.signal(pid, syscall.SIGTERM)
		tree.signal(pid, syscall.SIGCONT)
		select {
		case <-c.done:
		case <-c.forced:
		case <-t.C:
		}
	}
	for range 8 { // what is started meanwhile is found in the next round
		tree.add(c.tree())
		if tree.signal(c.session(), syscall.SIGKILL) == 0 {
			break
		}
	}
	_ = c.cmd.Process.Kill() // if it has not ended: without /proc nothing was found
	<-c.done
	if c.dog != nil {
		c.dog.release()
	}
}

// Close implements [acphost.PTYProcess].
func (c *command) Close() error {
	err := c.End(context.Background())
	if closed := c.master.Close(); closed != nil && !errors.Is(closed, os.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return err
}

// shell runs the watchdog. The watchdog waits for the end of a pipe that only this process holds
// open, and then kills the session, unless a line said that its number may belong to another. Where
// there is a /proc that has the numbers of its own PID namespace, it looks for all processes of the
// session, since a shell with job control puts them into groups of their own. Then it kills what
// has the mark of the command, and looks again right before, since numbers are reused.
const (
	shell  = "/bin/sh"
	script = `trap '' HUP INT QUIT TERM PIPE ALRM USR1 USR2 TSTP TTIN TTOU
session=$1
while read -r x; do
	[ "$x" = forget ] || exit
	session=
done
[ -z "$session" ] || kill -KILL -"$session" 2>/dev/null
{ read -r self x </proc/self/stat; } 2>/dev/null && [ "$self" = $$ ] || exit
[ -z "$session" ] || for round in 1 2 3; do
	for f in /proc/[0-9]*/stat; do
		line=
		{ read -r line <"$f"; } 2>/dev/null || continue
		set -- "$1" "$2" ${line##*) }
		if [ "$6" = "$1" ]; then p=${f#/proc/}; kill -KILL "${p%/stat}" 2>/dev/null; fi
	done
done
[ -n "$2" ] || exit
for f in $(grep -ls "$2" /proc/[0-9]*/environ 2>/dev/null); do
	p=${f#/proc/}; grep -qs "$2" "$f" 2>/dev/null && kill -KILL "${p%/environ}" 2>/dev/null
done`
)

// A watchdog is the shell that kills the session if this process dies.
type watchdog struct {
	process *os.Process
	hold    *os.File
}

// watch starts the watchdog of a session.
func watch(session int, mark process.Mark) (*watchdog, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p, err := os.StartProcess(shell, []string{shell, "-c", script, "acp-watchdog", fmt.Sprint(session), mark.String()}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"PATH=/usr/bin:/bin"},
		Files: []*os.File{r, nil, nil},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	return &watchdog{p, w}, nil
}

// forgetSession makes the watchdog use the mark alone.
func (d *watchdog) forgetSession() { _, _ = d.hold.WriteString("forget\n") }

// release ends the watchdog, which is not needed any more.
func (d *watchdog) release() {
	_, _ = d.hold.WriteString("\n")
	_ = d.hold.Close()
	_, _ = d.process.Wait()
}
