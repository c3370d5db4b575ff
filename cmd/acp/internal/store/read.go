package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/goacp/acp/transcript"
)

// readStep is how many records are read between two checks whether reading must end.
const readStep = 1024

const (
	// statters is how many goroutines ask for the sizes of logs, and how many logs each asks for at
	// least.
	statters   = 4
	statAtOnce = 256
)

// A part is a file of a conversation.
type part struct {
	n    int
	size int64
}

// conversations returns the parts of all conversations, in order. It asks the system for the sizes
// of several at once: if there are many files, that takes most of the time of a list.
func (s *Store) conversations() (map[string][]part, error) {
	list, err := s.files.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	names := make([]namedPart, 0, len(list))
	for _, e := range list {
		if id, n, ok := parseName(e.Name()); ok {
			names = append(names, namedPart{id, part{n: n}, e})
		}
	}
	var group sync.WaitGroup
	for some := range slices.Chunk(names, max(len(names)/statters+1, statAtOnce)) {
		group.Go(func() {
			for i := range some {
				info, err := some[i].entry.Info()
				if err != nil || !info.Mode().IsRegular() {
					some[i].part.n = 0 // deleted meanwhile, or not a log
					continue
				}
				some[i].part.size = info.Size()
			}
		})
	}
	group.Wait()
	names = slices.DeleteFunc(names, func(p namedPart) bool { return p.part.n == 0 })
	sort.Slice(names, func(i, j int) bool {
		a, b := names[i], names[j]
		return cmp.Or(strings.Compare(a.id, b.id), cmp.Compare(a.part.n, b.part.n)) < 0
	})
	all := make(map[string][]part, len(names))
	parts := make([]part, len(names))
	for begin := 0; begin < len(names); {
		end := begin
		for ; end < len(names) && names[end].id == names[begin].id; end++ {
			parts[end] = names[end].part
		}
		all[names[begin].id] = parts[begin:end:end]
		begin = end
	}
	return all, nil
}

// A namedPart is a file in the directory of the logs.
type namedPart struct {
	id    string
	part  part
	entry fs.DirEntry
}

// parts returns those of one conversation.
func (s *Store) parts(id string) (parts []part, err error) {
	if !validID(id) {
		return nil, ErrNotFound
	}
	last, err := lastPart(s.files, s.dir, id)
	if err != nil {
		return nil, err
	}
	for n := 1; n <= last; n++ {
		parts = append(parts, part{n: n})
	}
	if len(parts) == 0 {
		return nil, ErrNotFound
	}
	return parts, nil
}

// read calls f with all records of a conversation: those of each part in order, and parts that were
// written at the same time by the times of their records. Data is valid during the call only. If f
// returns false, reading ends.
func (s *Store) read(ctx context.Context, id string, f func(*Event) bool) (damage *Damage, err error) {
	return s.readKnown(ctx, id, nil, f)
}

// readKnown is read for a conversation of which something is known.
func (s *Store) readKnown(ctx context.Context, id string, known map[int]witness, f func(*Event) bool) (damage *Damage, err error) {
	parts, err := s.parts(id)
	if err != nil {
		return nil, err
	}
	m := merge{store: s, id: id, damage: new(Damage), known: known, step: scanBuffer}
	if len(parts) > maxOpenParts {
		m.step = scanStep
	}
	defer m.close()
	there := 0
	for _, p := range parts {
		switch err := m.add(p.n); {
		case errors.Is(err, fs.ErrNotExist): // a part that was removed
		case err != nil:
			return nil, err
		default:
			there++
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if there == 0 {
		return nil, ErrNotFound
	}
	for n := 1; len(m.sources) > 0; n++ {
		if n%readStep == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		next := m.next()
		if !f(&next.rec.Event) {
			return m.damage, nil
		}
		if err := m.advance(next); err != nil {
			return nil, err
		}
	}
	return m.damage, ctx.Err()
}

// Events iterates over the events of a conversation in order. A conversation that does not exist
// has none. Damaged records are left out: [Store.Snapshot] reports them. When ctx is done the
// iteration ends with its error, even while the disk does not answer. An error is the last thing it
// yields.
func (s *Store) Events(ctx context.Context, id string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		reading, cancel := context.WithCancel(ctx)
		events := make(chan Event) // closed when the reader has ended
		done, err := begin(reading, s, func() (struct{}, error) {
			defer close(events)
			return struct{}{}, s.sendEvents(reading, id, events)
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

// sendEvents reads a conversation for Events.
func (s *Store) sendEvents(ctx context.Context, id string, events chan<- Event) error {
	_, err := s.read(ctx, id, func(e *Event) bool {
		if e.Kind == eventSession {
			return true
		}
		own := *e
		own.Data = bytes.Clone(e.Data)
		select {
		case events <- own:
			return true
		case <-ctx.Done():
			return false
		}
	})
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// Snapshot returns the conversation that the events of a log make, within the bounds of cfg, and
// what of it is damaged; nil means nothing. Events of the wrong form are left out. If there is no
// conversation, the error is [ErrNotFound].
//
// Permissions that were never answered have no outcome. A turn that was cut off leaves the session
// as busy as it was then.
func (s *Store) Snapshot(ctx context.Context, id string, cfg transcript.Config) (*transcript.Snapshot, *Damage, error) {
	type folded struct {
		snapshot *transcript.Snapshot
		damage   *Damage
	}
	r, err := abandon(ctx, s, func() (folded, error) {
		t, damage, err := s.snapshot(ctx, id, cfg)
		return folded{t, damage}, err
	})
	return r.snapshot, r.damage, wrap("read session", err)
}

// snapshot is Snapshot for callers that wait for the files.
func (s *Store) snapshot(ctx context.Context, id string, cfg transcript.Config) (*transcript.Snapshot, *Damage, error) {
	f := newFolder(cfg)
	// Read first, since the log may grow meanwhile.
	known := s.witnesses(ctx, id)
	damage, err := s.readKnown(ctx, id, known, func(e *Event) bool {
		f.apply(e)
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	if len(damage.Lost) == 0 && damage.Missing == 0 && !damage.CutOff && !damage.Altered {
		damage = nil
	}
	return f.conversation.Snapshot(), damage, nil
}

// state reads what is known of a conversation from its log.
func (s *Store) state(ctx context.Context, id string) (Session, error) {
	st := state{Session: Session{Conversation: id}}
	_, err := s.read(ctx, id, func(e *Event) bool {
		st.apply(e)
		return true
	})
	return st.Session, err
}
