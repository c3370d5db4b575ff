package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
)

// Bounds of the tools of MCP servers that a model gets. What does not fit is left out, and
// the user learns of it.
const (
	maxMCPTools  = 128
	maxMCPSchema = 64 << 10 // bytes of descriptions and schemas together
	maxToolName  = 64       // which all providers take
)

// mcpTools returns the tools of the session's MCP servers, in the order of the servers. A
// server that cannot be used is left out; the user learns why.
func (m *modelTurn) mcpTools(ctx context.Context) []modelTool {
	servers := m.turn.Session().MCPServers()
	type listed struct {
		tools []tool.MCPTool
		err   error
	}
	all := make([]listed, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { all[i].tools, _, all[i].err = tool.ListMCP(ctx, m, s) })
	}
	wg.Wait()
	var tools []modelTool
	size, left := 0, 0
	taken := map[string]bool{}
	for i, s := range servers {
		name := tool.ServerName(s)
		if err := all[i].err; err != nil && ctx.Err() == nil {
			_ = m.out.Notice(acp.NoticeSeverityWarning, "The MCP server "+prose.OneLine(name, 60)+" cannot be used.", prose.OneLine(prose.Error(err), 300))
		}
		for _, t := range all[i].tools {
			made := mcpTool(s, t, taken)
			size += len(made.About) + len(made.Schema)
			if len(tools) == maxMCPTools || size > maxMCPSchema {
				left++
				continue
			}
			tools = append(tools, made)
		}
	}
	if left > 0 {
		_ = m.out.Notice(acp.NoticeSeverityWarning, fmt.Sprintf("The model does not get %s of MCP servers.", prose.Count(left, "tool")), "They are more than it can be given at once.")
	}
	return tools
}

// mcpTool makes a tool of one of a server. Its name is not taken yet.
func mcpTool(s acp.MCPServer, t tool.MCPTool, taken map[string]bool) modelTool {
	schema := t.Schema
	var parsed jsonschema.Schema
	var resolved *jsonschema.Resolved
	if json.Unmarshal(schema, &parsed) == nil {
		resolved, _ = parsed.Resolve(nil) // nil if it cannot be used
	}
	if !strings.HasPrefix(strings.TrimSpace(string(schema)), "{") {
		schema, resolved = json.RawMessage(`{"type":"object"}`), nil
	}
	return modelTool{
		Tool: tool.Tool{
			Name: toolName(tool.ServerName(s), t.Name, taken), About: t.About, Schema: schema, Kind: acp.ToolKindOther,
			Run: func(ctx context.Context, env tool.Env, input json.RawMessage) (tool.Result, error) {
				return tool.CallMCP(ctx, env, s, t.Name, input), nil
			},
		},
		schema: resolved,
	}
}

// toolName returns a name that all providers take, and that no other tool has.
func toolName(server, name string, taken map[string]bool) string {
	full := "mcp__" + server + "__" + name
	plain := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, full)
	if plain != full || len(plain) > maxToolName || taken[plain] {
		sum := sha256.Sum256([]byte(full))
		plain = plain[:min(len(plain), maxToolName-9)] + "_" + hex.EncodeToString(sum[:4])
	}
	for n := 2; taken[plain]; n++ { // a server that has two tools of one name
		end := fmt.Sprintf("_%d", n)
		plain = plain[:min(len(plain), maxToolName-len(end))] + end
	}
	taken[plain] = true
	return plain
}
