package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/journal"
	"github.com/goacp/acp/cmd/acp/internal/model/modeltest"
)

// TestMended: what a provider has refused is replaced, the user and the model learn of it, and it stays so when the
// session is resumed. If the request is refused all the same nothing is lost, and the session goes on.
func TestMended(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		w, with := scripted(t, `
use read {"path":"a.png"}
use read {"path":"doc/notes.txt"}
---
fail request messages.2: Could not process image.
---
say I go on.
---
fail request No such thing.
---
fail request No such thing.
---
say And on.
---
say Resumed.
`)
		k := start(t, v, with)
		k.write("a.png", string(modeltest.Pixel().Data))
		contains(t, k.tell("Look."), "An image was left out of the conversation, since the provider refused the request.", "I go on.")
		const stub = "(An image was here. It was left out, since the provider refused the request with it: messages.2: Could not process image.)"
		contains(t, w.last(), stub, "first\nsecond\n")
		if len(images(w.requests[1].Messages[2].Parts)) != 1 || len(images(w.requests[2].Messages[2].Parts)) != 0 {
			t.Error("the image was not left out of the second request only")
		}
		image := &acp.ImageContent{MIMEType: "image/png", Data: modeltest.PixelData}
		if _, err := k.session.Prompt(t.Context(), acp.Text("And this?"), image).Wait(); err == nil {
			t.Error("two refusals are no error")
		} else {
			contains(t, err.Error(), "No such thing")
		}
		lacks(t, k.taken(), "left out")
		contains(t, k.tell("Well?"), "And on.")
		now := w.requests[len(w.requests)-1].Messages
		if len(images(now[len(now)-2].Parts)) != 1 {
			t.Error("an image was lost that was not why")
		}
		k.reopen()
		contains(t, k.tell("Hello?"), "Resumed.")
		again := w.requests[len(w.requests)-1].Messages
		strict(t, again)
		for i, m := range now {
			was, errWas := m.MarshalJSON()
			is, err := again[i].MarshalJSON()
			if errWas != nil || err != nil || !bytes.Equal(was, is) {
				t.Errorf("message %d was\n%s\nand is\n%s", i, was, is)
			}
		}
	})
}

// TestMendedRecord: a record that does not fit the conversation changes nothing.
func TestMendedRecord(t *testing.T) {
	draft := func(data string) journal.Draft { return journal.Draft{Kind: journal.KindMended, Data: []byte(data)} }
	for _, data := range []string{`{"from":-1,"messages":[]}`, `{"from":0,"messages":[null]}`, "null", "[]"} {
		if _, ok := parseEntry(draft(data)); ok {
			t.Errorf("%s is an entry", data)
		}
	}
	e, ok := parseEntry(draft(`{"from":9223372036854775807,"messages":[{"role":"user","parts":[]}]}`))
	if !ok || len(e.mended.in(nil)) != 0 {
		t.Error("a record beyond the end is applied")
	}
}

// TestFewerTools: if the words of a provider are about tools, those of MCP servers are found by words from then on. The
// tools that find them are there once, also if a server that never answers had made them necessary before.
func TestFewerTools(t *testing.T) {
	t.Run("all servers answer", func(t *testing.T) { fewerTools(t, " mcp__far__greet") })
	t.Run("one never answers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { fewerTools(t, " mcp__far__greet tools_find tools_use", "dead") })
	})
}

func fewerTools(t *testing.T, listed string, dead ...string) {
	w, with := scripted(t, `
fail request tools.9.custom.input_schema: JSON schema is invalid
---
use tools_find {"words":"greet"}
use tools_use {"name":"mcp__far__greet","input":{}}
---
say done
`)
	never := make(chan struct{})
	defer close(never)
	k := start(t, 2, with, func(k *talk) {
		answer := answering(mcp.Tool{Name: "greet", InputSchema: json.RawMessage(`{"type":"object"}`)}, &mcp.TextContent{Text: "Hello"})
		k.client.MCP = func(ctx context.Context, c *acp.MCPCall) (json.RawMessage, error) {
			if c.Server == "far" {
				return answer(ctx, c)
			}
			select {
			case <-never:
			case <-ctx.Done():
			}
			return nil, context.Canceled
		}
	})
	var err error
	servers := []acp.MCPServer{&acp.MCPServerACP{Name: "far", ServerID: "far"}}
	for _, name := range dead {
		servers = append(servers, &acp.MCPServerACP{Name: name, ServerID: acp.MCPServerACPID(name)})
	}
	if k.session, err = k.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: k.cwd, MCPServers: servers}); err != nil {
		t.Fatal(err)
	}
	k.tell("/mode full")
	contains(t, k.tell("Greet."), "The tools of MCP servers are not listed for the model any more", "done")
	contains(t, w.last(), "mcp__far__greet: ", "Hello")
	names := func(i int) string {
		var all []string
		for _, tl := range w.requests[i].Prefix.Tools {
			all = append(all, tl.Name)
		}
		return strings.Join(all, " ")
	}
	own, ok := strings.CutSuffix(names(0), listed)
	if want := own + " tools_find tools_use"; !ok || names(1) != want || names(2) != want {
		t.Errorf("%s\n%s\n%s", names(0), names(1), names(2))
	}
}
