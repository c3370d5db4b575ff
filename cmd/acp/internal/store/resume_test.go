package store

import (
	"strings"
	"syscall"
	"testing"

	"github.com/goacp/acp/transcript"
)

// TestResume: the end of an interrupted turn is written if no other process writes the conversation. If the
// disk takes nothing, the caller is asked to write it.
func TestResume(t *testing.T) {
	open := func(s *transcript.Snapshot) bool { return !strings.Contains(endsOf(s), "client") }
	closed := func(*transcript.Snapshot) bool { return false }
	for name, tt := range map[string]struct {
		inTurn      func(*transcript.Snapshot) bool
		busy        bool
		err         error
		shown       string
		interrupted bool
		written     int
	}{
		"interrupted":          {inTurn: open, shown: "client", written: 1},
		"ended":                {inTurn: closed},
		"written by another":   {inTurn: open, busy: true},
		"on a full disk":       {inTurn: open, err: syscall.ENOSPC, interrupted: true},
		"on a disk that fails": {inTurn: open, err: syscall.EIO, interrupted: true},
	} {
		t.Run(name, func(t *testing.T) {
			disk := new(faults)
			s := openWith(t, Options{Path: t.TempDir(), Normal: true, Files: disk})
			rec := s.Record(Session{Key: key}, RecordOptions{})
			rec.Append(chunk("user", "m", "word"))
			if !tt.busy {
				if err := rec.Close(); err != nil {
					t.Fatal(err)
				}
			}
			disk.set(tt.err, nil)
			for range 2 { // what is ended once stays so
				r, err := s.Resume(t.Context(), rec.Conversation(), tt.inTurn)
				if err != nil {
					t.Fatal(err)
				}
				if got := endsOf(r.Snapshot); got != tt.shown || r.Interrupted != tt.interrupted {
					t.Errorf("ends %q, interrupted %v", got, r.Interrupted)
				}
			}
			disk.set(nil, nil)
			written := 0
			for _, e := range all(t, s, rec.Conversation()) {
				if e.Kind == EventTurn {
					written++
				}
			}
			if written != tt.written {
				t.Errorf("the end was written %d times, want %d", written, tt.written)
			}
			if err := rec.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// endsOf returns who has ended the turns of a conversation.
func endsOf(s *transcript.Snapshot) string {
	var by []string
	for e := range s.Entries() {
		if end, ok := e.(*transcript.TurnEnd); ok {
			by = append(by, string(end.By))
		}
	}
	return strings.Join(by, " ")
}
