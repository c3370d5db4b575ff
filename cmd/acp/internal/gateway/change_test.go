package gateway

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
)

// listing returns the ids that a client lists.
func (c *client) listing(t *testing.T, filter acp.SessionArchiveFilter) (ids []acp.SessionID) {
	t.Helper()
	for info, err := range c.conn.ListSessions(t.Context(), acp.ListOptions{Archived: filter}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, info.SessionID)
	}
	return ids
}

// TestRename: everybody sees the new title, also those who come later, and the other nodes' clients.
func TestRename(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		dir := t.TempDir()
		a, b := newMember(t, dir, "a", talking(nil)), newMember(t, dir, "b", talking(nil))
		first, second := a.connect(version), b.connect(3-version)
		s := first.new(t)
		theirs := second.load(t, s.ID())
		for i, by := range []*acp.ClientSession{s, theirs} {
			title := strings.Repeat("title ", i+1) + "x"
			if got, err := by.SetTitle(t.Context(), title); err != nil || got != title {
				t.Fatal(got, err)
			}
			first.seen.until(t, "title: "+title)
			second.seen.until(t, "title: "+title)
			third := a.connect(version)
			if got := third.load(t, s.ID()).Title(); got != title {
				t.Errorf("title %q", got)
			}
		}
		if _, err := s.SetTitle(t.Context(), strings.Repeat("x", maxTitle+1)); err == nil || !strings.Contains(err.Error(), "at most 1024") {
			t.Error(err)
		}
	})
}

// TestArchive: an archived session is listed where that is asked for, can be used, and comes back.
func TestArchive(t *testing.T) {
	for version := 1; version <= 2; version++ {
		r := newRig(t, talking(nil))
		c, other := r.connect(version), r.connect(3-version)
		s := c.new(t)
		say(t, s, "one")
		o := other.load(t, s.ID())
		if err := c.conn.Archive(t.Context(), s.ID()); err != nil {
			t.Fatal(err)
		}
		id := []acp.SessionID{s.ID()}
		for filter, want := range map[acp.SessionArchiveFilter][]acp.SessionID{"": nil, acp.SessionArchiveFilterOnly: id, acp.SessionArchiveFilterInclude: id} {
			if got := other.listing(t, filter); !cmp.Equal(got, want) {
				t.Errorf("%q lists %q", filter, got)
			}
		}
		say(t, o, "two")
		if err := other.conn.Unarchive(t.Context(), s.ID()); err != nil {
			t.Fatal(err)
		}
		if got := c.listing(t, ""); !cmp.Equal(got, id) {
			t.Errorf("%q", got)
		}
	}
}

// TestStatus: a session is open while its agent runs.
func TestStatus(t *testing.T) {
	r := newRig(t, talking(nil))
	s := r.connect(1).new(t)
	other := r.connect(2)
	for _, want := range []acp.SessionStatus{acp.SessionStatusOpen, acp.SessionStatusSaved} {
		if got, err := other.conn.Status(t.Context(), s.ID()); err != nil || got.Status != want {
			t.Errorf("%+v, %v, want %q", got, err, want)
		}
		r.stopAgent(s.ID())
	}
}
