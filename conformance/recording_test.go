package conformance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/conformance"
	"github.com/goacp/acp/trace"
)

// Records, one a line: > and < frames, | text of the agent, ~ such text that was too long to be kept,
// ! standard error, * events; besides, # is a record that cannot be read, and . the end.
const (
	asks   = `>{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"c","version":"1"}}}` + "\n"
	says   = `<{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[],"agentInfo":{"name":"a","version":"1"}}}` + "\n"
	asked  = `>{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}` + "\n"
	opened = `<{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":{"currentModeId":"m","availableModes":[{"id":"m","name":"M"}]}}}` + "\n"
	wants  = `>{"jsonrpc":"2.0","id":3,"method":"session/set_mode","params":{"sessionId":"s","modeId":"m"}}` + "\n"
	update = `<{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}` + "\n"

	spoke = asks + says + asked + opened
	open  = spoke + wants + update // that is never answered
)

// feed adds records, a minute apart. It returns which rules of the levels must and should are broken, with the number
// of the frame on its connection, and " at" what, if that is something else.
func feed(c *conformance.Recording, text string) (found []string) {
	cuts, at := int64(0), time.Duration(0)
	for l := range strings.Lines(text) {
		at += time.Minute
		rec := &trace.Record{At: at, Dir: trace.ToClient, Data: []byte(l[1 : len(l)-1])}
		var findings []conformance.Finding
		where := ""
		switch l[0] {
		case '#':
			cuts++
			c.Cuts(cuts)
			continue
		case '.':
			where, findings = " at the end", c.End()
		case '*':
			rec.Kind, rec.Name, rec.Data, where = trace.Event, string(rec.Data), nil, " at an event"
		case '|':
			rec.Kind = trace.Text
		case '~':
			rec.Kind, rec.Size = trace.Text, 1<<30
		case '!':
			rec.Kind = trace.Stderr
		default:
			rec.Dir = trace.Direction(l[0])
		}
		if l[0] != '.' {
			findings = c.Add(rec)
		}
		for _, f := range findings {
			if f.Rule.Level == conformance.Must || f.Rule.Level == conformance.Should {
				found = append(found, fmt.Sprintf("%d %s%s", f.Frame, f.Rule.ID, where))
			}
		}
	}
	return found
}

// TestConnections has records in which what is missing, or another connection, is no fault of a peer.
func TestConnections(t *testing.T) {
	const (
		noQuestion = "agent/envelope/response-known"
		noAnswer   = "agent/answer/due"
	)
	for _, c := range []struct {
		name, text string
		want       []string
		frames     int64
	}{
		{"nothing", ".\n", nil, 0},
		{"in order", spoke + "!x\n*exit\n.\n", nil, 0},
		{"not ended", spoke, nil, 4},
		{"an answer to nothing", asks + says + opened, []string{"3 " + noQuestion}, 3},
		{"a question that could not be read", asks + says + "#\n" + opened, nil, 3},
		{"one that was lost", asks + says + "*lost\n" + opened, nil, 3},
		{"one that was too long", asks + says + "~{\n" + opened, nil, 3},
		{"no answer", open + ".\n", []string{"5 " + noAnswer + " at the end"}, 0},
		{"ended twice", open + ".\n.\n", []string{"5 " + noAnswer + " at the end"}, 0},
		{"an answer that may be missing", open + "#\n.\n", nil, 0},
		{"text", "|hello\n" + asks + says, []string{"1 agent/json/text"}, 3},
		{"two connections", "*start\n" + spoke + "*start\n" + spoke + ".\n", nil, 0},
		{"the first ends with the second", open + "*start\n" + asks + says, []string{"5 " + noAnswer + " at an event"}, 2},
		{"one that does not begin", spoke + "*start\n" + opened, []string{"1 " + noQuestion}, 1},
		{"what is missing is of the first", asks + says + "#\n.\n" + asks + says + opened, []string{"3 " + noQuestion}, 3},
		{"what is missing is of the second", asks + says + ".\n#\n" + asks + says + opened, nil, 3},
	} {
		var checker conformance.Recording
		got := feed(&checker, c.text)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if n := checker.Frames(); n != c.frames {
			t.Errorf("%s: %d frames, want %d", c.name, n, c.frames)
		}
	}
}

// TestSeen: what occurred is known until something occurs on another connection.
func TestSeen(t *testing.T) {
	var c conformance.Recording
	seen := func() (n int) {
		for _, r := range conformance.Rules() {
			if c.Seen(r) {
				n++
			}
		}
		return n
	}
	if seen() != 0 || c.Version() != 0 {
		t.Errorf("before: %d, version %d", seen(), c.Version())
	}
	feed(&c, spoke)
	before := seen()
	if before == 0 || c.Version() != 1 {
		t.Errorf("at hand: %d, version %d", before, c.Version())
	}
	feed(&c, ".\n")
	if seen() != before || c.Version() != 1 {
		t.Errorf("ended: %d of %d, version %d", seen(), before, c.Version())
	}
	feed(&c, asks)
	if seen() >= before || c.Version() != 0 {
		t.Errorf("the next: %d of %d, version %d", seen(), before, c.Version())
	}
}

// TestNil: who is not asked to check adds records all the same.
func TestNil(t *testing.T) {
	var c *conformance.Recording
	if found := feed(c, open+"#\n*lost\n*start\n.\n"); found != nil || c.Frames() != 0 || c.Version() != 0 || c.Seen(conformance.Rules()[0]) {
		t.Errorf("found %q, %d frames", found, c.Frames())
	}
}
