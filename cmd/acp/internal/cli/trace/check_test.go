package trace

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/app"
)

// TestMissing: that a line cannot be read is no fault of a peer, wherever it is.
func TestMissing(t *testing.T) {
	const (
		asks    = `{"t":1,"d":">","f":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"c","version":"1"}}}}`
		says    = `{"t":2,"d":"<","f":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[],"agentInfo":{"name":"a","version":"1"}}}}`
		asked   = `{"t":3,"d":">","f":{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}}`
		opened  = `{"t":4,"d":"<","f":{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}}`
		damaged = `{"t":3,"d`
		part    = `{"acpTrace":1,"started":"2026-11-21T10:00:00Z"}`
	)
	for _, c := range []struct {
		name   string
		lines  []string
		broken bool
	}{
		{"in order", []string{asks, says, asked, opened}, false},
		{"an answer to nothing", []string{asks, says, opened}, true},
		{"a question is missing", []string{asks, says, damaged, opened}, false},
		{"the first lines are", []string{damaged, damaged, opened}, false},
		{"of another part", []string{asks, says, damaged, part, asks, says, opened}, true},
		{"of that part", []string{asks, says, part, asks, says, damaged, opened}, false},
	} {
		for _, o := range []*Options{{Verb: verbShow}, {Verb: verbShow, JSON: true}, {Verb: verbStats}, {Verb: verbStats, JSON: true}} {
			var out, errs bytes.Buffer
			o.App, o.Files, o.Check = &app.App{Out: &out, Err: &errs}, []string{recording(t, c.lines...)}, true
			if err := o.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out.String(), "response-known"); got != c.broken {
				t.Errorf("%s: %s, JSON %v: broken %v\n%s", c.name, o.Verb, o.JSON, got, &out)
			}
		}
	}
}
