package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// TestPermissionChoice holds that options are chosen by kind, whatever their
// order, and never something wider than was meant.
func TestPermissionChoice(t *testing.T) {
	const ao, aa, ro, ra, x = PermissionOptionKindAllowOnce, PermissionOptionKindAllowAlways,
		PermissionOptionKindRejectOnce, PermissionOptionKindRejectAlways, PermissionOptionKind("_else")
	tests := []struct {
		kinds                                    []PermissionOptionKind
		allow, allowAlways, reject, rejectAlways PermissionOptionKind // "" is none
	}{
		{[]PermissionOptionKind{ao, aa, ro, ra}, ao, aa, ro, ra},
		{[]PermissionOptionKind{ra, ro, aa, ao}, ao, aa, ro, ra},
		{[]PermissionOptionKind{x, ro, ao}, ao, ao, ro, ro},
		{[]PermissionOptionKind{aa, ra}, "", aa, "", ra},
		{[]PermissionOptionKind{x}, "", "", "", ""},
		{nil, "", "", "", ""},
	}
	for _, tt := range tests {
		req := new(PermissionRequest)
		for _, k := range tt.kinds {
			req.Options = append(req.Options, PermissionOption{OptionID: PermissionOptionID("the " + k), Kind: k})
		}
		decision := func(k PermissionOptionKind) PermissionDecision {
			if k == "" {
				return CancelPermission()
			}
			return SelectPermission(PermissionOptionID("the " + k))
		}
		got := []PermissionDecision{req.Allow(), req.AllowAlways(), req.Reject(), req.RejectAlways()}
		expect := []PermissionDecision{decision(tt.allow), decision(tt.allowAlways), decision(tt.reject), decision(tt.rejectAlways)}
		if diff := cmp.Diff(expect, got); diff != "" {
			t.Errorf("%v: %s", tt.kinds, diff)
		}
	}
}

// TestClientPermission holds what decisions become on the wire, and what a hook
// is told.
func TestClientPermission(t *testing.T) {
	const cancelled, selected = `{"outcome":{"outcome":"cancelled"}}`, `{"outcome":{"outcome":"selected","optionId":"o"}}`
	type hook = func(context.Context, *PermissionRequest) (PermissionDecision, error)
	decide := func(d PermissionDecision, err error) hook {
		return func(context.Context, *PermissionRequest) (PermissionDecision, error) { return d, err }
	}
	tests := []struct {
		name string
		hook hook
		want string
	}{
		{"no hook", nil, cancelled},
		{"zero", decide(PermissionDecision{}, nil), cancelled},
		{"select", decide(SelectPermission("o"), nil), selected},
		{"select what was not offered", decide(SelectPermission("x"), nil), cancelled}, // S85
		{"cancel", decide(CancelPermission(), nil), cancelled},
		{"cancel with an id", decide(PermissionDecision{OptionID: "o", Cancelled: true}, nil), cancelled},
		{"with meta", decide(PermissionDecision{OptionID: "o", Meta: json.RawMessage(`{"m":1}`)}, nil), `{"outcome":{"outcome":"selected","optionId":"o","_meta":{"m":1}}}`},
		{"error", decide(SelectPermission("o"), errors.New("secret")), `-32603 {"correlationId"`},
		{"error for the agent", decide(SelectPermission("o"), jsonrpc.Errorf(-32042, "no")), `-32042 null`},
		{"panic", func(context.Context, *PermissionRequest) (PermissionDecision, error) { panic("boom") }, `-32603`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			both(t, Client{RequestPermission: tt.hook}, func(t *testing.T, s *ClientSession, a *clientScript) {
				a.request(1, "session/request_permission", permissionParams(s.conn.Version(), clientAllowOption))
				if got := a.response(); !strings.HasPrefix(got, strings.TrimSuffix(tt.want, " null")) {
					t.Errorf("%s, want %s", got, tt.want)
				}
				a.request(2, "session/request_permission", strings.Replace(permissionParams(s.conn.Version(), clientAllowOption), `"s"`, `"x"`, 1))
				want(t, "another session", a.response(), `-32002 {"sessionId":"x"}`)
			})
		})
	}
	asked := make(chan *PermissionRequest, 1)
	c := Client{RequestPermission: func(ctx context.Context, req *PermissionRequest) (PermissionDecision, error) {
		if ClientConnFrom(ctx) != req.Session.Conn() {
			return SelectPermission("o"), errors.New("wrong context")
		}
		asked <- req
		return req.Allow(), nil
	}}
	both(t, c, func(t *testing.T, s *ClientSession, a *clientScript) {
		// The tool call was never told of: a quirk of real agents.
		a.request(0, "session/request_permission", permissionParams(s.conn.Version(), clientAllowOption))
		want(t, "answer", a.response(), selected)
		req := <-asked
		if req.Session != s || req.Title != "Run it?" || req.ToolCall == nil || req.ToolCall.ToolCallID != "t" || len(req.Options) != 1 ||
			(req.V1 != nil) == (s.conn.Version() == 2) || req.V2 == nil {
			t.Errorf("%+v", req)
		}
	})
	single(t, c, 2, func(t *testing.T, s *ClientSession, a *clientScript) {
		a.request(1, "session/request_permission", `{"sessionId":"s","title":"T","description":"D","options":[`+clientAllowOption+`],
			"subject":{"type":"command","command":"ls","cwd":"/w"},"_meta":{"k":1}}`)
		want(t, "answer", a.response(), selected)
		req := <-asked
		if cmd, ok := req.Subject.(*CommandPermissionSubject); !ok || cmd.Command != "ls" || req.ToolCall != nil || req.Description != "D" || string(req.Meta) != `{"k":1}` {
			t.Errorf("%+v", req)
		}
		// What the call was about before is not taken away by its command.
		for _, command := range []string{"rm x", "ls"} {
			a.update("tool_call_update", `"toolCallId":"t","title":"T","kind":"execute","rawInput":{"command":"`+command+`"}`)
		}
		a.request(2, "session/request_permission", `{"sessionId":"s","title":"T","options":[`+clientAllowOption+`],
			"subject":{"type":"command","command":"ls","cwd":"/w","toolCallId":"t"}}`)
		want(t, "answer", a.response(), selected)
		if req = <-asked; len(req.Earlier) != 1 || string(req.Earlier[0].RawInput) != `{"command":"rm x"}` {
			t.Errorf("%+v", req.Earlier)
		}
	})
}

// TestClientElicitation holds what an elicitation becomes, and what is refused.
func TestClientElicitation(t *testing.T) {
	const form = `"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}}}`
	const link = `"mode":"url","message":"m","elicitationId":"e","url":"https://x"`
	accept := func(_ context.Context, r *ElicitationRequest) (*ElicitationResponse, error) {
		switch {
		case (r.Form == nil) == (r.URL == ""), r.Message != "m", (r.V1 == nil) == (r.V2 == nil):
			return nil, errors.New("wrong request")
		case r.Session != nil && r.ToolCallID != "t", r.Session == nil && r.RequestID != jsonrpc.IntID(7):
			return nil, errors.New("wrong scope")
		case r.URL != "" && r.ElicitationID != "e":
			return nil, errors.New("wrong id")
		}
		return AcceptElicitation(map[string]json.RawMessage{"n": json.RawMessage(`"x"`)}), nil
	}
	answer := func(r *ElicitationResponse) func(context.Context, *ElicitationRequest) (*ElicitationResponse, error) {
		return func(context.Context, *ElicitationRequest) (*ElicitationResponse, error) { return r, nil }
	}
	session := `{"sessionId":"s","toolCallId":"t",`
	const accepted = `{"action":"accept","content":{"n":"x"}}`
	tests := []struct {
		name   string
		c      Client
		params string
		want   string
	}{
		{"form", Client{Elicit: accept}, session + form + "}", accepted},
		{"link", Client{Elicit: accept}, session + link + "}", accepted},
		{"of a request", Client{Elicit: accept}, `{"requestId":7,` + form + "}", accepted},
		{"another session", Client{Elicit: accept}, `{"sessionId":"x",` + form + "}", "-32002"},
		{"no forms", Client{Elicit: accept, Elicits: ElicitationKinds{URL: true}}, session + form + "}", "-32602"},
		{"no links", Client{Elicit: accept, Elicits: ElicitationKinds{Form: true}}, session + link + "}", "-32602"},
		{"unknown mode", Client{Elicit: accept}, session + `"mode":"_x","message":"m"}`, "-32602"},
		{"not offered", Client{}, session + form + "}", "-32601"},
		{"declined", Client{Elicit: answer(DeclineElicitation())}, session + form + "}", `{"action":"decline"}`},
		{"nil", Client{Elicit: answer(nil)}, session + form + "}", `{"action":"cancel"}`},
		{"no action", Client{Elicit: answer(new(ElicitationResponse))}, session + form + "}", `{"action":"cancel"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			both(t, tt.c, func(t *testing.T, s *ClientSession, a *clientScript) {
				a.request(1, "elicitation/create", tt.params)
				if got := a.response(); !strings.HasPrefix(got, tt.want) {
					t.Errorf("%s, want %s", got, tt.want)
				}
			})
		})
	}
	var told []string
	c := Client{
		ElicitationComplete: func(_ context.Context, id ElicitationID) { told = append(told, string(id)) },
		AuthStatus:          func(_ context.Context, s *AuthStatus) { told = append(told, string(s.State)) },
	}
	both(t, c, func(t *testing.T, s *ClientSession, a *clientScript) {
		told = nil
		a.notify("elicitation/complete", `{"elicitationId":"e"}`)
		a.notify("auth/status_update", `{"state":"authenticated"}`)
		synctest.Wait()
		want(t, "told", told, []string{"e", "authenticated"})
	})
}

// TestClientMCP holds the rules of MCP over this protocol (S104–S107).
func TestClientMCP(t *testing.T) {
	const meta = `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
	release := make(chan struct{})
	var late *MCPCall
	c := Client{MCP: func(ctx context.Context, m *MCPCall) (json.RawMessage, error) {
		switch m.Method {
		case "progress":
			late = m
			for i := range 3 {
				if err := m.Notify(ctx, "p", json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))); err != nil {
					return nil, err
				}
			}
			return json.RawMessage(`{"ok":true}`), nil
		case "null":
			return nil, nil
		case "inner":
			return nil, fmt.Errorf("wrapped: %w", &MCPFailure{Code: 5, Message: "m", Data: json.RawMessage(`1`)})
		case "fails", "outer":
			return nil, jsonrpc.Errorf(-33001, "secret")
		case "garbage":
			return json.RawMessage("{"), nil
		case "panics":
			panic("secret")
		case "waits":
			select {
			case <-release:
				return json.RawMessage(`1`), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return nil, errors.New("unexpected")
	}}
	both(t, c, func(t *testing.T, s *ClientSession, a *clientScript) {
		conn := s.conn
		release = make(chan struct{})
		opened := later(func() (*ClientSession, error) {
			return conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot, MCPServers: []MCPServer{&MCPServerACP{Name: "x", ServerID: "srv"}}})
		})
		a.answer(a.next("session/new"), `{"sessionId":"m"}`)
		if _, err := opened(); err != nil {
			t.Fatal(err)
		}
		id := 0
		call := func(server, request, method, params string) {
			id++
			a.request(id, "mcp/message", fmt.Sprintf(`{"serverId":%q,"requestId":%q,"method":%q,%s}`, server, request, method, params))
		}
		for _, tt := range []struct{ server, method, params, want string }{
			{"srv", "null", meta, `{"result":null}`},
			{"srv", "inner", meta, `{"error":{"code":5,"message":"m","data":1}}`},
			{"srv", "fails", meta, `-33002 null`},
			{"srv", "garbage", meta, `-33002 null`},
			{"srv", "panics", meta, `-33002 null`},
			{"none", "null", meta, `-33001 {"serverId":"none"}`},
			{"srv", "null", `"params":{}`, `{"error":{"code":-32602,"message":"Invalid params: params._meta lacks io.modelcontextprotocol/protocolVersion"}}`},
			{"srv", "null", `"_meta":{}`, `{"error":{"code":-32602,`},
			{"srv", "null", strings.Replace(meta, "2026", "2025", 1), `{"error":{"code":-32022,"message":"Unsupported protocol version","data":{"requested":"2025-07-28","supported":["2026-07-28"]}}}`},
			{"srv", "null", strings.Replace(meta, `s":{}`, `s":[]`, 1), `{"error":{"code":-32602,"message":"Invalid params: params._meta lacks io.modelcontextprotocol/clientCapabilities"}}`},
		} {
			call(tt.server, "r", tt.method, tt.params)
			if got := a.response(); !strings.HasPrefix(got, strings.TrimSuffix(tt.want, " null")) {
				t.Errorf("%s: %s, want %s", tt.method, got, tt.want)
			}
		}
		call("srv", "r", "progress", meta)
		for i := range 3 {
			want(t, "progress", string(a.next("mcp/message").Params), fmt.Sprintf(`{"serverId":"srv","requestId":"r","method":"p","params":{"n":%d}}`, i))
		}
		want(t, "result", a.response(), `{"result":{"ok":true}}`)
		if err := late.Notify(t.Context(), "p", nil); !errors.Is(err, errMCPAnswered) {
			t.Error(err)
		}
		// Bounds, duplicates and cancellation.
		for i := range maxMCPRequests {
			call("srv", fmt.Sprint(i), "waits", meta)
		}
		a.silent()
		call("srv", "0", "waits", meta)
		if got := a.response(); !strings.HasPrefix(got, "-32602") {
			t.Error(got)
		}
		call("srv", "more", "waits", meta)
		if got := a.response(); !strings.HasPrefix(got, "-33000") {
			t.Error(got)
		}
		a.notify("$/cancel_request", fmt.Sprintf(`{"requestId":%d}`, id-2))
		if got := a.response(); !strings.HasPrefix(got, "-32800") {
			t.Error(got)
		}
		close(release)
		for range maxMCPRequests - 1 {
			want(t, "result", a.response(), `{"result":1}`)
		}
	})
	// Without a hook there is nothing to call, and nothing to offer.
	both(t, Client{}, func(t *testing.T, s *ClientSession, a *clientScript) {
		a.request(1, "mcp/message", `{"serverId":"srv","requestId":"r","method":"m"}`)
		if got := a.response(); !strings.HasPrefix(got, "-32601") {
			t.Error(got)
		}
		_, err := s.conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot, MCPServers: []MCPServer{&MCPServerACP{Name: "x", ServerID: "y"}}})
		if err == nil || !strings.Contains(err.Error(), "no MCP hook") {
			t.Error(err)
		}
	})
	m := new(clientMCP)
	var many []MCPServer
	for i := range maxMCPServers {
		many = append(many, &MCPServerACP{ServerID: MCPServerACPID(fmt.Sprint(i))})
	}
	if err := m.offer(many); err != nil || len(m.servers) != maxMCPServers {
		t.Errorf("%d servers, %v", len(m.servers), err)
	}
	if err := m.offer([]MCPServer{&MCPServerACP{ServerID: "one more"}}); err == nil || len(m.servers) != maxMCPServers {
		t.Errorf("%d servers, %v", len(m.servers), err)
	}
}

// FuzzClientCheckMCP holds that no params do harm.
func FuzzClientCheckMCP(f *testing.F) {
	f.Add([]byte(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`))
	f.Add([]byte(`{"_meta":[]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if e := clientCheckMCP(data); e == nil && !strings.Contains(string(data), "2026-07-28") && !strings.Contains(string(data), `\u`) {
			t.Errorf("accepted %s", data)
		}
	})
}

// TestPermissionUnclear holds that nothing is permitted by a decision that does
// not name exactly one option.
func TestPermissionUnclear(t *testing.T) {
	options := []PermissionOption{
		{OptionID: "", Kind: PermissionOptionKindAllowAlways},
		{OptionID: "x", Kind: PermissionOptionKindRejectOnce},
		{OptionID: "x", Kind: PermissionOptionKindAllowOnce},
		{OptionID: "y", Kind: PermissionOptionKindAllowOnce},
	}
	r := &PermissionRequest{Options: options}
	for _, d := range []PermissionDecision{{}, SelectPermission(""), SelectPermission("z"), r.AllowAlways(), r.Reject(), SelectPermission("x"), {OptionID: "y", Cancelled: true}} {
		if o, ok := r.outcome(d).(*acpv2.CancelledPermissionOutcome); !ok {
			t.Errorf("%+v: %+v", d, o)
		}
	}
	if o, ok := r.outcome(SelectPermission("y")).(*acpv2.SelectedPermissionOutcome); !ok || o.OptionID != "y" {
		t.Errorf("%+v", o)
	}
}

// TestPermissionBoundary: in version 1, whose pieces of text need not say of which message they are, text after a question is
// another message than the text before it.
func TestPermissionBoundary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []MessageID
		conn, a := clientLink(t, Client{
			Update: func(_ context.Context, _ *ClientSession, u *Update) {
				if text, ok := u.Update.(*AgentMessageChunk); ok {
					ids = append(ids, text.MessageID)
				}
			},
			RequestPermission: func(_ context.Context, r *PermissionRequest) (PermissionDecision, error) { return r.Allow(), nil },
		}, 1, clientAll(1))
		a.session(conn)
		say := func(text string) {
			a.update("agent_message_chunk", fmt.Sprintf(`"content":{"type":"text","text":%q}`, text))
		}
		say("before")
		say("the tool")
		a.request(1, "session/request_permission", permissionParams(1, clientAllowOption))
		a.response()
		say("after")
		synctest.Wait()
		if len(ids) != 3 || ids[0] != ids[1] || ids[1] == ids[2] {
			t.Errorf("messages %q", ids)
		}
	})
}
