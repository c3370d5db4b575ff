package app

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// TestEarlier: an id, the beginning of one, and the latest of the agent and the directory
// are found; what is ambiguous is an error in how the program was called.
func TestEarlier(t *testing.T) {
	a, _ := testApp(t)
	agent := roster.Agent{Name: "one"}
	if _, err := a.Earlier(t.Context(), agent, ""); !errors.Is(err, ErrNoEarlier) {
		t.Errorf("without a record: %v", err)
	}
	kept, err := a.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	add := func(agent, id, cwd string, age time.Duration) {
		t.Helper()
		at := time.Now().Add(-age)
		rec := kept.Record(store.Session{Key: store.Key{Agent: agent, ID: id}, Cwd: cwd, Created: at}, store.RecordOptions{})
		rec.Append(store.Event{Kind: journal.KindUpdate, At: at, Data: json.RawMessage(
			`{"sessionUpdate":"user_message_chunk","messageId":"1","content":{"type":"text","text":"a question"}}`)})
		if err := rec.Close(); err != nil {
			t.Fatal(err)
		}
	}
	add("one", "abc-1", a.Cwd, 3*time.Hour)
	add("one", "abc-2", a.Cwd, 2*time.Hour)
	add("one", "xyz-3", t.TempDir(), time.Hour)
	add("two", "xyz-4", a.Cwd, time.Minute)
	list, err := kept.List(t.Context(), store.Query{})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{} // of conversations
	for _, s := range list {
		ids[string(s.Conversation)] = s.ID
	}
	for _, tt := range []struct {
		id, want string
		usage    bool
	}{
		{id: "", want: "abc-2"},
		{id: "abc-1", want: "abc-1"},
		{id: "xyz", want: "xyz-3"},
		{id: "unknown", want: "unknown"},
		{id: "abc", usage: true},
	} {
		got, err := a.Earlier(t.Context(), agent, tt.id)
		id, known := ids[string(got)]
		if !known {
			id = string(got)
		}
		if id != tt.want || (tt.id == "unknown") == known && err == nil || (err != nil) != tt.usage || tt.usage && exitcode.Of(err) != exitcode.Usage {
			t.Errorf("%q: %q, %v", tt.id, got, err)
		}
	}
}
