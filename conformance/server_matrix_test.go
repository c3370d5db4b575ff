package conformance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// basePrompts are those that make the agent of a base server do something.
var basePrompts = map[string]string{"text": "hi", "chunks": "count", "permission": "ask", "hang": "hang"}

// checkBase checks a base server that breaks a rule, or none.
func checkBase(t *testing.T, broken string, only ...string) *Report {
	t.Helper()
	report, err := CheckServer(context.Background(), serveBase(t, broken), Options{Only: only, Prompts: basePrompts, Versions: []int{1}})
	time.Sleep(time.Minute) // servers end in their own time, which stands still when the test returns
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// serverRules returns the rules for servers but for what needs TLS.
func serverRules() (all []*Rule) {
	for _, r := range builtin().rules {
		if r.Side == Server && !slices.Contains(r.Needs, "tls") {
			all = append(all, r)
		}
	}
	return all
}

// TestGoodServer holds that a server without a defect keeps all rules.
func TestGoodServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		report := checkBase(t, "")
		if report.Name != "base" || !slices.Equal(report.Versions, []int{1}) || report.Failed() {
			t.Errorf("%q %v %s", report.Name, report.Versions, report.Broken)
		}
		for _, r := range report.Results {
			if r.Status != Pass && !slices.Contains(r.Rule.Needs, "tls") {
				t.Errorf("%s: %s: %s\n%s", r.Rule.ID, r.Status, r.Why, seenText(r))
			}
		}
	})
}

// alsoBroken are the rules that a server breaks, too, that breaks one: there is no way
// around it.
var alsoBroken = map[string][]string{
	"initialize/error-dead":  {"initialize/error-no-id"},
	"initialize/id-unique":   {"initialize/apart", "delete/others"},
	"post/not-held":          {"routing/cancel"},
	"stream/head-at-once":    {"stream/accept-list", "stream/content-type", "stream/early-session", "stream/not-cached", "stream/unknown-session", "stream/reopen"},
	"websocket/malformed":    {"websocket/malformed-initialize"},
	"routing/order":          {"routing/queued-order"},
	"stream/unknown-session": {"stream/early-session"},
}

// TestBrokenServers holds that each rule fails on a server that breaks it, and that no
// other one does.
func TestBrokenServers(t *testing.T) {
	for _, rule := range serverRules() {
		name := strings.TrimPrefix(rule.ID, "server/")
		t.Run(strings.ReplaceAll(name, "/", "."), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				only := []string{rule.ID}
				for _, other := range serverRules() {
					if rule.ID != other.ID && meets(rule.ID, other.ID) && other.ID != "server/post/too-large" {
						only = append(only, other.ID)
					}
				}
				report := checkBase(t, name, only...)
				if report.Broken != "" {
					t.Fatal(report.Broken)
				}
				for _, r := range report.Results {
					switch {
					case r.Rule == rule && (r.Status != Fail || r.Why == "" || len(r.Saw) == 0 || strings.Contains(r.Why, "\n")):
						t.Errorf("%s: %q\n%s", r.Status, r.Why, seenText(r))
					case r.Rule == rule:
						t.Log(r.Why)
					case r.Status == Fail && !slices.Contains(alsoBroken[name], strings.TrimPrefix(r.Rule.ID, "server/")):
						t.Errorf("%s: %s\n%s", r.Rule.ID, r.Why, seenText(r))
					}
					for _, s := range r.Saw {
						if strings.Contains(s.Data, "base-secret") {
							t.Errorf("%s shows the token: %s", r.Rule.ID, s.Data)
						}
					}
				}
			})
		})
	}
}

// TestHTTP2Rule holds the rule that needs TLS.
func TestHTTP2Rule(t *testing.T) {
	for _, both := range []bool{true, false} {
		web := httptest.NewUnstartedServer(&baseServer{})
		web.EnableHTTP2 = both
		web.StartTLS()
		pool := x509.NewCertPool()
		pool.AddCert(web.Certificate())
		at := &Endpoint{URL: web.URL, TLS: &tls.Config{RootCAs: pool}, Header: map[string][]string{"Authorization": {baseToken}}}
		report, err := CheckServer(t.Context(), at, Options{Only: []string{"server/method/http2", "server/websocket/plain"}})
		web.Close()
		if err != nil {
			t.Fatal(err)
		}
		r := report.Result("server/method/http2", 0)
		if r == nil || (r.Status == Pass) != both || !both && r.Status != Fail {
			t.Errorf("HTTP/2 %v: %+v %s", both, r, report.Broken)
		}
		if r := report.Result("server/websocket/plain", 0); r == nil || r.Status != Pass {
			t.Errorf("WebSocket over TLS: %+v", r)
		}
	}
}
