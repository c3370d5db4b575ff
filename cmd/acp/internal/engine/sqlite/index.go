package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlstore"
)

const (
	indexName = "index.db"
	// journals is the directory of the journals, unless they have another one.
	journals = "sessions"
)

// databaseEnds end the names of the files of a database.
var databaseEnds = []string{"", "-wal", "-shm", "-journal"}

// Open opens the sessions that are kept in a directory, or creates it, with permissions for the user alone. who is what others
// learn who want a session that it owns. An index that is damaged is made anew. Sessions that an earlier version has kept there
// are taken over first.
func Open(ctx context.Context, dir, who string, o engine.Options) (*engine.Engine, error) {
	if err := takeOver(ctx, dir, o); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, indexName)
	x, err := OpenIndex(ctx, path)
	if errors.Is(err, engine.ErrCorrupt) {
		if err = removeFiles(path, databaseEnds); err == nil {
			x, err = OpenIndex(ctx, path)
		}
	}
	if err != nil {
		return nil, err
	}
	w, err := OpenWitness(ctx, filepath.Join(dir, witnessName))
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return engine.Files(ctx, journalsOf(dir, o), who, x, w, o)
}

// journalsOf returns the directory of the journals.
func journalsOf(dir string, o engine.Options) string {
	return cmp.Or(o.Journals, filepath.Join(dir, journals))
}

// removeFiles removes files of a database: all that have one of those ends. SQLite leaves those beside the database if it could
// not close it as usual.
func removeFiles(path string, ends []string) (err error) {
	for _, end := range ends {
		if e := os.Remove(path + end); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// An Index is a file with an index of journals. It implements [engine.Index]. It is synced now and then only: it can be made again.
type Index struct{ *Database }

var _ engine.Index = (*Index)(nil)

// OpenIndex opens the file of an index, or creates it. It reads the whole file, and fails with [engine.ErrCorrupt] if it is damaged.
func OpenIndex(ctx context.Context, path string) (*Index, error) {
	d, err := openDatabase(ctx, path, indexID, 0, "synchronous(NORMAL)")
	if err != nil {
		return nil, err
	}
	err = d.transact(ctx, func(w *writer) error {
		var found string
		if err := w.conn.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&found); err != nil {
			return err
		}
		if found != "ok" {
			return fmt.Errorf("%w: %s", engine.ErrCorrupt, found)
		}
		_, err := w.conn.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS acp_size (id text PRIMARY KEY, size integer NOT NULL) WITHOUT ROWID`)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, wrap(err)), d.Close())
	}
	return &Index{d}, nil
}

// Put implements [engine.Index].
func (x *Index) Put(ctx context.Context, s engine.Session, shares []engine.Share, size int64) error {
	return wrap(x.transact(ctx, func(w *writer) error {
		if err := sqlstore.Replace(ctx, w.conn, s); err != nil {
			return err
		}
		if _, err := w.conn.ExecContext(ctx, `DELETE FROM acp_share WHERE session = ?`, s.ID); err != nil {
			return err
		}
		for _, v := range shares {
			if _, err := w.conn.ExecContext(ctx, `INSERT INTO acp_share (session, who, role) VALUES (?, ?, ?)`, s.ID, v.User, v.Role); err != nil {
				return err
			}
		}
		_, err := w.conn.ExecContext(ctx, `INSERT INTO acp_size (id, size) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET size = ?2 WHERE size <> ?2`, s.ID, size)
		return err
	}))
}

// PutSize implements [engine.Index].
func (x *Index) PutSize(ctx context.Context, id string, was, size int64) error {
	return wrap(x.transact(ctx, func(w *writer) error {
		_, err := w.conn.ExecContext(ctx, `UPDATE acp_size SET size = ?3 WHERE id = ?1 AND size = ?2`, id, was, size)
		return err
	}))
}

// DeleteSession implements [engine.Database], without a tombstone: another index would have none.
func (x *Index) DeleteSession(ctx context.Context, id string) (owner string, err error) {
	return "", wrap(x.transact(ctx, func(w *writer) error {
		there := false
		for _, q := range []string{
			`DELETE FROM acp_head WHERE id = ?`,
			`DELETE FROM acp_session WHERE id = ?`,
			`DELETE FROM acp_share WHERE session = ?`,
			`DELETE FROM acp_size WHERE id = ?`,
		} {
			r, err := w.conn.ExecContext(ctx, q, id)
			if err != nil {
				return err
			}
			n, err := r.RowsAffected()
			if err != nil {
				return err
			}
			there = there || n > 0
		}
		if !there {
			return engine.ErrNotFound
		}
		return nil
	}))
}

// Size implements [engine.Index].
func (x *Index) Size(ctx context.Context, id string) (size int64, err error) {
	err = x.read.QueryRowContext(ctx, `SELECT coalesce(z.size, -1) FROM acp_session s LEFT JOIN acp_size z ON z.id = s.id WHERE s.id = ?`, id).Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, engine.ErrNotFound
	}
	return size, wrap(err)
}

// Sizes implements [engine.Index].
func (x *Index) Sizes(ctx context.Context) (map[string]int64, error) {
	rows, err := x.read.QueryContext(ctx, `SELECT s.id, coalesce(z.size, -1) FROM acp_session s LEFT JOIN acp_size z ON z.id = s.id`)
	if err != nil {
		return nil, wrap(err)
	}
	defer rows.Close()
	all := map[string]int64{}
	for rows.Next() {
		var id string
		var size int64
		if err := rows.Scan(&id, &size); err != nil {
			return nil, wrap(err)
		}
		all[id] = size
	}
	return all, wrap(rows.Err())
}
