package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/enginetest"
)

// backend is a log in a directory.
func backend(dir string) enginetest.Backend {
	path := filepath.Join(dir, logName)
	return enginetest.Backend{
		Open: func(t testing.TB) engine.Database {
			db, err := OpenDatabase(t.Context(), path, 0)
			if err != nil {
				t.Fatal(err)
			}
			return db
		},
		Witness: func(t testing.TB) engine.Witness {
			w, err := OpenWitness(t.Context(), filepath.Join(dir, witnessName))
			if err != nil {
				t.Fatal(err)
			}
			return w
		},
		Exec: func(t testing.TB, query string, args ...any) { execute(t, path, query, args...) },
	}
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

func fresh(t testing.TB) enginetest.Backend { return backend(t.TempDir()) }

func TestSuite(t *testing.T) { enginetest.Run(t, fresh) }
