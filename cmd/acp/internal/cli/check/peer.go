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

// endGrace is how long what is checked may take to end when its input has ended.
const endGrace = 2 * time.Second

// A starter starts a program for each connection, and sees that all have ended.
type starter struct {
	ctx  context.Context
	cfg  process.Config
	rec  *recording
	ends sync.WaitGroup

	mu    sync.Mutex
	last  *process.Process                   // that was started
	gauge *gauge                             // of the last connection
	err   error                              // of the last start
	notes map[*process.Process]*stderrWriter // what takes the standard error of each, if it is recorded
}

// start starts the program.
func (s *starter) start() (*process.Process, error) {
	cfg, notes := s.cfg, s.rec.stderr()
	if notes != nil {
		cfg.Stderr = notes
	}
	p, err := process.Start(s.ctx, cfg)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
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

// fault returns why the program could not be started, or nil.
func (s *starter) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// end stops a program in the background; wait waits for that.
func (s *starter) end(p *process.Process) {
	s.ends.Go(func() {
		_ = p.Stop(context.WithoutCancel(s.ctx))
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

// leaveAlone is for a program that is not spoken to at its standard streams. Its
// input ends at once: some clients take what is piped in for a part of the prompt, and
// wait for the end of it. What it prints is thrown away, so that it never has to wait.
func (s *starter) leaveAlone(p *process.Process) {
	_ = p.Stdin().Close()
	s.ends.Go(func() { _, _ = io.Copy(io.Discard, p.Stdout()) })
}

func (s *starter) wait() { s.ends.Wait() }

// peer connects to the standard streams of the program, as an agent or client that
// speaks there.
func (s *starter) peer() (*conformance.Peer, error) {
	p, err := s.start()
	if err != nil {
		return nil, err
	}
	stream := jsonrpc.NewLineStream(s.measure(p.Stdout()), p.Stdin())
	return &conformance.Peer{
		Stream:     &ending{Stream: stream, end: sync.OnceFunc(func() { s.end(p) })},
		Raw:        p.Stdin(),
		CloseWrite: p.Stdin().Close,
		Wait:       waitFor(p),
		PID:        p.PID(),
		Ended:      s.ended(p),
	}, nil
}

// measure returns r, which is a connection from now on.
func (s *starter) measure(r io.ReadCloser) io.ReadCloser {
	g := &gauge{ReadCloser: r}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gauge = g
	return g
}

// ended tells why a program has ended, for a while also waiting for it.
func (s *starter) ended(p *process.Process) func() string {
	return func() string {
		select {
		case <-p.Done():
		case <-time.After(endGrace / 4):
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

// waitFor waits for the end of a program and returns its status.
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

// exited returns the status of a program that has ended: 128 and the number of the
// signal are not told apart from others, since rules want 0.
func exited(p *process.Process) (int, error) {
	select {
	case <-p.Done():
	default:
		return 0, errors.New("it runs")
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

// An ending stream ends something when it is closed.
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

// checkAgent checks an agent. reached says why there was none, if there was none.
func (o *Options) checkAgent(ctx context.Context, opt conformance.Options, rec *recording) (r *conformance.Report, reached, err error) {
	agent, err := o.App.AgentFor(o.Agent, o.Argv)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := launch.Process(ctx, agent, o.App.Cwd)
	if err != nil {
		return nil, nil, err
	}
	cfg.CloseGrace = endGrace
	s := &starter{ctx: ctx, cfg: cfg, rec: rec}
	r, err = conformance.CheckAgent(ctx, func(context.Context) (*conformance.Peer, error) { return s.peer() }, opt)
	s.wait()
	s.explain(r)
	return r, s.fault(), err
}

// A stderrWriter cuts what is written to it into lines: a secret that comes in two
// pieces is known for one only when it is whole.
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
			piece, rest, whole = b[:room], b[room:], true // a line that long goes on in the next one
		}
		if w.buf = append(w.buf, piece...); whole {
			w.flush()
		}
		b = rest
	}
	return n, nil
}

// end says that nothing follows.
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
