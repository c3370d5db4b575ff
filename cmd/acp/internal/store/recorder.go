package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// appendWait bounds how long Append waits until its events are written, unless the store was
	// opened with another bound.
	appendWait = 100 * time.Millisecond
	// killedWait bounds the last attempt to write of a recorder that was killed.
	killedWait = 100 * time.Millisecond
	// stallAfter is how long a write may take before that is reported.
	stallAfter = 2 * time.Second
	// syncAfter is the time from a write to the beginning of its sync.
	syncAfter = 100 * time.Millisecond
	// maxSyncs bounds the attempts to sync while they fail, until something else is written.
	maxSyncs = 20
	// Pauses between attempts to write.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
	// closeAfter bounds Close.
	closeAfter = 5 * time.Second
	// maxWrite bounds what is written at once, in bytes; a single event may be larger.
	maxWrite = 4 << 20
	// eventBytes is what an event counts in addition to its data.
	eventBytes = 256
)

// MaxBacklog bounds, in bytes, what a [Recorder] keeps in memory while it cannot be written. A
// single call of Append may exceed it, and after [Recorder.Finish] it doubles.
const MaxBacklog = 64 << 20

// RecordOptions say how a conversation is recorded.
type RecordOptions struct {
	// Trouble is called with an error when something cannot be written, or not in time, and with
	// nil when everything is written again. Calls come one at a time. Nil discards them.
	Trouble func(error)
	// Killed ends all waiting when it is closed: for room, for writes, and for what remains when
	// the recorder is closed, which is tried only once more. Nil is never closed.
	Killed <-chan struct{}
}

// A Recorder writes one conversation, in the background. Events are written at once, and the system
// has them when Append returns: they survive the end of this process. If the disk fails or does not
// answer, Append returns all the same; the rest stays in memory, up to [MaxBacklog], and is tried
// again until it is written. The methods may be called from any goroutine. Close it when done with
// it.
type Recorder struct {
	store *Store
	id    string
	o     RecordOptions

	mu      sync.Mutex
	session Session // as of the last Put
	fresh   bool    // session is to be written before the next event
	queue   []Event
	bytes   int           // of queue and of what is being written
	working bool          // the writer runs
	idle    chan struct{} // closed when everything is written; nil if nothing waits for that
	room    chan struct{} // closed when something is written; nil if nothing waits for that
	settled chan struct{} // closed when the writer or the syncer is idle; nil if nothing waits for that
	behind  bool          // Append does not wait for the queue
	told    bool          // Trouble was reported, and has not ended
	ending  bool          // Append no longer waits for room
	closed  bool
	hurry   chan struct{} // closed with closed: no retry waits any longer
	lost    int           // events that were given up since closing began
	syncing bool          // the syncer runs
	dirty   bool          // something was written since the last sync began
	safe    int64         // up to where the log survives a loss of power
	size    int64         // of what is written of the log

	telling sync.Mutex    // held while Trouble is called
	log     *logFile      // of the writer
	ready   chan struct{} // closed when the log was released; nil before Close and after that
}

// Record returns the recorder of a conversation: the one that session names, or else a new one with
// an id of its own. Nothing is on the disk before the first call of Append. Several recorders, in
// any processes, may write one conversation at the same time: each has a file of its own, and
// readers merge them by the times of their events.
func (s *Store) Record(session Session, o RecordOptions) *Recorder {
	if session.Conversation == "" {
		session.Conversation = newID()
	}
	return &Recorder{store: s, id: session.Conversation, o: o, session: session, fresh: true, hurry: make(chan struct{})}
}

// Conversation returns the id of the conversation.
func (r *Recorder) Conversation() string { return r.id }

// Put changes what is known of the conversation apart from its events. That is written with the
// next event, or at once if anything was appended before.
func (r *Recorder) Put(v Session) {
	v.Conversation = r.id
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fresh {
		r.session = v
		return
	}
	if same(r.session, v) {
		return
	}
	r.session = v
	r.add([]Event{sessionEvent(attributesOf(v))})
}

// same reports whether two sessions are recorded alike: their times and counts do not matter.
func same(a, b Session) bool {
	if len(a.Command) != len(b.Command) || a.Key != b.Key || a.Cwd != b.Cwd || a.Title != b.Title || a.Protocol != b.Protocol || a.Parent != b.Parent || a.By != b.By {
		return false
	}
	for i := range a.Command {
		if a.Command[i] != b.Command[i] {
			return false
		}
	}
	return true
}

// Append adds events, which the caller must not change afterwards. It returns when they are
// written, or after [Options.AppendWait] if that takes longer; while earlier ones wait to be written it returns
// at once. When [MaxBacklog] is reached it blocks until there is room, until Finish is called, or
// until Killed is closed. Events that are appended after Close are dropped.
func (r *Recorder) Append(events ...Event) {
	if len(events) == 0 {
		return
	}
	now := time.Now()
	turn := false
	for i := range events {
		e := &events[i]
		if e.Time.IsZero() {
			e.Time = now
		}
		if len(e.Data) > MaxEvent {
			data, _ := json.Marshal(Lost{e.Kind, len(e.Data)}) // a string and a number cannot fail
			*e = Event{Time: e.Time, Kind: EventLost, Data: data}
		}
		turn = turn || e.Kind == EventTurn
	}
	r.mu.Lock()
	for r.bytes >= MaxBacklog && !r.ending && !r.closed {
		if r.room == nil {
			r.room = make(chan struct{})
		}
		room := r.room
		r.mu.Unlock()
		select {
		case <-room:
			r.mu.Lock()
			continue
		case <-r.o.Killed:
		}
		r.mu.Lock()
		break
	}
	if r.ending && r.bytes >= 2*MaxBacklog && !r.closed {
		r.lost += len(events)
		r.mu.Unlock()
		return
	}
	if r.fresh && !r.closed {
		r.fresh = false
		events = append([]Event{sessionEvent(attributesOf(r.session))}, events...)
	}
	r.add(events)
	wait := r.idle
	if r.behind || r.closed {
		wait = nil
	} else if wait == nil {
		wait = make(chan struct{})
		r.idle = wait
	}
	r.mu.Unlock()
	if turn {
		defer r.store.wakeIndexer()
	}
	if wait == nil {
		return
	}
	late := time.NewTimer(r.store.wait)
	defer late.Stop()
	select {
	case <-wait:
		return
	case <-late.C:
	case <-r.o.Killed:
	}
	r.mu.Lock()
	if r.working {
		r.behind = true
	}
	r.mu.Unlock()
}

// add queues events. The caller holds mu.
func (r *Recorder) add(events []Event) {
	if r.closed {
		return
	}
	for i := range events {
		r.bytes += len(events[i].Data) + eventBytes
	}
	if r.queue == nil {
		r.queue = events
	} else {
		r.queue = append(r.queue, events...)
	}
	if !r.working {
		r.working = true
		go r.work()
	}
}

// work writes until there is nothing left.
func (r *Recorder) work() {
	wait := firstRetry
	for {
		batch, size := r.take()
		if batch == nil {
			return
		}
		stalled := time.AfterFunc(stallAfter, func() { r.trouble(ErrStalled) })
		err := r.write(batch)
		stalled.Stop()
		if err == nil {
			wait = firstRetry
			r.wrote(batch, size)
			continue
		}
		last := r.closing()
		r.failed(batch, err, last)
		if last {
			continue
		}
		retry := time.NewTimer(wait)
		select {
		case <-retry.C:
		case <-r.hurry:
		}
		retry.Stop()
		wait = min(2*wait, lastRetry)
	}
}

func (r *Recorder) closing() bool {
	select {
	case <-r.hurry:
		return true
	default:
		return false
	}
}

// take returns what is next, or nil after the last. It stays in the queue until it is written.
func (r *Recorder) take() (batch []Event, size int) {
	r.mu.Lock()
	if len(r.queue) > 0 {
		n := 0
		for n < len(r.queue) && (n == 0 || size < maxWrite) {
			size += len(r.queue[n].Data) + eventBytes
			n++
		}
		// The writer sets numbers and the header, while Append may be moving the queue.
		batch = slices.Clone(r.queue[:n])
		r.mu.Unlock()
		return batch, size
	}
	r.queue = nil
	over := r.told
	if !over {
		r.rest()
		r.mu.Unlock()
		return nil, 0
	}
	r.told = false
	r.mu.Unlock()
	r.telling.Lock()
	if r.o.Trouble != nil {
		r.o.Trouble(nil)
	}
	r.telling.Unlock()
	return r.take() // something may have come meanwhile
}

// rest ends the writer. The caller holds mu.
func (r *Recorder) rest() {
	r.working, r.behind = false, false
	if r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
	r.settle()
	r.endLog()
}

// settle wakes callers of Sync. The caller holds mu.
func (r *Recorder) settle() {
	if r.settled != nil {
		close(r.settled)
		r.settled = nil
	}
}

// wrote removes what was written from the queue.
func (r *Recorder) wrote(batch []Event, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(batch, size)
	r.dirty, r.size = true, r.log.at.Offset
	if !r.syncing && !r.closed && !r.store.normal {
		r.syncing = true
		go r.sync(r.log)
	}
}

// drop removes a batch from the front of the queue, and lets callers continue that wait for room.
func (r *Recorder) drop(batch []Event, size int) {
	if len(batch) == len(r.queue) {
		r.queue = nil
	} else {
		r.queue = r.queue[len(batch):]
	}
	r.bytes -= size
	if r.room != nil {
		close(r.room)
		r.room = nil
	}
}

// failed records that a batch could not be written. After the last attempt the batch is given up.
func (r *Recorder) failed(batch []Event, err error, last bool) {
	r.mu.Lock()
	r.behind = true
	if r.idle != nil {
		close(r.idle) // what waits for it waits no longer
		r.idle = nil
	}
	if last {
		r.lost += len(r.queue)
		r.bytes, r.queue, r.told = 0, nil, false
		if r.room != nil {
			close(r.room)
			r.room = nil
		}
	}
	r.mu.Unlock()
	if !last {
		r.trouble(err)
	}
}

// trouble reports trouble, once.
func (r *Recorder) trouble(err error) {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.mu.Lock()
	tell := !r.told && r.working && len(r.queue) > 0
	if tell {
		r.told, r.behind = true, true
		r.settle()
	}
	r.mu.Unlock()
	if tell && r.o.Trouble != nil {
		r.o.Trouble(err)
	}
}

// write writes a batch. Only the writer calls it.
func (r *Recorder) write(batch []Event) error {
	s := r.store
	if r.log == nil {
		l, err := openLog(s.files, s.dir, r.id)
		if err != nil {
			return err
		}
		if l.Repaired > 0 {
			s.log.Warn("a record that was cut off was taken away", "conversation", r.id, "part", l.part, "bytes", l.Repaired)
		}
		r.mu.Lock()
		r.log, r.safe = l, l.at.Offset
		r.mu.Unlock()
	}
	if r.log.head {
		r.mu.Lock()
		about := r.session
		r.mu.Unlock()
		head := r.log.header(about)
		if batch[0].Kind == eventSession {
			head.Time = batch[0].Time
			batch[0] = head
		} else if err := r.log.append([]Event{head}); err != nil {
			return err
		}
	}
	return r.log.append(batch)
}

// sync makes what was written survive a loss of power, until nothing more is written. If that
// fails, it writes again what is not safe and tries once more, with growing pauses and up to
// maxSyncs times.
func (r *Recorder) sync(l *logFile) {
	named, failures, pause := false, 0, syncAfter
	for {
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-r.hurry: // Close does the rest
		}
		wait.Stop()
		r.mu.Lock()
		if r.closed || !r.dirty {
			r.syncing = false
			r.settle()
			if !r.working {
				r.endLog()
			}
			r.mu.Unlock()
			return
		}
		r.dirty = false
		from, to := r.safe, r.size
		r.mu.Unlock()
		err := l.sync(from, to, failures > 0)
		r.mu.Lock()
		if err == nil {
			r.safe, failures, pause = to, 0, syncAfter
		} else if failures++; failures < maxSyncs && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
			r.dirty, pause = true, min(2*pause, lastRetry)
		}
		r.mu.Unlock()
		if !named {
			named = true
			err = errors.Join(err, r.store.files.SyncDir(r.store.dir))
		}
		if err != nil {
			r.store.log.Warn("a conversation may not survive loss of power", "conversation", r.id, "error", err)
		}
	}
}

// endLog syncs the end of a log and releases it, once the recorder is closed and the writer and the
// syncer have ended. The caller holds mu.
func (r *Recorder) endLog() {
	if r.syncing || r.ready == nil {
		return
	}
	l, ready, dirty, from, to := r.log, r.ready, r.dirty, r.safe, r.size
	r.log, r.ready = nil, nil
	if l == nil {
		close(ready)
		return
	}
	go func() {
		defer close(ready)
		var err error
		if dirty {
			if err = l.sync(from, to, false); err != nil {
				err = l.sync(from, to, true)
			}
			err = errors.Join(err, r.store.files.SyncDir(r.store.dir))
		}
		if err = errors.Join(err, l.close()); err != nil {
			r.store.log.Warn("a conversation may not survive loss of power", "conversation", r.id, "error", err)
		}
	}()
}

// Sync waits until everything that was appended is written and, unless the store was opened with
// Normal, survives a loss of power. It returns an error as soon as something cannot be written, or
// not in time, as Trouble does; when ctx is done; and after Close if something was given up.
func (r *Recorder) Sync(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.told && (r.working || r.syncing) {
		if r.settled == nil {
			r.settled = make(chan struct{})
		}
		settled := r.settled
		r.mu.Unlock()
		select {
		case <-settled:
		case <-ctx.Done():
		}
		r.mu.Lock()
		if err := ctx.Err(); err != nil {
			return wrap("write session", err)
		}
	}
	if r.told || r.lost > 0 || len(r.queue) > 0 {
		return wrap("write session", ErrUnsaved)
	}
	return nil
}

// Finish announces that Close follows. Append no longer waits for room, so that the caller can end
// while the disk does not answer; up to twice [MaxBacklog] is kept in memory instead. Events beyond
// that are dropped, and the error of Close counts them. Later calls do nothing.
func (r *Recorder) Finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
	if r.room != nil {
		close(r.room)
		r.room = nil
	}
}

// Close writes what is left, syncs it, and releases the conversation to other writers. It waits
// five seconds at most. What cannot be written is tried once more; what is lost, or is not yet
// written after that time, is reported by an error that is [ErrUnsaved]. Later calls do nothing.
func (r *Recorder) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	close(r.hurry)
	if r.room != nil {
		close(r.room)
		r.room = nil
	}
	r.ready = make(chan struct{})
	ready := r.ready
	if !r.working { // otherwise the writer ends it
		r.endLog()
	}
	r.mu.Unlock()
	late := time.NewTimer(closeAfter)
	defer late.Stop()
	select {
	case <-ready:
	case <-late.C:
	case <-r.o.Killed:
		select { // one more attempt takes no time, unless the disk does not answer
		case <-ready:
		case <-time.After(killedWait):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.lost + len(r.queue); n > 0 {
		return fmt.Errorf("%d events of conversation %s: %w", n, r.id, ErrUnsaved)
	}
	return nil
}
