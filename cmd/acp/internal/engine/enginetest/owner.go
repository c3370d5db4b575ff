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

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// testFence: when a lease has lapsed another node takes the session, and the old owner is refused.
func testFence(t *testing.T, b Backend) {
	a, c := start(t, b, "a"), start(t, b, "c")
	old := a.own(t, "s")[0]
	appendTexts(t, old, "1")
	_, err := c.Claim(t.Context(), "s", c.lease)
	wantIs(t, "claim of an owned session", err, engine.ErrOwned)
	b.lapse(t, "a")
	next, err := c.Claim(t.Context(), "s", c.lease)
	if err != nil {
		t.Fatal(err)
	}
	if next.Epoch() != 2 || next.Head().Seq != 1 {
		t.Errorf("the new owner has epoch %d, head %d", next.Epoch(), next.Head().Seq)
	}
	for range 2 {
		_, err = old.Append(t.Context(), records("no")...)
		wantIs(t, "append of the old owner", err, engine.ErrFenced)
	}
	if err := old.Release(t.Context()); err != nil {
		t.Errorf("release by the old owner: %v", err)
	}
	appendTexts(t, next, "2")
	got := c.whole(t, "s")
	if len(got) != 2 || got[0].Epoch != 1 || got[1].Epoch != 2 || string(got[1].Data) != "2" {
		t.Errorf("the log is %v", got)
	}
}

// testLostClaim: a failover that loses a claim gives its epoch out again; still only one of the two owners
// of that epoch can append.
func testLostClaim(t *testing.T, b Backend) {
	a, c := start(t, b, "a"), start(t, b, "c")
	old := a.own(t, "s")[0]
	if err := old.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost, err := c.Claim(t.Context(), "s", c.lease)
	if err != nil {
		t.Fatal(err)
	}
	b.Exec(t, `UPDATE acp_head SET epoch = 1, claim = 1, node = 'a' WHERE id = $1`, "s")
	again, err := a.Claim(t.Context(), "s", a.lease)
	if err != nil {
		t.Fatal(err)
	}
	if lost.Epoch() != again.Epoch() {
		t.Errorf("epochs %d and %d", lost.Epoch(), again.Epoch())
	}
	_, err = lost.Append(t.Context(), records("no")...)
	wantIs(t, "append with the claim that was lost", err, engine.ErrFenced)
	appendTexts(t, again, "1")
	if got := a.whole(t, "s"); len(got) != 1 {
		t.Errorf("%d records", len(got))
	}
}

// testFencedInGroup: a fenced session does not hurt those with which it is committed.
func testFencedInGroup(t *testing.T, b Backend) {
	// An engine that commits nothing shows what it would have committed.
	refused := errors.New("refused")
	shown := make(chan engine.Batch, 2)
	a := start(t, b, "a", func(db engine.Database) engine.Database {
		return &hooked{db, func(_ context.Context, batches []engine.Batch, _ func() ([]bool, error)) ([]bool, error) {
			shown <- batches[0]
			return nil, refused
		}}
	})
	c := start(t, b, "c")
	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprintf("s%d", i))
	}
	var group []engine.Batch
	for _, o := range a.own(t, ids...) {
		_, err := o.Append(t.Context(), records(o.Session(), "x")...)
		wantIs(t, "append", err, refused)
		first, again := <-shown, <-shown
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("another batch was sent the second time (-first +second):\n%s", diff)
		}
		group = append(group, first)
	}
	b.lapse(t, "a")
	if _, err := c.Claim(t.Context(), "s7", c.lease); err != nil {
		t.Fatal(err)
	}
	db := b.Open(t)
	defer db.Close()
	ok, err := db.Append(t.Context(), group)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		want := 2
		if i == 7 {
			want = 0
		}
		if got := c.whole(t, id); len(got) != want || ok[i] != (want > 0) {
			t.Errorf("session %s has %d records, committed: %v", id, len(got), ok[i])
		}
	}
	// The same again is refused: the heads have moved on.
	if ok, err := db.Append(t.Context(), group); err != nil || slices.Contains(ok, true) {
		t.Errorf("the second time: %v, %v", ok, err)
	}
}

// testClaim: claims of the same node, after a release, without a lease, of nothing.
func testClaim(t *testing.T, b Backend) {
	a, c := start(t, b, "a"), start(t, b, "c")
	first := a.own(t, "s")[0]
	second, err := a.Claim(t.Context(), "s", a.lease)
	if err != nil {
		t.Fatal(err)
	}
	_, err = first.Append(t.Context(), records("no")...)
	wantIs(t, "append with the first handle", err, engine.ErrFenced)
	appendTexts(t, second, "1")
	if err := second.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = second.Append(t.Context(), records("no")...)
	wantIs(t, "append after release", err, engine.ErrReleased)
	third, err := c.Claim(t.Context(), "s", c.lease)
	if err != nil {
		t.Fatal(err)
	}
	if third.Epoch() != 3 || third.Session() != "s" {
		t.Errorf("the handle of %q has epoch %d", third.Session(), third.Epoch())
	}
	_, err = a.Claim(t.Context(), "none", a.lease)
	wantIs(t, "claim of nothing", err, engine.ErrNotFound)
	b.lapse(t, "a")
	_, err = a.Claim(t.Context(), "s", a.lease)
	wantIs(t, "claim with a lapsed lease", err, engine.ErrLapsed)
	if err := c.lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := a.Lease(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Claim(t.Context(), "s", again); err != nil {
		t.Errorf("claim after the lease of the owner was released: %v", err)
	}
	_, err = c.Claim(t.Context(), "s", c.lease)
	wantIs(t, "claim with a released lease", err, engine.ErrLapsed)
}

// testClaimRace: of two nodes that claim free sessions at the same time, one gets each.
func testClaimRace(t *testing.T, b Backend) {
	nodes := []*node{start(t, b, "a"), start(t, b, "c")}
	const sessions = 30
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
					if _, err := o.Append(t.Context(), records(n.lease.Node())...); err != nil {
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
		if got := nodes[0].whole(t, fmt.Sprint(i)); len(got) != 1 {
			t.Errorf("session %d has %d records", i, len(got))
		}
	}
}

// testLease: the deadline is counted from before the request; who loses the lease gets to know.
func testLease(t *testing.T, b Backend) {
	a := start(t, b, "a")
	before := time.Now()
	l, err := a.Lease(t.Context(), "n")
	after := time.Now()
	if err != nil {
		t.Fatal(err)
	}
	const until = time.Hour * 4 / 5
	if d := l.Deadline(); d.Before(before.Add(until)) || d.After(after.Add(until)) {
		t.Errorf("deadline %v, want %v after %v to %v", d, until, before, after)
	}
	first := l.Deadline()
	if err := l.Renew(t.Context()); err != nil || !l.Deadline().After(first) {
		t.Errorf("renewed from %v to %v: %v", first, l.Deadline(), err)
	}
	second, err := a.Lease(t.Context(), "n") // a process that was restarted
	if err != nil {
		t.Fatal(err)
	}
	wantIs(t, "renew of a lease that was taken", l.Renew(t.Context()), engine.ErrLapsed)
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("release of a lease that was taken: %v", err)
	}
	if err := second.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	b.lapse(t, "n")
	wantIs(t, "renew of a lapsed lease", second.Renew(t.Context()), engine.ErrLapsed)
	_, err = a.Lease(t.Context(), "")
	wantIs(t, "a node without a name", err, engine.ErrInvalid)
}

// testUnknown: what became of an append that failed is found out.
func testUnknown(t *testing.T, b Backend) {
	broken := errors.New("the connection was lost")
	var fault atomic.Pointer[func([]engine.Batch, func() ([]bool, error)) ([]bool, error)]
	n := start(t, b, "a", func(db engine.Database) engine.Database {
		return &hooked{db, func(_ context.Context, batches []engine.Batch, next func() ([]bool, error)) ([]bool, error) {
			if f := fault.Swap(nil); f != nil { // once
				return (*f)(batches, next)
			}
			return next()
		}}
	})
	c := start(t, b, "c")
	commitThenFail := func(_ []engine.Batch, next func() ([]bool, error)) ([]bool, error) {
		_, err := next()
		return nil, errors.Join(broken, err)
	}
	takeOver := func(id string) {
		b.lapse(t, "a")
		if _, err := c.Claim(context.Background(), id, c.lease); err != nil {
			t.Error(err)
		}
	}
	for _, test := range []unknownCase{
		{name: "committed", fault: commitThenFail},
		{name: "not committed", fault: func([]engine.Batch, func() ([]bool, error)) ([]bool, error) { return nil, broken }},
		{name: "refused without a reason", fault: func(b []engine.Batch, _ func() ([]bool, error)) ([]bool, error) { return make([]bool, len(b)), nil }},
		{name: "twice not committed", want: broken, fault: func([]engine.Batch, func() ([]bool, error)) ([]bool, error) {
			again := func([]engine.Batch, func() ([]bool, error)) ([]bool, error) { return nil, broken }
			fault.Store(&again)
			return nil, broken
		}},
		{name: "committed at the second time", fault: func([]engine.Batch, func() ([]bool, error)) ([]bool, error) {
			fault.Store(&commitThenFail)
			return nil, broken
		}},
		{name: "deposed", want: engine.ErrFenced, fault: func(b []engine.Batch, _ func() ([]bool, error)) ([]bool, error) {
			takeOver(b[0].Session)
			return nil, broken
		}},
		{name: "deleted", want: engine.ErrDeleted, fault: func(b []engine.Batch, _ func() ([]bool, error)) ([]bool, error) {
			_, err := c.Delete(context.Background(), b[0].Session)
			return nil, errors.Join(broken, err)
		}},
		{name: "failover that lost records", want: engine.ErrLost, lost: true, fault: func(batches []engine.Batch, _ func() ([]bool, error)) ([]bool, error) {
			b.rollBack(t, batches[0].Session, 1)
			return nil, broken
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := test.name
			lease, err := n.Lease(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := n.Create(t.Context(), engine.Session{ID: id}); err != nil {
				t.Fatal(err)
			}
			o, err := n.Claim(t.Context(), id, lease)
			if err != nil {
				t.Fatal(err)
			}
			appendTexts(t, o, "1")
			appendTexts(t, o, "2")
			fault.Store(&test.fault)
			test.check(t, n, c, o, broken)
		})
	}
}

// An unknownCase is a fault of a database during an append, and what the append returns.
type unknownCase struct {
	name  string
	fault func([]engine.Batch, func() ([]bool, error)) ([]bool, error)
	want  error // nil: acknowledged
	lost  bool
}

// check appends to a session with two records. passes is the error after which the session is usable.
func (test unknownCase) check(t *testing.T, n, c *node, o *engine.Owned, passes error) {
	id := o.Session()
	recs, err := o.Append(t.Context(), records("3", "4")...)
	if test.want != nil {
		wantIs(t, "append", err, test.want)
	} else if err != nil || recs[1].Seq != 4 {
		t.Errorf("append: %v, %v", recs, err)
	}
	if test.lost {
		wantDamage(t, "append", err, id, 2, engine.ErrLost)
		wantDamage(t, "alarm", <-n.alarms, id, 2, engine.ErrLost)
		_, err = c.Claim(t.Context(), id, c.lease)
		wantDamage(t, "claim by the other node", err, id, 2, engine.ErrLost)
		return
	}
	if test.want != nil && test.want != passes {
		return
	}
	appendTexts(t, o, "5")
	want := []string{"1", "2", "3", "4", "5"}
	if test.want != nil {
		want = []string{"1", "2", "5"}
	}
	var got []string
	for _, r := range n.whole(t, id) {
		got = append(got, string(r.Data))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

// rollBack makes a log end at a record, consistently, as a failover does.
func (b Backend) rollBack(t testing.TB, session string, seq int) {
	t.Helper()
	b.Exec(t, `UPDATE acp_head SET seq = $2, hash = (SELECT r.hash FROM acp_record r WHERE r.n = acp_head.n AND r.seq = $2) WHERE id = $1`, session, seq)
	b.Exec(t, `DELETE FROM acp_record WHERE seq > $2 AND n = (SELECT n FROM acp_head WHERE id = $1)`, session, seq)
}

// testDamage: damage is noticed when it is read, marks its session for ever, and no other one.
func testDamage(t *testing.T, b Backend) {
	n := start(t, b, "a")
	const record = ` WHERE n = (SELECT n FROM acp_head WHERE id = $1) AND seq = 3`
	for i, test := range []struct {
		name, exec string
		seq        uint64 // where it is noticed
		whole      int    // how many records come before
	}{
		{"data", `UPDATE acp_record SET data = '\x41'` + record, 3, 2},
		{"kind", `UPDATE acp_record SET kind = 'other'` + record, 3, 2},
		{"epoch", `UPDATE acp_record SET epoch = 2` + record, 3, 2},
		{"time", `UPDATE acp_record SET time = time + 1` + record, 3, 2},
		{"a missing record", `DELETE FROM acp_record` + record, 3, 2},
		{"a number", `UPDATE acp_record SET seq = 9` + record, 3, 2},
		{"the head", `UPDATE acp_head SET hash = (SELECT hash FROM acp_record` + record + `) WHERE id = $1`, 5, 5},
		{"records of another session", `UPDATE acp_record SET n = -n WHERE n = (SELECT n FROM acp_head WHERE id = $1)`, 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			id, other := fmt.Sprintf("s%d", i), fmt.Sprintf("o%d", i)
			both := n.own(t, id, other)
			appendTexts(t, both[0], "1", "2", "3", "4", "5")
			appendTexts(t, both[1], "1")
			b.Exec(t, test.exec, id)
			for range 2 {
				got, err := n.read(t, id, 0)
				wantDamage(t, "read", err, id, test.seq, engine.ErrChain)
				if len(got) != test.whole {
					t.Errorf("%d whole records, want %d", len(got), test.whole)
				}
			}
			wantDamage(t, "alarm", <-n.alarms, id, test.seq, engine.ErrChain)
			_, err := both[0].Append(t.Context(), records("6")...)
			wantDamage(t, "append", err, id, test.seq, engine.ErrChain)
			_, err = n.Claim(t.Context(), id, n.lease)
			wantDamage(t, "claim", err, id, test.seq, engine.ErrChain)
			_, err = n.Head(t.Context(), id)
			wantDamage(t, "head", err, id, test.seq, engine.ErrChain)
			if s, err := n.Session(t.Context(), id); err != nil || s.Damaged == "" {
				t.Errorf("the session is marked %q, %v", s.Damaged, err)
			}
			for _, err := range n.Follow(t.Context(), id, 0) {
				if err != nil {
					wantDamage(t, "follow", err, id, test.seq, engine.ErrChain)
				}
			}
			appendTexts(t, both[1], "2")
			if got := n.whole(t, other); len(got) != 2 {
				t.Errorf("the other session has %d records", len(got))
			}
			if _, err := n.Delete(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
	if len(n.alarms) > 0 {
		t.Errorf("one more alarm: %v", <-n.alarms)
	}
}

// testClaimDamaged: a claim compares the last record with the head, and finds none behind it.
func testClaimDamaged(t *testing.T, b Backend) {
	n := start(t, b, "a")
	for i, test := range []struct {
		exec string
		seq  uint64
	}{
		{`UPDATE acp_record SET hash = (SELECT r.hash FROM acp_record r WHERE r.n = acp_record.n AND r.seq = 2) WHERE seq = 3 AND n = (SELECT n FROM acp_head WHERE id = $1)`, 3},
		{`DELETE FROM acp_record WHERE seq = 3 AND n = (SELECT n FROM acp_head WHERE id = $1)`, 3},
		{`INSERT INTO acp_record SELECT n, 4, epoch, time, kind, data, hash FROM acp_record WHERE seq = 3 AND n = (SELECT n FROM acp_head WHERE id = $1)`, 4},
	} {
		id := fmt.Sprintf("s%d", i)
		appendTexts(t, n.own(t, id)[0], "1", "2", "3")
		b.Exec(t, test.exec, id)
		for range 2 {
			_, err := n.Claim(t.Context(), id, n.lease)
			wantDamage(t, "claim", err, id, test.seq, engine.ErrChain)
		}
		wantDamage(t, "alarm", <-n.alarms, id, test.seq, engine.ErrChain)
	}
}

// testVerify: a session that was repaired can be used again, and one that was not cannot.
func testVerify(t *testing.T, b Backend) {
	n := start(t, b, "a")
	o := n.own(t, "s")[0]
	appendTexts(t, o, "1", "2", "3")
	verify := func() error { return n.Verify(t.Context(), "s") }
	if err := verify(); err != nil {
		t.Error(err)
	}
	const change = `UPDATE acp_record SET kind = $1 WHERE seq = 2`
	b.Exec(t, change, "other")
	for range 2 {
		wantDamage(t, "verify", verify(), "s", 2, engine.ErrChain)
		wantDamage(t, "alarm", <-n.alarms, "s", 2, engine.ErrChain)
	}
	b.Exec(t, change, "text")
	_, err := n.Claim(t.Context(), "s", n.lease)
	wantDamage(t, "claim", err, "s", 2, engine.ErrChain)
	if err := verify(); err != nil {
		t.Error(err)
	}
	if o, err = n.Claim(t.Context(), "s", n.lease); err != nil {
		t.Fatal(err)
	}
	appendTexts(t, o, "4")
	if got := n.whole(t, "s"); len(got) != 4 {
		t.Errorf("%d records", len(got))
	}
	wantIs(t, "verify nothing", n.Verify(t.Context(), "none"), engine.ErrNotFound)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	b.rollBack(t, "s", 3)
	n = start(t, b, "a")
	wantDamage(t, "verify", verify(), "s", 4, engine.ErrLost)
	_, err = n.Claim(t.Context(), "s", n.lease)
	wantDamage(t, "claim", err, "s", 4, engine.ErrLost)
}

// testLostTail: a log that was rolled back, and is consistent, is noticed by who has seen its end.
func testLostTail(t *testing.T, b Backend) {
	for i, test := range []struct {
		name string
		use  func(n *node, id string) error
	}{
		{"claim", func(n *node, id string) error { _, err := n.Claim(context.Background(), id, n.lease); return err }},
		{"head", func(n *node, id string) error { _, err := n.Head(context.Background(), id); return err }},
		{"read", func(n *node, id string) error {
			return n.Read(context.Background(), id, 0, func(engine.Record) error { return nil })
		}},
		{"read after the end", func(n *node, id string) error {
			return n.Read(context.Background(), id, 3, func(engine.Record) error { return nil })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := fmt.Sprintf("s%d", i)
			a := start(t, b, "a")
			o := a.own(t, id)[0]
			appendTexts(t, o, "1", "2", "3")
			if err := a.Close(); err != nil { // the witness has everything then
				t.Fatal(err)
			}
			b.rollBack(t, id, 2)
			again := start(t, b, "a")
			err := test.use(again, id)
			wantDamage(t, "use", err, id, 3, engine.ErrLost)
			wantDamage(t, "alarm", <-again.alarms, id, 3, engine.ErrLost)
			_, err = again.Claim(t.Context(), id, again.lease)
			wantDamage(t, "claim", err, id, 3, engine.ErrLost)
		})
	}
	// A log that has other records now, and more of them.
	a := start(t, b, "a")
	o := a.own(t, "other")[0]
	appendTexts(t, o, "1", "2", "3")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b.rollBack(t, "other", 2)
	elsewhere := start(t, Backend{Open: b.Open, Witness: newWitness, Exec: b.Exec}, "a")
	o, err := elsewhere.Claim(t.Context(), "other", elsewhere.lease)
	if err != nil {
		t.Fatal(err)
	}
	appendTexts(t, o, "x", "y")
	if err := elsewhere.Close(); err != nil {
		t.Fatal(err)
	}
	again := start(t, b, "a")
	_, err = again.read(t, "other", 0)
	wantDamage(t, "read", err, "other", 3, engine.ErrChain)
}

// newWitness is a witness that forgets.
func newWitness(testing.TB) engine.Witness { return blind{} }

type blind struct{}

func (blind) Seen(context.Context, string) (engine.Head, error)  { return engine.Head{}, nil }
func (blind) Note(context.Context, map[string]engine.Head) error { return nil }
func (blind) Forget(context.Context, string) error               { return nil }
func (blind) Close() error                                       { return nil }
