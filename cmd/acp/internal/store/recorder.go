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
	// showAfter is how long Append waits for what it was given to be written.
	showAfter = 100 * time.Millisecond
	// stallAfter is how long a write takes until that is told.
	stallAfter = 2 * time.Second
	// syncAfter is how long after a write it begins to be made safe from loss of power.
	syncAfter = 100 * time.Millisecond
	// maxSyncs bounds how often that is tried while it fails, until something else is written.
	maxSyncs = 20
	// Between attempts to write.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
	// closeAfter bounds Close.
	closeAfter = 5 * time.Second
	// maxWrite bounds what is written at once, but for a single event, in bytes.
	maxWrite = 4 << 20
	// eventBytes is what an event counts besides its data.
	eventBytes = 256
)

// MaxBacklog bounds what a [Recorder] keeps in memory while it cannot be written, in bytes. A single
// call of Append may go beyond it, and after [Recorder.Finish] it is twice as much.
const MaxBacklog = 64 << 20

// RecordOptions say how a conversation is recorded.
type RecordOptions struct {
	// Trouble is called with an error when something cannot be written, or not in time, and with
	// nil when everything is written again. Calls come one at a time. Nil tells nobody.
	Trouble func(error)
	// Killed, when it is closed, ends all waiting: for room, for writes, and for what is still to be
	// written when the recorder is closed, which is tried once more only. Nil never is.
	Killed <-chan struct{}
}

// A Recorder writes one conversation, in the background. What it is given is written at once, and
// is in the hands of the system when Append returns: it survives the end of this process. Where the
// disk fails or does not answer, Append returns all the same and the rest is kept in memory, up to
// [MaxBacklog], and tried again until it is written. Its methods may be called from
// any goroutine. Close it when done with it.
type Recorder struct {
	store *Store
	id    string
	o     RecordOptions

	mu      sync.Mutex
	session Session // as it was put last
	fresh   bool    // session is to be written before the next event
	queue   []Event
	bytes   int           // of queue and of what is being written
	working bool          // the writer runs
	idle    chan struct{} // closed when everything is written; nil if nobody waits
	room    chan struct{} // closed when something is written; nil if nobody waits
	settled chan struct{} // closed when the writer or the syncer rests; nil if nobody waits
	behind  bool          // what is queued is not waited for
	told    bool          // Trouble was told, and is not over
	ending  bool          // Append waits for room no longer
	closed  bool
	hurry   chan struct{} // closed with closed: no retry waits any more
	lost    int           // events that were given up since it was to be closed
	syncing bool          // the syncer runs
	dirty   bool          // something was written since the last sync began
	safe    int64         // up to where the log survives loss of power
	size    int64         // of what is written of the log

	telling sync.Mutex    // held while Trouble is called
	log     *logFile      // of the writer
	ready   chan struct{} // closed when the log was given back; nil before Close and after that
}

// Record returns what writes a conversation: the one that session names, or else a new one with an
// id of its own. Nothing is on the disk before the first call of Append. Several recorders, in
// any processes, may write one conversation at the same time: each has a file of its own, and they are
// put together by the time of their events when they are read.
func (s *Store) Record(session Session, o RecordOptions) *Recorder {
	if session.Conversation == "" {
		session.Conversation = newID()
	}
	return &Recorder{store: s, id: session.Conversation, o: o, session: session, fresh: true, hurry: make(chan struct{})}
}

// Conversation returns the id of the conversation.
func (r *Recorder) Conversation() string { return r.id }

// Put changes what is known of the conversation besides its events: it is written with the
// next of them, or at once if anything was appended before.
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

func same(a, b Session) bool {
	if len(a.Command) != len(b.Command) || a.Key != b.Key || a.Cwd != b.Cwd || a.Title != b.Title || a.Protocol != b.Protocol || a.Parent != b.Parent {
		return false
	}
	for i := range a.Command {
		if a.Command[i] != b.Command[i] {
			return false
		}
	}
	return true
}

// Append adds events, which the caller must not change any more. It returns when they are written, or after
// 100 ms if that takes longer; while earlier ones wait to be written it returns at once. When [MaxBacklog]
// is reached it blocks until there is room, until Finish is called, or until Killed is closed. Events that are
// appended after Close are dropped.
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
			data, _ := json.Marshal(Lost{e.Kind, len(e.Data)}) // of a string and a number
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
	late := time.NewTimer(showAfter)
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

// add queues events, with mu held.
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

// take returns what is next, nil after the last. It stays in the queue until it is written.
func (r *Recorder) take() (batch []Event, size int) {
	r.mu.Lock()
	if len(r.queue) > 0 {
		n := 0
		for n < len(r.queue) && (n == 0 || size < maxWrite) {
			size += len(r.queue[n].Data) + eventBytes
			n++
		}
		// The writer fills in numbers and the header, while Append may be moving the queue.
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

// rest ends the writer, with mu held.
func (r *Recorder) rest() {
	r.working, r.behind = false, false
	if r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
	r.settle()
	r.endLog()
}

// settle wakes those who wait in Sync, with mu held.
func (r *Recorder) settle() {
	if r.settled != nil {
		close(r.settled)
		r.settled = nil
	}
}

// wrote takes what was written out of the queue.
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

// failed notes that a batch could not be written. If it was the last attempt it is given up.
func (r *Recorder) failed(batch []Event, err error, last bool) {
	r.mu.Lock()
	r.behind = true
	if r.idle != nil {
		close(r.idle) // what waits for it does so no longer
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

// trouble tells that there is some, once.
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

// sync has what was written survive loss of power, until nothing was written any more. When that fails,
// what is not safe is written once more and tried again, later each time, and up to maxSyncs times.
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

// endLog makes the last of a log safe and gives it back, with mu held, once the recorder is closed and
// the writer and the syncer have ended.
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

// Sync waits until everything that was appended is written and, unless the store was opened to do
// without, survives loss of power. It returns an error as soon as something cannot be written, or not in
// time, as Trouble does; when ctx is done; and after Close if something was given up.
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

// Finish announces that Close follows. Append no longer waits for room, so that the caller can end while the
// disk does not answer: up to twice [MaxBacklog] is kept in memory instead. Events beyond that are dropped,
// and the error of Close counts them. Later calls do nothing.
func (r *Recorder) Finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
	if r.room != nil {
		close(r.room)
		r.room = nil
	}
}

// Close writes what is left, makes it safe from loss of power, and releases the conversation to other
// writers. It waits five seconds at most. What cannot be written is tried once more; what is lost, or is not
// yet written after that time, is reported by an error that is [ErrUnsaved]. Later calls do nothing.
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
	if !r.working { // else the writer ends it
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
		case <-time.After(showAfter):
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.lost + len(r.queue); n > 0 {
		return fmt.Errorf("%d events of conversation %s: %w", n, r.id, ErrUnsaved)
	}
	return nil
}
