package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// program builds the program of cmd/acp, and returns it with an environment that
// leaves the user's settings and conversations alone.
func program(t *testing.T) (bin string, env []string) {
	t.Helper()
	home := t.TempDir()
	return build(t, filepath.Join("..", "cmd", "acp"), "."), append(os.Environ(), "HOME="+home,
		"XDG_CONFIG_HOME="+filepath.Join(home, "config"), "XDG_STATE_HOME="+filepath.Join(home, "state"),
		"XDG_DATA_HOME="+filepath.Join(home, "data"), "XDG_CACHE_HOME="+filepath.Join(home, "cache"))
}

// ran runs a command to its end and returns what it prints and its status.
func ran(t *testing.T, env []string, dir, stdin string, command ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, env, strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("%q: %v", command, err)
	}
	return out.String(), errs.String(), status
}

// The built-in agent serves the official SDK's client: commands, permissions,
// cancels, and a session that goes on in another process.
func TestBuiltInAgainstTS(t *testing.T) {
	need(t)
	for version, name := range map[string]string{"1": "v1", "2": "v2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin, env := program(t)
			self, err := filepath.Abs("program.mjs")
			if err != nil {
				t.Fatal(err)
			}
			out, errs, status := ran(t, env, t.TempDir(), "", "node", self, version, bin, "agent")
			var got []map[string]any
			for line := range strings.Lines(out) {
				var m map[string]any
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Fatalf("%v: %q", err, line)
				}
				if m["name"] == "help" {
					if s, _ := m["said"].(string); !strings.Contains(s, "/read PATH") {
						t.Errorf("the help is %q", s)
					}
					delete(m, "said")
				}
				got = append(got, m)
			}
			type o = map[string]any
			none, completed := []any{}, []any{"completed"}
			read := func(name string) o {
				return o{"name": name, "said": "Lines 1–1 of `note.txt`.\n", "stop": "end_turn", "asked": 0.0, "tools": completed}
			}
			number := map[string]float64{"1": 1, "2": 2}[version]
			want := []o{
				{"name": "initialize", "version": number},
				{"name": "help", "stop": "end_turn", "asked": 0.0, "tools": none},
				{"name": "commands", "has": true},
				read("read"),
				{"name": "allow_once", "said": "Created `allow_once.txt` with 1 line.", "stop": "end_turn", "asked": 1.0, "tools": completed, "file": "hey"},
				{"name": "reject_once", "said": "Not done: you rejected it.\n", "stop": "end_turn", "asked": 1.0, "tools": []any{"failed"}, "file": nil},
				{"name": "cancel", "said": "This demonstration does nothing until you cancel it.", "stop": "cancelled", "asked": 0.0, "tools": none},
				read("after"),
				{"name": "exit", "code": 0.0},
				{"name": "list", "has": true},
				{"name": "history", "has": true},
				read("again"),
				{"name": "exit again", "code": 0.0},
			}
			if d := cmp.Diff(want, got); d != "" || status != 0 {
				t.Errorf("status %d\n%s\n%s", status, d, errs)
			}
		})
	}
}

// The built-in agent passes the checks that the suites have for any agent: by its commands,
// with a language model, and with one over the bridge from the other version.
func TestSuiteBuiltIn(t *testing.T) {
	need(t)
	bin, _ := program(t)
	script := filepath.Join(t.TempDir(), "model.script")
	if err := os.WriteFile(script, []byte("always\nthink Well.\nsay Hello from the script.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := []string{bin, "agent", "--no-persist"}
	model := append(agent[:3:3], "--model", "script:"+script)
	for _, tt := range []struct {
		name, script string
		command      []string
	}{
		{"v1", "v1_client.mjs", agent},
		{"v2", "v2_client.mjs", agent},
		{"model v1", "v1_client.mjs", model},
		{"model v2", "v2_client.mjs", model},
		{"model v1 over v2", "v1_client.mjs", append(append([]string{bin, "bridge", "--agent-protocol", "2", "--"}, model...), "--protocol", "2")},
		{"model v2 over v1", "v2_client.mjs", append(append([]string{bin, "bridge", "--agent-protocol", "1", "--"}, model...), "--protocol", "1")},
		{"model raw v1", "raw_probe.mjs", append(model[:5:5], "--protocol", "1")},
		{"model raw v2", "raw_probe.mjs --v2", append(model[:5:5], "--protocol", "2")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := suite(t, nil, append(append(strings.Fields("tspeer/"+tt.script), "--"), tt.command...)...)
			for _, name := range r.names("FAIL") {
				t.Error(r.lines[name])
			}
			if n := r.count(false); n < 15 || r.code != 0 {
				t.Errorf("%d checks passed, exit code %d", n, r.code)
			}
			t.Logf("%d checks passed", r.count(false))
		})
	}
}

// The program has a turn with agents of others, as a script and in lines.
func TestProgramAgainstAgents(t *testing.T) {
	need(t)
	bin, _ := program(t)
	peer := func(name string) []string {
		p, err := filepath.Abs(filepath.Join("tspeer", name))
		if err != nil {
			t.Fatal(err)
		}
		return []string{"node", p}
	}
	const demo = "Perfect! I've successfully updated the configuration."
	for _, tt := range []struct {
		name     string
		agent    []string
		protocol float64
		args     []string
		says     string
	}{
		{"v1", peer("v1_agent.mjs"), 1, nil, "echo:hello"},
		{"v2", peer("v2_agent.mjs"), 2, nil, "echo:hello"},
		{"router", peer("router_agent.mjs"), 2, nil, "echo:hello"},
		{"coder", []string{build(t, ".", coder+"agent")}, 1, []string{"--allow", "kind:edit"}, demo},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, env := program(t)
			dir := t.TempDir()
			command := append(append(append([]string{bin, "exec", "--json", "--no-stdin"}, tt.args...), "hello", "--"), tt.agent...)
			out, errs, status := ran(t, env, dir, "", command...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			var first struct{ Protocol float64 }
			var last struct{ Type, StopReason, Text string }
			if err := errors.Join(json.Unmarshal([]byte(lines[0]), &first), json.Unmarshal([]byte(lines[len(lines)-1]), &last)); err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, errs)
			}
			if status != 0 || first.Protocol != tt.protocol || last.Type != "result" || last.StopReason != "end_turn" || !strings.Contains(last.Text, tt.says) {
				t.Errorf("status %d, version %v, %+v\n%s", status, first.Protocol, last, errs)
			}
			command = append(append(append([]string{bin, "chat", "--plain"}, tt.args...), "--"), tt.agent...)
			out, errs, status = ran(t, env, dir, "hello\n", command...)
			if status != 0 || !strings.Contains(out, tt.says) {
				t.Errorf("in lines: status %d\n%s\n%s", status, out, errs)
			}
		})
	}
}
