package check

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/remote"
	"github.com/goacp/acp/internal/logtest"
)

// serveAgent serves an agent over HTTP and WebSocket to those who have a token.
func serveAgent(t *testing.T, token string) string {
	t.Helper()
	return serveOn(t, token, httptest.NewServer).URL + "/acp"
}

// serveOn is serveAgent with a server that start has started.
func serveOn(t *testing.T, token string, start func(http.Handler) *httptest.Server) *httptest.Server {
	t.Helper()
	agent := &acp.Agent{Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		switch t.Text() {
		case "ask":
			t.Permit(acp.Permission{Title: "May I?"})
			return acp.StopEndTurn, nil
		case "hang":
			<-ctx.Done()
			return acp.StopEndTurn, nil
		}
		return acp.StopEndTurn, t.Say("hello")
	}}
	s := &acphttp.Server{Serve: agent.Serve, Upgrade: acpws.Upgrader{}, Logger: logtest.New(t), Authenticate: func(r *http.Request) (string, error) {
		if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			return "", errors.New("no token")
		}
		return "me", nil
	}}
	web := start(s)
	t.Cleanup(func() {
		_ = s.Close(context.Background())
		web.Close()
	})
	return web
}

// TestAt checks our own server with all rules for servers, and its agent over both
// transports.
func TestAt(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), "own-secret\n")
	var out, errs bytes.Buffer
	o := &Options{
		App: &app.App{Out: &out, Err: &errs, Cwd: dir}, Side: "agent", At: serveAgent(t, "own-secret"), TokenFile: "token",
		Versions: []int{1, 2}, Only: []string{"server", "agent/prompt/ends", "agent/session/new"}, Skip: []string{"server/stream/keep-alive"},
		Prompts: map[string]string{"text": "hi", "permission": "ask", "hang": "hang"}, JSON: true,
	}
	if err := Run(t.Context(), o); err != nil {
		t.Errorf("%v\n%s", err, &errs)
	}
	var report struct {
		Side, Broken string
		Transports   []string
		Results      []struct {
			Rule, Over, Status, Why string
			Version                 int
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.Side != "agent" || report.Broken != "" || !slices.Equal(report.Transports, []string{"http", "websocket"}) {
		t.Errorf("%+v", report)
	}
	tried := map[string]int{}
	for _, r := range report.Results {
		side, _, _ := strings.Cut(r.Rule, "/")
		tried[side+" "+r.Over]++
		if r.Status == "fail" || r.Status == "broken" {
			t.Errorf("%s over %q: %s: %s", r.Rule, r.Over, r.Status, r.Why)
		}
		if side == "agent" && r.Version == 0 || side == "server" && r.Version != 0 {
			t.Errorf("%s has the version %d", r.Rule, r.Version)
		}
	}
	if tried["server "] < 140 || tried["agent http"] == 0 || tried["agent http"] != tried["agent websocket"] {
		t.Error(tried)
	}
	if strings.Contains(out.String()+errs.String(), "own-secret") {
		t.Error("the token is in the report")
	}
}

// TestAtPinned checks a server with a certificate of its own that this machine has joined, over both transports, and finds
// one with another certificate unreachable.
func TestAtPinned(t *testing.T) {
	web := serveOn(t, "joined", func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // of what clients refuse
		s.StartTLS()
		return s
	})
	own := sha256.Sum256(web.Certificate().Raw)
	for name, test := range map[string]struct {
		pin  [sha256.Size]byte
		want exitcode.Code
	}{
		"its own": {own, 0},
		"another": {sha256.Sum256(nil), exitcode.Protocol},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			t.Setenv("XDG_STATE_HOME", state)
			if err := remote.Save(config.DirsOf(os.Environ(), "").State, web.URL, remote.Saved{Token: "joined", Fingerprint: hex.EncodeToString(test.pin[:])}); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			o := &Options{App: &app.App{Out: &out, Err: &out, Cwd: t.TempDir()}, Side: "agent", At: web.URL + "/acp", Versions: []int{1}, Only: []string{"server/delete", "agent/session/new"}}
			if err := Run(t.Context(), o); exitcode.Of(err) != test.want {
				t.Errorf("%v\n%s", err, &out)
			}
		})
	}
}

// TestAtFails holds what becomes of servers that cannot be checked, and of rules of one
// side alone.
func TestAtFails(t *testing.T) {
	silent := httptest.NewServer(http.NotFoundHandler())
	defer silent.Close()
	good := serveAgent(t, "")
	for name, test := range map[string]struct {
		at   string
		only []string
		want exitcode.Code
		text string
	}{
		"nobody":      {"http://127.0.0.1:1/acp", nil, exitcode.Protocol, "does not answer initialize"},
		"not found":   {silent.URL, nil, exitcode.Protocol, "404 Not Found"},
		"client only": {good, []string{"client/end"}, exitcode.Usage, "no rule fits"},
		"server only": {good, []string{"server/delete"}, 0, ""},
		"agent only":  {good, []string{"agent/session/new"}, 0, ""},
	} {
		var out bytes.Buffer
		o := &Options{App: &app.App{Out: &out, Err: &out, Cwd: t.TempDir()}, Side: "agent", At: test.at, Versions: []int{1}, Only: test.only}
		err := Run(t.Context(), o)
		if exitcode.Of(err) != test.want || test.text != "" && !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v\n%s", name, err, &out)
		}
	}
}

// TestAtFlags holds what is said of --at and --token-file.
func TestAtFlags(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "two"), "a\nb\n")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--at", "ftp://x"}, "the URL must begin with"},
		{[]string{"--at", "http://me:secret@x/"}, "must not have a name or a password"},
		{[]string{"--at", "http://%zz/secret"}, "malformed"},
		{[]string{"--at", "http://x/", "gemini"}, "name no agent"},
		{[]string{"--at", "http://x/", "--", "my-agent"}, "name no agent"},
		{[]string{"--token-file", "x"}, "--token-file is for --at"},
		{[]string{"--at", "http://x/", "--token-file", "missing"}, "no such file"},
		{[]string{"--at", "http://x/", "--token-file", "two"}, "white space"},
	} {
		var out bytes.Buffer
		cmd := NewCommand(&app.App{Out: &out, Err: &out, Cwd: dir}, nil)
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(append([]string{"agent"}, test.args...))
		err := cmd.ExecuteContext(t.Context())
		if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v", test.args, err)
		}
	}
}
