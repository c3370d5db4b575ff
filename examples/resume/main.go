// Command resume is an agent whose sessions survive it: a client can list them,
// take them up again, with or without their history, and delete them.
//
//	resume -dir DIRECTORY
//
// It counts the prompts it receives, which shows what it remembers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
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
	s, err := openStore(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	return newAgent(s).Serve(ctx, acp.Stdio())
}

// newAgent returns an agent that keeps nothing but what is in the store. A
// session is created there with its first prompt.
func newAgent(s *store) *acp.Agent {
	return &acp.Agent{
		Info:   acp.Implementation{Name: "resume", Version: "1.0.0"},
		Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) { return prompt(s, t) },
		Record: func(_ context.Context, session *acp.AgentSession, u acp.SessionUpdate) error {
			return record(s, session, u)
		},
		ResumeSession: func(_ context.Context, session *acp.AgentSession, replay bool) error {
			return resume(s, session, replay)
		},
		ListSessions: func(_ context.Context, _ *acp.AgentConn, q *acp.SessionQuery) (*acp.SessionPage, error) {
			return s.list(q)
		},
		// There is nothing to do, but it tells clients that they may close.
		CloseSession: func(context.Context, *acp.AgentSession) error { return nil },
		DeleteSession: func(_ context.Context, _ *acp.AgentConn, id acp.SessionID) error {
			return s.remove(id)
		},
	}
}

// resume replays a session by sending what was saved of it. Its next prompt
// finds the rest in the store.
func resume(s *store, session *acp.AgentSession, replay bool) error {
	_, history, err := s.load(session.ID())
	if err != nil || !replay {
		return err
	}
	for _, u := range history {
		if err := session.Send(u); err != nil {
			return err
		}
	}
	return nil
}

// record saves what the user and the agent say, as it is sent. Nothing is sent
// that could not be saved.
func record(s *store, session *acp.AgentSession, u acp.SessionUpdate) error {
	if acp.IsMomentary(u) {
		return nil
	}
	if question, ok := u.(*acp.UserMessage); ok {
		_, _, err := s.load(session.ID())
		if errors.Is(err, jsonrpc.ErrResourceNotFound) { // it is new
			err = s.create(acp.SessionInfo{SessionID: session.ID(), Cwd: session.Cwd(), Title: textOf(question)})
		}
		if err != nil {
			return err
		}
	}
	return s.append(session.ID(), u)
}

func textOf(m *acp.UserMessage) (text string) {
	for _, b := range m.Content.Or(nil) {
		if t, ok := b.(*acp.TextContent); ok {
			text += t.Text
		}
	}
	return text
}

// prompt counts the prompts that were saved, this one included.
func prompt(s *store, t *acp.Turn) (acp.StopReason, error) {
	info, history, err := s.load(t.Session().ID())
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
