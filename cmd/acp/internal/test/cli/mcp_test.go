package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// greeter is an MCP server made with the official SDK.
func greeter() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	type input struct {
		Name string `json:"name"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "greets"}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello, " + in.Name + os.Getenv("GREETER_MARK")}}}, nil, nil
	})
	return server
}

// fakeMCP is the greeter on standard input and output. With an argument it only says there that it
// cannot start.
func fakeMCP() {
	if len(os.Args) > 1 && os.Args[1] == "broken" {
		fmt.Fprintf(os.Stderr, "loading\nerror: no \x1b[31mdatabase at %s\n", os.Getenv("GREETER_KEY"))
		os.Exit(7)
	}
	fmt.Fprintln(os.Stderr, "greeter \x1b[31mis up")
	if err := greeter().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "fake-mcp:", err)
		os.Exit(1)
	}
}

// serveMCP serves the greeter at /http and /sse of an address, to who has the key.
func serveMCP() *httptest.Server {
	same := func(*http.Request) *mcp.Server { return greeter() }
	mux := http.NewServeMux()
	mux.Handle("/http", mcp.NewStreamableHTTPHandler(same, nil))
	mux.Handle("/sse", mcp.NewSSEHandler(same, nil))
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer open-sesame" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

// bearer sends the headers of a server.
type bearer []acp.HTTPHeader

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for _, h := range b {
		r.Header.Set(h.Name, h.Value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// greetings says how an agent is told of a server, and what the server's tool says to it.
func greetings(ctx context.Context, s acp.MCPServer) string {
	var way string
	var transport mcp.Transport
	switch s := s.(type) {
	case *acp.MCPServerStdio:
		cmd := exec.Command(s.Command, s.Args...)
		cmd.Env = os.Environ()
		for _, v := range s.Env {
			cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
		}
		way, transport = s.Name+" by stdio", &mcp.CommandTransport{Command: cmd}
	case *acp.MCPServerHTTP:
		way, transport = s.Name+" by http", &mcp.StreamableClientTransport{Endpoint: s.URL, MaxRetries: -1, HTTPClient: &http.Client{Transport: bearer(s.Headers)}}
	case *acpv2.UnknownMCPServer:
		return s.Type + " as it is"
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "fake", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		return way + " fails: " + err.Error()
	}
	defer session.Close()
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: map[string]string{"name": "you"}})
	if err != nil {
		return way + " fails: " + err.Error()
	}
	var b strings.Builder
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return way + " says " + b.String()
}
