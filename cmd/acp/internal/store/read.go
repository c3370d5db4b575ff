package store

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/records"
	"github.com/goacp/acp/transcript"
)

// read calls f with all records of a conversation, which f must not modify. If f returns false, reading ends. What of it is
// damaged is left out.
func (s *Store) read(ctx context.Context, id string, f func(*journal.Record) bool) (*journal.DamageError, error) {
	if !validID(id) {
		return nil, ErrNotFound
	}
	err := s.journals.Read(ctx, id, 0, func(r *journal.Record) error {
		if !f(r) {
			return errEnough
		}
		return nil
	})
	damage, ok := errors.AsType[*journal.DamageError](err)
	if ok || errors.Is(err, errEnough) {
		err = nil
	}
	return damage, known(err)
}

// errEnough ends reading.
var errEnough = errors.New("enough was read")

// known makes an error of the journals one of the store.
func known(err error) error {
	if errors.Is(err, journal.ErrNotFound) {
		return ErrNotFound
	}
	return err
}

// Events iterates over the events of a conversation in order. A conversation that does not exist has none. Damaged records
// are left out: [Store.Snapshot] reports them. When ctx is done the iteration ends with its error, even while the disk does
// not answer. An error is the last thing it yields.
func (s *Store) Events(ctx context.Context, id string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		reading, cancel := context.WithCancel(ctx)
		events := make(chan Event) // closed when the reader has ended
		done, err := begin(reading, s, func() (struct{}, error) {
			defer close(events)
			_, err := s.read(reading, id, func(r *journal.Record) bool {
				if r.Kind == journal.KindSession {
					return true
				}
				select {
				case events <- Event{Kind: r.Kind, At: r.At, Data: r.Data}:
					return true
				case <-reading.Done():
					return false
				}
			})
			return struct{}{}, errors.Join(err, reading.Err())
		})
		if err != nil {
			cancel()
			yield(Event{}, wrap("read session", err))
			return
		}
		// The reader has closed its files when the iteration ends, unless the disk does not answer.
		defer func() {
			cancel()
			for ended := false; !ended; {
				select {
				case _, more := <-events:
					ended = !more
				case <-ctx.Done():
					ended = true
				}
			}
		}()
		for {
			select {
			case e, more := <-events:
				if more {
					if !yield(e, nil) {
						return
					}
					continue
				}
				if r := <-done; r.err != nil && !errors.Is(r.err, ErrNotFound) {
					yield(Event{}, wrap("read session", r.err))
				}
			case <-ctx.Done():
				yield(Event{}, wrap("read session", ctx.Err()))
			}
			return
		}
	}
}

// Snapshot returns the conversation that the events of a journal make, within the bounds of cfg, and what of it is damaged;
// nil means nothing. Events of the wrong form are left out. If there is no conversation, the error is [ErrNotFound].
//
// Permissions that were never answered have no outcome. A turn that was cut off leaves the session as busy as it was then.
func (s *Store) Snapshot(ctx context.Context, id string, cfg transcript.Config) (*transcript.Snapshot, *journal.DamageError, error) {
	f := NewReading(id, cfg)
	damage, err := abandon(ctx, s, func() (*journal.DamageError, error) {
		return s.read(ctx, id, func(r *journal.Record) bool {
			f.Apply(r)
			return true
		})
	})
	if err != nil {
		return nil, nil, wrap("read session", err)
	}
	return f.Snapshot(), damage, nil
}

// A Reading makes of the records of a conversation what is known of it and what was said. Its methods must not be
// called concurrently.
type Reading struct {
	state state
	fold  *records.Fold
}

// NewReading returns a reading of a conversation, within the bounds of cfg, of which no record was read.
func NewReading(id string, cfg transcript.Config) *Reading {
	return &Reading{state{Session: Session{Conversation: id}}, records.NewFold(cfg)}
}

// Apply takes the next record.
func (r *Reading) Apply(rec *journal.Record) {
	r.state.apply(rec)
	r.fold.Apply(rec)
}

// Fold returns what the conversation is made of, for updates that have no record.
func (r *Reading) Fold() *records.Fold { return r.fold }

// Session returns what is known of the conversation, and false if no record says what it is.
func (r *Reading) Session() (Session, bool) { return r.state.Session, r.state.known }

// Snapshot returns what was said.
func (r *Reading) Snapshot() *transcript.Snapshot { return r.fold.Conversation.Snapshot() }

// state reads what is known of a conversation from its journal.
func (s *Store) state(ctx context.Context, id string) (Session, error) {
	st := state{Session: Session{Conversation: id}}
	_, err := s.read(ctx, id, func(r *journal.Record) bool {
		st.apply(r)
		return true
	})
	return st.Session, err
}

// A Resumed is a conversation that a process continues: see [Store.Resume].
type Resumed struct {
	Recorder *Recorder
	Snapshot *transcript.Snapshot
	// Damage says what of the conversation is damaged; nil means nothing.
	Damage *journal.DamageError
}

// Resume owns a conversation for a caller that continues it, and returns it within [Bounds]. If inTurn reports that the last
// turn has no end, its program was killed, and Resume records that the turn was interrupted. It fails with [ErrNotFound], or
// a [*journal.OwnedError] that says who has the conversation.
func (s *Store) Resume(ctx context.Context, id string, o RecordOptions, inTurn func(*transcript.Snapshot) bool) (Resumed, error) {
	done, err := begin(ctx, s, func() (Resumed, error) { return s.resume(ctx, id, o, inTurn) })
	if err != nil {
		return Resumed{}, wrap("continue session", err)
	}
	select {
	case r := <-done:
		return r.v, wrap("continue session", r.err)
	case <-ctx.Done():
	}
	go func() { // a disk that does not answer may do so later
		if r := <-done; r.err == nil {
			_ = r.v.Recorder.Close() // nothing was appended that the next one would not append
		}
	}()
	return Resumed{}, wrap("continue session", ctx.Err())
}

// resume is Resume for a caller that waits for the disk.
func (s *Store) resume(ctx context.Context, id string, o RecordOptions, inTurn func(*transcript.Snapshot) bool) (Resumed, error) {
	if !validID(id) {
		return Resumed{}, ErrNotFound
	}
	if s.Held(id) != "" {
		return Resumed{}, &journal.OwnedError{ID: id, Who: "an agent that your gateway has left running"}
	}
	f := NewReading(id, Bounds())
	w, err := s.journals.Own(ctx, id, func(r *journal.Record) error {
		f.Apply(r)
		return nil
	})
	if err != nil {
		return Resumed{}, known(err)
	}
	rec := s.Record(f.state.Session, o)
	rec.id, rec.session.Conversation, rec.w = id, id, w
	s.register(rec)
	r := Resumed{Recorder: rec, Snapshot: f.Snapshot(), Damage: w.Damage()}
	if f.state.State == records.StateRunning && f.state.hosted || inTurn(r.Snapshot) {
		data, err := json.Marshal(interrupted)
		if err != nil {
			return Resumed{}, errors.Join(err, rec.Close())
		}
		rec.Append(Event{Kind: journal.KindEnd, Data: data})
		r.Snapshot = Interrupted(r.Snapshot)
	}
	return r, nil
}

// Interrupted returns a conversation in the state after its program was killed in the middle of its turn.
func Interrupted(t *transcript.Snapshot) *transcript.Snapshot {
	c := t.Continue(Bounds())
	interrupted.Apply(c)
	return c.Snapshot()
}

// interrupted is the end of a turn whose program was killed.
var interrupted = &records.End{Ended: transcript.EndedByClient}

// Owner reports whether a running process, which may be this one, is writing a conversation, and what that says of
// itself: it has appended to it or resumed it, and has not closed its [Recorder]. Writers are not disturbed. Nobody
// writes a conversation that does not exist. An error means that it is not known, as where files cannot be locked.
func (s *Store) Owner(ctx context.Context, conversation string) (who string, is bool, err error) {
	type owner struct {
		who string
		is  bool
	}
	o, err := abandon(ctx, s, func() (o owner, err error) {
		if validID(conversation) {
			o.who, o.is, err = s.journals.Owner(ctx, conversation)
		}
		return o, err
	})
	return o.who, o.is, wrap("read session", err)
}

// Held returns the socket at which the agent of a conversation is reached that a gateway has left running, or "".
func (s *Store) Held(conversation string) string {
	if !validID(conversation) {
		return ""
	}
	data, err := os.ReadFile(filepath.Join(s.dir, conversation+".live"))
	var live struct {
		Socket string `json:"socket"`
	}
	if err != nil || json.Unmarshal(data, &live) != nil || live.Socket == "" {
		return ""
	}
	if _, err := os.Lstat(live.Socket); errors.Is(err, fs.ErrNotExist) {
		return "" // it has ended
	}
	return live.Socket
}

// Writing is Owner for a caller that need not know who it is.
func (s *Store) Writing(ctx context.Context, conversation string) (bool, error) {
	_, is, err := s.Owner(ctx, conversation)
	return is, err
}

// IsInterrupted reports whether the program of a conversation was killed in the middle of its last turn: the turn is open,
// and no running process writes the conversation. It returns false if that is not known.
func (s *Store) IsInterrupted(ctx context.Context, v Session) bool {
	if v.State != records.StateRunning {
		return false
	}
	busy, err := s.Writing(ctx, v.Conversation)
	return !busy && err == nil
}
