package tap

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

func TestArguments(t *testing.T) {
	type said struct {
		Agent, Output, Web string
		Argv               []string
	}
	for _, tt := range []struct {
		line string
		want said
		err  string
	}{
		{"gemini", said{Agent: "gemini"}, ""},
		{"-o x -- agent --acp", said{Argv: []string{"agent", "--acp"}, Output: "x"}, ""},
		{"gemini -o x --web", said{Agent: "gemini", Output: "x", Web: anyAddr}, ""},
		{"--web=127.0.0.1:80 -- a", said{Argv: []string{"a"}, Web: "127.0.0.1:80"}, ""},
		{"", said{}, "the agent is missing"},
		{"--", said{}, "no command after --"},
		{"a b", said{}, "more than one agent"},
		{"a -- b", said{}, "both an agent"},
		{"--audit x -- b", said{}, "--audit needs rules"},
		{"--web 127.0.0.1:8080 -- b", said{}, "with =: --web=127.0.0.1:8080"},
		{"--web 8080", said{}, "with =: --web=8080"},
		{"-o - -- b", said{}, "-o -: standard output carries the traffic"},
	} {
		var got said
		cmd := NewCommand(&app.App{}, func(_ context.Context, o *Options) error {
			got = said{o.Agent, o.Output, o.Web, o.Argv}
			return nil
		})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(tt.line))
		err := cmd.Execute()
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) || exitcode.Of(err) != exitcode.Usage {
				t.Errorf("%q: %v, want %q", tt.line, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tt.line, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.line, diff)
		}
	}
}

func TestPlainName(t *testing.T) {
	for agent, want := range map[string]string{
		"gemini": "gemini", "/usr/bin/my-agent --acp": "my-agent", "": "agent", "../..": "agent", ".hidden": "hidden", "日本": "agent",
		"a\x1b[31mb": "a31mb", strings.Repeat("x", 100): strings.Repeat("x", 40),
	} {
		if got := plainName(agent); got != want {
			t.Errorf("%q is called %q, want %q", agent, got, want)
		}
	}
}
