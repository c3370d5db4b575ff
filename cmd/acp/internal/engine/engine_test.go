package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A fake is a database in memory that does what a test says. Its methods that a test does not use
// panic.
type fake struct {
	Database
	append  func([]Batch) ([]bool, error)
	confirm func(session string) (State, error)
	renew   func(context.Context) error
	records func() ([]Record, error)
}

func (f *fake) Writers() int { return 1 }
func (f *fake) Close() error { return nil }
func (f *fake) Append(_ context.Context, b []Batch) ([]bool, error) {
	if f.append != nil {
		return f.append(b)
	}
	return all(b), nil
}
func (f *fake) Confirm(_ context.Context, session string) (State, error) { return f.confirm(session) }
func (f *fake) Claim(_ context.Context, session, node string, _ int64) (State, error) {
	return State{Session: session, Key: 1, Epoch: 1, Node: node}, nil
}
func (f *fake) State(_ context.Context, session string) (State, error) {
	return f.confirm(session)
}
func (f *fake) Records(context.Context, int64, uint64, int, int) ([]Record, error) {
	return f.records()
}
func (f *fake) Release(context.Context, string, uint32) error { return nil }
func (f *fake) TakeLease(context.Context, string, int64, time.Duration) error {
	return nil
}
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

// owned returns handles of new sessions.
func owned(t *testing.T, e *Engine, n int) (handles []*Owned) {
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
		handles = append(handles, o)
	}
	return handles
}

// A gate is a database whose appends wait until the test lets them through.
type gate struct {
	fake
	through chan struct{}
	mu      sync.Mutex
	batches [][]Batch
}

func newGate() *gate {
	g := &gate{through: make(chan struct{})}
	g.append = func(b []Batch) ([]bool, error) {
		g.mu.Lock()
		g.batches = append(g.batches, b)
		g.mu.Unlock()
		<-g.through
		return all(b), nil
	}
	return g
}

// TestTimes: records that get the time of now have it in the order of the log, also if a call whose time was taken earlier comes to
// its place later. Times that are given stay.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		close(g.through)
		e := New(g, &memory{heads: map[string]Head{}}, Options{})
		o := owned(t, e, 1)[0]
		late, early, given := time.Unix(20, 0), time.Unix(10, 0), time.Unix(1, 0)
		for _, c := range []*call{
			{recs: []Record{{Time: late, Kind: "k"}}, now: []int{0}, done: make(chan struct{})},
			{recs: []Record{{Time: early, Kind: "k"}, {Time: given, Kind: "k"}}, now: []int{0}, done: make(chan struct{})},
			{recs: []Record{{Time: given, Kind: "k"}}, done: make(chan struct{})},
		} {
			if err := o.enqueue(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			<-c.done
		}
		var got []int64
		for _, b := range g.batches {
			for _, r := range b[0].Records {
				got = append(got, r.Time.Unix())
			}
		}
		if want := []int64{20, 20, 1, 1}; !slices.Equal(got, want) {
			t.Errorf("times %v, want %v", got, want)
		}
		recs, err := o.Append(t.Context(), Record{Kind: "k"})
		if err != nil || !recs[0].Time.Equal(time.Unix(0, time.Now().UnixNano())) {
			t.Errorf("%v, %v", recs, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestGroup: what is queued during a commit is committed together, up to 256 records and 16 MiB.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		e := New(g, &memory{heads: map[string]Head{}}, Options{})
		var wg sync.WaitGroup
		for i, o := range owned(t, e, 120) {
			wg.Go(func() {
				recs := make([]Record, 3)
				if i >= 110 {
					recs[0].Data = make([]byte, 10<<20)
				}
				if _, err := o.Append(t.Context(), recs...); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // one after the other
		}
		close(g.through)
		wg.Wait()
		var sizes []int
		for _, b := range g.batches {
			sizes = append(sizes, len(b))
		}
		// The first alone; 85 × 3 records; 24 and a large one, and the other large ones one by one.
		want := "[1 85 25 1 1 1 1 1 1 1 1 1]"
		if got := fmt.Sprint(sizes); got != want {
			t.Errorf("sessions in each transaction: %s, want %s", got, want)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestWaiting: 1 MiB of a session waits; then Append does, in order. Another session is not affected.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		e := New(g, &memory{heads: map[string]Head{}}, Options{})
		handles := owned(t, e, 2)
		o := handles[0]
		var wg sync.WaitGroup
		add := func(ctx context.Context, o *Owned, kind string, size int, want error) {
			wg.Go(func() {
				if _, err := o.Append(ctx, Record{Kind: kind, Data: make([]byte, size)}); !errors.Is(err, want) {
					t.Errorf("append %s: %v, want %v", kind, err, want)
				}
			})
			synctest.Wait()
		}
		waits := func(queued int) {
			t.Helper()
			o.mu.Lock()
			defer o.mu.Unlock()
			if len(o.queue) != queued || o.waiting > maxWaiting {
				t.Errorf("%d appends of %d bytes wait, want %d", len(o.queue), o.waiting, queued)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		add(t.Context(), o, "0", 300<<10, nil) // being committed
		add(t.Context(), o, "1", 300<<10, nil)
		add(t.Context(), o, "2", 300<<10, nil)
		add(t.Context(), o, "3", 300<<10, nil)
		waits(3)
		add(ctx, o, "no", 300<<10, context.Canceled) // waits for room
		add(t.Context(), o, "4", 5<<20, nil)         // larger than the bound, and not let in before
		add(t.Context(), o, "5", 1, nil)
		waits(3)
		cancel()
		synctest.Wait()
		waits(3)
		add(t.Context(), handles[1], "other", 300<<10, nil)
		ctx, cancel = context.WithCancel(t.Context())
		add(ctx, handles[1], "withdrawn", 1, context.Canceled)
		cancel()
		synctest.Wait()
		close(g.through)
		wg.Wait()
		var order []string
		for _, b := range g.batches {
			for _, b := range b {
				for _, r := range b.Records {
					order = append(order, r.Kind)
				}
			}
		}
		if got, want := strings.Join(order, " "), "0 other 1 2 3 4 5"; got != want {
			t.Errorf("committed %s, want %s", got, want)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestGiveUp: an append that is given up during its commit has an unknown outcome, and the log continues.
func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		e := New(g, &memory{heads: map[string]Head{}}, Options{})
		o := owned(t, e, 1)[0]
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := o.Append(ctx, Record{})
		if !errors.Is(err, ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("append: %v", err)
		}
		close(g.through)
		recs, err := o.Append(t.Context(), Record{})
		if err != nil || recs[0].Seq != 2 {
			t.Errorf("the next one: %v, %v", recs, err)
		}
		if err := o.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestConfirm: the outcome is asked for until the database answers, or the engine is closed.
func TestConfirm(t *testing.T) {
	lost := errors.New("the connection was lost")
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			var sent Batch
			f := &fake{append: func(b []Batch) ([]bool, error) { sent = b[0]; return nil, lost }}
			f.confirm = func(session string) (State, error) {
				if tries++; tries < 100 || closed {
					return State{}, lost
				}
				return State{Session: session, Epoch: 1, Head: sent.New}, nil
			}
			e := New(f, &memory{heads: map[string]Head{}}, Options{})
			o := owned(t, e, 1)[0]
			if closed {
				go func() {
					time.Sleep(time.Minute) // of the bubble
					e.Close()
				}()
			}
			recs, err := o.Append(t.Context(), Record{})
			switch {
			case closed && !(errors.Is(err, ErrUnknown) && errors.Is(err, ErrClosed)):
				t.Errorf("append until the engine is closed: %v", err)
			case !closed && (err != nil || recs[0].Seq != 1 || tries != 100):
				t.Errorf("append: %v, %v after %d tries", recs, err, tries)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

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

// TestWitnessTrouble: a witness that cannot be written raises the alarm once, and appends continue; it gets
// everything when it can.
func TestWitnessTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space")
		w := &memory{heads: map[string]Head{}, err: full}
		alarms := 0
		e := New(&fake{}, w, Options{Alarm: func(id string, err error) {
			if alarms++; id != "" || !errors.Is(err, full) {
				t.Errorf("alarm of %q: %v", id, err)
			}
		}})
		o := owned(t, e, 1)[0]
		for range 5 {
			if _, err := o.Append(t.Context(), Record{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if seen, err := e.marks.seen(t.Context(), "0"); err != nil || seen != o.Head() {
			t.Errorf("seen %v, %v", seen, err)
		}
		w.mu.Lock()
		w.err = nil
		w.mu.Unlock()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if alarms != 1 || w.heads["0"] != o.Head() {
			t.Errorf("%d alarms, witness %v", alarms, w.heads)
		}
	})
}

// TestReaders: a few chunks are read at the same time, and the others wait; nobody has to wait who gives
// up.
func TestReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		through, stop := make(chan struct{}), errors.New("stop")
		f := &fake{}
		f.confirm = func(session string) (State, error) { return State{Session: session, Head: Head{Seq: 9}}, nil }
		var mu sync.Mutex
		now, most := 0, 0
		f.records = func() ([]Record, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-through
			mu.Lock()
			now--
			mu.Unlock()
			return nil, stop
		}
		e := New(f, &memory{heads: map[string]Head{}}, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 20 {
			c, want := t.Context(), stop
			if i == 19 {
				c, want = ctx, context.Canceled
			}
			wg.Go(func() {
				if err := e.Read(c, "s", 0, nil); !errors.Is(err, want) {
					t.Errorf("reader %d: %v, want %v", i, err, want)
				}
			})
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		close(through)
		wg.Wait()
		if most != readers {
			t.Errorf("%d chunks at the same time, want %d", most, readers)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestFollowBetween: what is committed after a follower has read the end of the log, and before it waits,
// reaches it.
func TestFollowBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e := New(f, &memory{heads: map[string]Head{}}, Options{})
		o := owned(t, e, 1)[0]
		f.confirm = func(session string) (State, error) {
			if _, err := o.Append(t.Context(), Record{Kind: "between"}); err != nil {
				t.Error(err)
			}
			return State{Session: session, Epoch: 1}, nil // as it was before
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for r, err := range e.Follow(ctx, "0", 0) {
			if err != nil || r.Seq != 1 || r.Kind != "between" {
				t.Errorf("%+v, %v", r, err)
			}
			break
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestTooManyFollowers reaches the bound of followers.
func TestTooManyFollowers(t *testing.T) {
	e := New(&fake{}, &memory{heads: map[string]Head{}}, Options{})
	var all []*follower
	for range maxFollowers {
		f := newFollower()
		if _, err := e.attach("s", f); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	for _, err := range e.Follow(t.Context(), "s", 0) {
		if !errors.Is(err, ErrTooMany) {
			t.Errorf("one more: %v", err)
		}
	}
	for _, f := range all {
		e.detach("s", f)
	}
	if e.count != 0 || len(e.topics) != 0 {
		t.Errorf("%d followers are left", e.count)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
