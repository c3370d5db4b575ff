//go:build unix

package host

import (
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/store"
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
