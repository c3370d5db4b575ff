// Package enginetest is the suite that every database of package engine passes. For tests only.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// A Backend is an empty database to be tested.
type Backend struct {
	// Open opens the database as one more node does.
	Open func(testing.TB) engine.Database
	// Witness opens a witness; each call returns one on the same file.
	Witness func(testing.TB) engine.Witness
	// Exec runs a statement in the database, behind its back.
	Exec func(t testing.TB, query string, args ...any)
}

// Run runs the suite. fresh makes a backend for each test.
func Run(t *testing.T, fresh func(testing.TB) Backend) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Backend)
	}{
		{"Records", testRecords},
		{"Invalid", testInvalid},
		{"Concurrent", testConcurrent},
		{"Fence", testFence},
		{"LostClaim", testLostClaim},
		{"FencedInGroup", testFencedInGroup},
		{"Claim", testClaim},
		{"ClaimRace", testClaimRace},
		{"Lease", testLease},
		{"Nodes", testNodes},
		{"Publish", testPublish},
		{"Unknown", testUnknown},
		{"Damage", testDamage},
		{"ClaimDamaged", testClaimDamaged},
		{"Verify", testVerify},
		{"LostTail", testLostTail},
		{"Compact", testCompact},
		{"CompactDamage", testCompactDamage},
		{"CompactRead", testCompactRead},
		{"CompactFails", testCompactFails},
		{"Sessions", testSessions},
		{"Shares", testShares},
		{"Update", testUpdate},
		{"Paging", testPaging},
		{"State", testState},
		{"Delete", testDelete},
		{"DeleteWhileOwned", testDeleteWhileOwned},
		{"Follow", testFollow},
		{"FollowLag", testFollowLag},
		{"FollowEnds", testFollowEnds},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, fresh(t)) })
	}
}

// A node is an engine with a lease.
type node struct {
	*engine.Engine
	lease  *engine.Lease
	alarms chan error
}

// start opens an engine. change may replace its database.
func start(t testing.TB, b Backend, name string, change ...func(engine.Database) engine.Database) *node {
	t.Helper()
	db := b.Open(t)
	for _, f := range change {
		db = f(db)
	}
	n := &node{alarms: make(chan error, 100)}
	// Long leases: how busy the machine is must not matter. What has to lapse is made to.
	n.Engine = engine.New(db, b.Witness(t), engine.Options{
		LeaseTTL: time.Hour,
		Alarm:    func(_ string, err error) { n.alarms <- err },
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
		o, err := n.Claim(t.Context(), id, n.lease)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// append appends texts, each as a record.
func appendTexts(t testing.TB, o *engine.Owned, texts ...string) []engine.Record {
	t.Helper()
	recs, err := o.Append(t.Context(), records(texts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

func records(texts ...string) (all []engine.Record) {
	for _, text := range texts {
		all = append(all, engine.Record{Kind: "text", Data: []byte(text)})
	}
	return all
}

// read returns what follows a record.
func (n *node) read(t testing.TB, session string, after uint64) ([]engine.Record, error) {
	t.Helper()
	var all []engine.Record
	err := n.Read(t.Context(), session, after, func(r engine.Record) error {
		all = append(all, r)
		return nil
	})
	return all, err
}

// whole reads a log that must be whole.
func (n *node) whole(t testing.TB, session string) []engine.Record {
	t.Helper()
	all, err := n.read(t, session, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range all {
		if r.Seq != uint64(i+1) {
			t.Fatalf("record %d has number %d", i+1, r.Seq)
		}
	}
	return all
}

// wantIs fails unless an error is one.
func wantIs(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// wantDamage fails unless an error says that a session is damaged.
func wantDamage(t testing.TB, what string, err error, session string, seq uint64, why error) {
	t.Helper()
	bad, ok := errors.AsType[*engine.DamageError](err)
	if !ok || bad.Session != session || bad.Seq != seq || !errors.Is(err, why) {
		t.Errorf("%s: error %v, want damage of %q at %d: %v", what, err, session, seq, why)
	}
}

func (b Backend) lapse(t testing.TB, node string) {
	b.Exec(t, `UPDATE acp_lease SET expires = 0 WHERE node = $1`, node)
}

// A hooked database has its appends changed.
type hooked struct {
	engine.Database
	append func(ctx context.Context, batches []engine.Batch, next func() ([]bool, error)) ([]bool, error)
}

func (h *hooked) Append(ctx context.Context, batches []engine.Batch) ([]bool, error) {
	return h.append(ctx, batches, func() ([]bool, error) { return h.Database.Append(ctx, batches) })
}

// testRecords: what was appended is read as it was, numbered without gaps, in a chain.
func testRecords(t *testing.T, b Backend) {
	n := start(t, b, "a")
	o := n.own(t, "s")[0]
	at := time.Date(2026, 11, 26, 1, 2, 3, 456789012, time.FixedZone("x", 3600))
	binary := []byte{0, 255, 128, '\n'}
	first, err := o.Append(t.Context(),
		engine.Record{Kind: "frame", Data: binary, Time: at, Seq: 77, Epoch: 9, Hash: [32]byte{1}},
		engine.Record{Kind: "", Data: nil},
		engine.Record{Kind: "ünïcode", Data: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	second := appendTexts(t, o, "d")
	if none, err := o.Append(t.Context()); err != nil || none != nil {
		t.Errorf("an append of nothing: %v, %v", none, err)
	}
	want := append(first, second...)
	if want[0].Epoch != 1 || !want[0].Time.Equal(at) || want[1].Time.IsZero() {
		t.Errorf("the first records are %+v", want[:2])
	}
	got := n.whole(t, "s")
	if got[1].Data == nil {
		got[1].Data = []byte{}
	}
	want[1].Data = []byte{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read after append (-want +got):\n%s", diff)
	}
	seen := map[[32]byte]bool{}
	for _, r := range got {
		seen[r.Hash] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d different hashes of 4 records", len(seen))
	}
	for after := range uint64(5) {
		part, err := n.read(t, "s", after)
		if err != nil {
			t.Fatal(err)
		}
		if len(part) != int(4-after) || len(part) > 0 && part[0].Seq != after+1 {
			t.Errorf("after %d: %d records", after, len(part))
		}
	}
	_, err = n.read(t, "s", 5)
	wantIs(t, "read beyond the end", err, engine.ErrBeyond)
	h, err := n.Head(t.Context(), "s")
	if want := (engine.Head{Seq: 4, Hash: got[3].Hash}); err != nil || h != want || o.Head() != want {
		t.Errorf("head %v, %v, of the handle %v; want %v", h, err, o.Head(), want)
	}
	stop := errors.New("stop")
	if err := n.Read(t.Context(), "s", 0, func(engine.Record) error { return stop }); err != stop {
		t.Errorf("the error of yield becomes %v", err)
	}
	_, err = n.read(t, "none", 0)
	wantIs(t, "read of no session", err, engine.ErrNotFound)
	_, err = n.Head(t.Context(), "none")
	wantIs(t, "head of no session", err, engine.ErrNotFound)
}

// testInvalid: what some database would refuse is refused before it gets to one.
func testInvalid(t *testing.T, b Backend) {
	n := start(t, b, "a")
	o := n.own(t, "s")[0]
	for name, recs := range map[string][]engine.Record{
		"a NUL":            {{Kind: "a\x00b"}},
		"not UTF-8":        {{Kind: "\xff"}},
		"a long kind":      {{Kind: string(make([]byte, engine.MaxName+1))}},
		"a large record":   {{Data: make([]byte, engine.MaxData+1)}},
		"too many records": make([]engine.Record, engine.MaxRecords+1),
		"a strange time":   {{Time: time.Date(5000, 1, 1, 0, 0, 0, 0, time.UTC)}},
	} {
		_, err := o.Append(t.Context(), recs...)
		wantIs(t, name, err, engine.ErrInvalid)
	}
	if _, err := o.Append(t.Context(), engine.Record{Data: make([]byte, engine.MaxData)}); err != nil {
		t.Errorf("the largest record: %v", err)
	}
	if _, err := o.Append(t.Context(), make([]engine.Record, engine.MaxRecords)...); err != nil {
		t.Errorf("the most records: %v", err)
	}
	if got := n.whole(t, "s"); len(got) != 1+engine.MaxRecords || len(got[0].Data) != engine.MaxData {
		t.Errorf("%d records", len(got))
	}
	for name, s := range map[string]engine.Session{
		"no id":           {},
		"a NUL":           {ID: "a\x00"},
		"not UTF-8":       {ID: "a", Title: "\xff"},
		"a long title":    {ID: "a", Title: string(make([]byte, engine.MaxText+1))},
		"not JSON":        {ID: "a", Attributes: []byte("{")},
		"many attributes": {ID: "a", Attributes: append([]byte{'1'}, make([]byte, engine.MaxValue)...)},
	} {
		_, err := n.Create(t.Context(), s)
		wantIs(t, name, err, engine.ErrInvalid)
	}
	_, err := n.List(t.Context(), engine.Query{Cursor: "?"})
	wantIs(t, "cursor", err, engine.ErrInvalid)
}

// testConcurrent: fifty sessions are appended to by four goroutines each. Each session's records are
// whole and in order, each append is in one piece, and no transaction is larger than allowed.
func testConcurrent(t *testing.T, b Backend) {
	var mu sync.Mutex
	most := 0
	n := start(t, b, "a", func(db engine.Database) engine.Database {
		return &hooked{db, func(_ context.Context, batches []engine.Batch, next func() ([]bool, error)) ([]bool, error) {
			count := 0
			for _, b := range batches {
				count += len(b.Records)
			}
			mu.Lock()
			most = max(most, count)
			mu.Unlock()
			return next()
		}}
	})
	const sessions, writers, rounds = 50, 4, 5
	var ids []string
	for i := range sessions {
		ids = append(ids, fmt.Sprintf("s%d", i))
	}
	var wg sync.WaitGroup
	for i, o := range n.own(t, ids...) {
		for w := range writers {
			wg.Go(func() {
				for r := range rounds {
					text := fmt.Sprintf("%d.%d.%d", i, w, r)
					recs, err := o.Append(t.Context(), records(text, text, text)...)
					if err != nil {
						t.Error(err)
						return
					}
					if recs[2].Seq != recs[0].Seq+2 || string(recs[0].Data) != text {
						t.Errorf("append %s became %v", text, recs)
					}
				}
			})
		}
	}
	wg.Wait()
	for i, id := range ids {
		next := map[string]int{}
		all := n.whole(t, id)
		for k := 0; k < len(all); k += 3 {
			var w string
			var s, r int
			text := string(all[k].Data)
			if _, err := fmt.Sscanf(text, "%d.%1s.%d", &s, &w, &r); err != nil || s != i || r != next[w] || string(all[k+1].Data) != text || string(all[k+2].Data) != text {
				t.Fatalf("session %s, record %d: %q is out of order", id, k, text)
			}
			next[w]++
		}
		if len(all) != writers*rounds*3 {
			t.Errorf("session %s has %d records", id, len(all))
		}
	}
	if most > engine.MaxRecords {
		t.Errorf("a transaction had %d records", most)
	}
}
