package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/jsonrpc"
)

// role makes the test binary an agent that wants a login.
const role = "ACP_AUTH_TEST_ROLE"

// openBrowser is how the agent logs in with a browser, where that is tested.
var openBrowser func(context.Context, *acp.AgentConn, acp.AuthMethodID) error

func TestMain(m *testing.M) {
	words := os.Getenv(role)
	if words == "" {
		leaktest.Main(m)
	}
	loggedIn := false
	a := acp.Agent{
		Info: acp.Implementation{Name: "door", Version: "2"},
		NewSession: func(context.Context, *acp.AgentSession) error {
			if strings.Contains(words, "fails") {
				fmt.Fprintln(os.Stderr, "error: set DOOR_KEY in the environment")
			}
			if strings.Contains(words, "fails") || !loggedIn && !strings.Contains(words, "open") {
				return jsonrpc.ErrAuthRequired
			}
			return nil
		},
		Prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
	}
	if !strings.Contains(words, "bare") {
		a.AuthMethods = []acp.AuthMethod{&acp.AuthMethodAgent{MethodID: "key", Name: "A key\x1b[2J"}}
		if strings.Contains(words, "two") {
			a.AuthMethods = append(a.AuthMethods, &acp.AuthMethodAgent{MethodID: "other", Name: "Other"})
		}
		a.Login = func(context.Context, *acp.AgentConn, acp.AuthMethodID) error { loggedIn = true; return nil }
		if strings.Contains(words, "browser") {
			a.Login = func(ctx context.Context, c *acp.AgentConn, id acp.AuthMethodID) error {
				loggedIn = true
				return openBrowser(ctx, c, id)
			}
		}
		if strings.Contains(words, "logout") {
			a.Logout = func(context.Context, *acp.AgentConn) error { return nil }
		}
	}
	if a.Serve(context.Background(), acp.Stdio()) != nil {
		os.Exit(1)
	}
}

// run runs the command with an agent that is what the words say.
func run(t *testing.T, words string, args ...string) (stdout string, err error) {
	t.Helper()
	home := t.TempDir()
	for _, k := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
		t.Setenv(k, home)
	}
	t.Setenv(role, words)
	exe, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	a := &app.App{In: strings.NewReader(""), Out: &out, Err: &errs, Cwd: t.TempDir(), Version: "test", Flags: map[string]any{"store.off": true}}
	defer a.Close()
	cmd := NewCommand(a, nil)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, exe))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestFlags(t *testing.T) {
	var got Options
	cmd := NewCommand(nil, func(_ context.Context, o *Options) error { got = *o; return nil })
	for _, tt := range []struct {
		args []string
		want Options
	}{
		{[]string{"status", "--json"}, Options{Verb: "status", JSON: true}},
		{[]string{"login", "x", "--method", "m"}, Options{Verb: "login", Agent: "x", Method: "m"}},
		{[]string{"logout", "x"}, Options{Verb: "logout", Agent: "x"}},
	} {
		cmd = NewCommand(nil, func(_ context.Context, o *Options) error { got = *o; return nil })
		cmd.SetArgs(append([]string{}, tt.args...))
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Error(d)
		}
	}
	cmd.SetArgs([]string{"login", "x", "y"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if cmd.Execute() == nil {
		t.Error("two agents")
	}
}

func TestStatus(t *testing.T) {
	for words, want := range map[string]string{"shut": "unauthenticated", "open": "not_required", "bare open": "not_required"} {
		out, err := run(t, words, "status", "--json")
		if err != nil {
			t.Fatalf("%s: %v", words, err)
		}
		var st Status
		if err := json.Unmarshal([]byte(out), &st); err != nil {
			t.Fatal(err)
		}
		if st.State != want || st.Name != "door" || (len(st.Methods) == 0) != strings.Contains(words, "bare") {
			t.Errorf("%s: %+v", words, st)
		}
	}
	out, err := run(t, "shut", "status")
	if err != nil || !strings.Contains(out, "a login is needed") || !strings.Contains(out, "key  agent: A key") || strings.Contains(out, "\x1b") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestLogin(t *testing.T) {
	for _, tt := range []struct {
		words string
		args  []string
		out   string
		code  exitcode.Code
		err   string
	}{
		{"shut", []string{"login"}, "by key\n", exitcode.Done, ""},
		{"shut two", []string{"login", "--method", "other"}, "by other\n", exitcode.Done, ""},
		{"shut two", []string{"login"}, "", exitcode.Usage, "choose one with --method: key, other"},
		{"shut", []string{"login", "--method", "none"}, "", exitcode.Usage, `no login method "none"`},
		{"bare open", []string{"login"}, "", exitcode.Failed, "offers no login method"},
		{"shut logout", []string{"logout"}, "logged out of", exitcode.Done, ""},
	} {
		out, err := run(t, tt.words, tt.args...)
		if exitcode.Of(err) != tt.code || !strings.Contains(out, tt.out) || tt.err != "" && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s %v: %q, %d, %v", tt.words, tt.args, out, exitcode.Of(err), err)
		}
	}
}

// TestLoginFails: an agent that says its login has worked, and wants one when a session is opened, is not logged in. The end of its
// standard error says why.
func TestLoginFails(t *testing.T) {
	out, err := run(t, "fails", "login")
	if exitcode.Of(err) != exitcode.Auth || out != "" {
		t.Fatalf("%q, %v", out, err)
	}
	for _, want := range []string{"still wants one", "error: set DOOR_KEY in the environment", "acp auth login"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q: %v", want, err)
		}
	}
}
