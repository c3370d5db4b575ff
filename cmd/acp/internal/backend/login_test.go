//go:build unix

package backend

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/jsonrpc"
)

var errAuth = jsonrpc.ErrAuthRequired

func envMethod() acp.AuthMethod {
	return &acpv2.UnknownAuthMethod{Type: "env_var", MethodID: "key", Name: "Key",
		Raw: json.RawMessage(`{"type":"env_var","methodId":"key","name":"Key","vars":[{"name":"FAKE_KEY"}],"link":"https://e.org/keys"}`)}
}

func runHere(_ context.Context, cmd *exec.Cmd) error { return cmd.Run() }

func TestLogin(t *testing.T) {
	tests := []struct {
		name  string
		words string
		set   func(t *testing.T, c *Config)
		want  string // what the agent says in the end
		err   string
	}{
		{"agent", "needs-agent", nil, "heard hi with ", ""},
		{"agent, at the prompt", "needs-agent at-prompt", nil, "heard hi with ", ""},
		{"agent, refused", "needs-agent refuses", nil, "", "login of child by browser (Browser)"},
		{"no variable", "needs-env", nil, "", "set FAKE_KEY in the environment"},
		{"variable", "needs-env", func(t *testing.T, c *Config) { t.Setenv("FAKE_KEY", "k9") }, "heard hi with k9", ""},
		{"terminal", "needs-terminal", func(_ *testing.T, c *Config) {
			c.Front.RunInTerminal = runHere
			c.Front.ChooseLogin = func(_ context.Context, _ acp.Implementation, methods []acp.AuthMethod) (acp.AuthMethodID, error) {
				return Describe(methods[0]).ID, nil
			}
		}, "heard hi with ", ""},
		{"terminal, at the prompt", "needs-terminal at-prompt", func(_ *testing.T, c *Config) {
			c.Front.RunInTerminal = runHere
			c.Agent.Auth = "setup"
		}, "heard hi with ", ""},
		{"a command in the metadata", "needs-described", func(t *testing.T, c *Config) {
			var said notes
			c.Front.Note = said.add
			c.Front.RunInTerminal = func(ctx context.Context, cmd *exec.Cmd) error {
				text := strings.Join(said.text(NoteLogin), "\n")
				if !strings.Contains(text, "logging in: setup (Set up), which runs ") || !strings.HasSuffix(text, " --setup") {
					t.Errorf("it runs before the user sees it: %q", text)
				}
				return cmd.Run()
			}
			c.Front.ChooseLogin = func(_ context.Context, _ acp.Implementation, methods []acp.AuthMethod) (acp.AuthMethodID, error) {
				if d := Describe(methods[0]); d.Kind != MethodTerminal || !strings.HasSuffix(d.Command(), " --setup") {
					t.Errorf("%+v", d)
				}
				return Describe(methods[0]).ID, nil
			}
		}, "heard hi with ", ""},
		{"a command in the metadata, without a terminal", "needs-described", nil, "heard hi with ", ""}, // the agent itself does it
		{"a command in the metadata, not chosen", "needs-described", func(t *testing.T, c *Config) {
			c.Front.RunInTerminal = func(context.Context, *exec.Cmd) error { t.Error("it runs"); return nil }
		}, "", "run acp auth login child"},
		{"a command in the metadata, which the settings name", "needs-described", func(t *testing.T, c *Config) {
			asked := false
			c.Agent.Auth = "setup"
			c.Front.RunInTerminal = func(ctx context.Context, cmd *exec.Cmd) error {
				if !asked {
					t.Error("it runs without a question")
				}
				return cmd.Run()
			}
			c.Front.ChooseLogin = func(_ context.Context, _ acp.Implementation, methods []acp.AuthMethod) (acp.AuthMethodID, error) {
				asked = true
				if len(methods) != 1 || !strings.HasPrefix(Describe(methods[0]).Command(), "X=1 ") {
					t.Errorf("%d methods, %+v", len(methods), methods)
				}
				return "setup", nil
			}
		}, "heard hi with ", ""},
		{"a command in the metadata, which the settings name and the user refuses", "needs-described", func(t *testing.T, c *Config) {
			c.Agent.Auth = "setup"
			c.Front.RunInTerminal = func(context.Context, *exec.Cmd) error { t.Error("it runs"); return nil }
			c.Front.ChooseLogin = func(context.Context, acp.Implementation, []acp.AuthMethod) (acp.AuthMethodID, error) { return "", nil }
		}, "", "run acp auth login child"},
		{"a command in the metadata, which the settings name, and nobody to ask", "needs-described", func(t *testing.T, c *Config) {
			c.Agent.Auth = "setup"
			c.Front.RunInTerminal = func(context.Context, *exec.Cmd) error { t.Error("it runs"); return nil }
		}, "", "setup (Set up) would run X=1 "},
		{"terminal, at the prompt, kept", "needs-terminal at-prompt keeps", func(_ *testing.T, c *Config) {
			c.Front.RunInTerminal = runHere
			c.Agent.Auth = "setup"
		}, "heard hi with ", ""},
		{"terminal that fails", "needs-terminal", func(_ *testing.T, c *Config) {
			c.Front.RunInTerminal = func(context.Context, *exec.Cmd) error { return errors.New("exit status 1") }
			c.Agent.Auth = "setup"
		}, "", "login of child by setup (Set up): exit status 1"},
		{"nobody to ask", "needs-terminal", func(_ *testing.T, c *Config) { c.Front.RunInTerminal = runHere }, "", "run acp auth login child"},
		{"another way", "needs-agent", func(_ *testing.T, c *Config) { c.Agent.Auth = "other" }, "", `no way to log in that is called "other"`},
	}
	_ = os.Unsetenv("FAKE_KEY")
	versions(t, func(t *testing.T, version int) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				cfg := child(t, version, tt.words)
				if tt.set != nil {
					tt.set(t, &cfg)
				}
				h := open(t, cfg)
				s, err := h.NewSession(t.Context())
				if err == nil {
					_, err = s.Prompt(t.Context(), acp.Text("hi"))
				}
				if tt.err != "" {
					if err == nil || !strings.Contains(err.Error(), tt.err) || exitcode.Of(err) != exitcode.Auth {
						t.Fatalf("error %d, %v", exitcode.Of(err), err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(messages(s.Snapshot()), "|"); got != "user: hi|agent: "+tt.want {
					t.Errorf("conversation %q", got)
				}
				if other, ok := h.Session(s.ID()); !ok || other != s {
					t.Error("the session is not found by its id")
				}
				// It goes on.
				if _, err := s.Prompt(t.Context(), acp.Text("hi")); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// TestTerminalLoginEnvironment: the program that logs in is the agent's own, so it is found where the
// agent is and knows what that knows.
func TestTerminalLoginEnvironment(t *testing.T) {
	home := t.TempDir()
	bin := t.TempDir()
	shell := filepath.Join(home, "sh")
	// A login shell that knows a directory of programs which this process does not.
	script := "#!/bin/sh\nPATH=" + bin + ":$PATH; export PATH\nOF_LOGIN=yes; export OF_LOGIN\nwhile [ \"$1\" != -c ]; do shift; done\nexec /bin/sh -c \"$2\"\n"
	if err := os.WriteFile(shell, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "only-there"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHELL", shell)
	t.Setenv("ACP_TREE", "outer")
	for _, login := range []bool{true, false} {
		command := "only-there"
		if !login {
			command = filepath.Join(bin, command)
		}
		var got *exec.Cmd
		h := &Host{env: map[string]string{"OF_LOGINS": "more"}, cfg: Config{
			Agent: roster.Agent{Name: "a", Command: command, Args: []string{"--acp"}, LoginEnv: login, Env: map[string]string{"OF_AGENT": "set"}},
			Cwd:   home,
			Front: Frontend{RunInTerminal: func(_ context.Context, cmd *exec.Cmd) error { got = cmd; return nil }},
		}}
		err := h.terminalLogin(t.Context(), &acp.AuthMethodTerminal{Args: []string{"--setup"}, Env: []acp.EnvVariable{{Name: "OF_METHOD", Value: "set"}}}, nil)
		if err != nil {
			t.Fatalf("login environment %v: %v", login, err)
		}
		if want := filepath.Join(bin, "only-there"); got.Path != want {
			t.Errorf("login environment %v: the program is %q, want %q", login, got.Path, want)
		}
		if want := []string{"--acp", "--setup"}; !slices.Equal(got.Args[1:], want) {
			t.Errorf("login environment %v: arguments %q", login, got.Args)
		}
		for _, want := range []string{"HOME=" + os.Getenv("HOME"), "OF_AGENT=set", "OF_METHOD=set", "OF_LOGINS=more"} {
			if !slices.Contains(got.Env, want) {
				t.Errorf("login environment %v: %s is missing", login, want)
			}
		}
		if slices.ContainsFunc(got.Env, func(v string) bool { return strings.HasPrefix(v, "ACP_TREE=") }) {
			t.Errorf("login environment %v: what the login starts has the mark of a tree", login)
		}
		if has := slices.Contains(got.Env, "OF_LOGIN=yes"); has != login {
			t.Errorf("login environment %v: that of the login shell is there: %v", login, has)
		}
	}
}

// TestLoginCommand: a command is shown whole, on one line, or it is not run; the standard's way is better.
func TestLoginCommand(t *testing.T) {
	for _, tt := range []struct{ meta, want string }{
		{`{"terminal-auth":{"command":"/bin/claude","args":["--cli","auth login"],"label":"Login"}}`, `/bin/claude --cli 'auth login'`},
		{`{"terminal-auth":{"command":"a\u001b[31m\nb"}}`, `'a\u{1b}[31m\u{a}b'`},
		{`{"terminal-auth":{"command":"a","args":["` + strings.Repeat("x", maxLogin) + `"]}}`, ""},
		{`{"terminal-auth":{"command":"a","args":["` + strings.Repeat("x", maxLogin-2) + `"]}}`, "a " + strings.Repeat("x", maxLogin-2)},
		{`{"terminal-auth":{"command":"a","args":["` + strings.Repeat(`\u0001`, maxLogin/4) + `","b"]}}`, ""},
		{`{"terminal-auth":{"command":"a","env":{"PATH":"/tmp/x:/bin","LD_PRELOAD":"a b"}}}`, `'LD_PRELOAD=a b' PATH=/tmp/x:/bin a`},
		{`{"terminal-auth":{"command":"a","env":{"X":"` + strings.Repeat("y", maxLogin) + `"}}}`, ""},
		{`{"terminal-auth":{"command":"a","env":{"A=B":"x"}}}`, ""},
		{`{"terminal-auth":{"command":7}}`, ""}, {`{"terminal-auth":true}`, ""}, {`{"terminal-auth":{"args":["x"]}}`, ""}, {`{}`, ""}, {``, ""}, {`[`, ""},
	} {
		d := Describe(&acp.AuthMethodAgent{MethodID: "m", Meta: json.RawMessage(tt.meta)})
		if got := d.Command(); got != tt.want || (d.Run != nil) != (d.Kind == MethodTerminal) || (got == "") != (d.Run == nil) {
			t.Errorf("%.100s: %q, %s; want %q", tt.meta, got, d.Kind, tt.want)
		}
	}
	d := Describe(&acp.AuthMethodTerminal{MethodID: "m", Meta: json.RawMessage(`{"terminal-auth":{"command":"x"}}`)})
	if d.Kind != MethodTerminal || d.Run != nil {
		t.Errorf("%+v", d)
	}
}
