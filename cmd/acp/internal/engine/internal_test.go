package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A fake is a database that does what a test says. Its methods that a test does not use panic.
type fake struct {
	Database
	append  func([]Batch) ([]bool, error)
	confirm func() (State, error)
	renew   func(context.Context) error
}

func (f *fake) Writers() int                                        { return 1 }
func (f *fake) Close() error                                        { return nil }
func (f *fake) Append(_ context.Context, b []Batch) ([]bool, error) { return f.append(b) }
func (f *fake) Confirm(context.Context, string) (State, error)      { return f.confirm() }
func (f *fake) Release(context.Context, string, uint32) error       { return nil }
func (f *fake) State(_ context.Context, session string) (State, error) {
	return State{Session: session, Epoch: 1}, nil
}
func (f *fake) Records(context.Context, int64, uint64, int, int) ([]Record, error) {
	return nil, nil
}
func (f *fake) Claim(_ context.Context, session, node string, _ int64) (State, error) {
	return State{Session: session, Epoch: 1, Node: node}, nil
}
func (f *fake) TakeLease(context.Context, string, int64, time.Duration) error { return nil }
func (f *fake) RenewLease(ctx context.Context, _ string, _ int64, _ time.Duration) error {
	return f.renew(ctx)
}

// all acknowledges batches.
func all(b []Batch) []bool {
	ok := make([]bool, len(b))
	for i := range ok {
		ok[i] = true
	}
	return ok
}

// A memory is a witness.
type memory struct {
	mu    sync.Mutex
	heads map[string]Head
	err   error
}

func (m *memory) Seen(_ context.Context, session string) (Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heads[session], nil
}

func (m *memory) Note(_ context.Context, heads map[string]Head) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	for id, h := range heads {
		m.heads[id] = h
	}
	return nil
}
func (m *memory) Forget(context.Context, string) error { return nil }
func (m *memory) Close() error                         { return nil }

// TestKeep: the lease is renewed while the database answers, and Keep returns in time when it does not.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		f := &fake{}
		var hangs bool
		f.renew = func(ctx context.Context) error {
			if hangs {
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(time.Second) // the answer is slow
			return nil
		}
		e := New(f, &memory{heads: map[string]Head{}}, Options{})
		l, err := e.Lease(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Deadline().Sub(begin); got != 8*time.Second || l.Node() != "n" {
			t.Errorf("deadline of %s after %v", l.Node(), got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.Keep(ctx); err != nil {
			t.Errorf("keep until the context ends: %v", err)
		}
		if left := time.Until(l.Deadline()); left < 3*time.Second || left > 8*time.Second {
			t.Errorf("%v are left", left)
		}
		hangs = true
		deadline := l.Deadline()
		if err := l.Keep(t.Context()); !errors.Is(err, ErrLapsed) {
			t.Errorf("keep: %v", err)
		}
		if late := time.Since(deadline); late != 0 {
			t.Errorf("it returns %v after the deadline", late)
		}
		hangs = false
		if err := l.Renew(t.Context()); !errors.Is(err, ErrLapsed) {
			t.Errorf("renew afterwards: %v", err)
		}
		if _, err := e.Claim(t.Context(), "s", l); !errors.Is(err, ErrLapsed) {
			t.Errorf("claim afterwards: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestLapsedWrites: what was appended before the lease lapsed, and not written until then, is refused without asking the database.
func TestLapsedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{append: func(b []Batch) ([]bool, error) { return all(b), nil }}
		e := New(f, &memory{heads: map[string]Head{}}, Options{})
		defer e.Close()
		o := claims(t, e, 1)[0]
		time.Sleep(8 * time.Second)
		f.append = nil
		if _, err := o.Append(t.Context(), Record{Kind: journal.KindUpdate}); !errors.Is(err, ErrFenced) || !errors.Is(err, ErrLapsed) {
			t.Errorf("append: %v", err)
		}
	})
}

func claims(t *testing.T, e *Engine, n int) (owned []*Owned) {
	t.Helper()
	l, err := e.Lease(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		o, err := e.Claim(t.Context(), fmt.Sprint(i), l)
		if err != nil {
			t.Fatal(err)
		}
		owned = append(owned, o)
	}
	return owned
}

// TestGroup: what is queued during a commit is committed together, within bounds.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		through := make(chan struct{})
		close(through)
		var sizes []string
		f := &fake{append: func(b []Batch) ([]bool, error) {
			n, size := 0, 0
			for _, b := range b {
				records, bytes := (&write{Batch: b}).size()
				n, size = n+records, size+bytes
			}
			if n >= maxGroup+3 || size > MaxData+11<<20 {
				t.Errorf("%d records of %d bytes in a transaction", n, size)
			}
			sizes = append(sizes, fmt.Sprint(len(b)))
			<-through
			return all(b), nil
		}}
		f.renew = func(context.Context) error { return nil }
		e := New(f, &memory{heads: map[string]Head{}}, Options{LeaseTTL: time.Hour})
		owned := claims(t, e, 120) // each has a first record
		through, sizes = make(chan struct{}), nil
		var wg sync.WaitGroup
		for i, o := range owned {
			wg.Go(func() {
				recs := []Record{{Kind: journal.KindUpdate}, {Kind: journal.KindUpdate}, {Kind: journal.KindUpdate}}
				if i >= 116 {
					recs[0].Data = []byte(`"` + strings.Repeat("x", 10<<20) + `"`)
				}
				if _, err := o.Append(t.Context(), recs...); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // one after the other
		}
		close(through)
		wg.Wait()
		// The first alone; 86 × 3 records, then 29 and two large ones, and the other two.
		if got, want := strings.Join(sizes, " "), "1 86 31 2"; got != want {
			t.Errorf("sessions in each transaction: %s, want %s", got, want)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestClosedInDoubt: an engine whose database does not say what became of an append ends all the same, and says that it is not
// known to be kept.
func TestClosedInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("the connection was lost")
		f := &fake{append: func(b []Batch) ([]bool, error) { return all(b), nil }, confirm: func() (State, error) { return State{}, lost }}
		e := New(f, &memory{heads: map[string]Head{}}, Options{LeaseTTL: time.Hour})
		o := claims(t, e, 1)[0]
		f.append = func([]Batch) ([]bool, error) { return nil, lost }
		done := make(chan error, 1)
		go func() {
			_, err := o.Append(t.Context(), Record{Kind: journal.KindUpdate})
			done <- err
		}()
		time.Sleep(time.Minute)
		begun := time.Now()
		if err := e.Close(); !errors.Is(err, journal.ErrUnsaved) || time.Since(begun) > 6*time.Second {
			t.Errorf("close: %v after %v", err, time.Since(begun))
		}
		if err := <-done; err == nil {
			t.Error("it was acknowledged")
		}
	})
}

// TestWitnessTrouble: a witness that cannot be written raises the alarm once, and gets everything when it can.
func TestWitnessTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space")
		w := &memory{heads: map[string]Head{}, err: full}
		alarms := 0
		m := newMarks(w, func(id string, err error) {
			if alarms++; id != "" || !errors.Is(err, full) {
				t.Errorf("alarm of %q: %v", id, err)
			}
		})
		last := Head{}
		for i := range 5 {
			last = Head{Seq: uint64(i + 1)}
			m.note("s", last)
			time.Sleep(time.Second)
		}
		if seen, err := m.seen(t.Context(), "s"); err != nil || seen != last {
			t.Errorf("seen %v, %v", seen, err)
		}
		w.mu.Lock()
		w.err = nil
		w.mu.Unlock()
		if err := m.close(); err != nil {
			t.Error(err)
		}
		if alarms != 1 || w.heads["s"] != last {
			t.Errorf("%d alarms, witness %v", alarms, w.heads)
		}
	})
}

func FuzzCursor(f *testing.F) {
	for _, s := range []string{"", "?", "AAAAAAAAAAA", encodeCursor(Position{time.Unix(1, 2), "s/ü"}), encodeCursor(Position{time.Unix(1, 2), "\x00"}), strings.Repeat("A", 2000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := decodeCursor(s)
		switch {
		case err != nil:
			if (p != Position{}) {
				t.Errorf("an error, and %v", p)
			}
		case s != "":
			if again := encodeCursor(p); again != s || p.ID == "" {
				t.Errorf("%q is %v, which is written %q", s, p, again)
			}
		}
	})
}

// FuzzFold: no record, whatever its data, makes a fold fail, or a time that cannot be kept.
func FuzzFold(f *testing.F) {
	f.Add("session", []byte(`{"agent":"a","created":"2026-01-01T00:00:00Z","attributes":{"x":null,"y":1}}`))
	f.Add("session", []byte(`{"created":"9999-01-01T00:00:00Z","title":7}`))
	f.Add("session", []byte(`{"created":"2026-01-01T00:00:00Z","updated":"0001-01-01T00:00:00Z","attributes":null}`))
	f.Add("shared", []byte(`{"User":"","Role":"x"}`))
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		x := newFold("s", func(*Record) Said { return Said{Share: &Share{User: string(data), Role: kind}} })
		for range 2 {
			if err := x.apply(&Record{Seq: 1, Kind: Kind(kind), Data: data, At: time.Date(len(data), 1, 1, 0, 0, 0, 0, time.UTC)}); err != nil {
				t.Fatal(err)
			}
		}
		s, _, err := (&files{dir: t.TempDir()}).made(x)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []time.Time{s.Created, s.Updated} {
			if at.Before(minTime) || at.After(maxTime) {
				t.Errorf("%q: time %v", data, at)
			}
		}
	})
}
