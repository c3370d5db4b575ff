package agents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/jsonrpc"
)

// fakeVariable makes the test binary an agent that behaves in some way.
const fakeVariable = "ACP_TEST_FAKE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(fakeVariable); mode != "" {
		fake(mode)
		return
	}
	leaktest.Main(m)
}

// fake is an agent in another process.
func fake(mode string) {
	agent := &acp.Agent{
		Info:   acp.Implementation{Name: "fake", Version: "1.2"},
		Prompt: func(context.Context, *acp.Turn) (acp.StopReason, error) { return acp.StopEndTurn, nil },
	}
	switch mode {
	case "exits":
		fmt.Fprintln(os.Stderr, "first\nno key \x1b[31mfound")
		os.Exit(3)
	case "leaves":
		return
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	case "http":
		fmt.Print("HTTP/1.1 400 Bad Request\r\n\r\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	case "lsp":
		fmt.Print("Content-Length: 2\r\n\r\n{}")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	case "noise":
		fmt.Println("Loading \x1b]0;evil\x07model…")
		fmt.Println("done")
	case "deep":
		fmt.Printf(`{"jsonrpc":"2.0","method":"_x","params":%s%s}`+"\n", strings.Repeat("[", 600), strings.Repeat("]", 600))
	case "auth":
		agent.NewSession = func(context.Context, *acp.AgentSession) error { return jsonrpc.ErrAuthRequired }
		agent.AuthMethods = []acp.AuthMethod{&acpv2.AuthMethodAgent{MethodID: "web", Name: "Browser"}}
		agent.Login = func(context.Context, *acp.AgentConn, acp.AuthMethodID) error { return nil }
	case "broken":
		agent.NewSession = func(context.Context, *acp.AgentSession) error { return jsonrpc.Errorf(-32050, "no model") }
	case "v1":
		agent.MaxVersion = 1
	case "v1 only":
		v1Only()
		return
	case "no http":
		agent.MCP = acp.MCPTransports{Stdio: true}
	case "only http":
		agent.MCP = acp.MCPTransports{HTTP: true}
		agent.MinVersion = 2
	case "no mcp":
		agent.MinVersion = 2
	case "stays":
		defer time.Sleep(time.Minute)
	case "leaves a child":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), fakeVariable+"=child")
		detach(child)
		_ = child.Start()
	case "child":
		time.Sleep(time.Minute)
		return
	}
	_ = agent.Serve(context.Background(), acp.Stdio())
}

// v1Only ends at a request of version 2, and says nothing for which another version
// would be tried.
func v1Only() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version int `json:"protocolVersion"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &req) != nil {
			continue
		}
		switch {
		case req.Method == "initialize" && req.Params.Version != 1:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-31999,"message":"what?"}}`+"\n", req.ID)
		case req.Method == "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}`+"\n", req.ID)
		case req.Method == "session/new":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}`+"\n", req.ID)
		}
	}
}

// A place is the program in a home directory of its own.
type place struct {
	t        *testing.T
	app      *app.App
	out, err bytes.Buffer
	user     string // the user's file
}

func newPlace(t *testing.T, settings string) *place {
	t.Helper()
	home := t.TempDir()
	for _, v := range []string{"HOME", "USERPROFILE"} {
		t.Setenv(v, home)
	}
	for _, v := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA"} {
		t.Setenv(v, filepath.Join(home, v))
	}
	p := &place{t: t, user: filepath.Join(home, "XDG_CONFIG_HOME", "acp", "config.toml")}
	if settings != "" {
		p.write(p.user, settings, 0o600)
	}
	p.app = &app.App{In: strings.NewReader(""), Out: &p.out, Err: &p.err, Version: "test", Cwd: home}
	t.Cleanup(func() { _ = p.app.Close() })
	return p
}

func (p *place) write(name, text string, mode os.FileMode) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
}

// run runs the command with arguments.
func (p *place) run(args ...string) error {
	p.t.Helper()
	p.out.Reset()
	p.err.Reset()
	cmd := NewCommand(p.app, nil)
	cmd.SetArgs(append([]string{}, args...))
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	return cmd.ExecuteContext(p.t.Context())
}

func fakeSettings(mode string) string {
	return fmt.Sprintf("[agents.fake]\ncommand = %q\n[agents.fake.env]\n%s = %q\n", os.Args[0], fakeVariable, mode)
}

func TestDoctor(t *testing.T) {
	for _, tc := range []struct {
		mode string
		ok   bool
		want []string // lines, in order, without what differs each time
		not  string
	}{
		{"fine", true, []string{"fake: ", "  ✓ found         " + os.Args[0], " starts        in ", "  ✓ initialize    fake 1.2, protocol version 2", "  · capabilities  list, resume, close", "  · mcp           ", "  ✓ session/new   a session was opened in ", " ends          "}, "✗"},
		{"exits", false, []string{"  ✗ runs       it exited with status 3 before it answered", "      | first", "      | no key found", "      → run it by hand to see why: "}, "\x1b"},
		{"leaves", false, []string{"  ✗ runs       it exited without an answer and without an error"}, ""},
		{"silent", false, []string{"  ✗ initialize  no answer and no output within 1s", "      → check that the command makes it speak ACP"}, ""},
		{"http", false, []string{"  ✗ initialize  it speaks HTTP", "  ! output      a line on standard output is not a message", "      | HTTP/1.1 400 Bad Request"}, ""},
		{"lsp", false, []string{"  ✗ initialize  it frames messages like a language server"}, ""},
		{"noise", true, []string{"  ✓ initialize    fake 1.2", "  ! output        2 lines on standard output are not messages", "      | Loading model…", "      | done", "  ✓ session/new"}, "\x1b"},
		{"deep", true, []string{"  ✓ initialize    fake 1.2", "  ! output        a message was too large or nested too deeply to be read", "      → acp ignores this", "  ✓ session/new"}, ""},
		{"auth", false, []string{"  · logins        Browser (web)", "  ✗ session/new   it requires a login", "      → acp auth login fake", " ends"}, ""},
		{"broken", false, []string{"  ✗ session/new   it answered with the error -32050: no model"}, ""},
		{"v1", true, []string{"  ✓ initialize    fake 1.2, protocol version 1", "  · protocol      the agent speaks version 1 only and was started twice", "acp config set agents.fake.protocol 1", "  · capabilities  none"}, "or --fix"},
		{"v1 only", true, []string{"  ! initialize    works if acp speaks only version 1; otherwise: it answered with the error -31999: what?", "      → acp config set agents.fake.protocol 1 (or --fix)", "  ✓ session/new   "}, ""},
		{"stays", true, []string{"  ! ends          it did not exit within 2s after its input ended and was terminated"}, ""},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			p := newPlace(t, fakeSettings(tc.mode))
			limit := "20s"
			if tc.mode == "silent" {
				limit = "1s"
			}
			err := p.run("doctor", "fake", "--timeout", limit)
			if (err == nil) != tc.ok || err != nil && exitcode.Of(err) != exitcode.Agent {
				t.Errorf("%v (status %d)", err, exitcode.Of(err))
			}
			rest := p.out.String()
			for _, w := range tc.want {
				_, after, ok := strings.Cut(rest, w)
				if !ok {
					t.Fatalf("%q is not there, or not in order:\n%s", w, p.out.String())
				}
				rest = after
			}
			if tc.not != "" && strings.Contains(p.out.String(), tc.not) {
				t.Errorf("%q is in:\n%s", tc.not, p.out.String())
			}
			if left, err := survivors(""); err == nil {
				for _, s := range left {
					if strings.Contains(s.command, os.Args[0]) {
						t.Errorf("left running: %+v", s)
					}
				}
			}
		})
	}
}

// TestDoctorServers: which MCP servers the agent takes, which are bridged and which cannot be had.
func TestDoctorServers(t *testing.T) {
	exe := quoted(os.Args[0])
	file := "[mcp.run]\ncommand = " + exe + "\n[mcp.web]\nurl = \"https://u:secret@example.org/?k=secret\"\n[mcp.old]\ntype = \"sse\"\nurl = \"https://example.org\"\n"
	for _, tc := range []struct {
		mode, more string
		ok         bool
		want       []string
	}{
		{"no http", "", true, []string{
			"✓ mcp server    flagged (--mcp): bridged from http to stdio",
			"✓ mcp server    old (settings): bridged from sse to stdio",
			"✓ mcp server    run (settings): supported directly, by stdio",
			"✓ mcp server    web (settings): bridged from http to stdio",
		}},
		{"only http", "", true, []string{
			"✓ mcp server    flagged (--mcp): supported directly, by http",
			"✓ mcp server    old (settings): bridged from sse to http",
			"✓ mcp server    run (settings): bridged from stdio to http",
			"✓ mcp server    web (settings): supported directly, by http",
		}},
		{"no mcp", "", false, []string{
			"✗ mcp server    flagged (--mcp) cannot be used: its transport is http, and fake takes none",
			"✗ mcp server    old (settings) cannot be used: its transport is sse, and fake takes none",
			"✗ mcp server    run (settings) cannot be used: its transport is stdio, and fake takes none",
			"✗ mcp server    web (settings) cannot be used: its transport is http, and fake takes none",
			"→ acp opens no session with it; correct it, or turn it off: acp config set mcp.web.off true",
			"→ acp opens no session with it; correct it, or turn it off: leave out --mcp 'flagged=…'",
		}},
		{"no http", "[mcp.\"x y\"]\ncommand = \"no-such-program-of-ours\"\n", false, []string{
			"✗ mcp server    x y (settings) cannot be used: its command cannot be run: ",
			"turn it off: acp config set 'mcp.\"x y\".off' true",
		}},
		{"fine", "[mcp.bad]\nurl = \"${NOT_SET_ANYWHERE}\"\n", false, []string{
			"✗ mcp server    setting mcp.bad: variable NOT_SET_ANYWHERE is not set",
		}},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			p := newPlace(t, fakeSettings(tc.mode)+file+tc.more)
			p.app.MCPFlags = []string{"flagged=https://example.org"}
			if err := p.run("doctor", "fake"); (err == nil) != tc.ok || err != nil && exitcode.Of(err) != exitcode.Agent {
				t.Errorf("%v (status %d)", err, exitcode.Of(err))
			}
			for _, w := range tc.want {
				if !strings.Contains(p.out.String(), w) {
					t.Errorf("%q is not in:\n%s", w, p.out.String())
				}
			}
			if strings.Contains(p.out.String(), "secret") {
				t.Errorf("a secret is in:\n%s", p.out.String())
			}
		})
	}
	p := newPlace(t, fakeSettings("fine"))
	p.write(filepath.Join(p.app.Cwd, ".mcp.json"), `{"mcpServers": {"x": {"command": "x"}}}`, 0o600)
	if err := p.run("doctor", "fake"); err != nil || !strings.Contains(p.err.String(), ".mcp.json is not trusted, its MCP servers are left out") {
		t.Errorf("a file that is not trusted: %v\n%s", err, p.err.String())
	}
}

func TestDoctorSurvivors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked for on Linux only")
	}
	p := newPlace(t, fakeSettings("leaves a child"))
	if err := p.run("doctor", "fake", "--json"); err != nil {
		t.Error(err)
	}
	var r report
	if err := json.Unmarshal(p.out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	c := r.checkNamed("survivors")
	if c == nil || !r.OK {
		t.Fatalf("%+v", r)
	}
	// The library ends what has not been cut loose, whichever session it is in.
	if c.Status != good && c.Status != odd {
		t.Errorf("%+v", c)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		left, err := survivors("")
		if err != nil {
			t.Fatal(err)
		}
		alive := false
		for _, s := range left {
			alive = alive || strings.Contains(s.command, os.Args[0])
		}
		if !alive {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left running: %+v", left)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestDoctorNotFound(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	p := newPlace(t, "")
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	p.write(plain, "x", 0o644)
	script := filepath.Join(dir, "script")
	p.write(script, "#!/usr/bin/env no-such-interpreter\n", 0o755)
	garbage := filepath.Join(dir, "garbage")
	p.write(garbage, "\x00\x01", 0o755)
	hidden := filepath.Join(dir, "login", "hidden-agent")
	p.write(hidden, fmt.Sprintf("#!/bin/sh\n%s=fine exec %s\n", fakeVariable, os.Args[0]), 0o755)
	shell := filepath.Join(dir, "sh")
	p.write(shell, "#!/bin/sh\nPATH=$PATH:"+filepath.Dir(hidden)+" exec /bin/sh -c \"$4\"\n", 0o755)
	t.Setenv("SHELL", shell)
	p.write(p.user, "[agents.hidden]\ncommand = \"hidden-agent\"\n\n[agents.glued]\ncommand = \"sh -c true\"\n", 0o600)
	for _, tc := range []struct{ name, want, cure string }{
		{plain + " x", plain + " cannot be run", "chmod +x " + plain},
		{dir + "/gone", dir + "/gone does not exist", "install it, or correct the command"},
		{"gone-for-good --acp", "gone-for-good is not in PATH", "install it, or correct the command"},
		{script, "needs no-such-interpreter, which was not found", "install no-such-interpreter"},
		{garbage, "exec format error", "it is not a program for this system"},
		{"hidden", "is not in PATH, but it is in the PATH of your login shell: " + hidden, "acp config set agents.hidden.login_env true (or --fix)"},
		{"hidden-agent --x", "but it is in the PATH of your login shell", "give it a name: acp agents add NAME --login-env -- hidden-agent --x"},
		{"glued", "sh -c true is not in PATH", "separate the arguments: acp agents add --force glued -- sh -c true"},
		{"'sh -c true'", "sh -c true is not in PATH", "remove the quotes around the whole command: sh -c true"},
		{"kiro", "kiro-cli is not in PATH", "install it: see https://kiro.dev/docs/cli"},
	} {
		err := p.run("doctor", tc.name)
		if exitcode.Of(err) != exitcode.Agent || !strings.Contains(p.out.String(), tc.want) || !strings.Contains(p.out.String(), "→ "+tc.cure) {
			t.Errorf("%s: %v\n%s", tc.name, err, p.out.String())
		}
	}
	if err := p.run("doctor", "hidden", "--fix"); err == nil || !strings.Contains(p.out.String(), "→ done: ") {
		t.Errorf("fix: %v\n%s", err, p.out.String())
	}
	text, err := os.ReadFile(p.user)
	if want := "[agents.hidden]\ncommand = \"hidden-agent\"\nlogin_env = true\n\n[agents.glued]\ncommand = \"sh -c true\"\n"; err != nil || string(text) != want {
		t.Errorf("%s, %v", cmp.Diff(want, string(text)), err)
	}
	p.app = &app.App{In: p.app.In, Out: &p.out, Err: &p.err, Version: "test", Cwd: p.app.Cwd}
	if err := p.run("doctor", "hidden"); err != nil {
		t.Errorf("after the fix: %v\n%s", err, p.out.String())
	}
}

func TestDoctorUsage(t *testing.T) {
	p := newPlace(t, "")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"doctor", "gemnii"}, `did you mean "gemini"?`},
		{[]string{"doctor", "--all", "gemini"}, "leave out the names"},
		{[]string{"doctor", "--timeout", "-1s"}, "is negative"},
	} {
		if err := p.run(tc.args...); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v", tc.args, err)
		}
	}
}
