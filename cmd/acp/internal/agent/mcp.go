package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/internal/process"
)

const (
	// mcpPatience is how long a server may take to start and to list its tools.
	mcpPatience = 30 * time.Second
	maxTools    = 200     // of a server that are listed
	maxMCPText  = 1 << 20 // bytes of a result that are shown
	maxMCPFrame = 32 << 20
)

// runMCP lists the tools of the session's MCP servers, or calls one. A server is
// connected to for the command alone.
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
		if serverName(s) != name {
			continue
		}
		tool, input, ok, err := word(rest)
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
		return k.callTool(s, tool, json.RawMessage(input))
	}
	return misusef("the session has no MCP server %q", oneLine(name, 60))
}

func serverName(s acp.MCPServer) string {
	switch s := s.(type) {
	case *acp.MCPServerStdio:
		return s.Name
	case *acp.MCPServerHTTP:
		return s.Name
	}
	return ""
}

// listTools says which tools a server has, or why that is not known.
func (k *task) listTools(s acp.MCPServer) {
	if k.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(k.ctx, mcpPatience)
	defer cancel()
	var b strings.Builder
	fmt.Fprintf(&b, "MCP server %s:\n\n", inline(serverName(s)))
	err := k.withServer(ctx, s, func(session *mcp.ClientSession) error {
		n := 0
		for tool, err := range session.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			if n++; n > maxTools {
				b.WriteString("- and more\n")
				break
			}
			fmt.Fprintf(&b, "- %s", inline(tool.Name))
			if tool.Description != "" {
				fmt.Fprintf(&b, " — %s", inline(oneLine(tool.Description, 120)))
			}
			b.WriteByte('\n')
		}
		if n == 0 {
			b.WriteString("It has no tools.\n")
		}
		return nil
	})
	switch {
	case k.ctx.Err() != nil:
		return
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintf(&b, "It did not answer within %s.\n", mcpPatience)
	case err != nil:
		fmt.Fprintf(&b, "It cannot be used: %s\n", plainError(err))
	}
	k.say(b.String() + "\n")
}

// callTool calls a tool, if the user agrees.
func (k *task) callTool(s acp.MCPServer, tool string, input json.RawMessage) error {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	title := oneLine(serverName(s)+": "+tool, 200)
	c := k.callIn(k.out.WithContext(ctx), acp.ToolCall{
		Name: "mcp", Title: title, Kind: acp.ToolKindOther, Status: acp.ToolCallStatusPending, Input: input, Cancel: cancel,
	})
	err := c.permit(askMCP, "tools of MCP servers", acp.Permission{Title: "Use the tool " + title + "?"},
		acphost.Request{Title: title, Kind: string(acp.ToolKindOther), ToolName: "mcp__" + serverName(s) + "__" + tool, RawInput: input})
	if err == nil {
		c.status(acp.ToolCallStatusInProgress)
		err = k.withServer(ctx, s, func(session *mcp.ClientSession) error {
			res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: input})
			if err != nil {
				return err
			}
			for _, content := range res.Content {
				c.show(&acp.BlockContent{Content: mcpContent(content)})
			}
			if res.IsError {
				return errors.New("the tool has failed")
			}
			return nil
		})
	}
	switch {
	case ctx.Err() != nil:
		c.status(acp.ToolCallStatusCancelled)
		if k.ctx.Err() == nil {
			k.say("The tool was cancelled.")
		}
		return nil
	case err != nil:
		return k.failed(c, err)
	}
	c.complete()
	k.say("The tool has answered.")
	return nil
}

// mcpContent puts what a tool returns into a block.
func mcpContent(c mcp.Content) acp.ContentBlock {
	switch c := c.(type) {
	case *mcp.TextContent:
		text, cut := head(c.Text, maxMCPText, maxMCPText)
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
	text, _ := head(string(data), 1000, maxMCPText)
	return acp.Text(code("json", text))
}

// withServer connects to a server for as long as f runs.
func (k *task) withServer(ctx context.Context, s acp.MCPServer, f func(*mcp.ClientSession) error) (err error) {
	var transport mcp.Transport
	switch s := s.(type) {
	case *acp.MCPServerStdio:
		env := os.Environ()
		for _, v := range s.Env {
			env = append(env, v.Name+"="+v.Value)
		}
		p, err := process.Start(ctx, process.Config{Path: s.Command, Args: s.Args, Dir: k.turn.Session().Cwd(), Env: env})
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
	client := mcp.NewClient(&mcp.Implementation{Name: Name, Version: "0"}, nil)
	connecting, cancel := context.WithTimeout(ctx, mcpPatience)
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
