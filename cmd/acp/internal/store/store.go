// Package store keeps conversations on disk, in SQLite: every update before it
// is shown, so that what was shown is there after a crash.
//
// A session is a row and its events are rows in their order. [Store.Snapshot]
// folds the events into the conversation they make. Several processes may have
// the same file open; beside it lie the files of SQLite (-wal, -shm) and one for
// locks (.lock).
package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

var (
	// ErrNotFound says that there is no such session.
	ErrNotFound = errors.New("no such session")
	// ErrAmbiguous says that an abbreviated id stands for several sessions: see
	// [AmbiguousError].
	ErrAmbiguous = errors.New("several sessions begin like that")
	// ErrNewer says that the file was made by a later version of the program. It is
	// left as it is.
	ErrNewer = errors.New("made by a later version of acp")
	// ErrForeign says that the file is a database of some other program. It is left as
	// it is.
	ErrForeign = errors.New("the database of another program")
	// ErrBroken says that the file, or a part of it, cannot be read.
	ErrBroken = errors.New("the store is broken")
	// ErrTooLarge says that an event or an id is over the bound.
	ErrTooLarge = errors.New("too large to be kept")
)

// Bounds of what is kept. A title is cut at its bound; the others are errors.
const (
	MaxEvent = 256 << 20 // bytes of the data of an event
	MaxID    = 4 << 10   // bytes of an agent's name or a session's id
	MaxTitle = 4 << 10   // bytes of a title
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
	Title    string   // the agent's words: not safe for a terminal
	Protocol int      // version last spoken
	Created  time.Time
	Updated  time.Time // of the last event that was not a replayed one, or what Put said
	Turns    int       // that have ended: Append counts [EventTurn]
	Events   int64     // that are kept
	// Parent is the id of the session, of the same agent, that this one is a subagent's of. Put takes
	// it and nothing returns it: such a session is deleted with its parent and no List has it, but
	// it can be found by its id.
	Parent string
}

// An EventKind says what an Event is.
type EventKind string

// The kinds of events.
const (
	EventUpdate   EventKind = "update"   // a session update in the words of version 2
	EventAsked    EventKind = "asked"    // a session/request_permission of version 2
	EventAnswered EventKind = "answered" // its outcome: an [Answered]
	EventTurn     EventKind = "turn"     // a turn has ended: a [TurnEnd]

	// EventReplayed is an update of a history that the agent tells again. It has no
	// force, and is not shown, until an EventReset says that the history is complete; so a
	// history that breaks off leaves the old one in place.
	EventReplayed EventKind = "replayed"

	// EventReset, with a [Reset] that says where the replayed updates begin, puts them in the
	// place of everything before them; what came in between them counts too. If there are
	// none, it changes nothing. Without data it drops everything before itself. What is
	// replaced is deleted, so a history that is told at each start is kept once.
	EventReset EventKind = "reset"
)

// An Event is one thing that happened in a session.
type Event struct {
	Seq  int64     // in its session, from 1, always growing; set by the store
	Time time.Time // zero is the time of Append
	Kind EventKind
	Data json.RawMessage // nil is null
}

// Answered is the data of an [EventAnswered].
type Answered struct {
	Asked   int64           `json:"asked"`   // number of the event that asked
	Outcome json.RawMessage `json:"outcome"` // an outcome of version 2
}

// TurnEnd is the data of an [EventTurn].
type TurnEnd struct {
	StopReason string `json:"stopReason,omitempty"`
	Error      string `json:"error,omitempty"` // why the turn failed
}

// Reset is the data of an [EventReset].
type Reset struct {
	From int64 `json:"from"` // number of the first event of the history
}

// A Query selects sessions.
type Query struct {
	Agent string // "" is all
	Cwd   string // "" is all
	// Text is words, each of which is in the title or the messages of the session, as the
	// beginning of a word. Letter case and accents do not matter. "" is all. More than 16 words
	// are not looked at.
	Text  string
	Limit int // 0 is 100, below 0 is all
}

// A Match is a session that was found.
type Match struct {
	Session
	Snippet string // where the text was found, or ""; not safe for a terminal
}

// An AmbiguousError names the sessions that an abbreviated id stands for, the latest
// first and no more than 20. It is an [ErrAmbiguous].
type AmbiguousError struct {
	ID         string
	Candidates []Session
	More       bool // there are more than Candidates
}

// maxNamed bounds those that the text of an AmbiguousError names.
const maxNamed = 4

// Error names the first candidates in one line.
func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q may be", e.ID)
	shown := e.Candidates[:min(len(e.Candidates), maxNamed)]
	same := true // only the agents tell them apart
	for _, c := range e.Candidates {
		same = same && c.ID == e.ID
	}
	for i, c := range shown {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %q of %s", c.ID, c.Agent)
	}
	if e.More || len(shown) < len(e.Candidates) {
		b.WriteString(" or others")
	}
	if same && !e.More {
		b.WriteString("; --agent says which")
	}
	return b.String()
}

// Is reports whether target is ErrAmbiguous.
func (e *AmbiguousError) Is(target error) bool { return target == ErrAmbiguous }

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
	SessionsPartial int // that were read, but not all of their events
}

// String says it in one line.
func (d *Damage) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the store was broken (%s); it is now %s, and %d sessions with %d events were saved from it", d.Reason, d.Aside, d.Sessions, d.Events)
	if d.SessionsPartial > 0 {
		fmt.Fprintf(&b, ", %d of them in part", d.SessionsPartial)
	}
	if d.LostSessions > 0 {
		fmt.Fprintf(&b, "; %d are lost", d.LostSessions)
	}
	return b.String()
}

// A Store keeps conversations. Its methods may be called from any goroutine, and
// several processes may have the same store open. Close it when done with it. Calls wait up
// to ten seconds for other writers.
type Store struct {
	path    string // "" is in memory
	write   *sql.DB
	read    *sql.DB // the same as write in memory
	lock    *os.File
	suspect sync.Once

	wake   chan struct{} // to index what is new
	cancel context.CancelFunc
	done   chan struct{} // the indexer has ended
	once   sync.Once
	err    error // of closing
}

// Close closes the store. Calls that are running fail. Later calls of Close do nothing.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.cancel()
		<-s.done
		if s.read != s.write {
			s.err = s.read.Close()
		}
		s.err = errors.Join(s.err, s.write.Close())
		if s.lock != nil {
			s.err = errors.Join(s.err, s.lock.Close())
		}
		if s.err != nil {
			s.err = fmt.Errorf("close store: %w", s.err)
		}
	})
	return s.err
}
