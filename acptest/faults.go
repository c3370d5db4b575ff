package acptest

import (
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goacp/acp/jsonrpc"
)

// Faults describes what goes wrong on a stream; with the zero value nothing does. What
// happens to which frame is determined by Seed and the order of the frames of each
// direction alone.
type Faults struct {
	Seed uint64 // of the random numbers
	In   Fault  // happens to the frames that are read from the stream
	Out  Fault  // happens to the frames that are written to it
}

// A Fault describes what happens to the frames of one direction. Probabilities range
// from 0, never, to 1, always, and are drawn for each frame. Several things can happen to
// one frame, in the order of the fields here.
type Fault struct {
	// Only reports whether a frame is affected; nil means that all are. It is called
	// by one goroutine at a time for each direction and must not keep the frame.
	// StallAfter and CrashAfter count only these frames, but stop all.
	Only func(frame []byte) bool
	// StallAfter is the number of frames that pass before a [Faulty.Stall]; 0 means
	// that there is none. It begins when the next frame is to be read or written.
	StallAfter int
	// CrashAfter is the number of frames that pass before the peer crashes, when the
	// next one is to be read or written; 0 means that it does not. The stream below is
	// closed. From then on reading returns Crash, or io.EOF if that is nil, and writing
	// returns Crash, or io.ErrClosedPipe. The other direction ends with io.EOF or
	// io.ErrClosedPipe. Set Crash to io.ErrUnexpectedEOF for a crash within a frame.
	CrashAfter int
	Crash      error
	// Delay is the longest time that a frame is delayed; each is delayed by another.
	// Frames stay in order. In a testing/synctest bubble the time is virtual.
	Delay time.Duration
	// Drop is the probability that a frame is lost.
	Drop float64
	// Noise is the probability that a line that is not JSON precedes the frame, like a
	// log message of an agent that writes to the wrong output. On a stream that does
	// not consist of lines, a frame that is not JSON is written instead.
	Noise float64
	// Duplicate is the probability that a frame is repeated.
	Duplicate float64
	// Reorder is the probability that a frame changes places with the next one. If
	// none follows within 10 ms, it passes alone.
	Reorder float64
}

// A FaultCount counts the frames that faults have happened to, in both directions
// together.
type FaultCount struct {
	Delayed, Dropped, Noise, Duplicated, Reordered int
}

// reorderWait is how long a frame waits to be overtaken.
const reorderWait = 10 * time.Millisecond

// Wrap returns the stream with the faults. Closing it closes the stream.
func (f Faults) Wrap(stream jsonrpc.Stream) *Faulty {
	s := &Faulty{stream: stream, closed: make(chan struct{}), crashed: make(chan struct{}), moves: make(chan struct{})}
	close(s.moves)
	s.in = newTrouble(f.In, f.Seed, 1)
	s.out = newTrouble(f.Out, f.Seed, 2)
	s.writing = make(chan struct{}, 1)
	if f.In.Reorder > 0 {
		s.pump = newPump(stream)
	}
	return s
}

// Faulty is a stream on which things go wrong; [Faults.Wrap] makes it. As with
// any stream, one goroutine at a time may read and one may write; the other
// methods may be called at any time. It must be closed.
type Faulty struct {
	stream  jsonrpc.Stream
	once    sync.Once
	closed  chan struct{}
	fall    sync.Once
	crashed chan struct{}

	mu    sync.Mutex
	moves chan struct{} // closed unless stalled
	count FaultCount

	in    *trouble
	ready []jsonrpc.Frame // to be returned before anything is read
	late  *jsonrpc.Frame  // waits to be overtaken
	pump  *pump           // to read with when frames may be reordered
	err   error           // to be returned when nothing is ready

	out     *trouble
	writing chan struct{} // holds an element while a frame is being written
	held    []byte        // a frame that waits to be overtaken
	timer   *time.Timer   // writes held
}

// trouble is the state of one direction.
type trouble struct {
	Fault
	rng     *rand.Rand
	passed  int
	stalled bool        // StallAfter was reached
	over    atomic.Bool // this direction has crashed
}

func newTrouble(f Fault, seed, stream uint64) *trouble {
	return &trouble{Fault: f, rng: rand.New(rand.NewPCG(seed, stream))}
}

// fate says what happens to a frame.
type fate struct {
	drop, noise, twice, late bool
	delay                    time.Duration
}

// next draws the fate of a frame. The same number of draws is made for each.
func (t *trouble) next(frame []byte) fate {
	if t.Only != nil && !t.Only(frame) {
		return fate{}
	}
	t.passed++
	var f fate
	if t.Delay > 0 {
		f.delay = time.Duration(t.rng.Int64N(int64(t.Delay))) + 1
	}
	f.drop = t.rng.Float64() < t.Drop
	f.noise = t.rng.Float64() < t.Noise
	f.twice = t.rng.Float64() < t.Duplicate
	f.late = t.rng.Float64() < t.Reorder
	return f
}

// Stall stops both directions until Release: nothing is returned or written.
func (s *Faulty) Stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.moves:
		s.moves = make(chan struct{})
	default:
	}
}

// Release ends a stall.
func (s *Faulty) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.moves:
	default:
		close(s.moves)
	}
}

// Count returns what has happened so far.
func (s *Faulty) Count() FaultCount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func (s *Faulty) counted(f func(c *FaultCount)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.count)
}

// Close closes the stream below; a stall ends with an error.
func (s *Faulty) Close() error {
	s.once.Do(func() {
		close(s.closed)
		if s.pump != nil {
			s.pump.close()
		}
	})
	return s.stream.Close()
}

// errFaultyClosed is the error of a closed stream.
var errFaultyClosed = errors.New("acptest: stream closed")

// moving waits while the stream is stalled.
func (s *Faulty) moving() error {
	s.mu.Lock()
	moves := s.moves
	s.mu.Unlock()
	select {
	case <-moves:
		return nil
	case <-s.closed:
		return errFaultyClosed
	}
}

func (s *Faulty) sleep(d time.Duration) error {
	if d == 0 {
		return nil
	}
	s.counted(func(c *FaultCount) { c.Delayed++ })
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.closed:
		return errFaultyClosed
	}
}

// errCrashed is returned by proceed after a crash.
var errCrashed = errors.New("acptest: the peer crashed")

// proceed stalls or crashes when it is time to, and waits for the end of a
// stall. It reports whether the next frame may be read or written.
func (s *Faulty) proceed(t *trouble) error {
	if t.StallAfter > 0 && t.passed >= t.StallAfter && !t.stalled {
		t.stalled = true
		s.Stall()
	}
	if err := s.moving(); err != nil {
		return err
	}
	if t.CrashAfter > 0 && t.passed >= t.CrashAfter {
		t.over.Store(true)
		s.fall.Do(func() { close(s.crashed) })
		_ = s.stream.Close()
	}
	if s.hasCrashed() {
		return errCrashed
	}
	return nil
}

func (s *Faulty) hasCrashed() bool {
	select {
	case <-s.crashed:
		return true
	default:
		return false
	}
}

// readError returns the error of reading after a crash, or err.
func (s *Faulty) readError(err error) error {
	switch {
	case !s.hasCrashed():
		return err
	case s.in.over.Load() && s.in.Crash != nil:
		return s.in.Crash
	}
	return io.EOF
}

// Unwrap returns the stream that [Faults.Wrap] was given, so that a client finds the
// process behind it: see [acp.Transport].
func (s *Faulty) Unwrap() jsonrpc.Stream { return s.stream }

// ReadFrame implements [jsonrpc.Stream].
func (s *Faulty) ReadFrame() (jsonrpc.Frame, error) {
	for {
		if err := s.moving(); err != nil {
			return jsonrpc.Frame{}, s.readError(err)
		}
		if len(s.ready) > 0 {
			f := s.ready[0]
			s.ready = s.ready[1:]
			return f, nil
		}
		if err := s.err; err != nil {
			s.err = nil
			return jsonrpc.Frame{}, s.readError(err)
		}
		if err := s.fill(); err != nil {
			return jsonrpc.Frame{}, s.readError(err)
		}
	}
}

// fill reads a frame and queues what becomes of it.
func (s *Faulty) fill() error {
	if err := s.proceed(s.in); err != nil {
		return err
	}
	f, err := s.readBelow()
	if err != nil {
		if s.late == nil {
			return err
		}
		s.overtaken()
		if !errors.Is(err, errTimeout) {
			s.err = err
		}
		return nil
	}
	fate := s.in.next(f.Data)
	if err := s.sleep(fate.delay); err != nil {
		return err
	}
	if fate.drop {
		s.counted(func(c *FaultCount) { c.Dropped++ })
		s.overtaken()
		return nil
	}
	if fate.noise {
		s.counted(func(c *FaultCount) { c.Noise++ })
		s.ready = append(s.ready, jsonrpc.Frame{Data: s.in.noise(), Owned: true, Line: true})
	}
	if fate.twice {
		s.counted(func(c *FaultCount) { c.Duplicated++ })
		again := f
		again.Owned = false
		s.ready = append(s.ready, owned(again))
	}
	if fate.late && s.late == nil {
		f = owned(f)
		s.late = &f
		return nil
	}
	s.ready = append(s.ready, f)
	if s.late != nil {
		s.counted(func(c *FaultCount) { c.Reordered++ })
		s.overtaken()
	}
	return nil
}

// overtaken queues the frame that was held back, if there is one.
func (s *Faulty) overtaken() {
	if s.late != nil {
		s.ready = append(s.ready, *s.late)
		s.late = nil
	}
}

// owned returns a frame that may be kept.
func owned(f jsonrpc.Frame) jsonrpc.Frame {
	if !f.Owned {
		f.Data, f.Owned = append([]byte(nil), f.Data...), true
	}
	return f
}

// readBelow reads from the stream below, for a limited time if a frame is held
// back.
func (s *Faulty) readBelow() (jsonrpc.Frame, error) {
	if s.pump == nil {
		return s.stream.ReadFrame()
	}
	var timeout <-chan time.Time
	if s.late != nil {
		timer := time.NewTimer(reorderWait)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case r := <-s.pump.ask():
		s.pump.taken()
		return r.frame, r.err
	case <-timeout:
		return jsonrpc.Frame{}, errTimeout
	case <-s.closed:
		return jsonrpc.Frame{}, errFaultyClosed
	}
}

var noises = []string{"npm WARN deprecated", "DEBUG agent: starting up", "\x1b[33mwarning\x1b[0m: slow", "1 passed, 0 failed", "<html>"}

// noise returns a line that is not JSON.
func (t *trouble) noise() []byte { return []byte(noises[t.rng.IntN(len(noises))]) }

// WriteFrame implements [jsonrpc.Stream].
func (s *Faulty) WriteFrame(data []byte) error {
	select {
	case s.writing <- struct{}{}:
	case <-s.closed:
		return errFaultyClosed
	}
	defer func() { <-s.writing }()
	if err := s.proceed(s.out); err == errCrashed {
		return s.writeError()
	} else if err != nil {
		return err
	}
	fate := s.out.next(data)
	if err := s.sleep(fate.delay); err != nil {
		return err
	}
	if fate.drop {
		s.counted(func(c *FaultCount) { c.Dropped++ })
		return s.flush(nil)
	}
	if fate.noise {
		s.counted(func(c *FaultCount) { c.Noise++ })
		if err := s.stream.WriteFrame(s.out.noise()); err != nil {
			return err
		}
	}
	if fate.twice {
		s.counted(func(c *FaultCount) { c.Duplicated++ })
		if err := s.stream.WriteFrame(data); err != nil {
			return err
		}
	}
	if fate.late && s.held == nil {
		s.held = append([]byte{}, data...)
		s.timer = time.AfterFunc(reorderWait, s.release)
		return nil
	}
	return s.flush(data)
}

// flush writes a frame, if there is one, and then the one that was held back.
func (s *Faulty) flush(data []byte) error {
	if data != nil {
		if err := s.stream.WriteFrame(data); err != nil {
			return err
		}
	}
	held := s.held
	if held == nil {
		return nil
	}
	if data != nil {
		s.counted(func(c *FaultCount) { c.Reordered++ })
	}
	s.held = nil
	s.timer.Stop()
	return s.stream.WriteFrame(held)
}

// release writes the frame that nothing has overtaken.
func (s *Faulty) release() {
	select {
	case s.writing <- struct{}{}:
	case <-s.closed:
		return
	}
	defer func() { <-s.writing }()
	_ = s.flush(nil) // an error comes again with the next frame
}

func (s *Faulty) writeError() error {
	if s.out.over.Load() && s.out.Crash != nil {
		return s.out.Crash
	}
	return io.ErrClosedPipe
}
