// Package acp speaks the Agent Client Protocol: JSON-RPC 2.0 between clients,
// such as code editors, and coding agents. An agent or a client is written once,
// in verbs, and speaks protocol version 1 and the draft of version 2.
//
// # An agent
//
// An [Agent] needs one hook:
//
//	agent := acp.Agent{
//		Info: acp.Implementation{Name: "echo", Version: "1.0.0"},
//		Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
//			return acp.StopEndTurn, t.Say("You said: " + t.Text())
//		},
//	}
//	log.Fatal(agent.Serve(context.Background(), acp.Stdio()))
//
// It answers through a [Turn]: text and thoughts, tool calls with file changes,
// terminals and permissions, plans, questions to the user. Between turns it sends
// through the [AgentSession]. Everything else an agent can do is a hook or a field of
// Agent; what is not set is not advertised.
//
// # A client
//
// A [Client] connects to an agent, most often by starting it:
//
//	conn, err := new(acp.Client).Connect(ctx, acp.Command("some-agent", "--acp"))
//	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
//	for u, err := range session.Prompt(ctx, acp.Text("fix the failing test")).Updates() {
//		fmt.Print(u.Text())
//	}
//
// An [Update] is read with a type switch on its field Update, in the vocabulary
// of version 2 whatever the agent speaks. Its hooks are what a client offers:
// permissions, forms, files, terminals; package acphost has the latter two ready
// to use. Package transcript folds updates into a conversation.
//
// # Contracts
//
// The updates of a session are handled one at a time and in order, and a
// [Reply] ends after all of them. Sessions do not wait for each other.
// Hooks may call the peer, with their context. See package jsonrpc for how order
// comes about, what is bounded and what happens at the bounds.
//
// A cancelled turn ends as cancelled, exactly once. A cancellation applies to the
// prompts that had arrived by then, never to the next turn. A hook that ignores its
// context is given up after a grace and can send nothing more.
//
// What the peer did not advertise fails with an error that wraps
// [errors.ErrUnsupported] before anything is sent; what this side did not
// advertise is refused. Errors that the peer answered with are found with
// errors.As as [*jsonrpc.Error]; no other error is one.
//
// When a connection is closed or ends, everything that belongs to it ends: turns,
// commands, the agent's process and what that has started.
//
// # Exact control
//
// Packages acpv1 and acpv2 hold every type and method of either version, to be
// used on the connection that Conn returns; [Router] serves handlers written by
// hand for one version each; [Bridge] makes an agent of one version serve
// clients of the other. Methods that are not part of the protocol are registered
// by the Extensions hooks, in both directions.
//
// docs/guide.md in this module is the longer introduction; docs/behaviour.md lists
// what the wire must do.
package acp

//go:generate go run ./internal/gen
