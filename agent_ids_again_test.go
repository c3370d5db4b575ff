package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/goacp/acp/internal/idtest"
	"github.com/goacp/acp/jsonrpc"
)

// curious asks for a permission and for data in each turn.
func curious() *Agent {
	return &Agent{Prompt: func(_ context.Context, t *Turn) (StopReason, error) {
		answer, err := t.Ask(Permission{Title: "May I?"})
		if err == nil && !answer.Allowed {
			err = errors.New("not allowed")
		}
		if err != nil {
			return "", err
		}
		form, err := t.Elicit(FormRequest{Message: "Who?"})
		if err == nil && !form.Accepted {
			err = errors.New("not accepted")
		}
		return StopEndTurn, err
	}}
}

// willing is a client that agrees to everything.
func willing() *Client {
	return &Client{
		RequestPermission: func(_ context.Context, r *PermissionRequest) (PermissionDecision, error) { return r.Allow(), nil },
		Elicit: func(context.Context, *ElicitationRequest) (*ElicitationResponse, error) {
			return AcceptElicitation(map[string]json.RawMessage{"name": json.RawMessage(`"Ada"`)}), nil
		},
	}
}

// TestIDsAgain: an agent may use the id of a request again once that has its answer, in the same turn and in later ones.
func TestIDsAgain(t *testing.T) {
	check := func(t *testing.T, conn *ClientConn) {
		t.Helper()
		s, err := conn.NewSession(t.Context(), SessionConfig{Cwd: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := s.Prompt(t.Context(), Text("go")).Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for v := 1; v <= 2; v++ {
		t.Run(fmt.Sprint("direct", v), func(t *testing.T) {
			a, c := logged(t, curious()), willing()
			theirs, ours := jsonrpc.Pipe()
			agent, err := a.Connect(t.Context(), Over(idtest.Frugal(theirs)))
			if err != nil {
				t.Fatal(err)
			}
			c.Logger, c.MinVersion, c.MaxVersion = a.Logger, v, v
			conn, err := c.Connect(t.Context(), Over(ours))
			if err != nil {
				t.Fatal(err)
			}
			check(t, conn)
			_, _ = conn.Close(), agent.Close()
		})
		for client := 1; client <= 2; client++ {
			t.Run(fmt.Sprint("bridge", v, client), func(t *testing.T) {
				check(t, bridgedOver(t, curious(), v, willing(), client, idtest.Frugal))
			})
		}
	}
}
