package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// countingMCP is an MCP server that writes down that it has started, and ends when it is
// asked to.
func countingMCP(file string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString("started\n")
	}
	if err != nil {
		os.Exit(1)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
	type none struct{}
	n := 0
	mcp.AddTool(s, &mcp.Tool{Name: "next", Description: "Counts"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		n++
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("now ", n)}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "die", Description: "Ends"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		os.Exit(3)
		return nil, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "flood", Description: "Says very much"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("flood ", 1<<20)}}}, nil, nil
	})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// TestKeptMCP: a server starts once for a session and keeps its state; one that dies is an
// error of the call, and starts again with the next; what floods is cut.
func TestKeptMCP(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	servers := []acp.MCPServer{&acp.MCPServerStdio{Name: "c", Command: self(t), Env: []acp.EnvVariable{{Name: mcpVariable, Value: "count " + log}}}}
	w, with := scripted(t, `
use mcp__c__next {}
use mcp__c__next {}
---
use mcp__c__die {}
---
use mcp__c__next {}
use mcp__c__flood {}
---
say Done.
`)
	k := start(t, 2, with)
	var err error
	if k.session, err = k.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: k.cwd, MCPServers: servers}); err != nil {
		t.Fatal(err)
	}
	k.tell("/mode full")
	contains(t, k.tell("Go."), "Done.")
	var told []string
	for _, r := range w.requests[1:] {
		told = append(told, messageText(r.Messages[len(r.Messages)-1]))
	}
	contains(t, told[0], "now 1\n", "now 2\n")
	contains(t, told[1], "failed: ")
	contains(t, told[2], "now 1\n", "bytes are left out here")
	if len(told[2]) > 60<<10 {
		t.Errorf("%d bytes of a flood", len(told[2]))
	}
	data, err := os.ReadFile(log)
	if err != nil || string(data) != "started\nstarted\n" {
		t.Errorf("%q, %v", data, err)
	}
	if err := k.session.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestHiddenTools: tools that would fill the window are found by words and used by name.
func TestHiddenTools(t *testing.T) {
	var tools []*mcp.Tool
	for i := range 60 {
		tools = append(tools, &mcp.Tool{
			Name: fmt.Sprintf("tool%d", i), Description: fmt.Sprintf("Looks after thing number %d. %s", i, strings.Repeat("It says more. ", 100)),
			InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
		})
	}
	tools[42].Name = "send_invoice"
	var called []string
	w, with := scripted(t, `
window 100000
use tools_find {"words":"invoice"}
---
use tools_use {"name":"mcp__far__send_invoice","input":{"n":"x"}}
use tools_use {"name":"mcp__far__send_invoice","input":{"n":7}}
use tools_use {"name":"nothing","input":{}}
---
say Sent.
`)
	k := start(t, 2, with, func(k *talk) {
		k.client.MCP = func(_ context.Context, c *acp.MCPCall) (json.RawMessage, error) {
			if c.Method == "tools/list" {
				return json.Marshal(mcp.ListToolsResult{Tools: tools})
			}
			called = append(called, string(c.Params))
			return json.RawMessage(`{"content":[{"type":"text","text":"invoice sent"}]}`), nil
		}
	})
	var err error
	servers := []acp.MCPServer{&acp.MCPServerACP{Name: "far", ServerID: "far-1"}}
	if k.session, err = k.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: k.cwd, MCPServers: servers}); err != nil {
		t.Fatal(err)
	}
	// The trace of the prompt goes on to the server, and to the model.
	ctx := acp.WithTrace(t.Context(), acp.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=1", Baggage: "b=2"})
	if text, _, err := k.session.Prompt(ctx, acp.Text("Send the invoice.")).Text(); err != nil || !strings.Contains(text, "Sent.") {
		t.Fatal(text, err)
	}
	h := http.Header{}
	model.SetTrace(w.ctx, h)
	if h.Get("Traceparent") == "" || h.Get("Tracestate") != "a=1" || len(h) != 2 {
		t.Error(h)
	}
	names := ""
	size := 0
	for _, tl := range w.requests[0].Prefix.Tools {
		names += tl.Name + " "
		size += len(tl.Description) + len(tl.Schema)
	}
	if !strings.HasSuffix(names, " tools_find tools_use ") || size > 6000 {
		t.Errorf("%d bytes of tools: %s", size, names)
	}
	told := messageText(w.requests[1].Messages[2])
	contains(t, told, "mcp__far__send_invoice: Looks after thing number 42.", `input: {`)
	contains(t, messageText(w.requests[2].Messages[4]), "does not fit the schema of mcp__far__send_invoice", "invoice sent", `There is no tool "nothing"`)
	if len(called) != 1 || !strings.Contains(called[0], `"name":"send_invoice"`) || !strings.Contains(called[0], `"n":7`) ||
		!strings.Contains(called[0], `"traceparent":"00-0af7`) {
		t.Errorf("called %q", called)
	}
	if len(k.asked) != 1 {
		t.Errorf("asked %q", k.asked)
	}
}

// answering is a client that provides a server with one tool, whose result is what it is.
func answering(tool mcp.Tool, content ...mcp.Content) func(context.Context, *acp.MCPCall) (json.RawMessage, error) {
	return func(_ context.Context, c *acp.MCPCall) (json.RawMessage, error) {
		if c.Method == "tools/list" {
			return json.Marshal(mcp.ListToolsResult{Tools: []*mcp.Tool{&tool}})
		}
		return json.Marshal(mcp.CallToolResult{Content: content})
	}
}
