package agent

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/transcript"
)

// TestReplayed compares a conversation as it was shown with what is told of it
// later, entry by entry.
func TestReplayed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	var mu sync.Mutex
	fold := transcript.New(transcript.Config{})
	k := start(t, 2, func(k *talk) {
		k.client.Update = func(_ context.Context, s *acp.ClientSession, u *acp.Update) {
			mu.Lock()
			defer mu.Unlock()
			if k.session == nil || s.ID() == k.session.ID() { // not the subagent
				fold.Apply(u.Update)
			}
		}
	})
	for _, p := range []string{
		"hello", "/read main.go", "/edit main.go one => 1", "/run echo out; echo err >&2; exit 2", "/plan a; b", "/demo", "/demo flood 20",
		"/write a.txt\n" + strings.Repeat("text\n", 100), "/search text", "/read nothing",
	} {
		k.tell(p)
	}
	k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision { return r.Reject() }
	k.tell("/run echo no")
	slow := k.session.Prompt(t.Context(), acp.Text("/run echo started > started.txt; sleep 60"))
	k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision {
		_ = k.session.Cancel(context.WithoutCancel(t.Context()))
		return r.Reject()
	}
	if res, err := slow.Wait(); err != nil {
		t.Fatal(res, err)
	}
	shown := entries(t, fold.Snapshot())
	id := k.session.ID()
	if err := k.conn.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	fold = transcript.New(transcript.Config{})
	mu.Unlock()
	k.connect()
	if _, err := k.conn.Load(t.Context(), id, acp.SessionConfig{Cwd: k.cwd}); err != nil {
		t.Fatal(err)
	}
	told := entries(t, fold.Snapshot())
	if len(shown) < 40 {
		t.Errorf("only %d entries", len(shown))
	}
	if diff := cmp.Diff(shown, told); diff != "" {
		t.Error(diff)
	}
}

// entries are those that a session is to remember, as they are sent.
func entries(t *testing.T, s *transcript.Snapshot) (all []string) {
	t.Helper()
	for e := range s.Entries() {
		switch e.(type) {
		case *transcript.Notice, *transcript.Permission:
			continue
		}
		data, err := json.Marshal(e.Update())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(data))
	}
	return all
}

// TestReplayedV1 shows what version 1 clients are told later of a change and of a
// command that ran in a terminal of theirs, which is gone.
func TestReplayedV1(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("commands are of another shell")
	}
	for name, change := range map[string]func(*talk){"lent": lent, "here": func(*talk) {}} {
		t.Run(name, func(t *testing.T) {
			k := start(t, 1, change)
			k.tell("/edit main.go one => 1")
			k.tell("/run echo output; exit 2")
			id := k.session.ID()
			if err := k.session.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			k.taken()
			s, err := k.conn.Load(t.Context(), id, acp.SessionConfig{Cwd: k.cwd})
			if err != nil {
				t.Fatal(err)
			}
			k.session = s
			golden(t, "replay-v1-"+name, k.taken())
		})
	}
}
