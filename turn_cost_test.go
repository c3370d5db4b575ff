package acp

import (
	"context"
	"math"
	"os"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// benchPipes returns two ends that are joined by pipes of the system.
func benchPipes(b testing.TB) (x, y jsonrpc.Stream) {
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

// turnTrips return what makes a turn that says nothing, with the engine alone or
// with package acp on either side, over pipes of the system.
var turnTrips = []struct {
	name   string
	client func(testing.TB, jsonrpc.Stream) (trip func())
	agent  func(testing.TB, jsonrpc.Stream)
	most   float64 // allocations of a turn, of both sides together
}{
	{"engine", engineTrip, engineTripAgent, 12},
	{"client", acpTrip, engineTripAgent, 38},
	{"agent", engineTrip, acpTripAgent, 28},
	{"both", acpTrip, acpTripAgent, 56},
}

const tripSession = "sess_ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func tripLane(_ string, params any) string {
	if p, ok := params.(*acpv1.PromptRequest); ok {
		return string(p.SessionID)
	}
	return ""
}

func engineTripAgent(b testing.TB, s jsonrpc.Stream) {
	mux := new(jsonrpc.Mux)
	acpv1.MethodInitialize.Handle(mux, func(context.Context, *acpv1.InitializeRequest) (*acpv1.InitializeResponse, error) {
		return &acpv1.InitializeResponse{ProtocolVersion: 1}, nil
	})
	acpv1.MethodSessionNew.Handle(mux, func(context.Context, *acpv1.NewSessionRequest) (*acpv1.NewSessionResponse, error) {
		return &acpv1.NewSessionResponse{SessionID: tripSession}, nil
	})
	acpv1.MethodSessionPrompt.Handle(mux, func(context.Context, *acpv1.PromptRequest) (*acpv1.PromptResponse, error) {
		return &acpv1.PromptResponse{StopReason: acpv1.StopReasonEndTurn}, nil
	})
	c := jsonrpc.NewConn(s, jsonrpc.Config{Mux: mux, Lane: tripLane})
	b.Cleanup(func() { _ = c.Close() })
}

func acpTripAgent(b testing.TB, s jsonrpc.Stream) {
	agent := &Agent{
		MaxVersion: 1,
		NewSession: func(_ context.Context, s *AgentSession) error { s.SetID(tripSession); return nil },
		Prompt:     func(context.Context, *Turn) (StopReason, error) { return StopEndTurn, nil },
	}
	ended := make(chan struct{})
	go func() { _ = agent.Serve(b.Context(), Over(s)); close(ended) }()
	b.Cleanup(func() { <-ended })
}

func engineTrip(b testing.TB, s jsonrpc.Stream) func() {
	ctx := context.Background()
	c := jsonrpc.NewConn(s, jsonrpc.Config{Lane: tripLane})
	b.Cleanup(func() { _ = c.Close() })
	if _, err := acpv1.MethodInitialize.Call(ctx, c, &acpv1.InitializeRequest{ProtocolVersion: 1}); err != nil {
		b.Fatal(err)
	}
	if _, err := acpv1.MethodSessionNew.Call(ctx, c, &acpv1.NewSessionRequest{Cwd: "/", MCPServers: []acpv1.MCPServer{}}); err != nil {
		b.Fatal(err)
	}
	return func() {
		if _, err := acpv1.MethodSessionPrompt.Call(ctx, c, &acpv1.PromptRequest{SessionID: tripSession, Prompt: []acpv1.ContentBlock{acpv1.Text("go")}}); err != nil {
			b.Error(err)
		}
	}
}

func acpTrip(b testing.TB, s jsonrpc.Stream) func() {
	ctx := context.Background()
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

// BenchmarkTurn makes turns that say nothing. On one processor (-cpu 1) the
// differences are what package acp does for a turn; on more, waking goroutines on
// another one comes to that.
func BenchmarkTurn(b *testing.B) {
	for _, tt := range turnTrips {
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

// TestTurnAllocations holds what a turn may allocate.
func TestTurnAllocations(t *testing.T) {
	for _, tt := range turnTrips {
		t.Run(tt.name, func(t *testing.T) {
			x, y := benchPipes(t)
			tt.agent(t, y)
			trip := tt.client(t, x)
			least := math.Inf(1) // what tests before have left running allocates, too
			for range 3 {
				least = min(least, testing.AllocsPerRun(100, trip))
			}
			if least > tt.most {
				t.Errorf("%v allocations, at most %v", least, tt.most)
			}
		})
	}
}
