package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// mcpWelcome is the answer of an agent that takes MCP servers over this protocol.
func mcpWelcome(version int) string {
	if version == 1 {
		return `{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"acp":true}},"agentInfo":{"name":"a","version":"1"},"authMethods":[]}`
	}
	return `{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{"mcp":{"acp":{}}}}}`
}

// connectedRig is a rig whose agent takes MCP servers, with a session s that has one.
func connectedRig(t *testing.T, version int, c *Conductor) (r *proxyRig, servers []struct{ Name, ServerID string }) {
	t.Helper()
	agent, started := playedComponent(t, "agent")
	c.Agent = agent
	r = newProxyRig(t, c)
	hello, _ := helloOf(version)
	id := r.client.call("initialize", hello)
	r.agent = started()
	r.agent.answer(r.agent.expect("initialize", ""), mcpWelcome(version))
	r.client.response(id, "")
	id = r.client.call("session/new", `{"cwd":"/","mcpServers":[{"type":"acp","name":"mine","serverId":"of-the-client"}]}`)
	f := r.agent.expect("session/new", "")
	var opened struct {
		MCPServers []struct{ Name, ServerID string }
	}
	if err := json.Unmarshal(f.Params, &opened); err != nil {
		t.Fatal(err)
	}
	r.agent.answer(f, `{"sessionId":"s"}`)
	r.client.response(id, "")
	return r, opened.MCPServers
}

// connectMCP has the agent connect to a server.
func (r *proxyRig) connectMCP(server string) string {
	r.t.Helper()
	id := r.agent.call("mcp/connect", `{"serverId":"`+server+`"}`)
	f := r.agent.read()
	var got struct{ ConnectionID string }
	if string(f.ID) != id || json.Unmarshal(f.Result, &got) != nil || got.ConnectionID == "" {
		r.t.Fatalf("mcp/connect is answered %s", &f)
	}
	return got.ConnectionID
}

// TestMCPConnections: an agent that connects to MCP servers, as the Rust SDK did before version 5, reaches those of a proxy and
// those of the client, which are asked in the present form.
func TestMCPConnections(t *testing.T) {
	own := ProxyMCP{Name: "own", Handle: func(ctx context.Context, call *MCPCall) (json.RawMessage, error) {
		if call.Method == "tools/call" {
			return nil, &MCPFailure{Code: -7, Message: "no", Data: json.RawMessage(`1.0`)}
		}
		err := call.Notify(ctx, "notifications/progress", json.RawMessage(`{"progress":1}`))
		return json.RawMessage(`{"tools":[]}`), err
	}}
	for version := 1; version <= 2; version++ {
		for name, c := range map[string]*Conductor{
			"proxy":     {Proxies: []Component{{Proxy: &Proxy{MCP: []ProxyMCP{own}, MCPConnections: true}}}},
			"served":    {Proxies: []Component{{Transport: servedOnDemand(&Proxy{MCP: []ProxyMCP{own}, MCPConnections: true})}}},
			"conductor": {Proxies: []Component{{Proxy: &Proxy{MCP: []ProxyMCP{own}}}}, MCPConnections: true},
		} {
			t.Run(fmt.Sprintf("v%d %s", version, name), func(t *testing.T) {
				r, servers := connectedRig(t, version, c)
				if len(servers) != 2 || servers[0].ServerID != "of-the-client" {
					t.Fatalf("the agent is given %+v", servers)
				}
				// The proxy's.
				at := r.connectMCP(servers[1].ServerID)
				id := r.agent.call("mcp/message", `{"connectionId":"`+at+`","method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
				if f := r.agent.read(); string(f.ID) != id || !strings.Contains(string(f.Result), `"protocolVersion":"2025-06-18"`) {
					t.Fatalf("the handshake is answered %s", &f)
				}
				r.agent.notify("mcp/message", `{"connectionId":"`+at+`","method":"notifications/initialized"}`)
				id = r.agent.call("mcp/message", `{"connectionId":"`+at+`","method":"tools/list"}`)
				r.agent.expect("mcp/message", `{"connectionId":"`+at+`","method":"notifications/progress","params":{"progress":1}}`)
				r.agent.response(id, `{"tools":[]}`)
				id = r.agent.call("mcp/message", `{"connectionId":"`+at+`","method":"tools/call","params":{"name":"x"}}`)
				r.agent.errorText(id, `{"code":-7,"message":"no","data":1.0}`)
				// The client's.
				mine := r.connectMCP("of-the-client")
				id = r.agent.call("mcp/message", `{"connectionId":"`+mine+`","method":"tools/list","params":{"_meta":{"k":1}}}`)
				f := r.client.expect("mcp/message", "")
				var asked struct{ ServerID, RequestID, Method string }
				if err := json.Unmarshal(f.Params, &asked); err != nil || asked.ServerID != "of-the-client" || asked.Method != "tools/list" ||
					!strings.Contains(string(f.Params), `"k":1`) || !strings.Contains(string(f.Params), "io.modelcontextprotocol/protocolVersion") {
					t.Errorf("the client is asked %s, %v", f.Params, err)
				}
				r.client.notify("mcp/message", `{"serverId":"of-the-client","requestId":"`+asked.RequestID+`","method":"notifications/progress"}`)
				r.agent.expect("mcp/message", `{"connectionId":"`+mine+`","method":"notifications/progress"}`)
				r.client.answer(f, `{"result":{"n":1.0}}`)
				r.agent.response(id, `{"n":1.0}`)
				// The present form passes as it is, and what is over is over.
				id = r.agent.call("mcp/message", `{"serverId":"of-the-client","requestId":"r","method":"tools/list"}`)
				r.client.answer(r.client.expect("mcp/message", `{"serverId":"of-the-client","requestId":"r","method":"tools/list"}`), `{"result":{}}`)
				r.agent.response(id, `{"result":{}}`)
				r.agent.response(r.agent.call("mcp/disconnect", `{"connectionId":"`+mine+`"}`), `{}`)
				for _, call := range []string{"mcp/disconnect", "mcp/message"} {
					if e := r.agent.failure(r.agent.call(call, `{"connectionId":"`+mine+`","method":"ping"}`)); e.Code != jsonrpc.CodeInvalidParams {
						t.Errorf("%s after the end: %v", call, e)
					}
				}
				for _, params := range []string{`{}`, `[]`, `{"serverId":7}`} {
					if e := r.agent.failure(r.agent.call("mcp/connect", params)); e.Code != jsonrpc.CodeInvalidParams {
						t.Errorf("mcp/connect %s: %v", params, e)
					}
				}
			})
		}
	}
	t.Run("not asked for", func(t *testing.T) {
		r, _ := connectedRig(t, 1, &Conductor{Proxies: []Component{{Proxy: &Proxy{MCP: []ProxyMCP{own}}}}})
		id := r.agent.call("mcp/connect", `{"serverId":"of-the-client"}`)
		r.client.fail(r.client.expect("mcp/connect", `{"serverId":"of-the-client"}`), `{"code":-32601,"message":"no"}`)
		if e := r.agent.failure(id); e.Code != jsonrpc.CodeMethodNotFound {
			t.Errorf("answered with %v", e)
		}
	})
}

// TestMCPConnectionsBound: an agent that opens connections to MCP servers and ends none keeps the latest; of its requests that run
// at once, one more is refused. Neither depends on how many servers there may be.
func TestMCPConnectionsBound(t *testing.T) {
	l := mcpToClient{mcpConnections: new(mcpConnections)}
	connect := func() string {
		raw, err := l.connect("x")
		if err != nil {
			t.Fatal(err)
		}
		return string(memberOf(raw, "connectionId"))
	}
	ping := func(id string) error {
		raw := json.RawMessage(`{"connectionId":"` + id + `","method":"ping"}`)
		_, err := l.request(t.Context(), proxied{method: "mcp/message", params: &raw})
		return err
	}
	var all []string
	for range maxMCPConnections + 2 {
		all = append(all, connect())
	}
	for i, id := range all {
		if err := ping(id); (err != nil) != (i < 2) {
			t.Errorf("connection %d of %d: %v", i, len(all), err)
		}
	}
	raw := json.RawMessage(`{"connectionId":"` + all[2] + `"}`)
	if _, err := l.request(t.Context(), proxied{method: "mcp/disconnect", params: &raw}); err != nil {
		t.Error(err)
	}
	all = append(all, connect()) // in the place of the one that has ended
	if err := ping(all[3]); err != nil {
		t.Errorf("the oldest connection has gone although there was room: %v", err)
	}
	if len(l.servers) != maxMCPConnections || len(l.opened) != maxMCPConnections {
		t.Errorf("%d connections are kept, %d in order", len(l.servers), len(l.opened))
	}
	l.calls = map[acpv2.MCPRequestID]string{}
	for i := range maxMCPCalls {
		l.calls[acpv2.MCPRequestID(fmt.Sprint(i))] = all[3]
	}
	if e, ok := errors.AsType[*jsonrpc.Error](ping(all[3])); !ok || e.Code != codeMCPBusy {
		t.Errorf("one request more than may run: %v", e)
	}
}
