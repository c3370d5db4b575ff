package store

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/transcript"
)

// TestResume: the end of an interrupted turn is written once, if no other process writes the conversation, and also if the
// disk takes nothing at the moment.
func TestResume(t *testing.T) {
	open := func(s *transcript.Snapshot) bool { return !strings.Contains(endsOf(s), "client") }
	closed := func(*transcript.Snapshot) bool { return false }
	for name, tt := range map[string]struct {
		inTurn  func(*transcript.Snapshot) bool
		busy    bool
		err     error
		shown   string
		written int
	}{
		"interrupted":          {inTurn: open, shown: "client", written: 1},
		"ended":                {inTurn: closed},
		"written by another":   {inTurn: open, busy: true},
		"on a full disk":       {inTurn: open, err: syscall.ENOSPC, shown: "client", written: 1},
		"on a disk that fails": {inTurn: open, err: syscall.EIO, shown: "client", written: 1},
	} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			disk := new(faults)
			s := openWith(t, Options{Path: dir + "/kept", Normal: true, Disk: disk})
			defer s.Close()
			rec := s.Record(Session{Key: key}, RecordOptions{})
			rec.Append(chunk("user", "m", "word"))
			if !tt.busy {
				if err := rec.Close(); err != nil {
					t.Fatal(err)
				}
			}
			disk.set(tt.err, nil)
			for range 2 { // what is ended once stays so
				r, err := s.Resume(t.Context(), rec.Conversation(), RecordOptions{}, tt.inTurn)
				if owned, ok := errors.AsType[*journal.OwnedError](err); ok == tt.busy && ok && owned.Who != "" {
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got := endsOf(r.Snapshot); got != tt.shown {
					t.Errorf("%s: ends %q", name, got)
				}
				disk.set(nil, nil)
				time.Sleep(time.Second) // until it is tried again
				if err := r.Recorder.Close(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			written := 0
			for _, e := range all(t, s, rec.Conversation()) {
				if e.Kind == journal.KindEnd {
					written++
				}
			}
			if written != tt.written {
				t.Errorf("%s: the end was written %d times, want %d", name, written, tt.written)
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
