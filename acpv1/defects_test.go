package acpv1_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/jsonrpc"
)

// The numbers are those of the defects that were measured in other SDKs.

// TestDefect01UnknownVariants: what this version does not know is never taken
// for something else, and survives byte for byte (S79).
func TestDefect01UnknownVariants(t *testing.T) {
	update := `{"sessionUpdate":"_vendor/rename","title":"not a title","n":12345678901234567890,"content":[{"b":1,"a":2}]}`
	u, err := acpv1.UnmarshalSessionUpdate([]byte(update))
	if err != nil {
		t.Fatal(err)
	}
	got, ok := u.(*acpv1.UnknownSessionUpdate)
	if !ok || got.Type != "_vendor/rename" || string(got.Raw) != update {
		t.Errorf("update %T %+v", u, u)
	}
	tests := []struct {
		name, in string
		decode   func([]byte) (any, error)
		want     any
	}{
		{"content block", `{"type":"video","text":"no text","uri":"u"}`, any1(acpv1.UnmarshalContentBlock), &acpv1.UnknownContentBlock{}},
		{"mcp transport", `{"type":"carrier-pigeon","name":"n","command":"c","args":[],"env":[]}`, any1(acpv1.UnmarshalMCPServer), &acpv1.UnknownMCPServer{}},
		{"auth method", `{"type":"retina","id":"i","name":"n"}`, any1(acpv1.UnmarshalAuthMethod), &acpv1.UnknownAuthMethod{}},
		{"tool content", `{"type":"hologram","path":"p","newText":"t"}`, any1(acpv1.UnmarshalToolCallContent), &acpv1.UnknownToolCallContent{}},
		{"permission outcome", `{"outcome":"perhaps","optionId":"allow"}`, any1(acpv1.UnmarshalRequestPermissionOutcome), &acpv1.UnknownRequestPermissionOutcome{}},
	}
	for _, tt := range tests {
		v, err := tt.decode([]byte(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if g, w := typeName(v), typeName(tt.want); g != w {
			t.Errorf("%s: decoded as %s, want %s", tt.name, g, w)
		}
		out, err := v.(json.Marshaler).MarshalJSON()
		if err != nil || string(out) != tt.in {
			t.Errorf("%s: sent again as %s, %v", tt.name, out, err)
		}
	}
}

func any1[T any](f func([]byte) (T, error)) func([]byte) (any, error) {
	return func(b []byte) (any, error) { return f(b) }
}

func typeName(v any) string {
	switch v.(type) {
	case *acpv1.UnknownContentBlock:
		return "content block"
	case *acpv1.UnknownMCPServer:
		return "mcp server"
	case *acpv1.UnknownAuthMethod:
		return "auth method"
	case *acpv1.UnknownToolCallContent:
		return "tool call content"
	case *acpv1.UnknownRequestPermissionOutcome:
		return "permission outcome"
	}
	return "something known"
}

// TestDefect10SetUp: setting connections up and using them from several
// goroutines at once is free of data races; the race detector judges.
func TestDefect10SetUp(t *testing.T) {
	mux := new(jsonrpc.Mux)
	acpv1.MethodInitialize.Handle(mux, func(context.Context, *acpv1.InitializeRequest) (*acpv1.InitializeResponse, error) {
		return &acpv1.InitializeResponse{ProtocolVersion: 1}, nil
	})
	a, b := jsonrpc.Pipe()
	agent := jsonrpc.NewConn(a, jsonrpc.Config{Mux: mux})
	client := jsonrpc.NewConn(b, jsonrpc.Config{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := acpv1.MethodInitialize.Call(t.Context(), client, &acpv1.InitializeRequest{ProtocolVersion: 1}); err != nil {
				t.Error(err)
			}
			client.SetMux(nil)
			agent.SetMux(mux)
			_, _ = client.Stats(), agent.Err()
		})
	}
	wg.Wait()
	_ = client.Close()
	_ = agent.Wait()
}

// TestDefect11NilSlices: a required list that is nil is sent as [], an optional
// one is left out; neither is ever null.
func TestDefect11NilSlices(t *testing.T) {
	for _, tt := range []struct {
		v    json.Marshaler
		want string
	}{
		{acpv1.NewSessionRequest{Cwd: "/"}, `{"cwd":"/","mcpServers":[]}`},
		{acpv1.PromptRequest{SessionID: "s"}, `{"sessionId":"s","prompt":[]}`},
		{acpv1.Plan{}, `{"sessionUpdate":"plan","entries":[]}`},
		{acpv1.ToolCall{ToolCallID: "t", Title: "x"}, `{"sessionUpdate":"tool_call","toolCallId":"t","title":"x"}`},
		{acpv1.InitializeResponse{ProtocolVersion: 1}, `{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{},"mcpCapabilities":{},"sessionCapabilities":{},"auth":{}}}`},
	} {
		got, err := tt.v.MarshalJSON()
		if err != nil || string(got) != tt.want {
			t.Errorf("%s, %v; want %s", got, err, tt.want)
		}
		if strings.Contains(string(got), "null") {
			t.Errorf("%s holds null", got)
		}
	}
}

// TestDefect12Fidelity: fields can be cleared, and raw JSON keeps its numbers,
// the order of its keys and everything it does not know.
func TestDefect12Fidelity(t *testing.T) {
	for _, tt := range []struct {
		v    json.Marshaler
		want string
	}{
		{acpv1.SessionInfoUpdate{Title: acpv1.Clear[string]()}, `{"sessionUpdate":"session_info_update","title":null}`},
		{acpv1.SessionInfoUpdate{Title: acpv1.Set("")}, `{"sessionUpdate":"session_info_update","title":""}`},
		{acpv1.ToolCallUpdate{ToolCallID: "t", Content: acpv1.Set([]acpv1.ToolCallContent{})}, `{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[]}`},
		{acpv1.ToolCallUpdate{ToolCallID: "t"}, `{"sessionUpdate":"tool_call_update","toolCallId":"t"}`},
	} {
		got, err := tt.v.MarshalJSON()
		if err != nil || string(got) != tt.want {
			t.Errorf("%s, %v; want %s", got, err, tt.want)
		}
	}
	in := `{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","rawInput":{"z":9007199254740993,"a":1.50,"m":1e400},` +
		`"_meta":{"z":18446744073709551616,"a":[1.0,-0]},"annotations":{"b":1,"a":2},"later":null}`
	u, err := acpv1.UnmarshalSessionUpdate([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	out, err := u.AppendJSON(nil)
	if err != nil || string(out) != in {
		t.Errorf("sent again as\n%s, %v; want\n%s", out, err, in)
	}
}

// TestDefect13Keys: names are compared exactly and must not come twice.
func TestDefect13Keys(t *testing.T) {
	var c acpv1.CancelNotification
	if err := json.Unmarshal([]byte(`{"sessionId":"good","SessionID":"evil"}`), &c); err != nil {
		t.Fatal(err)
	}
	if c.SessionID != "good" || string(c.Unknown) != `{"SessionID":"evil"}` {
		t.Errorf("session %q, unknown %s", c.SessionID, c.Unknown)
	}
	if err := json.Unmarshal([]byte(`{"sessionId":"good","sessionId":"evil"}`), &c); err == nil || err.Error() != "sessionId: duplicate member" {
		t.Errorf("a member twice: %v", err)
	}
}
