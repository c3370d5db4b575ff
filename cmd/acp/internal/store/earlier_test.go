package store

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// TestEarlierIDs: a conversation is found by each id that the agent gave it, unless the id is that of
// another one now, with the index and without.
func TestEarlierIDs(t *testing.T) {
	for _, indexed := range []bool{true, false} {
		t.Run(fmt.Sprint("index ", indexed), func(t *testing.T) {
			s := openTest(t, t.TempDir())
			if !indexed { // a directory in its place
				if err := os.Mkdir(s.index.path(), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			find := func(id, want string) {
				t.Helper()
				latest, err := s.Latest(t.Context(), Key{"a", id})
				if err != nil || latest.Conversation != want {
					t.Errorf("latest of %s: %+v, %v", id, latest, err)
				}
				if found, err := s.Find(t.Context(), "", id); err != nil || found.Conversation != want {
					t.Errorf("found by %s: %+v, %v", id, found, err)
				}
			}
			session := Session{Key: Key{"a", "first"}}
			session.Conversation = write(t, s, session, chunk("user", "1", "one"))
			find("first", session.Conversation)
			for i := range maxEarlier {
				session.ID = fmt.Sprint("next ", i)
				write(t, s, session, chunk("user", "1", "two"))
			}
			find("first", session.Conversation)
			find("next 3", session.Conversation)
			find(session.ID, session.Conversation)
			if _, err := s.Latest(t.Context(), Key{"b", "first"}); err != ErrNotFound {
				t.Errorf("of another agent: %v", err)
			}
			other := write(t, s, Session{Key: Key{"a", "next 3"}}, chunk("user", "1", "three"))
			find("next 3", other)
			session.ID = "next 2" // again, and so many that the first is forgotten
			write(t, s, session, chunk("user", "1", "four"))
			session.ID = "last"
			write(t, s, session, chunk("user", "1", "five"))
			v, err := s.Session(t.Context(), session.Conversation)
			if err != nil || len(v.Earlier) != maxEarlier || slices.Contains(v.Earlier, "last") || v.Earlier[maxEarlier-1] != "next 2" {
				t.Errorf("earlier ids %q, %v", v.Earlier, err)
			}
		})
	}
}
