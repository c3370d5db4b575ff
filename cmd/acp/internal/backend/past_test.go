//go:build unix

package backend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/history"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/cmd/acp/internal/test/replay"
	"github.com/goacp/acp/cmd/acp/internal/ui/export"
	"github.com/goacp/acp/internal/long"
	"github.com/goacp/acp/transcript"
)

// shown is what sessions show prints of a conversation, without what is above it.
func shown(t *testing.T, kept *store.Store, conversation string) string {
	t.Helper()
	snap := stored(t, kept, conversation)
	var b bytes.Buffer
	if err := export.Write(&b, export.Text, store.Session{}, snap); err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(b.String(), "\n\n")
	return body
}

// missing returns the lines of before that after does not have, in their order.
func missing(before, after string) (lines []string) {
	rest := strings.Split(after, "\n")
next:
	for l := range strings.SplitSeq(before, "\n") {
		for i, x := range rest {
			if x == l {
				rest = rest[i+1:]
				continue next
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// TestReplays continues a session 20 times with agents that can only load, and so tell its history,
// in every way: nothing that was kept is lost, and what is known is not told twice.
func TestReplays(t *testing.T) {
	times := 20
	if !long.All() || raceEnabled {
		times = 4
	}
	for _, kind := range replay.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := child(t, 1, "replays "+kind)
			cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
			cfg.Front.Ask = allow
			h := open(t, cfg)
			s := talk(t, h, "one", "ask two", "one")
			slow(t, s)
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			key := s.journal.conversationID()
			before := shown(t, cfg.Store, key)
			for _, want := range []string{"Permission: Write ask two (answered: Yes)", "+ask two", "slow 1 slow 2", "Thinking of one.", "What is in one"} {
				if !strings.Contains(before, want) {
					t.Fatalf("%q is not shown in\n%s", want, before)
				}
			}
			for n := range times {
				h, s, how := restored(t, cfg, "s-1")
				if how != acp.RestoredLoaded {
					t.Fatalf("Restore: %v", how)
				}
				if n%2 == 1 {
					text := fmt.Sprintf("prompt %d", n)
					if n%4 == 1 {
						text = "one" // what was said before is said again
					}
					prompt(t, s, text)
					if got, want := s.Snapshot().Text(), "Answer to "+text+".\nThat is all."; got != want {
						t.Errorf("time %d: the answer is %q, want %q", n, got, want)
					}
				}
				live := messages(s.Snapshot())
				if err := h.Close(); err != nil {
					t.Fatal(err)
				}
				after := shown(t, cfg.Store, key)
				if lost := missing(before, after); len(lost) > 0 {
					t.Fatalf("time %d: %q is gone from\n%s\nwhich was\n%s", n, lost, after, before)
				}
				if n%2 == 0 && n > 0 && after != before && kind != "words" {
					t.Fatalf("time %d: told again (-before +after):\n%s", n, cmp.Diff(before, after))
				}
				if n%2 == 1 { // late ones come when they like
					if diff := cmp.Diff(live, messages(stored(t, cfg.Store, key))); diff != "" {
						t.Errorf("time %d (-shown +kept):\n%s", n, diff)
					}
				}
				before = after
			}
			news := strings.Count(before, "From the agent's history")
			if kind == "words" && news == 0 || kind != "words" && news > 0 {
				t.Errorf("%d times there is something from the agent's history in\n%s", news, before)
			}
			if got, want := strings.Count(before, "slow 1 slow 2"), 1; got != want {
				t.Errorf("the interrupted answer is there %d times", got)
			}
		})
	}
}

// slow has an answer begun and cancelled.
func slow(t *testing.T, s *Session) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := s.journal.changed
	s.journal.changed = func(changes []transcript.Change) {
		if strings.Contains(s.Snapshot().Text(), "slow 2") {
			cancel()
		}
		if f != nil {
			f(changes)
		}
	}
	res, err := s.Prompt(ctx, acp.Text("slow"))
	if err != nil && !errors.Is(err, context.Canceled) || err == nil && res.StopReason != acp.StopCancelled {
		t.Fatalf("slow: %+v, %v", res, err)
	}
	s.journal.changed = f
}

// TestTellsElsewhere: what was said in another program is added at the end, in its order, and marked.
func TestTellsElsewhere(t *testing.T) {
	cfg := child(t, 1, "replays everything")
	cfg.Store = openStore(t, filepath.Join(t.TempDir(), "kept"))
	talkOnce(t, cfg, "one")
	file := filepath.Join(cfg.Agent.Env[place], "history.json")
	if err := os.WriteFile(file, []byte(`["zero","one","elsewhere"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		h, s, _ := restored(t, cfg, "s-1")
		var got []string
		for e := range s.Snapshot().Entries() {
			if m, ok := e.(*transcript.Message); ok && m.Role != transcript.RoleThought {
				text, _, _ := strings.Cut(m.Text(), "\n")
				if history.IsNews(e) {
					text = "(" + text + ")"
				}
				got = append(got, text)
			}
			if history.IsHeading(e) {
				got = append(got, "---")
			}
		}
		want := "one|Answer to one.|---|(zero)|(Answer to zero.)|(elsewhere)|(Answer to elsewhere.)"
		if strings.Join(got, "|") != want {
			t.Errorf("%q, want %s", got, want)
		}
		_ = h.Close()
	}
}

// TestUpdatesAfterLoad: what is told after the load under ids of before does not change what was kept,
// and reaches an entry that has a name.
func TestUpdatesAfterLoad(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		kept := openStore(t, filepath.Join(t.TempDir(), "kept"))
		begin := func(update ...acp.SessionUpdate) Config {
			cfg := config(t, version, &acp.Agent{
				Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
					for _, u := range update {
						if err := turn.Session().Send(u); err != nil {
							return "", err
						}
					}
					return acp.StopEndTurn, nil
				},
				ResumeSession: func(context.Context, *acp.AgentSession, bool) error { return nil },
			})
			cfg.Store = kept
			return cfg
		}
		content := acp.Set([]acp.ToolCallContent{&acpv2.Content{Content: acp.Text("first")}})
		id, key := talkOnce(t, begin(
			&acp.ToolCallUpdate{ToolCallID: "1", Title: acp.Set("Read it"), Status: acp.Set(acp.ToolCallStatusInProgress), Content: content},
			&acp.AgentMessageChunk{MessageID: "m1", Content: acp.Text("said first")},
		), "go")
		before := shown(t, kept, key)
		_, s, _ := restored(t, begin(
			&acp.AgentMessageChunk{MessageID: "m1", Content: acp.Text("said ")},
			&acp.AgentMessageChunk{MessageID: "m1", Content: acp.Text("then")},
			&acp.ToolCallUpdate{ToolCallID: "1", Status: acp.Set(acp.ToolCallStatusCompleted)},
		), id)
		prompt(t, s, "more")
		after := shown(t, kept, key)
		if lost := missing(before, after); len(lost) > 0 {
			t.Errorf("%q is gone from\n%s", lost, after)
		}
		var got []string
		for e := range s.Snapshot().Entries() {
			switch e := e.(type) {
			case *transcript.Message:
				got = append(got, e.Text())
			case *transcript.ToolCall:
				got = append(got, fmt.Sprint(e.Title, " ", e.Status, " ", len(e.Content)))
			}
		}
		want := "go|Read it in_progress 1|said first|more|said then|Read it completed 1"
		if version == 1 { // the agent's library tells of a new call there, which has its id for a title
			want = "go|Read it in_progress 1|said first|more|said then|1 completed 0"
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q, want %s", got, want)
		}
	})
}
