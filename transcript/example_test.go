package transcript_test

import (
	"fmt"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/transcript"
)

// Updates are folded into the conversation they describe.
func ExampleConversation() {
	c := transcript.New(transcript.Config{})
	for _, u := range []acpv2.SessionUpdate{
		&acpv2.UserMessage{MessageID: "m1", Content: acpv2.Set([]acpv2.ContentBlock{acpv2.Text("Read it")})},
		&acpv2.AgentMessageChunk{MessageID: "m2", Content: acpv2.Text("I am ")},
		&acpv2.ToolCallUpdate{ToolCallID: "c1", Title: acpv2.Set("Read main.go"), Status: acpv2.Set(acpv2.ToolCallStatusInProgress)},
		&acpv2.AgentMessageChunk{MessageID: "m2", Content: acpv2.Text("reading.")},
		&acpv2.ToolCallUpdate{ToolCallID: "c1", Status: acpv2.Set(acpv2.ToolCallStatusCompleted)},
	} {
		c.Apply(u)
	}
	for entry := range c.Snapshot().Entries() {
		switch e := entry.(type) {
		case *transcript.Message:
			fmt.Println(e.Role, e.Text())
		case *transcript.ToolCall:
			fmt.Println(e.Title, e.Status)
		}
	}
	// Output:
	// user Read it
	// agent I am reading.
	// Read main.go completed
}
