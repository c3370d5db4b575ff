package main

import (
	"context"
	"strings"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// lane puts the messages of a session onto the session's timeline.
func lane(_ string, params any) string {
	switch p := params.(type) {
	case *acpv1.PromptRequest:
		return string(p.SessionID)
	case *acpv1.CancelNotification:
		return string(p.SessionID)
	case *acpv2.PromptRequest:
		return string(p.SessionID)
	case *acpv2.CancelSessionNotification:
		return string(p.SessionID)
	}
	return ""
}

// preempt sees prompts and cancels in the order they arrive in.
func (a *agent) preempt(req *jsonrpc.Request) error {
	if err := a.arrive(req); err != nil {
		return err
	}
	switch p := req.Params.(type) {
	case *acpv1.PromptRequest:
		return a.begin(string(p.SessionID), req)
	case *acpv1.CancelNotification:
		a.cancel(string(p.SessionID))
	case *acpv2.PromptRequest:
		return a.begin(string(p.SessionID), req)
	case *acpv2.CancelSessionNotification:
		a.cancel(string(p.SessionID))
	}
	return nil
}

func (a *agent) handleV1(mux *jsonrpc.Mux) {
	acpv1.MethodInitialize.Handle(mux, func(_ context.Context, req *acpv1.InitializeRequest) (*acpv1.InitializeResponse, error) {
		return &acpv1.InitializeResponse{
			ProtocolVersion: 1, // whatever was asked for (S51)
			AgentInfo:       &acpv1.Implementation{Name: "rawagent", Version: "0.1.0"},
			AuthMethods:     []acpv1.AuthMethod{},
		}, nil
	})
	acpv1.MethodSessionNew.Handle(mux, func(_ context.Context, req *acpv1.NewSessionRequest) (*acpv1.NewSessionResponse, error) {
		if err := absolute(req.Cwd); err != nil {
			return nil, err
		}
		for i, s := range req.MCPServers {
			// This agent has no use for servers. Those at standard input and output
			// cannot be declined in version 1; others were not offered.
			if _, ok := s.(*acpv1.MCPServerStdio); !ok {
				return nil, serverRefused(i)
			}
		}
		return &acpv1.NewSessionResponse{SessionID: acpv1.SessionID(a.newSession())}, nil
	})
	acpv1.NotificationSessionCancel.Handle(mux, func(context.Context, *acpv1.CancelNotification) error {
		return nil // preempt has done it
	})
	acpv1.MethodSessionPrompt.Handle(mux, a.promptV1)
}

func (a *agent) promptV1(ctx context.Context, req *acpv1.PromptRequest) (*acpv1.PromptResponse, error) {
	t := a.turn(string(req.SessionID), ctx)
	defer a.end(string(req.SessionID), t)
	var text strings.Builder
	for _, b := range req.Prompt {
		switch b := b.(type) {
		case *acpv1.TextContent:
			text.WriteString(b.Text)
		case *acpv1.ResourceLink:
			text.WriteString(b.URI)
		default:
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "this agent takes text and links only")
		}
	}
	cancelled, err := t.echo(ctx, text.String(), func(word string) error {
		return acpv1.NotificationSessionUpdate.Notify(ctx, t.req.Conn(), &acpv1.SessionNotification{
			SessionID: req.SessionID,
			Update:    &acpv1.AgentMessageChunk{Content: acpv1.Text(word)},
		})
	})
	if err != nil {
		return nil, err
	}
	if cancelled {
		return &acpv1.PromptResponse{StopReason: acpv1.StopReasonCancelled}, nil
	}
	return &acpv1.PromptResponse{StopReason: acpv1.StopReasonEndTurn}, nil
}
