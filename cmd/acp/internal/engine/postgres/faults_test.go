package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A watched database says how its appends have ended.
type watched struct {
	engine.Database
	ended chan error
}

func (w *watched) Append(ctx context.Context, batches []engine.Batch) ([]bool, error) {
	ok, err := w.Database.Append(ctx, batches)
	if err != nil {
		w.ended <- err
	}
	return ok, err
}

// opened is an engine on a database that is closed with the test, and handles of new sessions.
func (s *server) opened(t *testing.T, db engine.Database, o engine.Options, ids ...string) (*engine.Engine, []*engine.Owned) {
	t.Helper()
	w, err := sqlite.OpenWitness(t.Context(), filepath.Join(t.TempDir(), "heads.db"))
	if err != nil {
		t.Fatal(err)
	}
	o.LeaseTTL = time.Hour
	e := engine.New(db, w, o)
	t.Cleanup(func() { _ = e.Close() })
	l, err := e.Lease(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	var all []*engine.Owned
	for _, id := range ids {
		if _, err := e.Create(t.Context(), engine.Session{ID: id}); err != nil {
			t.Fatal(err)
		}
		o, err := e.Claim(t.Context(), id, l)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return e, all
}

// record is one with a text.
func record(text string) engine.Record {
	return engine.Record{Kind: journal.KindPrompt, Data: fmt.Appendf(nil, "%q", text)}
}

// whole returns the texts that a session has.
func whole(t *testing.T, e *engine.Engine, id string) (all []string) {
	t.Helper()
	if err := e.Read(t.Context(), id, 0, func(r engine.Record) error {
		if r.Kind == journal.KindPrompt {
			all = append(all, strings.Trim(string(r.Data), `"`))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	return all
}

// untilWaiting has the server wait until an append waits for a standby.
const untilWaiting = `DO $$ BEGIN
	WHILE NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%INSERT INTO acp_record%') LOOP
		PERFORM pg_sleep(0.01);
		PERFORM pg_stat_clear_snapshot();
	END LOOP;
END $$`

// TestStandbyMissing: while no standby confirms a commit, neither its wait being cancelled by the server
// nor a time-out here makes it acknowledged, and the time-out does not cancel it. When there is a standby
// again it is acknowledged, and is in the log once.
func TestStandbyMissing(t *testing.T) {
	shared(t)
	s := newServer(t)
	for _, test := range []struct {
		name    string
		timeout time.Duration // of a commit
		cancel  bool          // by an administrator
		want    error
	}{
		{"cancelled by an administrator", time.Hour, true, errDoubt},
		{"timed out", 2 * time.Second, false, os.ErrDeadlineExceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, name := s.fixture(t)
			db := &watched{s.open(t, name), make(chan error, 1000)}
			e, all := s.opened(t, db, engine.Options{CommitTimeout: test.timeout}, "s")
			s.Query(t, name, `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
			s.Query(t, name, `SELECT pg_reload_conf()`)
			// The server does that at some time: append until it has.
			var acked atomic.Int64
			var stop atomic.Bool
			var wg sync.WaitGroup
			wg.Go(func() {
				for !stop.Load() {
					if _, err := all[0].Append(t.Context(), record("x")); err != nil {
						t.Error(err)
						return
					}
					acked.Add(1)
				}
			})
			s.Query(t, name, untilWaiting)
			before := acked.Load()
			if test.cancel {
				s.Query(t, name, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%INSERT INTO acp_record%'`)
			}
			if err := <-db.ended; !errors.Is(err, test.want) && !(test.want == os.ErrDeadlineExceeded && errors.Is(err, context.DeadlineExceeded)) {
				t.Errorf("the append ended with %v, want %v", err, test.want)
			}
			if now := acked.Load(); now != before {
				t.Errorf("%d records were acknowledged", now-before)
			}
			if !test.cancel {
				var waiting int
				s.Value(t, name, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%INSERT INTO acp_record%'`, &waiting)
				if waiting != 1 {
					t.Errorf("%d appends wait for a standby: the driver has cancelled it", waiting)
				}
			}
			stop.Store(true)
			s.Query(t, name, `ALTER SYSTEM RESET synchronous_standby_names`)
			s.Query(t, name, `SELECT pg_reload_conf()`)
			wg.Wait()
			if got := whole(t, e, "s"); int64(len(got)) != acked.Load() || acked.Load() != before+1 {
				t.Errorf("%d records, %d acknowledged, %d before", len(got), acked.Load(), before)
			}
		})
	}
}

// TestCrash: the server crashes again and again while sessions are appended to. What was acknowledged is
// there once, and chains are whole.
func TestCrash(t *testing.T) {
	shared(t)
	s := newServer(t)
	_, name := s.fixture(t)
	var ids []string
	for i := range 10 {
		ids = append(ids, fmt.Sprint(i))
	}
	e, all := s.opened(t, s.open(t, name), engine.Options{}, ids...)
	acks := make(chan struct{}, 1000)
	var stop atomic.Bool
	texts := make([][]string, len(all))
	var wg sync.WaitGroup
	for i, o := range all {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				text := fmt.Sprint(n)
				if _, err := o.Append(t.Context(), record(text)); err != nil { // it waits for the server
					t.Error(err)
					return
				}
				texts[i] = append(texts[i], text)
				acks <- struct{}{}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for range 3 {
		for range 300 {
			select {
			case <-acks:
			case <-done:
			}
		}
		s.Stop()
		s.Start(t)
	}
	stop.Store(true)
	for ended := false; !ended; {
		select {
		case <-acks:
		case <-done:
			ended = true
		}
	}
	for i, id := range ids {
		if got := whole(t, e, id); !slices.Equal(got, texts[i]) {
			t.Errorf("session %s has %d records, %d were acknowledged", id, len(got), len(texts[i]))
		}
	}
}

// TestPageDamage: a bit that was flipped in a page costs the records in it, which is reported; all sessions continue.
func TestPageDamage(t *testing.T) {
	shared(t)
	s := newServer(t)
	_, name := s.fixture(t)
	e, all := s.opened(t, s.open(t, name), engine.Options{}, "a", "b", "c")
	for _, o := range all {
		for i := range 60 {
			if _, err := o.Append(t.Context(), record(fmt.Sprintf("<%s-%d>%s", o.Session(), i+1, strings.Repeat(".", 700)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	s.Query(t, name, `CHECKPOINT`)
	var path string
	s.Value(t, name, `SELECT pg_relation_filepath('acp_record')`, &path)
	s.Stop()
	path = filepath.Join(s.Data(), path)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte("<b-30>"))
	if at < 0 {
		t.Fatal("the record is not in the file")
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte{data[at+10] ^ 1}, int64(at+10)); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s.Start(t)
	var alarms atomic.Int64
	e, _ = s.opened(t, s.open(t, name), engine.Options{Alarm: func(string, error) { alarms.Add(1) }})
	l, err := e.Lease(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	err = e.Read(t.Context(), "b", 0, func(engine.Record) error { n++; return nil })
	bad, ok := errors.AsType[*engine.DamageError](err)
	if !ok || bad.ID != "b" || bad.Altered || bad.Missing > 0 || n+bad.Records() != 61 || n < 40 || alarms.Load() != 1 {
		t.Errorf("read %d records, then %v; %d alarms", n, err, alarms.Load())
	}
	for _, id := range []string{"a", "b", "c"} {
		o, err := e.Claim(t.Context(), id, l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Append(t.Context(), record("more")); err != nil || o.Head().Seq != 62 {
			t.Errorf("session %s: record %d, %v", id, o.Head().Seq, err)
		}
		if (o.Damage() != nil) != (id == "b") {
			t.Errorf("session %s: %v", id, o.Damage())
		}
	}
	for _, id := range []string{"a", "c"} {
		if got := whole(t, e, id); len(got) != 61 {
			t.Errorf("session %s has %d records", id, len(got))
		}
	}
}

// TestConnectFails: a server that is not there is an error, in time.
func TestConnectFails(t *testing.T) {
	if _, err := OpenDatabase(t.Context(), "host="+t.TempDir()+" user=acp database=x"); err == nil {
		t.Error("there is no server")
	}
	if _, err := OpenDatabase(t.Context(), "host=\x00 port=x"); err == nil {
		t.Error("the connection string is wrong")
	}
}
