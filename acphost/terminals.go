package acphost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// Defaults of the bounds in [Terminals].
const (
	DefaultOutputLimit  = 1 << 20
	DefaultMaxOutput    = 16 << 20
	DefaultMaxTerminals = 32
	DefaultGrace        = 2 * time.Second
)

// maxAllTerminals bounds the terminals of all sessions together.
const maxAllTerminals = 512

// outputGrace is how long an exit status waits for output that a process left
// behind may still write.
const outputGrace = 200 * time.Millisecond

// Terminals runs commands for an agent: it is an acp.TerminalHost. It is made
// by [Local]; the fields may be set before it is used for the first time. Its
// methods may be called from any goroutine. Close ends what still runs; the
// connection that the terminals were made for calls it.
//
// A command runs with no input. What it writes to standard output and standard
// error is one text, in order, of which the end is kept. When the command ends,
// processes it has started in the background continue until the terminal is killed
// or released; then what it started ends with it, as it does when this process
// dies. On Linux that includes daemons, which are found by a mark in their
// environment, ACP_TREE, unless they have removed it or do not let it be read.
// Elsewhere what has left the group of the command is not found.
//
// A terminal that another session made is as unknown as one that was released:
// both are answered with -32002.
type Terminals struct {
	// Env is the environment of the commands, to which a request adds; nil
	// means that of this process.
	Env []string
	// OutputLimit is how many bytes of output are kept when the request does
	// not say, and MaxOutput the most that one can ask for; 0 means
	// DefaultOutputLimit and DefaultMaxOutput. A terminal may take up to
	// twice as much memory.
	OutputLimit, MaxOutput int
	// MaxTerminals bounds the terminals of a session that were not released,
	// whether their commands run or not; 0 means DefaultMaxTerminals. At the
	// bound, and at 512 of all sessions, no more are made.
	MaxTerminals int
	// Grace is how long a command that is to end has after SIGTERM, before
	// SIGKILL; 0 means DefaultGrace and a negative value not to wait.
	Grace time.Duration
	// PTY, if set, runs the commands instead.
	PTY PTY
	// Permit, if set, is called before a command is started, with the request
	// as it came, and may ask the user. If it returns an error, that is the
	// agent's answer, and nothing is started; [fs.ErrPermission] tells it so.
	// Nothing is started either if the working directory, or the file that the
	// command names, leads somewhere else when Permit returns than before.
	Permit func(ctx context.Context, req *acpv1.CreateTerminalRequest) error
	// Watch, if set, is called with what terminals do, for programs that show
	// them. The events of a terminal come in order and one at a time, from a
	// goroutine of its own. A slow hook does not delay the command: up to 256 kB
	// of output wait for it, and beyond that the oldest is dropped. It must
	// return in the end, or the goroutine stays.
	Watch func(TerminalEvent)

	roots []string
	err   error // of finding the roots

	mu     sync.Mutex
	closed bool
	last   int
	all    map[acpv1.TerminalID]*terminal
}

type terminal struct {
	session acpv1.SessionID
	started chan struct{} // closed when cmd is set or will not be
	cmd     PTYProcess    // nil if it did not start
	read    chan struct{} // closed when there is no more output
	exited  chan struct{} // closed when status is set
	watcher *watcher      // nil if nobody watches
	status  acpv1.TerminalExitStatus

	mu   sync.Mutex
	tail *process.Tail
}

// Local returns terminals that run commands on this machine. If there are roots,
// a working directory must be one of them or below, and the first is what a
// request that names none gets; otherwise that is the current directory of this
// process. The roots say where commands start, not what they can reach.
func Local(roots ...string) *Terminals {
	h := new(Terminals)
	h.roots, h.err = absolute(roots)
	return h
}

// CreateTerminal starts a command. A command without arguments that has white
// space or signs of a shell in it is a line and given to /bin/sh, unless it is the
// absolute path of a file: some agents send such lines. A line is never looked for
// as a file in the working directory. A program that cannot be found, a line where
// there is no /bin/sh, or a working directory that is not absolute, does not exist
// or is outside of the roots, is answered with -32602. Once the context is done,
// nothing is left running.
func (h *Terminals) CreateTerminal(ctx context.Context, req *acpv1.CreateTerminalRequest) (*acpv1.CreateTerminalResponse, error) {
	cmd, err := h.command(req)
	if err != nil {
		return nil, err
	}
	if h.Permit != nil {
		if err := h.permit(ctx, req, cmd); err != nil {
			return nil, err
		}
	}
	t := &terminal{
		session: req.SessionID,
		started: make(chan struct{}),
		read:    make(chan struct{}),
		exited:  make(chan struct{}),
		tail:    process.NewTail(h.limit(req.OutputByteLimit)),
	}
	id, err := h.add(t)
	if err != nil {
		return nil, err
	}
	if h.Watch != nil {
		t.watcher = newWatcher(h.Watch, TerminalEvent{SessionID: t.session, TerminalID: id})
	}
	err = t.start(ctx, h.runner(), cmd)
	if err != nil {
		h.remove(t.session, id)
		return nil, startError(err)
	}
	if ctx.Err() != nil {
		// Nobody will learn of it.
		if h.remove(t.session, id) != nil {
			err = t.end(ctx)
		}
		return nil, errors.Join(context.Cause(ctx), err)
	}
	if h.find(t.session, id) == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternalError, "The session has ended")
	}
	return &acpv1.CreateTerminalResponse{TerminalID: id}, nil
}

// permit asks the hook. What it is shown is what is run: it gets a request of
// its own, and must lead where it did before when the hook returns.
func (h *Terminals) permit(ctx context.Context, req *acpv1.CreateTerminalRequest, cmd PTYCommand) error {
	shown := *req
	shown.Args, shown.Env = slices.Clone(req.Args), slices.Clone(req.Env)
	dir, program := cmd.leads()
	switch err := h.Permit(ctx, &shown); {
	case errors.Is(err, fs.ErrPermission):
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "Permission denied")
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if _, err := h.dir(req.Cwd); err != nil {
		return err
	}
	switch nowDir, nowProgram := cmd.leads(); {
	case nowDir != dir:
		return invalid("cwd", "has come to lead somewhere else")
	case nowProgram != program:
		return invalid("command", "has come to lead somewhere else")
	}
	return nil
}

func (t *terminal) start(ctx context.Context, pty PTY, c PTYCommand) error {
	defer close(t.started)
	cmd, err := pty.Start(ctx, c)
	if err != nil {
		return err
	}
	t.cmd = cmd
	go t.collect()
	go t.wait()
	if t.watcher != nil {
		go t.watch(TerminalStart{Command: c.Path, Args: c.Args, Cwd: c.Dir})
	}
	return nil
}

// collect keeps what the command prints, as fast as it does.
func (t *terminal) collect() {
	defer close(t.read)
	buf := make([]byte, 32<<10)
	for {
		n, err := t.cmd.Read(buf)
		t.mu.Lock()
		_, _ = t.tail.Write(buf[:n]) // never fails
		t.mu.Unlock()
		if t.watcher != nil {
			t.watcher.write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

func (t *terminal) wait() {
	defer close(t.exited)
	code, signal := t.cmd.Wait()
	timer := time.NewTimer(outputGrace)
	defer timer.Stop()
	select {
	case <-t.read:
	case <-timer.C:
	}
	t.status.Signal = signal
	if signal == "" && code >= 0 {
		t.status.ExitCode = new(uint32(code))
	}
}

// end ends the command and forgets its output.
func (t *terminal) end(ctx context.Context) error {
	<-t.started
	if t.cmd == nil {
		return nil
	}
	err := errors.Join(t.cmd.End(ctx), t.cmd.Close())
	if err == nil {
		<-t.exited
	}
	return err
}

func (h *Terminals) limit(asked *uint64) int {
	limit, most := h.OutputLimit, h.MaxOutput
	if limit <= 0 {
		limit = DefaultOutputLimit
	}
	if most <= 0 {
		most = DefaultMaxOutput
	}
	if asked != nil {
		limit = int(min(*asked, uint64(most)))
	}
	return min(limit, most)
}

func (h *Terminals) runner() PTY {
	if h.PTY != nil {
		return h.PTY
	}
	return pipes{h.Grace}
}

// add gives a terminal its id.
func (h *Terminals) add(t *terminal) (acpv1.TerminalID, error) {
	most := h.MaxTerminals
	if most <= 0 {
		most = DefaultMaxTerminals
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return "", errors.New("acphost: the terminals are closed")
	}
	n := 0
	for _, other := range h.all {
		if other.session == t.session {
			n++
		}
	}
	if n >= most || len(h.all) >= maxAllTerminals {
		return "", jsonrpc.Errorf(jsonrpc.CodeInternalError, "There are %d terminals already; release some", n)
	}
	if h.all == nil {
		h.all = map[acpv1.TerminalID]*terminal{}
	}
	h.last++
	id := acpv1.TerminalID("term-" + strconv.Itoa(h.last))
	h.all[id] = t
	return id, nil
}

// find returns a terminal of the session whose command was started, or nil.
func (h *Terminals) find(session acpv1.SessionID, id acpv1.TerminalID) *terminal {
	h.mu.Lock()
	t := h.all[id]
	h.mu.Unlock()
	if t == nil || t.session != session {
		return nil
	}
	select {
	case <-t.started:
	default:
		return nil // its id is only guessed
	}
	if t.cmd == nil {
		return nil
	}
	return t
}

// remove takes a terminal of the session away, so that nobody else finds it.
func (h *Terminals) remove(session acpv1.SessionID, id acpv1.TerminalID) *terminal {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.all[id]
	if t == nil || t.session != session {
		return nil
	}
	delete(h.all, id)
	return t
}

func unknownTerminal(id acpv1.TerminalID) error { return notFound("terminalId", string(id)) }

// TerminalOutput returns the output so far, beginning with a whole character,
// and how the command ended, if it has. Bytes that are not UTF-8 are returned
// as U+FFFD.
func (h *Terminals) TerminalOutput(_ context.Context, req *acpv1.TerminalOutputRequest) (*acpv1.TerminalOutputResponse, error) {
	t := h.find(req.SessionID, req.TerminalID)
	if t == nil {
		return nil, unknownTerminal(req.TerminalID)
	}
	resp := new(acpv1.TerminalOutputResponse)
	select {
	case <-t.exited: // first: then the output is complete
		status := t.status
		resp.ExitStatus = &status
	default:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	resp.Output, resp.Truncated = t.tail.Text()
	return resp, nil
}

// WaitForTerminalExit waits until the command has ended, also when the terminal
// is released meanwhile, or for the end of the context.
func (h *Terminals) WaitForTerminalExit(ctx context.Context, req *acpv1.WaitForTerminalExitRequest) (*acpv1.WaitForTerminalExitResponse, error) {
	t := h.find(req.SessionID, req.TerminalID)
	if t == nil {
		return nil, unknownTerminal(req.TerminalID)
	}
	select {
	case <-t.exited:
		return &acpv1.WaitForTerminalExitResponse{ExitCode: t.status.ExitCode, Signal: t.status.Signal}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// KillTerminal ends the command and everything it has started, politely first,
// and returns when it has ended. The output stays. When the context ends,
// politeness does.
func (h *Terminals) KillTerminal(ctx context.Context, req *acpv1.KillTerminalRequest) (*acpv1.KillTerminalResponse, error) {
	t := h.find(req.SessionID, req.TerminalID)
	if t == nil {
		return nil, unknownTerminal(req.TerminalID)
	}
	if err := t.cmd.End(ctx); err != nil {
		return nil, fmt.Errorf("acphost: %w", err)
	}
	<-t.exited
	return &acpv1.KillTerminalResponse{}, nil
}

// ReleaseTerminal forgets a terminal, after ending what still runs as
// KillTerminal does.
func (h *Terminals) ReleaseTerminal(ctx context.Context, req *acpv1.ReleaseTerminalRequest) (*acpv1.ReleaseTerminalResponse, error) {
	t := h.remove(req.SessionID, req.TerminalID)
	if t == nil {
		return nil, unknownTerminal(req.TerminalID)
	}
	if err := t.end(ctx); err != nil {
		return nil, fmt.Errorf("acphost: %w", err)
	}
	return &acpv1.ReleaseTerminalResponse{}, nil
}

// ReleaseSession kills and forgets the terminals of a session.
func (h *Terminals) ReleaseSession(id acpv1.SessionID) {
	_ = h.drop(func(t *terminal) bool { return t.session == id })
}

// Close kills and forgets all terminals; no more can be made. It may be called
// more than once.
func (h *Terminals) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	return h.drop(func(*terminal) bool { return true })
}

// drop kills terminals at once, all at the same time.
func (h *Terminals) drop(which func(*terminal) bool) error {
	var dropped []*terminal
	h.mu.Lock()
	for id, t := range h.all {
		if which(t) {
			delete(h.all, id)
			dropped = append(dropped, t)
		}
	}
	h.mu.Unlock()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	errs := make([]error, len(dropped))
	var wg sync.WaitGroup
	for i, t := range dropped {
		wg.Go(func() { errs[i] = t.end(now) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
