package policy

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/jsonrpc"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func mustNew(t *testing.T, cfg config.Serve, o Options) *Set {
	t.Helper()
	s, err := New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reasonOf returns the reason of a refusal, "" for nil.
func reasonOf(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	f, ok := errors.AsType[*jsonrpc.Failure](err)
	if !ok || f.Reason == "" || f.Message == "" {
		t.Fatalf("%v is no failure with a reason", err)
	}
	return f.Reason
}

func TestRights(t *testing.T) {
	s := mustNew(t, config.Serve{
		Users: map[string]config.Rights{
			"jo": {Agents: []string{"one"}, LiveAgents: 1},
			"*":  {Agents: []string{"none"}},
		},
		Groups: map[string]config.Rights{
			"a": {Agents: []string{"two"}, Directories: []string{"/a"}, Default: "allow", LiveAgents: 2, Env: map[string]string{"X": "a"}},
			"b": {Agents: []string{"three"}, Directories: []string{"/b"}, Default: "deny", Deny: []string{"kind:delete"}, Env: map[string]string{"X": "b"}},
		},
	}, Options{Many: true})
	for _, tt := range []struct {
		name   string
		groups []string
		agent  string
		want   string
	}{
		{"jo", []string{"a"}, "one", ""},
		{"jo", []string{"a"}, "two", "policy.agent"}, // own rights count alone
		{"al", []string{"b", "a"}, "two", ""},
		{"al", []string{"b", "a"}, "three", ""},
		{"al", []string{"b", "a"}, "one", "policy.agent"},
		{"al", nil, "one", "policy.agent"},
		{"al", []string{"unknown"}, "none", ""}, // it is no name of an agent
	} {
		if got := reasonOf(t, s.User(tt.name, tt.groups).Agent(tt.agent)); got != tt.want && tt.agent != nothing {
			t.Errorf("%s of %v, agent %s: %q, want %q", tt.name, tt.groups, tt.agent, got, tt.want)
		}
	}
	both := s.User("al", []string{"b", "a"})
	if diff := cmp.Diff(Limits{Agents: LiveAgents, Sessions: Sessions, Bytes: LogMiB << 20, Events: EventsPerSecond}, both.Limits()); diff != "" {
		t.Error(diff)
	}
	if both.rights.Default != "deny" || both.Env()["X"] != "b" {
		t.Errorf("combined: %+v", both.rights)
	}
	if got := s.User("jo", nil).Limits().Agents; got != 1 {
		t.Errorf("%d agents", got)
	}
	single := mustNew(t, config.Serve{}, Options{}).User("me", nil)
	if diff := cmp.Diff(Limits{}, single.Limits()); diff != "" {
		t.Errorf("a single user has no quotas that are not set: %s", diff)
	}
	if single.Agent("any") != nil || single.Directory("/") != nil || single.Prompt() != nil {
		t.Error("a single user may do everything")
	}
}

func TestMistakes(t *testing.T) {
	for _, r := range []config.Rights{
		{Directories: []string{"relative"}}, {LiveAgents: -1}, {Allow: []string{"nonsense:"}},
	} {
		if _, err := New(config.Serve{Users: map[string]config.Rights{"jo": r}}, Options{}); err == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"mine/sub", "other", "state/gateway"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"mine/out": "other", "mine/in": "mine/sub", "mine/nowhere": "other/new"} {
		if err := os.Symlink(filepath.Join(dir, to), filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	cfg := config.Serve{Users: map[string]config.Rights{
		"jo":  {Directories: []string{filepath.Join(dir, "mine")}},
		"all": {Directories: []string{dir}},
		"no":  {Directories: []string{"none"}},
	}}
	s := mustNew(t, cfg, Options{Many: true, Private: []string{filepath.Join(dir, "state")}})
	for _, tt := range []struct {
		user, dir string
		ok        bool
	}{
		{"jo", "mine", true}, {"jo", "mine/sub", true}, {"jo", "mine/new", true}, {"jo", "mine/in", true},
		{"jo", "mine/out", false}, {"jo", "mine/out/x", false}, {"jo", "mine/nowhere", false}, {"jo", "mine/nowhere/x", false},
		{"jo", "other", false}, {"jo", "mine/../other", false}, {"jo", "mineral", false}, {"jo", "", false}, {"jo", "..", false},
		{"all", "other", true}, {"all", "state", false}, {"all", "state/gateway", false}, {"all", "", false}, // the state is in it
		{"no", "mine", false}, {"nobody", "mine", false},
	} {
		err := s.User(tt.user, nil).Directory(dir + "/" + tt.dir)
		if s.User(tt.user, nil).MayWorkIn(dir+"/"+tt.dir) != (err == nil) {
			t.Errorf("%s, %s: MayWorkIn says another thing than %v", tt.user, tt.dir, err)
		}
		if (err == nil) != tt.ok {
			t.Errorf("%s in %q: %v", tt.user, tt.dir, err)
		}
	}
	if reasonOf(t, s.User("jo", nil).Directory("mine")) != "policy.directory" {
		t.Error("a relative directory is permitted")
	}
	for _, d := range []string{"state", "state/gateway", "", "other"} {
		if err := s.User("jo", nil).Directory(filepath.Join(dir, d)); err == nil || strings.Contains(err.Error(), "server") {
			t.Errorf("%s: the error tells where the files of the server are, or there is none: %v", d, err)
		}
	}
}

func TestMCPServer(t *testing.T) {
	s := mustNew(t, config.Serve{Users: map[string]config.Rights{
		"jo": {MCP: []string{"/usr/bin/tool", "https://mcp.example", "https://other.example/a/"}},
		"no": {MCP: []string{"none"}},
	}}, Options{})
	for _, tt := range []struct {
		server acp.MCPServer
		ok     bool
	}{
		{&acp.MCPServerStdio{Name: "a", Command: "/usr/bin/tool"}, true},
		{&acp.MCPServerStdio{Name: "/usr/bin/tool", Command: "/bin/sh"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://mcp.example/x"}, true},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://mcp.example"}, true},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://mcp.example.attacker"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://mcp.example:8443/"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://mcp.example@attacker"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/b"}, true},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/ab"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "HTTPS://MCP.example:443/x?y=../z"}, true},
		{&acp.MCPServerHTTP{Name: "a", URL: "http://mcp.example/"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://jo:secret@mcp.example/"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://@mcp.example/"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: `https://mcp.example\@attacker/`}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https:/mcp.example/"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https:mcp.example"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "//mcp.example/"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: ""}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/"}, true},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/b..c/.d?e=/../f"}, true},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/A/b"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/../admin"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/.."}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/./b"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/%2e%2E/admin"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/.%2e/admin"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/..%2fadmin"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/..%5cadmin"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: `https://other.example/a/..\admin`}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/%252e%252e/admin"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/%25252e%25252e/admin"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/..;x=1/admin"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/%00"}, false},
		{&acp.MCPServerHTTP{Name: "a", URL: "https://other.example/a/%zz"}, false},
		{&acp.MCPServerStdio{Name: "a", Command: "https://mcp.example/bin/sh"}, false},
	} {
		if err := s.User("jo", nil).MCPServer(tt.server); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.server, err)
		}
		if err := s.User("no", nil).MCPServer(tt.server); err == nil {
			t.Errorf("%+v although none is permitted", tt.server)
		}
		if err := s.User("any", nil).MCPServer(tt.server); err != nil {
			t.Error(err)
		}
	}
}

// TestMCPEntries: entries with a port or a query, and those that are permitted as they are written only.
func TestMCPEntries(t *testing.T) {
	s := mustNew(t, config.Serve{Users: map[string]config.Rights{
		"jo": {MCP: []string{"https://port.example:8443/a", "https://query.example/a?key=1", "https://dots.example/a/../b", "https:", "https://"}},
	}}, Options{})
	for url, ok := range map[string]bool{
		"https://port.example:8443/a/b": true, "https://port.example/a/b": false, "https://port.example:8443/ab": false,
		"https://query.example/a?key=1": true, "https://query.example/a?key=1&admin=1": false, "https://query.example/a": false,
		"https://dots.example/a/../b": true, "https://dots.example/b": false, "https://dots.example/a/../b/c": false,
		"https://any.example/": false,
	} {
		if err := s.User("jo", nil).MCPServer(&acp.MCPServerHTTP{Name: "a", URL: url}); (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		s := mustNew(t, config.Serve{Users: map[string]config.Rights{"jo": {Prompts: 6}}}, Options{
			Refused: func(user, reason, _ string) { reports = append(reports, user+" "+reason) },
		})
		p := s.User("jo", nil)
		for range 6 {
			if err := p.Prompt(); err != nil {
				t.Fatal(err)
			}
		}
		err := s.User("jo", nil).Prompt() // the rate is the user's, not the value's
		f, ok := errors.AsType[*jsonrpc.Failure](err)
		if !ok || f.Reason != "quota.prompts" || f.RetryAfter <= 0 || f.RetryAfter > 10*time.Second {
			t.Fatalf("%+v", err)
		}
		_ = p.Prompt()
		time.Sleep(f.RetryAfter)
		if err := p.Prompt(); err != nil {
			t.Error(err)
		}
		if p.Prompt() == nil {
			t.Error("more than the rate")
		}
		if diff := cmp.Diff([]string{"jo quota.prompts", "jo quota.prompts"}, reports); diff != "" {
			t.Errorf("reported: %s", diff)
		}
		if err := s.User("al", nil).Prompt(); err != nil {
			t.Error("the rate of another user:", err)
		}
	})
}

// TestManyUsers: what is remembered of users is bounded.
func TestManyUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustNew(t, config.Serve{Users: map[string]config.Rights{"*": {Prompts: 1}}}, Options{})
		for i := range maxMeters + 10 {
			time.Sleep(time.Millisecond)
			_ = s.User(string(rune('A'+i%26))+string(rune(0x4e00+i)), nil).Prompt()
		}
		if len(s.users) != maxMeters {
			t.Errorf("%d users are remembered", len(s.users))
		}
	})
}

func TestPermission(t *testing.T) {
	s := mustNew(t, config.Serve{Users: map[string]config.Rights{
		"jo":  {Allow: []string{"kind:read path:src/**"}, Deny: []string{"kind:delete", "command:rm *"}},
		"all": {Default: "allow"},
		"no":  {Default: "deny"},
	}}, Options{})
	options := []acp.PermissionOption{
		{OptionID: "yes", Name: "Yes", Kind: acpv2.PermissionOptionKindAllowOnce}, {OptionID: "no", Name: "No", Kind: acpv2.PermissionOptionKindRejectOnce},
	}
	request := func(kind acp.ToolKind, path string) *acp.PermissionRequest {
		call := acp.ToolCallUpdate{ToolCallID: "c", Kind: acp.Set(kind), Locations: acp.Set([]acp.ToolCallLocation{{Path: path}})}
		return &acp.PermissionRequest{Title: "x", Options: options, Subject: &acp.ToolCallPermissionSubject{ToolCall: call}}
	}
	for _, tt := range []struct {
		user    string
		kind    acp.ToolKind
		path    string
		option  acp.PermissionOptionID
		decided bool
	}{
		{"jo", acp.ToolKindRead, "/w/src/a", "yes", true},
		{"jo", acp.ToolKindRead, "/etc/passwd", "", false},
		{"jo", acp.ToolKindDelete, "/w/src/a", "no", true},
		{"jo", acp.ToolKindEdit, "/w/src/a", "", false},
		{"all", acp.ToolKindEdit, "/w/src/a", "yes", true},
		{"no", acp.ToolKindRead, "/w/src/a", "no", true},
		{"other", acp.ToolKindRead, "/w/src/a", "", false},
	} {
		option, by, decided := s.User(tt.user, nil).Permission(context.Background(), "s", "/w", request(tt.kind, tt.path))
		if option != tt.option || decided != tt.decided || decided == (by == "") {
			t.Errorf("%s: %s of %s: %q by %q, %t", tt.user, tt.kind, tt.path, option, by, decided)
		}
	}
	// Nothing is allowed in a way that the agent does not offer.
	req := request(acp.ToolKindRead, "/w/src/a")
	req.Options = options[1:]
	if _, _, decided := s.User("all", nil).Permission(context.Background(), "s", "/w", req); decided {
		t.Error("decided without an option that allows once")
	}
}
