package tap

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	engine "github.com/goacp/acp/cmd/acp/internal/tap"
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
		{"", said{}, "no agent"},
		{"--", said{}, "no command after --"},
		{"a b", said{}, "more than one agent"},
		{"a -- b", said{}, "both an agent"},
		{"--audit x -- b", said{}, "--audit is for"},
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

// TestAudit holds what is written to the log, that it goes on, and that what cannot be written is told.
func TestAudit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	for range 2 {
		log := new(audit)
		if err := log.open(name); err != nil {
			t.Fatal(err)
		}
		log.write(&engine.Entry{Decision: engine.DecisionRefuse, By: engine.ByRoots, Paths: []string{"/x"}})
		if problems := log.close(); problems != nil {
			t.Error(problems)
		}
		log.write(&engine.Entry{}) // after the end
	}
	text, err := os.ReadFile(name)
	const line = `{"time":"0001-01-01T00:00:00Z","decision":"refuse","by":"roots","paths":["/x"]}` + "\n"
	if string(text) != line+line || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	log := new(audit)
	if err := log.open(name); err != nil {
		t.Fatal(err)
	}
	_ = log.f.Close()
	log.write(&engine.Entry{})
	if problems := log.close(); len(problems) != 1 || !strings.HasPrefix(problems[0], "1 decisions could not be written") {
		t.Errorf("%q", problems)
	}
}
