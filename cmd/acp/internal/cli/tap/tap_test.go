package tap

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	engine "github.com/goacp/acp/cmd/acp/internal/record/tap"
	"github.com/goacp/acp/trace"
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

// TestAuditTorn holds that a line that was cut off does not spoil the next.
func TestAuditTorn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	const cut = `{"time":"0001-01-01T00:0`
	if err := os.WriteFile(name, []byte(cut), 0o600); err != nil {
		t.Fatal(err)
	}
	log := new(audit)
	if err := log.open(name); err != nil {
		t.Fatal(err)
	}
	log.write(&engine.Entry{Method: "a"})
	log.torn = true // as after a write of which only a part was done
	log.write(&engine.Entry{Method: "b"})
	log.write(&engine.Entry{Method: "c"})
	if problems := log.close(); problems != nil {
		t.Error(problems)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	line := func(method string) string {
		return `{"time":"0001-01-01T00:00:00Z","method":"` + method + `","decision":"","by":""}` + "\n"
	}
	if diff := cmp.Diff(cut+"\n"+line("a")+"\n"+line("b")+line("c"), string(text)); diff != "" {
		t.Error(diff)
	}
}

// TestAuditSecrets holds that what looks like a secret is not in the log.
func TestAuditSecrets(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	log := &audit{redactor: new(trace.Redactor)}
	if err := log.open(name); err != nil {
		t.Fatal(err)
	}
	log.write(&engine.Entry{Title: `run "x"`, Command: "curl -H 'Authorization: Bearer hunter2hunter2'", Paths: []string{"/x"}})
	log.close()
	text, err := os.ReadFile(name)
	if err != nil || strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), `"title":"run \"x\""`) || !json.Valid(text) {
		t.Errorf("%s, %v", text, err)
	}
}
