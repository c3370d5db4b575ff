package holder

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/goacp/acp/internal/process"
	"github.com/goacp/acp/jsonrpc"
)

// goneWait bounds how long [Agent.Stop] waits for what a system takes to remove processes.
const goneWait = 10 * time.Second

// An Agent is an agent in a holder, as the gateway that is attached sees it: a [jsonrpc.Stream], which
// is also a [jsonrpc.EagerStream] and a [jsonrpc.BatchStream]. As with any stream, one goroutine at a
// time may read, and one may write. All other methods may be called at any time by any goroutine.
// [Start] and [Attach] make it; the zero value is of no use. It must be closed, by Close or Stop.
//
// While it is attached it renews the lease.
//
// The gateway reads an event, commits it with the number that Seq then returns, and acknowledges that.
// It writes a frame after it has committed it with the number Sent()+1, if it wants to send it again
// after a restart. After Attach it writes the frames beyond Sent that it has committed, and then others.
type Agent struct {
	conn     net.Conn
	r        *bufio.Reader
	socket   string
	token    string
	greeting welcome
	work     sync.WaitGroup
	answer   chan string   // the standard error
	asking   chan struct{} // held by the call that waits for it
	finish   context.CancelFunc
	vigil    vigil
	closing  sync.Once
	over     context.Context // done when the connection has ended
	before   func() error    // of BeforeRead

	sending sync.Mutex // held while a packet is written
	w       *bufio.Writer

	mu        sync.Mutex
	changed   sync.Cond // of mu: events, flying, err
	events    []packet  // received and not read
	next      uint64    // number of the event to be received
	seq       uint64    // of the last event that was read
	acked     uint64
	sent      uint64
	written   uint64
	unwritten []pending
	flying    int    // what the frames cost that are sent and not written
	closed    string // why the agent takes no frames
	ended     bool   // its end was read
	gone      bool   // the holder said that it is gone
	exit      *ending
	err       error // why the connection has ended
}

// pending are frames up to a number that the agent has not got.
type pending struct {
	number uint64
	cost   int
}

func newAgent(conn net.Conn, have uint64) *Agent {
	a := &Agent{
		conn: conn, r: bufio.NewReaderSize(conn, packetBuffer), w: bufio.NewWriterSize(conn, writeBuffer),
		answer: make(chan string, 1), asking: make(chan struct{}, 1),
		next: have + 1, seq: have, acked: have,
	}
	a.changed.L = &a.mu
	a.over, a.finish = context.WithCancel(context.Background())
	return a
}

// begin starts the goroutines of an attached Agent.
func (a *Agent) begin() {
	a.vigil = watch(a.conn)
	a.work.Go(a.receive)
	a.work.Go(a.keepLease)
}

// Socket returns the path to attach to, and Token the secret. A gateway keeps both.
func (a *Agent) Socket() string { return a.socket }

// Token returns the secret of the holder.
func (a *Agent) Token() string { return a.token }

// PID returns the number of the agent's process, which may have ended.
func (a *Agent) PID() int { return a.greeting.Agent }

// HolderPID returns the number of the holder's process.
func (a *Agent) HolderPID() int { return a.greeting.PID }

// Seq returns the number of the event that ReadFrame returned last: a frame, a [*jsonrpc.FrameTooLargeError],
// or with io.EOF the end of the agent. Before the first one it is the State.Seq of the attachment.
func (a *Agent) Seq() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seq
}

// Sent returns the number of the last frame that was sent. Before the first one it is the number of
// frames that the holder had accepted when the gateway attached.
func (a *Agent) Sent() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent
}

// Written returns the number of frames that were written to the agent completely, as far as the
// gateway knows by now.
func (a *Agent) Written() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.written
}

// ReadFrame returns the next line of the agent. A line that was longer than the holder's limit is a
// [*jsonrpc.FrameTooLargeError], after which reading continues. After the end of the agent it returns
// io.EOF, and Seq the number of that end, which is to be acknowledged like any other event. The
// errors wrap [ErrTaken], [ErrLost] or, after Close, [os.ErrClosed].
func (a *Agent) ReadFrame() (jsonrpc.Frame, error) {
	a.mu.Lock()
	if len(a.events) == 0 && a.before != nil {
		a.mu.Unlock()
		if err := a.before(); err != nil {
			return jsonrpc.Frame{}, err
		}
		a.mu.Lock()
	}
	defer a.mu.Unlock()
	for len(a.events) == 0 && a.err == nil && !a.ended {
		a.changed.Wait()
	}
	switch {
	case errors.Is(a.err, os.ErrClosed):
		return jsonrpc.Frame{}, a.err
	case a.ended:
		return jsonrpc.Frame{}, io.EOF
	case len(a.events) == 0:
		return jsonrpc.Frame{}, a.err
	}
	p := a.events[0]
	a.events[0] = packet{}
	if a.events = a.events[1:]; len(a.events) == 0 {
		a.events = nil
	}
	a.seq = p.number
	switch p.kind {
	case kindLong:
		return jsonrpc.Frame{}, &jsonrpc.FrameTooLargeError{
			Limit: a.greeting.MaxFrame, Size: int64(binary.BigEndian.Uint64(p.data)), Prefix: p.data[numberBytes:],
		}
	case kindExit:
		a.ended = true
		return jsonrpc.Frame{}, io.EOF
	}
	return jsonrpc.Frame{Data: p.data, Owned: true, Line: true}, nil
}

// Buffered implements [jsonrpc.EagerStream].
func (a *Agent) Buffered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.events) > 0
}

// BeforeRead implements [jsonrpc.EagerStream].
func (a *Agent) BeforeRead(f func() error) { a.before = f }

// WriteFrame sends a frame to the agent. It waits while the agent has not read 1 MiB, or one frame,
// of what was sent before. Line breaks, which in JSON stand between values only, become spaces. An
// empty frame is not sent. The errors wrap [io.ErrClosedPipe] if the agent takes no frames any more,
// [jsonrpc.ErrFrameTooLarge] for a frame that is longer than the holder's limit, or are those of
// ReadFrame.
func (a *Agent) WriteFrame(data []byte) error { return a.WriteFrames([][]byte{data}) }

// WriteFrames implements [jsonrpc.BatchStream].
func (a *Agent) WriteFrames(frames [][]byte) error {
	for _, data := range frames {
		if len(data) == 0 {
			continue
		}
		number, err := a.reserve(data)
		if err != nil {
			return err
		}
		if err := a.put(packet{kind: kindFrame, number: number, data: oneLine(data)}); err != nil {
			return a.broken(err)
		}
	}
	if err := a.flush(); err != nil {
		return a.broken(err)
	}
	return nil
}

// reserve waits until a frame may be sent, and returns its number.
func (a *Agent) reserve(data []byte) (uint64, error) {
	if len(data) > a.greeting.MaxFrame {
		return 0, fmt.Errorf("holder: %w", &jsonrpc.FrameTooLargeError{Limit: a.greeting.MaxFrame, Size: int64(len(data))})
	}
	cost := frameCost(data)
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.err == nil && a.closed == "" && !a.ended && a.flying > 0 && a.flying+cost > window {
		a.mu.Unlock()
		err := a.flush() // the holder can only take what it has got
		a.mu.Lock()
		if err != nil {
			break
		}
		if a.err == nil && a.closed == "" && !a.ended && a.flying > 0 && a.flying+cost > window {
			a.changed.Wait()
		}
	}
	switch {
	case a.err != nil:
		return 0, a.err
	case a.ended:
		return 0, fmt.Errorf("holder: the agent has ended: %w", io.ErrClosedPipe)
	case a.closed != "":
		return 0, fmt.Errorf("holder: the agent's input is closed: %s: %w", a.closed, io.ErrClosedPipe)
	}
	a.sent++
	a.flying += cost
	a.unwritten = append(a.unwritten, pending{a.sent, cost})
	return a.sent, nil
}

// oneLine returns a frame without line breaks.
func oneLine(data []byte) []byte {
	var line []byte
	for i, b := range data {
		if b != '\n' && b != '\r' {
			continue
		}
		if line == nil {
			line = append(line, data...)
		}
		line[i] = ' '
	}
	if line == nil {
		return data
	}
	return line
}

// Ack says that the events up to a number are committed. The holder forgets them. Acknowledging again
// does nothing; acknowledging what was not read is an error. Otherwise the errors are those of
// ReadFrame. Once the end of the agent is acknowledged, the holder exits.
func (a *Agent) Ack(seq uint64) error {
	if send, err := a.commit(seq); !send {
		return err
	}
	return a.tell(packet{kind: kindAck, number: seq})
}

// commit reports whether an acknowledgement says something new.
func (a *Agent) commit(seq uint64) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if seq > a.seq {
		return false, fmt.Errorf("holder: event %d is acknowledged, but the last that was read is %d", seq, a.seq)
	}
	if seq <= a.acked {
		return false, a.err
	}
	a.acked = seq
	return true, nil
}

// Renew renews the lease for at least d, at most [MaxLease], beginning now, even if this process ends
// meanwhile. A gateway that is about to be upgraded announces so how long that may take. When it
// attaches again, the lease has its usual length again. The errors are those of ReadFrame.
func (a *Agent) Renew(d time.Duration) error {
	if d < 0 || d > MaxLease {
		return fmt.Errorf("holder: a lease of %v is not between 0 and %v", d, MaxLease)
	}
	return a.tell(packet{kind: kindRenew, number: uint64((d + time.Millisecond - 1) / time.Millisecond)})
}

// keepLease renews the lease until the connection has ended.
func (a *Agent) keepLease() {
	tick := time.NewTicker(max(a.greeting.Lease/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = a.send(packet{kind: kindRenew}) // the reader learns what is wrong
		case <-a.over.Done():
			return
		}
	}
}

// Stderr returns the last of what the agent wrote to its standard error, at most 64 KiB of valid
// UTF-8. The errors are the cause of ctx and those of ReadFrame. It takes its turn behind what the
// holder has sent, which does not wait for ReadFrame.
func (a *Agent) Stderr(ctx context.Context) (string, error) {
	select {
	case a.asking <- struct{}{}:
		defer func() { <-a.asking }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	select {
	case <-a.answer: // of a call that did not wait for it
	default:
	}
	if err := a.tell(packet{kind: kindStderr}); err != nil {
		return "", err
	}
	select {
	case text := <-a.answer:
		return text, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-a.over.Done():
		a.mu.Lock()
		defer a.mu.Unlock()
		return "", a.err
	}
}

// ExitErr returns how the agent has ended: a [*process.ExitError], nil if it ended well or has not
// ended, or another error if that is not known.
func (a *Agent) ExitErr() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.exit == nil:
		return nil
	case a.exit.Error != "":
		return errors.New(a.exit.Error)
	case a.exit.Code != 0 || a.exit.Signal != "":
		return &process.ExitError{Code: a.exit.Code, Signal: a.exit.Signal, Stderr: a.exit.Stderr}
	}
	return nil
}

// Close detaches from the holder. The agent continues to run until the lease ends. It returns nil.
func (a *Agent) Close() error {
	a.fail(os.ErrClosed)
	a.work.Wait()
	a.closing.Do(a.vigil.close)
	return nil
}

// Stop ends the agent and everything that it has started, in stages, and its holder. It returns nil
// when all are gone, and then the Agent is closed. When ctx is done, the agent is killed without
// waiting any longer. If the connection ends first, nothing is known and the error is that of
// ReadFrame; the holder was killed, or another gateway has attached.
func (a *Agent) Stop(ctx context.Context) error {
	defer a.Close()
	err := a.send(packet{kind: kindStop})
	if err == nil {
		select {
		case <-ctx.Done():
			_ = a.send(packet{kind: kindStop, number: 1})
		case <-a.over.Done():
		}
		limit := time.NewTimer(goneWait)
		defer limit.Stop()
		select {
		case <-a.over.Done():
		case <-limit.C:
		}
	}
	a.mu.Lock()
	gone := a.gone || a.ended && a.acked == a.seq // it may have exited before it was asked
	lost := a.err
	a.mu.Unlock()
	switch {
	case !gone && lost == nil:
		return fmt.Errorf("holder: process %d and its agent do not end", a.greeting.PID)
	case !gone:
		return lost
	}
	ended := true
	a.closing.Do(func() {
		ended = a.vigil.wait(goneWait)
		a.vigil.close()
	})
	if !ended {
		return fmt.Errorf("holder: process %d does not end", a.greeting.PID)
	}
	return nil
}

// receive takes what the holder sends, until the connection has ended.
func (a *Agent) receive() {
	for {
		p, err := readPacket(a.r, a.greeting.MaxFrame)
		if err == nil {
			err = a.take(p)
		}
		if err != nil {
			a.fail(err)
			return
		}
	}
}

// take handles a packet of the holder.
func (a *Agent) take(p packet) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch p.kind {
	case kindFrame, kindLong, kindExit:
		if p.number != a.next || p.kind == kindLong && len(p.data) < numberBytes {
			return fmt.Errorf("%w: event %d in place of %d", errPacket, p.number, a.next)
		}
		if p.kind == kindExit {
			if err := a.ends(p.data); err != nil {
				return err
			}
		}
		a.next++
		a.events = append(a.events, p)
	case kindWritten:
		a.written = p.number
		for len(a.unwritten) > 0 && a.unwritten[0].number <= p.number {
			a.flying -= a.unwritten[0].cost
			a.unwritten = a.unwritten[1:]
		}
	case kindClosed:
		a.closed = string(p.data)
	case kindStderr:
		select {
		case <-a.answer:
		default:
		}
		a.answer <- string(p.data)
	case kindTaken:
		return ErrTaken
	case kindGone:
		a.gone = true
		return a.ends(p.data)
	default:
		return fmt.Errorf("%w: kind %q", errPacket, byte(p.kind))
	}
	a.changed.Broadcast()
	return nil
}

// ends takes how the agent has ended. The lock is held.
func (a *Agent) ends(data []byte) error {
	e := new(ending)
	if err := json.Unmarshal(data, e); err != nil {
		return fmt.Errorf("%w: %w", errPacket, err)
	}
	a.exit = e
	return nil
}

// fail ends the connection. The first reason counts.
func (a *Agent) fail(err error) {
	a.mu.Lock()
	if a.err == nil {
		switch {
		case errors.Is(err, os.ErrClosed):
			a.err = fmt.Errorf("holder: %w", os.ErrClosed)
		case errors.Is(err, ErrTaken):
			a.err = outcome(err)
		default:
			a.err = outcome(fmt.Errorf("%w: %w", ErrLost, unexpected(err)))
		}
	} else if errors.Is(err, os.ErrClosed) {
		a.err = fmt.Errorf("holder: %w", os.ErrClosed)
	}
	a.changed.Broadcast()
	a.mu.Unlock()
	_ = a.conn.Close()
	a.finish()
}

// broken returns the error of a packet that could not be sent. The reader knows better what has
// become of the connection.
func (a *Agent) broken(err error) error {
	if err == nil {
		return nil
	}
	<-a.over.Done() // since writing fails, so does reading
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// tell writes a packet at once, unless the connection is known to have ended: it may still take what
// nobody will read.
func (a *Agent) tell(p packet) error {
	a.mu.Lock()
	err := a.err
	a.mu.Unlock()
	if err != nil {
		return err
	}
	return a.broken(a.send(p))
}

// send writes a packet at once.
func (a *Agent) send(p packet) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	if err := writePacket(a.w, p); err != nil {
		return err
	}
	return a.w.Flush()
}

// put writes a packet to the buffer.
func (a *Agent) put(p packet) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	return writePacket(a.w, p)
}

// flush writes what is in the buffer.
func (a *Agent) flush() error {
	a.sending.Lock()
	defer a.sending.Unlock()
	return a.w.Flush()
}
