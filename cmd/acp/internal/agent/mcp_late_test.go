package agent

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
)

// TestFailedMCP: users of either version and the model learn that a server cannot be used.
func TestFailedMCP(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		w, with := scripted(t, "say hi\n---\nsay again")
		k := start(t, v, with)
		var err error
		servers := []acp.MCPServer{&acp.MCPServerStdio{Name: "missing", Command: filepath.Join(t.TempDir(), "missing")}}
		if k.session, err = k.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: k.cwd, MCPServers: servers}); err != nil {
			t.Fatal(err)
		}
		contains(t, k.tell("Hello."), "The MCP server missing cannot be used.", "hi")
		contains(t, w.last(), "(The MCP server missing cannot be used: ", "You do not have its tools.)", "Hello.")
		lacks(t, k.tell("Once more."), "missing")
		lacks(t, w.last(), "missing")
	})
}

// TestLateMCP: the first prompt waits three seconds for servers. Those that answer later join without a change of what
// requests begin with, also while a turn runs; those that never answer are given up.
func TestLateMCP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, never := make(chan struct{}), make(chan struct{})
		defer close(never)
		tools := func(name string) (json.RawMessage, error) {
			return json.Marshal(mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: name, Description: "Does it", InputSchema: json.RawMessage(`{"type":"object"}`)}}})
		}
		w, with := scripted(t, `
when Hello
say hi
---
when Go
use mcp__quick__now {}
---
when ok
use tools_find {"words":"later"}
use tools_use {"name":"mcp__slow__later","input":{}}
---
say done
---
when Well
say well
`)
		k := start(t, 2, with, func(k *talk) {
			k.client.MCP = func(ctx context.Context, c *acp.MCPCall) (json.RawMessage, error) {
				gate := map[acp.MCPServerACPID]chan struct{}{"slow": late, "dead": never}[c.Server]
				if c.Method != "tools/list" {
					if c.Server == "quick" {
						close(late)
						synctest.Wait() // the other one answers, and is listed
					}
					return json.RawMessage(`{"content":[{"type":"text","text":"ok"}]}`), nil
				}
				if gate == nil {
					return tools("now")
				}
				select {
				case <-gate:
					return tools("later")
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		})
		var servers []acp.MCPServer
		for _, name := range []string{"quick", "slow", "dead"} {
			servers = append(servers, &acp.MCPServerACP{Name: name, ServerID: acp.MCPServerACPID(name)})
		}
		var err error
		if k.session, err = k.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: k.cwd, MCPServers: servers}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		got := k.tell("Hello.")
		if took := time.Since(began); took != serverPatience {
			t.Errorf("it took %v", took)
		}
		contains(t, got, "The MCP server slow has not answered within 3s.", "The MCP server dead has not answered within 3s.")
		contains(t, w.last(), "(The MCP server slow has not answered yet. Once it does, tools_find finds its tools.)")
		p := w.requests[0].Prefix
		if n := len(p.Tools); p.Tools[n-3].Name != "mcp__quick__now" || p.Tools[n-2].Name != "tools_find" || p.Tools[n-1].Name != "tools_use" {
			t.Errorf("%+v", p.Tools)
		}
		contains(t, k.tell("Go."), "The MCP server slow has started, with 1 tool.", "done")
		contains(t, messageText(w.requests[2].Messages[4]), "(The MCP server slow has started: tools_find finds its 1 tool.)")
		contains(t, w.last(), "mcp__slow__later: Does it", "ok\n")
		time.Sleep(time.Minute)
		contains(t, k.tell("Well?"), "The MCP server dead cannot be used.")
		contains(t, w.last(), "dead cannot be used: it did not answer within 30s")
		for _, r := range w.requests {
			if r.Prefix != p {
				t.Error("the beginning has changed")
			}
		}
	})
}

// TestSchemas: a tool whose schema an interface refuses is described in another way, and checked by the whole schema; one
// that cannot be described is left out, which the user, the model and /mcp say.
func TestSchemas(t *testing.T) {
	tools := []*mcp.Tool{
		{Name: "choice", Description: "Chooses", InputSchema: json.RawMessage(`{"oneOf":[{"properties":{"id":{"type":"integer"}},"required":["id"]},{"properties":{"name":{"type":"string"}},"required":["name"]}]}`)},
		{Name: "words", InputSchema: json.RawMessage(`{"type":"string"}`)},
	}
	w, with := scripted(t, `
use mcp__far__choice {"id":1,"name":"x"}
use mcp__far__choice {"id":1}
---
say done
`)
	var called []string
	k := start(t, 2, with, func(k *talk) {
		k.client.MCP = func(_ context.Context, c *acp.MCPCall) (json.RawMessage, error) {
			if c.Method == "tools/list" {
				return json.Marshal(mcp.ListToolsResult{Tools: tools})
			}
			called = append(called, string(c.Params))
			return json.RawMessage(`{"content":[{"type":"text","text":"chosen"}]}`), nil
		}
	})
	var err error
	servers := []acp.MCPServer{&acp.MCPServerACP{Name: "far", ServerID: "far"}}
	if k.session, err = k.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: k.cwd, MCPServers: servers}); err != nil {
		t.Fatal(err)
	}
	contains(t, k.tell("Choose."), "The model does not get 1 tool of the MCP server far.", "done")
	contains(t, messageText(w.requests[0].Messages[0]), "(You do not get these tools of the MCP server far: words (its input is not an object).)")
	contains(t, w.last(), "does not fit the schema of mcp__far__choice", "chosen")
	if len(called) != 1 {
		t.Errorf("called %q", called)
	}
	last := w.requests[0].Prefix.Tools[len(w.requests[0].Prefix.Tools)-1]
	if last.Name != "mcp__far__choice" {
		t.Errorf("the last tool is %s", last.Name)
	}
	contains(t, k.tell("/mcp"), "`choice`", "`words` (the model does not get it: its input is not an object)")
	if text := k.tell("/mcp"); strings.Count(text, "does not get it") != 1 {
		t.Error(text)
	}
}
