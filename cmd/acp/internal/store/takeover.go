package store

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
	"github.com/goacp/acp/cmd/acp/internal/store/legacy"
)

const (
	takeLock = "takeover.lock"
	// takeName begins the names of logs that are not whole yet.
	takeName = ".taking-"
)

// A Taken reports on the import of the database of an earlier version.
type Taken struct {
	// Err says why nothing was imported. The database is unchanged then, and the next Open tries
	// again. The other fields are meaningless.
	Err error

	File     string // where the database is now
	Sessions int    // that were imported
	Left     int    // that could not be read
	Damage   *legacy.Damage
}

// String returns the report in one line.
func (t *Taken) String() string {
	if t.Err != nil {
		return "earlier conversations are not taken over: " + t.Err.Error()
	}
	var b strings.Builder
	if d := t.Damage; d != nil {
		fmt.Fprintf(&b, "the database of earlier conversations was broken (%s) and is now %s; ", d.Reason, d.Aside)
	}
	fmt.Fprintf(&b, "%d earlier conversations were taken over", t.Sessions)
	if d := t.Damage; d != nil && d.SessionsPartial > 0 {
		fmt.Fprintf(&b, ", %d of them in part", d.SessionsPartial)
	}
	if t.Left > 0 {
		fmt.Fprintf(&b, ", %d could not be read", t.Left)
	}
	fmt.Fprintf(&b, "; their database is now %s and can be deleted", t.File)
	return b.String()
}

// Directory returns the directory of the logs for a path that the settings give, and the file of an
// earlier version whose conversations are to be imported. In that case the path was that of a file:
// for /x/conversations.db the directory is /x/conversations, and for another file /x/f it is
// /x/f.d.
func Directory(path string) (dir, old string) {
	if name, ok := strings.CutSuffix(path, ".db"); ok && filepath.Base(path) != ".db" {
		return name, path
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return path + ".d", path
	}
	if info, err := os.Stat(path + ".d"); err == nil && info.IsDir() {
		if _, err := os.Stat(path); err != nil {
			return path + ".d", path
		}
	}
	return path, ""
}

// takeOver makes logs of the conversations in a database of an earlier version, once, and renames
// the database. A log appears under its name when it is whole, and under the same name each time:
// an import that was cut off is repeated, and imports nothing twice.
func takeOver(ctx context.Context, s *Store, old string) (*Taken, error) {
	if _, err := os.Stat(old); err != nil {
		if left, _ := filepath.Glob(old + ".rebuilt"); len(left) == 0 {
			return nil, nil
		}
	}
	lock, err := os.OpenFile(filepath.Join(s.dir, takeLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if ok, err := filelock.TryLock(lock, true); err == nil && !ok {
		return &Taken{Err: errors.New("another acp is at it; they are there when it is done")}, nil
	}
	db, damage, err := legacy.Open(ctx, old)
	if errors.Is(err, legacy.ErrNone) {
		return nil, nil // done meanwhile
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return &Taken{Err: fmt.Errorf("%s: %w", old, err)}, nil
	}
	t := &Taken{Damage: damage}
	if err := t.take(ctx, s, db); err != nil {
		return &Taken{Err: fmt.Errorf("%s: %w", old, err)}, errors.Join(db.Close(), ctx.Err())
	}
	if t.File, err = db.SetAside(); err != nil {
		return &Taken{Err: fmt.Errorf("%s: %w", old, err)}, nil
	}
	return t, nil
}

// take imports the sessions of the database one after another.
func (t *Taken) take(ctx context.Context, s *Store, db *legacy.DB) error {
	left, _ := filepath.Glob(filepath.Join(s.dir, takeName+"*")) // the pattern is valid
	for _, name := range left {
		_ = os.Remove(name) // otherwise the next time
	}
	all, bad, err := db.Sessions(ctx)
	if err != nil {
		return err
	}
	t.Left = bad
	for _, old := range all {
		id := takenID(old.Agent, old.ID)
		if err := s.takeOne(ctx, db, id, old); err != nil {
			return fmt.Errorf("session %q of %s: %w", old.ID, old.Agent, err)
		}
		t.Sessions++
	}
	return s.files.SyncDir(s.dir)
}

// takenID returns the id of a conversation that was imported: the same each time.
func takenID(agent, id string) string {
	sum := sha256.Sum256([]byte("taken over\x00" + agent + "\x00" + id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:idLength])
}

// takeOne makes the log of one session.
func (s *Store) takeOne(ctx context.Context, db *legacy.DB, id string, old legacy.Session) (err error) {
	name := filepath.Join(s.dir, logName(id, 1))
	if _, err := os.Stat(name); err == nil {
		return nil // of an attempt that was cut off
	}
	turns := 0
	for e, err := range db.Conversation(ctx, old) {
		if err != nil {
			return err
		}
		if e.Kind == legacy.Turn {
			turns++
		}
	}
	f, err := os.CreateTemp(s.dir, takeName+"*") // only its owner can read it
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	var line []byte
	seq, prev := int64(0), root(id, 1)
	put := func(e Event) error {
		seq++
		line, prev = appendLine(line[:0], &e, seq, 1, prev)
		_, err := w.Write(line)
		return err
	}
	about := Session{Key: Key{old.Agent, old.ID}, Command: old.Command, Cwd: old.Cwd, Title: old.Title, Protocol: old.Protocol}
	if old.Parent != "" {
		about.Parent = takenID(old.Agent, old.Parent)
	}
	a := attributesOf(about)
	a.Format, a.Conversation, a.Created, a.Updated, a.Turns = format, id, old.Created, old.Updated, max(old.Turns-turns, 0)
	head := sessionEvent(a)
	if head.Time = old.Created; head.Time.IsZero() {
		head.Time = time.Unix(0, 0)
	}
	if err := put(head); err != nil {
		return err
	}
	for old, err := range db.Conversation(ctx, old) {
		if err != nil {
			return err
		}
		if e, ok := takenEvent(old); ok {
			if err := put(e); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(w.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// takenEvent returns an event in today's form: questions used to have numbers where they have names
// now.
func takenEvent(old legacy.Event) (Event, bool) {
	e := Event{Time: old.Time, Kind: EventKind(old.Kind), Data: old.Data}
	switch old.Kind {
	case legacy.Asked:
		e.Ref = "q" + strconv.FormatInt(old.Seq, 10)
	case legacy.Answered:
		var a struct {
			Asked   int64           `json:"asked"`
			Outcome json.RawMessage `json:"outcome"`
		}
		if json.Unmarshal(old.Data, &a) != nil {
			return Event{}, false
		}
		data, err := json.Marshal(Answered{"q" + strconv.FormatInt(a.Asked, 10), a.Outcome})
		if err != nil {
			return Event{}, false
		}
		e.Data = data
	}
	return e, true
}
