package acp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// A hookCase is one hook of an Agent: what it advertises and the methods it
// answers, by version. Methods without a hook of their own are in baseline.
type hookCase struct {
	name    string
	set     func(a *Agent)
	caps    [3][]string // by version: paths into the capabilities
	methods [3][]string
	always  [3]bool // answered by default, too
}

var hookCases = []hookCase{
	{name: "ResumeSession", set: func(a *Agent) {
		a.ResumeSession = func(context.Context, *AgentSession, bool) error { return nil }
	}, caps: [3][]string{1: {"loadSession", "sessionCapabilities.resume"}},
		methods: [3][]string{1: {"session/load", "session/resume"}, 2: {"session/resume"}}, always: [3]bool{2: true}},
	{name: "ListSessions", set: func(a *Agent) {
		a.ListSessions = func(context.Context, *AgentConn, *SessionQuery) (*SessionPage, error) { return nil, nil }
	}, caps: [3][]string{1: {"sessionCapabilities.list"}},
		methods: [3][]string{1: {"session/list"}, 2: {"session/list"}}, always: [3]bool{2: true}},
	{name: "CloseSession", set: func(a *Agent) {
		a.CloseSession = func(context.Context, *AgentSession) error { return nil }
	}, caps: [3][]string{1: {"sessionCapabilities.close"}},
		methods: [3][]string{1: {"session/close"}, 2: {"session/close"}}, always: [3]bool{2: true}},
	{name: "DeleteSession", set: func(a *Agent) {
		a.DeleteSession = func(context.Context, *AgentConn, SessionID) error { return nil }
	}, caps: [3][]string{1: {"sessionCapabilities.delete"}, 2: {"session.delete"}},
		methods: [3][]string{1: {"session/delete"}, 2: {"session/delete"}}},
	{name: "ForkSession", set: func(a *Agent) {
		a.ForkSession = func(context.Context, *AgentSession, SessionID) error { return nil }
	}, caps: [3][]string{1: {"sessionCapabilities.fork"}, 2: {"session.fork"}},
		methods: [3][]string{1: {"session/fork"}, 2: {"session/fork"}}},
	{name: "ArchiveSession", set: func(a *Agent) {
		a.ArchiveSession = func(context.Context, *AgentConn, SessionID, bool) error { return nil }
	}, caps: [3][]string{1: {"sessionCapabilities.archive"}, 2: {"session.archive"}},
		methods: [3][]string{1: {"session/archive", "session/unarchive"}, 2: {"session/archive", "session/unarchive"}}},
	{name: "SessionStatus", set: func(a *Agent) {
		a.SessionStatus = func(context.Context, *AgentConn, SessionID) (SessionStatus, error) { return SessionStatusSaved, nil }
	}, caps: [3][]string{1: {"sessionCapabilities.status"}, 2: {"session.status"}},
		methods: [3][]string{1: {"session/status"}, 2: {"session/status"}}},
	{name: "SessionOptions", set: func(a *Agent) {
		a.SessionOptions = func(context.Context, *AgentConn, *OptionsQuery) (*OptionsPreview, error) { return nil, nil }
	}, caps: [3][]string{1: {"sessionCapabilities.options"}, 2: {"session.options"}},
		methods: [3][]string{1: {"session/options"}, 2: {"session/options"}}},
	{name: "SetTitle", set: func(a *Agent) {
		a.SetTitle = func(_ context.Context, _ *AgentConn, _ SessionID, title string) (string, error) { return title, nil }
	}, caps: [3][]string{1: {"sessionCapabilities.title"}, 2: {"session.title"}},
		methods: [3][]string{1: {"session/set_title"}, 2: {"session/set_title"}}},
	{name: "Login", set: func(a *Agent) {
		a.AuthMethods = []AuthMethod{&AuthMethodAgent{MethodID: "m", Name: "M"}}
		a.Login = func(context.Context, *AgentConn, AuthMethodID) error { return nil }
	}, methods: [3][]string{1: {"authenticate"}, 2: {"auth/login", "authenticate"}}},
	{name: "Logout", set: func(a *Agent) {
		a.Logout = func(context.Context, *AgentConn) error { return nil }
	}, caps: [3][]string{1: {"auth.logout"}}, methods: [3][]string{1: {"logout"}, 2: {"auth/logout", "logout"}}},
	{name: "AuthStatus", set: func(a *Agent) {
		a.AuthStatus = func(context.Context, *AgentConn) (*AuthStatus, error) { return nil, nil }
	}, caps: [3][]string{1: {"auth.status"}, 2: {"auth.status"}}, methods: [3][]string{1: {"auth/status"}, 2: {"auth/status"}}},
	{name: "Providers", set: func(a *Agent) {
		a.ListProviders = func(context.Context, *AgentConn) ([]ProviderInfo, error) { return nil, nil }
		a.SetProvider = func(context.Context, *AgentConn, *ProviderSetting) error { return nil }
		a.DisableProvider = func(context.Context, *AgentConn, ProviderID) error { return nil }
	}, caps: [3][]string{1: {"providers"}, 2: {"providers"}}, methods: [3][]string{
		1: {"providers/list", "providers/set", "providers/disable"}, 2: {"providers/list", "providers/set", "providers/disable"}}},
	{name: "Content.Image", set: func(a *Agent) { a.Content.Image = true },
		caps: [3][]string{1: {"promptCapabilities.image"}, 2: {"session.prompt.image"}}},
	{name: "Content.Audio", set: func(a *Agent) { a.Content.Audio = true },
		caps: [3][]string{1: {"promptCapabilities.audio"}, 2: {"session.prompt.audio"}}},
	{name: "Content.EmbeddedContext", set: func(a *Agent) { a.Content.EmbeddedContext = true },
		caps: [3][]string{1: {"promptCapabilities.embeddedContext"}, 2: {"session.prompt.embeddedContext"}}},
	{name: "Content.Skill", set: func(a *Agent) { a.Content.Skill = true }, caps: [3][]string{2: {"session.prompt.skill"}}},
	{name: "Content.SkillInline", set: func(a *Agent) { a.Content.SkillInline = true },
		caps: [3][]string{2: {"session.prompt.skill", "session.prompt.skill.inline"}}},
	{name: "MCP.Stdio", set: func(a *Agent) { a.MCP.Stdio = true }, caps: [3][]string{2: {"session.mcp.stdio"}}},
	{name: "MCP.HTTP", set: func(a *Agent) { a.MCP.HTTP = true },
		caps: [3][]string{1: {"mcpCapabilities.http"}, 2: {"session.mcp.http"}}},
	{name: "MCP.SSE", set: func(a *Agent) { a.MCP.SSE = true }, caps: [3][]string{1: {"mcpCapabilities.sse"}}},
	{name: "MCP.ACP", set: func(a *Agent) { a.MCP.ACP = true },
		caps: [3][]string{1: {"mcpCapabilities.acp"}, 2: {"session.mcp.acp"}}},
	{name: "AdditionalDirectories", set: func(a *Agent) { a.AdditionalDirectories = true },
		caps: [3][]string{1: {"sessionCapabilities.additionalDirectories"}, 2: {"session.additionalDirectories"}}},
	{name: "SystemPromptAppend", set: func(a *Agent) { a.SystemPrompt = SystemPromptAppend },
		caps: [3][]string{1: {"sessionCapabilities.systemPrompt"}, 2: {"session.systemPrompt"}}},
	{name: "SystemPromptOverride", set: func(a *Agent) { a.SystemPrompt = SystemPromptOverride },
		caps: [3][]string{1: {"sessionCapabilities.systemPrompt", "sessionCapabilities.systemPrompt.mode.override"},
			2: {"session.systemPrompt", "session.systemPrompt.mode.override"}}},
}

// baseline are the methods every agent answers, by version, and those that
// belong to a role this package does not play.
var baseline = [3][]string{
	1: {"initialize", "session/new", "session/prompt", "session/cancel", "session/set_mode", "session/set_config_option", "mcp/message"},
	2: {"initialize", "session/new", "session/prompt", "session/cancel", "session/set_config_option", "tool_call/cancel", "terminal/cancel", "mcp/message"},
}

// lookup follows a path into decoded JSON and reports whether something true is
// there.
func lookup(v any, path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		v = m[name]
	}
	return v != nil && v != false
}

func capabilities(r *rawClient) any {
	if r.version == 1 {
		return r.hello["agentCapabilities"]
	}
	return r.hello["capabilities"]
}

// validParams are params of agent methods that decode, with %s for the session.
func validParams(method, session string) string {
	p := map[string]string{
		"session/new": `"cwd":"/","mcpServers":[]`, "session/prompt": `"prompt":[{"type":"text","text":"x"}]`,
		"session/load": `"cwd":"/","mcpServers":[]`, "session/resume": `"cwd":"/"`, "session/options": `"cwd":"/"`, "session/fork": `"cwd":"/"`,
		"session/set_mode": `"modeId":"m"`, "session/set_config_option": `"configId":"c","type":"id","value":"v"`,
		"session/set_title": `"title":"t"`, "authenticate": `"methodId":"m"`, "auth/login": `"methodId":"m"`,
		"providers/set":     `"providerId":"p","apiType":"openai","baseUrl":"http://x","headers":{}`,
		"providers/disable": `"providerId":"p"`, "tool_call/cancel": `"toolCallId":"c"`, "terminal/cancel": `"terminalId":"t"`,
	}[method]
	if p != "" {
		p = "," + p
	}
	return `{"sessionId":"` + session + `"` + p + `}`
}

// TestGating: each hook advertises exactly what it is for and makes exactly its
// methods work; without it the capability is not there and the methods are not
// found. Every capability of both versions belongs to a hook.
func TestGating(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		all := map[string]bool{}
		for _, c := range hookCases {
			for _, path := range c.caps[v] {
				all[path] = true
			}
		}
		for _, c := range append(hookCases, hookCase{name: "none", set: func(*Agent) {}}) {
			t.Run(c.name, func(t *testing.T) {
				a := echoAgent()
				c.set(a)
				if a.Logout != nil { // is nothing without a way to log in
					hookByName("Login").set(a)
				}
				r := dialVersion(t, a, v)
				want := map[string]bool{}
				for _, path := range c.caps[v] {
					want[path] = true
				}
				for path := range all {
					if got := lookup(capabilities(r), path); got != want[path] {
						t.Errorf("capability %s is %v", path, got)
					}
				}
				for _, other := range hookCases {
					answered := other.name == c.name || other.always[v] || other.name == "Login" && a.Login != nil
					for _, m := range other.methods[v] {
						_, err := r.call(m, validParams(m, r.session()))
						if found := code(err) != jsonrpc.CodeMethodNotFound; found != answered {
							t.Errorf("%s: found is %v (%v)", m, found, err)
						}
						if we, ok := errors.AsType[*jsonrpc.Error](err); ok && !answered {
							if want := `{"method":"` + m + `"}`; string(we.Data) != want { // S20
								t.Errorf("%s: data %s", m, we.Data)
							}
						}
					}
				}
			})
		}
	})
}

func hookByName(name string) hookCase {
	for _, c := range hookCases {
		if c.name == name {
			return c
		}
	}
	panic("no hook " + name)
}

// TestEveryMethod: every method an agent of either version may be asked for has
// a hook in the table above, or is a part of the baseline.
func TestEveryMethod(t *testing.T) {
	known := [3]map[string]bool{1: {}, 2: {}}
	for v := 1; v <= 2; v++ {
		for _, m := range baseline[v] {
			known[v][m] = true
		}
		for _, c := range hookCases {
			for _, m := range c.methods[v] {
				known[v][m] = true
			}
		}
	}
	for _, m := range acpv1.Methods() {
		if m.Side == acpv1.SideAgent && !known[1][m.Name] {
			t.Errorf("v1 %s has no hook", m.Name)
		}
	}
	for _, m := range acpv2.Methods() {
		if m.Side == acpv2.SideAgent && !known[2][m.Name] {
			t.Errorf("v2 %s has no hook", m.Name)
		}
	}
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, echoAgent(), v)
		s := r.session()
		for _, m := range baseline[v] {
			switch m {
			case "initialize", "session/cancel", "mcp/message":
				continue // shown elsewhere, or notifications
			}
			if _, err := r.call(m, validParams(m, s)); code(err) == jsonrpc.CodeMethodNotFound {
				t.Errorf("%s: %v", m, err)
			}
		}
	})
}

// TestUnadvertised: what was not advertised is refused, naming the field, and
// paths have to be absolute.
func TestUnadvertised(t *testing.T) {
	cases := []struct {
		name   string
		v      int // 0: both
		method string
		params string
		path   string
	}{
		{"relative cwd", 0, "session/new", `{"cwd":"rel","mcpServers":[]}`, "params.cwd"},
		{"directories", 0, "session/new", `{"cwd":"/","mcpServers":[],"additionalDirectories":["/a"]}`, "params.additionalDirectories[0]"},
		{"http server", 0, "session/new", `{"cwd":"/","mcpServers":[{"type":"http","name":"h","url":"http://x","headers":[]}]}`, "params.mcpServers[0].type"},
		{"unknown server", 2, "session/new", `{"cwd":"/","mcpServers":[{"type":"_ws","name":"h"}]}`, "params.mcpServers[0].type"},
		{"system prompt", 0, "session/new", `{"cwd":"/","mcpServers":[],"systemPrompt":{"mode":"append","content":[{"type":"text","text":"x"}]}}`, "params.systemPrompt"},
		{"image", 0, "session/prompt", `{"sessionId":"S","prompt":[{"type":"image","data":"AA==","mimeType":"image/png"}]}`, "params.prompt[0].type"},
		{"resource", 0, "session/prompt", `{"sessionId":"S","prompt":[{"type":"text","text":"x"},{"type":"resource","resource":{"uri":"file:///x","text":"t"}}]}`, "params.prompt[1].type"},
		{"unknown content", 0, "session/prompt", `{"sessionId":"S","prompt":[{"type":"hologram"}]}`, "params.prompt[0].type"},
		{"unknown option", 0, "session/set_config_option", `{"sessionId":"S","configId":"nope","type":"id","value":"x"}`, "params.configId"},
		{"mode without modes", 1, "session/set_mode", `{"sessionId":"S","modeId":"x"}`, "params.modeId"},
		{"replay from elsewhere", 2, "session/resume", `{"sessionId":"S","cwd":"/","replayFrom":{"type":"_x"}}`, "params.replayFrom.type"},
		{"unknown filter", 2, "session/list", `{"archived":"sideways"}`, "params.archived"},
		{"unknown tool call", 2, "tool_call/cancel", `{"sessionId":"S","toolCallId":"x"}`, "params.toolCallId"},
	}
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, echoAgent(), v)
		s := r.session()
		for _, c := range cases {
			if c.v != 0 && c.v != v {
				continue
			}
			_, err := r.call(c.method, strings.ReplaceAll(c.params, `"S"`, `"`+s+`"`))
			we, _ := errors.AsType[*jsonrpc.Error](err)
			var data struct{ Path string }
			if we != nil {
				_ = json.Unmarshal(we.Data, &data)
			}
			if code(err) != jsonrpc.CodeInvalidParams || data.Path != c.path {
				t.Errorf("%s: %v with %q, want %q", c.name, err, data.Path, c.path)
			}
		}
		if _, err := r.call("session/prompt", promptParams("nope", "x")); code(err) != jsonrpc.CodeResourceNotFound {
			t.Errorf("unknown session: %v", err)
		}
	})
}

// TestClientGating: what the client did not advertise fails with
// errors.ErrUnsupported, or is done without it, before a byte is written.
func TestClientGating(t *testing.T) {
	versions(t, func(t *testing.T, v int) {
		r := dialVersion(t, &Agent{Prompt: func(ctx context.Context, t *Turn) (StopReason, error) {
			_, form := t.Elicit(FormRequest{Message: "?"})
			_, _, link := t.ElicitURL(LinkRequest{Message: "?", URL: "https://x"})
			_, mcp := t.Session().CallMCP(ctx, "s", "tools/list", nil, nil)
			status := t.Session().Conn().AuthStatusChanged(ctx, &AuthStatus{State: AuthStateUnknown})
			for _, err := range []error{form, link, mcp, status} {
				if !errors.Is(err, errors.ErrUnsupported) {
					return "", errors.Join(errors.New("not refused"), err)
				}
			}
			return StopEndTurn, nil
		}}, v)
		if stop, err := r.turn(r.session(), "go"); stop != "end_turn" || err != nil {
			t.Errorf("%q, %v", stop, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.asked)+len(r.notes) > 0 {
			t.Errorf("the client was asked %q and told %q", r.asked, r.notes)
		}
	})
}
