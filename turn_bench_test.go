package acp

import (
	"context"
	"os"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// benchPipes returns two ends that are joined by pipes of the system.
func benchPipes(b *testing.B) (x, y jsonrpc.Stream) {
	b.Helper()
	xr, yw, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	yr, xw, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	return jsonrpc.NewLineStream(xr, xw), jsonrpc.NewLineStream(yr, yw)
}

// BenchmarkTurn makes turns that say nothing, with the engine alone and with
// package acp on either side.
func BenchmarkTurn(b *testing.B) {
	const id = "sess_ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	lane := func(_ string, params any) string {
		if p, ok := params.(*acpv1.PromptRequest); ok {
			return string(p.SessionID)
		}
		return ""
	}
	engineAgent := func(b *testing.B, s jsonrpc.Stream) {
		mux := new(jsonrpc.Mux)
		acpv1.MethodInitialize.Handle(mux, func(context.Context, *acpv1.InitializeRequest) (*acpv1.InitializeResponse, error) {
			return &acpv1.InitializeResponse{ProtocolVersion: 1}, nil
		})
		acpv1.MethodSessionNew.Handle(mux, func(context.Context, *acpv1.NewSessionRequest) (*acpv1.NewSessionResponse, error) {
			return &acpv1.NewSessionResponse{SessionID: id}, nil
		})
		acpv1.MethodSessionPrompt.Handle(mux, func(context.Context, *acpv1.PromptRequest) (*acpv1.PromptResponse, error) {
			return &acpv1.PromptResponse{StopReason: acpv1.StopReasonEndTurn}, nil
		})
		c := jsonrpc.NewConn(s, jsonrpc.Config{Mux: mux, Lane: lane})
		b.Cleanup(func() { _ = c.Close() })
	}
	acpAgent := func(b *testing.B, s jsonrpc.Stream) {
		agent := &Agent{
			MaxVersion: 1,
			NewSession: func(_ context.Context, s *AgentSession) error { s.SetID(id); return nil },
			Prompt:     func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil },
		}
		ended := make(chan struct{})
		go func() { _ = agent.Serve(b.Context(), Over(s)); close(ended) }()
		b.Cleanup(func() { <-ended })
	}
	ctx := context.Background()
	engineClient := func(b *testing.B, s jsonrpc.Stream) func() {
		c := jsonrpc.NewConn(s, jsonrpc.Config{Lane: lane})
		b.Cleanup(func() { _ = c.Close() })
		if _, err := acpv1.MethodInitialize.Call(ctx, c, &acpv1.InitializeRequest{ProtocolVersion: 1}); err != nil {
			b.Fatal(err)
		}
		if _, err := acpv1.MethodSessionNew.Call(ctx, c, &acpv1.NewSessionRequest{Cwd: "/", MCPServers: []acpv1.MCPServer{}}); err != nil {
			b.Fatal(err)
		}
		return func() {
			if _, err := acpv1.MethodSessionPrompt.Call(ctx, c, &acpv1.PromptRequest{SessionID: id, Prompt: []acpv1.ContentBlock{acpv1.Text("go")}}); err != nil {
				b.Error(err)
			}
		}
	}
	acpClient := func(b *testing.B, s jsonrpc.Stream) func() {
		client := Client{MaxVersion: 1, Update: func(context.Context, *ClientSession, *Update) {}}
		c, err := client.Connect(ctx, Over(s))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		session, err := c.NewSession(ctx, SessionConfig{Cwd: "/"})
		if err != nil {
			b.Fatal(err)
		}
		return func() {
			if _, err := session.Prompt(ctx, Text("go")).Wait(); err != nil {
				b.Error(err)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		client func(*testing.B, jsonrpc.Stream) func()
		agent  func(*testing.B, jsonrpc.Stream)
	}{
		{"engine", engineClient, engineAgent},
		{"client", acpClient, engineAgent},
		{"agent", engineClient, acpAgent},
		{"both", acpClient, acpAgent},
	} {
		b.Run(tt.name, func(b *testing.B) {
			x, y := benchPipes(b)
			tt.agent(b, y)
			trip := tt.client(b, x)
			b.ReportAllocs()
			for b.Loop() {
				trip()
			}
		})
	}
}
