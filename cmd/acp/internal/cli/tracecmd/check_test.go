package tracecmd

import (
	"io"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/tracefile"
)

// TestGaps has recordings in which what is missing, or another connection, is no fault of a peer.
func TestGaps(t *testing.T) {
	const (
		header = `{"acpTrace":1,"started":"2026-11-21T10:00:00Z"}` + "\n"
		asks   = `{"t":1,"d":">","f":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}}` + "\n"
		says   = `{"t":2,"d":"<","f":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}}` + "\n"
		asked  = `{"t":3,"d":">","f":{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}}` + "\n"
		opened = `{"t":4,"d":"<","f":{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}}` + "\n"
		start  = `{"t":5,"e":"start"}` + "\n"
	)
	for _, c := range []struct {
		name, text string
		broken     bool
	}{
		{"in order", asks + says + asked + opened, false},
		{"an answer to nothing", asks + says + opened, true},
		{"a question that is damaged", asks + says + asked[:60] + "\n" + opened, false},
		{"two connections", start + asks + says + start + asks + says, false},
		{"one that does not begin", start + asks + says + start + asked + opened, true},
	} {
		f, err := tracefile.Open(t.Context(), &app.App{In: strings.NewReader(header + c.text), Err: io.Discard}, "-")
		if err != nil {
			t.Fatal(err)
		}
		check, found := newChecker(true, f), []string{}
		for {
			rec, err := f.Record()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range check.next(rec) {
				if x.Rule.Level == "must" {
					found = append(found, x.Rule.ID+": "+x.Why)
				}
			}
		}
		if (len(found) > 0) != c.broken {
			t.Errorf("%s: %q", c.name, found)
		}
	}
}
