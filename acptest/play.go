package acptest

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goacp/acp/internal/pattern"
	"github.com/goacp/acp/jsonrpc"
)

// scriptTimeout is how long a script waits for a frame, or for the peer to take
// one, unless !timeout says otherwise.
const scriptTimeout = 10 * time.Second

// PlayAgent plays the agent's side of a script over a stream and then closes the stream.
// The package documentation describes the language.
//
//	what happened                              the result
//	the script was played to its end, and      nil
//	  the client closed the stream, or ctx is
//	  done
//	the script ended with !close or !stall     nil; a !stall lasts until ctx is done
//	the script is wrong, or the client did     a [*ScriptError]
//	  not follow it
//	ctx was done before the end                a *ScriptError with the place; it wraps
//	                                           the cause of ctx
func PlayAgent(ctx context.Context, stream jsonrpc.Stream, script string) error {
	return play(ctx, stream, script, agentRole)
}

// PlayClient is [PlayAgent] for the client's side of a script.
func PlayClient(ctx context.Context, stream jsonrpc.Stream, script string) error {
	return play(ctx, stream, script, clientRole)
}

func play(ctx context.Context, stream jsonrpc.Stream, script string, role role) error {
	steps, err := parseScript(script)
	if err != nil {
		_ = stream.Close()
		return err
	}
	streams := make(chan jsonrpc.Stream, 1)
	streams <- stream
	close(streams)
	return newPlayer(role, steps, streams).play(ctx)
}

// role is the side that a script plays.
type role bool

const (
	agentRole  role = false
	clientRole role = true
)

// A player plays one script.
type player struct {
	role    role
	steps   []*step
	streams <-chan jsonrpc.Stream // closed when there will be no more
	release <-chan struct{}       // closed to end a !stall or !sleep; may be nil
	known   pattern.Captures
	timeout time.Duration

	stream jsonrpc.Stream
	pump   *pump
	back   string // a frame that was read too early, or ""
	skip   bool   // a ... came since the last expectation
	prev   *step
}

func newPlayer(role role, steps []*step, streams <-chan jsonrpc.Stream) *player {
	return &player{role: role, steps: steps, streams: streams, known: pattern.Captures{}, timeout: scriptTimeout, prev: &step{line: 1}}
}

var (
	errTimeout  = errors.New("timeout")
	errNoStream = errors.New("the transport was not opened again")
)

func (p *player) play(ctx context.Context) error {
	defer p.leave()
	if err := p.open(ctx); err != nil {
		return p.failed(p.prev, err, "")
	}
	for _, s := range p.steps {
		if err := p.step(ctx, s); err != nil {
			return err
		}
		p.prev = s
	}
	if p.prev.last() {
		return nil
	}
	end := &step{line: p.prev.line + strings.Count(p.prev.text, "\n") + 1}
	for { // until the peer leaves
		frame, err := p.read(ctx, 0)
		switch {
		case err == io.EOF, err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return p.failed(end, err, "")
		case !p.skip:
			return p.unexpected(end, frame, "a frame behind the end of the script")
		}
	}
}

// open leaves the stream for the next one as soon as there is one.
func (p *player) open(ctx context.Context) error {
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	select {
	case s, ok := <-p.streams:
		if !ok {
			return errNoStream
		}
		p.leave()
		p.stream, p.pump = s, newPump(s)
		return nil
	case <-timer.C:
		return errTimeout
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *player) leave() {
	if p.stream == nil {
		return
	}
	p.pump.close()
	_ = p.stream.Close()
	p.stream, p.back = nil, ""
}

// read returns the next frame. A limit of 0 means none.
func (p *player) read(ctx context.Context, limit time.Duration) (string, error) {
	if p.back != "" {
		frame := p.back
		p.back = ""
		return frame, nil
	}
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	got := p.pump.ask()
	select {
	case r := <-got:
		p.pump.taken()
		return string(r.frame.Data), r.err
	case <-timeout:
		return "", errTimeout
	case <-ctx.Done():
	}
	return "", context.Cause(ctx)
}

func (p *player) send(ctx context.Context, s *step, frame string) error {
	var late atomic.Bool
	stream := p.stream
	timer := time.AfterFunc(p.timeout, func() { late.Store(true); _ = stream.Close() })
	defer timer.Stop()
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	err := stream.WriteFrame([]byte(frame))
	switch {
	case err == nil:
		return nil
	case late.Load():
		return s.errorf("the peer did not take this within %v", p.timeout)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	bad := s.errorf("this could not be sent: %v", err)
	bad.Err = err
	return bad
}

// failed returns the error of a step that has received no frame.
func (p *player) failed(s *step, err error, expected string) *ScriptError {
	var bad *ScriptError
	switch {
	case errors.Is(err, errTimeout):
		bad = s.errorf("nothing came within %v%s", p.timeout, expected)
	case err == io.EOF:
		bad = s.errorf("the peer closed the stream%s", expected)
	default:
		bad = s.errorf("%v%s", err, expected)
	}
	bad.Err = err
	return bad
}

func (p *player) unexpected(s *step, frame, reason string) error {
	bad := s.errorf("%s", reason)
	bad.Got = pattern.Short(frame)
	return bad
}

func (p *player) step(ctx context.Context, s *step) error {
	switch s.op {
	case opExpect:
		return p.expect(ctx, s)
	case opSkip:
		p.skip = true
		return nil
	case opSend:
		return p.send(ctx, s, s.val.Message(p.known))
	case opRaw:
		return p.send(ctx, s, s.arg)
	case opInitialize:
		if p.role == clientRole {
			return p.clientInitialize(ctx, s)
		}
		return p.agentInitialize(ctx, s)
	case opSession:
		if p.role == clientRole {
			return p.clientSession(ctx, s)
		}
		return p.agentSession(ctx, s)
	case opTimeout:
		p.timeout = s.pause
	case opClose:
		p.leave()
	case opEOF:
		return p.eof(ctx, s)
	case opReopen:
		return p.reopen(ctx, s)
	case opSleep:
		return p.wait(ctx, s, s.pause)
	case opStall:
		if s == p.steps[len(p.steps)-1] {
			_ = p.wait(ctx, s, 0)
		}
	}
	return nil
}

// wait pauses for d, or until the end if d is 0.
func (p *player) wait(ctx context.Context, s *step, d time.Duration) error {
	var over <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-p.release:
	case <-ctx.Done():
		return p.failed(s, context.Cause(ctx), "")
	}
	return nil
}

// expect waits for the frame that a -> line describes.
func (p *player) expect(ctx context.Context, s *step) error {
	skip := p.skip
	p.skip = false
	deadline := time.Now().Add(p.timeout)
	last := ""
	for {
		frame, err := p.read(ctx, time.Until(deadline))
		if err != nil {
			bad := p.failed(s, err, " where a frame is expected")
			bad.Got = pattern.Short(last)
			return bad
		}
		reason := "a frame that is not JSON"
		if v, err := pattern.Parse(frame); err == nil {
			bad := pattern.MatchMessage(s.val, v, p.known)
			if bad == nil {
				return nil
			}
			reason = bad.Error()
		}
		if !skip {
			return p.unexpected(s, frame, reason)
		}
		last = frame
	}
}

// eof waits for the peer to close the stream.
func (p *player) eof(ctx context.Context, s *step) error {
	skip := p.skip
	p.skip = false
	deadline := time.Now().Add(p.timeout)
	for {
		frame, err := p.read(ctx, time.Until(deadline))
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return p.failed(s, err, " where the peer has to close the stream")
		case !skip:
			return p.unexpected(s, frame, "a frame where the peer has to close the stream")
		}
	}
}

// reopen continues with the next stream when the peer has left this one.
func (p *player) reopen(ctx context.Context, s *step) error {
	if p.stream != nil && !p.prev.last() {
		if err := p.eof(ctx, s); err != nil {
			return err
		}
	}
	if err := p.open(ctx); err != nil {
		return p.failed(s, err, "")
	}
	return nil
}
