package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/enginetest"
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

// opened is an engine on a backend that is closed with the test, and handles of new sessions.
func opened(t *testing.T, b enginetest.Backend, db engine.Database, o engine.Options, ids ...string) (*engine.Engine, []*engine.Owned) {
	t.Helper()
	e := engine.New(db, b.Witness(t), o)
	t.Cleanup(func() { e.Close() })
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

func whole(t *testing.T, e *engine.Engine, id string) (all []engine.Record) {
	t.Helper()
	if err := e.Read(t.Context(), id, 0, func(r engine.Record) error { all = append(all, r); return nil }); err != nil {
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
			b, name := s.backend(t)
			db := &watched{b.Open(t), make(chan error, 1000)}
			e, all := opened(t, b, db, engine.Options{CommitTimeout: test.timeout, LeaseTTL: time.Hour}, "s")
			s.Query(t, name, `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
			s.Query(t, name, `SELECT pg_reload_conf()`)
			// The server does that at some time: append until it has.
			var acked atomic.Int64
			var stop atomic.Bool
			var wg sync.WaitGroup
			wg.Go(func() {
				for !stop.Load() {
					if _, err := all[0].Append(t.Context(), engine.Record{}); err != nil {
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
	b, _ := s.backend(t)
	var ids []string
	for i := range 10 {
		ids = append(ids, fmt.Sprint(i))
	}
	e, all := opened(t, b, b.Open(t), engine.Options{LeaseTTL: time.Hour}, ids...)
	acks := make(chan struct{}, 1000)
	var stop atomic.Bool
	texts := make([][]string, len(all))
	var wg sync.WaitGroup
	for i, o := range all {
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				text := fmt.Sprint(n)
				// One that failed was not committed, or the handle would have ended.
				if _, err := o.Append(t.Context(), engine.Record{Data: []byte(text)}); err == nil {
					texts[i] = append(texts[i], text)
					acks <- struct{}{}
				}
			}
		})
	}
	for range 3 {
		for range 300 {
			<-acks
		}
		s.Stop()
		s.Start(t)
	}
	stop.Store(true)
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-acks:
		case <-done:
			ended = true
		}
	}
	for i, id := range ids {
		var got []string
		for _, r := range whole(t, e, id) {
			got = append(got, string(r.Data))
		}
		if strings.Join(got, " ") != strings.Join(texts[i], " ") {
			t.Errorf("session %s has %d records, %d were acknowledged", id, len(got), len(texts[i]))
		}
	}
}

// TestPageDamage: a bit that was flipped in a page costs the sessions that have records in it, loudly.
func TestPageDamage(t *testing.T) {
	shared(t)
	s := newServer(t)
	b, name := s.backend(t)
	e, all := opened(t, b, b.Open(t), engine.Options{LeaseTTL: time.Hour}, "a", "b", "c")
	for _, o := range all {
		for i := range 60 {
			text := fmt.Sprintf("<%s-%d>%s", o.Session(), i+1, strings.Repeat(".", 700))
			if _, err := o.Append(t.Context(), engine.Record{Data: []byte(text)}); err != nil {
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
	e, _ = opened(t, b, b.Open(t), engine.Options{LeaseTTL: time.Hour})
	l, err := e.Lease(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	err = e.Read(t.Context(), "b", 0, func(engine.Record) error { return nil })
	if bad, ok := errors.AsType[*engine.DamageError](err); !ok || bad.Session != "b" || !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("read: %v", err)
	}
	if _, err := e.Claim(t.Context(), "b", l); !errors.Is(err, engine.ErrCorrupt) {
		t.Errorf("claim: %v", err)
	}
	for _, id := range []string{"a", "c"} {
		o, err := e.Claim(t.Context(), id, l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Append(t.Context(), engine.Record{}); err != nil {
			t.Error(err)
		}
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
