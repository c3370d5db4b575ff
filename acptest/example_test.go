package acptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/jsonrpc"
)

var echo = &acp.Agent{Prompt: func(_ context.Context, t *acp.Turn) (acp.StopReason, error) {
	return acp.StopEndTurn, t.Say(t.Text())
}}

// test runs f as go test runs a test function: here t stands for its *testing.T.
func test(name string, f func(t testing.TB)) {
	if wrong := acptest.RunTest(f); wrong != "" {
		fmt.Printf("--- FAIL: %s\n%s\n", name, wrong)
		return
	}
	fmt.Println("--- PASS:", name)
}

// An agent and a client in one test. In a bubble of testing/synctest waiting takes no
// time.
func ExamplePair() {
	test("TestEcho", func(t testing.TB) {
		conn, _ := acptest.Pair(t, echo, &acp.Client{RequestPermission: acptest.AcceptAll})
		session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/home/me/project"})
		if err != nil {
			t.Fatal(err)
		}
		said, result, err := session.Prompt(t.Context(), acp.Text("hello")).Text()
		if err != nil || said != "hello" || result.StopReason != acp.StopEndTurn {
			t.Error(said, result, err)
		}
	})
	// Output:
	// --- PASS: TestEcho
}

// An agent that answers a prompt before it has said everything. The script fails the
// test if the client does not follow it.
func ExampleScriptedAgent() {
	test("TestLateUpdate", func(t testing.TB) {
		agent := acptest.ScriptedAgent(t, `
			!initialize 1
			!session s1
			-> {"id":$id,"method":"session/prompt","params":{...}}
			<- {"id":$id,"result":{"stopReason":"end_turn"}}
			<- {"method":"session/update","params":{"sessionId":"s1","update":{
				"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"oh"}}}}
		`)
		late := make(chan string, 1)
		client := &acp.Client{Update: func(_ context.Context, _ *acp.ClientSession, u *acp.Update) {
			if u.Text() != "" {
				late <- u.Text()
			}
		}}
		conn, err := client.Connect(t.Context(), agent)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		session, err := conn.NewSession(t.Context(), acp.SessionConfig{Cwd: "/home/me/project"})
		if err != nil {
			t.Fatal(err)
		}
		if said, _, err := session.Prompt(t.Context(), acp.Text("hi")).Text(); said != "" || err != nil {
			t.Error(said, err)
		}
		if said := <-late; said != "oh" {
			t.Error(said)
		}
	})
	// Output:
	// --- PASS: TestLateUpdate
}

// A client that plays a script. $s is the id of the session that was opened, a value
// with its quotes. Under Serve the script ends with !close, which lets Serve return.
func ExampleScriptedClient() {
	test("TestEcho", func(t testing.TB) {
		client := acptest.ScriptedClient(t, `
			!initialize 1
			!session s
			<- {"id":1,"method":"session/prompt","params":{"sessionId":$s,"prompt":[{"type":"text","text":"hi"}]}}
			-> {"method":"session/update","params":{"sessionId":$s,"update":{
				"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"},...}}}
			-> {"id":1,"result":{"stopReason":"end_turn"}}
			!close
		`)
		if err := echo.Serve(t.Context(), client); err != nil {
			t.Error(err)
		}
	})
	// Output:
	// --- PASS: TestEcho
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
