package acptest_test

import (
	"testing"

	"github.com/goacp/acp/acptest"
)

// A client that plays a script. $s is the id of the session that was opened, a value
// with its quotes. Under Serve the script ends with !close, which lets Serve return.
func ExampleScriptedClient() {
	_ = func(t *testing.T) { // TestEcho
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
	}
}
