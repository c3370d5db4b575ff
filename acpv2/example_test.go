package acpv2_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/goacp/acp/acpv2"
)

// The types are read and written with encoding/json. What the schema does not know is
// kept and sent again.
func Example() {
	var n acpv2.UpdateSessionNotification
	err := json.Unmarshal([]byte(`{"sessionId":"s","update":{
		"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"hi"},"later":1}}`), &n)
	if err != nil {
		log.Fatal(err)
	}
	switch u := n.Update.(type) {
	case *acpv2.AgentMessageChunk:
		fmt.Println(u.MessageID, u.Content.(*acpv2.TextContent).Text, string(u.Unknown))
	case *acpv2.UnknownSessionUpdate:
		fmt.Println("of a later version:", u.Type)
	}
	out, err := json.Marshal(&n)
	fmt.Println(string(out), err)
	// Output:
	// m hi {"later":1}
	// {"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"hi"},"later":1}} <nil>
}

// A patch leaves a field alone, clears it or sets it.
func ExamplePatch() {
	for _, title := range []acpv2.Patch[string]{{}, acpv2.Clear[string](), acpv2.Set("Parser")} {
		out, err := json.Marshal(&acpv2.SessionInfoUpdate{Title: title})
		if err != nil {
			log.Fatal(err)
		}
		shown := "Session 1"
		title.Apply(&shown)
		fmt.Printf("%s %q\n", out, shown)
	}
	// Output:
	// {"sessionUpdate":"session_info_update"} "Session 1"
	// {"sessionUpdate":"session_info_update","title":null} ""
	// {"sessionUpdate":"session_info_update","title":"Parser"} "Parser"
}
