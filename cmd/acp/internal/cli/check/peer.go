package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/launch"
	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

const (
	// endGrace is how long the program under test may take to exit after its input has ended.
	endGrace = 2 * time.Second
	// exitWait bounds how long to wait for the exit status of a program whose connection has ended.
	exitWait = time.Second
)

// A starter starts the program under test once for each connection, and waits until all have
// exited. Its methods may be called from any goroutine; mu guards the fields below it.
type starter struct {
	ctx  context.Context
	cfg  process.Config
	rec  *recording
	ends sync.WaitGroup
	// slots bounds the programs that run at a time, also those that are being stopped, which may take
	// longer than a trial; nil does not.
	slots chan struct{}

	mu    sync.Mutex
	last  *process.Process                   // the latest process
	gauge *gauge                             // of the latest connection
	err   error                              // of the latest start
	notes map[*process.Process]*stderrWriter // receives each program's standard error, if it is recorded
}

// start starts the program, when there is room for it.
func (s *starter) start(ctx context.Context) (*process.Process, error) {
	cfg, notes := s.cfg, s.rec.stderr()
	if notes != nil {
		cfg.Stderr = notes
	}
	if s.slots != nil {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	p, err := process.Start(s.ctx, cfg)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.free()
		s.err = &unreached{err}
		return nil, s.err
	}
	s.err, s.last = nil, p
	if notes != nil {
		if s.notes == nil {
			s.notes = map[*process.Process]*stderrWriter{}
		}
		s.notes[p] = notes
	}
	s.rec.event("start", trace.Detail{PID: p.PID()})
	return p, nil
}

// free makes room for another program.
func (s *starter) free() {
	if s.slots != nil {
		<-s.slots
	}
}

// fault returns why the program could not be started, or nil.
func (s *starter) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// stop stops a program in the background; wait waits for that.
func (s *starter) stop(p *process.Process) {
	s.ends.Go(func() {
		_ = p.Stop(context.WithoutCancel(s.ctx))
		s.free()
		s.mu.Lock()
		notes := s.notes[p]
		delete(s.notes, p)
		s.mu.Unlock()
		if notes != nil {
			notes.end()
		}
		d := trace.Detail{PID: p.PID()}
		if code, err := exited(p); err == nil {
			d.Code = &code
		}
		s.rec.event("exit", d)
	})
}

// leaveAlone prepares a program whose standard streams do not carry the protocol. Its input
// ends at once, because some clients read piped input as part of the prompt and wait for its
// end. Its output is discarded, so that it never blocks.
func (s *starter) leaveAlone(p *process.Process) {
	_ = p.Stdin().Close()
	s.ends.Go(func() { _, _ = io.Copy(io.Discard, p.Stdout()) })
}

func (s *starter) wait() { s.ends.Wait() }

// peer starts the program and connects to its standard streams.
func (s *starter) peer(ctx context.Context) (*conformance.Peer, error) {
	p, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	stream := jsonrpc.NewLineStream(s.measure(p.Stdout()), p.Stdin())
	return &conformance.Peer{
		Stream:     &ending{Stream: stream, end: sync.OnceFunc(func() { s.stop(p) })},
		Raw:        p.Stdin(),
		CloseWrite: p.Stdin().Close,
		Wait:       waitFor(p),
		PID:        p.PID(),
		Ended:      s.ended(p),
	}, nil
}

// measure returns r with a gauge, which explain consults if this is the latest connection.
func (s *starter) measure(r io.ReadCloser) io.ReadCloser {
	g := &gauge{ReadCloser: r}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gauge = g
	return g
}

// ended returns a function that returns why the program has exited, or "" if it has not. The
// function waits for at most exitWait, because the end of the connection is often seen first.
func (s *starter) ended(p *process.Process) func() string {
	return func() string {
		if !p.EndsWithin(exitWait) {
			return ""
		}
		err := p.Wait()
		var exit *process.ExitError
		switch {
		case err == nil:
			err = errors.New("exit status 0")
			if tail := lastLine(p.StderrTail()); tail != "" {
				err = fmt.Errorf("%w: %s", err, tail)
			}
		case !errors.As(err, &exit):
			return err.Error()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = &unreached{err}
		return err.Error()
	}
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// waitFor returns a function that waits for the exit of a program and returns its status.
func waitFor(p *process.Process) func(ctx context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		select {
		case <-p.Done():
			return exited(p)
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// exited returns the exit status of a program. A signal is not distinguished from a status,
// because the rules only ask whether it is 0.
func exited(p *process.Process) (int, error) {
	select {
	case <-p.Done():
	default:
		return 0, errors.New("the program is still running")
	}
	err := p.Wait()
	if err == nil {
		return 0, nil
	}
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		return exit.Code, nil
	}
	return 0, err
}

// An ending stream calls end when it is closed.
type ending struct {
	jsonrpc.Stream
	end func()
}

// Close implements [jsonrpc.Stream].
func (e *ending) Close() error {
	err := e.Stream.Close()
	e.end()
	return err
}

// checkAgent checks an agent. reached is the reason why it could not be started, or nil.
func (o *Options) checkAgent(ctx context.Context, opt conformance.Options, rec *recording) (r *conformance.Report, reached, err error) {
	agent, err := o.App.AgentFor(o.Agent, o.Argv)
	if err != nil {
		return nil, nil, err
	}
	if agent.URL != "" {
		return o.checkRemote(ctx, agent, opt)
	}
	cfg, err := launch.Process(ctx, agent, o.App.Cwd)
	if err != nil {
		return nil, nil, err
	}
	cfg.CloseGrace = endGrace
	// Each trial has one program, and the one before it may still be ending.
	s := &starter{ctx: ctx, cfg: cfg, rec: rec, slots: make(chan struct{}, 2*max(opt.Jobs, 1))}
	r, err = conformance.CheckAgent(ctx, s.peer, opt)
	s.wait()
	s.explain(r)
	return r, s.fault(), err
}

// A stderrWriter splits its input into lines, because the redactor recognizes a secret only if
// it sees the whole of it. A line of more than trace.MaxText bytes is split.
type stderrWriter struct {
	to func(line []byte)

	mu  sync.Mutex
	buf []byte // the beginning of a line, at most trace.MaxText bytes
}

// Write implements [io.Writer].
func (w *stderrWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		piece, rest, whole := bytes.Cut(b, []byte{'\n'})
		if room := trace.MaxText - len(w.buf); len(piece) > room {
			piece, rest, whole = b[:room], b[room:], true // the rest becomes the next line
		}
		if w.buf = append(w.buf, piece...); whole {
			w.flush()
		}
		b = rest
	}
	return n, nil
}

// end passes on the last line, which may lack its end.
func (w *stderrWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
}

func (w *stderrWriter) flush() {
	if len(w.buf) > 0 {
		w.to(w.buf)
	}
	w.buf = w.buf[:0]
}
