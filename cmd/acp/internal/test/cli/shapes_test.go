package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/cli/exec"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// A shape is a way to ask for permission.
type shape struct {
	name string
	call *acp.ToolCall // nil: about a command
	ask  acp.Permission
	// hopeless: no --allow can permit it.
	hopeless bool
}

// shapes returns 30 of them: kinds of tools by what they say about themselves. With both versions
// of the protocol they are 60.
func shapes() (all []shape) {
	for _, kind := range []acp.ToolKind{acp.ToolKindRead, acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove,
		acp.ToolKindSearch, acp.ToolKindFetch, acp.ToolKindThink, acp.ToolKindOther, "_custom"} {
		all = append(all,
			shape{name: string(kind) + " with a path", call: &acp.ToolCall{Title: "Do it", Kind: kind, Locations: []acp.ToolCallLocation{{Path: "/project/sub/a b.txt"}}}},
			shape{name: string(kind) + " without", call: &acp.ToolCall{Title: "Do it", Kind: kind}})
	}
	run := func(name string, input any) shape {
		return shape{name: name, call: &acp.ToolCall{Title: "Run it", Kind: acp.ToolKindExecute, Input: input}}
	}
	all = append(all,
		run("command", map[string]any{"command": "go test ./..."}),
		run("command with signs", map[string]any{"command": `grep -r "x; y" . | head -n 3 > 'out file'`}),
		run("command of lines", map[string]any{"command": "make\nmake install"}),
		run("command with a pattern", map[string]any{"command": "rm *.o"}),
		run("command and directory", map[string]any{"command": "ls", "cwd": "/project"}),
		run("command and more", map[string]any{"command": "ls", "stdin": "x"}),
		run("no command", nil),
		run("other input", map[string]any{"script": "ls"}),
		shape{name: "two paths", call: &acp.ToolCall{Title: "Edit", Kind: acp.ToolKindEdit, Locations: []acp.ToolCallLocation{{Path: "/project/a"}, {Path: "/etc/passwd"}}}},
		shape{name: "MCP tool", call: &acp.ToolCall{Name: "mcp__github__create_issue", Title: "Create issue", Kind: acp.ToolKindOther, Input: map[string]any{"title": "x"}}},
		shape{name: "hostile title", call: &acp.ToolCall{Title: "Read\x1b]0;x\x07 \u202efile\nx", Kind: acp.ToolKindRead}},
		shape{name: "no option that allows", hopeless: true, call: &acp.ToolCall{Title: "Strange", Kind: acp.ToolKindRead},
			ask: acp.Permission{Options: []acp.PermissionOption{{OptionID: "x", Name: "No", Kind: acp.PermissionOptionKindRejectOnce}}}},
	)
	return all
}

// ask holds one turn in which the agent asks, by exec, and returns what it was told.
func ask(t *testing.T, s shape, version int, change func(*app.App, *exec.Options)) (allowed bool, stdout, stderr string, code exitcode.Code) {
	t.Helper()
	agent := &acp.Agent{MinVersion: version, MaxVersion: version, Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
		h := turn.ToolCall(*s.call)
		d, err := h.Ask(s.ask)
		if err != nil {
			return "", err
		}
		allowed = d.Allowed
		_ = h.Complete()
		return acp.StopEndTurn, nil
	}}
	var out, errs bytes.Buffer
	a := &app.App{In: strings.NewReader(""), Out: &out, Err: &errs, Cwd: "/project", Flags: map[string]any{"store.off": true},
		Environ: []string{"HOME=" + t.TempDir()}}
	a.UseBuiltIn(agent)
	o := &exec.Options{App: a, Agent: "builtin", Prompt: []string{"go"}, NoStdin: true}
	if change != nil {
		change(a, o)
	}
	code = exitcode.Of(exec.Run(t.Context(), o))
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	return allowed, out.String(), errs.String(), code
}

var hint = regexp.MustCompile(`allow it with --allow (.*)\n`)

// TestShapes asks exec, which has no terminal, in 60 ways, under every mode: nothing is ever allowed
// that was not, nothing hangs, and the rule that is named is one that works.
func TestShapes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, []byte(`{"version":1,"default":"deny"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, version := range []int{1, 2} {
		for _, s := range shapes() {
			n++
			t.Run(fmt.Sprintf("v%d/%s", version, s.name), func(t *testing.T) {
				check := func(mode string, want bool, wantCode exitcode.Code, change func(*app.App, *exec.Options)) string {
					t.Helper()
					allowed, _, stderr, code := ask(t, s, version, change)
					if allowed != want || code != wantCode {
						t.Errorf("%s: allowed %v, status %d; want %v, %d; stderr:\n%s", mode, allowed, code, want, wantCode, stderr)
					}
					if strings.ContainsAny(stderr, "\x1b\u202e\x07") {
						t.Errorf("%s: unsafe: %q", mode, stderr)
					}
					if !want && strings.Count(stderr, "denied: ") != 1 {
						t.Errorf("%s: it is not told once what was denied: %q", mode, stderr)
					}
					return stderr
				}
				// No policy at all.
				stderr := check("none", false, exitcode.Denied, nil)
				m := hint.FindStringSubmatch(stderr)
				if (m == nil) != s.hopeless {
					t.Fatalf("no rule is named, or one where none helps: %q", stderr)
				}
				if m != nil {
					// The rule as --json has it, which is not quoted for a shell.
					_, stdout, _, _ := ask(t, s, version, func(_ *app.App, o *exec.Options) { o.JSON = true })
					rule := allowWith(t, stdout)
					check("--allow "+rule, true, exitcode.Done, func(a *app.App, _ *exec.Options) { a.Flags["permissions.allow"] = []string{rule} })
					check("--allow and --deny", false, exitcode.Denied, func(a *app.App, _ *exec.Options) {
						a.Flags["permissions.allow"], a.Flags["permissions.deny"] = []string{rule}, []string{"*"}
					})
					check("policy file and --allow", true, exitcode.Done, func(a *app.App, _ *exec.Options) {
						a.Flags["permissions.policy"], a.Flags["permissions.allow"] = file, []string{rule}
					})
				}
				if got := check("--deny", false, exitcode.Denied, func(a *app.App, _ *exec.Options) { a.Flags["permissions.deny"] = []string{"*"} }); strings.Contains(got, "--allow '") {
					t.Errorf("--deny: a rule is named that does not help: %q", got)
				}
				check("policy file", false, exitcode.Denied, func(a *app.App, _ *exec.Options) { a.Flags["permissions.policy"] = file })
				check("--deny-ok", false, exitcode.Done, func(_ *app.App, o *exec.Options) { o.DenyOK = true })
				if !s.hopeless {
					// A kind that nobody knows is not allowed by those who did not name it.
					known, code := s.call.Kind != "_custom", exitcode.Done
					if !known {
						code = exitcode.Denied
					}
					check("default allow", known, code, func(a *app.App, _ *exec.Options) { a.Flags["permissions.default"] = "allow" })
				}
			})
		}
	}
	if n != 60 {
		t.Errorf("%d shapes", n)
	}
}

func allowWith(t *testing.T, stdout string) string {
	t.Helper()
	for line := range strings.SplitSeq(stdout, "\n") {
		var l struct{ Type, AllowWith string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Type == "permission" {
			return l.AllowWith
		}
	}
	t.Fatalf("no permission line in %s", stdout)
	return ""
}

// TestAskedForNothing: a command that was announced is judged, whatever the request says about it: OpenCode asks
// about a tool of the kind other with an empty input.
func TestAskedForNothing(t *testing.T) {
	for _, version := range []int{1, 2} {
		for _, announced := range []bool{true, false} {
			agent := &acp.Agent{MinVersion: version, MaxVersion: version, Prompt: func(_ context.Context, turn *acp.Turn) (acp.StopReason, error) {
				call := acp.ToolCallUpdate{ToolCallID: "c", Title: acp.Set("bash"), Kind: acp.Set(acp.ToolKindOther), RawInput: json.RawMessage(`{}`)}
				var err error
				if announced {
					h := turn.ToolCall(acp.ToolCall{ID: "c", Title: "bash", Kind: acp.ToolKindExecute, Input: map[string]any{"command": "mkdir -p x"}})
					_, err = h.Ask(acp.Permission{Subject: &acp.ToolCallPermissionSubject{ToolCall: call}})
					_ = h.Complete()
				} else {
					_, err = turn.Ask(acp.Permission{Title: "bash", Subject: &acp.ToolCallPermissionSubject{ToolCall: call}})
				}
				return acp.StopEndTurn, err
			}}
			run := func(flags map[string]any) (string, exitcode.Code) {
				var out, errs bytes.Buffer
				a := &app.App{In: strings.NewReader(""), Out: &out, Err: &errs, Cwd: "/project", Flags: flags, Environ: []string{"HOME=" + t.TempDir()}}
				flags["store.off"] = true
				a.UseBuiltIn(agent)
				code := exitcode.Of(exec.Run(t.Context(), &exec.Options{App: a, Agent: "builtin", Prompt: []string{"go"}, NoStdin: true}))
				if err := a.Close(); err != nil {
					t.Error(err)
				}
				return errs.String(), code
			}
			what := fmt.Sprintf("version %d, announced %v", version, announced)
			if stderr, code := run(map[string]any{"permissions.deny": []string{"command:mkdir *"}, "permissions.allow": []string{"*"}}); code != exitcode.Denied {
				t.Errorf("%s: status %d; %s", what, code, stderr)
			}
			want := exitcode.Done
			if !announced {
				want = exitcode.Denied
			}
			if stderr, code := run(map[string]any{"permissions.allow": []string{"command:mkdir *"}}); code != want {
				t.Errorf("%s: status %d, want %d; %s", what, code, want, stderr)
			}
			if stderr, _ := run(map[string]any{}); announced && !strings.Contains(stderr, "--allow 'command:mkdir -p x'") {
				t.Errorf("%s: the rule that is named is wider than the command: %s", what, stderr)
			}
		}
	}
}
