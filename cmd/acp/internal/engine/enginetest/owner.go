package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// testAppend: what is appended together is kept together, within bounds, and has times in order.
func testAppend(t *testing.T, f Fixture) {
	n := start(t, f, "a")
	o := n.own(t, "s")[0]
	if none, err := o.Append(t.Context()); err != nil || none != nil {
		t.Errorf("an append of nothing: %v, %v", none, err)
	}
	for name, recs := range map[string][]engine.Record{
		"a kind that nobody knows": {{Kind: "none"}},
		"a large record":           {{Kind: journal.KindUpdate, Data: make([]byte, engine.MaxData+1)}},
		"too many records":         texts(journal.KindUpdate, make([]string, engine.MaxRecords+1)...),
	} {
		_, err := o.Append(t.Context(), recs...)
		wantIs(t, name, err, engine.ErrInvalid)
	}
	before := o.Head().Seq
	most, err := o.Append(t.Context(), texts(journal.KindUpdate, make([]string, engine.MaxRecords)...)...)
	if err != nil || len(most) != engine.MaxRecords || most[0].Seq != before+1 || most[0].Epoch != o.Epoch() || o.Head().Seq != before+engine.MaxRecords {
		t.Errorf("the most records: %d, %v", len(most), err)
	}
	given := time.Unix(1, 0).UTC()
	late := time.Now()
	recs, err := o.Append(t.Context(), engine.Record{Kind: journal.KindUpdate}, engine.Record{Kind: journal.KindUpdate, At: given}, engine.Record{Kind: journal.KindUpdate})
	if err != nil || recs[0].At.Before(late.Add(-time.Nanosecond)) || !recs[1].At.Equal(given) || recs[2].At.Before(recs[0].At) {
		t.Errorf("%v, %v", recs, err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if _, err := o.Append(t.Context(), engine.Record{Kind: journal.KindUpdate}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	last := recs[2].At
	err = n.Read(t.Context(), "s", recs[2].Seq, func(r engine.Record) error {
		if r.At.Before(last) {
			t.Errorf("record %d is of %v, the one before of %v", r.Seq, r.At, last)
		}
		recs[2], last = r, r.At
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if h, err := n.Head(t.Context(), "s"); err != nil || h != o.Head() || h.Hash != recs[2].Hash {
		t.Errorf("the head is %v, that of the handle %v, %v", h, o.Head(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = o.Append(ctx, texts(journal.KindUpdate, "no")...)
	wantIs(t, "of somebody who has given up", err, context.Canceled)
	if h := o.Head().Seq; h != recs[2].Seq {
		t.Errorf("it was appended: %d", h)
	}
}

// testClaim: claims again, after a release, of nothing.
func testClaim(t *testing.T, f Fixture) {
	a, c := start(t, f, "a"), start(t, f, "c")
	first := a.own(t, "s")[0]
	add(t, first, "1")
	second := a.claim(t, "s")
	_, err := first.Append(t.Context(), texts(journal.KindPrompt, "no")...)
	wantIs(t, "append with the first handle", err, engine.ErrFenced)
	if err := first.Release(t.Context()); err != nil {
		t.Errorf("release of the first handle: %v", err)
	}
	add(t, second, "2")
	if _, err := a.Update(t.Context(), "s", func(s *engine.Session) error { s.Title = "owned"; return nil }); err != nil {
		t.Error(err)
	}
	if err := second.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = second.Append(t.Context(), texts(journal.KindPrompt, "no")...)
	wantIs(t, "append after release", err, engine.ErrReleased)
	third := c.claim(t, "s")
	if third.Epoch() <= second.Epoch() || second.Epoch() <= first.Epoch() || third.Session() != "s" {
		t.Errorf("the handle of %q has epoch %d", third.Session(), third.Epoch())
	}
	add(t, third, "3")
	a.wantTexts(t, "s", "1", "2", "3")
	_, err = a.Claim(t.Context(), "none", a.lease)
	wantIs(t, "claim of nothing", err, engine.ErrNotFound)
}

// testClaimRace: of two nodes that claim free sessions at the same time, one gets each.
func testClaimRace(t *testing.T, f Fixture) {
	nodes := []*node{start(t, f, "a"), start(t, f, "c")}
	const sessions = 20
	var won [sessions]atomic.Int32
	for i := range sessions {
		if _, err := nodes[0].Create(t.Context(), engine.Session{ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() {
			for i := range sessions {
				o, err := n.Claim(t.Context(), fmt.Sprint(i), n.lease)
				switch {
				case err == nil:
					won[i].Add(1)
					if _, err := o.Append(t.Context(), texts(journal.KindPrompt, "x")...); err != nil {
						t.Error(err)
					}
				case !errors.Is(err, engine.ErrOwned):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range sessions {
		if w := won[i].Load(); w != 1 {
			t.Errorf("session %d has %d owners", i, w)
		}
		nodes[0].wantTexts(t, fmt.Sprint(i), "x")
	}
}

// testOwner: others learn who owns a session; they can read it, and nothing else.
func testOwner(t *testing.T, f Fixture) {
	a, c := start(t, f, "a"), start(t, f, "c")
	if _, err := a.Create(t.Context(), engine.Session{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	owner := func(want string) {
		t.Helper()
		if got, err := c.Owner(t.Context(), "s"); got != want || err != nil {
			t.Errorf("owner %q, want %q, %v", got, want, err)
		}
	}
	owner("")
	o := a.claim(t, "s")
	add(t, o, "1")
	owner("a")
	_, err := c.Claim(t.Context(), "s", c.lease)
	wantIs(t, "claim", err, engine.ErrOwned)
	if owned := (*journal.OwnedError)(nil); !errors.As(err, &owned) || owned.Who != "a" {
		t.Errorf("claim: %v", err)
	}
	c.wantTexts(t, "s", "1")
	if f.Exec == nil {
		_, err := c.Update(t.Context(), "s", func(s *engine.Session) error { s.Title = "x"; return nil })
		wantIs(t, "update", err, engine.ErrOwned)
	}
	if err := o.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	owner("")
	add(t, c.claim(t, "s"), "2")
	if got, err := a.Owner(t.Context(), "s"); got != "c" || err != nil {
		t.Errorf("owner %q, %v", got, err)
	}
}

// testDamage: a damaged record costs that record. It is reported to who reads, follows or claims the session, which can be
// continued; a list of what is damaged has this session and no other.
func testDamage(t *testing.T, f Fixture) {
	n := start(t, f, "a")
	for _, o := range n.own(t, "bad", "good") {
		add(t, o, "1", "2", "3", "4", "5")
		if err := o.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	h, err := n.Head(t.Context(), "bad")
	if err != nil {
		t.Fatal(err)
	}
	at := h.Seq - 2
	f.Damage(t, "bad", at)
	lost := []journal.Range{{From: at, To: at}}
	got, err := n.read(t, "bad")
	wantDamage(t, "read", err, "bad", lost, 0)
	if want := []string{"1", "2", "4", "5"}; !slices.Equal(got, want) {
		t.Errorf("read %q", got)
	}
	wantDamage(t, "alarm", <-n.alarms, "bad", lost, 0)
	if err := n.Fold(t.Context(), "bad", 0, func(engine.Record) error { return nil }); err != nil {
		t.Errorf("fold: %v", err)
	}
	o := n.claim(t, "bad")
	if d := o.Damage(); d == nil || !slices.Equal(d.Lost, lost) {
		t.Errorf("the handle says %v", d)
	}
	add(t, o, "6")
	if _, err := n.Update(t.Context(), "bad", func(s *engine.Session) error { s.Title = "x"; return nil }); err != nil {
		t.Error(err)
	}
	var seqs []uint64
	for r, err := range n.Follow(t.Context(), "bad", at-2) {
		if err != nil {
			wantDamage(t, "follow", err, "bad", lost, 0)
			add(t, o, "7")
		} else if seqs = append(seqs, r.Seq); r.Kind == journal.KindPrompt && string(r.Data) == `"7"` {
			break
		}
	}
	if len(seqs) < 4 || seqs[0] != at-1 || seqs[1] != at+1 {
		t.Errorf("followed %d, record %d is damaged", seqs, at)
	}
	var all []string
	err = n.VerifyAll(t.Context(), func(session string, err error) error {
		if all = append(all, session); errors.As(err, new(*engine.DamageError)) {
			all = append(all, session+" is damaged")
		} else if err != nil {
			return err
		}
		return nil
	})
	if slices.Sort(all); err != nil || !slices.Equal(all, []string{"bad", "bad is damaged", "good"}) {
		t.Errorf("verified %q, %v", all, err)
	}
	if len(n.alarms) > 0 {
		t.Errorf("one more alarm: %v", <-n.alarms)
	}
}

// testLostTail: that the end of a log is missing is noticed by the witness; nobody is kept from continuing.
func testLostTail(t *testing.T, f Fixture) {
	a := start(t, f, "a")
	o := a.own(t, "s")[0]
	add(t, o, "1", "2", "3")
	h := o.Head()
	if err := errors.Join(o.Release(t.Context()), a.Close()); err != nil { // the witness has everything then
		t.Fatal(err)
	}
	f.Cut(t, "s", h.Seq-2)
	a = start(t, f, "a")
	_, err := a.read(t, "s")
	wantDamage(t, "read", err, "s", nil, 2)
	wantDamage(t, "alarm", <-a.alarms, "s", nil, 2)
	o = a.claim(t, "s")
	add(t, o, "x", "y")
	if got, err := a.read(t, "s"); !slices.Equal(got, []string{"1", "x", "y"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// testAnchor: inside of what was compacted nobody can read.
func testAnchor(t *testing.T, f Fixture) {
	n := start(t, f, "a")
	o := n.own(t, "s")[0]
	recs := add(t, o, "1", "2", "3", "4", "5")
	first := recs[0].Seq
	if err := o.Compact(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if err := o.Compact(t.Context(), []engine.Gap{{From: first + 1, To: first + 3}}); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[uint64]uint64{0: 0, first: first, first + 1: first, first + 2: first, first + 3: first + 3, first + 4: first + 4} {
		if got, err := n.Anchor(t.Context(), "s", at); got != want || err != nil {
			t.Errorf("anchor of %d: %d, want %d, %v", at, got, want, err)
		}
	}
	compacted := (*journal.CompactedError)(nil)
	err := n.Read(t.Context(), "s", first+2, func(engine.Record) error { return nil })
	if !errors.Is(err, engine.ErrCompacted) || !errors.As(err, &compacted) || compacted.Before != first {
		t.Errorf("read: %v", err)
	}
	n.wantTexts(t, "s", "1", "5")
	_, err = n.Anchor(t.Context(), "none", 1)
	wantIs(t, "anchor in nothing", err, engine.ErrNotFound)
}

// testPublish: who follows a session of another node sees each record once and in order, whether it was published
// here, missed, or published twice.
func testPublish(t *testing.T, f Fixture) {
	one, two := start(t, f, "one"), start(t, f, "two")
	o := one.own(t, "s")[0]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seqs := make(chan uint64)
	next := o.Head().Seq
	go func(after uint64) {
		defer close(seqs)
		for r, err := range two.Follow(ctx, "s", after) {
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			seqs <- r.Seq
		}
	}(next)
	read := func(n int) {
		t.Helper()
		for range n {
			next++
			if got := <-seqs; got != next {
				t.Fatalf("record %d, want %d", got, next)
			}
		}
	}
	two.Publish("s", add(t, o, "1", "2"))
	read(2)
	again := add(t, o, "3")
	two.Publish("s", again)
	two.Publish("s", again)
	read(1)
	add(t, o, "4")                   // which is not published
	two.Publish("s", add(t, o, "5")) // so that one is missing
	read(2)
	add(t, o, "6", "7")
	two.Missed("s")
	read(2)
	add(t, o, "8") // which nobody says
	read(1)
	cancel()
	for range seqs {
		t.Error("one more record")
	}
}

// testClose: everything ends with the engine.
func testClose(t *testing.T, f Fixture) {
	n := start(t, f, "a")
	all := n.own(t, "s", "t")
	add(t, all[0], "1")
	var last error
	followed := make(chan struct{})
	ready := make(chan struct{}, 10)
	go func() {
		defer close(followed)
		for _, err := range n.Follow(t.Context(), "s", 0) {
			last = err
			ready <- struct{}{}
		}
	}()
	<-ready
	for range 2 {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	<-followed
	wantIs(t, "follow", last, engine.ErrClosed)
	_, err := all[0].Append(t.Context(), texts(journal.KindPrompt, "2")...)
	wantIs(t, "append", err, engine.ErrReleased)
	_, err = n.Claim(t.Context(), "s", n.lease)
	wantIs(t, "claim", err, engine.ErrClosed)
	if _, err = n.Create(t.Context(), engine.Session{ID: "new"}); err == nil {
		t.Error("a session was created")
	}
	if err := all[0].Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	again := start(t, f, "a")
	add(t, again.claim(t, "s"), "2")
	again.wantTexts(t, "s", "1", "2")
}
