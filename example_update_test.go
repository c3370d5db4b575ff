package acp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goacp/acp"
)

// tester is an agent that runs a tool in the middle of its answer.
var tester = acp.Agent{
	Info: acp.Implementation{Name: "tester", Version: "1.0.0"},
	Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		t.Say("Let me ")
		t.Say("look.")
		call := t.ToolCall(acp.ToolCall{Title: "Run the tests", Kind: acp.ToolKindExecute})
		call.Complete()
		return acp.StopEndTurn, t.Say("They pass.")
	},
}

// open connects to an agent and opens a session.
func open(ctx context.Context, client acp.Client, agent acp.Agent) *acp.ClientSession {
	agentSide, clientSide := acp.Pipe() // in place of acp.Command("some-agent")
	go agent.Serve(ctx, agentSide)
	conn, err := client.Connect(ctx, clientSide)
	if err != nil {
		log.Fatal(err)
	}
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	return session
}

// A program that asks one thing needs no updates.
func ExampleReply_Text() {
	ctx := context.Background()
	session := open(ctx, acp.Client{}, tester)
	defer session.Conn().Close()

	text, result, err := session.Prompt(ctx, acp.Text("Do the tests pass?")).Text()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
	fmt.Println(result.StopReason)
	// Output:
	// Let me look.
	//
	// They pass.
	// end_turn
}

// The first update of a message or a tool call says so. A tool call has all that is
// known of it in every update.
func ExampleUpdate() {
	ctx := context.Background()
	session := open(ctx, acp.Client{}, tester)
	defer session.Conn().Close()

	for u, err := range session.Prompt(ctx, acp.Text("Do the tests pass?")).Updates() {
		if err != nil {
			log.Fatal(err)
		}
		if call := u.ToolCall(); call != nil {
			fmt.Println(u.Kind(), u.Created, call.Title.Or(""))
			continue
		}
		if u.Text() != "" {
			fmt.Printf("%s %v %q\n", u.Kind(), u.Created, u.Text())
		}
	}
	// Output:
	// agent_message_chunk true "Let me "
	// agent_message_chunk false "look."
	// tool_call_update true Run the tests
	// tool_call_update false Run the tests
	// agent_message_chunk true "They pass."
}

// What a session offers is read by name.
func ExampleClientSession_Option() {
	ctx := context.Background()
	agent := tester
	agent.NewSession = func(ctx context.Context, s *acp.AgentSession) error {
		if err := s.SetCommands(acp.SlashCommand{Name: "plan", Description: "Make a plan first"}); err != nil {
			return err
		}
		return s.SetOptions(
			acp.ChoiceOption("mode", "Mode", acp.SessionConfigOptionCategoryMode, "ask", "ask", "do"),
			acp.ChoiceOption("style", "Style", "", "terse", "terse", "chatty"),
			acp.SwitchOption("web", "Search the web", true),
		)
	}
	agent.SetOption = func(context.Context, *acp.AgentSession, acp.SessionConfigID, acp.SessionConfigOptionValue) error {
		return nil
	}
	session := open(ctx, acp.Client{}, agent)
	defer session.Conn().Close()
	if _, err := session.Prompt(ctx, acp.Text("Hi")).Wait(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(session.Mode(), session.Option("style"), session.OptionOn("web"))
	if command, ok := session.Command("plan"); ok {
		fmt.Println(command.Description)
	}
	// Output:
	// ask terse true
	// Make a plan first
}
