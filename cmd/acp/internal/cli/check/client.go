package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

const (
	// placeholder is what the command of the agent is put in place of.
	placeholder = "{agent}"
	// agentVar is the variable that tells a client the command of its agent.
	agentVar = "ACP_AGENT_COMMAND"
	// ConnectCommand is the hidden command that clients start as their agent.
	ConnectCommand = "check-connect"
	// reachWithin is how long a client may take to start its agent.
	reachWithin = 30 * time.Second
	// againWithin is how long a client may take to start its agent again, at least: half of what
	// a step may take, for a busy machine.
	againWithin = 3 * time.Second
	// patience is how long a person may take to send a prompt.
	patience = 30 * time.Minute
	// maxPending bounds the connections that wait to be used.
	maxPending = 4
)

// checkClient checks a client.
func (o *Options) checkClient(ctx context.Context, opt conformance.Options, rec *recording, p *progress) (r *conformance.Report, reached, err error) {
	s := &starter{ctx: ctx, rec: rec}
	if len(o.Argv) > 0 {
		s.cfg = process.Config{Path: o.Argv[0], Args: o.Argv[1:], Dir: o.App.Cwd, Env: os.Environ(), CloseGrace: endGrace}
		if _, err := roster.LookPath(s.cfg.Path, s.cfg.Dir, s.cfg.Env); err != nil {
			return nil, nil, exitcode.Errorf(exitcode.Agent, "the client cannot be checked: program %s: %w", roster.Quote(s.cfg.Path), err)
		}
		if !strings.Contains(strings.Join(o.Argv, " "), placeholder) {
			r, err = conformance.CheckClient(ctx, func(context.Context) (*conformance.Peer, error) { return s.peer() }, opt)
			s.wait()
			s.explain(r)
			return r, s.fault(), err
		}
	}
	if len(o.Argv) == 0 {
		door, err := listen(ctx, o.App)
		if err != nil {
			return nil, nil, err
		}
		defer door.close()
		opt.Patience = patience
		p.invite(door)
		r, err = conformance.CheckClient(ctx, func(ctx context.Context) (*conformance.Peer, error) {
			c, err := door.accept(ctx, nil)
			if err != nil {
				return nil, err
			}
			return peerOf(c, c, nil), nil
		}, opt)
		return r, nil, err
	}
	plain := s.cfg
	var last *visitor
	r, err = conformance.CheckClient(ctx, func(ctx context.Context) (*conformance.Peer, error) {
		if c := last.again(ctx, max(againWithin, opt.Timeout/2)); c != nil {
			return last.peer(c, s), nil
		}
		// Each has a door of its own: one that is being ended may start its agent once
		// more, and must not be taken for the next one.
		door, err := listen(ctx, o.App)
		if err != nil {
			return nil, err
		}
		s.cfg = visiting(plain, door)
		proc, err := s.start()
		if err != nil {
			door.close()
			return nil, err
		}
		s.leaveAlone(proc)
		v := &visitor{proc: proc, door: door, open: 1, end: func() { door.close(); s.end(proc) }}
		within := max(reachWithin, opt.Timeout)
		ctx, cancel := context.WithTimeoutCause(ctx, within, &notReached{within})
		defer cancel()
		c, err := door.accept(ctx, proc.Done())
		if err != nil {
			why := s.ended(proc)()
			v.leave()
			if why != "" {
				return nil, fmt.Errorf("the client has started no agent and ended: %s", why)
			}
			return nil, err
		}
		last = v
		return v.peer(c, s), nil
	}, opt)
	s.wait()
	s.explain(r)
	return r, s.fault(), err
}

// visiting returns how a client is started that comes to a door.
func visiting(cfg process.Config, d *door) process.Config {
	var args []string
	for i, a := range cfg.Args {
		if a == placeholder {
			// A client that takes the command as arguments gets it as such.
			args = append(append(args, d.command()...), cfg.Args[i+1:]...)
			break
		}
		args = append(args, strings.ReplaceAll(a, placeholder, d.line()))
	}
	cfg.Args = args
	cfg.Env = append(slices.Clip(cfg.Env), agentVar+"="+d.line())
	return cfg
}

// A visitor is a client that was started, and may connect more than once: some
// start their agent again to ask for an earlier version. It is ended with the last
// of its connections.
type visitor struct {
	proc *process.Process
	door *door
	end  func()
	last net.Conn    // of its connections
	left atomic.Bool // it has closed a connection
	mu   sync.Mutex
	open int // connections; none, and it is being ended
}

// again waits for a while for a visitor that has closed its connection, and that we have not,
// to connect once more, and returns nil if it does not. A visitor that is nil does
// not.
func (v *visitor) again(ctx context.Context, within time.Duration) net.Conn {
	if v == nil || !v.left.Swap(false) || !v.enter() {
		return nil
	}
	// Many wait for their agent to end before they start it again.
	if half, ok := v.last.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c, err := v.door.accept(ctx, v.proc.Done())
	if err != nil {
		v.leave()
		return nil
	}
	return c
}

func (v *visitor) enter() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open == 0 {
		return false
	}
	v.open++
	return true
}

func (v *visitor) leave() {
	v.mu.Lock()
	v.open--
	over := v.open == 0
	v.mu.Unlock()
	if over {
		v.end()
	}
}

func (v *visitor) peer(c net.Conn, s *starter) *conformance.Peer {
	v.last = c
	peer := peerOf(c, s.measure(io.NopCloser(c)), sync.OnceFunc(v.leave))
	peer.Stream = &leaving{peer.Stream, v}
	peer.Wait, peer.PID, peer.Ended = waitFor(v.proc), v.proc.PID(), s.ended(v.proc)
	return peer
}

// leaving is a stream that notes that the client has closed it.
type leaving struct {
	jsonrpc.Stream
	v *visitor
}

// ReadFrame implements [jsonrpc.Stream].
func (l *leaving) ReadFrame() (jsonrpc.Frame, error) {
	f, err := l.Stream.ReadFrame()
	if errors.Is(err, io.EOF) {
		l.v.left.Store(true)
	}
	return f, err
}

// peerOf is the client behind a connection; end, if not nil, is called when that is
// closed.
func peerOf(c net.Conn, in io.ReadCloser, end func()) *conformance.Peer {
	if end == nil {
		end = func() {}
	}
	peer := &conformance.Peer{Stream: &ending{jsonrpc.NewLineStream(in, c), end}, Raw: c, Stderr: &stderrOf{c}}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		peer.CloseWrite = half.CloseWrite
	}
	return peer
}

// A door is where clients' agents connect to.
type door struct {
	ln   net.Listener
	dir  string
	self string
	in   chan net.Conn
	done chan struct{}
	wait sync.WaitGroup

	forget func() // ends that dir is removed at the exit of the process
}

// listen opens a socket in a directory that only the user can enter, or on Windows
// on the loopback interface.
func listen(ctx context.Context, a *app.App) (d *door, err error) {
	d = &door{forget: func() {}, in: make(chan net.Conn, maxPending), done: make(chan struct{})}
	if d.self, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("this program: %w", err)
	}
	var lc net.ListenConfig
	if runtime.GOOS == "windows" {
		d.ln, err = lc.Listen(ctx, "tcp", "127.0.0.1:0")
	} else {
		// The names of sockets are short.
		if d.dir, err = os.MkdirTemp("", "acp"); err != nil {
			return nil, err
		}
		d.forget = a.BeforeExit(func() { _ = os.RemoveAll(d.dir) })
		d.ln, err = lc.Listen(ctx, "unix", filepath.Join(d.dir, "s"))
	}
	if err != nil {
		d.forget()
		_ = os.RemoveAll(d.dir)
		return nil, fmt.Errorf("a way for the client's agent: %w", err)
	}
	d.wait.Go(func() {
		for {
			c, err := d.ln.Accept()
			if err != nil {
				return
			}
			select {
			case d.in <- c:
			default:
				_ = c.Close() // nobody wants that many
			}
		}
	})
	return d, nil
}

func (d *door) close() {
	_ = d.ln.Close()
	d.wait.Wait()
	for {
		select {
		case c := <-d.in:
			_ = c.Close()
			continue
		default:
		}
		break
	}
	if d.dir != "" {
		_ = os.RemoveAll(d.dir)
	}
	d.forget()
}

// command is what a client has to start as its agent.
func (d *door) command() []string { return []string{d.self, ConnectCommand, d.ln.Addr().String()} }

func (d *door) line() string { return roster.Join(d.command()) }

// accept waits for a connection, or for the client to end.
func (d *door) accept(ctx context.Context, ended <-chan struct{}) (net.Conn, error) {
	select {
	case c := <-d.in:
		return c, nil
	case <-ended:
		select {
		case c := <-d.in: // it was quick
			return c, nil
		default:
			return nil, errors.New("the client has ended without starting its agent")
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// NewConnect returns the hidden command that a client under test starts as its
// agent: it joins its standard streams with the check.
func NewConnect(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:    ConnectCommand + " ADDRESS",
		Short:  "Be the agent of a client that is checked",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			network := "unix"
			if runtime.GOOS == "windows" {
				network = "tcp"
			}
			var dialer net.Dialer
			c, err := dialer.DialContext(cmd.Context(), network, args[0])
			if err != nil {
				return exitcode.Errorf(exitcode.Agent, "the check is over: %w", err)
			}
			return join(cmd.Context(), a, c)
		},
	}
}

// join copies both ways, until the check has closed the connection or ctx ends, as
// when the client ends its agent by a signal.
func join(ctx context.Context, a *app.App, c net.Conn) error {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	go func() { // reading the input cannot be given up: it ends with the process
		_, _ = io.Copy(c, a.In)
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	err := forward(a.Out, a.Err, c)
	_ = c.Close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
