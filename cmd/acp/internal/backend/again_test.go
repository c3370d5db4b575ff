package backend

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// TestIDsUsedAgain talks to an agent that remembers nothing, and so gives every first session the
// same id: conversations of different days must not become one.
func TestIDsUsedAgain(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		kept := openStore(t, filepath.Join(t.TempDir(), "kept"))
		begin := func() Config {
			cfg := config(t, version, &acp.Agent{
				NewSession: func(_ context.Context, s *acp.AgentSession) error { s.SetID("s1"); return nil },
				Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
					return acp.StopEndTurn, turn.Say("re: " + turn.Text())
				},
			})
			cfg.Store = kept
			return cfg
		}
		say := func(s *Session, text string) {
			t.Helper()
			if _, err := s.Prompt(t.Context(), acp.Text(text)); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range []string{"one", "two"} {
			h := open(t, begin())
			s, err := h.NewSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			say(s, text)
			say(s, "and "+text)
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
		}
		// One that is only looked at moves nothing.
		h := open(t, begin())
		if _, err := h.NewSession(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		// One that the agent has forgotten goes on under the same id.
		h = open(t, begin())
		s, how, err := h.Restore(t.Context(), "s1")
		if err != nil || how != acp.RestoredNew {
			t.Fatalf("Restore: %v, %v", how, err)
		}
		say(s, "three")
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}

		got := map[string]string{}
		list, err := kept.List(t.Context(), store.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			snap, _, err := kept.Snapshot(t.Context(), m.Conversation, store.Bounds())
			if err != nil {
				t.Fatal(err)
			}
			if m.ID != "s1" {
				t.Errorf("the agent's id is %q", m.ID)
			}
			got[m.Title] = strings.Join(messages(snap), "|")
		}
		want := map[string]string{
			"one": "user: one|agent: re: one|user: and one|agent: re: and one",
			"two": "user: two|agent: re: two|user: and two|agent: re: and two|user: three|agent: re: three",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

// TestCallsBeginAnew: an agent that counts its tool calls anew in each turn has each of them shown in its turn, in a
// conversation that goes on later, too.
func TestCallsBeginAnew(t *testing.T) {
	versions(t, func(t *testing.T, version int) {
		kept := openStore(t, filepath.Join(t.TempDir(), "kept"))
		begin := func() *Host {
			cfg := config(t, version, &acp.Agent{
				NewSession:    func(_ context.Context, s *acp.AgentSession) error { s.SetID("s1"); return nil },
				ResumeSession: func(context.Context, *acp.AgentSession, bool) error { return nil },
				Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
					call := &acp.ToolCallUpdate{ToolCallID: "c", Title: acp.Set("c of " + turn.Text()), Status: acp.Set(acp.ToolCallStatusInProgress)}
					if err := turn.Send(call); err != nil {
						return "", err
					}
					if _, err := turn.Ask(acp.Permission{Title: "May I?", Subject: &acp.ToolCallPermissionSubject{ToolCall: acp.ToolCallUpdate{ToolCallID: "c"}}}); err != nil {
						return "", err
					}
					return acp.StopEndTurn, turn.Send(&acp.ToolCallUpdate{ToolCallID: "c", Status: acp.Set(acp.ToolCallStatusCompleted)})
				},
			})
			cfg.Store = kept
			return open(t, cfg)
		}
		var want []string
		check := func(what string, snap *transcript.Snapshot) {
			t.Helper()
			var got []string
			for e := range snap.Entries() {
				switch e := e.(type) {
				case *transcript.Message:
					got = append(got, e.Text())
				case *transcript.ToolCall:
					got = append(got, fmt.Sprintln(e.ID == "c", e.Title, e.Status))
				case *transcript.Permission:
					about := e.Subject.(*acp.ToolCallPermissionSubject).ToolCall.ToolCallID
					got = append(got, "asked of "+snap.ToolCall(about).Title)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		for _, texts := range [][]string{{"one", "two"}, {"three", "four"}} {
			h := begin()
			var s *Session
			var err error
			if want == nil {
				s, err = h.NewSession(t.Context())
			} else {
				s, _, err = h.Restore(t.Context(), "s1")
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range texts {
				if _, err := s.Prompt(t.Context(), acp.Text(text)); err != nil {
					t.Fatal(err)
				}
				want = append(want, text, fmt.Sprintln(text == "one", "c of "+text, acp.ToolCallStatusCompleted), "asked of c of "+text)
			}
			check("live", s.Snapshot())
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			list, err := kept.List(t.Context(), store.Query{})
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			snap, _, err := kept.Snapshot(t.Context(), list[0].Conversation, store.Bounds())
			if err != nil {
				t.Fatal(err)
			}
			check("kept", snap)
		}
	})
}
