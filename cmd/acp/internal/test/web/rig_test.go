//go:build unix

package web

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/cli"
	"github.com/goacp/acp/cmd/acp/internal/test/chromium"
	"github.com/goacp/acp/cmd/acp/internal/test/firefox"
	"github.com/goacp/acp/internal/leaktest"
)

// TestMain runs the tests, or the program, or its agent: the tests start their own executable as both.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		leaktest.Main(m, chromium.Close, firefox.Close)
		return
	}
	if os.Args[1] != "play-agent" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if err := playAgent(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// token is that of the server.
const token = "a-token-of-the-tests-that-is-long-enough"

// patience ends tests that fail.
const patience = 60 * time.Second

// A rig is a server and what pages of it do.
type rig struct {
	t       *testing.T
	home    string
	project string
	address string // of the server
	flags   []string

	server *exec.Cmd
	stderr bytes.Buffer
}

func newRig(t *testing.T, flags ...string) *rig {
	t.Helper()
	chromium.Need(t)
	return newServer(t, flags...)
}

// newServer is newRig for tests that do without Chromium.
func newServer(t *testing.T, flags ...string) *rig {
	t.Helper()
	home, err := os.MkdirTemp("", "acp") // short, for the sake of sockets
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, home: home, project: filepath.Join(home, "project"), flags: flags}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	if err := os.Mkdir(r.project, 0o700); err != nil {
		t.Fatal(err)
	}
	r.address = "127.0.0.1:0"
	r.serve()
	t.Cleanup(r.kill)
	return r
}

// serve starts the server, where the last one was.
func (r *rig) serve() {
	r.t.Helper()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	args := append([]string{"serve", "--listen", r.address}, r.flags...)
	cmd := exec.Command(self, append(args, "--", self, "play-agent")...)
	cmd.Dir = r.project
	cmd.Env = r.environment()
	cmd.Stderr = &r.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.server = cmd
	var line []byte
	for b := make([]byte, 1); len(line) < 1024; {
		if _, err := out.Read(b); err != nil || b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	url := string(line)
	if !strings.HasPrefix(url, "http://") {
		r.kill()
		r.t.Fatalf("the server has not started: %q %s", url, r.stderr.String())
	}
	r.address = strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/acp")
}

// environment is that of the programs of a rig.
func (r *rig) environment() []string {
	env := append(os.Environ(), "HOME="+r.home, "XDG_RUNTIME_DIR="+r.home, "ACP_TOKEN="+token, "GORACE=atexit_sleep_ms=0")
	for _, kind := range []string{"CONFIG", "DATA", "STATE", "CACHE"} {
		env = append(env, "XDG_"+kind+"_HOME="+r.home)
	}
	return env
}

// kill kills the server; its agents live on.
func (r *rig) kill() {
	if r.server == nil {
		return
	}
	_ = r.server.Process.Signal(syscall.SIGKILL)
	_ = r.server.Wait()
	r.server = nil
}

// page opens the page in a browser of its own, which is paired by the token of the server.
func (r *rig) page(at string) *chromium.Tab {
	r.t.Helper()
	tb := chromium.Open(r.t, "about:blank")
	r.pairAt(tb, r.address)
	tb.Go("http://" + r.address + "/" + at)
	return tb
}

// pairAt makes a browser a device of the server, as its login page does. at is how the browser reaches the server.
func (r *rig) pairAt(tb *chromium.Tab, at string) {
	r.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	tr := new(http.Transport)
	defer tr.CloseIdleConnections()
	client := &http.Client{Jar: jar, Transport: tr, Timeout: patience}
	req, err := http.NewRequest(http.MethodPost, "http://"+at+"/login", strings.NewReader(`{"token":"`+token+`","name":"tests"}`))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", "http://"+at)
	res, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || len(res.Cookies()) == 0 {
		r.t.Fatalf("the server does not let the browser in: %s", res.Status)
	}
	for _, c := range res.Cookies() {
		tb.Do("Network.setCookie", chromium.Object{"name": c.Name, "value": c.Value, "url": "http://" + at + "/", "httpOnly": true, "sameSite": "Strict"}, nil)
	}
}

// session begins a session, by a client that then leaves, and returns its ID.
func (r *rig) session() string {
	r.t.Helper()
	conn := r.client(&acp.Client{})
	s, err := conn.NewSession(r.t.Context(), acp.SessionConfig{Cwd: r.project})
	if err != nil {
		r.t.Fatal(err)
	}
	id := string(s.ID())
	if err := conn.Close(); err != nil {
		r.t.Fatal(err)
	}
	return id
}

// client connects a client that is not a browser.
func (r *rig) client(c *acp.Client) *acp.ClientConn {
	r.t.Helper()
	conn, err := c.Connect(r.t.Context(), &acphttp.Transport{URL: "http://" + r.address + "/acp", Header: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// A tab is a page in one of the browsers.
type tab interface {
	Go(url string)
	Eval(expression string, result any)
	Until(expression string)
	Press(keys ...string)
	Type(selector, text string)
	Click(selector string)
	Requests() []string
	Wrong() []string
}

// prompt writes a prompt and sends it.
func prompt(tb tab, text string) {
	tb.Until(`document.querySelector("#prompt") && !document.querySelector("[aria-busy=true]")`)
	tb.Type("#prompt", text)
	tb.Press("Enter")
}

// says is an expression that tells whether the conversation has a text. What is out of view has no innerText.
func says(text string) string {
	return fmt.Sprintf(`document.querySelector(".entries")?.textContent.includes(%q)`, text)
}

// answers is an expression that tells whether the last thing that the agent has said ends with a text.
func answers(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".message.agent")].at(-1)?.textContent.trim().endsWith(%q)`, text)
}

// mkfifo makes a named pipe: whoever reads it waits until somebody has written.
func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }
