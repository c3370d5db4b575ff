package agents

import (
	"context"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acptest"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// TestRules: doctor tells how far rules hold an agent, and warns where there are some that cannot.
func TestRules(t *testing.T) {
	for _, tt := range []struct {
		name    string
		agent   roster.Agent
		version int
		deny    []string
		status  status
		want    string
	}{
		{"built-in", roster.Agent{Builtin: true}, 2, []string{"*"}, good, "obeys"},
		{"version 2", roster.Agent{}, 2, nil, fact, "rules about files and commands cannot hold this agent: in version 2"},
		{"version 2, with rules", roster.Agent{}, 2, []string{"path:**/.env"}, odd, "rules about files and commands cannot hold this agent: in version 2"},
		{"version 1", roster.Agent{}, 1, []string{"path:**/.env"}, fact, "in what it does itself"},
		{"version 1, no files", roster.Agent{NoFiles: true}, 1, []string{"path:**/.env"}, odd, "rules about files cannot hold this agent"},
		{"broken rules", roster.Agent{}, 1, []string{"nonsense:x"}, bad, "nonsense"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, _ := acptest.Pair(t, &acp.Agent{MinVersion: tt.version, MaxVersion: tt.version, Prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil }}, &acp.Client{})
			a := &app.App{Cwd: t.TempDir(), Environ: []string{"HOME=" + t.TempDir()}, Flags: map[string]any{}}
			if tt.deny != nil {
				a.Flags["permissions.deny"] = tt.deny
			}
			d := &doctor{o: &Options{App: a}, agent: tt.agent, report: new(report)}
			d.rules(conn)
			c := d.report.checkNamed("rules")
			if c == nil || c.Status != tt.status || !strings.Contains(c.Detail, tt.want) {
				t.Errorf("%+v", c)
			}
		})
	}
}
