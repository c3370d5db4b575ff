//go:build unix

package backend

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/journal/file"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// resumed returns what continues a conversation.
func resumed(t *testing.T, s *store.Store, conversation string) *store.Recorder {
	t.Helper()
	was, err := s.Resume(t.Context(), conversation, store.RecordOptions{}, func(*transcript.Snapshot) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	return was.Recorder
}

// TestOthersTurn: a session that runs in another program is not restored, which says so and ends no turn of it; it is once
// that program is gone.
func TestOthersTurn(t *testing.T) {
	cfg := configKept(t, 1, asks(func(acp.SessionID) bool { return true }, false))
	cfg.Front.Ask = allow
	id, key := talkOnce(t, cfg, "one")
	other := resumed(t, openStore(t, cfg.Store.Dir()), key)
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
	h := open(t, cfg)
	if _, _, err := h.Restore(t.Context(), id); !errors.As(err, new(*journal.OwnedError)) || !strings.Contains(err.Error(), "open in") {
		t.Errorf("restored while the other program lives: %v", err)
	}
	_ = h.Close()
	if n := len(ends(stored(t, cfg.Store, key))); n != 1 {
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
	file.System
	once   sync.Once
	before func()
}

// Lock implements [file.Disk].
func (d *lockedFirst) Lock(f file.File, exclusive bool) (bool, error) {
	if exclusive {
		d.once.Do(d.before)
	}
	return d.System.Lock(f, exclusive)
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
	killed := resumed(t, cfg.Store, key)
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
	first, err := store.Open(t.Context(), store.Options{Path: dir, Disk: disk})
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
		if e.Kind == journal.KindEnd && strings.Contains(string(e.Data), string(transcript.EndedByClient)) {
			interrupted++
		}
	}
	if interrupted != 1 {
		t.Errorf("the end was written %d times", interrupted)
	}
}
