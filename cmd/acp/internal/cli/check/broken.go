package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/conformance"
)

// brokenCode tells what did not start from what is no peer at all and from what
// says nothing.
func brokenCode(report *conformance.Report, reached error) exitcode.Code {
	var missing *unreached
	switch {
	case report.Cause == conformance.CauseNoPeer:
		return exitcode.Protocol // whatever became of it then
	case errors.As(reached, &missing):
		return exitcode.Agent
	case report.Cause == conformance.CauseLate:
		return exitcode.Timeout
	}
	return exitcode.Protocol
}

// An unreached error says why what is checked could not be started, or had ended.
type unreached struct{ err error }

func (e *unreached) Error() string { return e.err.Error() }
func (e *unreached) Unwrap() error { return e.err }

// A gauge is a reader that knows how much was read of a line that has not ended.
type gauge struct {
	io.ReadCloser

	mu   sync.Mutex
	n    int64
	head []byte // its beginning
}

// maxHead bounds what a gauge keeps, in bytes.
const maxHead = 40

// Read implements [io.Reader].
func (g *gauge) Read(b []byte) (int, error) {
	n, err := g.ReadCloser.Read(b)
	g.mu.Lock()
	defer g.mu.Unlock()
	tail := b[:n]
	if i := bytes.LastIndexByte(tail, '\n'); i >= 0 {
		tail, g.n, g.head = tail[i+1:], 0, g.head[:0]
	}
	g.n += int64(len(tail))
	g.head = append(g.head, tail[:min(len(tail), maxHead-len(g.head))]...)
	return n, err
}

// unfinished describes the line, or is "" if there is none.
func (g *gauge) unfinished() string {
	if g == nil {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(bytes.TrimSpace(g.head)) == 0 {
		return ""
	}
	text := safetext.Line(fmt.Sprintf("%q", bytes.ToValidUTF8(g.head, []byte("\uFFFD"))), 2*maxHead)
	if g.n <= maxHead {
		return "it sent " + text + " and does not end the line"
	}
	return fmt.Sprintf("it sent %s and does not end the line, which begins with %s", size(g.n), text)
}

func size(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d kB", n>>10)
	}
	return fmt.Sprintf("%d MB", n>>20)
}

// notReached says that a client has not come in time.
type notReached struct{ within time.Duration }

func (e *notReached) Error() string {
	return fmt.Sprintf("the client has started no agent in %v", e.within)
}
func (e *notReached) Unwrap() error { return context.DeadlineExceeded }

// explain adds to why nothing could be checked what is known besides, and what to do.
func (s *starter) explain(r *conformance.Report) {
	s.mu.Lock()
	last, g := s.last, s.gauge
	s.mu.Unlock()
	if r.Broken != "" && r.Cause == conformance.CauseLate {
		if line := g.unfinished(); line != "" {
			r.Broken, r.Cause = fmt.Sprintf("this is no %s of the protocol: %s", r.Side, line), conformance.CauseNoPeer
		} else {
			if last != nil {
				if said := lastLine(last.StderrTail()); said != "" {
					r.Broken += fmt.Sprintf("; the last on its standard error is %q", safetext.Line(said, 200))
				}
			}
			r.Broken += "; --timeout gives it longer"
		}
	}
	if r.Side == conformance.Agent && r.Cause == conformance.CauseNoPeer {
		r.Broken += "; many agents need a flag to speak it, such as --acp"
	}
}
