package conformance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acphttp"
)

// obeys is an agent that does what basePrompts say.
func obeys() *acp.Agent {
	return &acp.Agent{Prompt: func(ctx context.Context, t *acp.Turn) (acp.StopReason, error) {
		switch t.Text() {
		case "count":
			for i := range 50 {
				if err := t.Say(fmt.Sprintf("%d ", i)); err != nil {
					return "", err
				}
			}
		case "ask":
			t.Permit(acp.Permission{Title: "May I?"})
		case "hang":
			<-ctx.Done()
		default:
			return acp.StopEndTurn, t.Say("hello")
		}
		return acp.StopEndTurn, nil
	}}
}

// TestOwnServer holds that our server keeps all rules about HTTP, in both versions, with
// TLS and a token and without.
func TestOwnServer(t *testing.T) {
	const token = "Bearer own-secret"
	for _, version := range []int{1, 2} {
		for _, secure := range []bool{false, true} {
			s := &acphttp.Server{Serve: obeys().Serve}
			web := httptest.NewUnstartedServer(s)
			web.EnableHTTP2 = true
			at := &Endpoint{}
			if secure {
				s.Authenticate = func(r *http.Request) (string, error) {
					if r.Header.Get("Authorization") != token {
						return "", errors.New("no token")
					}
					return "me", nil
				}
				web.StartTLS()
				pool := x509.NewCertPool()
				pool.AddCert(web.Certificate())
				at.TLS, at.Header = &tls.Config{RootCAs: pool}, http.Header{"Authorization": {token}}
			} else {
				web.Start()
			}
			at.URL = web.URL + "/acp"
			// The comment comes after 15 s, for which no test waits.
			opt := Options{Versions: []int{version}, Prompts: basePrompts, Skip: []string{"server/stream/keep-alive"}}
			report, err := CheckServer(t.Context(), at, opt)
			if err != nil || report.Broken != "" {
				t.Fatal(err, report.Broken)
			}
			for _, r := range report.Results {
				skip := r.Status == Skip && (r.Why == serverNeeds["websocket"] || !secure && (r.Why == serverNeeds["token"] || r.Why == serverNeeds["tls"]))
				if r.Status != Pass && !skip {
					t.Errorf("version %d, TLS %v: %s: %s: %s\n%s", version, secure, r.Rule.ID, r.Status, r.Why, seenText(r))
				}
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			web.Close()
		}
	}
}

// TestServerCwd holds that a server is given a directory when rules are tried, and that without one they
// are broken, as those of an agent are.
func TestServerCwd(t *testing.T) {
	at, made := serveBase(t, ""), 0
	o := Options{Versions: []int{1}, Prompts: basePrompts, Only: []string{"agent"}}
	o.NewCwd = func() (string, error) { made++; return "", errors.New("no space") }
	if _, err := CheckServer(t.Context(), at, o); !errors.Is(err, ErrNoRule) || made != 0 {
		t.Errorf("without rules: %v, %d directories", err, made)
	}
	o.Only = []string{"server/delete/status"}
	report, err := CheckServer(t.Context(), at, o)
	const want = "there is no directory for sessions: no space"
	if err != nil || made != 1 || report.Broken != want || len(report.Transports) != 2 {
		t.Errorf("%v, %d directories, transports %v, %q", err, made, report.Transports, report.Broken)
	}
	for _, r := range report.Results {
		if r.Status != Broken || r.Why != want {
			t.Errorf("%s: %s: %s", r.Rule.ID, r.Status, r.Why)
		}
	}
}

// TestNoServer holds what is said of what cannot be checked.
func TestNoServer(t *testing.T) {
	for _, bad := range []string{"ftp://x/acp", "http://", "http://me:secret@x/acp", ":", "stdio"} {
		report, err := CheckServer(t.Context(), &Endpoint{URL: bad}, Options{})
		if err == nil || report == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := CheckServer(t.Context(), &Endpoint{URL: "http://x/acp"}, Options{Only: []string{"agent"}}); err == nil {
		t.Error("there is something to check without rules")
	}
	only := Options{Only: []string{"server/delete/status", "server/websocket/ping"}}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		late    bool
		want    string
	}{
		"nothing there": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, false, "initialize was answered with 404 Not Found"},
		"text":          {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "Welcome") }, false, "Welcome"},
		"no id": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
		}, false, "without the header"},
		"another version": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(connectionHeader, "x")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":3}}`)
		}, false, "does not speak version 1"},
		"silent":  {func(_ http.ResponseWriter, r *http.Request) { hang(r) }, true, "not answered within 10s"},
		"stalled": {func(w http.ResponseWriter, r *http.Request) { stall(w, r) }, true, "did not end within 10s"},
		"rude":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, "POST was not answered"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
				web := &http.Server{Handler: test.handler}
				go func() { _ = web.Serve(l) }()
				defer web.Close()
				report, err := CheckServer(t.Context(), &Endpoint{URL: "ws://127.0.0.1/acp", Dial: l.dial}, only)
				if err != nil || !strings.Contains(report.Broken, test.want) || (report.Cause == CauseLate) != test.late || !report.Failed() {
					t.Errorf("%v, %q, cause %q", err, report.Broken, report.Cause)
				}
				for _, r := range report.Results {
					if r.Status != Broken || r.Why != report.Broken {
						t.Errorf("%s: %s", r.Status, r.Why)
					}
				}
				if len(report.Results) != 2 {
					t.Error(len(report.Results))
				}
			})
		})
	}
}

// stall sends the head of a response and nothing behind it.
func stall(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "100")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	hang(r)
}

// hang waits until the client is gone, which is seen once its request was read.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// TestServerInterrupted holds that a check that is ended says what is missing, and leaves
// nothing running.
func TestServerInterrupted(t *testing.T) {
	for _, at := range []string{"server/stream/keep-alive", "server/websocket/ping", ""} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			rules := serverRules()
			opt := Options{Prompts: basePrompts, Versions: []int{1}, OnResult: func(r *Result) {
				if r.Rule.ID >= at && at != "" {
					cancel()
				}
			}}
			if at == "" {
				cancel()
			}
			defer cancel()
			report, err := CheckServer(ctx, serveBase(t, ""), opt)
			if !errors.Is(err, context.Canceled) || !report.Interrupted || report.Broken != "" || report.Left+len(report.Results) != len(rules)+1 {
				t.Errorf("%v, interrupted %v, %d left, %d results, %q", err, report.Interrupted, report.Left, len(report.Results), report.Broken)
			}
		})
	}
}

// TestServerOnly holds that a server of WebSockets alone is checked as such.
func TestServerOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &baseServer{}
		l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") == "" {
				w.WriteHeader(http.StatusUpgradeRequired)
				return
			}
			base.ServeHTTP(w, r)
		})}
		go func() { _ = web.Serve(l) }()
		defer web.Close()
		at := &Endpoint{URL: "ws://127.0.0.1/acp", Header: http.Header{"Authorization": {baseToken}}, Dial: l.dial}
		report, err := CheckServer(t.Context(), at, Options{Versions: []int{1}})
		if err != nil || report.Failed() || report.Name != "base" {
			t.Errorf("%v %q", err, report.Broken)
		}
		for _, r := range report.Results {
			if r.Status != Pass && !(r.Status == Skip && r.Why == serverNeeds["http"] || r.Rule.ID == "server/method/http2") {
				t.Errorf("%s: %s: %s", r.Rule.ID, r.Status, r.Why)
			}
		}
	})
}

// TestServerReport holds how results of servers are encoded: they have no version.
func TestServerReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := checkBase(t, "delete/status", "server/delete/status")
		data, err := json.Marshal(report)
		if err != nil || !report.Failed() {
			t.Fatal(err)
		}
		for _, want := range []string{`"side":"server"`, `"version":0`, `"rule":"server/delete/status"`, `"cites":["S99","RFD"]`, `{"out":true,"data":"DELETE; Acp-Connection-Id: `} {
			if !strings.Contains(string(data), want) {
				t.Errorf("without %s: %s", want, data)
			}
		}
	})
}

// TestExcept holds that rules are skipped over a transport that decides what they are
// about, and tried over others.
func TestExcept(t *testing.T) {
	const scenario, observed = "agent/framing/batch", "agent/session/replayed"
	for network, want := range map[string]bool{OverHTTP: true, OverWebSocket: false, "": false} {
		synctest.Test(t, func(t *testing.T) {
			open := openAgent(nil)
			report, err := CheckAgent(t.Context(), func(ctx context.Context) (*Peer, error) {
				p, err := open(ctx)
				if err == nil {
					p.Network = network
				}
				return p, err
			}, Options{Versions: []int{1}, Only: []string{scenario, observed}})
			time.Sleep(time.Minute) // the agent ends in its own time
			if err != nil {
				t.Fatal(err)
			}
			for _, rule := range []string{scenario, observed} {
				if r := report.Result(rule, 1); r == nil || (r.Status == Skip && strings.Contains(r.Why, "transport")) != want {
					t.Errorf("over %q: %s: %+v", network, rule, r)
				}
			}
		})
	}
}

// TestJoin holds how the reports of several transports become one.
func TestJoin(t *testing.T) {
	rule := builtin().byID["agent/framing/batch"]
	all := &Report{Side: Agent}
	all.Join(&Report{Side: Server, Name: "s", Versions: []int{2}}, "")
	all.Join(&Report{Side: Agent, Name: "a", Versions: []int{1, 2}, Results: []*Result{{Rule: rule, Version: 2}, {Rule: rule, Version: 1}}}, OverWebSocket)
	all.Join(&Report{Side: Agent, Broken: "gone", Cause: CauseLate, Interrupted: true, Left: 3, Results: []*Result{{Rule: rule, Version: 1}}}, OverHTTP)
	var got []string
	for _, r := range all.Results {
		got = append(got, fmt.Sprint(r.Version, r.Over))
	}
	if all.Name != "s" || fmt.Sprint(all.Versions, got) != "[1 2] [1http 1websocket 2websocket]" || all.Mute != "over http: gone" ||
		all.Cause != CauseLate || !all.Interrupted || all.Left != 3 || !all.Failed() {
		t.Errorf("%+v %v", all, got)
	}
}
