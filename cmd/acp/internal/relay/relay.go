// Package relay forwards messages between two peers, such as a client on the network and the
// process of its agent. It knows nothing of the protocol but which message answers which.
//
// # What passes
//
// Messages pass unchanged and in order, in both directions at once. Each direction holds one
// message, so a peer that does not read stalls the other one as it would without the relay. What
// separates the values of a message on several lines becomes spaces, since a line protocol would
// take them for its end. Lines that are not messages are dropped.
//
// # What does not
//
// A message that is too large to be read is skipped. If it is a request, its sender gets an error;
// if it is an answer, the peer that waits for it does. A request of which a network transport says
// that it was not delivered, or that its answer will not arrive, is answered with an error, too: see
// [jsonrpc.UnansweredError].
//
// # Endings
//
// When one peer has ended, the other one is closed. What the far side still says meanwhile arrives.
// When the far side is the one that has ended, the requests that it has not answered are answered
// with an error that says why, at most the first [MaxAsked] of them.
package relay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/record/frame"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
	"github.com/goacp/acp/jsonrpc"
)

// MaxAsked bounds the requests of the near side that are remembered until they are answered. Those
// beyond that pass all the same.
const MaxAsked = 1 << 16

// maxLogged bounds a line that is logged, in cells.
const maxLogged = 200

// A Side is one of the two peers.
type Side int

// The sides. Near is the client, Far is the agent.
const (
	Near Side = iota + 1
	Far
)

// Options say how messages are forwarded. The zero value is ready for use.
type Options struct {
	// Logger gets what was dropped, at debug level; nil discards it.
	Logger *slog.Logger
	// Linger is how long the far side may take to answer what it was asked before the near side
	// ended. It is for streams that lose what is under way when they are closed, as those of the
	// network do. 0 closes the far side at once, which ends the input of a process and waits for it.
	Linger time.Duration
	// Explain returns what an error of the far side means, for the answers to requests that fail because
	// of it, or nil if the error says that itself. It may be nil.
	Explain func(error) error
}

// Relay forwards messages between near and far until one of them has ended, or ctx is done. Then it
// closes both and returns when nothing is under way any more. It returns the side that ended first,
// and why: nil means in an orderly way. Once ctx is done that is its cause, and the side is 0.
//
// If the stream of the far side has a method ExitErr, as that of a process has, its error is the
// reason.
func Relay(ctx context.Context, near, far jsonrpc.Stream, o Options) (ended Side, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &relay{o: o, near: &end{Stream: near}, far: &end{Stream: far}, asked: map[string]struct{}{}}
	return r.run(ctx)
}

// A relay is one call of [Relay].
type relay struct {
	o         Options
	near, far *end

	mu      sync.Mutex
	asked   map[string]struct{} // ids of the near side's requests that are not answered
	settled chan struct{}       // closed when asked is empty; nil unless that is awaited
}

// An end is the stream of one side.
type end struct {
	jsonrpc.Stream
	writing sync.Mutex
}

// write writes a message.
func (e *end) write(data []byte) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	return e.WriteFrame(data)
}

// An ending is the end of one direction.
type ending struct {
	side Side // which has ended
	err  error
}

// run forwards until everything has ended.
func (r *relay) run(ctx context.Context) (ended Side, err error) {
	toFar, toNear := make(chan ending, 1), make(chan ending, 1)
	go func() { toFar <- r.forward(r.near, r.far, Near, Far) }()
	go func() { toNear <- r.forward(r.far, r.near, Far, Near) }()
	var first ending
	select {
	case first = <-toFar:
		if first.side == Near && first.err == nil {
			r.linger(ctx, toNear)
		}
		first.err = r.closeFar(first)
		<-toNear // what the far side still says arrives
		r.leave(first)
	case first = <-toNear:
		first.err = r.closeFar(first)
		r.leave(first)
		<-toFar
	case <-ctx.Done():
		first.err = context.Cause(ctx)
		_ = r.far.Close()
		_ = r.near.Close()
		<-toFar
		<-toNear
	}
	return first.side, first.err
}

// leave closes the near side.
func (r *relay) leave(first ending) {
	if first.side == Far {
		r.answerAll(first.err)
	}
	_ = r.near.Close()
}

// closeFar closes the far side and returns why it had ended, if it was the first.
func (r *relay) closeFar(first ending) error {
	_ = r.far.Close()
	if first.side != Far {
		return first.err
	}
	for s := r.far.Stream; s != nil; {
		if x, ok := s.(interface{ ExitErr() error }); ok {
			if err := x.ExitErr(); err != nil || isGone(first.err) {
				return err // a broken pipe says less than the end of the process
			}
			break
		}
		around, ok := s.(interface{ Unwrap() jsonrpc.Stream })
		if !ok {
			break
		}
		s = around.Unwrap()
	}
	return first.err
}

// isGone reports whether an error says no more than that nobody reads at the other end.
func isGone(err error) bool {
	return errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EPIPE)
}

// linger waits until the far side has answered everything, for a while.
func (r *relay) linger(ctx context.Context, toNear chan ending) {
	if r.o.Linger <= 0 {
		return
	}
	r.mu.Lock()
	if len(r.asked) == 0 {
		r.mu.Unlock()
		return
	}
	settled := make(chan struct{})
	r.settled = settled
	r.mu.Unlock()
	timer := time.NewTimer(r.o.Linger)
	defer timer.Stop()
	select {
	case <-settled:
	case <-timer.C:
	case <-ctx.Done():
	case e := <-toNear:
		toNear <- e
	}
}

// forward forwards what one side says to the other until either has ended.
func (r *relay) forward(from, to *end, fromSide, toSide Side) ending {
	var frames frame.Reader
	dropped := 0
	defer func() {
		if dropped > 0 {
			r.o.Logger.Debug("lines that are not messages were dropped", "lines", dropped)
		}
	}()
	for {
		f, err := from.ReadFrame()
		if err != nil {
			if handled, err := r.survive(err, from, to, fromSide); !handled {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				return ending{fromSide, err}
			}
			continue
		}
		if f.Line && isNoise(f.Data) {
			dropped++
			r.o.Logger.Debug("a line is not a message", "line", safetext.Line(string(f.Data), maxLogged))
			continue
		}
		e := frames.Read(f.Data)
		if fromSide == Near && e.Request() {
			r.ask(e.ID)
		}
		if err := to.write(oneLine(f)); err != nil {
			return ending{toSide, err}
		}
		if fromSide == Far && e.Answer() {
			r.answered(e.ID)
		}
	}
}

// isNoise reports whether a line cannot be a message.
func isNoise(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r")
	return len(line) == 0 || line[0] != '{' && line[0] != '['
}

// oneLine returns a message without line breaks, which in JSON stand between values only.
func oneLine(f jsonrpc.Frame) []byte {
	if f.Line || bytes.IndexByte(f.Data, '\n') < 0 && bytes.IndexByte(f.Data, '\r') < 0 {
		return f.Data
	}
	line := bytes.Clone(f.Data)
	for i, c := range line {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	return line
}

// ask remembers a request of the near side.
func (r *relay) ask(id []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) < MaxAsked {
		r.asked[string(id)] = struct{}{}
	}
}

// answered forgets a request, and reports whether it was remembered.
func (r *relay) answered(id []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.asked[string(id)]
	delete(r.asked, string(id))
	if r.settled != nil && len(r.asked) == 0 {
		close(r.settled)
		r.settled = nil
	}
	return ok
}

// answerAll answers what the far side has not.
func (r *relay) answerAll(err error) {
	if err == nil {
		err = errors.New("the agent has ended without an answer")
	}
	r.mu.Lock()
	ids := r.asked
	r.asked = map[string]struct{}{}
	r.mu.Unlock()
	for id := range ids {
		if r.near.write(r.failure([]byte(id), err)) != nil {
			return
		}
	}
}
