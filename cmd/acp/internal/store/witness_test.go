package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/goacp/acp/transcript"
)

// TestCutClean cuts the log of a conversation off between two records: that is told with their number, as
// long as there is an index that has seen more, and whatever else happens to the index and the log.
func TestCutClean(t *testing.T) {
	index := func(t *testing.T, s *Store) {
		t.Helper()
		if _, err := s.List(t.Context(), Query{}); err != nil {
			t.Fatal(err)
		}
	}
	// cut takes the last records away.
	cut := func(t *testing.T, s *Store, id string, n int) {
		t.Helper()
		name := filepath.Join(s.dir, id+".jsonl")
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(data, []byte("\n"))
		if err := os.WriteFile(name, bytes.Join(lines[:len(lines)-1-n], nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	more := func(n int) func(*testing.T, *Store, string) {
		return func(t *testing.T, s *Store, id string) {
			t.Helper()
			events := make([]Event, n)
			for i := range events {
				events[i] = chunk("agent", "m", fmt.Sprint("more ", i))
			}
			write(t, s, Session{Key: key, Conversation: id}, events...)
		}
	}
	cutBy := func(n int) func(*testing.T, *Store, string) {
		return func(t *testing.T, s *Store, id string) { t.Helper(); cut(t, s, id, n) }
	}
	list := func(t *testing.T, s *Store, _ string) { t.Helper(); index(t, s) }
	unindex := func(t *testing.T, s *Store, _ string) {
		t.Helper()
		if err := s.index.remove(); err != nil {
			t.Fatal(err)
		}
	}
	type step = func(*testing.T, *Store, string)
	const altered = "records were removed or exchanged"
	for name, tt := range map[string]struct {
		steps []step
		want  string
	}{
		"nothing":                   {[]step{list}, ""},
		"more":                      {[]step{list, more(3)}, ""},
		"more, listed":              {[]step{list, more(3), list, more(3), list}, ""},
		"not seen":                  {[]step{cutBy(2)}, ""},
		"one":                       {[]step{list, cutBy(1)}, "the last record is missing"},
		"some":                      {[]step{list, cutBy(3)}, "the last 3 records are missing"},
		"all":                       {[]step{list, cutBy(11)}, "the last 11 records are missing"},
		"listed after it":           {[]step{list, cutBy(3), list, list}, "the last 3 records are missing"},
		"twice":                     {[]step{list, cutBy(3), list, cutBy(2), list}, "the last 5 records are missing"},
		"seen in part":              {[]step{list, more(5), cutBy(5), list}, ""},
		"index deleted before":      {[]step{list, unindex, cutBy(3), list}, ""},
		"index deleted":             {[]step{list, cutBy(3), unindex}, ""},
		"index deleted, and more":   {[]step{list, cutBy(3), unindex, more(9), list}, ""},
		"written to":                {[]step{list, cutBy(3), more(9)}, altered},
		"written to, listed":        {[]step{list, cutBy(3), more(9), list, more(1), list}, altered},
		"listed, then written to":   {[]step{list, cutBy(3), list, more(9), list, more(1), list}, altered},
		"written to in small steps": {[]step{list, cutBy(3), list, more(1), list, more(1), list, more(9), list}, altered},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTest(t, filepath.Join(t.TempDir(), "kept"))
			var events []Event
			for i := range 10 {
				events = append(events, chunk("agent", "m", fmt.Sprint(i, " ")))
			}
			id := write(t, s, Session{Key: key}, events...)
			for _, step := range tt.steps {
				step(t, s, id)
			}
			_, damage, err := s.Snapshot(t.Context(), id, transcript.Config{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if damage != nil {
				got = damage.Summary()
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			// What the log has can be found, and nothing else.
			found, err := s.List(t.Context(), Query{})
			if err != nil {
				t.Fatal(err)
			}
			events = all(t, s, id)
			if len(events) > 0 && (len(found) != 1 || found[0].Events != int64(len(events))) {
				t.Errorf("found %+v, want %d events", found, len(events))
			}
		})
	}
}

// TestOldWitness: two windows of an earlier version may write to a conversation what belongs before what was seen of it. That
// is no damage; what is cut off after somebody owns it is.
func TestOldWitness(t *testing.T) {
	const id = "oldconversation2"
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "journal", "file", "testdata", "old"))); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, dir)
	check := func(when, want string) {
		t.Helper()
		for range 2 {
			if _, err := s.List(t.Context(), Query{}); err != nil {
				t.Fatal(err)
			}
			_, damage, err := s.Snapshot(t.Context(), id, transcript.Config{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if damage != nil {
				got = damage.Summary()
			}
			if got != want {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
	}
	name := filepath.Join(dir, id+".2.jsonl")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	if err := os.WriteFile(name, bytes.Join(lines[:len(lines)-2], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	check("at first", "")
	if err := os.WriteFile(name, data, 0o600); err != nil { // its last record is not the last one of all
		t.Fatal(err)
	}
	check("later", "")
	write(t, s, Session{Key: key, Conversation: id}, chunk("agent", "m", "more"))
	check("owned", "")
	name = filepath.Join(dir, id+".jsonl")
	if data, err = os.ReadFile(name); err != nil {
		t.Fatal(err)
	}
	lines = bytes.SplitAfter(data, []byte("\n"))
	if err := os.WriteFile(name, bytes.Join(lines[:len(lines)-2], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	check("cut", "the last record is missing")
}
