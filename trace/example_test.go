package trace_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
	"github.com/goacp/acp/trace"
)

// A connection is recorded, without secrets. "acp trace" shows such a recording,
// compares it with another one and plays it back.
func ExampleRecorder_Tap() {
	ctx := context.Background()
	agentSide, clientSide := acp.Pipe() // in place of acp.Command("some-agent")
	agent := acp.Agent{Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		return acp.StopEndTurn, t.Say("hello")
	}}
	go agent.Serve(ctx, agentSide)

	var file bytes.Buffer // in place of an *os.File
	rec := trace.NewRecorder(&file, trace.RecorderOptions{
		Header:   trace.Header{Tool: "editor 1.0.0", Command: []string{"some-agent"}},
		Redactor: new(trace.Redactor),
	})
	recorded := acp.WrapTransport(clientSide, func(s jsonrpc.Stream) jsonrpc.Stream {
		return rec.Tap(s, trace.ToAgent)
	})
	conn, err := (&acp.Client{MaxVersion: 1}).Connect(ctx, recorded)
	if err != nil {
		log.Fatal(err)
	}
	session, err := conn.NewSession(ctx, acp.SessionConfig{Cwd: "/home/me/project"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := session.Prompt(ctx, acp.Text("hi")).Wait(); err != nil {
		log.Fatal(err)
	}
	conn.Close()
	if err := rec.Close(); err != nil {
		log.Fatal(err)
	}

	r, err := trace.NewReader(&file)
	if err != nil {
		log.Fatal(err)
	}
	for {
		record, err := r.Next()
		if err != nil {
			break // io.EOF
		}
		var message struct{ Method string }
		if err := json.Unmarshal(record.Data, &message); err == nil {
			fmt.Printf("%c %s\n", record.Dir, cmp.Or(message.Method, "answer"))
		}
	}
	// Output:
	// > initialize
	// < answer
	// > session/new
	// < answer
	// > session/prompt
	// < session/update
	// < answer
}
