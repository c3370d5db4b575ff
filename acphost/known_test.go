package acphost_test

import (
	"context"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// TestPolicyKnowsCall: an agent of version 1 that announces a call and then asks
// about it by its id alone does not get around the rules.
func TestPolicyKnowsCall(t *testing.T) {
	policy, err := acphost.NewPolicy(acphost.Rule{Effect: acphost.EffectDeny, Commands: []string{"rm *"}})
	if err != nil {
		t.Fatal(err)
	}
	policy.Default = acphost.EffectAllow
	ours, theirs := jsonrpc.Pipe()
	asked := make(chan acpv1.RequestPermissionOutcome, 1)
	agent := jsonrpc.NewConn(ours, jsonrpc.Config{Mux: rawAgent(asked)})
	defer agent.Close()
	client := acp.Client{MaxVersion: 1, RequestPermission: policy.RequestPermission}
	conn, err := client.Connect(t.Context(), acp.Over(theirs))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]acpv1.PermissionOptionID{"rm -rf /": "no", "ls": "yes"} {
		if _, err := s.Prompt(t.Context(), acp.Text(command)).Wait(); err != nil {
			t.Fatal(err)
		}
		if got, ok := (<-asked).(*acpv1.SelectedPermissionOutcome); !ok || got.OptionID != want {
			t.Errorf("%s: %+v, want %s", command, got, want)
		}
	}
}

// rawAgent announces a tool call that runs what it is told, and asks whether it
// may.
func rawAgent(asked chan<- acpv1.RequestPermissionOutcome) *jsonrpc.Mux {
	mux := new(jsonrpc.Mux)
	acpv1.MethodInitialize.Handle(mux, func(context.Context, *acpv1.InitializeRequest) (*acpv1.InitializeResponse, error) {
		return &acpv1.InitializeResponse{ProtocolVersion: 1}, nil
	})
	acpv1.MethodSessionNew.Handle(mux, func(context.Context, *acpv1.NewSessionRequest) (*acpv1.NewSessionResponse, error) {
		return &acpv1.NewSessionResponse{SessionID: "s"}, nil
	})
	acpv1.MethodSessionPrompt.Handle(mux, func(ctx context.Context, p *acpv1.PromptRequest) (*acpv1.PromptResponse, error) {
		conn := jsonrpc.RequestFrom(ctx).Conn()
		command := p.Prompt[0].(*acpv1.TextContent).Text
		if err := acpv1.NotificationSessionUpdate.Notify(ctx, conn, &acpv1.SessionNotification{SessionID: "s", Update: &acpv1.ToolCall{
			ToolCallID: "c1", Title: "Run", Kind: acpv1.ToolKindExecute, RawInput: []byte(`{"command":"` + command + `"}`),
		}}); err != nil {
			return nil, err
		}
		res, err := acpv1.MethodSessionRequestPermission.Call(ctx, conn, &acpv1.RequestPermissionRequest{
			SessionID: "s", ToolCall: acpv1.ToolCallUpdate{ToolCallID: "c1"},
			Options: []acpv1.PermissionOption{
				{OptionID: "yes", Name: "Yes", Kind: acpv1.PermissionOptionKindAllowOnce},
				{OptionID: "no", Name: "No", Kind: acpv1.PermissionOptionKindRejectOnce},
			},
		})
		if err != nil {
			return nil, err
		}
		asked <- res.Outcome
		return &acpv1.PromptResponse{StopReason: acpv1.StopReasonEndTurn}, nil
	})
	return mux
}
