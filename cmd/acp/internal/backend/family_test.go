//go:build unix

package backend

import (
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/store"
)

// TestFamily: what happens in the session of a subagent is known while it happens and after
// the conversation was restored in another process, and is no session of its own in lists.
func TestFamily(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		cfg := configKept(t, version, helped(nil))
		// What is in the store under the same id is none of it.
		other := cfg.Store.Record(store.Session{Key: store.Key{Agent: cfg.Agent.Name, ID: "child"}, Title: "another"}, store.RecordOptions{})
		other.Append(store.Event{Kind: journal.KindEnd})
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		id, _ := talkOnce(t, cfg, "go")
		listed, err := cfg.Store.List(t.Context(), store.Query{})
		var ids []string
		for _, l := range listed {
			ids = append(ids, l.ID)
		}
		slices.Sort(ids)
		want := []string{"child", string(id)}
		slices.Sort(want)
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("listed %q, %v, want %q", ids, err, want)
		}
		cfg.BuiltIn = helped(nil)
		h, _, _ := restored(t, cfg, id)
		child, ok := h.Session("child")
		if !ok {
			t.Fatal("the child is not known")
		}
		if got := strings.Join(messages(child.Snapshot()), "|"); got != "agent: from below" {
			t.Errorf("the child has %q", got)
		}
	})
}
