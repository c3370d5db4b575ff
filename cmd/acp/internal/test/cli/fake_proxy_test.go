package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
)

// greetOverACP is the tool of [greeter] as a proxy has it.
func greetOverACP(_ context.Context, call *acp.MCPCall) (json.RawMessage, error) {
	switch call.Method {
	case "tools/list":
		return json.RawMessage(`{"tools":[{"name":"greet","description":"greets","inputSchema":{"type":"object"}}]}`), nil
	case "tools/call":
		var p struct{ Arguments struct{ Name string } }
		if err := json.Unmarshal(call.Params, &p); err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{"content": []map[string]string{{"type": "text", "text": "hello, " + p.Arguments.Name}}})
	}
	return nil, &acp.MCPFailure{Code: -32601, Message: "Method not found"}
}

// fakeProxy is the program fake-agent as a proxy. how is a text to put in front of prompts, or what goes
// wrong.
func fakeProxy(how string) int {
	p := &acp.Proxy{Prompt: func(ctx context.Context, p *acp.ProxyPrompt, next func(context.Context) error) error {
		switch how {
		case "crash":
			fmt.Fprintln(os.Stderr, "panic: the proxy is broken")
			os.Exit(5)
		case "pids":
			if err := os.WriteFile("proxy.pid", fmt.Append(nil, os.Getpid()), 0o600); err != nil {
				return err
			}
			return next(ctx)
		}
		if text, ok := p.Blocks[0].(*acp.TextContent); ok {
			text.Text = how + text.Text
		}
		return next(ctx)
	}}
	switch how {
	case "dies":
		p.Initialize = func(context.Context, *acp.ProxyInit) error {
			os.Exit(5)
			return nil
		}
	case "greets":
		program, err := exec.LookPath("acp")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		bridge := &acphttp.MCPBridge{Connect: []string{program, "mcp-connect"}}
		p = &acp.Proxy{MCP: []acp.ProxyMCP{{Name: "tool", Handle: greetOverACP}}, BridgeMCP: bridge.Bridge}
	}
	if err := p.Serve(context.Background(), acp.Stdio()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
