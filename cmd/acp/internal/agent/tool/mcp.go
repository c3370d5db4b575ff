package tool

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/picture"
)

const (
	// MCPPatience is how long a server may take to start and to list its tools.
	MCPPatience = 30 * time.Second
	maxTools    = 200     // of a server that are listed
	maxMCPText  = 1 << 20 // bytes of a result that are shown
)

// ServerName returns the name of an MCP server, or "".
func ServerName(s acp.MCPServer) string {
	switch s := s.(type) {
	case *acp.MCPServerStdio:
		return s.Name
	case *acp.MCPServerHTTP:
		return s.Name
	case *acp.MCPServerACP:
		return s.Name
	}
	return ""
}

// traceOf returns the trace of a context as MCP has it, or nil if it has none.
func traceOf(ctx context.Context) mcp.Meta {
	t, ok := acp.TraceFrom(ctx)
	if !ok {
		return nil
	}
	meta := mcp.Meta{"traceparent": t.Parent}
	if t.State != "" {
		meta["tracestate"] = t.State
	}
	if t.Baggage != "" {
		meta["baggage"] = t.Baggage
	}
	return meta
}

// An MCPTool is a tool of an MCP server.
type MCPTool struct {
	Name, About string
	Schema      json.RawMessage // of its input; may be nil
}

// ListMCP returns the tools of an MCP server, at most 200; more says that
// there are others. Its errors are of the server, or of ctx; a server that does not answer
// in time is [context.DeadlineExceeded].
func ListMCP(ctx context.Context, env Env, s acp.MCPServer) (tools []MCPTool, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, MCPPatience)
	defer cancel()
	err = env.MCP().use(ctx, env, s, func(session mcpSession) error {
		for tool, err := range session.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			if len(tools) == maxTools {
				more = true
				break
			}
			schema, err := json.Marshal(tool.InputSchema)
			if err != nil || string(schema) == "null" {
				schema = nil
			}
			tools = append(tools, MCPTool{tool.Name, tool.Description, schema})
		}
		return nil
	})
	return tools, more, err
}

// CallMCP calls a tool of an MCP server, if that is permitted.
func CallMCP(ctx context.Context, env Env, s acp.MCPServer, tool string, input json.RawMessage) Result {
	title := prose.OneLine(ServerName(s)+": "+tool, 200)
	c, own, end := beginAlone(ctx, env, acp.ToolCall{
		Name: "mcp", Title: title, Kind: acp.ToolKindOther, Status: acp.ToolCallStatusPending, Input: input,
	})
	defer end()
	err := c.permit(Question{
		Permission: acp.Permission{Title: "Use the tool " + title + "?"}, About: AboutMCP, Always: "tools of MCP servers",
		Request: acphost.Request{Title: title, Kind: string(acp.ToolKindOther), ToolName: "mcp__" + ServerName(s) + "__" + tool, RawInput: input},
	})
	if err == nil {
		c.status(acp.ToolCallStatusInProgress)
		err = env.MCP().use(own, env, s, func(session mcpSession) error {
			res, err := session.CallTool(own, &mcp.CallToolParams{Meta: traceOf(own), Name: tool, Arguments: input})
			if err != nil {
				return err
			}
			for _, content := range res.Content {
				c.take(content)
			}
			c.found = bounded(c.found, MaxText-10<<10)
			if res.IsError {
				return errors.New("the tool has failed")
			}
			return nil
		})
	}
	switch {
	case own.Err() != nil:
		return c.cancelled("The tool was cancelled.")
	case err != nil:
		res := c.failed(err)
		if c.found != "" {
			res.Text = c.found + res.Said
		}
		return res
	}
	return c.done("The tool has answered.")
}

// maxImages bounds the images of one result: more fill a window.
const maxImages = 20

// take shows a piece of a result, and keeps it for the model.
func (c *call) take(content mcp.Content) {
	switch content := content.(type) {
	case *mcp.TextContent:
		c.show(&acp.BlockContent{Content: mcpContent(content)})
		c.found += content.Text + "\n"
	case *mcp.ImageContent:
		if len(c.images) == maxImages {
			c.found += fmt.Sprintf("(An image is not here: a result has at most %d.)\n", maxImages)
			return
		}
		p, err := picture.Fit(content.Data, picture.Common)
		if err != nil {
			why := "(An image is not here: " + prose.OneLine(err.Error(), 200) + ".)"
			c.text(why)
			c.found += why + "\n"
			return
		}
		c.show(&acp.BlockContent{Content: &acp.ImageContent{MIMEType: p.MIMEType, Data: base64.StdEncoding.EncodeToString(p.Data)}})
		c.images = append(c.images, p)
	default:
		block := mcpContent(content)
		c.show(&acp.BlockContent{Content: block})
		if t, ok := block.(*acp.TextContent); ok {
			c.found += t.Text + "\n"
			return
		}
		c.found += "(A recording is here, which you cannot hear.)\n"
	}
}

// mcpContent puts what a tool returns into a block.
func mcpContent(c mcp.Content) acp.ContentBlock {
	switch c := c.(type) {
	case *mcp.TextContent:
		text, cut := prose.Head(c.Text, maxMCPText, maxMCPText)
		if cut {
			text += "\n(This is not all of it.)"
		}
		return acp.Text(text)
	case *mcp.AudioContent:
		return &acp.AudioContent{MIMEType: c.MIMEType, Data: base64.StdEncoding.EncodeToString(c.Data)}
	}
	data, err := json.Marshal(c)
	if err != nil {
		return acp.Text("(something that cannot be shown)")
	}
	text, _ := prose.Head(string(data), 1000, maxMCPText)
	return acp.Text(prose.Code("json", text))
}
