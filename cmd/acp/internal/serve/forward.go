package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/cmd/acp/internal/relay"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// A Forward serves each connection by an agent of its own: a process, or a connection to a URL. It is
// for agents that are not built in. Its fields must not be changed once it is in use.
type Forward struct {
	Agent  roster.Agent
	Dir    string // working directory of a process
	Logger *slog.Logger
	// Note is called with what the user should see, such as a line of a process's standard error. It
	// may be called from any goroutine.
	Note func(text string)
	// Wrap, if not nil, is called with the stream to each client. What it returns is used instead of it;
	// done is called when the connection has ended.
	Wrap func(connection int64, near jsonrpc.Stream) (_ jsonrpc.Stream, done func())
}

// Serve serves a connection until it or its agent has ended. It is a [Config.Serve].
func (f *Forward) Serve(ctx context.Context, t acp.Transport) error {
	near, err := t.Open(ctx)
	if err != nil {
		return err
	}
	n := Connection(ctx)
	if f.Wrap != nil {
		wrapped, done := f.Wrap(n, near)
		defer done()
		near = wrapped
	}
	errs := &lines{to: func(line string) { f.Note(fmt.Sprintf("connection %d: %s", n, line)) }}
	far := relay.Lazy(func(ctx context.Context) (jsonrpc.Stream, error) {
		return launch.Open(ctx, f.Agent, f.Dir, errs)
	})
	o := relay.Options{Logger: f.Logger, Explain: f.explain}
	if f.Agent.URL != "" {
		o.Linger = jsonrpc.DefaultGrace
	}
	ended, err := relay.Relay(ctx, near, far, o)
	errs.end()
	if ended != relay.Far {
		return err
	}
	if err == nil {
		return errors.New("the agent has ended")
	}
	if why := f.explain(err); why != nil {
		return why
	}
	return err
}

// explain says how an agent has ended, or why it cannot be reached, or returns nil.
func (f *Forward) explain(err error) error {
	exit, ok := errors.AsType[*process.ExitError](err)
	if !ok {
		return remote.Explain(f.Agent.Name, err)
	}
	text := "the agent " + launch.HowEnded(exit)
	if why := process.Reason(exit.Stderr); why != "" {
		text += ": " + why
	}
	return errors.New(text)
}

type connectionKey struct{}

// Connection returns the number of the connection that is served with ctx, from 1.
func Connection(ctx context.Context) int64 {
	n, _ := ctx.Value(connectionKey{}).(int64)
	return n
}

// connection serves a connection, and reports its begin and its end.
func (s *Server) connection(ctx context.Context, t acp.Transport) error {
	n := s.connections.Add(1)
	note := s.cfg.Note
	if s.cfg.Quiet {
		note = func(string) {}
		if s.cfg.Logger != nil {
			note = func(text string) { s.cfg.Logger.Debug(text) }
		}
	}
	note(fmt.Sprintf("connection %d has begun", n))
	err := s.cfg.Serve(context.WithValue(ctx, connectionKey{}, n), t)
	switch {
	case errors.Is(err, acphttp.ErrServerClosed), errors.Is(context.Cause(ctx), acphttp.ErrServerClosed):
		note(fmt.Sprintf("connection %d has ended with the server", n))
	case err == nil, errors.Is(err, context.Canceled): // the client has left
		note(fmt.Sprintf("connection %d has ended", n))
	default:
		s.cfg.Note(fmt.Sprintf("connection %d has ended: %v", n, err))
	}
	return nil // it is reported
}

// lines calls to with each line that is written, or with the beginning of a long one.
type lines struct {
	to func(line string)

	mu  sync.Mutex
	buf []byte
}

// Lines returns a writer that calls to with each line that is written to it. It never fails.
func Lines(to func(line string)) io.Writer { return &lines{to: to} }

// maxKept bounds what is kept of a line, in bytes.
const maxKept = 4 << 10

// Write implements io.Writer. It never fails.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for piece := range strings.Lines(string(b)) {
		text, whole := strings.CutSuffix(piece, "\n")
		l.buf = append(l.buf, text[:min(len(text), maxKept-len(l.buf))]...)
		if whole {
			l.flush()
		}
	}
	return len(b), nil
}

// end passes on the last line, which may lack its end.
func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
}

func (l *lines) flush() {
	if len(strings.TrimSpace(string(l.buf))) > 0 {
		l.to(string(l.buf))
	}
	l.buf = l.buf[:0]
}
