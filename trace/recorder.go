package trace

import (
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/goacp/acp/internal/wire"
	"github.com/goacp/acp/jsonrpc"
)

// DefaultMaxQueued is the number of bytes that a [Recorder] queues for a slow writer
// unless [RecorderOptions.MaxQueued] says otherwise.
const DefaultMaxQueued = 64 << 20

// ErrUnfinished is returned by [Recorder.Close] if the writer did not take everything
// that was queued in time.
var ErrUnfinished = errors.New("trace: not all could be written in time")

// RecorderOptions configure a [Recorder]. The zero value records everything unchanged.
type RecorderOptions struct {
	// Header begins the trace. NewRecorder sets Started to the current time, and
	// Redacted if there is a Redactor.
	Header Header
	// Redactor, if set, replaces secrets before anything is written. It must not be
	// used elsewhere.
	Redactor *Redactor
	// Tee, if set, is called with each record, redacted, just before it is written.
	// Calls are in order, on the recorder's goroutine. The record is valid until Tee
	// returns. Tee must be quick, because the queue grows while it runs.
	Tee func(*Record)
	// MaxQueued bounds what has been recorded and is not yet written, in bytes; each
	// record counts 128 bytes in addition to its data. 0 means DefaultMaxQueued. A
	// record that does not fit is dropped and counted. An event "lost" in its place
	// says how many records and bytes are missing.
	MaxQueued int
	// MaxFrame is [Writer.MaxFrame].
	MaxFrame int
	// CloseWithin bounds the time that Close waits for the writer; 0 means 5 s.
	CloseWithin time.Duration
}

// A Recorder writes a trace without ever making its caller wait: it copies what is
// recorded into a bounded queue, from which a goroutine writes. If the writer fails,
// because the disk is full for example, it is tried again as long as the queue has
// room; only [Recorder.Err] reports the failure. If the writer is fast enough, a record
// is written within 20 ms, together with those that follow in that time.
//
// [NewRecorder] and [NewRecorderTo] make one. Its methods may be called from any
// goroutine. It must be closed.
type Recorder struct {
	opts    RecorderOptions
	started time.Time
	w       *Writer

	mu     sync.Mutex
	queue  []queued
	chunk  []byte // where small data is copied to
	size   int    // of the queue, and of what is being written
	lost   Record // what was dropped since the last that fitted, if its Name is set
	sum    Lost
	err    error
	closed bool
	wake   chan struct{} // has one element when there is something to do
	urgent chan struct{} // has one element when that should not wait for more
	done   chan struct{}
}

// Lost counts what a [Recorder] has dropped.
type Lost struct {
	Records int64
	Bytes   int64
}

type queued struct {
	rec  Record
	cost int // what it counts in the queue
}

const (
	recordCost = 128
	chunkSize  = 64 << 10
	retryFirst = 100 * time.Millisecond
	gatherFor  = 20 * time.Millisecond // how long a record waits for others
	gatherMost = 1 << 20               // bytes of records that do not wait
	retryMost  = 5 * time.Second
)

// NewRecorder returns a Recorder that writes to w, beginning with a header. It does not
// wait for w. To continue a trace, use [NewRecorderTo].
func NewRecorder(w io.Writer, opts RecorderOptions) *Recorder {
	return newRecorder(&Writer{w: w}, opts, true)
}

// NewRecorderTo is NewRecorder for a Writer that has already written its header, such as
// one that [Append] has made. Times count from started. w must not be used elsewhere.
func NewRecorderTo(w *Writer, started time.Time, opts RecorderOptions) *Recorder {
	opts.Header.Started = started
	return newRecorder(w, opts, false)
}

func newRecorder(w *Writer, opts RecorderOptions, header bool) *Recorder {
	if opts.MaxQueued <= 0 {
		opts.MaxQueued = DefaultMaxQueued
	}
	if opts.CloseWithin <= 0 {
		opts.CloseWithin = 5 * time.Second
	}
	r := &Recorder{opts: opts, w: w, wake: make(chan struct{}, 1), urgent: make(chan struct{}, 1), done: make(chan struct{})}
	w.MaxFrame = opts.MaxFrame
	r.started = opts.Header.Started
	if header {
		r.started = time.Now()
		h := opts.Header
		h.Started = r.started
		h.Redacted = opts.Redactor != nil
		if h.Redacted {
			h.Command = opts.Redactor.Command(h.Command)
		}
		w.buf = appendHeader(w.buf, h)
	}
	go r.run()
	return r
}

// cutMargin is how many bytes of a text are queued beyond what is kept, so that a secret
// at the end is recognized.
const cutMargin = 8 << 10

// Started returns the time when recording began. The times of records count from it.
func (r *Recorder) Started() time.Time { return r.started }

// Frame records a frame that was sent to dir. Data that is not JSON is recorded as text.
// data may be modified afterwards.
func (r *Recorder) Frame(dir Direction, data []byte) {
	r.add(Record{Kind: Frame, Dir: dir, Size: int64(len(data))}, data)
}

// Tap returns a stream that is s and records the frames that pass: see [jsonrpc.Tap].
// sent is the direction of what this side sends: ToAgent in a client, ToClient in an
// agent.
func (r *Recorder) Tap(s jsonrpc.Stream, sent Direction) jsonrpc.Stream {
	received := ToAgent + ToClient - sent
	return jsonrpc.Tap(s, func(out bool, frame []byte) {
		if out {
			r.Frame(sent, frame)
		} else {
			r.Frame(received, frame)
		}
	})
}

// Stderr records a line of the agent's standard error.
func (r *Recorder) Stderr(line []byte) {
	r.add(Record{Kind: Stderr, Size: int64(len(line))}, line)
}

// Event records that something happened: see [Record.Name]. An event without a name, or
// with the name stderr, is ignored.
func (r *Recorder) Event(name string, d Detail) {
	if d.Code != nil {
		code := *d.Code
		d.Code = &code
	}
	if len(d.Text) > MaxText {
		d.Text = string(cutText([]byte(d.Text)))
	}
	r.add(Record{Kind: Event, Name: name, Detail: d, Size: int64(len(d.Text))}, nil)
}

// Record records something that was observed elsewhere, at the time that rec has,
// counted from Started. rec and its data may be modified afterwards.
func (r *Recorder) Record(rec *Record) {
	own := *rec
	own.Data = nil
	own.Size = max(own.Size, int64(len(rec.Data)))
	r.put(own, rec.Data, false)
}

func (r *Recorder) add(rec Record, data []byte) { r.put(rec, data, true) }

// put queues a record; now means that its time is the current one.
func (r *Recorder) put(rec Record, data []byte, now bool) {
	if rec.Kind == Frame && len(data) > r.w.limit() {
		rec.Kind = Text
	}
	if rec.Kind != Frame && len(data) > MaxText+cutMargin {
		data = data[:MaxText+cutMargin]
	}
	item := queued{rec: rec, cost: recordCost + len(data) + len(rec.Detail.Text) + len(rec.Name)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if now { // under the lock, so that times are in the order of records
		rec.At = time.Since(r.started)
		item.rec.At = rec.At
	}
	if r.size+item.cost > r.opts.MaxQueued {
		r.drop(&rec)
		return
	}
	r.tellLost()
	item.rec.Data = r.copy(data)
	r.queue = append(r.queue, item)
	r.size += item.cost
	r.signal()
}

// drop counts what does not fit.
func (r *Recorder) drop(rec *Record) {
	if r.lost.Name == "" {
		r.lost = Record{At: rec.At, Kind: Event, Name: "lost"}
	}
	r.lost.Detail.Count++
	r.lost.Size += rec.Size
	r.sum.Records++
	r.sum.Bytes += rec.Size
}

// tellLost queues the event that reports what is missing before the next record.
func (r *Recorder) tellLost() {
	if r.lost.Name == "" {
		return
	}
	lost := r.lost
	lost.Detail.Text = strconv.FormatInt(lost.Size, 10) + " bytes"
	lost.Size = 0
	r.queue = append(r.queue, queued{lost, recordCost})
	r.size += recordCost
	r.lost = Record{}
}

func (r *Recorder) copy(data []byte) []byte {
	if len(data) > chunkSize/4 {
		return append([]byte(nil), data...)
	}
	if cap(r.chunk)-len(r.chunk) < len(data) {
		r.chunk = make([]byte, 0, chunkSize)
	}
	at := len(r.chunk)
	r.chunk = append(r.chunk, data...)
	return r.chunk[at:len(r.chunk):len(r.chunk)]
}

// signal wakes the writing goroutine. r.mu is held.
func (r *Recorder) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
	if r.size >= gatherMost || r.closed {
		select {
		case r.urgent <- struct{}{}:
		default:
		}
	}
}

// Err returns the last error of the writer, or nil once it works again.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Lost returns what has been dropped so far.
func (r *Recorder) Lost() Lost {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sum
}

// Close writes what is queued and ends the recorder; what is recorded later is ignored.
// It does not close the underlying writer. If the writer does not take everything
// within CloseWithin, Close returns [ErrUnfinished]; close the underlying writer then, to
// end the goroutine that waits for it. Otherwise the error is that of the writer. Close
// may be called repeatedly.
func (r *Recorder) Close() error {
	r.mu.Lock()
	r.closed = true
	r.tellLost()
	r.signal()
	r.mu.Unlock()
	timer := time.NewTimer(r.opts.CloseWithin)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.Err()
	case <-timer.C:
		return ErrUnfinished
	}
}

// run writes what is queued until the recorder is closed.
func (r *Recorder) run() {
	defer close(r.done)
	retry := retryFirst
	for {
		err := r.drain()
		r.mu.Lock()
		r.err = err
		idle := len(r.queue) == 0
		closed := r.closed
		r.mu.Unlock()
		if err == nil {
			retry = retryFirst
		}
		switch {
		case err != nil && closed:
			return
		case err != nil:
			r.pause(retry)
			retry = min(2*retry, retryMost)
		case idle && closed:
			return
		case idle:
			<-r.wake
			r.gather()
		}
	}
}

// gather waits for more records, so that this goroutine is woken once for many of them
// rather than for each one in the middle of a conversation.
func (r *Recorder) gather() {
	timer := time.NewTimer(gatherFor)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.urgent:
	}
	select {
	case <-r.wake: // its records are about to be written
	default:
	}
}

// pause waits before the writer is tried again, or until the recorder is closed.
func (r *Recorder) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case <-r.wake:
			r.mu.Lock()
			closed := r.closed
			r.mu.Unlock()
			if closed {
				return
			}
		}
	}
}

// drain writes what is queued. If the writer fails, the rest stays queued.
func (r *Recorder) drain() error {
	r.mu.Lock()
	batch := r.queue
	r.queue = nil
	r.mu.Unlock()
	for i := range batch {
		if len(r.w.buf) >= flushAt {
			if err := r.w.Flush(); err != nil {
				r.putBack(batch[i:])
				return err
			}
		}
		rec := &batch[i].rec
		if rec.Kind == Frame && wire.Valid(rec.Data) != nil {
			rec.Kind = Text
		}
		if r.opts.Redactor != nil {
			r.opts.Redactor.Apply(rec)
		}
		if r.opts.Tee != nil {
			r.opts.Tee(rec)
		}
		// This only collects, so an error means that the record is invalid.
		_ = r.w.write(rec)
		cost := batch[i].cost
		batch[i] = queued{}
		r.mu.Lock()
		r.size -= cost
		r.mu.Unlock()
	}
	return r.w.Flush()
}

func (r *Recorder) putBack(batch []queued) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(batch[:len(batch):len(batch)], r.queue...)
}
