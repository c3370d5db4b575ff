package sqlite

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/enginetest"
)

// inDatabase is a log in a database.
func inDatabase(t testing.TB) enginetest.Fixture {
	dir := t.TempDir()
	path := filepath.Join(dir, "log.db")
	return enginetest.SQL(func(t testing.TB) engine.Database {
		db, err := OpenDatabase(t.Context(), path, 0)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}, func(t testing.TB) engine.Witness {
		w, err := OpenWitness(t.Context(), filepath.Join(dir, witnessName))
		if err != nil {
			t.Fatal(err)
		}
		return w
	}, func(t testing.TB, query string, args ...any) { execute(t, path, query, args...) })
}

func execute(t testing.TB, path, query string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", "file://"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

// inFiles is a log in files.
func inFiles(t testing.TB) enginetest.Fixture {
	dir := t.TempDir()
	return enginetest.Fixture{
		Open: func(t testing.TB, node string, o engine.Options) *engine.Engine { return opened(t, dir, node, o) },
		Damage: func(t testing.TB, session string, seq uint64) {
			lines(t, dir, session, func(all [][]byte) [][]byte { all[seq-1][len(all[seq-1])-3] ^= 1; return all })
		},
		Cut: func(t testing.TB, session string, seq uint64) {
			lines(t, dir, session, func(all [][]byte) [][]byte { return all[:seq] })
		},
	}
}

func opened(t testing.TB, dir, who string, o engine.Options) *engine.Engine {
	t.Helper()
	e, err := Open(t.Context(), dir, who, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // those that end well are closed before
	return e
}

// lines changes the lines of a session.
func lines(t testing.TB, dir, session string, change func([][]byte) [][]byte) {
	t.Helper()
	path := filepath.Join(dir, journals, session+".jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := change(bytes.SplitAfter(data, []byte("\n")))
	if err := os.WriteFile(path, bytes.Join(all, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDatabase(t *testing.T) { enginetest.Run(t, inDatabase) }

func TestFiles(t *testing.T) { enginetest.Run(t, inFiles) }
