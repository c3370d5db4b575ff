package acptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/jsonrpc"
)

var echo = &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
	return acp.StopEndTurn, t.Say(t.Text())
}}

// An agent and a client in one test.
func ExamplePair() {
	_ = func(t *testing.T) { // TestEcho
		synctest.Test(t, func(t *testing.T) {
			conn, _ := acptest.Pair(t, echo, &acp.Client{RequestPermission: acptest.AcceptAll})
			session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			result, err := session.Prompt(t.Context(), acp.Text("hello")).Wait()
			if err != nil || result.StopReason != acp.StopEndTurn {
				t.Error(result, err)
			}
		})
	}
}

// An agent that answers a prompt before it has said everything.
func ExampleScriptedAgent() {
	_ = func(t *testing.T) { // TestLateUpdate
		agent := acptest.ScriptedAgent(t, `
			!initialize 1
			!session s1
			-> {"id":$id,"method":"session/prompt","params":{...}}
			<- {"id":$id,"result":{"stopReason":"end_turn"}}
			<- {"method":"session/update","params":{"sessionId":"s1","update":{
				"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"oh"}}}}
		`)
		conn, err := (&acp.Client{}).Connect(t.Context(), agent)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		// …
	}
}

// Without a test: what a script says of a peer that does not follow it.
func ExamplePlayAgent() {
	agent, client := jsonrpc.Pipe()
	go func() {
		_ = client.WriteFrame([]byte(`{"jsonrpc":"2.0","id":0,"method":"session/prompt","params":{"sessionId":"s1","prompt":[]}}`))
		_ = client.Close()
	}()
	err := acptest.PlayAgent(context.Background(), agent, `
		# nothing can come before it
		-> {"id":$id,"method":"initialize","params":{"protocolVersion":1,...}}
	`)
	fmt.Println(err)
	// Output:
	// script line 3: method is "session/prompt", expected "initialize"
	// 	script: -> {"id":$id,"method":"initialize","params":{"protocolVersion":1,...}}
	// 	got:    {"jsonrpc":"2.0","id":0,"method":"session/prompt","params":{"sessionId":"s1","prompt":[]}}
}

// The agent dies after it has taken two frames.
func ExampleFaults() {
	agent, client := jsonrpc.Pipe()
	faulty := acptest.Faults{Out: acptest.Fault{CrashAfter: 2}}.Wrap(client)
	defer faulty.Close()
	for range 3 {
		fmt.Println(faulty.WriteFrame([]byte(`{}`)))
	}
	_, err := faulty.ReadFrame()
	fmt.Println(errors.Is(err, io.EOF))
	_ = agent.Close()
	// Output:
	// <nil>
	// <nil>
	// io: read/write on closed pipe
	// true
}

// What a conversation looks like on the wire. In a test Golden compares it with
// a file.
func ExampleRecord() {
	ctx := context.Background()
	agent, client := jsonrpc.Pipe()
	go func() {
		_ = acptest.PlayAgent(ctx, agent, `
			-> {"id":$id,"method":"session/new","params":{...}}
			<- {"id":$id,"result":{"sessionId":"8c1f0e52-made-up-anew"}}
			-> {"id":$id2,"method":"session/close","params":{"sessionId":"8c1f0e52-made-up-anew"}}
			<- {"id":$id2,"error":{"code":-32601,"message":"Method not found"}}
		`)
	}()
	stream, recording := acptest.Record(client)
	conn := jsonrpc.NewConn(stream, jsonrpc.Config{})
	var session struct{ SessionID string }
	fmt.Println(conn.Call(ctx, "session/new", json.RawMessage(`{"cwd":"/","mcpServers":[]}`), &session))
	fmt.Println(conn.Call(ctx, "session/close", map[string]string{"sessionId": session.SessionID}, nil))
	_ = conn.Close()
	fmt.Print(recording)
	// Output:
	// <nil>
	// Method not found (-32601)
	// -> id1 session/new {"cwd":"/","mcpServers":[]}
	// <- id1 session/new = {"sessionId":"sess1"}
	// -> id2 session/close {"sessionId":"sess1"}
	// <- id2 session/close ! -32601 "Method not found"
}

// A peer has to bear with this.
func ExampleGrease() {
	agent, client := jsonrpc.Pipe()
	greased := acptest.Grease(client, 12)
	defer greased.Close()
	_ = greased.WriteFrame([]byte(`{"jsonrpc":"2.0","id":0,"method":"session/list","params":{}}`))
	frame, _ := agent.ReadFrame()
	fmt.Println(string(frame.Data))
	// Output:
	// {"jsonrpc":"2.0","id":0,"method":"session/list","params":{"_grease1d93":18446744073709551615,"_meta":{"_grease2509":"grease"}}}
}
