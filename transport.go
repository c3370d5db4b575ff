package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// A Transport is a way to the peer. Opening it gives a stream of messages; whoever
// opened it closes the stream. A client may open its transport again, when an
// agent that answered in another version has to be asked anew; a transport that
// cannot be opened twice returns [ErrReopen].
//
// [WrapTransport] wraps one transport in another. A stream of a transport of your
// own that knows how its peer ended may have the method ExitErr() error, which
// returns nil if the peer ended well or has not ended; what it returns becomes part
// of the errors of the connection.
type Transport interface {
	Open(ctx context.Context) (jsonrpc.Stream, error)
}

// Stdio is the transport of an agent that was started by its client: standard
// input and output. It takes them over; log to standard error.
func Stdio() Transport { return &once{open: jsonrpc.Stdio, stdio: true} }

// Over is the transport that consists of a stream that is open already.
func Over(stream jsonrpc.Stream) Transport {
	return &once{open: func() jsonrpc.Stream { return stream }}
}

// Pipe returns two transports that are connected with each other in memory, for
// an agent and a client in one process.
func Pipe() (agent, client Transport) {
	a, b := jsonrpc.Pipe()
	return Over(a), Over(b)
}

// once can be opened once.
type once struct {
	mu    sync.Mutex
	open  func() jsonrpc.Stream
	stdio bool // of this process, whose end closes it
}

func (t *once) Open(context.Context) (jsonrpc.Stream, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		return nil, ErrReopen
	}
	open := t.open
	t.open = nil
	return open(), nil
}

// A CommandTransport starts a program and talks to it over its standard input
// and output. Each time it is opened it starts a new process. Fields must not be
// changed after the first use: set them before you wrap the transport.
//
// Closing the connection ends the process and everything it has started: its
// input ends, then, after CloseGrace, it is asked to terminate, then, after
// TermGrace, it is killed, each time together with its descendants. They end,
// too, when this program dies.
//
// On Unix the program runs in a process group of its own. Ctrl-C in a terminal
// therefore reaches this program only, which decides what to cancel.
type CommandTransport struct {
	Path string   // the program; without a separator it is looked up in PATH
	Args []string // without the program's name
	Dir  string   // to run in; "" is that of this process
	// Env is the environment as in [os.Environ]; nil is that of this process.
	Env []string
	// LoginEnv starts the program with the environment of the user's login
	// shell, which programs that were not started from a terminal lack; Env is
	// added to it.
	LoginEnv bool
	// Stderr gets what the program writes there; nil discards it. It is read in
	// any case: its last 16 kB are part of the error when the program fails. A
	// slow writer misses some of it rather than hold the program up.
	Stderr io.Writer
	// CloseGrace and TermGrace are how long each stage of ending waits; 0
	// means 2 s.
	CloseGrace, TermGrace time.Duration
}

// Command is the transport of a client that starts its agent.
func Command(name string, args ...string) *CommandTransport {
	return &CommandTransport{Path: name, Args: args}
}

// Open starts the program.
func (t *CommandTransport) Open(ctx context.Context) (jsonrpc.Stream, error) {
	env := t.Env
	if t.LoginEnv {
		login, err := process.LoginEnv(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		env = append(login, t.Env...) // LoginEnv falls back to ours
	}
	p, err := process.Start(ctx, process.Config{
		Path: t.Path, Args: t.Args, Dir: t.Dir, Env: env, Stderr: t.Stderr,
		CloseGrace: t.CloseGrace, TermGrace: t.TermGrace,
	})
	if err != nil {
		return nil, fmt.Errorf("acp: start agent: %w", err)
	}
	out := &childOutput{ReadCloser: p.Stdout(), p: p, closed: make(chan struct{})}
	go closeAfter(p, out.closed)
	out.stream = jsonrpc.NewLineStream(out, p.Stdin())
	processes.Store(out.stream, p)
	return out.stream, nil
}

// processes has the processes behind streams that are open. A stream cannot tell
// by itself: one of a type of our own would lose what makes those of package
// jsonrpc fast.
var processes sync.Map // jsonrpc.Stream to *process.Process

// outputWait is how long the output of a process that has ended is still read.
const outputWait = 10 * time.Second

// closeAfter closes the output of a process some time after its end, in case a
// process that left its tree holds it open. It is not needed any more when done
// is closed.
func closeAfter(p *process.Process, done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-p.Done():
	}
	timer := time.NewTimer(outputWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		_ = p.Stop(context.Background())
	}
}

// childOutput is a child's standard output. A stream is closed with its input
// first, so closing this one is the time to end the child.
type childOutput struct {
	io.ReadCloser
	p      *process.Process
	stream jsonrpc.Stream
	once   sync.Once
	closed chan struct{}
}

func (o *childOutput) Close() error {
	o.once.Do(func() {
		close(o.closed)
		processes.Delete(o.stream)
	})
	stopped := o.p.Stop(context.Background()) // bounded by its stages
	err := o.ReadCloser.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(stopped, err)
}

// openTransport opens a transport.
func openTransport(ctx context.Context, t Transport) (jsonrpc.Stream, error) {
	if t == nil {
		return nil, errors.New("acp: no transport")
	}
	return t.Open(ctx)
}

// endTransport has a peer that waits at a transport that is not going to be used
// find its end. A program is not started for that, and standard output is left to
// the application, which is about to say what is wrong.
func endTransport(ctx context.Context, t Transport) {
	if t == nil {
		return
	}
	switch t := innermost(t).(type) {
	case *CommandTransport:
		return
	case *once:
		if t.stdio {
			return
		}
	}
	if stream, err := t.Open(ctx); err == nil {
		_ = stream.Close()
	}
}
