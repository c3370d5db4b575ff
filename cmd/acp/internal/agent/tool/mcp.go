package tool

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/internal/process"
)

const (
	// MCPPatience is how long a server may take to start and to list its tools.
	MCPPatience = 30 * time.Second
	maxTools    = 200     // of a server that are listed
	maxMCPText  = 1 << 20 // bytes of a result that are shown
	maxMCPFrame = 32 << 20
)

// ServerName returns the name of an MCP server, or "".
func ServerName(s acp.MCPServer) string {
	switch s := s.(type) {
	case *acp.MCPServerStdio:
		return s.Name
	case *acp.MCPServerHTTP:
		return s.Name
	}
	return ""
}

// An MCPTool is a tool of an MCP server.
type MCPTool struct {
	Name, About string
	Schema      json.RawMessage // of its input; may be nil
}

// ListMCP connects to an MCP server and returns its tools, at most 200; more says that
// there are others. Its errors are of the server, or of ctx; a server that does not answer
// in time is [context.DeadlineExceeded].
func ListMCP(ctx context.Context, env Env, s acp.MCPServer) (tools []MCPTool, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, MCPPatience)
	defer cancel()
	err = withServer(ctx, env, s, func(session *mcp.ClientSession) error {
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

// CallMCP calls a tool of an MCP server, if that is permitted. The server is connected to
// for this call alone.
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
		err = withServer(own, env, s, func(session *mcp.ClientSession) error {
			res, err := session.CallTool(own, &mcp.CallToolParams{Name: tool, Arguments: input})
			if err != nil {
				return err
			}
			for _, content := range res.Content {
				block := mcpContent(content)
				c.show(&acp.BlockContent{Content: block})
				switch content := content.(type) {
				case *mcp.TextContent:
					c.found += content.Text + "\n"
				case *mcp.ImageContent:
					c.images = append(c.images, Image{content.MIMEType, content.Data})
				default:
					if t, ok := block.(*acp.TextContent); ok {
						c.found += t.Text + "\n"
					}
				}
			}
			c.found = bounded(c.found, outputTail)
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

// mcpContent puts what a tool returns into a block.
func mcpContent(c mcp.Content) acp.ContentBlock {
	switch c := c.(type) {
	case *mcp.TextContent:
		text, cut := prose.Head(c.Text, maxMCPText, maxMCPText)
		if cut {
			text += "\n(This is not all of it.)"
		}
		return acp.Text(text)
	case *mcp.ImageContent:
		return &acp.ImageContent{MIMEType: c.MIMEType, Data: base64.StdEncoding.EncodeToString(c.Data)}
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

// withServer connects to a server for as long as f runs.
func withServer(ctx context.Context, env Env, s acp.MCPServer, f func(*mcp.ClientSession) error) (err error) {
	var transport mcp.Transport
	switch s := s.(type) {
	case *acp.MCPServerStdio:
		environ := os.Environ()
		for _, v := range s.Env {
			environ = append(environ, v.Name+"="+v.Value)
		}
		p, err := process.Start(ctx, process.Config{Path: s.Command, Args: s.Args, Dir: env.Cwd(), Env: environ})
		if err != nil {
			return err
		}
		defer func() {
			_ = p.Stop(context.WithoutCancel(ctx))
		}()
		defer context.AfterFunc(ctx, p.Kill)()
		transport = &mcp.IOTransport{Reader: p.Stdout(), Writer: p.Stdin(), MaxLineLength: maxMCPFrame}
	case *acp.MCPServerHTTP:
		at, err := url.Parse(s.URL)
		if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			return errors.New("its address is not one of HTTP")
		}
		conns := http.DefaultTransport.(*http.Transport).Clone()
		defer conns.CloseIdleConnections()
		transport = &mcp.StreamableClientTransport{
			Endpoint: s.URL, HTTPClient: &http.Client{Transport: &headers{at.Scheme, at.Host, s.Headers, conns}},
			MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxMCPFrame,
		}
	default:
		return errors.New("its transport is not known")
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "acp", Version: "0"}, nil)
	connecting, cancel := context.WithTimeout(ctx, MCPPatience)
	defer cancel()
	session, err := client.Connect(connecting, transport, nil)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	return f(session)
}

// headers adds the headers of a server to requests to its host, and to no other, nor to that one in
// the clear where it was named with TLS.
type headers struct {
	scheme, host string
	add          []acp.HTTPHeader
	next         http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == h.scheme && r.URL.Host == h.host {
		r = r.Clone(r.Context())
		for _, v := range h.add {
			r.Header.Set(v.Name, v.Value)
		}
	}
	return h.next.RoundTrip(r)
}
