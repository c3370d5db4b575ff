package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpws"
	"github.com/goacp/acp/cmd/acp/internal/app"
	"github.com/goacp/acp/cmd/acp/internal/identity/devices"
)

// started is a server that runs until end is called.
type started struct {
	url  string // of the page, without the slash
	said []string
	end  func()
}

// start runs acp serve on a terminal until the page was named, or at most until it serves.
func start(t *testing.T, change func(*Options)) started {
	t.Helper()
	home := t.TempDir()
	t.Setenv("ACP_TOKEN", "")
	out, write := io.Pipe()
	errs, writeErr := io.Pipe()
	a := &app.App{In: strings.NewReader(""), Out: write, Err: writeErr, ErrTerminal: true, Logger: slog.New(slog.DiscardHandler), Cwd: home, Environ: []string{"HOME=" + home, "XDG_STATE_HOME=" + home + "/state", "XDG_CONFIG_HOME=" + home + "/config"}, Flags: map[string]any{}}
	o := &Options{App: a, Agent: "builtin", Listen: "127.0.0.1:0"}
	change(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, o)
		_ = write.Close()
		_ = writeErr.Close()
	}()
	first, rest := bufio.NewScanner(out), bufio.NewScanner(errs)
	s := started{end: func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}}
	if !first.Scan() {
		t.Fatal(<-done)
	}
	s.url = strings.TrimSuffix(first.Text(), "/acp")
	for rest.Scan() {
		s.said = append(s.said, rest.Text())
		if strings.Contains(rest.Text(), "to open it") || strings.Contains(rest.Text(), "the token is in") && o.Web.Off {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, errs) }() // until the server has ended
	return s
}

// fetch makes a request of the page.
func (s started) fetch(t *testing.T, method, path, text string, cookie *http.Cookie) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", s.url)
	req.Header.Set("Content-Type", "application/json")
	if cookie != nil {
		req.AddCookie(cookie)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = io.Copy(io.Discard, res.Body); _ = res.Body.Close() })
	return res
}

// TestPageLink: the link on the terminal opens the page, once; its browser is an owner, which manages devices.
func TestPageLink(t *testing.T) {
	s := start(t, func(*Options) {})
	defer s.end()
	said := strings.Join(s.said, "\n")
	if !strings.Contains(said, "acp serve: the page is at "+s.url+"/\n") {
		t.Fatal(said)
	}
	_, ticket, ok := strings.Cut(said, "acp serve: to open it, once within 10 minutes: "+s.url+"/pair#t=")
	if !ok {
		t.Fatal(said)
	}
	for path, want := range map[string]int{"/": 200, "/pair": 200, "/healthz": 200, "/nothing": 404, "/whoami": 401} {
		if res := s.fetch(t, "GET", path, "", nil); res.StatusCode != want {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	res := s.fetch(t, "POST", "/login", `{"ticket":"`+ticket+`","name":"Chrome"}`, nil)
	if res.StatusCode != http.StatusOK || len(res.Cookies()) != 1 {
		t.Fatal(res.StatusCode, res.Cookies())
	}
	cookie := res.Cookies()[0]
	if res := s.fetch(t, "POST", "/login", `{"ticket":"`+ticket+`"}`, nil); res.StatusCode != http.StatusForbidden {
		t.Error("the link, again:", res.StatusCode)
	}
	var who struct{ Name, Role string }
	if err := json.NewDecoder(s.fetch(t, "GET", "/whoami", "", cookie).Body).Decode(&who); err != nil || who.Name != "Chrome" || who.Role != "owner" {
		t.Error(who, err)
	}
	conn, err := new(acp.Client).Connect(t.Context(), &acpws.Transport{
		URL: "ws" + strings.TrimPrefix(s.url, "http") + "/acp", Header: http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}, "Origin": {s.url}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	made, err := devices.PairMethod.Call(t.Context(), conn.Conn(), &devices.PairRequest{Role: "viewer", Name: "phone"})
	if err != nil || made.Link != s.url+"/pair#t="+made.Ticket {
		t.Fatal(made, err)
	}
	if res := s.fetch(t, "POST", "/login", `{"code":"`+made.Code+`"}`, nil); res.StatusCode != http.StatusOK {
		t.Error(res.StatusCode)
	}
	all, err := devices.ListMethod.Call(t.Context(), conn.Conn(), &devices.ListRequest{})
	if err != nil || len(all.Devices) != 2 || !all.Devices[0].This || all.Devices[1].Name != "phone" {
		t.Fatal(all, err)
	}
	if _, err := devices.RevokeMethod.Call(t.Context(), conn.Conn(), &devices.RevokeRequest{ID: all.Devices[0].ID}); err != nil {
		t.Log("the connection was faster:", err)
	}
	<-conn.Done() // or the test ends by its time limit
}

// TestPageOff: there is no page, and no link to one.
func TestPageOff(t *testing.T) {
	s := start(t, func(o *Options) { o.Web.Off = true })
	defer s.end()
	if strings.Contains(strings.Join(s.said, "\n"), "the page") {
		t.Error(s.said)
	}
	for path, want := range map[string]int{"/": 404, "/app.js": 404, "/login": 404, "/healthz": 200} {
		if res := s.fetch(t, "GET", path, "", nil); res.StatusCode != want {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	if res := s.fetch(t, "GET", "/pair", "", nil); res.StatusCode != http.StatusMethodNotAllowed {
		t.Error(res.StatusCode)
	}
}
