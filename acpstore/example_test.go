package acpstore_test

import (
	"context"
	"fmt"
	"os"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpstore"
)

// An agent whose sessions survive it.
func ExampleKeep() {
	dir, err := os.MkdirTemp("", "sessions")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	var store *acpstore.Store
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		_, history, err := store.Load(t.Session().ID()) // the prompt is part of it
		if err != nil {
			return "", err
		}
		return acp.StopEndTurn, t.Say(fmt.Sprint("updates so far: ", len(history)))
	}}
	if store, err = acpstore.Keep(agent, dir); err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	conn, err := new(acp.Client).Connect(context.Background(), acp.InProcess(agent))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	s, err := conn.NewSession(context.Background(), acp.SessionConfig{Cwd: os.TempDir()})
	if err != nil {
		fmt.Println(err)
		return
	}
	text, _, err := s.Prompt(context.Background(), acp.Text("hello")).Text()
	fmt.Println(text, err)
	// Output: updates so far: 1 <nil>
}
