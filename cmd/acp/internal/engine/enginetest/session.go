package enginetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
	"github.com/goacp/acp/cmd/acp/internal/journal"
)

// testSessions: what is known of a session is kept as it is, and known to others.
func testSessions(t *testing.T, f Fixture) {
	n, other := start(t, f, "a"), start(t, f, "c")
	want := engine.Session{
		ID: "s_1-A", Agent: "claude", AgentSession: "x", Cwd: "/tmp/a b", Title: "A <title> ü\u2028", Owner: "ann", State: "idle", Parent: "p",
		Attributes: json.RawMessage(`{"a":[1,"ü"],"held":{"token":"secret"}}`), Created: time.Unix(1, 2).UTC(), Updated: time.Unix(3, 4).UTC(),
	}
	same := func(what string) {
		t.Helper()
		for _, n := range []*node{n, other} {
			got, err := n.Session(t.Context(), want.ID)
			got.Epoch, got.Head, want.Version = 0, engine.Head{}, got.Version
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
			}
		}
	}
	if _, err := n.Create(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	same("created")
	again := want
	again.Title, again.Attributes = "again", json.RawMessage(`{"held":1}`)
	_, err := n.Create(t.Context(), again)
	wantIs(t, "create again", err, engine.ErrExists)
	same("created again")
	for _, owned := range []bool{false, true} {
		if owned {
			n.claim(t, want.ID)
		}
		before := want.Updated
		changed, err := n.Update(t.Context(), want.ID, func(s *engine.Session) error {
			s.Title, s.Attributes, s.ID, s.Created = s.Title+"!", json.RawMessage(`{"b":1}`), "other", time.Time{}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !changed.Updated.After(before) {
			t.Errorf("updated %v", changed.Updated)
		}
		want.Title, want.Attributes, want.Updated = want.Title+"!", json.RawMessage(`{"b":1}`), changed.Updated
		same(fmt.Sprintf("updated, owned %t", owned))
		stop := errors.New("stop")
		if _, err := n.Update(t.Context(), want.ID, func(*engine.Session) error { return stop }); err != stop {
			t.Errorf("the error of a change becomes %v", err)
		}
		_, err = n.Update(t.Context(), want.ID, func(s *engine.Session) error { s.Title = "\xff"; return nil })
		wantIs(t, "an update that cannot be kept", err, engine.ErrInvalid)
		same("not updated")
	}
	_, err = n.Update(t.Context(), "none", func(*engine.Session) error { return nil })
	wantIs(t, "update of nothing", err, engine.ErrNotFound)
	_, err = n.Session(t.Context(), "none")
	wantIs(t, "nothing", err, engine.ErrNotFound)
}

// testInvalid: what some place would refuse is refused everywhere.
func testInvalid(t *testing.T, f Fixture) {
	n := start(t, f, "a")
	for name, s := range map[string]engine.Session{
		"no id":           {},
		"a path":          {ID: "a/b"},
		"a NUL":           {ID: "a\x00"},
		"a long id":       {ID: fmt.Sprintf("%0101d", 1)},
		"not UTF-8":       {ID: "a", Title: "\xff"},
		"a long title":    {ID: "a", Title: string(make([]byte, engine.MaxText+1))},
		"not JSON":        {ID: "a", Attributes: []byte("{")},
		"no object":       {ID: "a", Attributes: []byte("[1]")},
		"many attributes": {ID: "a", Attributes: fmt.Appendf(nil, `{"a":"%0*d"}`, engine.MaxValue, 1)},
		"a strange time":  {ID: "a", Created: time.Date(5000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		_, err := n.Create(t.Context(), s)
		wantIs(t, name, err, engine.ErrInvalid)
	}
	if page, err := n.List(t.Context(), engine.Query{}); err != nil || len(page.Sessions) != 0 {
		t.Errorf("%v, %v", page, err)
	}
	_, err := n.List(t.Context(), engine.Query{Cursor: "?"})
	wantIs(t, "cursor", err, engine.ErrInvalid)
}

// testUpdate: no update is lost among others of nodes that may write the session.
func testUpdate(t *testing.T, f Fixture) {
	n := start(t, f, "a")
	nodes := []*node{n, n}
	if f.Exec != nil {
		nodes[1] = start(t, f, "c")
	}
	if _, err := n.Create(t.Context(), engine.Session{ID: "s", Attributes: json.RawMessage(`{"n":0}`)}); err != nil {
		t.Fatal(err)
	}
	var done atomic.Int32
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 5 {
				_, err := nodes[i%2].Update(t.Context(), "s", func(s *engine.Session) error {
					var v struct {
						N int `json:"n"`
					}
					if err := json.Unmarshal(s.Attributes, &v); err != nil {
						return err
					}
					s.Attributes = fmt.Appendf(nil, `{"n":%d}`, v.N+1)
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
	s, err := n.Session(t.Context(), "s")
	if want := fmt.Sprintf(`{"n":%d}`, done.Load()); err != nil || string(s.Attributes) != want {
		t.Errorf("%s updates, want %s (%v)", s.Attributes, want, err)
	}
}

// testUpdateReleased: an update succeeds whoever claims or releases the session meanwhile.
func testUpdateReleased(t *testing.T, f Fixture) {
	n := start(t, f, "a")
	o := n.own(t, "s")[0]
	var wg sync.WaitGroup
	const updates = 20
	for range 2 {
		wg.Go(func() {
			for range updates / 2 {
				for err := engine.ErrConflict; errors.Is(err, engine.ErrConflict); {
					if _, err = n.Update(t.Context(), "s", func(s *engine.Session) error { s.Title += "x"; return nil }); err != nil && !errors.Is(err, engine.ErrConflict) {
						t.Error(err)
					}
				}
			}
		})
	}
	for i := range 20 {
		var err error
		if i%2 == 0 {
			err = o.Release(t.Context())
		}
		if err == nil {
			o, err = n.Claim(t.Context(), "s", n.lease)
		}
		if err == nil {
			_, err = o.Append(t.Context(), texts(journal.KindPrompt, "x")...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if s, err := n.Session(t.Context(), "s"); err != nil || len(s.Title) != updates {
		t.Errorf("%d updates, want %d, %v", len(s.Title), updates, err)
	}
}

// testState: a state that a record says is that of the session from then on, whatever else is updated meanwhile, and no
// update is lost for it.
func testState(t *testing.T, f Fixture) {
	n := start(t, f, "a")
	o := n.own(t, "s")[0]
	is := func(state string, titles int) engine.Session {
		t.Helper()
		s, err := n.Session(t.Context(), "s")
		if err != nil || s.State != state || len(s.Title) != titles {
			t.Errorf("state %q, want %q; %d updates, want %d; %v", s.State, state, len(s.Title), titles, err)
		}
		return s
	}
	before := is("", 0)
	at := time.Unix(1_700_000_000, 5).UTC()
	if _, err := o.Append(t.Context(), engine.Record{Kind: journal.KindEnd, At: at, Data: []byte(`"idle"`)}); err != nil {
		t.Fatal(err)
	}
	if s := is("idle", 0); !s.Updated.Equal(at) || s.Version <= before.Version {
		t.Errorf("updated %v; version %d, it was %d", s.Updated, s.Version, before.Version)
	}
	add(t, o, "no state")
	is("idle", 0)
	var titles atomic.Int32
	for i := range 20 {
		state := fmt.Sprint("state ", i)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := o.Append(t.Context(), texts(journal.KindEnd, "running", state)...); err != nil {
				t.Error(err)
			}
		})
		for range 2 {
			wg.Go(func() {
				_, err := n.Update(t.Context(), "s", func(s *engine.Session) error { s.Title += "x"; return nil })
				if err == nil {
					titles.Add(1)
				} else if !errors.Is(err, engine.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		is(state, int(titles.Load()))
	}
	if err := o.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := o.Append(t.Context(), texts(journal.KindEnd, "late")...)
	wantIs(t, "after the release", err, engine.ErrReleased)
	is("state 19", int(titles.Load()))
	n.claim(t, "s")
	is("state 19", int(titles.Load()))
}

// testLists: pages have each session once, in order, also where times are equal, and those that are asked for.
func testLists(t *testing.T, f Fixture) {
	n := start(t, f, "a")
	const sessions = 53
	for i := range sessions {
		s := engine.Session{ID: fmt.Sprintf("s%02d", i), Owner: []string{"ann", "bob"}[i%2], Agent: []string{"x", "y", "z"}[i%3], State: "idle", Created: time.Unix(int64(i/5), 0)}
		if i > 0 && i%10 == 0 {
			s.Parent, s.State = "s00", "busy"
		}
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
		{engine.Query{}, sessions},
		{engine.Query{Limit: 7, Owner: "bob"}, sessions / 2},
		{engine.Query{Limit: 7, Agent: "z"}, sessions / 3},
		{engine.Query{Limit: 2, State: "busy"}, 5},
		{engine.Query{Limit: 2, Parent: "s00"}, 5},
		{engine.Query{Limit: 2, Reader: "bob"}, sessions / 2},
		{engine.Query{Owner: "ann", State: "busy", Agent: "y"}, 2},
		{engine.Query{Owner: "bob", State: "busy"}, 0},
		{engine.Query{Agent: "none"}, 0},
		{engine.Query{Parent: "none"}, 0},
		{engine.Query{Reader: "none"}, 0},
	} {
		var seen []engine.Position
		q := test.q
		for pages := 0; ; pages++ {
			page, err := n.List(t.Context(), q)
			if err != nil || pages > sessions || q.Limit > 0 && len(page.Sessions) > q.Limit {
				t.Fatalf("page %d of %+v has %d sessions, %v", pages, test.q, len(page.Sessions), err)
			}
			for _, s := range page.Sessions {
				seen = append(seen, engine.Position{Updated: s.Updated, ID: s.ID})
				for want, got := range map[string]string{q.Owner: s.Owner, q.Agent: s.Agent, q.State: s.State, q.Parent: s.Parent} {
					if want != "" && want != got {
						t.Errorf("%+v: %+v", test.q, s)
					}
				}
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
		ordered := slices.IsSortedFunc(seen, func(a, b engine.Position) int {
			if c := b.Updated.Compare(a.Updated); c != 0 {
				return c
			}
			if a.ID > b.ID {
				return -1
			}
			return 1
		})
		if len(seen) != test.want || !ordered {
			t.Errorf("%+v: %d sessions, want %d, each once and in order: %v", test.q, len(seen), test.want, seen)
		}
	}
}

// share shares a session as its owner does: the record counts in files, the row elsewhere.
func (n *node) share(t testing.TB, o *engine.Owned, user, role string) {
	t.Helper()
	s := engine.Share{User: user, Role: role}
	if err := n.Share(t.Context(), o.Session(), s); err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(s) // strings cannot fail
	if _, err := o.Append(t.Context(), engine.Record{Kind: journal.KindShared, Data: data}); err != nil {
		t.Fatal(err)
	}
}

// readable returns the sessions that a user can read.
func (n *node) readable(t testing.TB, user string) (ids []string) {
	t.Helper()
	page, err := n.List(t.Context(), engine.Query{Reader: user})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range page.Sessions {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return ids
}

// testShares: sessions are shared with users, who find them, and counted for their owners.
func testShares(t *testing.T, f Fixture) {
	n := start(t, f, "a")
	owned := map[string]*engine.Owned{}
	for id, owner := range map[string]string{"one": "ann", "two": "ann", "three": "bob"} {
		if _, err := n.Create(t.Context(), engine.Session{ID: id, Owner: owner}); err != nil {
			t.Fatal(err)
		}
		owned[id] = n.claim(t, id)
	}
	readable := func(user string, want ...string) {
		t.Helper()
		if got := n.readable(t, user); !slices.Equal(got, want) {
			t.Errorf("%s can read %q, want %q", user, got, want)
		}
	}
	n.share(t, owned["one"], "bob", "viewer")
	n.share(t, owned["one"], "bob", "prompter")
	n.share(t, owned["one"], "cy", "viewer")
	readable("bob", "one", "three")
	got, err := n.Shares(t.Context(), "one")
	if diff := cmp.Diff([]engine.Share{{User: "bob", Role: "prompter"}, {User: "cy", Role: "viewer"}}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	n.share(t, owned["one"], "bob", "")
	n.share(t, owned["one"], "bob", "")
	readable("bob", "three")
	wantIs(t, "share of nothing", n.Share(t.Context(), "none", engine.Share{User: "bob", Role: "viewer"}), engine.ErrNotFound)
	wantIs(t, "share with nobody", n.Share(t.Context(), "one", engine.Share{Role: "viewer"}), engine.ErrInvalid)
	for i := range engine.MaxShares {
		n.share(t, owned["two"], fmt.Sprint("u", i), "viewer")
	}
	wantIs(t, "one more", n.Share(t.Context(), "two", engine.Share{User: "bob", Role: "viewer"}), engine.ErrTooMany)
	n.share(t, owned["two"], "u7", "owner") // another role is not another share

	before, err := n.Usage(t.Context(), "ann")
	if err != nil || before.Sessions != 2 {
		t.Errorf("%+v, %v", before, err)
	}
	const size = 100_000
	add(t, owned["one"], string(make([]byte, size/6))) // a NUL takes six bytes in JSON
	if u, err := n.Usage(t.Context(), "ann"); err != nil || u.Sessions != 2 || u.Bytes < before.Bytes+size || u.Bytes > before.Bytes+size+1000 {
		t.Errorf("%+v after %+v, %v", u, before, err)
	}
	if u, err := n.Usage(t.Context(), "nobody"); err != nil || u != (engine.Usage{}) {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := n.Delete(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	readable("cy")
	wantIs(t, "share of what was deleted", n.Share(t.Context(), "one", engine.Share{User: "bob", Role: "viewer"}), engine.ErrNotFound)
	if u, err := n.Usage(t.Context(), "ann"); err != nil || u.Sessions != 1 || u.Bytes > before.Bytes {
		t.Errorf("%+v, %v", u, err)
	}
}

// testDelete: a deleted session is gone with everything, and nothing else is.
func testDelete(t *testing.T, f Fixture) {
	n := start(t, f, "a")
	all := n.own(t, "s", "other")
	if _, err := n.Create(t.Context(), engine.Session{ID: "fork", Parent: "s"}); err != nil {
		t.Fatal(err)
	}
	n.share(t, all[0], "bob", "viewer")
	for range 10 { // more than one chunk of what a transaction deletes
		if _, err := all[0].Append(t.Context(), texts(journal.KindUpdate, make([]string, engine.MaxRecords)...)...); err != nil {
			t.Fatal(err)
		}
	}
	add(t, all[1], "1")
	want := ""
	if f.Exec != nil {
		want = "a"
	}
	if owner, err := n.Delete(t.Context(), "s"); err != nil || owner != want {
		t.Fatalf("owner %q, want %q: %v", owner, want, err)
	}
	_, err := n.Session(t.Context(), "s")
	wantIs(t, "session", err, engine.ErrNotFound)
	_, err = n.Claim(t.Context(), "s", n.lease)
	wantIs(t, "claim", err, engine.ErrNotFound)
	_, err = n.read(t, "s")
	wantIs(t, "read", err, engine.ErrNotFound)
	_, err = all[0].Append(t.Context(), texts(journal.KindPrompt, "x")...)
	wantIs(t, "append", err, engine.ErrDeleted)
	if err := all[0].Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	_, err = n.Delete(t.Context(), "none")
	wantIs(t, "delete of nothing", err, engine.ErrNotFound)
	if errors.Is(err, engine.ErrDeleted) {
		t.Error("what never was is not deleted")
	}
	if page, err := n.List(t.Context(), engine.Query{}); err != nil || len(page.Sessions) != 2 {
		t.Errorf("%d sessions, %v", len(page.Sessions), err)
	}
	n.wantTexts(t, "other", "1")
	n.claim(t, "fork")
	if f.Exec != nil { // nobody uses the id again, and no record is left behind: only then does this not violate a key
		_, err = n.Create(t.Context(), engine.Session{ID: "s"})
		wantIs(t, "create", err, engine.ErrDeleted)
		if owner, err := n.Delete(t.Context(), "s"); err != nil || owner != "" {
			t.Errorf("the second time: owner %q, %v", owner, err)
		}
		f.Exec(t, `UPDATE acp_record SET n = 1, seq = 1 WHERE n IN (SELECT n FROM acp_tombstone)`)
		return
	}
	for range 2 { // a copy that somebody puts back is a session
		add(t, n.own(t, "s")[0], "anew")
		n.wantTexts(t, "s", "anew")
		if got := n.readable(t, "bob"); len(got) != 0 {
			t.Errorf("shared with bob: %q", got)
		}
		if _, err := n.Delete(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
}

// testDeleteElsewhere: an owner learns that somebody else has deleted the session, and so does who follows it.
func testDeleteElsewhere(t *testing.T, f Fixture) {
	a, c := start(t, f, "a"), start(t, f, "c")
	o := a.own(t, "s")[0]
	add(t, o, "1")
	var last error
	followed := make(chan struct{})
	ready := make(chan struct{}, 10)
	go func() {
		defer close(followed)
		for _, err := range c.Follow(t.Context(), "s", 0) {
			last = err
			ready <- struct{}{}
		}
	}()
	<-ready
	if _, err := c.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	<-followed
	wantIs(t, "follow", last, engine.ErrDeleted)
	_, err := o.Append(t.Context(), texts(journal.KindPrompt, "2")...)
	wantIs(t, "append", err, engine.ErrDeleted)
	if err := o.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}
