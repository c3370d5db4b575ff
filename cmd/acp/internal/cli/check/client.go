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
	// placeholder stands for the agent's command in the arguments of a client.
	placeholder = "{agent}"
	// agentVar is the environment variable that contains the agent's command.
	agentVar = "ACP_AGENT_COMMAND"
	// ConnectCommand is the hidden command that clients start as their agent.
	ConnectCommand = "check-connect"
	// reachWithin is how long a client may take to start its agent.
	reachWithin = 30 * time.Second
	// againWithin is the minimum time that a client has to start its agent again. On a busy
	// machine, half of the time limit for a step may be more, and then that applies.
	againWithin = 3 * time.Second
	// patience is how long a person may take to send the next prompt.
	patience = 30 * time.Minute
	// maxPending bounds the connections that wait to be accepted; more are closed.
	maxPending = 4
)

// checkClient checks a client. There are three ways to reach it: on its standard streams; through
// the command that replaces {agent}, which the client starts as its agent; or through an editor
// that a person has configured. reached is the reason why there was no client, or nil.
func (o *Options) checkClient(ctx context.Context, opt conformance.Options, rec *recording, p *progress) (r *conformance.Report, reached, err error) {
	s := &starter{ctx: ctx, rec: rec}
	if len(o.Argv) > 0 {
		s.cfg = process.Config{Path: o.Argv[0], Args: o.Argv[1:], Dir: o.App.Cwd, Env: os.Environ(), CloseGrace: endGrace}
		if _, err := roster.LookPath(s.cfg.Path, s.cfg.Dir, s.cfg.Env); err != nil {
			return nil, nil, exitcode.Errorf(exitcode.Agent, "the client cannot be checked: program %s: %w", roster.Quote(s.cfg.Path), err)
		}
		if !strings.Contains(strings.Join(o.Argv, " "), placeholder) {
			r, err = conformance.CheckClient(ctx, s.peer, opt)
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
		// Every client gets its own door. A client that is being stopped may start its agent
		// once more, and that connection must not be mistaken for the next client.
		door, err := listen(ctx, o.App)
		if err != nil {
			return nil, err
		}
		s.cfg = visiting(plain, door)
		proc, err := s.start(ctx)
		if err != nil {
			door.close()
			return nil, err
		}
		s.leaveAlone(proc)
		v := &visitor{proc: proc, door: door, open: 1, end: func() { door.close(); s.stop(proc) }}
		within := max(reachWithin, opt.Timeout)
		ctx, cancel := context.WithTimeoutCause(ctx, within, &notReached{within})
		defer cancel()
		c, err := door.accept(ctx, proc.Done())
		if err != nil {
			why := s.ended(proc)()
			v.leave()
			if why != "" {
				return nil, fmt.Errorf("the client exited without starting its agent: %s", why)
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

// visiting returns the configuration of a client whose agent connects to d.
func visiting(cfg process.Config, d *door) process.Config {
	var args []string
	for i, a := range cfg.Args {
		if a == placeholder {
			// {agent} as a whole argument becomes several arguments, as after "--".
			args = append(append(args, d.command()...), cfg.Args[i+1:]...)
			break
		}
		args = append(args, strings.ReplaceAll(a, placeholder, d.line()))
	}
	cfg.Args = args
	cfg.Env = append(slices.Clip(cfg.Env), agentVar+"="+d.line())
	return cfg
}

// A visitor is a running client, which may connect more than once: some clients start their
// agent again to ask for an earlier version of the protocol. It is stopped when its last
// connection is closed.
type visitor struct {
	proc *process.Process
	door *door
	end  func()
	last net.Conn    // the latest connection
	left atomic.Bool // the client has closed a connection
	mu   sync.Mutex
	open int // open connections; at 0 the client is being stopped
}

// again waits for the client to connect once more, if it has closed its connection by itself.
// It returns nil if the client does not connect in time. v may be nil.
func (v *visitor) again(ctx context.Context, within time.Duration) net.Conn {
	if v == nil || !v.left.Swap(false) || !v.enter() {
		return nil
	}
	// Many clients wait for their agent to exit before they start it again.
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

// enter counts one more user of the visitor's connection. It reports false if that has ended.
// enter counts a new connection. It reports false if the client is being stopped already.
func (v *visitor) enter() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.open == 0 {
		return false
	}
	v.open++
	return true
}

// leave counts one user less; the last one ends the visit. leave counts the end of a connection,
// and stops the client after its last one.
func (v *visitor) leave() {
	v.mu.Lock()
	v.open--
	last := v.open == 0
	v.mu.Unlock()
	if last {
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

// leaving is a stream that records when the client closes it.
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

// peerOf returns the client behind a connection. end, if not nil, is called when the
// connection is closed.
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

// A door is the socket that the command started by a client connects to. See [NewConnect].
type door struct {
	ln   net.Listener
	dir  string
	self string
	in   chan net.Conn
	done chan struct{}
	wait sync.WaitGroup

	forget func() // cancels the removal of dir at the exit of the process
}

// listen opens a socket in a directory that only the user can enter, or, on Windows, on the
// loopback interface.
func listen(ctx context.Context, a *app.App) (d *door, err error) {
	d = &door{forget: func() {}, in: make(chan net.Conn, maxPending), done: make(chan struct{})}
	if d.self, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("this program: %w", err)
	}
	var lc net.ListenConfig
	if runtime.GOOS == "windows" {
		d.ln, err = lc.Listen(ctx, "tcp", "127.0.0.1:0")
	} else {
		// The path of a socket may have at most about 100 bytes, so the names are short.
		if d.dir, err = os.MkdirTemp("", "acp"); err != nil {
			return nil, err
		}
		d.forget = a.BeforeExit(func() { _ = os.RemoveAll(d.dir) })
		d.ln, err = lc.Listen(ctx, "unix", filepath.Join(d.dir, "s"))
	}
	if err != nil {
		d.forget()
		_ = os.RemoveAll(d.dir)
		return nil, fmt.Errorf("opening a socket for the client's agent: %w", err)
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
				_ = c.Close() // see maxPending
			}
		}
	})
	return d, nil
}

// close accepts no more clients, and closes the connections of those that wait.
// close closes the socket and all connections that were not accepted, and removes the directory.
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

// command returns the command that the client must start as its agent.
func (d *door) command() []string { return []string{d.self, ConnectCommand, d.ln.Addr().String()} }

func (d *door) line() string { return roster.Join(d.command()) }

// accept waits for a connection. It fails when the client exits or ctx is done.
func (d *door) accept(ctx context.Context, ended <-chan struct{}) (net.Conn, error) {
	select {
	case c := <-d.in:
		return c, nil
	case <-ended:
		select {
		case c := <-d.in: // the client connected before it exited
			return c, nil
		default:
			return nil, errors.New("the client exited without starting its agent")
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// NewConnect returns the hidden command that a client under test starts as its agent. It
// connects its standard streams to the check, so that the check, which runs in another process,
// acts as that agent.
func NewConnect(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:    ConnectCommand + " ADDRESS",
		Short:  "Act as the agent of a client that is being checked",
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
				return exitcode.Errorf(exitcode.Agent, "the check has ended: %w", err)
			}
			return join(cmd.Context(), a, c)
		},
	}
}

// join copies both ways until the check closes the connection or ctx is done, for example
// because the client has sent its agent a signal.
func join(ctx context.Context, a *app.App, c net.Conn) error {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	go func() { // a blocked read cannot be cancelled: this goroutine ends with the process
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
