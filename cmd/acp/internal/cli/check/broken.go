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

// brokenCode returns the exit status of a check in which nothing could be tried. It
// distinguishes a program that did not start, one that does not speak the protocol, and one
// that did not answer.
func brokenCode(report *conformance.Report, reached error) exitcode.Code {
	var missing *unreached
	switch {
	case report.Cause == conformance.CauseNoPeer:
		return exitcode.Protocol // even if the program has exited since
	case errors.As(reached, &missing):
		return exitcode.Agent
	case report.Cause == conformance.CauseLate:
		return exitcode.Timeout
	}
	return exitcode.Protocol
}

// An unreached error is the reason why the program under test could not be started, or why it
// exited.
type unreached struct{ err error }

func (e *unreached) Error() string { return e.err.Error() }
func (e *unreached) Unwrap() error { return e.err }

// A gauge is a reader that remembers the beginning and the length of the line that has not ended
// yet. A program that never ends a line would otherwise look like one that is silent. Its methods
// may be called from any goroutine.
type gauge struct {
	io.ReadCloser

	mu   sync.Mutex
	n    int64
	head []byte // the beginning of the line, at most maxHead bytes
}

// maxHead bounds the part of a line that a gauge keeps, in bytes.
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

// unfinished describes the unfinished line, or returns "" if there is none.
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

// size returns a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d kB", n>>10)
	}
	return fmt.Sprintf("%d MB", n>>20)
}

// notReached is the error for a client that has not started its agent in time.
type notReached struct{ within time.Duration }

func (e *notReached) Error() string {
	return fmt.Sprintf("the client has not started its agent within %v", e.within)
}
func (e *notReached) Unwrap() error { return context.DeadlineExceeded }

// explain completes the reason why nothing could be checked: with an unfinished line, the end of
// standard error, and advice.
func (s *starter) explain(r *conformance.Report) {
	s.mu.Lock()
	last, g := s.last, s.gauge
	s.mu.Unlock()
	if r.Broken != "" && r.Cause == conformance.CauseLate {
		if line := g.unfinished(); line != "" {
			r.Broken, r.Cause = fmt.Sprintf("this is not an ACP %s: %s", r.Side, line), conformance.CauseNoPeer
		} else {
			if last != nil {
				if said := lastLine(last.StderrTail()); said != "" {
					r.Broken += fmt.Sprintf("; the last line of its standard error is %q", safetext.Line(said, 200))
				}
			}
			r.Broken += "; --timeout gives it more time"
		}
	}
	if r.Side == conformance.Agent && r.Cause == conformance.CauseNoPeer {
		r.Broken += "; many agents need a flag to speak it, such as --acp"
	}
}
