package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/transcript"
)

// sharedEnv has the id of the conversation that copies of the test program write together, and nameEnv the
// name of such a copy. The directory is that of childEnv.
const (
	sharedEnv = "STORE_TEST_SHARED"
	nameEnv   = "STORE_TEST_NAME"
)

// sharedRounds is how often each of them opens and closes the conversation.
const sharedRounds = 20

// writeShared writes to a conversation again and again, and looks for it in between.
func writeShared(dir, conversation, name string) error {
	ctx := context.Background()
	s, err := Open(ctx, Options{Path: dir, Normal: true})
	if err != nil {
		return err
	}
	for n := range sharedRounds {
		was, err := s.Resume(ctx, conversation, RecordOptions{}, func(*transcript.Snapshot) bool { return false })
		for ; errors.As(err, new(*journal.OwnedError)); was, err = s.Resume(ctx, conversation, RecordOptions{}, func(*transcript.Snapshot) bool { return false }) {
			time.Sleep(time.Millisecond) // the other one has it
		}
		if err != nil {
			return err
		}
		rec := was.Recorder
		rec.Append(Event{Kind: journal.KindEnd, Data: fmt.Appendf(nil, `{"said":"%s%d"}`, name, n)})
		if found, err := s.List(ctx, Query{Text: "seed"}); err != nil || len(found) != 1 {
			return fmt.Errorf("%d found, %v", len(found), err)
		}
		if is, err := s.Writing(ctx, conversation); err != nil || !is {
			return fmt.Errorf("written: %v, %v", is, err)
		}
		if err := rec.Close(); err != nil {
			return err
		}
	}
	return s.Close()
}

// TestProcesses: of what two processes write to one conversation nothing is lost or damaged while the index is
// deleted again and again, and each finds the conversation all the time.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	id := write(t, s, Session{Key: key}, chunk("user", "m", "seed"))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "b"}
	var writers sync.WaitGroup
	for _, name := range names {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childEnv+"="+dir, sharedEnv+"="+id, nameEnv+"="+name)
		writers.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, bytes.TrimSpace(out))
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		writers.Wait()
	}()
	for more := true; more; {
		select {
		case <-ended:
			more = false
		default:
		}
		for _, tail := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(s.index.path() + tail) // it may not be there, or be open where that prevents it
		}
		if found, err := s.List(t.Context(), Query{Text: "seed"}); err != nil || len(found) != 1 {
			t.Errorf("%d found, %v", len(found), err)
		}
	}
	var want, got []string
	for _, name := range names {
		for n := range sharedRounds {
			want = append(want, fmt.Sprintf(`{"said":"%s%d"}`, name, n))
		}
	}
	for e, err := range s.Events(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == journal.KindEnd {
			got = append(got, string(e.Data))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%d of %d events are there: %q", len(got), len(want), got)
	}
	if _, damage, err := s.Snapshot(t.Context(), id, transcript.Config{}); damage != nil || err != nil {
		t.Errorf("%+v, %v", damage, err)
	}
}
