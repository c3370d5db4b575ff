package journaltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A follower collects what somebody who follows a journal gets.
type follower struct {
	mu    sync.Mutex
	some  *sync.Cond
	texts []string
	next  uint64
	err   error // why it has ended, or the damage that it met
	ended bool
	stop  func()
}

// follow follows a journal until the test ends.
func follow(t testing.TB, c *journal.Container, id string, after uint64) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &follower{next: after + 1, stop: cancel}
	f.some = sync.NewCond(&f.mu)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for r, err := range c.Follow(ctx, id, after) {
			f.mu.Lock()
			switch {
			case err != nil:
				f.err = err
			case r.From != f.next:
				t.Errorf("record %d-%d, want %d", r.From, r.Seq, f.next)
			default:
				f.texts = append(f.texts, text(r))
				f.next = r.Seq + 1
			}
			f.some.Broadcast()
			f.mu.Unlock()
		}
		f.mu.Lock()
		f.ended = true
		f.some.Broadcast()
		f.mu.Unlock()
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return f
}

// upTo waits until a record has come, and returns the texts.
func (f *follower) upTo(t testing.TB, seq uint64) []string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.next <= seq && !f.ended {
		f.some.Wait()
	}
	if f.next <= seq {
		t.Fatalf("it has ended before record %d, at %d: %v", seq, f.next, f.err)
	}
	return f.texts
}

// end waits until it has ended, and returns why.
func (f *follower) end() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.ended {
		f.some.Wait()
	}
	return f.err
}

// testFollow: several who follow from different positions get all that follows, once and in order.
func testFollow(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	w := create(t, c, "s")
	appendTexts(t, w, "1", "2")
	var all []*follower
	for after := range uint64(4) {
		all = append(all, follow(t, c, "s", after))
	}
	const more = 200
	for i := range more {
		kind := journal.KindUpdate
		if i%20 == 0 {
			kind = journal.KindPrompt
		}
		if err := w.Append(drafts(kind, fmt.Sprint("m", i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	for after, f := range all {
		texts := f.upTo(t, 3+more)
		if len(texts) != 3+more-after || texts[len(texts)-1] != fmt.Sprint("m", more-1) {
			t.Errorf("after %d: %d texts", after, len(texts))
		}
	}
	for r, err := range c.Follow(t.Context(), "s", 1) {
		if err != nil || text(r) != "1" {
			t.Error(r, err)
		}
		break // nothing is left behind
	}
}

// testFollowLag: one who does not look for a long time gets everything all the same, and holds up nobody.
func testFollowLag(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	w := create(t, c, "s")
	const records = 10_000 // more than wait for followers
	last := 0
	next, stop := pull(t, c, "s", 1)
	defer stop()
	appendTexts(t, w, "0")
	if r, err := next(); err != nil || text(r) != "0" {
		t.Fatal(r, err)
	}
	for i := 1; i <= records; {
		var some []string
		for range 500 {
			some = append(some, fmt.Sprint(i))
			i++
		}
		appendTexts(t, w, some...)
	}
	for last < records {
		r, err := next()
		if err != nil || text(r) != fmt.Sprint(last+1) {
			t.Fatalf("record %v after %d, %v", r, last, err)
		}
		last++
	}
	appendTexts(t, w, "more")
	if r, err := next(); err != nil || text(r) != "more" {
		t.Error(r, err)
	}
}

// pull follows a journal record by record.
func pull(t testing.TB, c *journal.Container, id string, after uint64) (next func() (*journal.Record, error), stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	type got struct {
		r   *journal.Record
		err error
	}
	ask, got1 := make(chan struct{}), make(chan got)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for r, err := range c.Follow(ctx, id, after) {
			select {
			case <-ask:
				got1 <- got{r, err}
			case <-ctx.Done():
				return
			}
		}
	}()
	next = func() (*journal.Record, error) {
		select {
		case ask <- struct{}{}:
			g := <-got1
			return g.r, g.err
		case <-done:
			return nil, errors.New("it has ended")
		}
	}
	return next, func() { cancel(); <-done }
}

// testFollowEnds: what ends those who follow.
func testFollowEnds(t *testing.T, f Fixture) {
	c := open(t, f.Open(t))
	w := create(t, c, "s")
	if err := follow(t, c, "none", 0).end(); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("of nothing: %v", err)
	}
	if err := follow(t, c, "s", 2).end(); !errors.Is(err, journal.ErrBeyond) {
		t.Errorf("beyond the end: %v", err)
	}
	gone := follow(t, c, "s", 0)
	gone.upTo(t, 1)
	gone.stop()
	wantIs(t, "after a cancel", gone.end(), context.Canceled)
	deleted := follow(t, c, "s", 0)
	deleted.upTo(t, 1)
	appendTexts(t, w, "x")
	deleted.upTo(t, 2)
	if err := c.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	wantIs(t, "after the journal was deleted", deleted.end(), journal.ErrDeleted)
	create(t, c, "other")
	closed := follow(t, c, "other", 0)
	closed.upTo(t, 1)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	wantIs(t, "after the container was closed", closed.end(), journal.ErrClosed)
	for _, err := range c.Follow(t.Context(), "other", 0) {
		wantIs(t, "in a closed container", err, journal.ErrClosed)
	}
}

// testFollowElsewhere: what another process writes comes, too.
func testFollowElsewhere(t *testing.T, f Fixture) {
	b := f.Open(t)
	if b.Poll() == 0 {
		t.Skip("there are no other processes")
	}
	a, c := open(t, f.Open(t)), open(t, b)
	w := create(t, a, "s")
	other := follow(t, c, "s", 0)
	wantTexts(t, "at first", other.upTo(t, 1)[1:])
	appendTexts(t, w, "1", "2")
	wantTexts(t, "later", other.upTo(t, 3)[1:], "1", "2")
	if err := a.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	wantIs(t, "after the journal was deleted", other.end(), journal.ErrDeleted)
}

// testFollowOwners: a follower continues when the owner changes, here and elsewhere.
func testFollowOwners(t *testing.T, f Fixture) {
	b := f.Open(t)
	a, c := open(t, b), open(t, f.Open(t))
	w := create(t, c, "s")
	x := follow(t, c, "s", 1)
	appendTexts(t, w, "1")
	x.upTo(t, 2)
	release(t, w)
	if b.Poll() > 0 {
		w = own(t, a, "s")
		appendTexts(t, w, "2")
		x.upTo(t, 3)
		release(t, w)
	}
	w = own(t, c, "s")
	last := appendTexts(t, w, "3")[0].Seq
	x.upTo(t, last)
}
