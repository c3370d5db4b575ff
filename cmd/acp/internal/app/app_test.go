package app

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// testApp is an App whose home and project are empty directories. What it writes to standard error
// is in errs.
func testApp(t *testing.T) (a *App, errs *bytes.Buffer) {
	t.Helper()
	home := t.TempDir()
	errs = new(bytes.Buffer)
	a = &App{In: strings.NewReader(""), Out: new(bytes.Buffer), Err: errs, Cwd: t.TempDir(), Environ: []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_DATA_HOME=" + home, "XDG_STATE_HOME=" + home, "XDG_CACHE_HOME=" + home,
		"TOKEN=first", "TOKEN=last",
	}}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, errs
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// again is the same App before its settings were read.
func again(t *testing.T, a *App) *App {
	t.Helper()
	b := &App{In: a.In, Out: a.Out, Err: a.Err, Cwd: a.Cwd, Environ: a.Environ, Flags: a.Flags}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func names(t *testing.T, a *App) []string {
	t.Helper()
	servers, err := a.MCP()
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for _, s := range servers {
		all = append(all, s.Name)
	}
	return all
}

// TestMCPTrust: a project's servers are there once the user trusts the file, as it was then.
func TestMCPTrust(t *testing.T) {
	a, _ := testApp(t)
	file := filepath.Join(a.Cwd, ".mcp.json")
	writeFile(t, file, `{"mcpServers":{"theirs":{"command":"x","env":{"KEY":"${TOKEN}"}}}}`)
	a.MCPFlags = []string{"mine=y"}
	if diff := cmp.Diff([]string{"mine"}, names(t, a)); diff != "" {
		t.Error(diff)
	}
	left := a.Untrusted()
	if len(left) != 1 || !strings.Contains(left[0], file+" is not trusted") || !strings.Contains(left[0], "acp config trust "+a.Cwd) {
		t.Errorf("untrusted %q", left)
	}

	cfg, err := a.Config()
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Trust(file); err != nil {
		t.Fatal(err)
	}
	b := again(t, a)
	servers, err := b.MCP()
	if err != nil || len(servers) != 1 || servers[0].Name != "theirs" || servers[0].Env["KEY"] != "last" {
		t.Errorf("%+v, %v", servers, err)
	}
	if left := b.Untrusted(); len(left) != 0 {
		t.Errorf("untrusted %q", left)
	}

	writeFile(t, file, `{"mcpServers":{"other":{"command":"x"}}}`)
	c := again(t, a)
	if got := names(t, c); len(got) != 0 || len(c.Untrusted()) != 1 {
		t.Errorf("after a change: %q, %q", got, c.Untrusted())
	}
}

// TestMCPFile: what is wrong with a file that is trusted is wrong usage; one that is not trusted is
// not even read as what it should be.
func TestMCPFile(t *testing.T) {
	a, _ := testApp(t)
	file := filepath.Join(a.Cwd, ".mcp.json")
	writeFile(t, file, `{"mcpServers":`)
	if got := names(t, a); len(got) != 0 {
		t.Errorf("%q", got)
	}
	cfg, err := a.Config()
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Trust(file); err != nil {
		t.Fatal(err)
	}
	if _, err := again(t, a).MCP(); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
	writeFile(t, file, strings.Repeat(" ", maxMCPFile+1))
	if _, err := again(t, a).MCP(); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("%v", err)
	}
	if left := again(t, a).Untrusted(); len(left) != 0 {
		t.Errorf("%q", left)
	}
}

// TestProject: a project's settings about permissions have no force before they are trusted, and all
// that is left out is told.
func TestProject(t *testing.T) {
	a, _ := testApp(t)
	project := filepath.Join(a.Cwd, ".acp.toml")
	writeFile(t, project, "[permissions]\ndefault = \"allow\"\n")
	writeFile(t, filepath.Join(a.Cwd, ".mcp.json"), `{}`)
	left := a.Untrusted()
	if len(left) != 2 || !strings.Contains(left[0], project) || !strings.Contains(left[1], ".mcp.json") {
		t.Errorf("%q", left)
	}
	cfg, err := a.Config()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Permissions.Default == "allow" {
		t.Error("it has force")
	}
	if err := cfg.Trust(project); err != nil {
		t.Fatal(err)
	}
	b := again(t, a)
	if cfg, err := b.Config(); err != nil || cfg.Permissions.Default != "allow" || len(b.Untrusted()) != 1 {
		t.Errorf("%v, %q", err, b.Untrusted())
	}
}

// TestBrokenSettings: what is wrong is wrong usage everywhere, and nothing else.
func TestBrokenSettings(t *testing.T) {
	a, errs := testApp(t)
	a.ConfigFile = filepath.Join(a.Cwd, "c.toml")
	writeFile(t, a.ConfigFile, "agent = [")
	for name, f := range map[string]func() error{
		"Config":  func() error { _, err := a.Config(); return err },
		"Agent":   func() error { _, err := a.Agent(""); return err },
		"Known":   func() error { _, _, err := a.KnownAgent("x"); return err },
		"Command": func() error { _, err := a.CommandAgent([]string{"x"}); return err },
		"Store":   func() error { _, err := a.Store(t.Context()); return err },
		"Path":    func() error { _, err := a.StorePath(); return err },
		"Policy":  func() error { _, err := a.Policy(); return err },
		"MCP":     func() error { _, err := a.MCP(); return err },
		"BuiltIn": func() error { _, err := a.BuiltIn(t.Context()); return err },
	} {
		if err := f(); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "c.toml:1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if a.Untrusted() != nil || errs.Len() > 0 {
		t.Errorf("%q, %q", a.Untrusted(), errs)
	}
}

// TestPolicyWarns: patterns that can never match are told once.
func TestPolicyWarns(t *testing.T) {
	a, errs := testApp(t)
	a.Flags = map[string]any{"permissions.allow": []string{"command:python -c *", "command:ls *"}, "permissions.deny": []string{"path:/etc/"}}
	for range 2 {
		if _, err := a.Policy(); err != nil {
			t.Fatal(err)
		}
	}
	if got := errs.String(); strings.Count(got, "\n") != 2 || strings.Count(got, "never matches") != 2 {
		t.Errorf("%q", got)
	}
}

// TestStoreGone: conversations go on without a store that cannot be opened, and that is told.
func TestStoreGone(t *testing.T) {
	a, errs := testApp(t)
	writeFile(t, filepath.Join(a.Cwd, "file"), "")
	a.Flags = map[string]any{"store.path": filepath.Join(a.Cwd, "file", "s.db")}
	for range 2 {
		if s, err := a.Store(t.Context()); s != nil || err != nil {
			t.Fatal(s, err)
		}
	}
	if got := errs.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "acp: conversations are not kept: ") {
		t.Errorf("%q", got)
	}
}

// TestStoreCancelled: a store that was given up is opened when it is asked for again.
func TestStoreCancelled(t *testing.T) {
	a, _ := testApp(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Store(ctx); err == nil {
		t.Skip("it was opened in no time")
	}
	if s, err := a.Store(t.Context()); s == nil || err != nil {
		t.Error(s, err)
	}
}

// TestOpen: an agent is not started before all settings are known to be good.
func TestOpen(t *testing.T) {
	started := false
	agent := &acp.Agent{
		NewSession: func(context.Context, *acp.AgentSession) error { started = true; return nil },
		Prompt:     func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
	}
	for name, change := range map[string]func(*App){
		"rule": func(a *App) { a.Flags = map[string]any{"permissions.allow": []string{"nonsense:x"}} },
		"mcp":  func(a *App) { a.MCPFlags = []string{"nonsense"} },
	} {
		a, _ := testApp(t)
		change(a)
		a.UseBuiltIn(agent)
		found, err := a.Agent("builtin")
		if err == nil {
			var h *backend.Host
			if h, err = a.Open(t.Context(), found, backend.Frontend{}); h != nil {
				_ = h.Close()
			}
		}
		if exitcode.Of(err) != exitcode.Usage || started {
			t.Errorf("%s: %v", name, err)
		}
	}

	a, _ := testApp(t)
	a.UseBuiltIn(agent)
	found, err := a.Agent("")
	if err != nil {
		t.Fatal(err)
	}
	h, err := a.Open(t.Context(), found, backend.Frontend{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.NewSession(t.Context()); err != nil || !started {
		t.Error(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if _, err := a.Agent("nobody"); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("%v", err)
	}
	if _, ok, err := a.KnownAgent("no-such --agent"); ok || err != nil {
		t.Error(ok, err)
	}
}

// TestUsage keeps the statuses that errors have.
func TestUsage(t *testing.T) {
	if got := exitcode.Of(usage(errors.New("x"))); got != exitcode.Usage {
		t.Error(got)
	}
	if got := exitcode.Of(usage(exitcode.Errorf(exitcode.Auth, "x"))); got != exitcode.Auth {
		t.Error(got)
	}
	if usage(nil) != nil {
		t.Error("an error out of nothing")
	}
}
