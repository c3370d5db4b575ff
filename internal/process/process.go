// Package process starts a child process so that its whole process tree can be ended,
// and so that the tree ends when this program does, however that happens.
//
// # What ends the tree
//
// On Unix systems the child and the processes it starts are in a new process group. Its
// leader is not the child but a watchdog: a /bin/sh that reads from a pipe of which only
// this process has the other end. When this process ends, even by SIGKILL, the pipe
// ends, and the watchdog kills the group, including itself. Because the watchdog leads
// the group and is reaped last, the group's number cannot be given to other processes in
// the meantime. The cost is one idle shell for each child; [Config.NoWatchdog] avoids it.
//
// On Linux the kernel, too, kills the child when its parent dies. To the kernel the parent
// is the thread that started the child, so that thread is kept until the child has ended:
// it waits for the child. Processes that left the group, with setsid for example, are
// found in /proc as descendants of the child. Processes that also left the tree, as
// daemons do, are found by a mark in their environment: see [MarkVar]. The watchdog finds
// these, too, if there is a grep. A process that has left the group, has lost its parents
// and has removed the mark is not found. Neither is a process that runs as another user,
// one whose environment this process may not read, such as ssh-agent, or one whose
// environment takes longer than 250 ms to read. While the environments of four processes
// block their readers, no marks are found at all. If /proc is that of another PID
// namespace, its numbers mean nothing here, and only the group is ended.
//
// On Windows the tree is a job that ends when its last handle is closed, which the system
// does for a process that dies. There is no polite signal.
//
// On other systems only the child itself is ended.
package process

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
	"sync/atomic"
	"time"
)

// Defaults and fixed bounds.
const (
	DefaultStderrTail = 16 << 10        // bytes
	DefaultGrace      = 2 * time.Second // of either stage of Stop
	killGrace         = 5 * time.Second // for the kernel, after SIGKILL
	drainGrace        = 500 * time.Millisecond
)

// Config says what to start and how to end it.
type Config struct {
	// Path is the program. Without a separator it is looked up in the PATH
	// of Env, see [LookPath]; a relative path with one starts in Dir.
	Path string
	// Args are the arguments, without the program's name.
	Args []string
	// Dir is the directory to run in; empty means that of this process.
	Dir string
	// Env is the environment as in [os.Environ]; nil means that of this
	// process. Of several values of a variable the last one counts.
	Env []string

	// Stderr, if not nil, receives a copy of the child's standard error, from one
	// goroutine. The child never waits for it: 64 kB are buffered for a slow writer.
	// Output that does not fit, or that follows an error or a panic of the writer, is
	// dropped and counted by [Process.StderrDropped].
	Stderr io.Writer
	// StderrTail is the number of bytes at the end of standard error that are kept for
	// [Process.StderrTail] and [ExitError]; 0 means DefaultStderrTail.
	StderrTail int

	// CloseGrace is how long [Process.Stop] waits for the child to end after
	// its standard input was closed, and TermGrace how long after SIGTERM.
	// 0 means DefaultGrace; a negative value means not to wait.
	CloseGrace, TermGrace time.Duration

	// NoStdin gives the child the null device as its standard input.
	NoStdin bool
	// MergeStderr redirects standard error to standard output.
	MergeStderr bool
	// StderrFile, if set, is the child's standard error. This process then does not
	// read it, and Stderr and StderrTail are ignored. It belongs to the caller, which
	// closes it after Start so that its other end ends with the child.
	StderrFile *os.File
	// KeepGroup keeps the processes that the child has started when the child ends by
	// itself, until Stop or Kill is called. It needs the watchdog or, on Windows, the
	// job; without one the rest of the group ends with the child.
	KeepGroup bool
	// NoWatchdog starts no watchdog. The child then leads the group.
	NoWatchdog bool

	mark    Mark // of the tree
	session bool // start a new session, without a controlling terminal, a watchdog and a mark
}

// A Process is a child that was started. Its methods may be called from any goroutine.
// Stop must be called, or Kill and both pipes closed, even if the child has ended by
// itself.
type Process struct {
	cfg    Config
	pid    int
	stdin  *os.File
	stdout *os.File
	stderr *stderr // nil if it is merged or a StderrFile
	child  *os.Process
	tree   *tree

	stopping sync.Once
	killed   chan struct{}
	killOnce sync.Once
	forced   atomic.Bool
	done     chan struct{} // the child has ended, exit is set
	gone     chan struct{} // the rest of the tree has ended, too
	exit     error
	left     int
}

// Start starts a child. The error wraps [io/fs.ErrNotExist] if there is no such program or
// directory; see [LookPathError] for the former. ctx is checked before anything is
// started and has no effect afterwards.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("starting %s: %w", cfg.Path, err)
	}
	if cfg.StderrTail <= 0 {
		cfg.StderrTail = DefaultStderrTail
	}
	cmd, err := command(&cfg)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", cfg.Path, err)
	}
	p := &Process{
		cfg:    cfg,
		killed: make(chan struct{}),
		done:   make(chan struct{}),
		gone:   make(chan struct{}),
	}
	theirs, err := p.pipes(cmd)
	if err == nil {
		started := make(chan error, 1)
		go p.run(cmd, theirs, started)
		err = <-started
	}
	if err != nil {
		p.closePipes()
		return nil, fmt.Errorf("starting %s: %w", cfg.Path, err)
	}
	return p, nil
}

func command(cfg *Config) (*exec.Cmd, error) {
	path := cfg.Path
	if strings.ContainsAny(path, separators) && cfg.Dir != "" && !filepath.IsAbs(path) {
		path = filepath.Join(cfg.Dir, path)
	}
	path, err := LookPath(path, cfg.Env)
	if err != nil {
		return nil, err
	}
	if cfg.Dir != "" {
		if fi, err := os.Stat(cfg.Dir); err != nil {
			return nil, err
		} else if !fi.IsDir() {
			return nil, fmt.Errorf("%s is not a directory", cfg.Dir)
		}
	}
	cmd := &exec.Cmd{Path: path, Args: append([]string{cfg.Path}, cfg.Args...), Dir: cfg.Dir, Env: cfg.Env}
	if cfg.session {
		cmd.Env, cfg.mark = Unmarked(cmd.Environ()), newMark("")
	} else {
		cmd.Env, cfg.mark = Marked(cmd.Environ())
	}
	return cmd, prepare(cmd)
}

// pipes connects the child and returns its ends.
func (p *Process) pipes(cmd *exec.Cmd) (theirs []*os.File, err error) {
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	if !p.cfg.NoStdin {
		r, w := pipe()
		p.stdin, theirs = w, append(theirs, r)
		cmd.Stdin = r
	}
	r, w := pipe()
	p.stdout, theirs = r, append(theirs, w)
	cmd.Stdout, cmd.Stderr = w, w
	switch {
	case p.cfg.MergeStderr:
	case p.cfg.StderrFile != nil:
		cmd.Stderr = p.cfg.StderrFile
	default:
		r, w := pipe()
		theirs = append(theirs, w)
		cmd.Stderr = w
		if err == nil {
			p.stderr = drain(r, p.cfg.StderrTail, p.cfg.Stderr)
		}
	}
	if err != nil {
		closeAll(theirs)
	}
	return theirs, err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (p *Process) closePipes() {
	closeAll([]*os.File{p.stdin, p.stdout})
	if p.stderr != nil {
		p.stderr.close(0)
	}
}

// run starts the child, waits for it and ends its tree. It keeps the thread that starts
// the child, because Linux binds the death signal to it; that thread is blocked anyway
// while it waits.
func (p *Process) run(cmd *exec.Cmd, theirs []*os.File, started chan<- error) {
	runtime.LockOSThread()
	p.tree = newTree(&p.cfg)
	cmd.SysProcAttr = p.tree.attributes(cmd.SysProcAttr)
	err := cmd.Start()
	closeAll(theirs)
	if err == nil {
		if err = p.tree.adopt(cmd.Process); err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	if err != nil {
		p.tree.end()
		runtime.UnlockOSThread()
		started <- err
		return
	}
	p.pid, p.child = cmd.Process.Pid, cmd.Process
	started <- nil

	err = cmd.Wait()
	runtime.UnlockOSThread()
	keep := p.tree.exited() && p.cfg.KeepGroup
	if !keep {
		if left := p.tree.end(); !p.Forced() {
			p.left = left
		}
	}
	if p.stderr != nil {
		p.stderr.close(drainGrace)
	}
	p.exit = exitError(cmd.ProcessState, err, p.StderrTail())
	close(p.done)
	if keep {
		<-p.killed
		p.tree.end()
	}
	close(p.gone)
}

// PID returns the number of the child.
func (p *Process) PID() int { return p.pid }

// Signal sends a signal to the child alone, not to what it has started. It fails
// if the child has ended, with [os.ErrProcessDone], and on Windows for all signals
// but [os.Kill].
func (p *Process) Signal(sig os.Signal) error { return p.child.Signal(sig) }

// Stdin returns the writing end of the child's standard input, nil with
// [Config.NoStdin]. It belongs to the caller; Stop closes it too.
func (p *Process) Stdin() *os.File { return p.stdin }

// Stdout returns the reading end of the child's standard output. It belongs to the
// caller; Stop closes it last. Output can be read after the child has ended. Reading
// returns io.EOF when every process that has the other end has ended or closed it, which
// a process that has left the tree can delay.
func (p *Process) Stdout() *os.File { return p.stdout }

// StderrTail returns the last bytes of standard error, as valid UTF-8. It is
// complete when Done is closed.
func (p *Process) StderrTail() string {
	if p.stderr == nil {
		return ""
	}
	return p.stderr.text()
}

// StderrDropped returns how many bytes [Config.Stderr] did not receive.
func (p *Process) StderrDropped() int64 {
	if p.stderr == nil {
		return 0
	}
	return p.stderr.dropped()
}

// Done is closed when the child has ended and, without [Config.KeepGroup], the
// rest of its group was killed.
func (p *Process) Done() <-chan struct{} { return p.done }

// EndsWithin waits for Done, for at most d, and reports whether the process has ended.
func (p *Process) EndsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// Forced reports whether the child was sent a signal to end, by Stop or Kill, before
// it had ended.
func (p *Process) Forced() bool { return p.forced.Load() }

// Left waits for Done and returns how many processes the child had left, which were ended
// with it. It is 0 if the tree was ended before the child, with [Config.KeepGroup], and on
// systems other than Linux, which do not say.
func (p *Process) Left() int {
	<-p.done
	return p.left
}

// Wait waits for Done. It returns nil if the child ended with code 0, otherwise
// an *[ExitError].
func (p *Process) Wait() error {
	<-p.done
	return p.exit
}

// Stop ends the tree in three stages: it closes standard input, and after
// CloseGrace sends SIGTERM to the group, and after TermGrace SIGKILL. A stage
// is skipped if the system has no counterpart. Once the child has ended, the other stages
// are skipped and the rest of the tree is killed. When ctx is done, the tree is killed
// without waiting any longer.
//
// Then both pipes are closed. Stop may be called more than once, and after the child has
// ended. It returns nil if the tree has ended, however the child did, and an error if the
// system has not removed it within 5 s.
func (p *Process) Stop(ctx context.Context) error {
	defer p.closePipes()
	return p.End(ctx)
}

// End is Stop, except that it leaves standard output open, so that the rest can be read.
func (p *Process) End(ctx context.Context) error {
	p.stopping.Do(func() { go p.stop() })
	select {
	case <-p.gone:
	case <-p.killed:
	case <-ctx.Done():
		p.Kill()
	}
	if !after(p.gone, killGrace) {
		return fmt.Errorf("process %d does not end", p.pid)
	}
	return nil
}

func (p *Process) stop() {
	defer p.Kill()
	p.tree.survey() // while all ancestors are there
	if p.stdin != nil {
		_ = p.stdin.Close()
		if after(p.done, grace(p.cfg.CloseGrace)) {
			return
		}
		p.tree.survey()
	}
	p.forced.Store(true)
	if p.tree.terminate() {
		after(p.done, grace(p.cfg.TermGrace))
	}
}

// Kill kills the tree at once and does not wait. It may be called at any time.
// The pipes stay open.
func (p *Process) Kill() {
	p.killOnce.Do(func() {
		select {
		case <-p.done:
		default:
			p.forced.Store(true)
		}
		p.tree.kill()
		close(p.killed)
	})
}

func grace(d time.Duration) time.Duration {
	if d == 0 {
		return DefaultGrace
	}
	return d
}

// after waits for c for at most d and reports whether it is closed.
func after(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// An ExitError says that a child ended with a code other than 0, by a signal, or
// with 0 although nothing had told it to.
type ExitError struct {
	Code   int    // the exit code; -1 if a signal ended the child
	Signal string // such as "SIGKILL"; empty if none did
	Stderr string // the last of what it wrote to standard error
}

// ExitCode returns Code, for callers that cannot name the type.
func (e *ExitError) ExitCode() int { return e.Code }

// Error returns the code or the signal, and the line of standard error that tells why.
func (e *ExitError) Error() string {
	s := fmt.Sprintf("exit status %d", e.Code)
	if e.Signal != "" {
		s = "ended by " + e.Signal
	}
	if why := Reason(e.Stderr); why != "" {
		s += ": " + why
	}
	return s
}

// A StillRunningError says that a child closed its output although it had not ended.
type StillRunningError struct {
	Stderr string // the last of what it wrote to standard error
}

// Error returns what happened, and the line of standard error that tells why.
func (e *StillRunningError) Error() string {
	s := "it closed its output, and had not ended"
	if why := Reason(e.Stderr); why != "" {
		s += ": " + why
	}
	return s
}

func exitError(state *os.ProcessState, err error, tail string) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		return &ExitError{Code: state.ExitCode(), Signal: signalName(state), Stderr: tail}
	}
	return fmt.Errorf("waiting for the process: %w", err)
}
