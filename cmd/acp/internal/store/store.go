// Package store keeps conversations on disk, in SQLite: every update before it
// is shown, so that what was shown is there after a crash.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"
)

// ErrNotFound says that there is no such session, ErrAmbiguous that an
// abbreviated id stands for several.
var (
	ErrNotFound  = errors.New("no such session")
	ErrAmbiguous = errors.New("several sessions begin like that")
)

// A Key names a session: agents give ids that are unique among their own.
type Key struct {
	Agent string // name in the roster, or a command line
	ID    string // the agent's id of the session
}

// A Session is what is known of a session besides its events.
type Session struct {
	Key
	Command  []string // how the agent was started; nil for the built-in one
	Cwd      string   // absolute
	Title    string
	Protocol int // version last spoken
	Created  time.Time
	Updated  time.Time
	Turns    int
	Events   int64
}

// An EventKind says what an Event is.
type EventKind string

// The kinds of events.
const (
	EventUpdate   EventKind = "update"   // a session update in the words of version 2
	EventAsked    EventKind = "asked"    // a session/request_permission of version 2
	EventAnswered EventKind = "answered" // its outcome: {"asked": number of that event in the session, "outcome": …}
	EventTurn     EventKind = "turn"     // a turn has ended: {"stopReason": …, "error": …}
	EventReset    EventKind = "reset"    // what follows is the whole history again, told by the agent
)

// An Event is one thing that happened in a session.
type Event struct {
	Seq  int64 // in its session, from 1; set by the store
	Time time.Time
	Kind EventKind
	Data json.RawMessage
}

// A Query selects sessions.
type Query struct {
	Agent string // "" is all
	Cwd   string // "" is all
	Text  string // words to look for in titles and messages; "" is all
	Limit int    // 0 is 100
}

// A Match is a session that was found.
type Match struct {
	Session
	Snippet string // where the text was found, or ""
}

// A Store keeps conversations. Its methods may be called from any goroutine, and
// several processes may have the same store open. Close it when done with it.
type Store struct{}

// Options say how a store is opened.
type Options struct {
	Path string // of the file; "" is in memory
	// Normal gives up that a transaction survives loss of power; it still
	// survives the end of the process.
	Normal bool
}

// A Damage says that a store was broken: what was set aside, and what could be
// read from it.
type Damage struct {
	Reason          string
	Aside           string // where the broken file is now
	Sessions        int    // that were read from it
	Events          int64
	LostSessions    int // that are known to be missing
	SessionsPartial int
}

// Open opens a store, and makes one if there is none. A file that is broken is
// set aside and what can be read from it is put into a new one; damage tells.
func Open(ctx context.Context, o Options) (s *Store, damage *Damage, err error) {
	return nil, nil, errors.ErrUnsupported
}

// Put creates the session or changes what is known of it; zero fields change
// nothing.
func (s *Store) Put(ctx context.Context, session Session) error { return errors.ErrUnsupported }

// Append adds events to a session, which it makes if there is none, in one
// transaction: when it returns nil they are on the disk. It sets their numbers.
func (s *Store) Append(ctx context.Context, k Key, events []Event) error {
	return errors.ErrUnsupported
}

// Events goes over the events of a session after a number.
func (s *Store) Events(ctx context.Context, k Key, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) { yield(Event{}, errors.ErrUnsupported) }
}

// Find returns the session whose id is or begins with id, of the agent or, if
// that is "", of any.
func (s *Store) Find(ctx context.Context, agent, id string) (Session, error) {
	return Session{}, errors.ErrUnsupported
}

// List returns sessions, the latest first.
func (s *Store) List(ctx context.Context, q Query) ([]Match, error) {
	return nil, errors.ErrUnsupported
}

// Delete removes a session and its events. That there is none is [ErrNotFound].
func (s *Store) Delete(ctx context.Context, k Key) error { return errors.ErrUnsupported }

// Close closes the store.
func (s *Store) Close() error { return nil }
