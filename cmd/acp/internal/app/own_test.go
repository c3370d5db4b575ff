package app

import (
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/roster"
)

// TestHostedAs: how a gateway of the user reaches an agent that has proxies, over the network or as a program.
func TestHostedAs(t *testing.T) {
	budget := []roster.Proxy{{Name: "budget", Ready: true, Argv: []string{"budget", "--tokens", "9"}}}
	a := &App{Cwd: t.TempDir()}
	for _, tt := range []struct {
		agent roster.Agent
		want  string // the end
	}{
		{roster.Agent{Source: roster.SourceCommand, URL: "https://h.example/acp", Proxies: budget}, " conductor 'budget --tokens 9' --agent https://h.example/acp"},
		{roster.Agent{Source: roster.SourceCommand, Command: "/bin/x", Args: []string{"--acp"}, Proxies: budget}, " conductor 'budget --tokens 9' -- /bin/x --acp"},
		{roster.Agent{Source: roster.SourceCommand, URL: "https://h.example/acp"}, "https://h.example/acp"},
	} {
		if got, err := a.hostedAs(tt.agent); err != nil || !strings.HasSuffix(got, tt.want) {
			t.Errorf("%q, %v; want …%q", got, err, tt.want)
		}
	}
}
