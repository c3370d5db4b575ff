package app

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUntrustedAgent holds that a project picks no agent, not even one that is well known, until the user
// trusts it, and that a changed file is the reason why its agent is not there.
func TestUntrustedAgent(t *testing.T) {
	home, cwd := t.TempDir(), t.TempDir()
	file := filepath.Join(cwd, ".acp.toml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open := func(agent string) *App {
		a := &App{Err: io.Discard, Cwd: cwd, Environ: []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_STATE_HOME=" + home}}
		if agent != "" {
			a.Flags = map[string]any{"agent": agent}
		}
		return a
	}
	write("agent = \"gemini\"\n")
	a := open("")
	agent, err := a.Agent("")
	if err != nil || !agent.Builtin {
		t.Errorf("an untrusted file picks %+v, %v", agent, err)
	}
	if left := a.Untrusted(); len(left) != 1 || !strings.Contains(left[0], "agent has no force until") {
		t.Errorf("untrusted: %q", left)
	}
	trust := func() {
		cfg, err := open("").Config()
		if err == nil {
			err = cfg.Trust(file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	trust()
	if agent, err = open("").Agent(""); err != nil || agent.Name != "gemini" {
		t.Errorf("a trusted file picks %+v, %v", agent, err)
	}
	write("[agents.q]\ncommand = \"one\"\n")
	trust()
	write("[agents.q]\ncommand = \"two\"\n")
	a = open("q")
	for _, name := range []string{"", "q"} {
		if _, err := a.Agent(name); err == nil || !strings.Contains(err.Error(), "it has changed since you trusted it") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
