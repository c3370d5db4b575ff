package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/records"
)

const (
	// appendWait bounds how long Append waits until its events are kept, unless the store was opened with another bound.
	appendWait = 100 * time.Millisecond
	// killedWait bounds the last attempt to write of a recorder that was killed.
	killedWait = 100 * time.Millisecond
	// closeAfter bounds Close.
	closeAfter = 5 * time.Second
)

// RecordOptions say how a conversation is recorded.
type RecordOptions struct {
	// Trouble is called with the conversation and an error when something cannot be written, or not in time, and with nil
	// when everything is written again. Calls come one at a time. Nil discards them.
	Trouble func(conversation string, err error)
	// Killed ends all waiting when it is closed: for room, for writes, and for what remains when the recorder is closed,
	// which is tried only once more. Nil is never closed.
	Killed <-chan struct{}
}

// A Recorder writes one conversation, in the background, and owns its journal for as long. If the disk fails or does not
// answer, Append returns all the same; the rest stays in memory, up to [journal.MaxBacklog], and is tried again until it is
// written. The methods may be called from any goroutine. Close it when done with it.
type Recorder struct {
	store *Store
	id    string
	o     RecordOptions

	mu       sync.Mutex
	session  Session         // as of the last Put
	w        *journal.Writer // nil before the first Append
	waiting  int             // events that are not kept
	behind   bool            // Append does not wait
	troubled chan struct{}   // closed while there is trouble
	closed   bool
	lost     int // events that were given up
}

// Record returns the recorder of a new conversation, with an id of its own. Nothing is on the disk before the first call of
// Append. [Store.Resume] returns that of an existing one.
func (s *Store) Record(session Session, o RecordOptions) *Recorder {
	session.Conversation = records.NewID()
	return &Recorder{store: s, id: session.Conversation, o: o, session: session, troubled: make(chan struct{})}
}

// register has trouble with a journal reported to a recorder, until that is closed.
func (s *Store) register(r *Recorder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorders[r.id] = r
}

// trouble passes on what the journals say.
func (s *Store) trouble(id string, err error) {
	s.mu.Lock()
	r := s.recorders[id]
	s.mu.Unlock()
	if r != nil {
		r.trouble(err)
	}
}

// Conversation returns the id of the conversation.
func (r *Recorder) Conversation() string { return r.id }

// Put changes what is known of the conversation apart from its events. That is written with the next event, or at once if
// anything was appended before.
func (r *Recorder) Put(v Session) {
	v.Conversation = r.id
	r.mu.Lock()
	same := same(r.session, v)
	r.session = v
	w := r.w
	r.mu.Unlock()
	if w != nil && !same {
		r.add(w, []Event{sessionEvent(v)}, func() {})
	}
}

// sessionEvent returns the event that describes a conversation.
func sessionEvent(v Session) Event {
	data, _ := json.Marshal(attributesOf(v)) // strings and numbers cannot fail
	return Event{Kind: journal.KindSession, At: time.Now(), Data: data}
}

// same reports whether two sessions are recorded alike: their times and counts do not matter.
func same(a, b Session) bool {
	return slices.Equal(a.Command, b.Command) && a.Key == b.Key && a.Cwd == b.Cwd && a.Title == b.Title &&
		a.Protocol == b.Protocol && a.Parent == b.Parent && a.By == b.By
}

// Append adds events, which the caller must not change afterwards. It returns when they are kept, or after
// [Options.AppendWait] if that takes longer; while earlier ones wait to be kept it returns at once. When
// [journal.MaxBacklog] is reached it blocks until there is room, until Finish is called, or until Killed is closed. Events
// that are appended after Close are dropped.
func (r *Recorder) Append(events ...Event) {
	if len(events) == 0 {
		return
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	if r.w == nil {
		r.store.register(r)
		w, err := r.store.journals.Begin(r.id, sessionEvent(r.session))
		if err != nil { // the store was closed
			r.lost += len(events)
			r.mu.Unlock()
			return
		}
		r.w = w
	}
	w, wait := r.w, !r.behind
	r.mu.Unlock()
	done := make(chan struct{})
	r.add(w, events, func() { close(done) })
	if slices.ContainsFunc(events, func(e Event) bool { return e.Kind == journal.KindEnd }) {
		defer r.store.wakeIndexer()
	}
	if !wait {
		return
	}
	late := time.NewTimer(r.store.wait)
	defer late.Stop()
	select {
	case <-done:
		return
	case <-late.C:
	case <-r.o.Killed:
	}
	r.mu.Lock()
	r.behind = r.waiting > 0
	r.mu.Unlock()
}

// add appends events, and calls done when they are kept or given up.
func (r *Recorder) add(w *journal.Writer, events []Event, done func()) {
	r.mu.Lock()
	r.waiting += len(events)
	r.mu.Unlock()
	kept := func(_ []*journal.Record, err error) {
		r.kept(len(events), err)
		done()
	}
	for finished := false; ; {
		err := w.Append(events, kept)
		switch {
		case err == nil:
			return
		case finished || !errors.Is(err, journal.ErrBehind):
			kept(nil, err)
			return
		}
		finished = r.room(w)
	}
}

// room waits until a writer has room. It reports whether there will be no more than there is: the end is near.
func (r *Recorder) room(w *journal.Writer) (finished bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.Room(ctx) }()
	select {
	case err := <-done:
		return err != nil || w.Finished()
	case <-r.o.Killed:
		w.Finish()
		return false
	}
}

// kept notes what became of events.
func (r *Recorder) kept(n int, err error) {
	r.mu.Lock()
	if r.waiting -= n; r.waiting == 0 {
		r.behind = false
	}
	tell := false
	if err != nil && !errors.Is(err, journal.ErrDeleted) { // what is written to a conversation that was deleted is lost
		tell = r.lost == 0 && !r.closed
		r.lost += n
	}
	r.mu.Unlock()
	if tell {
		r.trouble(err)
	}
}

// trouble reports trouble, or its end.
func (r *Recorder) trouble(err error) {
	r.mu.Lock()
	if err == nil {
		r.troubled = make(chan struct{})
	} else if r.behind = r.waiting > 0; !isClosed(r.troubled) {
		close(r.troubled)
	}
	r.mu.Unlock()
	if r.o.Trouble != nil {
		r.o.Trouble(r.id, err)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Sync waits until everything that was appended survives a loss of power. It returns an error as soon as something cannot
// be written, or not in time, as Trouble does; when ctx is done; and if something was given up.
func (r *Recorder) Sync(ctx context.Context) error {
	r.mu.Lock()
	w, troubled, lost := r.w, r.troubled, r.lost
	r.mu.Unlock()
	switch {
	case lost > 0:
		return wrap("write session", ErrUnsaved)
	case w == nil:
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.Sync(ctx) }()
	select {
	case err := <-done:
		if errors.Is(err, journal.ErrReleased) {
			r.mu.Lock()
			if err = nil; r.waiting > 0 || r.lost > 0 { // or Close has synced it
				err = ErrUnsaved
			}
			r.mu.Unlock()
		}
		return wrap("write session", err)
	case <-troubled:
		return wrap("write session", ErrUnsaved)
	}
}

// Finish announces that Close follows. Append no longer waits for room, so that the caller can end while the disk does not
// answer; up to twice [journal.MaxBacklog] is kept in memory instead. Events beyond that are dropped, and the error of Close
// counts them. Later calls do nothing.
func (r *Recorder) Finish() {
	r.mu.Lock()
	w := r.w
	r.mu.Unlock()
	if w != nil {
		w.Finish()
	}
}

// Close writes what is left, syncs it, and releases the conversation to other writers. It waits five seconds at most. What
// cannot be written is tried once more; what is lost, or is not yet written after that time, is reported by an error that is
// [ErrUnsaved]. Later calls do nothing.
func (r *Recorder) Close() error {
	r.mu.Lock()
	w, was := r.w, r.closed
	r.closed = true
	r.mu.Unlock()
	if was {
		return nil
	}
	if w != nil {
		r.release(w)
	}
	r.store.mu.Lock()
	if r.store.recorders[r.id] == r {
		delete(r.store.recorders, r.id)
	}
	r.store.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.lost + r.waiting; n > 0 {
		return fmt.Errorf("%d events of conversation %s: %w", n, r.id, ErrUnsaved)
	}
	return nil
}

// release gives the journal up, within the bounds of Close.
func (r *Recorder) release(w *journal.Writer) {
	ctx, cancel := context.WithTimeout(context.Background(), closeAfter)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.Release(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-r.o.Killed:
		t := time.AfterFunc(killedWait, cancel) // one more attempt takes no time, unless the disk does not answer
		defer t.Stop()
		err = <-done
	}
	if err != nil {
		r.store.log.Warn("a conversation may not survive loss of power", "conversation", r.id, "error", err)
	}
}
