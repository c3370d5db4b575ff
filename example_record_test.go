package acp_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/goacp/acp"
)

// An agent whose sessions another process could resume: it saves what it sends.
func ExampleAgent_record() {
	var mu sync.Mutex
	saved := map[acp.SessionID][]acp.SessionUpdate{} // or a directory, or a database
	newAgent := func() *acp.Agent {
		return &acp.Agent{
			Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
				return acp.StopEndTurn, t.Say("Noted: " + t.Text())
			},
			Record: func(_ context.Context, s *acp.AgentSession, u acp.SessionUpdate) error {
				if acp.IsMomentary(u) {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				saved[s.ID()] = append(saved[s.ID()], u)
				return nil
			},
			ResumeSession: func(_ context.Context, s *acp.AgentSession, replay bool) error {
				mu.Lock()
				history, ok := saved[s.ID()]
				mu.Unlock()
				if !ok {
					return acp.SessionNotFound(s.ID())
				}
				for _, u := range history {
					if replay {
						_ = s.Send(u) // the first failure is that of Err
					}
				}
				return s.Err()
			},
		}
	}

	ctx := context.Background()
	client := &acp.Client{Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
		if u.Replayed {
			fmt.Printf("replayed: %s %q\n", u.Kind(), u.Text())
		}
	}}
	first, err := client.Connect(ctx, acp.InProcess(newAgent()))
	if err != nil {
		fmt.Println(err)
		return
	}
	session, err := first.NewSession(ctx, acp.SessionConfig{Cwd: "/"})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _, err := session.Prompt(ctx, acp.Text("milk")).Text()
	fmt.Println(text, err)
	_ = first.Close() // always nil

	second, err := client.Connect(ctx, acp.InProcess(newAgent()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Close()
	if _, err := second.Load(ctx, session.ID(), acp.SessionConfig{Cwd: "/"}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Noted: milk <nil>
	// replayed: user_message ""
	// replayed: agent_message_chunk "Noted: milk"
}
