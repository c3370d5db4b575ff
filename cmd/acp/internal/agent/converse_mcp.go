package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
)

// Bounds of the tools of MCP servers that a model gets.
const (
	maxMCPTools  = 1000
	maxMCPSchema = 4 << 20 // bytes of descriptions and schemas together
	maxToolName  = 64      // which all providers take
	// listedShare is the share of the window that tools may have that are listed, and
	// mostListed how many tokens. If they have more they are found instead.
	listedShare = 0.1
	mostListed  = 10_000
	// unknownWindow is what a window of unknown size counts as, in tokens.
	unknownWindow = 64_000
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
			if size += len(made.About) + len(made.Schema); len(tools) == maxMCPTools || size > maxMCPSchema {
				left++
				continue
			}
			tools = append(tools, made)
		}
	}
	if left > 0 {
		_ = m.out.Notice(acp.NoticeSeverityWarning, fmt.Sprintf("The model does not get %s of MCP servers.", prose.Count(left, "tool")), "They are more than can be kept.")
	}
	window := m.model.Info().Context
	if window == 0 {
		window = unknownWindow
	}
	if size/4 <= min(int(float64(window)*listedShare), mostListed) {
		return tools
	}
	return m.found(tools)
}

// found returns the tools by which a model finds others that are too many to be listed,
// and uses them.
func (m *modelTurn) found(hidden []modelTool) []modelTool {
	var servers []string
	for _, s := range m.turn.Session().MCPServers() {
		servers = append(servers, prose.OneLine(tool.ServerName(s), 60))
	}
	find := modelTool{Tool: tool.Tool{
		Name: "tools_find", Kind: acp.ToolKindSearch, Reads: true,
		About:  fmt.Sprintf("Finds tools of MCP servers by words, with their schemas. There are %d, of: %s.", len(hidden), strings.Join(servers, ", ")),
		Schema: json.RawMessage(`{"type":"object","properties":{"words":{"type":"string"}},"required":["words"],"additionalProperties":false}`),
		Run: func(_ context.Context, _ tool.Env, input json.RawMessage) (tool.Result, error) {
			var in struct {
				Words string `json:"words"`
			}
			if err := json.Unmarshal(input, &in); err != nil {
				return tool.Result{}, err
			}
			return tool.Result{Text: describe(matching(hidden, in.Words)), Status: acp.ToolCallStatusCompleted}, nil
		},
	}}
	use := modelTool{Tool: tool.Tool{
		Name: "tools_use", Kind: acp.ToolKindOther,
		About:  "Uses a tool that tools_find has found.",
		Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"input":{"type":"object"}},"required":["name","input"],"additionalProperties":false}`),
		Run: func(ctx context.Context, env tool.Env, input json.RawMessage) (tool.Result, error) {
			var in struct {
				Name  string          `json:"name"`
				Input json.RawMessage `json:"input"`
			}
			if err := json.Unmarshal(input, &in); err != nil {
				return tool.Result{}, err
			}
			for _, t := range hidden {
				if t.Name != in.Name {
					continue
				}
				if err := t.check(in.Input); err != nil {
					return tool.Result{}, err
				}
				return t.Run(ctx, env, in.Input)
			}
			return tool.Result{}, tool.Misusef("there is no tool %q: tools_find says which there are", prose.OneLine(in.Name, 80))
		},
	}}
	all := []modelTool{find, use}
	for i := range all {
		var schema jsonschema.Schema
		if json.Unmarshal(all[i].Schema, &schema) == nil {
			all[i].schema, _ = schema.Resolve(nil) // nil would only leave the check out
		}
	}
	return all
}

// Bounds of what is found at once.
const (
	maxFound      = 10
	maxFoundBytes = 40 << 10
)

// matching returns the tools that have most of some words in their names and descriptions.
// Names count more.
func matching(tools []modelTool, words string) []modelTool {
	wanted := strings.FieldsFunc(strings.ToLower(words), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	type scored struct {
		t     modelTool
		score int
	}
	var all []scored
	for _, t := range tools {
		name, about := strings.ToLower(t.Name), strings.ToLower(t.About)
		score := 0
		for _, w := range wanted {
			if strings.Contains(name, w) {
				score += 3
			}
			if strings.Contains(about, w) {
				score++
			}
		}
		if score > 0 || len(wanted) == 0 {
			all = append(all, scored{t, score})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return b.score - a.score })
	var found []modelTool
	size := 0
	for _, s := range all {
		if size += len(s.t.About) + len(s.t.Schema); len(found) == maxFound || len(found) > 0 && size > maxFoundBytes {
			break
		}
		found = append(found, s.t)
	}
	return found
}

// describe returns tools as a model reads them.
func describe(tools []modelTool) string {
	if len(tools) == 0 {
		return "No tool has any of these words."
	}
	var b strings.Builder
	for _, t := range tools {
		fmt.Fprintf(&b, "%s: %s\ninput: %s\n\n", t.Name, strings.TrimSpace(t.About), t.Schema)
	}
	return b.String()
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
