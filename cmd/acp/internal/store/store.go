// Package store keeps conversations on disk, each in a log of its own. Records are only ever
// appended to a log, by one process. [Store.Record] begins or continues a conversation;
// [Store.Snapshot] folds what was written into the conversation it makes.
//
// An index lies beside the logs, with which [Store.List] lists and searches. It is derived from the
// logs and can be deleted at any time; if anything is wrong with it, the logs are read instead.
//
// A log is a line of JSON for each record: see docs/records.md. A damaged record costs that record
// only, and is noticed: each has a hash over itself and the hash of the one before.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

var (
	// ErrNotFound says that there is no such session.
	ErrNotFound = errors.New("no such session")
	// ErrAmbiguous says that an abbreviated id means several sessions: see [AmbiguousError].
	ErrAmbiguous = errors.New("several sessions begin like that")
	// ErrUnsaved says that part of a conversation could not be written: see [Recorder.Close].
	ErrUnsaved = errors.New("not everything was written")
	// ErrStalled says that the disk has not answered for a while.
	ErrStalled = errors.New("the disk does not answer")
)

// Bounds of what is kept. Titles and names are cut at their bounds; a record replaces an event over
// its bound.
const (
	MaxEvent = 256 << 20 // bytes of the data of an event
	MaxID    = 4 << 10   // bytes of an agent's name or a session's id
	MaxTitle = 4 << 10   // bytes of a title
)

// A Key is how an agent names a session. It does not identify a conversation: agents that count
// their sessions give the same ids again.
type Key struct {
	Agent string // name in the roster, or a command line
	ID    string // the agent's id of the session
}

// A Session is what is known of a conversation apart from its events.
type Session struct {
	Key
	// Conversation is the id that the store gave it: 16 letters and digits.
	Conversation string
	Command      []string // how the agent was started; nil for the built-in one
	Cwd          string   // absolute
	Title        string   // the agent's words: not safe for a terminal
	Protocol     int      // version last spoken
	Created      time.Time
	Updated      time.Time // of the last event
	Turns        int       // that have ended: [EventTurn]
	Events       int64     // that are kept
	// Open says that the last turn has no end: it runs, or its program was killed in the middle of
	// it. See [Store.Writing].
	Open bool
	// Earlier are other ids that the agent gave it, the latest last and 16 at most: if an agent has
	// forgotten a session, the conversation continues in a new one.
	Earlier []string
	// By is the command that runs the session, such as exec, or "" if a person holds it.
	By string
	// Parent is the conversation that this one, of a subagent, is part of. It is deleted with its
	// parent. No List contains it, but it can be found by its id.
	Parent string
}

// An EventKind says what an Event is.
type EventKind string

// The kinds of events. Readers ignore unknown ones.
const (
	EventUpdate   EventKind = "update"   // a session update in the words of version 2
	EventAsked    EventKind = "asked"    // a session/request_permission of version 2, with a Ref
	EventAnswered EventKind = "answered" // its outcome: an [Answered]
	EventTurn     EventKind = "turn"     // a turn has ended: a [TurnEnd]
	// EventOutput is output of a command with its place in the whole output: an [Output]. What is
	// between it and the preceding output was not kept.
	EventOutput EventKind = "output"
	// EventReset begins the conversation again: what precedes it stays in the log but is no longer
	// part of the conversation.
	EventReset EventKind = "reset"
	// EventLost replaces something that could not be kept: a [Lost].
	EventLost EventKind = "lost"
)

// An Event is one thing that happened in a session.
type Event struct {
	Part int       // file of the conversation that it is in, from 1; set by the store
	Seq  int64     // in its part, from 1, always growing; set by the store
	Time time.Time // zero means the time of Append
	Kind EventKind
	// Ref names the event for others that refer to it, uniquely in the conversation; "" if none do.
	Ref  string
	Data json.RawMessage // nil means null
}

// Answered is the data of an [EventAnswered].
type Answered struct {
	Asked   string          `json:"asked"`   // Ref of the event that asked
	Outcome json.RawMessage `json:"outcome"` // an outcome of version 2
}

// Lost is the data of an [EventLost].
type Lost struct {
	Kind  EventKind `json:"kind"`  // of the event
	Bytes int       `json:"bytes"` // of its data
}

// A Query selects sessions.
type Query struct {
	Agent string // "" is all
	Cwd   string // "" is all
	// Text is words, each of which begins a word in the title or the messages of the session.
	// Letter case and accents are ignored, and so are more than 16 words. "" matches all sessions.
	Text  string
	Limit int // 0 means 100, and less than 0 all
}

// A Match is a session that was found.
type Match struct {
	Session
	Snippet string // where the text was found, or ""; not safe for a terminal
}

// An AmbiguousError names the sessions that an abbreviated id may mean, the latest first and no
// more than 20. It is an [ErrAmbiguous].
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
	same := true // only the agents distinguish them
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
	// Path is the directory of the logs.
	Path string
	// Normal leaves to the system when what was written reaches the disk, until a conversation is
	// closed. Otherwise that begins at most 100 ms after writing. What was written survives the end
	// of the process either way.
	Normal bool
	// AppendWait bounds how long [Recorder.Append] waits for its events to be written; 0 means 100 ms.
	AppendWait time.Duration
	// Files is where the logs are; nil means the file system of the machine.
	Files FileSystem
	// Logger receives reports of the work in the background; nil discards them.
	Logger *slog.Logger
}

// A Store keeps conversations. Its methods may be called from any goroutine, and several processes
// may have the same store open. Methods with a context return when it is done, even while the disk
// does not answer. While 16 calls wait for the disk, a further one fails with [ErrStalled] after
// five seconds. Close the store when done with it.
type Store struct {
	dir    string
	normal bool
	files  FileSystem
	log    *slog.Logger
	wait   time.Duration // Options.AppendWait

	reading chan struct{} // has one value for each call that waits for files: see abandon
	index   indexer
	wake    chan struct{} // to index what is new
	cancel  context.CancelFunc
	done    chan struct{} // closed when the indexer has ended
	closing sync.Once
}

// Open opens a store, and creates its directory if there is none; only the owner can read either.
// When ctx is done, Open returns its error, even while the disk does not answer.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Path == "" {
		return nil, errors.New("open store: no directory is named")
	}
	if o.Files == nil {
		o.Files = System{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.AppendWait == 0 {
		o.AppendWait = appendWait
	}
	dir, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Path, err)
	}
	s := &Store{dir: dir, normal: o.Normal, files: o.Files, log: o.Logger, wait: o.AppendWait, wake: make(chan struct{}, 1), done: make(chan struct{}),
		reading: make(chan struct{}, maxAbandoned)}
	s.index.init(dir)
	_, err = abandon(ctx, s, func() (struct{}, error) { return struct{}{}, s.open() })
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Path, err)
	}
	background, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.runIndexer(background)
	return s, nil
}

// open creates the directory.
func (s *Store) open() error {
	if err := makeDir(s.dir); err != nil {
		return err
	}
	_, err := s.files.ReadDir(s.dir)
	return err
}

// Dir returns the directory of the logs.
func (s *Store) Dir() string { return s.dir }

// Close ends what the store does in the background. It waits five seconds for that at most: a file
// system that does not answer cannot be interrupted, and a call that hangs in it is left behind.
// Callers must close their recorders themselves. Later calls do nothing. The error is always nil.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.cancel()
		late := time.NewTimer(closeAfter)
		defer late.Stop()
		select {
		case <-s.done:
		case <-late.C:
			s.log.Warn("the store was closed while its files did not answer", "directory", s.dir)
		}
	})
	return nil
}
