package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// runMCP lists the tools of the session's MCP servers, or calls one.
func runMCP(k *task) error {
	servers := k.turn.Session().MCPServers()
	name, rest, ok, err := word(k.rest)
	if err != nil {
		return misusef("%v", err)
	}
	if len(servers) == 0 {
		k.say("The client has given this session no MCP servers.")
		return nil
	}
	if !ok {
		for _, s := range servers {
			k.listTools(s)
		}
		return nil
	}
	for _, s := range servers {
		if tool.ServerName(s) != name {
			continue
		}
		name, input, ok, err := word(rest)
		if err != nil {
			return misusef("%v", err)
		}
		if !ok {
			k.listTools(s)
			return nil
		}
		input = strings.TrimFunc(input, unicode.IsSpace)
		if input == "" {
			input = "{}"
		}
		var object map[string]any
		if err := json.Unmarshal([]byte(input), &object); err != nil || object == nil {
			return misusef("what the tool is given is not a JSON object")
		}
		k.report(tool.CallMCP(k.ctx, k, s, name, json.RawMessage(input)), "")
		return nil
	}
	return misusef("the session has no MCP server %q", prose.OneLine(name, 60))
}

// listTools says which tools a server has, or why that is not known.
func (k *task) listTools(s acp.MCPServer) {
	if k.ctx.Err() != nil {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "MCP server %s:\n\n", prose.Inline(tool.ServerName(s)))
	tools, more, err := tool.ListMCP(k.ctx, k, s)
	m := k.s.current()
	for _, t := range tools {
		fmt.Fprintf(&b, "- %s", prose.Inline(t.Name))
		if t.About != "" {
			fmt.Fprintf(&b, " — %s", prose.Inline(prose.OneLine(t.About, 120)))
		}
		if m != nil {
			if _, err := m.Info().Tool(model.Tool{Schema: t.Schema}); err != nil {
				fmt.Fprintf(&b, " (the model does not get it: %s)", prose.OneLine(err.Error(), 200))
			}
		}
		b.WriteByte('\n')
	}
	if more {
		b.WriteString("- and more\n")
	}
	switch {
	case k.ctx.Err() != nil:
		return
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintf(&b, "It did not answer within %s.\n", tool.MCPPatience)
	case err != nil:
		fmt.Fprintf(&b, "It cannot be used: %s\n", prose.Error(err))
	case len(tools) == 0:
		b.WriteString("It has no tools.\n")
	}
	k.say(b.String() + "\n")
}
