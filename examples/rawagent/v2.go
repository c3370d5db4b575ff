package main

import (
	"context"
	"strings"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

func (a *agent) handleV2(mux *jsonrpc.Mux) {
	acpv2.MethodInitialize.Handle(mux, func(_ context.Context, req *acpv2.InitializeRequest) (*acpv2.InitializeResponse, error) {
		if req.ProtocolVersion < 2 { // S56
			data, err := acpv2.UnsupportedProtocolVersionErrorData{
				Requested: req.ProtocolVersion,
				Supported: []uint16{2},
			}.MarshalJSON()
			if err != nil {
				return nil, err
			}
			return nil, &jsonrpc.Error{
				Code:    jsonrpc.CodeUnsupportedVersion,
				Message: "Unsupported protocol version",
				Data:    data,
			}
		}
		return &acpv2.InitializeResponse{
			ProtocolVersion: 2,
			Info:            acpv2.Implementation{Name: "rawagent", Version: "0.1.0"},
			Capabilities:    acpv2.AgentCapabilities{Session: &acpv2.SessionCapabilities{}},
		}, nil
	})
	acpv2.MethodSessionNew.Handle(mux, func(_ context.Context, req *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
		if err := absolute(req.Cwd); err != nil {
			return nil, err
		}
		if len(req.MCPServers) > 0 { // none were offered
			return nil, serverRefused(0)
		}
		return &acpv2.NewSessionResponse{SessionID: acpv2.SessionID(a.newSession())}, nil
	})
	acpv2.NotificationSessionCancel.Handle(mux, func(context.Context, *acpv2.CancelSessionNotification) error {
		return nil // preempt has done it
	})
	acpv2.MethodSessionPrompt.Handle(mux, a.promptV2)
}

// promptV2 answers when the prompt is inserted; the turn continues after the
// answer and ends with an idle state (S87, S88).
func (a *agent) promptV2(ctx context.Context, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
	t := a.turn(string(req.SessionID), ctx)
	message := acpv2.MessageID(a.newMessage())
	go func() {
		defer a.end(string(req.SessionID), t)
		a.turnV2(t, req, message)
	}()
	return &acpv2.PromptResponse{MessageID: message}, nil
}

// turnV2 plays a turn. Its updates stop when the connection does: nobody is
// left to tell.
func (a *agent) turnV2(t *turn, req *acpv2.PromptRequest, message acpv2.MessageID) {
	ctx := context.Background()
	update := func(u acpv2.SessionUpdate) error {
		return acpv2.NotificationSessionUpdate.Notify(ctx, t.req.Conn(), &acpv2.UpdateSessionNotification{SessionID: req.SessionID, Update: u})
	}
	var text strings.Builder
	for _, b := range req.Prompt {
		if b, ok := b.(*acpv2.TextContent); ok {
			text.WriteString(b.Text)
		}
	}
	if update(&acpv2.UserMessage{MessageID: message, Content: acpv2.Set(req.Prompt)}) != nil ||
		update(&acpv2.RunningStateUpdate{}) != nil {
		return
	}
	reply := acpv2.MessageID(a.newMessage())
	cancelled, err := t.echo(ctx, text.String(), func(word string) error {
		return update(&acpv2.AgentMessageChunk{MessageID: reply, Content: acpv2.Text(word)})
	})
	if err != nil {
		return
	}
	reason := acpv2.StopReasonEndTurn
	if cancelled {
		reason = acpv2.StopReasonCancelled
	}
	_ = update(&acpv2.IdleStateUpdate{StopReason: reason})
}
