package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/jsonrpc"
)

// rights is a policy of a test.
type rights struct {
	limits  Limits
	prompts int // that may be sent
	option  acp.PermissionOptionID

	mu      sync.Mutex
	refused []string
}

func refusal(reason string) error { return &jsonrpc.Failure{Message: "no", Reason: reason} }

func (r *rights) Agent(name string) error {
	if name == "other" {
		return refusal("policy.agent")
	}
	return nil
}

func (r *rights) Directory(dir string) error {
	if !strings.HasPrefix(dir, "/project") {
		return refusal("policy.directory")
	}
	return nil
}

func (r *rights) MCPServer(server acp.MCPServer) error {
	if s, ok := server.(*acp.MCPServerHTTP); ok && s.URL == "https://bad.example" {
		return refusal("policy.mcp")
	}
	return nil
}

func (r *rights) MayUse(agent string) bool { return r.Agent(agent) == nil }

func (r *rights) MayWorkIn(dir string) bool { return r.Directory(dir) == nil }

func (r *rights) Prompt() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.prompts == 0 {
		return refusal("quota.prompts")
	}
	r.prompts--
	return nil
}

func (r *rights) Permission(context.Context, string, string, *acp.PermissionRequest) (acp.PermissionOptionID, string, bool) {
	return r.option, "policy: test", r.option != ""
}

func (r *rights) Limits() Limits { return r.limits }

func (r *rights) Refused(reason, _ string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = append(r.refused, reason)
}

// reason returns the reason that a client gets with an error, "" without one.
func reason(err error) string {
	if err == nil {
		return ""
	}
	if f, ok := errors.AsType[*jsonrpc.Failure](err); ok {
		return f.Reason
	}
	return err.Error()
}

// TestPolicy: a client is refused what its user may not have, and each quota by its name.
func TestPolicy(t *testing.T) {
	mine := &rights{prompts: 4, limits: Limits{Agents: 1, Sessions: 2}}
	r := newRig(t, talking(nil))
	r.g.cfg.Policy = func(string, []string) Policy { return mine }
	c := r.connect(2)
	begin := func(cfg acp.SessionConfig) (*acp.ClientSession, string) {
		t.Helper()
		s, err := c.conn.NewSession(t.Context(), cfg)
		return s, reason(err)
	}
	for _, tt := range []struct {
		cfg  acp.SessionConfig
		want string
	}{
		{acp.SessionConfig{Cwd: "/etc"}, "policy.directory"},
		{acp.SessionConfig{Cwd: "/project", AdditionalDirectories: []string{"/project/a", "/etc"}}, "policy.directory"},
		{acp.SessionConfig{Cwd: "/project", Meta: encode(map[string]any{metaKey: map[string]any{"agent": "other"}})}, "policy.agent"},
		{acp.SessionConfig{Cwd: "/project", MCPServers: []acp.MCPServer{&acp.MCPServerHTTP{Name: "x", URL: "https://bad.example"}}}, "policy.mcp"},
	} {
		if _, got := begin(tt.cfg); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.cfg, got, tt.want)
		}
	}
	if u, err := r.log.Usage(t.Context(), "local"); err != nil || u.Sessions > 0 {
		t.Errorf("what was refused is kept: %v, %v", u, err)
	}
	s, got := begin(acp.SessionConfig{Cwd: "/project"})
	if got != "" {
		t.Fatal(got)
	}
	if _, got := begin(acp.SessionConfig{Cwd: "/project"}); got != "" {
		t.Errorf("an agent while the other one is idle: %q", got)
	}
	if _, got := begin(acp.SessionConfig{Cwd: "/project"}); got != "quota.sessions" {
		t.Errorf("a third session: %q", got)
	}
	mine.mu.Lock()
	mine.limits = Limits{}
	mine.mu.Unlock()
	for range 4 {
		say(t, s, "x")
	}
	if _, err := s.Prompt(t.Context(), acp.Text("x")).Wait(); reason(err) != "quota.prompts" {
		t.Errorf("a fifth prompt: %v", err)
	}
	mine.mu.Lock()
	mine.prompts, mine.limits.Bytes = 10, 1
	mine.mu.Unlock()
	if _, err := s.Prompt(t.Context(), acp.Text("x")).Wait(); reason(err) != "quota.log" {
		t.Errorf("a prompt where the log is full: %v", err)
	}
	mine.mu.Lock()
	defer mine.mu.Unlock()
	if want := []string{"quota.sessions", "quota.log"}; !cmp.Equal(mine.refused, want) {
		t.Errorf("reported: %q", mine.refused)
	}
}

// TestRules: a question that the rules answer is put to nobody, and the log has who has answered.
func TestRules(t *testing.T) {
	versions(t, func(t *testing.T, version, agent int) {
		r := newRig(t, talking(nil))
		r.max = agent
		r.g.cfg.Policy = func(string, []string) Policy { return &rights{prompts: 9, option: "reject_once"} }
		c := r.connect(version, func(cfg *acp.Client) {
			cfg.RequestPermission = func(context.Context, *acp.PermissionRequest) (acp.PermissionDecision, error) {
				t.Error("somebody was asked")
				return acp.CancelPermission(), nil
			}
		})
		s := c.new(t)
		say(t, s, "ask")
		if got := c.seen.take(); !slices.ContainsFunc(got, func(text string) bool { return strings.Contains(text, "false") }) {
			t.Errorf("%q", got)
		}
	})
}

// TestPace: an agent may send as many updates as its user's quota says over a longer time, and more at once.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		begin := time.Now()
		for range 10 * paceBurst {
			p.wait(t.Context(), 10)
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("the first ones took %v", d)
		}
		for range 100 {
			p.wait(t.Context(), 10)
		}
		if d := time.Since(begin).Round(time.Second); d != 10*time.Second {
			t.Errorf("100 more took %v", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.wait(ctx, 10)
		var free pace
		for range 1000 {
			free.wait(t.Context(), 0)
		}
	})
}

// TestPaceShared: subagents that speak at once have one quota.
func TestPaceShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		begin := time.Now()
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 100 {
					p.wait(t.Context(), 10)
				}
			})
		}
		all.Wait()
		if d := time.Since(begin).Round(time.Second); d != 10*time.Second {
			t.Errorf("%d and 100 more took %v", 10*paceBurst, d)
		}
	})
}
