package acphttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/internal/logtest"
)

// TestMCPBridge holds that a tool of a proxy, and one of the client behind it, is reached by
// agents that take MCP servers over this protocol, over HTTP, and over standard streams only.
func TestMCPBridge(t *testing.T) {
	for version := 1; version <= 2; version++ {
		for _, takes := range []string{"acp", "http", "stdio"} {
			t.Run(fmt.Sprintf("v%d %s", version, takes), func(t *testing.T) {
				agent := acp.Agent{
					Info: acp.Implementation{Name: "agent", Version: "1"},
					MCP:  acp.MCPTransports{ACP: takes == "acp", HTTP: takes == "http", Stdio: true},
					Prompt: func(ctx context.Context, turn *acp.Turn) (acp.StopReason, error) {
						for _, server := range turn.Session().MCPServers() {
							text, err := callTool(ctx, turn, server)
							if err != nil {
								text = err.Error()
							}
							if err := turn.Say(text + "\n"); err != nil {
								return "", err
							}
						}
						return acp.StopEndTurn, nil
					},
				}
				bridge := &acphttp.MCPBridge{Connect: []string{"/bin/connect", "mcp"}}
				answer := func(who string) func(context.Context, *acp.MCPCall) (json.RawMessage, error) {
					return func(_ context.Context, call *acp.MCPCall) (json.RawMessage, error) {
						if !strings.Contains(string(call.Params), "io.modelcontextprotocol/protocolVersion") {
							t.Errorf("params %s", call.Params)
						}
						return json.Marshal(who + " was asked " + call.Method)
					}
				}
				proxy := &acp.Proxy{
					MCP:       []acp.ProxyMCP{{Name: "tool", Handle: answer("proxy")}},
					BridgeMCP: bridge.Bridge, Logger: logtest.New(t),
				}
				client := &acp.Client{MinVersion: version, MaxVersion: version, MCP: answer("client")}
				conn, err := client.Connect(t.Context(), acp.Chain(acp.InProcess(&agent), proxy))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				s, err := conn.NewSession(t.Context(), acp.SessionConfig{
					Cwd: "/", MCPServers: []acp.MCPServer{&acp.MCPServerACP{Name: "mine", ServerID: "mine"}},
				})
				if err != nil {
					t.Fatal(err)
				}
				text, _, err := s.Prompt(t.Context(), acp.Text("go")).Text()
				want := "\"client was asked tools/list\"\n\"proxy was asked tools/list\"\n"
				if err != nil || text != want {
					t.Errorf("text %q, error %v", text, err)
				}
			})
		}
	}
}

// callTool asks a server in the way it is declared.
func callTool(ctx context.Context, turn *acp.Turn, server acp.MCPServer) (string, error) {
	switch server := server.(type) {
	case *acp.MCPServerACP:
		res, err := turn.Session().CallMCP(ctx, server.ServerID, "tools/list", nil, nil)
		return string(res), err
	case *acp.MCPServerHTTP:
		return overHTTP(server.URL, server.Headers[0].Value)
	case *acp.MCPServerStdio:
		env := map[string]string{}
		for _, v := range server.Env {
			env[v.Name] = v.Value
		}
		var headers map[string]string
		if err := json.Unmarshal([]byte(env["ACP_MCP_HEADERS"]), &headers); err != nil {
			return "", err
		}
		if server.Command != "/bin/connect" || env["ACP_MCP_TYPE"] != "http" {
			return "", fmt.Errorf("declared as %+v", server)
		}
		return overHTTP(env["ACP_MCP_URL"], headers["Authorization"])
	}
	return "", fmt.Errorf("a server of type %T", server)
}

func overHTTP(url, secret string) (string, error) {
	post := func(secret, body string) (int, string, error) {
		req, err := http.NewRequest(http.MethodPost, url, bytes.NewBufferString(body))
		if err != nil {
			return 0, "", err
		}
		req.Header.Set("Authorization", secret)
		req.Close = true
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		return res.StatusCode, string(data), err
	}
	if code, _, err := post("Bearer guessed", `{}`); err != nil || code != http.StatusUnauthorized {
		return "", fmt.Errorf("without the secret: %d, %w", code, err)
	}
	if _, body, err := post(secret, `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18"}}`); err != nil ||
		!strings.Contains(body, `"protocolVersion":"2025-06-18"`) {
		return "", fmt.Errorf("initialize: %s, %w", body, err)
	}
	if code, _, err := post(secret, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil || code != http.StatusAccepted {
		return "", fmt.Errorf("a notification: %d, %w", code, err)
	}
	_, body, err := post(secret, `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`)
	if err != nil {
		return "", err
	}
	var answer struct {
		ID     int
		Result json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.ID != 7 || answer.Result == nil {
		return "", fmt.Errorf("answered with %s", body)
	}
	return string(answer.Result), nil
}
