package acp_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
)

// keeper is an agent that keeps what it said in its sessions, as updates, and
// says one word, makes one tool call and starts one command in each turn.
type keeper struct {
	mu       sync.Mutex
	sessions map[acp.SessionID][]acp.SessionUpdate
}

func (k *keeper) agent() *acp.Agent {
	keep := func(s *acp.AgentSession, u ...acp.SessionUpdate) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.sessions[s.ID()] = append(k.sessions[s.ID()], u...)
	}
	saved := func(id acp.SessionID) ([]acp.SessionUpdate, bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		list, ok := k.sessions[id]
		return slices.Clone(list), ok
	}
	return &acp.Agent{
		NewSession: func(_ context.Context, s *acp.AgentSession) error {
			if meta := string(s.Meta()); meta != "" { // goes on with what is saved
				s.SetID("saved")
			}
			return nil
		},
		ForkSession: func(_ context.Context, s *acp.AgentSession, from acp.SessionID) error {
			list, _ := saved(from)
			keep(s, list...)
			return nil
		},
		ResumeSession: func(_ context.Context, s *acp.AgentSession, replay bool) error {
			list, ok := saved(s.ID())
			if !ok {
				return acp.SessionNotFound(s.ID())
			}
			if replay {
				for _, u := range list {
					_ = s.Send(u)
				}
			}
			return s.Err()
		},
		Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
			t.Say("re: " + t.Text())
			id := t.MessageID()
			call := t.ToolCall(acp.ToolCall{Title: t.Text()})
			term, err := t.Run(acp.Exec{Command: "true"})
			if err != nil {
				return "", err
			}
			_, err = term.Wait()
			_ = term.Release()
			keep(t.Session(),
				&acp.UserMessageChunk{MessageID: t.PromptID(), Content: acp.Text(t.Text())},
				&acp.AgentMessageChunk{MessageID: id, Content: acp.Text("re: " + t.Text())},
				&acp.ToolCallUpdate{ToolCallID: call.ID()},
				&acp.TerminalUpdate{TerminalID: term.ID()})
			return acp.StopEndTurn, err
		},
	}
}

// ids returns how often each entity of a history was begun.
func (k *keeper) ids(id acp.SessionID) map[string]int {
	k.mu.Lock()
	defer k.mu.Unlock()
	seen := map[string]int{}
	for _, u := range k.sessions[id] {
		switch u := u.(type) {
		case *acp.UserMessageChunk:
			seen["message "+string(u.MessageID)]++
		case *acp.AgentMessageChunk:
			seen["message "+string(u.MessageID)]++
		case *acp.ToolCallUpdate:
			seen["call "+string(u.ToolCallID)]++
		case *acp.TerminalUpdate:
			seen["call "+string(u.TerminalID)]++ // tool calls and terminals count together
		}
	}
	return seen
}

// TestIDsKeptApart: what a session says never has an id that its history has,
// however it came by that history.
func TestIDsKeptApart(t *testing.T) {
	for v := 1; v <= 2; v++ {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) {
			k := &keeper{sessions: map[acp.SessionID][]acp.SessionUpdate{}}
			conn, _ := acptest.Pair(t, k.agent(), &acp.Client{MaxVersion: v})
			cfg := acp.SessionConfig{Cwd: t.TempDir()}
			open := func(s *acp.ClientSession, err error) *acp.ClientSession {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			say := func(s *acp.ClientSession, text string) {
				t.Helper()
				if _, err := s.Prompt(t.Context(), acp.Text(text)).Wait(); err != nil {
					t.Fatal(err)
				}
			}
			first := open(conn.NewSession(t.Context(), cfg))
			say(first, "one")
			say(first, "two")
			fork := open(conn.Fork(t.Context(), first.ID(), cfg))
			say(fork, "three")
			again := open(conn.Fork(t.Context(), fork.ID(), cfg))
			say(again, "four")
			if err := again.Close(t.Context()); v == 2 && err != nil {
				t.Fatal(err)
			}
			loaded := open(conn.Load(t.Context(), again.ID(), cfg))
			say(loaded, "five")

			// To go on with what is saved by opening a session under its id.
			k.mu.Lock()
			k.sessions["saved"] = k.sessions[first.ID()]
			k.mu.Unlock()
			cfg.Meta = []byte(`{"saved":true}`)
			say(open(conn.NewSession(t.Context(), cfg)), "six")

			for id, turns := range map[acp.SessionID]int{first.ID(): 2, fork.ID(): 3, loaded.ID(): 5, "saved": 3} {
				seen := k.ids(id)
				if len(seen) != 4*turns {
					t.Errorf("%s: %d entities, want %d: %q", id, len(seen), 4*turns, slices.Sorted(maps.Keys(seen)))
				}
			}
		})
	}
}
