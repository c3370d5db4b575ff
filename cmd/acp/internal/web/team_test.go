package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
)

// A school is a team whose issuer is a function.
type school struct {
	token string
	err   error
	to    string // where the browser was to be sent back
}

func (s *school) Name() string { return "id.example" }

func (s *school) Begin(_ context.Context, redirect, at string) (string, string, string, error) {
	s.to = redirect
	return "https://id.example/auth?x=1", "x", "kept-" + at, s.err
}

func (s *school) Finish(_ context.Context, kept string, q url.Values) (string, string, error) {
	if q.Get("error") != "" {
		return "", "", identity.ErrDenied
	}
	if q.Get("code") != "right" {
		return "", "", fmt.Errorf("%w: the code is another one", identity.ErrCredential)
	}
	return s.token, strings.TrimPrefix(kept, "kept-"), s.err
}

func (s *school) Authenticate(_ context.Context, token string) (identity.Principal, error) {
	if token != s.token {
		return identity.Principal{}, identity.ErrCredential
	}
	return identity.Principal{Kind: identity.KindTeam, User: "oidc:jo", Device: "jo", Role: identity.Prompter, Expires: time.Now().Add(time.Hour)}, nil
}

func newSchool(t *testing.T) (*desk, *school) {
	t.Helper()
	d, s := newDesk(t), &school{token: "a.b.c"}
	d.page.cfg.Team, d.page.cfg.Gate.Team = s, s
	d.page.cfg.Authenticate = d.page.cfg.Gate.Authenticate
	return d, s
}

// TestToIssuer: the page sends a browser to the issuer, and nobody else does; the issuer sends it back to this server.
func TestToIssuer(t *testing.T) {
	from := func(origin string) string { return "/login/team?at=s_1&from=" + url.QueryEscape(origin) }
	page := []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "navigate"}
	for _, tt := range []struct {
		name, method, path string
		head               []string
		status             int
		to                 string
	}{
		{"the page", "GET", from("http://127.0.0.1:7842"), page, 303, "http://127.0.0.1:7842/login/team/back"},
		{"in front of a proxy", "GET", from("https://agents.example"), page, 303, "https://agents.example/login/team/back"},
		{"another site", "GET", from("http://127.0.0.1:7842"), []string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
		{"an address that was typed", "GET", from("http://127.0.0.1:7842"), []string{"Sec-Fetch-Site", "none"}, 403, ""},
		{"a program", "GET", from("http://127.0.0.1:7842"), nil, 403, ""},
		{"back to somebody else", "GET", from("https://evil.example"), page, 400, ""},
		{"back to nobody", "GET", "/login/team", page, 400, ""},
		{"to another page", "GET", from("http://127.0.0.1:7842") + "&at=", page, 303, "http://127.0.0.1:7842/login/team/back"},
		{"to a page that is not a session", "GET", "/login/team?from=" + url.QueryEscape("http://127.0.0.1:7842") + "&at=" + url.QueryEscape("//evil.example/"), page, 400, ""},
		{"another method", "POST", from("http://127.0.0.1:7842"), own, 405, ""},
	} {
		d, s := newSchool(t)
		res := do(d.h, local(tt.method, tt.path, "", tt.head...))
		if res.StatusCode != tt.status || s.to != tt.to {
			t.Errorf("%s: %d, %q", tt.name, res.StatusCode, s.to)
		}
		if tt.status != 303 {
			continue
		}
		c := d.cookieOf(res)
		secure := strings.HasPrefix(tt.to, "https:")
		if res.Header.Get("Location") != "https://id.example/auth?x=1" || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure != secure || c.Secure != strings.HasPrefix(c.Name, "__Host-") || !strings.HasSuffix(c.Name, "-login-"+nameOf("x")) {
			t.Errorf("%s: %q, %v", tt.name, res.Header.Get("Location"), c)
		}
	}
	d := newDesk(t)
	for _, path := range []string{from("http://127.0.0.1:7842"), "/login/team/back?code=right"} {
		if res := do(d.h, local("GET", path, "", page...)); res.StatusCode != 404 {
			t.Errorf("without a team, %s: %d", path, res.StatusCode)
		}
	}
	d, s := newSchool(t)
	s.err = fmt.Errorf("no route")
	if res := do(d.h, local("GET", from("http://127.0.0.1:7842"), "", page...)); res.StatusCode != 503 || len(res.Cookies()) > 0 {
		t.Error(res.StatusCode)
	}
}

// TestFromIssuer: the browser that has begun a login is a member of the team then, by a cookie as that of a device, and no
// other one is.
func TestFromIssuer(t *testing.T) {
	site := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}
	kept := "acp-7842-login-" + nameOf("x") + "=kept-s_1"
	for _, tt := range []struct {
		name, path, cookie string
		change             func(*school)
		status             int
	}{
		{"the browser", "?code=right&state=x", kept, nil, 303},
		{"another browser", "?code=right&state=x", "", nil, 403},
		{"another tab", "?code=right&state=y", kept, nil, 403},
		{"two cookies", "?code=right&state=x", kept + "; " + kept, nil, 403},
		{"another code", "?code=wrong&state=x", kept, nil, 403},
		{"denied", "?code=right&state=x", kept, func(s *school) { s.err = identity.ErrDenied }, 403},
		{"no issuer", "?code=right&state=x", kept, func(s *school) { s.err = context.DeadlineExceeded }, 503},
		{"a large token", "?code=right&state=x", kept, func(s *school) { s.token = "a.b." + strings.Repeat("c", maxTeamToken) }, 403},
	} {
		d, s := newSchool(t)
		if tt.change != nil {
			tt.change(s)
		}
		head := site
		if tt.cookie != "" {
			head = append(head[:len(head):len(head)], "Cookie", tt.cookie)
		}
		res := do(d.h, local("GET", "/login/team/back"+tt.path, "", head...))
		var set *http.Cookie
		for _, c := range res.Cookies() {
			if c.Name == "acp-7842" {
				set = c
			}
		}
		if res.StatusCode != tt.status || (set != nil) != (tt.status == 303) {
			t.Errorf("%s: %d, %v", tt.name, res.StatusCode, set)
		}
		if tt.status != 303 {
			continue
		}
		if res.Header.Get("Location") != "/#/s_1" || set.SameSite != http.SameSiteStrictMode || !set.HttpOnly || set.MaxAge < 3500 || set.MaxAge > 3600 {
			t.Errorf("%q, %v", res.Header.Get("Location"), set)
		}
		who := func(site string) (*http.Response, answer) {
			res := do(d.h, local("GET", "/whoami", "", "Cookie", "acp-7842="+set.Value, "Sec-Fetch-Site", site))
			return res, d.decode(res)
		}
		if _, a := who("same-origin"); a.User != "oidc:jo" || a.Role != identity.Prompter || a.Team != "id.example" {
			t.Errorf("%+v", a)
		}
		if res, _ := who("cross-site"); res.StatusCode != 403 {
			t.Error("another site is the user, too", res.StatusCode)
		}
		s.token = "another.one.now"
		if res, a := who("same-origin"); res.StatusCode != 401 || a.Team != "id.example" {
			t.Error(res.StatusCode, a)
		}
		if res := do(d.h, local("POST", "/logout", "", append([]string{"Cookie", "acp-7842=" + set.Value}, own...)...)); res.StatusCode != 204 || d.cookieOf(res).MaxAge != -1 {
			t.Error(res.StatusCode)
		}
	}
}

// TestTeamThrottled: logins that fail are throttled, whatever is wrong with them, and do not fill the audit log.
func TestTeamThrottled(t *testing.T) {
	for _, query := range []string{"?code=wrong&state=x", "?error=access_denied&state=x"} {
		d, s := newSchool(t)
		s.err = nil
		last := 0
		for range 15 {
			res := do(d.h, local("GET", "/login/team/back"+query, "", "Cookie", "acp-7842-login-"+nameOf("x")+"=kept-"))
			last = res.StatusCode
		}
		if last != 429 {
			t.Errorf("%s: %d", query, last)
		}
		if err := audit.Read(d.dir, func(e audit.Entry) error {
			t.Errorf("%s: %+v", query, e)
			return nil
		}); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}

// TestFormerDevice: a browser that was a device is none any more once it is a member of the team.
func TestFormerDevice(t *testing.T) {
	d, _ := newSchool(t)
	_, credential := d.add("old", identity.Owner, time.Hour)
	res := do(d.h, local("GET", "/login/team?from="+url.QueryEscape("http://127.0.0.1:7842"), "", "Sec-Fetch-Site", "same-origin", "Cookie", "acp-7842="+credential))
	c := d.cookieOf(res)
	if _, err := d.store.Authenticate(t.Context(), credential); err != nil {
		t.Fatal(err)
	}
	res = do(d.h, local("GET", "/login/team/back?code=right&state=x", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Cookie", c.Name+"="+c.Value))
	if res.StatusCode != 303 {
		t.Fatal(res.StatusCode)
	}
	if _, err := d.store.Authenticate(t.Context(), credential); err == nil {
		t.Error("the device is there still")
	}
}
