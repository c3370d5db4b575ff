package acp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// A client logs in when the agent asks for it.
func ExampleClientConn_Login() {
	user := ""
	agent := acp.Agent{
		AuthMethods: []acp.AuthMethod{&acp.AuthMethodAgent{MethodID: "browser", Name: "Log in with your browser"}},
		Login: func(ctx context.Context, c *acp.AgentConn, id acp.AuthMethodID) error {
			user = "gopher"
			return nil
		},
		NewSession: func(ctx context.Context, s *acp.AgentSession) error {
			if user == "" {
				return jsonrpc.ErrAuthRequired
			}
			return nil
		},
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, t.Say("hello, " + user)
		},
	}
	ctx := context.Background()
	conn, err := new(acp.Client).Connect(ctx, acp.InProcess(&agent))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if errors.Is(err, jsonrpc.ErrAuthRequired) {
		for _, m := range conn.AuthMethods() {
			if m, ok := m.(*acp.AuthMethodAgent); ok {
				fmt.Println(m.Name)
				if err := conn.Login(ctx, m.MethodID); err != nil {
					log.Fatal(err)
				}
				break
			}
		}
		session, err = conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	}
	if err != nil {
		log.Fatal(err)
	}
	said, _, err := session.Prompt(ctx, acp.Text("who am I?")).Text()
	fmt.Println(said, err)
	// Output:
	// Log in with your browser
	// hello, gopher <nil>
}

// saved is an agent that has a saved session and replays it.
var saved = acp.Agent{
	ListSessions: func(ctx context.Context, c *acp.AgentConn, q *acp.SessionQuery) (*acp.SessionPage, error) {
		return &acp.SessionPage{Sessions: []acp.SessionInfo{{SessionID: "sess_1", Cwd: "/home/me/project", Title: "Fix the parser"}}}, nil
	},
	ResumeSession: func(ctx context.Context, s *acp.AgentSession, replay bool) error {
		if s.ID() != "sess_1" {
			return acp.SessionNotFound(s.ID())
		}
		if replay {
			s.User(acp.Text("Why does it fail?"))
			s.Say("Because of a comma.")
		}
		return s.Err()
	},
	Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		return acp.StopEndTurn, t.Say("As I said: a comma.")
	},
}

// The sessions that an agent knows.
func ExampleClientConn_ListSessions() {
	ctx := context.Background()
	conn, err := new(acp.Client).Connect(ctx, acp.InProcess(&saved))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	for info, err := range conn.ListSessions(ctx, acp.ListOptions{Cwd: "/home/me/project"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(info.SessionID, info.Title)
	}
	// Output: sess_1 Fix the parser
}

// A conversation continues where it ended. The agent shows what was said before.
func ExampleClientConn_Restore() {
	client := acp.Client{
		Update: func(ctx context.Context, s *acp.ClientSession, u *acp.Update) {
			if text := u.Text(); text != "" {
				fmt.Println("update:", text)
			}
		},
	}
	ctx := context.Background()
	conn, err := client.Connect(ctx, acp.InProcess(&saved))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	for _, id := range []acp.SessionID{"sess_1", "sess_9"} {
		session, how, err := conn.Restore(ctx, id, acp.SessionConfig{Cwd: "/home/me/project", Replay: true})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id, "is", how, session.ID() == id)
	}
	// Output:
	// update: Because of a comma.
	// sess_1 is loaded true
	// sess_9 is new false
}

// An agent that serves clients over a network. Shutdown lets their turns end.
func ExampleAgent_Connect() {
	agent := acp.Agent{
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, t.Say("hello from afar")
		},
	}
	ctx := context.Background()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		socket, err := listener.Accept() // in a loop, for several clients
		if err != nil {
			served <- err
			return
		}
		conn, err := agent.Connect(ctx, acp.Over(jsonrpc.NewLineStream(socket, socket)))
		if err != nil {
			served <- err
			return
		}
		served <- conn.Wait()
	}()

	socket, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	conn, err := new(acp.Client).Connect(ctx, acp.Over(jsonrpc.NewLineStream(socket, socket)))
	if err != nil {
		log.Fatal(err)
	}
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	said, _, err := session.Prompt(ctx, acp.Text("hi")).Text()
	fmt.Println(said, err)
	conn.Close()
	fmt.Println("the client has left:", <-served)
	listener.Close()
	// Output:
	// hello from afar <nil>
	// the client has left: <nil>
}
