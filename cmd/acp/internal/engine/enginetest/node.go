package enginetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

func (f Fixture) lapse(t testing.TB, node string) {
	f.Exec(t, `UPDATE acp_lease SET expires = 0 WHERE node = $1`, node)
}

// testLease: the deadline is counted from before the request; who loses the lease gets to know.
func testLease(t *testing.T, f Fixture) {
	a := start(t, f, "a")
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
	f.lapse(t, "n")
	wantIs(t, "renew of a lapsed lease", second.Renew(t.Context()), engine.ErrLapsed)
	_, err = a.Lease(t.Context(), "")
	wantIs(t, "a node without a name", err, engine.ErrInvalid)
}

// testLapse: when a lease has lapsed another node takes the session, and the old owner is refused.
func testLapse(t *testing.T, f Fixture) {
	a, c := start(t, f, "a"), start(t, f, "c")
	all := a.own(t, "s", "t")
	add(t, all[0], "1")
	f.lapse(t, "a")
	next := c.claim(t, "s")
	if next.Epoch() != all[0].Epoch()+1 || next.Head() != all[0].Head() {
		t.Errorf("the new owner has epoch %d, head %v", next.Epoch(), next.Head())
	}
	for range 2 {
		_, err := all[0].Append(t.Context(), texts(journal.KindPrompt, "no")...)
		wantIs(t, "append of the old owner", err, engine.ErrFenced)
	}
	if err := all[0].Release(t.Context()); err != nil {
		t.Errorf("release by the old owner: %v", err)
	}
	add(t, next, "2")
	c.wantTexts(t, "s", "1", "2")
	add(t, all[1], "1") // a session that nobody has taken is not affected
	_, err := a.Claim(t.Context(), "t", a.lease)
	wantIs(t, "claim with a lapsed lease", err, engine.ErrLapsed)
	if err := c.lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.lease, err = a.Lease(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	a.claim(t, "s") // the lease of its owner was released
	_, err = c.Claim(t.Context(), "s", c.lease)
	wantIs(t, "claim with a released lease", err, engine.ErrLapsed)
}

// testLostClaim: a failover that loses a claim gives its epoch out again; still only one of the two owners
// of that epoch can append.
func testLostClaim(t *testing.T, f Fixture) {
	a, c := start(t, f, "a"), start(t, f, "c")
	old := a.own(t, "s")[0]
	if err := old.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost := c.claim(t, "s")
	f.Exec(t, `UPDATE acp_head SET epoch = 1, claim = 1, node = 'a' WHERE id = $1`, "s")
	again := a.claim(t, "s")
	if lost.Epoch() != again.Epoch() {
		t.Errorf("epochs %d and %d", lost.Epoch(), again.Epoch())
	}
	_, err := lost.Append(t.Context(), texts(journal.KindPrompt, "no")...)
	wantIs(t, "append with the claim that was lost", err, engine.ErrFenced)
	add(t, again, "1")
	a.wantTexts(t, "s", "1")
}

// testNodes: nodes find one another.
func testNodes(t *testing.T, f Fixture) {
	one, two := start(t, f, "one"), start(t, f, "two")
	describe := func(l *engine.Lease, info string, want error) {
		t.Helper()
		wantIs(t, "describe", l.Describe(t.Context(), json.RawMessage(info)), want)
	}
	describe(one.lease, `{"at":"here"}`, nil)
	describe(two.lease, "", nil)
	describe(one.lease, `{"at":"there"}`, nil)
	describe(two.lease, "{", engine.ErrInvalid)
	if err := two.lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	nodes := func(want ...engine.Node) {
		t.Helper()
		got, err := two.Nodes(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
	there := engine.Node{Name: "one", Info: json.RawMessage(`{"at":"there"}`), Live: true}
	nodes(there, engine.Node{Name: "two"})
	wantIs(t, "forgotten while it is live", two.ForgetNode(t.Context(), "one"), engine.ErrNotFound)
	wantIs(t, "forgotten", one.ForgetNode(t.Context(), "two"), nil)
	wantIs(t, "forgotten twice", one.ForgetNode(t.Context(), "two"), engine.ErrNotFound)
	nodes(there)
	describe(two.lease, "", engine.ErrLapsed)
}
