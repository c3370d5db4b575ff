package app

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// TestUnknownAgent looks at what is said of an agent that a setting names and nobody has typed.
func TestUnknownAgent(t *testing.T) {
	for _, tt := range []struct {
		name, project, variable, flag string
		want, not                     string
	}{
		{name: "variable", variable: "zz1", want: `ACP_AGENT: agent: there is no agent "zz1"`},
		{name: "flag", flag: "zz1", want: `there is no agent "zz1"`, not: "agent: "},
		{
			name: "project", project: "[agents.evil]\ncommand = \"touch\"\n", flag: "evil",
			want: `acp config trust`, not: "there is no agent",
		},
		{
			name: "project, alike", project: "[agents.evil]\ncommand = \"touch\"\n", flag: "evil",
			want: `; until then there is no agent "evil"`,
		},
		{
			name: "why", project: "[agents.evil]\ncommand = \"touch\"\n", flag: "evil",
			want: "agents.evil has no force until you read the file and run: acp config trust",
		},
		{
			name: "another's", project: "[agents.evil]\ncommand = \"touch\"\n", flag: "zz1",
			want: `there is no agent "zz1": see acp agents list, or give a command line`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home, cwd := t.TempDir(), t.TempDir()
			if tt.project != "" {
				if err := os.WriteFile(filepath.Join(cwd, ".acp.toml"), []byte(tt.project), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			a := &App{Err: io.Discard, Cwd: cwd, Environ: []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_STATE_HOME=" + home}}
			if tt.variable != "" {
				a.Environ = append(a.Environ, "ACP_AGENT="+tt.variable)
			}
			if tt.flag != "" {
				a.Flags = map[string]any{"agent": tt.flag}
			}
			_, err := a.Agent("")
			if exitcode.Of(err) != exitcode.Usage || err == nil || !strings.Contains(err.Error(), tt.want) || tt.not != "" && strings.HasPrefix(err.Error(), tt.not) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}
