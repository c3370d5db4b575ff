package tap

import (
	"bytes"
	"io"
	"sync"

	"github.com/goacp/acp/trace"
)

// Bounds of the path with a guard.
const (
	maxGuarded = 64 << 20 // of a line of the agent, in bytes: a longer line does not pass
	maxAnswers = 1024     // that wait for the agent to read; further ones make its output wait
)

// guarded returns the routes with a guard.
func guarded(g *Guard, agent, client io.WriteCloser, sink Sink) (toAgent, toClient route) {
	in := &inlet{
		w: agent, record: recordTo(sink, trace.ToAgent), turn: make(chan struct{}, 1),
		guard: g, room: make(chan struct{}, maxAnswers), wake: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	in.cut.emit = func(line []byte, size int64) {
		if size == int64(len(line)) {
			g.FromClient(line)
		}
		in.record(line, size)
	}
	go in.answer()
	in.out = &outlet{w: client, guard: g, in: in, sink: sink, record: recordTo(sink, trace.ToClient), most: maxGuarded}
	return in, in.out
}

// An inlet is the way to the agent: what the client writes, as it comes, and between its lines the
// answers that the guard gives in its place.
type inlet struct {
	w      io.WriteCloser
	record func([]byte, int64)
	cut    cutter
	guard  *Guard
	out    *outlet
	held   []byte // the beginning of a line that may answer a question of the guard's

	turn chan struct{} // has an element while something writes a line
	mine bool          // the client has the turn, in the middle of a line

	mu      sync.Mutex
	answers [][]byte      // that wait, each a line
	room    chan struct{} // has an element for each of them
	wake    chan struct{}
	closed  chan struct{}
}

// forward implements route. A line is examined before its end is on the way, so that it counts for
// everything the agent does about it.
func (in *inlet) forward(b []byte) error {
	in.cut.write(b)
	for len(b) > 0 {
		n := len(b)
		if asking := in.guard.asking(); !in.mine && (asking || len(in.held) > 0) {
			var err error
			if b, err = in.hold(b); err != nil {
				return err
			}
			continue
		} else if i := bytes.IndexByte(b, '\n'); asking && i >= 0 {
			n = i + 1
		}
		if err := in.send(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// hold consumes a line, or the beginning of one, that may answer a question of the guard's, and
// returns the rest. Such a line does not reach the agent; an answer is short.
func (in *inlet) hold(b []byte) (rest []byte, err error) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		in.held = append(in.held, b...)
		if len(in.held) > maxAnswer {
			err, in.held = in.send(in.held), nil
		}
		return nil, err
	}
	line := append(in.held, b[:i+1]...)
	in.held = nil
	is, release, reply := in.guard.Settle(line[:len(line)-1])
	if !is {
		return b[i+1:], in.send(line)
	}
	if release != nil {
		in.out.late(release)
	}
	if reply != nil {
		in.reply(reply)
	}
	return b[i+1:], nil
}

// send writes a piece of the client's output.
func (in *inlet) send(b []byte) error {
	if !in.mine {
		in.turn <- struct{}{}
	}
	_, err := in.w.Write(b)
	if in.mine = b[len(b)-1] != '\n'; !in.mine {
		<-in.turn
	}
	return err
}

// close implements route. Answers that were given before still reach the agent, unless the client
// has stopped in the middle of a line.
func (in *inlet) close() {
	in.cut.end()
	if len(in.held) > 0 {
		_ = in.send(in.held)
	}
	if !in.mine {
		in.turn <- struct{}{} // for good
		in.flush()
	}
	close(in.closed)
	_ = in.w.Close()
}

// reply sends the agent an answer. It waits if there are too many.
func (in *inlet) reply(line []byte) {
	select {
	case <-in.closed:
		return
	default:
	}
	select {
	case in.room <- struct{}{}:
	case <-in.closed:
		return
	}
	in.record(line, int64(len(line)))
	in.mu.Lock()
	in.answers = append(in.answers, append(line, '\n'))
	in.mu.Unlock()
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// answer writes the answers.
func (in *inlet) answer() {
	for {
		select {
		case <-in.wake:
		case <-in.closed:
			return
		}
		select {
		case in.turn <- struct{}{}:
		case <-in.closed:
			return
		}
		in.flush()
		<-in.turn
	}
}

// flush writes what waits. A failure is ignored: other writes notice that the agent does not read
// any more. The caller has the turn.
func (in *inlet) flush() {
	in.mu.Lock()
	lines := in.answers
	in.answers = nil
	in.mu.Unlock()
	for _, line := range lines {
		_, _ = in.w.Write(line)
		<-in.room
	}
}

// An outlet is the way from the agent to the client: the lines that pass the guard.
type outlet struct {
	w      io.WriteCloser
	guard  *Guard
	in     *inlet
	sink   Sink
	record func([]byte, int64)
	most   int

	buf     []byte // the beginning of a line
	skipped int64  // of a line that is too long, 0 if there is none
	asked   []byte // a question that must be written, a line

	mu sync.Mutex // while lines are written
}

// forward implements route. Lines that come together are written together.
func (o *outlet) forward(b []byte) error {
	b, err := o.first(b)
	if err != nil {
		return err
	}
	pass, at := 0, 0 // b[pass:at] passes
	for {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			break
		}
		end := at + i + 1
		if !o.look(b[at:end]) {
			if err := o.write(b[pass:at]); err != nil {
				return err
			}
			if err := o.ask(); err != nil {
				return err
			}
			pass = end
		}
		at = end
	}
	if err := o.write(b[pass:at]); err != nil {
		return err
	}
	o.keep(b[at:])
	return nil
}

// first ends the line that has begun, if there is one, and returns the rest.
func (o *outlet) first(b []byte) ([]byte, error) {
	if len(o.buf) == 0 && o.skipped == 0 {
		return b, nil
	}
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return b, nil
	}
	if o.skipped > 0 {
		o.tooLong(o.skipped + int64(i))
		o.skipped = 0
		return b[i+1:], nil
	}
	line := append(o.buf, b[:i+1]...)
	if o.buf = line[:0]; cap(line) > 1<<20 {
		o.buf = nil
	}
	if !o.look(line) {
		return b[i+1:], o.ask()
	}
	return b[i+1:], o.write(line)
}

// keep keeps the beginning of a line. It is dropped when the line becomes too long to be examined.
func (o *outlet) keep(b []byte) {
	switch {
	case o.skipped > 0:
		o.skipped += int64(len(b))
	case len(o.buf)+len(b) > o.most:
		o.skipped = int64(len(o.buf) + len(b))
		o.buf = nil
	default:
		o.buf = append(o.buf, b...)
	}
}

func (o *outlet) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := o.w.Write(b)
	return err
}

// ask writes the question about the line that was examined last.
func (o *outlet) ask() error {
	q := o.asked
	o.asked = nil
	return o.write(q)
}

// late writes a line that had to wait. It does not block the caller, since a client may read only
// after it has written.
func (o *outlet) late(line []byte) {
	go func() { _ = o.write(append(line, '\n')) }() // it ends with the client's end, at the latest
}

// look records a line and reports whether it passes.
func (o *outlet) look(line []byte) bool {
	text := bytes.TrimSuffix(line, []byte{'\n'})
	if len(bytes.TrimSpace(text)) > 0 {
		o.record(text, int64(len(text)))
	}
	v := o.guard.FromAgent(text)
	if v.Note != "" {
		o.sink.Event("policy", trace.Detail{Text: v.Note})
	}
	if v.Answer != nil {
		o.in.reply(v.Answer)
	}
	if v.Ask != nil {
		o.record(v.Ask, int64(len(v.Ask)))
		o.asked = append(v.Ask, '\n')
	}
	return v.Pass
}

// tooLong reports a line that could not be examined and did not pass.
func (o *outlet) tooLong(size int64) {
	o.sink.Event("policy", trace.Detail{Count: size, Text: o.guard.tooLong(size)})
}

// close implements route. A line without an end counts all the same.
func (o *outlet) close() {
	if len(o.buf) > 0 {
		if o.look(o.buf) {
			_ = o.write(o.buf)
		}
		_ = o.ask()
	}
	if o.skipped > 0 {
		o.tooLong(o.skipped)
	}
	_ = o.w.Close()
}
