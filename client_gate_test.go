package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/registry"
)

// clientVerb is one verb of the client with what an agent has to advertise for
// it. "always" stands for verbs every agent of the version has, "never" for
// those none has.
type clientVerb struct {
	name   string
	call   func(ctx context.Context, c *ClientConn, s *ClientSession) error
	v1, v2 string // capabilities
	m1, m2 string // methods
}

func clientVerbs() []clientVerb {
	cfg := SessionConfig{Cwd: clientRoot}
	open := func(change func(*SessionConfig)) func(context.Context, *ClientConn, *ClientSession) error {
		return func(ctx context.Context, c *ClientConn, _ *ClientSession) error {
			cfg := cfg
			change(&cfg)
			_, err := c.NewSession(ctx, cfg)
			return err
		}
	}
	server := func(m MCPServer) func(*SessionConfig) {
		return func(cfg *SessionConfig) { cfg.MCPServers = []MCPServer{m} }
	}
	system := func(mode acpv2.SystemPromptMode) func(*SessionConfig) {
		return func(cfg *SessionConfig) {
			cfg.SystemPrompt = &SystemPrompt{Mode: mode, Content: []ContentBlock{Text("be brief")}}
		}
	}
	prompt := func(b ContentBlock) func(context.Context, *ClientConn, *ClientSession) error {
		return func(ctx context.Context, _ *ClientConn, s *ClientSession) error {
			_, err := s.Prompt(ctx, b).Wait()
			return err
		}
	}
	const always, never, new, send = "always", "never", "session/new", "session/prompt"
	sse := &UnknownMCPServer{Type: "sse", Raw: []byte(`{"type":"sse","name":"x","url":"http://x","headers":[]}`)}
	return []clientVerb{
		{"new", open(func(*SessionConfig) {}), always, always, new, new},
		{"resume", func(ctx context.Context, c *ClientConn, _ *ClientSession) error {
			_, err := c.Resume(ctx, "x", cfg)
			return err
		}, `"sessionCapabilities":{"resume":{}}`, always, "session/resume", "session/resume"},
		{"load", func(ctx context.Context, c *ClientConn, _ *ClientSession) error {
			_, err := c.Load(ctx, "x", cfg)
			return err
		}, `"loadSession":true`, always, "session/load", "session/resume"},
		{"fork", func(ctx context.Context, _ *ClientConn, s *ClientSession) error {
			_, err := s.Fork(ctx, cfg)
			return err
		}, `"sessionCapabilities":{"fork":{}}`, `"fork":{}`, "session/fork", "session/fork"},
		{"list", func(ctx context.Context, c *ClientConn, _ *ClientSession) error {
			for _, err := range c.ListSessions(ctx, ListOptions{}) {
				return err
			}
			return nil
		}, `"sessionCapabilities":{"list":{}}`, always, "session/list", "session/list"},
		{"list archived", func(ctx context.Context, c *ClientConn, _ *ClientSession) error {
			for _, err := range c.ListSessions(ctx, ListOptions{Archived: SessionArchiveFilterOnly}) {
				return err
			}
			return nil
		}, `"sessionCapabilities":{"list":{},"archive":{}}`, `"archive":{}`, "session/list", "session/list"},
		{"close", func(ctx context.Context, c *ClientConn, _ *ClientSession) error { return c.CloseSession(ctx, "x") },
			`"sessionCapabilities":{"close":{}}`, always, "session/close", "session/close"},
		{"delete", func(ctx context.Context, c *ClientConn, _ *ClientSession) error { return c.Delete(ctx, "x") },
			`"sessionCapabilities":{"delete":{}}`, `"delete":{}`, "session/delete", "session/delete"},
		{"archive", func(ctx context.Context, c *ClientConn, _ *ClientSession) error { return c.Archive(ctx, "x") },
			`"sessionCapabilities":{"archive":{},"list":{}}`, `"archive":{}`, "session/archive", "session/archive"},
		{"unarchive", func(ctx context.Context, c *ClientConn, _ *ClientSession) error { return c.Unarchive(ctx, "x") },
			`"sessionCapabilities":{"archive":{},"list":{}}`, `"archive":{}`, "session/unarchive", "session/unarchive"},
		{"status", func(ctx context.Context, c *ClientConn, _ *ClientSession) error {
			_, err := c.Status(ctx, "x")
			return err
		}, `"sessionCapabilities":{"status":{}}`, `"status":{}`, "session/status", "session/status"},
		{"title", func(ctx context.Context, _ *ClientConn, s *ClientSession) error {
			_, err := s.SetTitle(ctx, "x")
			return err
		}, `"sessionCapabilities":{"title":{}}`, `"title":{}`, "session/set_title", "session/set_title"},
		{"login", func(ctx context.Context, c *ClientConn, _ *ClientSession) error { return c.Login(ctx, "a") },
			always, always, "authenticate", "auth/login"},
		{"login in another way", func(ctx context.Context, c *ClientConn, _ *ClientSession) error { return c.Login(ctx, "x") },
			never, never, "", ""},
		{"logout", func(ctx context.Context, c *ClientConn, _ *ClientSession) error { return c.Logout(ctx) },
			`"auth":{"logout":{}}`, always, "logout", "auth/logout"},
		{"auth status", func(ctx context.Context, c *ClientConn, _ *ClientSession) error {
			_, err := c.AuthStatus(ctx)
			return err
		}, `"auth":{"status":{}}`, `},"auth":{"status":{}`, "auth/status", "auth/status"},
		{"providers", func(ctx context.Context, c *ClientConn, _ *ClientSession) error {
			_, err := c.Providers(ctx)
			return err
		}, `"providers":{}`, `},"providers":{`, "providers/list", "providers/list"},
		{"set provider", func(ctx context.Context, c *ClientConn, _ *ClientSession) error {
			return c.SetProvider(ctx, &ProviderSetting{ProviderID: "p", APIType: "openai", BaseURL: "http://x"})
		}, `"providers":{}`, `},"providers":{`, "providers/set", "providers/set"},
		{"disable provider", func(ctx context.Context, c *ClientConn, _ *ClientSession) error { return c.DisableProvider(ctx, "p") },
			`"providers":{}`, `},"providers":{`, "providers/disable", "providers/disable"},
		{"directories", open(func(cfg *SessionConfig) { cfg.AdditionalDirectories = []string{"/x"} }),
			`"sessionCapabilities":{"additionalDirectories":{}}`, `"additionalDirectories":{}`, new, new},
		{"append to the system prompt", open(system(acpv2.SystemPromptModeAppend)),
			`"sessionCapabilities":{"systemPrompt":{}}`, `"systemPrompt":{}`, new, new},
		{"override the system prompt", open(system(acpv2.SystemPromptModeOverride)),
			`"sessionCapabilities":{"systemPrompt":{"mode":{"override":{}}}}`, `"systemPrompt":{"mode":{"override":{}}}`, new, new},
		{"another system prompt", open(system("_x")), never, never, "", ""},
		{"stdio server", open(server(&MCPServerStdio{Name: "x", Command: "/x"})), always, `"mcp":{"stdio":{}}`, new, new},
		{"http server", open(server(&MCPServerHTTP{Name: "x", URL: "http://x"})), `"mcpCapabilities":{"http":true}`, `"mcp":{"http":{}}`, new, new},
		{"sse server", open(server(sse)), `"mcpCapabilities":{"sse":true}`, never, new, ""},
		{"our server", open(server(&MCPServerACP{Name: "x", ServerID: "x"})), `"mcpCapabilities":{"acp":true}`, `"mcp":{"acp":{}}`, new, new},
		{"another server", open(server(&UnknownMCPServer{Type: "_x", Raw: []byte(`{"type":"_x"}`)})), never, never, "", ""},
		{"text", prompt(Text("x")), always, always, send, send},
		{"link", prompt(&ResourceLink{Name: "x", URI: "file:///x"}), always, always, send, send},
		{"image", prompt(&ImageContent{}), `"promptCapabilities":{"image":true}`, `"prompt":{"image":{}}`, send, send},
		{"audio", prompt(&AudioContent{}), `"promptCapabilities":{"audio":true}`, `"prompt":{"audio":{}}`, send, send},
		{"resource", prompt(&EmbeddedResource{Resource: &TextResourceContents{URI: "file:///x"}}),
			`"promptCapabilities":{"embeddedContext":true}`, `"prompt":{"embeddedContext":{}}`, send, send},
		{"vendor's block", prompt(&UnknownContentBlock{Type: "_x", Raw: []byte(`{"type":"_x"}`)}), always, always, send, send},
		{"future block", prompt(&UnknownContentBlock{Type: "x", Raw: []byte(`{"type":"x"}`)}), never, never, "", ""},
	}
}

// TestClientGate holds that every verb works exactly when the agent advertises
// what it needs, and that otherwise nothing is sent.
func TestClientGate(t *testing.T) {
	c := Client{MCP: func(context.Context, *MCPCall) (json.RawMessage, error) { return nil, nil }}
	for _, verb := range clientVerbs() {
		for version := 1; version <= 2; version++ {
			needs, method := verb.v1, verb.m1
			if version == 2 {
				needs, method = verb.v2, verb.m2
			}
			for _, advertised := range []bool{false, true} {
				works := needs == "always" || needs != "never" && advertised
				caps := ""
				switch {
				case needs == "never" && advertised:
					caps = strings.TrimSuffix(strings.TrimPrefix(clientAll(version), "{"), "}") // everything else
					if version == 2 {
						caps = strings.TrimPrefix(strings.TrimSuffix(clientAllV2, `},"auth":{"status":{}},"providers":{}}`), `{"session":{`)
					}
				case advertised && needs != "always":
					caps = needs
				}
				if version == 1 {
					caps = "{" + caps + "}"
				} else {
					caps = `{"session":{` + caps + `}}`
				}
				t.Run(fmt.Sprintf("%s/v%d/%v", verb.name, version, advertised), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						conn, a := clientLink(t, c, version, caps)
						s := a.session(conn)
						done := laterErr(func() error { return verb.call(t.Context(), conn, s) })
						if works {
							a.refuse(a.next(method), -32603, "null")
						}
						err := done()
						if err == nil || errors.Is(err, errors.ErrUnsupported) == works {
							t.Errorf("with %s: %v", caps, err)
						}
						a.silent()
					})
				})
			}
		}
	}
}

// TestClientRefuses holds what no agent would take.
func TestClientRefuses(t *testing.T) {
	both(t, Client{}, func(t *testing.T, s *ClientSession, a *clientScript) {
		http := &MCPServerHTTP{Name: "x", URL: "http://x"}
		for name, cfg := range map[string]SessionConfig{
			"relative directory":   {Cwd: "x"},
			"relative directories": {Cwd: clientRoot, AdditionalDirectories: []string{"x"}},
			"two servers":          {Cwd: clientRoot, MCPServers: []MCPServer{http, http}},
			"nil server":           {Cwd: clientRoot, MCPServers: []MCPServer{nil}},
			"empty system prompt":  {Cwd: clientRoot, SystemPrompt: &SystemPrompt{Mode: acpv2.SystemPromptModeAppend}},
			"pictures as a system prompt": {Cwd: clientRoot, SystemPrompt: &SystemPrompt{Mode: acpv2.SystemPromptModeAppend,
				Content: []ContentBlock{&ImageContent{}}}},
		} {
			if _, err := s.conn.NewSession(t.Context(), cfg); err == nil {
				t.Error(name)
			}
		}
		if err := s.conn.Login(t.Context(), "t"); err == nil || errors.Is(err, errors.ErrUnsupported) {
			t.Error("a login for the user:", err)
		}
		a.silent()
	})
	synctest.Test(t, func(t *testing.T) {
		conn, a := clientLink(t, Client{}, 2, "{}") // no sessions at all
		_, errNew := conn.NewSession(t.Context(), SessionConfig{Cwd: clientRoot})
		_, _, errRestore := conn.Restore(t.Context(), "x", SessionConfig{Cwd: clientRoot})
		for _, err := range []error{errNew, errRestore, conn.CloseSession(t.Context(), "x"), conn.Delete(t.Context(), "x")} {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Error(err)
			}
		}
		for _, err := range conn.ListSessions(t.Context(), ListOptions{}) {
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Error(err)
			}
		}
		a.silent()
	})
}

// TestClientLane holds that every message with a session's id is in the lane of
// that session, and MCP messages in the lane of their request.
func TestClientLane(t *testing.T) {
	const id = "the id"
	found := 0
	var types []reflect.Value
	for _, version := range []string{"v1", "v2"} {
		for _, name := range registry.Names(version) {
			v, _ := registry.New(version, name)
			types = append(types, reflect.ValueOf(v))
		}
	}
	for _, v := range types {
		name := v.Elem().Type().Name()
		if !strings.HasSuffix(name, "Request") && !strings.HasSuffix(name, "Notification") || v.Elem().Kind() != reflect.Struct {
			continue
		}
		want := ""
		for _, field := range []string{"SessionID", "RequestID"} {
			f := v.Elem().FieldByName(field)
			if !f.IsValid() || f.Kind() != reflect.String {
				continue
			}
			f.SetString(id)
			want = id
			if field == "RequestID" {
				want = laneMCP + id
			}
			found++
		}
		if got := laneOf("", v.Interface()); got != want {
			t.Errorf("%v: lane %q, want %q", v.Type(), got, want)
		}
	}
	if found != 43 {
		t.Errorf("%d messages have a lane of their own", found)
	}
	v1 := &acpv1.ElicitationSessionScope{SessionID: id}
	v2 := &acpv2.ElicitationSessionScope{SessionID: id}
	for _, m := range []any{
		&acpv1.CreateElicitationRequest{Mode: &acpv1.ElicitationFormMode{Scope: v1}}, &acpv1.CreateElicitationRequest{Mode: &acpv1.ElicitationURLMode{Scope: v1}},
		&acpv2.CreateElicitationRequest{Mode: &acpv2.ElicitationFormMode{Scope: v2}}, &acpv2.CreateElicitationRequest{Mode: &acpv2.ElicitationURLMode{Scope: v2}},
	} {
		if got := laneOf("", m); got != id {
			t.Errorf("%T: lane %q", m, got)
		}
	}
	if laneOf("", &acpv1.CreateElicitationRequest{Mode: &acpv1.ElicitationFormMode{Scope: &acpv1.ElicitationRequestScope{}}}) != "" || laneOf("", nil) != "" {
		t.Error("a lane for what belongs to no session")
	}
}
