package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Settings of servers that may become a primary or a standby of one another. names are those that standbys have: a
// commit waits for any of them.
func Settings(names string) []string {
	return []string{
		"wal_level=replica", "max_wal_senders=10", "wal_keep_size=128MB", "hot_standby=on", "wal_log_hints=on",
		"synchronous_standby_names=ANY 1 (" + names + ")", "wal_retrieve_retry_interval=500ms", "wal_receiver_timeout=5s",
		"wal_receiver_status_interval=1s", "wal_sender_timeout=5s",
	}
}

// Clone makes s a copy of a server that runs. primary says where it finds its primary: the connection string for
// replication, in which application_name is its name.
func (s *Server) Clone(t testing.TB, from *Server, primary string) {
	t.Helper()
	s.Run(t, "pg_basebackup", "-h", from.dir, "-U", "acp", "-D", s.Data(), "--checkpoint=fast", "--wal-method=stream")
	s.Follow(t, primary)
}

// Follow makes s a standby of the primary that the connection string finds, now if it runs as a standby already.
func (s *Server) Follow(t testing.TB, primary string) {
	t.Helper()
	for name, text := range map[string]string{
		"standby.signal":       "",
		"postgresql.auto.conf": fmt.Sprintf("primary_conninfo = '%s'\n", primary),
	} {
		path := filepath.Join(s.Data(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := ownedByServer(path); err != nil {
			t.Fatal(err)
		}
	}
	if s.cmd != nil {
		s.Run(t, "pg_ctl", "reload", "-D", s.Data())
	}
}

// Received returns up to where a standby has the log of its primary, in bytes.
func (s *Server) Received(t testing.TB) (n int64) {
	t.Helper()
	s.Value(t, "postgres", `SELECT (coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn)::bigint`, &n)
	return n
}

// Promote makes a standby a primary.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	var done bool
	if s.Value(t, "postgres", `SELECT pg_promote(true, 60)`, &done); !done {
		t.Fatalf("the standby is not promoted:\n%s", s.Log())
	}
}

// Return makes a server that was the primary and does not run a standby of another one: what it has that the other
// one has not is thrown away.
func (s *Server) Return(t testing.TB, primary *Server, conninfo string, settings ...string) {
	t.Helper()
	primary.Query(t, "postgres", `CHECKPOINT`) // or it may not be known yet that it is on a timeline of its own
	source := fmt.Sprintf("host=%s user=acp dbname=postgres", primary.dir)
	if err := s.Try("pg_rewind", "-D", s.Data(), "--source-server="+source); err != nil {
		t.Logf("the data is copied, since it cannot be rewound: %v", err)
		files, err := filepath.Glob(filepath.Join(s.Data(), "*")) // the directory may be a file system
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.RemoveAll(file); err != nil {
				t.Fatal(err)
			}
		}
		s.Clone(t, primary, conninfo)
	}
	s.Follow(t, conninfo)
	s.Start(t, settings...)
}

// Until asks a server until a query returns true.
func (s *Server) Until(t testing.TB, database, query string, args ...any) {
	t.Helper()
	for again := time.NewTicker(50 * time.Millisecond); ; <-again.C {
		var ok bool
		if s.Value(t, database, query, &ok, args...); ok {
			again.Stop()
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
	}
}
