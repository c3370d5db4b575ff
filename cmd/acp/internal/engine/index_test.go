package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/engine/sqlite"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// An index does something before and after it says what it has, and cannot be written on demand.
type index struct {
	*sqlite.Index
	around func(step string)
	put    func(id string) // before a session is stored
	broken atomic.Bool
}

func (x *index) Put(ctx context.Context, s engine.Session, shares []engine.Share, size int64) error {
	if x.put != nil {
		x.put(s.ID)
	}
	if x.broken.Load() {
		return errBroken
	}
	return x.Index.Put(ctx, s, shares, size)
}

func (x *index) Sizes(ctx context.Context) (map[string]int64, error) {
	if x.around != nil {
		x.around("before")
		defer x.around("after")
	}
	return x.Index.Sizes(ctx)
}

var errBroken = errors.New("on purpose: the index cannot be written")

// indexed is an engine on files in a directory, with its lease, and what it has raised.
func indexed(t *testing.T, dir string, around func(string)) (*engine.Engine, *engine.Lease, *index, chan alarm) {
	t.Helper()
	x, err := sqlite.OpenIndex(t.Context(), filepath.Join(dir, "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := sqlite.OpenWitness(t.Context(), filepath.Join(dir, "heads.db"))
	if err != nil {
		t.Fatal(err)
	}
	alarms := make(chan alarm, 10)
	o := engine.Options{Says: says, Alarm: func(id string, err error) { alarms <- alarm{id, err} }}
	own := &index{Index: x, around: around}
	e, err := engine.Files(t.Context(), filepath.Join(dir, "sessions"), "a", own, w, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	l, err := e.Lease(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return e, l, own, alarms
}

// copied copies a directory as it stands, as if the process were killed at that moment.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestRefresh: what others create or delete while an engine is opened is there, or is not.
func TestRefresh(t *testing.T) {
	dir := t.TempDir()
	a, _, _, _ := indexed(t, dir, nil)
	create := func(id string) {
		t.Helper()
		if _, err := a.Create(t.Context(), engine.Session{ID: id, Title: id}); err != nil {
			t.Fatal(err)
		}
	}
	create("old-before")
	create("old-after")
	create("stays")
	done := map[string]bool{}
	c, _, _, alarms := indexed(t, dir, func(step string) {
		if done[step] { // when it is looked again for those that are not there
			return
		}
		done[step] = true
		create("new-" + step)
		if _, err := a.Delete(t.Context(), "old-"+step); err != nil {
			t.Error(err)
		}
	})
	for _, e := range []*engine.Engine{a, c} {
		for id, want := range map[string]error{"old-before": engine.ErrNotFound, "old-after": engine.ErrNotFound, "new-before": nil, "new-after": nil, "stays": nil} {
			if s, err := e.Session(t.Context(), id); !errors.Is(err, want) || err == nil && s.Title != id {
				t.Errorf("%s: %+v, %v, want %v", id, s, err, want)
			}
		}
	}
	if len(alarms) > 0 {
		t.Errorf("alarm: %+v", <-alarms)
	}
}

// TestIndexBehind: what the index has missed it gets once somebody claims the session or opens it, whoever releases it meanwhile.
func TestIndexBehind(t *testing.T) {
	dir := t.TempDir()
	e, l, x, alarms := indexed(t, dir, nil)
	earlier := owns(t, e, l, "s")
	if err := earlier.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := e.Claim(t.Context(), "s", l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Append(t.Context(), end("1")); err != nil {
		t.Fatal(err)
	}
	x.broken.Store(true)
	for range 2 {
		if _, err := o.Append(t.Context(), end("2")); err != nil {
			t.Fatal(err)
		}
	}
	if a := <-alarms; a.session != "" || !errors.Is(a.err, errBroken) {
		t.Errorf("alarm %+v", a)
	}
	for _, release := range []*engine.Owned{earlier, o} {
		if err := release.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		again, _, _, _ := indexed(t, copied(t, dir), nil)
		wantState(t, again, "s", `"2"`)
	}
	x.broken.Store(false)
	if o, err = e.Claim(t.Context(), "s", l); err != nil {
		t.Fatal(err)
	}
	wantState(t, e, "s", `"2"`)
	// It also gets it with the next record that says something.
	x.broken.Store(true)
	if _, err := o.Append(t.Context(), end("3"), engine.Record{Kind: journal.KindShared, Data: []byte(`{"User":"bob","Role":"viewer"}`)}); err != nil {
		t.Fatal(err)
	}
	<-alarms
	x.broken.Store(false)
	if _, err := o.Append(t.Context(), end("4")); err != nil {
		t.Fatal(err)
	}
	wantState(t, e, "s", `"4"`)
	if shares, err := e.Shares(t.Context(), "s"); err != nil || len(shares) != 1 || shares[0].User != "bob" {
		t.Errorf("shares %v, %v", shares, err)
	}
	if len(alarms) > 0 {
		t.Errorf("one more alarm: %+v", <-alarms)
	}
}

// TestIndexTried: an index that cannot be written is tried once a second, however much it misses, and not at all after Release.
func TestIndexTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, l, x, alarms := indexed(t, t.TempDir(), nil)
		o := owns(t, e, l, "s")
		var tried atomic.Int32
		x.put = func(string) { tried.Add(1) }
		x.broken.Store(true)
		for i := range 5 {
			if _, err := o.Append(t.Context(), end(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		if n := tried.Load(); n != 5 {
			t.Errorf("written %d times for 5 records", n)
		}
		time.Sleep(3*time.Second + time.Second/2)
		if n := tried.Swap(0); n != 5+3 {
			t.Errorf("written %d times for 5 records and in the three seconds after them", n)
		}
		if err := o.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := tried.Load(); n != 1 || len(alarms) != 1 {
			t.Errorf("written %d times by Release and after it, with %d alarms", n, len(alarms))
		}
	})
}

// TestDeletedMeanwhile: a session that is deleted while somebody claims it stays so, and one that the index has missed is deleted.
func TestDeletedMeanwhile(t *testing.T) {
	e, l, x, _ := indexed(t, t.TempDir(), nil)
	for _, id := range []string{"s", "t"} {
		if _, err := e.Create(t.Context(), engine.Session{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	x.put = func(id string) {
		if _, err := e.Delete(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	if _, err := e.Claim(t.Context(), "s", l); !errors.Is(err, engine.ErrDeleted) {
		t.Errorf("claim: %v", err)
	}
	x.put = nil
	if _, err := x.Index.DeleteSession(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Delete(t.Context(), "t"); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"s", "t"} {
		if _, err := e.Session(t.Context(), id); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestMoreShares: what is in the records counts, also if there are more shares than may be made.
func TestMoreShares(t *testing.T) {
	dir := t.TempDir()
	o := engine.Options{Says: func(r *engine.Record) (said engine.Said) {
		if r.Kind == journal.KindShared {
			said.Share = &engine.Share{User: string(r.Data), Role: "viewer"}
		}
		return said
	}, Alarm: func(id string, err error) { t.Errorf("alarm of %q: %v", id, err) }}
	for range 2 {
		e, err := sqlite.Open(t.Context(), dir, "a", o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Session(t.Context(), "s"); errors.Is(err, engine.ErrNotFound) {
			l, err := e.Lease(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			own := owns(t, e, l, "s")
			for i := range engine.MaxShares + 5 {
				if _, err := own.Append(t.Context(), engine.Record{Kind: journal.KindShared, Data: fmt.Append(nil, i)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if all, err := e.Shares(t.Context(), "s"); err != nil || len(all) != engine.MaxShares+5 {
			t.Errorf("%d shares, %v", len(all), err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
			t.Fatal(err)
		}
	}
}
