package acp

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/internal/logtest"
)

// TestInProcess: each connection has the agent to itself, and Wait returns when all have ended.
func TestInProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		left := make(chan struct{})
		agent := &Agent{Logger: logtest.New(t), Prompt: func(ctx context.Context, turn *Turn) (StopReason, error) {
			if turn.Text() == "wait" {
				defer close(left)
				<-ctx.Done()
				return "", context.Cause(ctx)
			}
			return "", turn.Say(fmt.Sprint(ctx.Value(key{})))
		}}
		transport := InProcess(agent)
		for range 2 {
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "a value"))
			defer cancel()
			conn, err := new(Client).Connect(ctx, transport)
			if err != nil {
				t.Fatal(err)
			}
			s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: "/"})
			if err != nil {
				t.Fatal(err)
			}
			cancel() // ends nothing but the opening
			said := ""
			for u, err := range s.Prompt(t.Context(), Text("say")).Updates() {
				if err != nil {
					t.Fatal(err)
				}
				said += u.Text()
			}
			if said != "a value" {
				t.Errorf("the agent said %q", said)
			}
			s.Prompt(t.Context(), Text("wait"))
			synctest.Wait()
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			<-left
			left = make(chan struct{})
		}
		if err := transport.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestInProcessUnready: an agent that is not configured fails the connection with the reason.
func TestInProcessUnready(t *testing.T) {
	transport := InProcess(new(Agent))
	_, err := new(Client).Connect(t.Context(), transport)
	if err == nil || errors.Is(err, ErrInitialize) {
		t.Errorf("connected to an agent without Prompt: %v", err)
	}
	if err := transport.Wait(); err != nil {
		t.Error(err)
	}
}
