package acp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// An agent: a program that an editor starts.
func Example_agent() {
	agent := acp.Agent{
		Info: acp.Implementation{Name: "shout", Version: "1.0.0"},
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, t.Say(strings.ToUpper(t.Text()))
		},
	}
	if err := agent.Serve(context.Background(), acp.Stdio()); err != nil {
		log.Fatal(err)
	}
}

// A client: it starts an agent, asks one thing and prints the answer.
func Example_client() {
	ctx := context.Background()
	client := acp.Client{Info: acp.Implementation{Name: "ask", Version: "1.0.0"}}
	conn, err := client.Connect(ctx, acp.Command("some-agent", "--acp"))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	for u, err := range session.Prompt(ctx, acp.Text("Why does the test fail?")).Updates() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(u.Text())
	}
	// Output:
	// WHY DOES THE TEST FAIL?
}

// The same agent speaks both versions of the protocol.
func ExampleAgent() {
	agent := acp.Agent{
		Info: acp.Implementation{Name: "shout", Version: "1.0.0"},
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			t.Think("The user would like it louder.")
			return acp.StopEndTurn, t.Say(strings.ToUpper(t.Text()))
		},
	}
	ctx := context.Background()
	for version := 1; version <= 2; version++ {
		agentSide, clientSide := acp.Pipe() // in place of acp.Stdio()
		go agent.Serve(ctx, agentSide)

		client := acp.Client{MaxVersion: version}
		conn, err := client.Connect(ctx, clientSide)
		if err != nil {
			log.Fatal(err)
		}
		session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
		if err != nil {
			log.Fatal(err)
		}
		for u, err := range session.Prompt(ctx, acp.Text("hello")).Updates() {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Print(u.Text()) // thoughts are no part of the answer
		}
		fmt.Println(" in version", conn.Version())
		conn.Close()
	}
	// Output:
	// HELLO in version 1
	// HELLO in version 2
}

// The agent may be a program, or be in the same process. Here it only speaks
// version 1, which the client finds out.
func ExampleClient_Connect() {
	ctx := context.Background()
	agentSide, clientSide := acp.Pipe() // in place of acp.Command("some-agent")
	agent := acp.Agent{
		Info:       acp.Implementation{Name: "old", Version: "0.9.0"},
		MaxVersion: 1,
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			return acp.StopEndTurn, nil
		},
	}
	go agent.Serve(ctx, agentSide)

	var client acp.Client // offers nothing and permits nothing
	conn, err := client.Connect(ctx, clientSide)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Println(conn.Agent().Name, "speaks version", conn.Version())

	_, err = conn.Load(ctx, "sess_1", acp.SessionConfig{Cwd: "/home/me/project"})
	fmt.Println(err, errors.Is(err, errors.ErrUnsupported))
	// Output:
	// old speaks version 1
	// acp: session/load: not advertised by the peer: unsupported operation true
}

// A reply is read while it is written. How the turn ended is known afterwards.
func ExampleClientSession_Prompt() {
	ctx := context.Background()
	agentSide, clientSide := acp.Pipe()
	agent := acp.Agent{
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			for word := range strings.FieldsSeq(t.Text()) {
				t.Say(word + ".")
			}
			return acp.StopEndTurn, t.Err()
		},
	}
	go agent.Serve(ctx, agentSide)

	conn, err := new(acp.Client).Connect(ctx, clientSide)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	reply := session.Prompt(ctx, acp.Text("one two three"))
	for u, err := range reply.Updates() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(u.Text()) // "" for updates of other kinds
	}
	result, err := reply.Wait()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println()
	fmt.Println(result.StopReason)
	// Output:
	// one.two.three.
	// end_turn
}

// A tool that changes a file asks first. The client decides, and is shown what
// has changed.
func ExampleTurn() {
	dir, err := os.MkdirTemp("", "turn")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	agent := acp.Agent{
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			path := filepath.Join(t.Session().Cwd(), "greeting.txt")
			call := t.ToolCall(acp.ToolCall{
				Title:     "Write greeting.txt",
				Kind:      acp.ToolKindEdit,
				Locations: []acp.ToolCallLocation{{Path: path}},
			})
			if !call.Permit(acp.Permission{Description: "The file does not exist yet."}) {
				return acp.StopEndTurn, call.Fail(errors.New("declined"))
			}
			if err := t.WriteFile(path, "hello\n"); err != nil {
				return acp.StopEndTurn, call.Fail(err)
			}
			call.Change(acp.FileChange{Path: path, Created: true, After: "hello\n"})
			return acp.StopEndTurn, call.Complete()
		},
	}
	client := acp.Client{
		RequestPermission: func(ctx context.Context, r *acp.PermissionRequest) (acp.PermissionDecision, error) {
			fmt.Println("asked:", r.Title)
			return r.Allow(), nil
		},
		Update: func(ctx context.Context, s *acp.ClientSession, u *acp.Update) {
			switch u := u.Update.(type) {
			case *acp.ToolCallUpdate:
				if title, ok := u.Title.Get(); ok {
					fmt.Println("tool call:", title)
				}
				if status, ok := u.Status.Get(); ok {
					fmt.Println("status:", status)
				}
			case *acp.ToolCallContentChunk:
				if diff, ok := u.Content.(*acp.Diff); ok {
					_, hunk, _ := strings.Cut(diff.Patch.Text, "@@\n")
					fmt.Print(hunk)
				}
			}
		},
	}
	ctx := context.Background()
	agentSide, clientSide := acp.Pipe()
	go agent.Serve(ctx, agentSide)
	conn, err := client.Connect(ctx, clientSide)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: dir})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := session.Prompt(ctx, acp.Text("greet me")).Wait(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// tool call: Write greeting.txt
	// status: in_progress
	// asked: Write greeting.txt
	// +hello
	// status: completed
}

// What goes on after a turn has ended is told through the session.
func ExampleAgentSession() {
	turnEnded := make(chan struct{})
	agent := acp.Agent{
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			s := t.Session()
			go func() {
				<-turnEnded // or work that takes longer than the turn
				if s.Context().Err() != nil {
					return // the session was closed
				}
				s.Say("The build is done.")
				s.SetTitle("Build")
			}()
			return acp.StopEndTurn, t.Say("I have started the build.")
		},
	}

	told := make(chan string)
	client := acp.Client{
		Update: func(ctx context.Context, s *acp.ClientSession, u *acp.Update) {
			switch v := u.Update.(type) {
			case *acp.AgentMessageChunk:
				told <- u.Text()
			case *acp.SessionInfoUpdate:
				title, _ := v.Title.Get()
				told <- "title: " + title
			}
		},
	}
	ctx := context.Background()
	agentSide, clientSide := acp.Pipe()
	go agent.Serve(ctx, agentSide)
	conn, err := client.Connect(ctx, clientSide)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}

	reply := session.Prompt(ctx, acp.Text("build it"))
	fmt.Println(<-told)
	result, err := reply.Wait()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the turn ended:", result.StopReason)
	close(turnEnded)
	fmt.Println(<-told)
	fmt.Println(<-told)
	// Output:
	// I have started the build.
	// the turn ended: end_turn
	// The build is done.
	// title: Build
}

// A version 1 agent behind a bridge serves a version 2 client.
func ExampleBridge() {
	ctx := context.Background()
	agentSide, toAgent := acp.Pipe() // in place of acp.Command("some-agent")
	agent := acp.Agent{
		Info:       acp.Implementation{Name: "old", Version: "0.9.0"},
		MaxVersion: 1,
		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
			version := t.Session().Conn().Version()
			return acp.StopEndTurn, t.Say(fmt.Sprintf("My client speaks version %d.", version))
		},
	}
	go agent.Serve(ctx, agentSide)

	bridgeSide, clientSide := acp.Pipe() // in place of acp.Stdio()
	bridge := acp.Bridge{Agent: toAgent}
	go bridge.Serve(ctx, bridgeSide)

	client := acp.Client{MinVersion: 2}
	conn, err := client.Connect(ctx, clientSide)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Println("My agent speaks version", conn.Version())
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	for u, err := range session.Prompt(ctx, acp.Text("hello")).Updates() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(u.Text())
	}
	// Output:
	// My agent speaks version 2
	// My client speaks version 1.
}

// Handlers that are written for the wire, one set for each version, share a
// connection.
func ExampleRouter() {
	router := acp.Router{
		V1: &acp.RouterV1{
			Initialize: func(ctx context.Context, r *acpv1.InitializeRequest) (*acpv1.InitializeResponse, error) {
				return &acpv1.InitializeResponse{ProtocolVersion: acpv1.Version}, nil
			},
			Handle: func(mux *jsonrpc.Mux) {
				acpv1.MethodSessionNew.Handle(mux, func(ctx context.Context, r *acpv1.NewSessionRequest) (*acpv1.NewSessionResponse, error) {
					return &acpv1.NewSessionResponse{SessionID: "one"}, nil
				})
			},
		},
		V2: &acp.RouterV2{
			Initialize: func(ctx context.Context, r *acpv2.InitializeRequest) (*acpv2.InitializeResponse, error) {
				return &acpv2.InitializeResponse{
					ProtocolVersion: acpv2.Version,
					Info:            acpv2.Implementation{Name: "wire", Version: "1.0.0"},
					Capabilities:    acpv2.AgentCapabilities{Session: new(acpv2.SessionCapabilities)},
				}, nil
			},
			Handle: func(mux *jsonrpc.Mux) {
				acpv2.MethodSessionNew.Handle(mux, func(ctx context.Context, r *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
					return &acpv2.NewSessionResponse{SessionID: "two"}, nil
				})
			},
		},
	}
	for version := 1; version <= 2; version++ {
		agentSide, clientSide := jsonrpc.Pipe() // in place of jsonrpc.Stdio()
		router.Connect(agentSide, jsonrpc.Config{})

		client := acp.Client{MaxVersion: version}
		conn, err := client.Connect(context.Background(), acp.Over(clientSide))
		if err != nil {
			log.Fatal(err)
		}
		session, err := conn.NewSession(context.Background(), acp.SessionConfig{Cwd: "/home/me/project"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("version", conn.Version(), "session", session.ID())
		conn.Close()
	}
	// Output:
	// version 1 session one
	// version 2 session two
}

func ExampleInProcess() {
	agent := &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
		return "", t.Say("Hello, " + t.Text())
	}}
	ctx := context.Background()
	conn, err := new(acp.Client).Connect(ctx, acp.InProcess(agent))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for u, err := range session.Prompt(ctx, acp.Text("world")).Updates() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(u.Text())
	}
	// Output: Hello, world
}
