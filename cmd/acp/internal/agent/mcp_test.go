package agent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
)

type greetInput struct {
	Name string `json:"name"`
}

// newMCP returns an MCP server with a tool that greets.
func newMCP() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "greet", Description: "Greets\nsomebody"}, func(_ context.Context, _ *mcp.CallToolRequest, in greetInput) (*mcp.CallToolResult, any, error) {
		res := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name}}}
		res.IsError = in.Name == "nobody"
		return res, nil, nil
	})
	return s
}

func serveMCP(mode string) {
	if mode == "noise" {
		os.Stdout.WriteString("this is no server\n")
		return
	}
	if file, ok := strings.CutPrefix(mode, "count "); ok {
		countingMCP(file)
		return
	}
	_ = newMCP().Run(context.Background(), &mcp.StdioTransport{})
}

// TestMCP lists and calls tools of servers of either kind.
func TestMCP(t *testing.T) {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newMCP() }, &mcp.StreamableHTTPOptions{Stateless: true})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer web.Close()
	servers := []acp.MCPServer{
		&acp.MCPServerHTTP{Name: "web", URL: web.URL, Headers: []acp.HTTPHeader{{Name: "Authorization", Value: "Bearer secret"}}},
		&acp.MCPServerStdio{Name: "program", Command: self(t), Env: []acp.EnvVariable{{Name: mcpVariable, Value: "good"}}},
		&acp.MCPServerStdio{Name: "noise", Command: self(t), Env: []acp.EnvVariable{{Name: mcpVariable, Value: "noise"}}},
		&acp.MCPServerStdio{Name: "missing", Command: filepath.Join(t.TempDir(), "missing")},
		&acp.MCPServerHTTP{Name: "stranger", URL: web.URL},
	}
	versions(t, func(t *testing.T, v int) {
		k := start(t, v)
		var err error
		if k.session, err = k.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: k.cwd, MCPServers: servers}); err != nil {
			t.Fatal(err)
		}
		contains(t, k.tell("/mcp"), "MCP server `web`:\n\n- `greet` — `Greets somebody`", "MCP server `program`:\n\n- `greet`",
			"MCP server `noise`:\n\nIt cannot be used: ", "MCP server `missing`:\n\nIt cannot be used: ", "MCP server `stranger`:\n\nIt cannot be used: ")
		for _, name := range []string{"web", "program"} {
			k.asked = nil
			contains(t, k.tell(`/mcp `+name+` greet {"name":"Ann"}`), "Hello, Ann", "completed", "The tool has answered")
			if len(k.asked) != 1 {
				t.Errorf("asked %q", k.asked)
			}
			contains(t, k.tell(`/mcp `+name+` greet {"name":"nobody"}`), "failed")
			contains(t, k.tell(`/mcp `+name+` nothing`), "failed")
		}
		k.answer = func(r *acp.PermissionRequest) acp.PermissionDecision { return r.Reject() }
		lacks(t, k.tell(`/mcp web greet {"name":"Ann"}`), "Hello")
		contains(t, k.tell("/mcp none"), "no MCP server")
		contains(t, k.tell("/mcp web greet [1]"), "not a JSON object")
	})
}

// TestModelMCP: a model gets the tools of the session's MCP servers, and uses them with
// permission. Servers that cannot be used are reported.
func TestModelMCP(t *testing.T) {
	servers := []acp.MCPServer{
		&acp.MCPServerStdio{Name: "my greeter", Command: self(t), Env: []acp.EnvVariable{{Name: mcpVariable, Value: "good"}}},
		&acp.MCPServerStdio{Name: "missing", Command: filepath.Join(t.TempDir(), "missing")},
	}
	w, with := scripted(t, `
use mcp__my_greeter__greet_a796e75e {"name":"Ann"}
use mcp__my_greeter__greet_a796e75e {"nom":"Ann"}
use mcp__my_greeter__greet_a796e75e {"name":"nobody"}
---
say Greeted.
---
say Again.
`)
	k := start(t, 2, with)
	var err error
	if k.session, err = k.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: k.cwd, MCPServers: servers}); err != nil {
		t.Fatal(err)
	}
	contains(t, k.tell("Greet Ann."), "notice: The MCP server missing cannot be used.", "Greeted.")
	p := w.requests[0].Prefix
	last := p.Tools[len(p.Tools)-1]
	if len(p.Tools) != 10 || last.Description != "Greets\nsomebody" || !strings.Contains(string(last.Schema), `"name"`) {
		t.Errorf("%d tools, the last is %+v", len(p.Tools), last)
	}
	contains(t, w.last(), "Hello, Ann\n", "does not fit the schema of "+last.Name, "failed: Hello, nobody\n")
	if len(k.asked) != 2 {
		t.Errorf("asked %q", k.asked)
	}
	strict(t, w.requests[1].Messages)
	contains(t, k.tell("And again."), "Again.")
	if w.requests[2].Prefix != p {
		t.Error("the beginning has changed")
	}
}

func TestToolName(t *testing.T) {
	taken := map[string]bool{}
	long := strings.Repeat("x", 80)
	names := []string{
		toolName("a", "b", taken), toolName("a", "b", taken), toolName("ü", "b", taken), toolName("ö", "b", taken),
		toolName("a", long, taken), toolName("a", long+"y", taken), toolName("", "", taken),
	}
	seen := map[string]bool{}
	for _, n := range names {
		if seen[n] || len(n) > maxToolName || n == "" || strings.ContainsFunc(n, func(r rune) bool { return r > 'z' }) {
			t.Errorf("%q", n)
		}
		seen[n] = true
	}
	if names[0] != "mcp__a__b" {
		t.Errorf("%q", names[0])
	}
}
