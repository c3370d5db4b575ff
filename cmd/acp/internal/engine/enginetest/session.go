package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// testSessions: attributes are kept as they are.
func testSessions(t *testing.T, b Backend) {
	n := start(t, b, "a")
	want := engine.Session{
		ID: "s/ü 1", Agent: "claude", AgentSession: "x", Cwd: "/tmp/a b", Title: "A title", Owner: "ann", State: "idle", Parent: "p",
		Attributes: json.RawMessage(`{"a": [1, "ü"]}`), Created: time.Unix(1, 2).UTC(), Updated: time.Unix(3, 4).UTC(),
	}
	if _, err := n.Create(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := n.Session(t.Context(), want.ID)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, err = n.Create(t.Context(), want)
	wantIs(t, "create again", err, engine.ErrExists)
	changed, err := n.Update(t.Context(), want.ID, func(s *engine.Session) error {
		s.Title, s.Attributes, s.ID, s.Created = "Another", nil, "other", time.Time{}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !changed.Updated.After(want.Updated) {
		t.Errorf("updated %v", changed.Updated)
	}
	want.Title, want.Attributes, want.Updated, want.Version = "Another", nil, changed.Updated, 1
	got, err = n.Session(t.Context(), want.ID)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("after the update: %v (-want +got):\n%s", err, diff)
	}
	stop := errors.New("stop")
	if _, err := n.Update(t.Context(), want.ID, func(*engine.Session) error { return stop }); err != stop {
		t.Errorf("the error of a change becomes %v", err)
	}
	_, err = n.Update(t.Context(), "none", func(*engine.Session) error { return nil })
	wantIs(t, "update of nothing", err, engine.ErrNotFound)
	o := n.own(t, "t")[0]
	appendTexts(t, o, "1", "2")
	if s, err := n.Session(t.Context(), "t"); err != nil || s.Epoch != 1 || s.Head != o.Head() || s.Attributes != nil {
		t.Errorf("a session with a log: %+v, %v", s, err)
	}
}

// testUpdate: no update is lost among those of others.
func testUpdate(t *testing.T, b Backend) {
	nodes := []*node{start(t, b, "a"), start(t, b, "c")}
	if _, err := nodes[0].Create(t.Context(), engine.Session{ID: "s", Attributes: json.RawMessage("0")}); err != nil {
		t.Fatal(err)
	}
	var done atomic.Int32
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 10 {
				_, err := nodes[i%2].Update(t.Context(), "s", func(s *engine.Session) error {
					var n int
					if err := json.Unmarshal(s.Attributes, &n); err != nil {
						return err
					}
					s.Attributes = json.RawMessage(fmt.Sprint(n + 1))
					return nil
				})
				switch {
				case err == nil:
					done.Add(1)
				case !errors.Is(err, engine.ErrConflict):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s, err := nodes[0].Session(t.Context(), "s")
	if want := fmt.Sprint(done.Load()); err != nil || string(s.Attributes) != want {
		t.Errorf("%s updates, want %s (%v)", s.Attributes, want, err)
	}
}

// testPaging: pages have each session once, in order, also where times are equal.
func testPaging(t *testing.T, b Backend) {
	n := start(t, b, "a")
	const sessions = 53
	for i := range sessions {
		s := engine.Session{ID: fmt.Sprintf("s%02d", i), Owner: []string{"ann", "bob"}[i%2], State: "idle", Created: time.Unix(int64(i/5), 0)}
		if _, err := n.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		q    engine.Query
		want int
	}{
		{engine.Query{Limit: 10}, sessions},
		{engine.Query{Limit: 53}, sessions},
		{engine.Query{Limit: 7, Owner: "bob"}, sessions / 2},
		{engine.Query{}, sessions},
		{engine.Query{Owner: "ann", State: "busy"}, 0},
		{engine.Query{Agent: "none"}, 0},
		{engine.Query{Parent: "none"}, 0},
	} {
		seen := map[string]bool{}
		last := time.Unix(1<<30, 0)
		q := test.q
		for pages := 0; ; pages++ {
			page, err := n.List(t.Context(), q)
			if err != nil || pages > sessions {
				t.Fatalf("page %d of %+v: %v", pages, test.q, err)
			}
			for _, s := range page.Sessions {
				if seen[s.ID] || s.Updated.After(last) || q.Owner != "" && s.Owner != q.Owner {
					t.Errorf("%+v: session %s at %v of %s after %v", test.q, s.ID, s.Updated, s.Owner, last)
				}
				seen[s.ID], last = true, s.Updated
			}
			if q.Limit > 0 && len(page.Sessions) > q.Limit {
				t.Errorf("%+v: a page of %d", test.q, len(page.Sessions))
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
		if len(seen) != test.want {
			t.Errorf("%+v: %d sessions, want %d", test.q, len(seen), test.want)
		}
	}
}

// testState: a state that comes with records is set with them, or not at all, and no update of others is overwritten.
func testState(t *testing.T, b Backend) {
	a, c := start(t, b, "a"), start(t, b, "c")
	all := a.own(t, "s", "other")
	is := func(id, state string) engine.Session {
		t.Helper()
		s, err := c.Session(t.Context(), id)
		if err != nil || s.State != state {
			t.Errorf("%s: state %q, want %q, %v", id, s.State, state, err)
		}
		return s
	}
	is("s", "")
	before := is("other", "")
	at := time.Unix(1_700_000_000, 5).UTC()
	if _, err := all[0].AppendState(t.Context(), "running", engine.Record{Kind: "k", Time: at}); err != nil {
		t.Fatal(err)
	}
	if s := is("s", "running"); !s.Updated.Equal(at) || s.Head.Seq != 1 {
		t.Errorf("updated %v, record %d", s.Updated, s.Head.Seq)
	}
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if _, err := all[i%2].AppendState(t.Context(), fmt.Sprint("state ", i%2), records("x")...); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			if _, err := c.Update(t.Context(), []string{"s", "other"}[i%2], func(s *engine.Session) error { s.Title += "x"; return nil }); err != nil && !errors.Is(err, engine.ErrConflict) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	is("s", "state 0")
	if s := is("other", "state 1"); s.Version <= before.Version {
		t.Errorf("version %d, it was %d", s.Version, before.Version)
	}
	appendTexts(t, all[0], "no state")
	is("s", "state 0")
	b.lapse(t, "a")
	if _, err := c.Claim(t.Context(), "s", c.lease); err != nil {
		t.Fatal(err)
	}
	_, err := all[0].AppendState(t.Context(), "late", records("x")...)
	wantIs(t, "of the old owner", err, engine.ErrFenced)
	is("s", "state 0")
}

// testDelete: a deleted session is gone with everything, and its id is not used again.
func testDelete(t *testing.T, b Backend) {
	n := start(t, b, "a")
	all := n.own(t, "s", "other")
	for range 20 { // more than one chunk of what a transaction deletes
		if _, err := all[0].Append(t.Context(), make([]engine.Record, engine.MaxRecords)...); err != nil {
			t.Fatal(err)
		}
	}
	appendTexts(t, all[1], "1")
	for _, want := range []string{"a", ""} {
		if owner, err := n.Delete(t.Context(), "s"); err != nil || owner != want {
			t.Fatalf("owner %q, want %q: %v", owner, want, err)
		}
	}
	_, err := n.Session(t.Context(), "s")
	wantIs(t, "session", err, engine.ErrDeleted)
	wantIs(t, "session", err, engine.ErrNotFound)
	_, err = n.Create(t.Context(), engine.Session{ID: "s"})
	wantIs(t, "create", err, engine.ErrDeleted)
	_, err = n.Claim(t.Context(), "s", n.lease)
	wantIs(t, "claim", err, engine.ErrDeleted)
	_, err = n.read(t, "s", 0)
	wantIs(t, "read", err, engine.ErrDeleted)
	_, err = all[0].Append(t.Context(), records("x")...)
	wantIs(t, "append", err, engine.ErrDeleted)
	_, err = n.Delete(t.Context(), "none")
	wantIs(t, "delete of nothing", err, engine.ErrNotFound)
	if errors.Is(err, engine.ErrDeleted) {
		t.Error("what never was is not deleted")
	}
	if page, err := n.List(t.Context(), engine.Query{}); err != nil || len(page.Sessions) != 1 {
		t.Errorf("%d sessions, %v", len(page.Sessions), err)
	}
	if got := n.whole(t, "other"); len(got) != 1 {
		t.Errorf("the other session has %d records", len(got))
	}
	// No record is left behind: only then does this not violate a key.
	b.Exec(t, `UPDATE acp_record SET n = 1, seq = 1`)
}

// testDeleteWhileOwned: the owner on another node is refused.
func testDeleteWhileOwned(t *testing.T, b Backend) {
	a, c := start(t, b, "a"), start(t, b, "c")
	o := a.own(t, "s")[0]
	appendTexts(t, o, "1")
	if owner, err := c.Delete(t.Context(), "s"); err != nil || owner != "a" {
		t.Fatalf("owner %q: %v", owner, err)
	}
	_, err := o.Append(t.Context(), records("2")...)
	wantIs(t, "append", err, engine.ErrDeleted)
	if err := o.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// testFollow: followers that come at any time see each record once, in order.
func testFollow(t *testing.T, b Backend) {
	n := start(t, b, "a")
	o := n.own(t, "s")[0]
	appendTexts(t, o, "0", "1", "2")
	const last, followers = 600, 8
	var wg sync.WaitGroup
	for i := range followers {
		from := uint64(i % 4)
		wg.Go(func() {
			next := from + 1
			for r, err := range n.Follow(t.Context(), "s", from) {
				if err != nil || r.Seq != next {
					t.Errorf("follower %d: record %d, want %d (%v)", i, r.Seq, next, err)
					return
				}
				if next++; r.Seq == last {
					return
				}
			}
		})
	}
	wg.Go(func() {
		for seq := uint64(3); seq < last; {
			k := min(1+seq%7, last-seq)
			recs, err := o.Append(t.Context(), make([]engine.Record, k)...)
			if err != nil {
				t.Error(err)
				return
			}
			seq = recs[len(recs)-1].Seq
		}
	})
	wg.Wait()
}

// testFollowLag: a follower for which too much would wait catches up from the log.
func testFollowLag(t *testing.T, b Backend) {
	n := start(t, b, "a")
	o := n.own(t, "s")[0]
	appendTexts(t, o, "1")
	next := uint64(1)
	const last = 1 + 4*engine.MaxRecords + 5
	for r, err := range n.Follow(t.Context(), "s", 0) {
		if err != nil || r.Seq != next {
			t.Fatalf("record %d, want %d (%v)", r.Seq, next, err)
		}
		if r.Seq == 1 { // and while it does not read
			for range 4 {
				if _, err := o.Append(t.Context(), make([]engine.Record, engine.MaxRecords)...); err != nil {
					t.Fatal(err)
				}
			}
			for range 5 { // more than is held for it in bytes
				if _, err := o.Append(t.Context(), engine.Record{Data: make([]byte, 1<<20)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if next++; r.Seq == last {
			break
		}
	}
	if next != last+1 {
		t.Errorf("ended at %d", next)
	}
}

// testFollowEnds: how following ends.
func testFollowEnds(t *testing.T, b Backend) {
	n := start(t, b, "a")
	all := n.own(t, "deleted", "cancelled", "closed")
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan struct{}, len(all))
	ends := make([]error, len(all))
	var wg sync.WaitGroup
	for i, o := range all {
		appendTexts(t, o, "1")
		c := t.Context()
		if i == 1 {
			c = ctx
		}
		wg.Go(func() {
			for _, err := range n.Follow(c, o.Session(), 0) {
				if ends[i] = err; err == nil {
					ready <- struct{}{}
				}
			}
		})
	}
	for range all {
		<-ready
	}
	cancel()
	if _, err := n.Delete(t.Context(), "deleted"); err != nil {
		t.Error(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	wantIs(t, "deleted", ends[0], engine.ErrDeleted)
	wantIs(t, "cancelled", ends[1], context.Canceled)
	wantIs(t, "closed", ends[2], engine.ErrClosed)
	for _, err := range n.Follow(t.Context(), "closed", 0) {
		wantIs(t, "follow afterwards", err, engine.ErrClosed)
	}
	_, err := all[2].Append(t.Context(), records("2")...)
	wantIs(t, "append afterwards", err, engine.ErrClosed)
}
