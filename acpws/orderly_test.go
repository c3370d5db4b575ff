package acpws_test

import (
	"context"
	"errors"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/internal/remotetest"
)

// TestOrderlyEnd: a server that closes in an orderly way leaves open what became of a
// prompt.
func TestOrderlyEnd(t *testing.T) {
	agent := remotetest.Counting(t)
	began, hold := make(chan struct{}, 2), make(chan struct{})
	agent.Prompt = func(context.Context, *acp.Turn) (acp.StopReason, error) {
		began <- struct{}{}
		<-hold
		return acp.StopEndTurn, nil
	}
	s := &acphttp.Server{Serve: agent.Serve}
	url := ws(serve(t, s))
	defer close(hold)
	for version := 1; version <= 2; version++ {
		conn, err := (&acp.Client{MinVersion: version, MaxVersion: version}).Connect(t.Context(), acpws.NewTransport(url))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := session.Prompt(t.Context(), acp.Text("x")).Wait(); errors.Is(err, acp.ErrOutcomeUnknown) {
				t.Error("certainly not sent:", err)
			}
		}()
		reply := session.Prompt(t.Context(), acp.Text("x"))
		<-began
		defer func() {
			if _, err := reply.Wait(); !errors.Is(err, acp.ErrOutcomeUnknown) {
				t.Errorf("version %d: %v", version, err)
			}
		}()
	}
	at, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Close(at) // without waiting for the agent
}
