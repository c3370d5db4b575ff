// Package enginetest is the suite that every engine passes, wherever it keeps sessions. What package journaltest tests of
// records it does not test again. For tests only.
package enginetest

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// A Fixture is an empty log to be tested.
type Fixture struct {
	// Open opens the log once more, as another process or node does.
	Open func(t testing.TB, node string, o engine.Options) *engine.Engine
	// Exec runs a statement in the database, behind its back. It is nil where sessions are files.
	Exec func(t testing.TB, query string, args ...any)
	// Damage damages a record, and Cut removes those that follow one. Nobody has the session then.
	Damage, Cut func(t testing.TB, session string, seq uint64)
}

// SQL returns the fixture of a database.
func SQL(open func(testing.TB) engine.Database, witness func(testing.TB) engine.Witness, exec func(t testing.TB, query string, args ...any)) Fixture {
	const of = ` AND n = (SELECT n FROM acp_head WHERE id = $1)`
	return Fixture{
		Open: func(t testing.TB, _ string, o engine.Options) *engine.Engine {
			return engine.New(open(t), witness(t), o)
		},
		Exec: exec,
		Damage: func(t testing.TB, session string, seq uint64) {
			exec(t, `UPDATE acp_record SET data = '\x41' WHERE seq = $2`+of, session, int64(seq))
		},
		Cut: func(t testing.TB, session string, seq uint64) {
			exec(t, `UPDATE acp_head SET seq = $2, hash = (SELECT r.hash FROM acp_record r WHERE r.n = acp_head.n AND r.seq = $2) WHERE id = $1`, session, int64(seq))
			exec(t, `DELETE FROM acp_record WHERE seq > $2`+of, session, int64(seq))
		},
	}
}

// Run runs the suite. fresh makes a fixture for each test.
func Run(t *testing.T, fresh func(testing.TB) Fixture) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Fixture)
	}{
		{"Sessions", testSessions},
		{"Invalid", testInvalid},
		{"Update", testUpdate},
		{"UpdateReleased", testUpdateReleased},
		{"State", testState},
		{"Lists", testLists},
		{"Shares", testShares},
		{"Delete", testDelete},
		{"DeleteElsewhere", testDeleteElsewhere},
		{"Append", testAppend},
		{"Claim", testClaim},
		{"ClaimRace", testClaimRace},
		{"Owner", testOwner},
		{"Damage", testDamage},
		{"LostTail", testLostTail},
		{"Anchor", testAnchor},
		{"Publish", testPublish},
		{"Close", testClose},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, fresh(t)) })
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, Fixture)
	}{
		{"Lease", testLease},
		{"Lapse", testLapse},
		{"LostClaim", testLostClaim},
		{"Nodes", testNodes},
	} {
		if f := fresh(t); f.Exec != nil {
			t.Run(test.name, func(t *testing.T) { test.run(t, f) })
		}
	}
}

// says is what records say in these tests.
func says(r *engine.Record) (said engine.Said) {
	switch r.Kind {
	case journal.KindEnd:
		_ = json.Unmarshal(r.Data, &said.State) // or nothing
	case journal.KindShared:
		_ = json.Unmarshal(r.Data, &said.Share)
	}
	return said
}

// A node is an engine with a lease.
type node struct {
	*engine.Engine
	lease  *engine.Lease
	alarms chan error
}

// start opens an engine, which is closed with the test.
func start(t testing.TB, f Fixture, name string) *node {
	t.Helper()
	n := &node{alarms: make(chan error, 100)}
	// Long leases: how busy the machine is must not matter. What has to lapse is made to.
	n.Engine = f.Open(t, name, engine.Options{
		LeaseTTL: time.Hour, Says: says,
		Alarm: func(_ string, err error) { n.alarms <- err },
	})
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	var err error
	if n.lease, err = n.Lease(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	return n
}

// own creates sessions and claims them.
func (n *node) own(t testing.TB, ids ...string) (all []*engine.Owned) {
	t.Helper()
	for _, id := range ids {
		if _, err := n.Create(t.Context(), engine.Session{ID: id}); err != nil {
			t.Fatal(err)
		}
		all = append(all, n.claim(t, id))
	}
	return all
}

func (n *node) claim(t testing.TB, id string) *engine.Owned {
	t.Helper()
	o, err := n.Claim(t.Context(), id, n.lease)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// texts makes records of texts.
func texts(kind engine.Kind, texts ...string) (all []engine.Record) {
	for _, text := range texts {
		data, _ := json.Marshal(text) // a string cannot fail
		all = append(all, engine.Record{Kind: kind, Data: data})
	}
	return all
}

// add appends texts, each as a record.
func add(t testing.TB, o *engine.Owned, all ...string) []engine.Record {
	t.Helper()
	recs, err := o.Append(t.Context(), texts(journal.KindPrompt, all...)...)
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

// read returns the texts that a session has.
func (n *node) read(t testing.TB, session string) (all []string, err error) {
	t.Helper()
	err = n.Read(t.Context(), session, 0, func(r engine.Record) error {
		if text := ""; r.Kind == journal.KindPrompt && json.Unmarshal(r.Data, &text) == nil {
			all = append(all, text)
		}
		return nil
	})
	return all, err
}

// wantTexts fails unless a session has texts, and is whole.
func (n *node) wantTexts(t testing.TB, session string, want ...string) {
	t.Helper()
	if got, err := n.read(t, session); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s has %q, %v; want %q", session, got, err, want)
	}
}

// wantIs fails unless an error is one.
func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// wantDamage fails unless an error says what is damaged of a session.
func wantDamage(t testing.TB, what string, err error, session string, lost []journal.Range, missing uint64) {
	t.Helper()
	bad, ok := errors.AsType[*engine.DamageError](err)
	if !ok || bad.ID != session || !slices.Equal(bad.Lost, lost) || bad.Missing != missing {
		t.Errorf("%s: error %v, want that %v and the last %d of %q are lost", what, err, lost, missing, session)
	}
}
