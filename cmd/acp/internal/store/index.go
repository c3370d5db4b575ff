package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/goacp/acp/cmd/acp/internal/filelock"
)

const (
	indexName = "index.db"
	indexLock = "index.lock"
	// indexWait bounds how long a list or a search waits for the index before it reads the logs.
	indexWait = 200 * time.Millisecond
	// indexID marks the file as an index: "acpI"; indexVersion is its version. An index of an
	// earlier version is rebuilt.
	indexID      = 0x61637049
	indexVersion = 6
)

const indexSchema = `
CREATE TABLE session (
	id       INTEGER PRIMARY KEY,
	conv     TEXT    NOT NULL UNIQUE,
	agent    TEXT    NOT NULL,
	sid      TEXT    NOT NULL,
	earlier  TEXT    NOT NULL, -- the ids before that, a JSON list, or nothing
	command  TEXT    NOT NULL, -- a JSON list, or nothing
	cwd      TEXT    NOT NULL,
	title    TEXT    NOT NULL,
	protocol INTEGER NOT NULL,
	created  INTEGER NOT NULL, -- nanoseconds since 1970, as all times
	updated  INTEGER NOT NULL,
	turns    INTEGER NOT NULL,
	events   INTEGER NOT NULL,
	state    TEXT    NOT NULL, -- how the last turn has ended
	parent   TEXT    NOT NULL, -- a conversation, or nothing
	owner    TEXT    NOT NULL,
	by       TEXT    NOT NULL,
	chunks   INTEGER NOT NULL, -- of text: the last one's number
	size     INTEGER NOT NULL, -- of the journal, up to which it was read; -1 if not to its end
	seq      INTEGER NOT NULL, -- of the last record that was read
	hash     BLOB    NOT NULL, -- and its hash
	last     INTEGER NOT NULL, -- seq of the last record that was ever read
	witness  BLOB    NOT NULL  -- and its hash
);
CREATE INDEX session_updated ON session (updated);
CREATE INDEX session_sid ON session (sid);
CREATE INDEX session_earlier ON session (agent) WHERE earlier <> '';
CREATE INDEX session_parent ON session (parent) WHERE parent <> '';
CREATE TABLE chunk ( -- a piece of the text of a session: id is its number << 24 and the piece's, of which 0 is the title
	id   INTEGER PRIMARY KEY,
	last TEXT NOT NULL, -- the message it ends with
	text TEXT NOT NULL
);
CREATE VIRTUAL TABLE chunk_text USING fts5 (
	text, content='chunk', content_rowid='id', tokenize='unicode61 remove_diacritics 2', detail=none, prefix='1 2'
);
INSERT INTO chunk_text (chunk_text, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER chunk_insert AFTER INSERT ON chunk BEGIN
	INSERT INTO chunk_text (rowid, text) VALUES (new.id, new.text);
END;
CREATE TRIGGER chunk_delete AFTER DELETE ON chunk BEGIN
	INSERT INTO chunk_text (chunk_text, rowid, text) VALUES ('delete', old.id, old.text);
END;
CREATE TRIGGER chunk_update AFTER UPDATE OF text ON chunk BEGIN
	INSERT INTO chunk_text (chunk_text, rowid, text) VALUES ('delete', old.id, old.text);
	INSERT INTO chunk_text (rowid, text) VALUES (new.id, new.text);
END;
`

var (
	// errIndexBusy says that another process has the index; the logs are read.
	errIndexBusy = errors.New("the index is in use")
	// errIndexForeign says that the file is not an index of this version of the program or an
	// earlier one. It is left unchanged, and the logs are read.
	errIndexForeign = errors.New("the index is of another program, or of a later version")
	// errIndexGone says that the file was deleted while it was in use, so that its answers may be
	// wrong; the logs are read.
	errIndexGone = errors.New("the index was deleted meanwhile")
	// errIndexBroken says that the index is damaged.
	errIndexBroken = errors.New("the index is broken")
	// errSchema says that it lacks the tables that it should have.
	errSchema = errors.New("the tables of the index are not as they should be")
)

// An indexer gives access to the index of a store. The index is opened for each use, so that
// nothing of it is held while it is not used, and it may be deleted in between.
type indexer struct {
	dir  string
	turn chan struct{} // holds one value while this process does not use the index
}

func (x *indexer) init(dir string) {
	x.dir = dir
	x.turn = make(chan struct{}, 1)
	x.turn <- struct{}{}
}

func (x *indexer) path() string { return filepath.Join(x.dir, indexName) }

// use calls f with the index, and creates one if there is none. It waits for others no longer than
// wait. A broken index is rebuilt, once.
func (x *indexer) use(ctx context.Context, wait time.Duration, f func(context.Context, *index) error) error {
	select {
	case <-x.turn: // even if this goroutine was delayed for longer than it waits
	default:
		late := time.NewTimer(wait)
		defer late.Stop()
		select {
		case <-x.turn:
		case <-late.C:
			return errIndexBusy
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { x.turn <- struct{}{} }()
	err := x.with(ctx, wait, f)
	if isBroken(err) && ctx.Err() == nil {
		if e := x.remove(); e != nil {
			return errors.Join(err, e)
		}
		err = x.with(ctx, wait, f)
	}
	return err
}

// with opens the index for f.
func (x *indexer) with(ctx context.Context, wait time.Duration, f func(context.Context, *index) error) (err error) {
	lock, err := os.OpenFile(filepath.Join(x.dir, indexLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if ok, err := filelock.TryLock(lock, false); err == nil && !ok {
		return errIndexBusy // another process is removing it
	}
	// SQLite would create it readable by others.
	file, err := os.OpenFile(x.path(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	is, err := file.Stat()
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	q := url.Values{"_txlock": {"immediate"}}
	for _, p := range []string{fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()), "journal_mode(WAL)", "synchronous(NORMAL)",
		"trusted_schema(0)", "cell_size_check(1)", "secure_delete(FAST)", "journal_size_limit(67108864)", "cache_size(-16000)"} {
		q.Add("_pragma", p)
	}
	path := filepath.ToSlash(x.path())
	if !strings.HasPrefix(path, "/") { // a drive
		path = "/" + path
	}
	db, err := sql.Open("sqlite", "file://"+(&url.URL{Path: path}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if err := prepare(ctx, db); err != nil {
		return err
	}
	err = checkSchema(ctx, db, f(ctx, &index{db: db}))
	// SQLite keeps using a file that was deleted, or uses the log of a deleted one for another.
	if now, e := os.Stat(x.path()); e != nil || !os.SameFile(is, now) {
		return errors.Join(errIndexGone, e)
	}
	return err
}

// prepare creates the tables of a new index.
func prepare(ctx context.Context, db *sql.DB) error {
	var id, version, tables int
	err := db.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`).
		Scan(&id, &version, &tables)
	switch {
	case err != nil:
		return err
	case id == indexID && version == indexVersion:
		return nil
	case id == indexID && version < indexVersion:
		return errIndexBroken // and rebuilt
	case id != 0 || version != 0 || tables > 0:
		return errIndexForeign
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil || tables > 0 {
		return err // another process was faster
	}
	if _, err := tx.ExecContext(ctx, indexSchema+fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = %d`, indexID, indexVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// remove deletes the index, unless another process uses it.
func (x *indexer) remove() error {
	lock, err := os.OpenFile(filepath.Join(x.dir, indexLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if ok, err := filelock.TryLock(lock, true); err == nil && !ok {
		return errIndexBusy
	}
	for _, tail := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(x.path() + tail); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// isBroken reports whether an error says that the index is damaged and must be rebuilt. An index
// that is in use or cannot be written, or a full disk, is not damage.
func isBroken(err error) bool {
	if errors.Is(err, errSchema) {
		return true
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return true
		case sqlite3.SQLITE_CONSTRAINT:
			return true // its contents contradict each other: only this program writes to it
		}
		return e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ
	}
	return errors.Is(err, errIndexBroken)
}

// checkSchema returns an error that wraps errSchema if an error may be caused by tables that are
// not those of an index.
func checkSchema(ctx context.Context, db *sql.DB, err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); !ok || e.Code()&0xff != sqlite3.SQLITE_ERROR {
		return err
	}
	model, e := sql.Open("sqlite", ":memory:")
	if e != nil {
		return err
	}
	defer model.Close()
	model.SetMaxOpenConns(1)
	if _, e := model.ExecContext(ctx, indexSchema); e != nil {
		return err
	}
	want, e1 := schemaOf(ctx, model)
	got, e2 := schemaOf(ctx, db)
	if e1 == nil && (e2 == nil && want != got || isBroken(e2)) {
		return errors.Join(errSchema, err)
	}
	return err
}

// schemaOf returns a description of the tables of a database.
func schemaOf(ctx context.Context, db *sql.DB) (schema string, err error) {
	err = db.QueryRowContext(ctx, `SELECT coalesce(group_concat(sql, ';'), '') FROM (SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name)`).Scan(&schema)
	return schema, err
}

// An index is an open index.
type index struct{ db *sql.DB }

// columns are those that scanSession reads.
const columns = `session.id, conv, agent, sid, earlier, command, cwd, title, protocol, created, updated, turns, events, state, parent, owner, by`

// scanSession reads the columns of a row into a session.
func scanSession(scan func(...any) error, more ...any) (id int64, v Session, err error) {
	var command, earlier string
	var created, updated int64
	err = scan(append([]any{&id, &v.Conversation, &v.Agent, &v.ID, &earlier, &command, &v.Cwd, &v.Title, &v.Protocol, &created, &updated, &v.Turns, &v.Events, &v.State, &v.Parent, &v.Owner, &v.By}, more...)...)
	if err != nil {
		return 0, Session{}, fmt.Errorf("%w: %w", errIndexBroken, err)
	}
	v.Created, v.Updated = instant(created), instant(updated)
	for _, list := range []struct {
		text string
		into *[]string
	}{{command, &v.Command}, {earlier, &v.Earlier}} {
		if list.text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(list.text), list.into); err != nil {
			return 0, Session{}, fmt.Errorf("%w: %w", errIndexBroken, err)
		}
	}
	return id, v, nil
}

// nanos returns a time as it is stored; the zero time is 0.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// instant is the reverse.
func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// sessions returns what a query selects by columns.
func (x *index) sessions(ctx context.Context, query string, args ...any) (all []Session, ids []int64, err error) {
	rows, err := x.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		id, v, err := scanSession(rows.Scan)
		if err != nil {
			return nil, nil, err
		}
		all, ids = append(all, v), append(ids, id)
	}
	return all, ids, rows.Err()
}
