//go:build unix

package backend

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// TestOthersTurn: a turn that runs in another program is not ended by one that restores the session; it is
// once that program is gone.
func TestOthersTurn(t *testing.T) {
	cfg := configKept(t, 1, asks(func(acp.SessionID) bool { return true }, false))
	cfg.Front.Ask = allow
	id, key := talkOnce(t, cfg, "one")
	other := cfg.Store.Record(store.Session{Key: store.Key{Agent: cfg.Agent.Name, ID: string(id)}, Conversation: key}, store.RecordOptions{})
	other.Append(
		updateEvent(&acp.UserMessage{MessageID: "other", Content: acp.Set([]acp.ContentBlock{acp.Text("go on")})}),
		updateEvent(&acpv2.RunningStateUpdate{}),
		updateEvent(&acp.ToolCallUpdate{ToolCallID: "open", Title: acp.Set("Open")}),
	)
	endings := func() int {
		t.Helper()
		cfg.BuiltIn = asks(func(acp.SessionID) bool { return true }, false)
		h, _, _ := restored(t, cfg, id)
		_ = h.Close()
		return len(ends(stored(t, cfg.Store, key)))
	}
	writing := func(want bool) {
		t.Helper()
		if is, err := cfg.Store.Writing(t.Context(), key); err != nil || is != want {
			t.Errorf("it is written: %v, %v", is, err)
		}
	}
	writing(true)
	if n := endings(); n != 1 {
		t.Errorf("%d ends while the other program lives, want 1", n)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	writing(false)
	now := stored(t, cfg.Store, key)
	if ended := store.Interrupted(now); !history.InTurn(now) || history.InTurn(ended) || len(ends(ended)) != 2 || len(ends(now)) != 1 {
		t.Errorf("ends %+v, then %+v", ends(now), ends(ended))
	}
	if n := endings(); n != 2 {
		t.Errorf("%d ends once the other program is gone, want 2", n)
	}
	if text := shown(t, cfg.Store, key); !strings.Contains(text, "the program ended in the middle") || !strings.Contains(text, "not finished") {
		t.Errorf("shown:\n%s", text)
	}
}

// lockedFirst calls a function before a log is locked for writing for the first time.
type lockedFirst struct {
	store.System
	once   sync.Once
	before func()
}

// TryLock implements store.FileSystem.
func (d *lockedFirst) TryLock(f store.File, exclusive bool) (bool, error) {
	if exclusive {
		d.once.Do(d.before)
	}
	return d.System.TryLock(f, exclusive)
}

// TestRestoredTwice: of two windows that restore a killed session at the same time one writes that its turn was
// interrupted, and both show that.
func TestRestoredTwice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	agent := asks(func(acp.SessionID) bool { return true }, false)
	cfg := config(t, 1, agent)
	cfg.Store = openStore(t, dir)
	cfg.Front.Ask = allow
	id, key := talkOnce(t, cfg, "one")
	killed := cfg.Store.Record(store.Session{Key: store.Key{Agent: cfg.Agent.Name, ID: string(id)}, Conversation: key}, store.RecordOptions{})
	killed.Append(
		updateEvent(&acp.UserMessage{MessageID: "last", Content: acp.Set([]acp.ContentBlock{acp.Text("go on")})}),
		updateEvent(&acpv2.RunningStateUpdate{}),
	)
	if err := killed.Close(); err != nil {
		t.Fatal(err)
	}
	restore := func(st *store.Store) {
		cfg := cfg
		cfg.Store = st
		h, s, _ := restored(t, cfg, id)
		if got := ends(s.Snapshot()); len(got) != 2 || got[1].By != transcript.EndedByClient {
			t.Errorf("a window shows the ends %+v", got)
		}
		_ = h.Close()
	}
	disk := &lockedFirst{before: func() { restore(openStore(t, dir)) }}
	first, err := store.Open(t.Context(), store.Options{Path: dir, Files: disk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Close() })
	restore(first)
	interrupted := 0
	for e, err := range cfg.Store.Events(t.Context(), key) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == store.EventTurn && strings.Contains(string(e.Data), string(transcript.EndedByClient)) {
			interrupted++
		}
	}
	if interrupted != 1 {
		t.Errorf("the end was written %d times", interrupted)
	}
}
