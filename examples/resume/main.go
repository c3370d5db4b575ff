// Command resume is an agent whose sessions survive it: a client can list them,
// resume them, with or without their history, and delete them.
//
//	resume -dir DIRECTORY
//
// It counts the prompts it receives, which shows what it remembers.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpstore"
)

func main() {
	dir := flag.String("dir", "", "`directory` to keep sessions in")
	flag.Parse()
	if *dir == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: resume -dir DIRECTORY")
		os.Exit(2)
	}
	if err := serve(context.Background(), *dir); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, dir string) error {
	var store *acpstore.Store
	agent := &acp.Agent{
		Info:   acp.Implementation{Name: "resume", Version: "1.0.0"},
		Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) { return prompt(store, t) },
	}
	store, err := acpstore.Keep(agent, dir)
	if err != nil {
		return err
	}
	defer store.Close()
	return agent.Serve(ctx, acp.Stdio())
}

// prompt counts the prompts that were stored, this one included.
func prompt(s *acpstore.Store, t *acp.Turn) (acp.StopReason, error) {
	info, history, err := s.Load(t.Session().ID())
	if err != nil {
		return "", err
	}
	count := 0
	for _, u := range history {
		if _, ok := u.(*acp.UserMessage); ok {
			count++
		}
	}
	if count == 1 {
		if err := t.SetTitle(info.Title); err != nil {
			return "", err
		}
	}
	return acp.StopEndTurn, t.Say(fmt.Sprintf("You have told me %d things, %q first.", count, info.Title))
}
