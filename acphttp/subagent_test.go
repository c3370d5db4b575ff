package acphttp_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
)

// TestSubagent: a client that reads the stream of a session gets what subagents do, and those of these, of which it has
// opened no session; and it can answer what they ask.
func TestSubagent(t *testing.T) {
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		if err := t.Subagent(&acp.SubagentUpdate{SessionID: "child"}); err != nil {
			return "", err
		}
		child := t.Session().Child("child")
		if err := child.Send(&acp.SubagentUpdate{SessionID: "grandchild"}); err != nil {
			return "", err
		}
		for _, s := range []*acp.AgentSession{t.Session(), child, child.Child("grandchild")} {
			if err := s.Send(&acp.AgentMessageChunk{MessageID: "m", Content: acp.Text("hello")}); err != nil {
				return "", err
			}
			if d, err := s.Ask(acp.Permission{Title: "May I?"}); err != nil || !d.Allowed {
				return "", fmt.Errorf("asked in %s: %+v, %v", s.ID(), d, err)
			}
		}
		return acp.StopEndTurn, nil
	}}
	for version := 1; version <= 2; version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			said := make(chan acp.SessionID, 3)
			client := &acp.Client{MinVersion: version, MaxVersion: version, Update: func(_ context.Context, s *acp.ClientSession, u *acp.Update) {
				if _, ok := u.Update.(*acp.AgentMessageChunk); ok {
					said <- s.ID()
				}
			}, RequestPermission: func(_ context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
				return r.Allow(), nil
			}}
			conn, err := client.Connect(t.Context(), acphttp.NewTransport(serve(t, &acphttp.Server{Serve: agent.Serve})))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Prompt(t.Context(), acp.Text("go")).Wait(); err != nil {
				t.Fatal(err)
			}
			left := []acp.SessionID{s.ID(), "child", "grandchild"}
			for len(left) > 0 {
				id := <-said
				i := slices.Index(left, id)
				if i < 0 {
					t.Fatalf("session %q, not one of %q", id, left)
				}
				left = slices.Delete(left, i, i+1)
			}
		})
	}
}
