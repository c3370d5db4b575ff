// Package store has the conversations of chat and exec, each in a journal of its own: see docs/records.md and package
// journal/file. [Store.Record] begins a conversation, [Store.Resume] continues one, and [Store.Snapshot] folds what was
// written into the conversation it makes.
//
// An index lies beside the journals, with which [Store.List] lists and searches. It is derived from them and can be deleted
// at any time; if anything is wrong with it, the journals are read instead. It is also their witness: it knows the furthest
// end of each that it has seen.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
)

var (
	// ErrNotFound says that there is no such session.
	ErrNotFound = errors.New("no such session")
	// ErrAmbiguous says that an abbreviated id means several sessions: see [AmbiguousError].
	ErrAmbiguous = errors.New("several sessions begin like that")
	// ErrUnsaved says that part of a conversation could not be written: see [Recorder.Close].
	ErrUnsaved = journal.ErrUnsaved
	// ErrStalled says that the disk has not answered for a while.
	ErrStalled = journal.ErrStalled
)

// Bounds of what is kept. Titles and names are cut at their bounds.
const (
	MaxID    = 4 << 10 // bytes of an agent's name or a session's id
	MaxTitle = 4 << 10 // bytes of a title
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
	Turns        int       // that have ended
	Events       int64     // that are kept
	// State is how the last turn has ended, as in a gateway: [records.StateIdle] and so on, or "" if there was none. It is
	// [records.StateRunning] if the turn has no end: it runs, or its program was killed in the middle of it. See
	// [Store.IsInterrupted].
	State string
	// Earlier are other ids that the agent gave it, the latest last and 16 at most: if an agent has
	// forgotten a session, the conversation continues in a new one.
	Earlier []string
	// Owner is the user of a gateway to whom the session belongs, or "" if no gateway has had it.
	Owner string
	// By is the command that runs the session, such as exec, or "" if a person holds it.
	By string
	// Parent is the conversation that this one, of a subagent, is part of. It is deleted with its
	// parent. No List contains it, but it can be found by its id.
	Parent string
}

// An Event is one thing that happened in a session, of these kinds:
//
//   - [journal.KindPrompt] is what the user said: a [records.Prompt];
//   - [journal.KindUpdate] is any other update: a [records.Update];
//   - [journal.KindAsked] is a [records.Asked], and [journal.KindDecided] a [records.Decided];
//   - [journal.KindEnd] is the end of a turn: a [records.End];
//   - [journal.KindOutput] is output of a command: a [records.Output]. What is between it and the preceding output was not kept;
//   - [journal.KindReset] begins the conversation again: what precedes it stays in the journal but is no longer part of the
//     conversation;
//   - [journal.KindLost] replaces something that could not be kept: a [journal.Lost].
type Event = journal.Draft

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
		id := c.ID
		if alike := func(o Session) bool { return o.Key == c.Key && o.Conversation != c.Conversation }; slices.ContainsFunc(e.Candidates, alike) {
			id = c.Conversation
		}
		fmt.Fprintf(&b, " %q of %s", id, c.Agent)
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
	// Disk is where the directory is; nil means the machine's.
	Disk file.Disk
	// User is who uses the store: sessions that belong to other users of a gateway are in no list, and are not found. ""
	// finds all.
	User string
	// Who is what others learn of this program while it writes a conversation that they want to continue.
	Who string
	// Logger receives reports of the work in the background; nil discards them.
	Logger *slog.Logger
}

// A Store keeps conversations. Its methods may be called from any goroutine, and several processes
// may have the same store open. Methods with a context return when it is done, even while the disk
// does not answer. While 16 calls wait for the disk, a further one fails with [ErrStalled] after
// five seconds. Close the store when done with it.
type Store struct {
	dir      string
	journals *journal.Container
	// unwitnessed has the same journals for the index, which cannot be its own witness, and has what is written before it
	// is kept: that is what their sizes say.
	unwitnessed *journal.Container
	log         *slog.Logger
	user        string
	wait        time.Duration // Options.AppendWait

	mu        sync.Mutex
	recorders map[string]*Recorder // those that are not closed, by the conversation

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
	s := &Store{
		dir: dir, log: o.Logger, user: o.User, wait: o.AppendWait, recorders: map[string]*Recorder{},
		wake: make(chan struct{}, 1), done: make(chan struct{}), reading: make(chan struct{}, maxAbandoned),
	}
	s.index.init(dir)
	if o.Disk == nil {
		o.Disk = file.System{}
	}
	files := file.NewBackend(dir, file.Options{Who: o.Who, Disk: o.Disk})
	s.journals = journal.New(files, journal.Options{Trouble: s.trouble, Witness: s.witness, Lazy: o.Normal})
	s.unwitnessed = journal.New(files, journal.Options{})
	_, err = abandon(ctx, s, func() (struct{}, error) {
		if err := makeDir(dir); err != nil {
			return struct{}{}, err
		}
		_, err := o.Disk.ReadDir(dir)
		return struct{}{}, err
	})
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Path, err)
	}
	background, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.runIndexer(background)
	return s, nil
}

// shows reports whether a session is in lists.
func (s *Store) shows(v *Session) bool { return s.user == "" || v.Owner == "" || v.Owner == s.user }

// mine is the condition for that in the index.
func (s *Store) mine() string {
	if s.user == "" {
		return "TRUE"
	}
	return `owner IN ('', '` + strings.ReplaceAll(s.user, "'", "''") + `')`
}

// makeDir creates a directory that only its owner can read, with those above it. It follows a link that leads nowhere, and
// creates the directory that the link names.
func makeDir(name string) error {
	for range 40 { // as many as systems follow
		target, err := os.Readlink(name)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(name), target)
		}
		name = target
	}
	return os.MkdirAll(name, 0o700)
}

// Dir returns the directory of the logs.
func (s *Store) Dir() string { return s.dir }

// Close ends what the store does in the background. It waits five seconds for that at most: a file
// system that does not answer cannot be interrupted, and a call that hangs in it is left behind.
// Callers must close their recorders before. Later calls do nothing. The error is always nil.
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
		if err := s.journals.Close(); err != nil {
			s.log.Warn("the journals were not closed in time", "directory", s.dir, "error", err)
		}
	})
	return nil
}
