package acp

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/jsonrpc"
)

// TestBridgeCommandsOnce: the commands of a new session are sent at most once, whether the agent has sent them before its
// answer or behind it.
func TestBridgeCommandsOnce(t *testing.T) {
	done := make(chan struct{}, 1)
	set := func(s *AgentSession) error {
		err := s.SetCommands(SlashCommand{Name: "test"})
		done <- struct{}{}
		return err
	}
	for _, way := range [][2]int{{1, 1}, {1, 2}, {2, 1}, {2, 2}} {
		for name, opened := range map[string]func(ctx context.Context, s *AgentSession) error{
			"before": func(_ context.Context, s *AgentSession) error { return set(s) },
			"behind": func(ctx context.Context, s *AgentSession) error {
				jsonrpc.RequestFrom(ctx).AfterAnswer(func() { _ = set(s) })
				return nil
			},
		} {
			t.Run(fmt.Sprint(name, way), func(t *testing.T) {
				agent := &Agent{
					NewSession: opened,
					Prompt: func(context.Context, *Turn) (StopReason, error) {
						<-done
						return StopEndTurn, nil
					},
				}
				var mu sync.Mutex
				sent := map[SessionID]int{}
				client := &Client{Update: func(_ context.Context, s *ClientSession, u *Update) {
					if _, ok := u.Update.(*AvailableCommandsUpdate); ok {
						mu.Lock()
						defer mu.Unlock()
						sent[s.ID()]++
					}
				}}
				conn := bridged(t, agent, way[0], client, way[1])
				for range 20 {
					s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.Prompt(t.Context(), Text("go")).Wait(); err != nil {
						t.Fatal(err)
					}
					mu.Lock()
					n := sent[s.ID()]
					mu.Unlock()
					if n > 1 || n == 0 && way[1] == 1 || len(s.Commands()) != 1 {
						t.Fatalf("they were sent %d times, and %d are known", n, len(s.Commands()))
					}
				}
			})
		}
	}
}

// TestCommandsBesideAnswer: commands that are set while the answer that opens the session is made are in it or follow
// it, and not both.
func TestCommandsBesideAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *AgentSession
		agent := echoAgent()
		agent.MaxVersion = 1
		agent.NewSession = func(ctx context.Context, of *AgentSession) error {
			s = of
			return s.acquire(ctx) // the answer waits
		}
		sent := 0
		client, _ := paired(t, agent, &Client{Update: func(_ context.Context, _ *ClientSession, u *Update) {
			if _, ok := u.Update.(*AvailableCommandsUpdate); ok {
				sent++
			}
		}})
		go func() {
			if _, err := client.NewSession(t.Context(), SessionConfig{Cwd: "/"}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		go func() {
			if err := s.SetCommands(SlashCommand{Name: "test"}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		s.releaseSending()
		synctest.Wait()
		if sent != 1 {
			t.Errorf("they were sent %d times", sent)
		}
	})
}
