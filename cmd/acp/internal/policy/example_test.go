package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/config"
)

// TestExample: the settings in the documentation can be read, and mean what it says.
func TestExample(t *testing.T) {
	doc, err := os.ReadFile("../../../../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, teams, ok := strings.Cut(string(doc), "## Teams\n")
	if !ok {
		t.Fatal("there is no such section")
	}
	var examples []string
	for {
		_, rest, ok := strings.Cut(teams, "```toml\n")
		if !ok {
			break
		}
		example, after, _ := strings.Cut(rest, "```\n")
		examples, teams = append(examples, example), after
	}
	if len(examples) != 2 {
		t.Fatalf("%d examples", len(examples))
	}
	load := func(text string) config.Serve {
		t.Helper()
		file := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(config.Options{File: file, Cwd: t.TempDir(), Environ: []string{"HOME=" + t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		return cfg.Serve
	}
	cfg := load(examples[0])
	s := mustNew(t, cfg, Options{Many: true})
	for _, tt := range []struct {
		name       string
		groups     []string
		agent, dir string
		want       string // the reason of the first refusal
	}{
		{"oidc:cy", []string{"dev"}, "gemini", "/srv/code/dev/x", ""},
		{"oidc:cy", []string{"dev"}, "other", "/srv/code/dev", "policy.agent"},
		{"oidc:cy", []string{"dev"}, "claude", "/srv/code", "policy.directory"},
		{"jo", []string{"dev"}, "other", "/home/jo/work", ""},
		{"jo", nil, "other", "/srv/code/dev", "policy.directory"},
		{"al", nil, "gemini", "/srv/code/dev", "policy.agent"},
	} {
		p := s.User(tt.name, tt.groups)
		got := reasonOf(t, p.Agent(tt.agent))
		if got == "" {
			got = reasonOf(t, p.Directory(tt.dir))
		}
		if got != tt.want {
			t.Errorf("%s in %v: %q, want %q", tt.name, tt.groups, got, tt.want)
		}
	}
	if cfg.OIDC.Client != "acp" || cfg.Users["jo"].Env["ANTHROPIC_API_KEY"] != "file:/etc/acp/jo.key" {
		t.Errorf("%+v", cfg)
	}
	if c := load(examples[1]).Isolation; c.Mode != "container" || c.Container[0] != "podman" {
		t.Errorf("%+v", c)
	}
}
