package agents

import (
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// TestSlowCure holds that a script is not taken for a program that npx runs.
func TestSlowCure(t *testing.T) {
	for _, tt := range []struct {
		agent   roster.Agent
		version int
		want    string
	}{
		{roster.Agent{Command: "npx"}, 1, "npx looks for a newer version"},
		{roster.Agent{Command: `/usr/bin/uvx`}, 2, "uvx looks for a newer version"},
		{roster.Agent{Command: "npx.cmd"}, 2, "npx looks for a newer version"},
		{roster.Agent{Name: "x", Command: "./script"}, 1, "acp config set agents.x.protocol 1"},
		{roster.Agent{Name: "x", Source: roster.SourceCommand, Command: "./script"}, 1, "protocol = 1 under [agents.NAME]"},
		{roster.Agent{Command: "./script", Protocol: 1}, 1, "the program itself"},
		{roster.Agent{Command: "./script"}, 2, "the program itself"},
	} {
		if got := slowCure(tt.agent, tt.version); !strings.Contains(got, tt.want) {
			t.Errorf("%+v, version %d: %q, want %q", tt.agent, tt.version, got, tt.want)
		}
	}
}
