package launch

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// outputWait is how long the output of a process that has ended is still read, in case something
// that it has started holds it open.
const outputWait = 10 * time.Second

// Open returns the stream of an agent's messages, for callers that exchange frames with it: that of a
// new process, see [Process] and [Stream], or of a connection to its URL. stderr receives what a process
// writes there; nil discards it.
func Open(ctx context.Context, agent roster.Agent, dir string, stderr io.Writer) (jsonrpc.Stream, error) {
	if agent.URL != "" {
		t, err := Transport(agent, Options{})
		if err != nil {
			return nil, err
		}
		return t.Open(ctx)
	}
	c, err := Process(ctx, agent, dir)
	if err != nil {
		return nil, err
	}
	c.Stderr = stderr
	return Stream(ctx, c)
}

// Stream starts a process, such as one of [Process], and returns the stream of its messages. Closing
// the stream ends the process in stages: its input ends, it is asked to terminate, it is killed, each
// with everything it has started. What it still writes can be read meanwhile. The stream has a method
// ExitErr, which returns how the process has ended: a [*process.ExitError], or nil if it ended well or
// has not ended.
func Stream(ctx context.Context, c process.Config) (jsonrpc.Stream, error) {
	p, err := process.Start(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &output{ReadCloser: p.Stdout(), p: p, closed: make(chan struct{})}
	go out.closeAfter()
	return &processStream{jsonrpc.NewLineStream(out, p.Stdin()), p}, nil
}

type processStream struct {
	jsonrpc.Stream
	p *process.Process
}

// Unwrap returns the stream of lines.
func (s *processStream) Unwrap() jsonrpc.Stream { return s.Stream }

// ExitErr returns how the process has ended.
func (s *processStream) ExitErr() error {
	select {
	case <-s.p.Done():
		return s.p.Wait()
	default:
		return nil
	}
}

// An output is the standard output of a process. Streams close their input first, so closing this is
// the time to end the process.
type output struct {
	io.ReadCloser
	p      *process.Process
	once   sync.Once
	closed chan struct{}
}

// Close ends the process.
func (o *output) Close() error {
	o.once.Do(func() { close(o.closed) })
	stopped := o.p.Stop(context.Background()) // bounded by its stages
	err := o.ReadCloser.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(stopped, err)
}

// closeAfter closes the output of a process some time after its end.
func (o *output) closeAfter() {
	select {
	case <-o.closed:
		return
	case <-o.p.Done():
	}
	timer := time.NewTimer(outputWait)
	defer timer.Stop()
	select {
	case <-o.closed:
	case <-timer.C:
		_ = o.p.Stop(context.Background())
	}
}
