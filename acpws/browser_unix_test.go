//go:build unix

package acpws_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/internal/remotetest"
)

// attack is a page that tries to reach a server by everything a page can do, and then
// says what came of it.
const attack = `<!doctype html><meta charset=utf-8><iframe name=sink></iframe>
<form method=post target=sink enctype="text/plain"><input name='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":"' value='"}}'></form>
<script>
const url = %q, hello = %q;
const tell = (name, p) => p.then(r => name + " " + (r.type === "opaque" ? "opaque" : r.status), () => name + " failed");
const form = document.forms[0];
form.action = url;
form.submit();
const socket = new Promise(done => {
	const s = new WebSocket(url.replace("http", "ws"));
	s.onopen = () => done("socket open");
	s.onerror = () => done("socket failed");
});
const source = new Promise(done => {
	const s = new EventSource(url);
	s.onopen = () => { s.close(); done("source open"); };
	s.onerror = () => { s.close(); done("source failed"); };
});
Promise.all([
	tell("json", fetch(url, {method: "POST", headers: {"Content-Type": "application/json"}, body: hello})),
	tell("text", fetch(url, {method: "POST", mode: "no-cors", body: hello})),
	tell("get", fetch(url, {headers: {Accept: "text/event-stream"}})),
	tell("blind", fetch(url, {mode: "no-cors"})),
	tell("delete", fetch(url, {method: "DELETE"})),
	socket, source, new Promise(done => setTimeout(done, 300)),
]).then(all => fetch("/result", {method: "POST", body: JSON.stringify(all)}));
</script>`

// watching counts the answers of a server by their status.
type watching struct {
	http.Handler
	mu   sync.Mutex
	seen map[string]int
}

type statusWriter struct {
	http.ResponseWriter
	code int
}

func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (h *watching) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sw := &statusWriter{w, 200}
	h.Handler.ServeHTTP(sw, r)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil {
		h.seen = map[string]int{}
	}
	name := r.Method
	if r.Header.Get("Upgrade") != "" {
		name = "socket"
	}
	h.seen[fmt.Sprint(name, " ", sw.code)]++
}

// visit has a browser load a page, which posts its result to the same server.
func visit(t *testing.T, browser, page string, results <-chan string) []string {
	t.Helper()
	home := t.TempDir()
	cmd := exec.Command(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
		"--host-resolver-rules=MAP *.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
		"--user-data-dir="+home, page)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "DBUS_SESSION_BUS_ADDRESS=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Skip("the browser does not start: ", err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // only against hanging
	defer cancel()
	select {
	case text := <-results:
		var got []string
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		return got
	case <-ctx.Done():
		t.Fatal("the page gives no result")
	}
	return nil
}

// TestBrowser: a page of another site reaches nothing, whatever it tries and by
// whatever name; a page of the server's own origin can use it.
func TestBrowser(t *testing.T) {
	browser := ""
	for _, name := range []string{os.Getenv("ACP_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); name != "" && err == nil {
			browser = p
			break
		}
	}
	if browser == "" {
		t.Skip("there is no Chromium")
	}
	agent := remotetest.Counting(t)
	served := make(chan string, 100)
	s := &acphttp.Server{Upgrade: acpws.Upgrader{}, Serve: func(ctx context.Context, t acp.Transport) error {
		served <- "served"
		return agent.Serve(ctx, t)
	}}
	results := make(chan string, 1)
	page := http.NewServeMux()
	page.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, attack, r.URL.Query().Get("at"), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	})
	page.HandleFunc("/result", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		results <- string(text)
	})
	watch := &watching{Handler: s}
	own := http.NewServeMux()
	own.Handle("/acp", watch)
	own.Handle("/", page)
	web, evil := httptest.NewServer(own), httptest.NewServer(page)
	t.Cleanup(func() {
		_ = s.Close(context.Background())
		web.CloseClientConnections()
		evil.CloseClientConnections()
		web.Close()
		evil.Close()
	})
	_, port, _ := strings.Cut(strings.TrimPrefix(web.URL, "http://"), ":")
	for _, victim := range []string{web.URL + "/acp", "http://rebound.example:" + port + "/acp", "http://localhost:" + port + "/acp"} {
		got := visit(t, browser, strings.Replace(evil.URL, "127.0.0.1", "evil.example", 1)+"/?at="+victim, results)
		for _, line := range got {
			if strings.HasSuffix(line, " open") || strings.HasSuffix(line, " 200") || strings.HasSuffix(line, " 202") {
				t.Errorf("%s: %s", victim, line)
			}
		}
	}
	watch.mu.Lock()
	requests := 0
	for what, n := range watch.seen {
		requests += n
		if !strings.HasSuffix(what, " 403") && !strings.HasSuffix(what, " 421") {
			t.Errorf("%d requests were answered: %s", n, what)
		}
	}
	t.Logf("%d requests: %v", requests, watch.seen)
	if requests < 12 || watch.seen["socket 403"] == 0 || watch.seen["POST 403"] == 0 {
		t.Error("the page did not try what it should")
	}
	watch.mu.Unlock()
	if len(served) > 0 {
		t.Error("an agent was started")
	}
	got := strings.Join(visit(t, browser, web.URL+"/?at="+web.URL+"/acp", results), ", ")
	for _, want := range []string{"json 200", "socket open"} {
		if !strings.Contains(got, want) {
			t.Errorf("a page of the server's own: %s, want %s", got, want)
		}
	}
}
