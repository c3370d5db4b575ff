package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

func (c *client) handleV1(mux *jsonrpc.Mux) {
	acpv1.NotificationSessionUpdate.Handle(mux, func(_ context.Context, n *acpv1.SessionNotification) error {
		switch u := n.Update.(type) {
		case *acpv1.AgentMessageChunk:
			if text, ok := u.Content.(*acpv1.TextContent); ok {
				fmt.Fprint(c.out, text.Text)
			}
		case *acpv1.ToolCall:
			fmt.Fprintf(c.out, "\n[%s] %s\n", u.Kind, u.Title)
		}
		return nil
	})
}

// talkV1 plays a conversation of protocol version 1, where the answer to the
// prompt ends the turn.
func (c *client) talkV1(interrupted context.Context, conn *jsonrpc.Conn, cwd, prompt string) (string, error) {
	ctx := context.Background()
	hello, err := acpv1.MethodInitialize.Call(ctx, conn, &acpv1.InitializeRequest{
		ProtocolVersion: 1,
		ClientInfo:      &acpv1.Implementation{Name: "rawclient", Version: "0.1.0"},
	})
	if err != nil {
		return "", fmt.Errorf("initialize: %w", err)
	}
	if hello.ProtocolVersion != 1 {
		return "", fmt.Errorf("the agent speaks version %d only", hello.ProtocolVersion)
	}
	session, err := acpv1.MethodSessionNew.Call(ctx, conn, &acpv1.NewSessionRequest{Cwd: cwd})
	if err != nil {
		return "", fmt.Errorf("session/new: %w", err)
	}
	defer context.AfterFunc(interrupted, func() {
		_ = acpv1.NotificationSessionCancel.Notify(ctx, conn, &acpv1.CancelNotification{SessionID: session.SessionID})
	})()
	answer, err := acpv1.MethodSessionPrompt.Call(ctx, conn, &acpv1.PromptRequest{
		SessionID: session.SessionID,
		Prompt:    []acpv1.ContentBlock{acpv1.Text(prompt)},
	})
	if err != nil {
		return "", fmt.Errorf("session/prompt: %w", err)
	}
	fmt.Fprintln(c.out)
	return string(answer.StopReason), nil
}

func (c *client) handleV2(mux *jsonrpc.Mux) {
	running := false // updates of the one session come one at a time
	acpv2.NotificationSessionUpdate.Handle(mux, func(_ context.Context, n *acpv2.UpdateSessionNotification) error {
		switch u := n.Update.(type) {
		case *acpv2.AgentMessageChunk:
			if text, ok := u.Content.(*acpv2.TextContent); ok {
				fmt.Fprint(c.out, text.Text)
			}
		case *acpv2.RunningStateUpdate:
			running = true
		case *acpv2.IdleStateUpdate:
			// An idle state is a snapshot; only one behind work ends a turn (S88).
			if running {
				running = false
				select {
				case c.idle <- string(u.StopReason):
				default:
				}
			}
		}
		return nil
	})
}

// talkV2 plays a conversation of the draft of version 2, where the answer to
// the prompt is a receipt and an idle state ends the turn (S87).
func (c *client) talkV2(interrupted context.Context, conn *jsonrpc.Conn, cwd, prompt string) (string, error) {
	ctx := context.Background()
	if _, err := acpv2.MethodInitialize.Call(ctx, conn, &acpv2.InitializeRequest{
		ProtocolVersion: 2,
		Info:            acpv2.Implementation{Name: "rawclient", Version: "0.1.0"},
	}); err != nil {
		return "", fmt.Errorf("initialize: %w", err)
	}
	session, err := acpv2.MethodSessionNew.Call(ctx, conn, &acpv2.NewSessionRequest{Cwd: cwd})
	if err != nil {
		return "", fmt.Errorf("session/new: %w", err)
	}
	defer context.AfterFunc(interrupted, func() {
		_ = acpv2.NotificationSessionCancel.Notify(ctx, conn, &acpv2.CancelSessionNotification{SessionID: session.SessionID})
	})()
	if _, err := acpv2.MethodSessionPrompt.Call(ctx, conn, &acpv2.PromptRequest{
		SessionID: session.SessionID,
		Prompt:    []acpv2.ContentBlock{acpv2.Text(prompt)},
	}); err != nil {
		return "", fmt.Errorf("session/prompt: %w", err)
	}
	select {
	case reason := <-c.idle:
		fmt.Fprintln(c.out)
		return reason, nil
	case <-conn.Done():
		return "", errors.New("the agent ended in the middle of a turn")
	}
}
