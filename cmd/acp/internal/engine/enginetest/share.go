package enginetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/engine"
)

// testShares: sessions are shared with users, who find them, and counted for their owners.
func testShares(t *testing.T, b Backend) {
	n := start(t, b, "a")
	for id, owner := range map[string]string{"one": "ann", "two": "ann", "three": "bob"} {
		if _, err := n.Create(t.Context(), engine.Session{ID: id, Owner: owner}); err != nil {
			t.Fatal(err)
		}
	}
	share := func(session, user, role string) {
		t.Helper()
		if err := n.Share(t.Context(), session, engine.Share{User: user, Role: role}); err != nil {
			t.Fatal(err)
		}
	}
	readable := func(user string) map[string]bool {
		t.Helper()
		page, err := n.List(t.Context(), engine.Query{Reader: user})
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, s := range page.Sessions {
			ids[s.ID] = true
		}
		return ids
	}
	share("one", "bob", "viewer")
	share("one", "bob", "prompter")
	share("one", "cy", "viewer")
	if diff := cmp.Diff(map[string]bool{"one": true, "three": true}, readable("bob")); diff != "" {
		t.Error(diff)
	}
	got, err := n.Shares(t.Context(), "one")
	if diff := cmp.Diff([]engine.Share{{User: "bob", Role: "prompter"}, {User: "cy", Role: "viewer"}}, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	share("one", "bob", "")
	share("one", "bob", "")
	if got := readable("bob"); len(got) != 1 {
		t.Error(got)
	}
	wantIs(t, "share of nothing", n.Share(t.Context(), "none", engine.Share{User: "bob", Role: "viewer"}), engine.ErrNotFound)
	wantIs(t, "share with nobody", n.Share(t.Context(), "one", engine.Share{Role: "viewer"}), engine.ErrInvalid)
	for i := range engine.MaxShares {
		share("two", fmt.Sprint("u", i), "viewer")
	}
	wantIs(t, "one more", n.Share(t.Context(), "two", engine.Share{User: "bob", Role: "viewer"}), engine.ErrTooMany)
	share("two", "u7", "owner") // another role is not another share

	o, err := n.Claim(t.Context(), "one", n.lease)
	if err != nil {
		t.Fatal(err)
	}
	appendTexts(t, o, "12345", "67")
	if u, err := n.Usage(t.Context(), "ann"); err != nil || u.Sessions != 2 || u.Bytes != 7 {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err := n.Usage(t.Context(), "nobody"); err != nil || u != (engine.Usage{}) {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := n.Delete(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if got := readable("cy"); len(got) != 0 {
		t.Error(got)
	}
	wantIs(t, "share of what was deleted", n.Share(t.Context(), "one", engine.Share{User: "bob", Role: "viewer"}), engine.ErrDeleted)
	if u, err := n.Usage(t.Context(), "ann"); err != nil || u.Sessions != 1 || u.Bytes != 0 {
		t.Errorf("%+v, %v", u, err)
	}
}
