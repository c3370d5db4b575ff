package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acphttp"
	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
)

const serverToken = "the-token-of-the-server"

// A desk is a page with devices.
type desk struct {
	t     *testing.T
	dir   string
	page  *Page
	store *identity.Store
	h     http.Handler // the page; what is behind it says whose token it gets
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir := t.TempDir()
	s, err := identity.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	gate := &identity.Gate{Store: s, Audit: audit.Open(dir), Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	authenticate := func(r *http.Request) (string, error) {
		switch r.Header.Get("Authorization") {
		case "Bearer " + serverToken:
			return "token", nil
		case "Bearer of-a-team":
			return identity.Principal{Kind: identity.KindTeam, User: "oidc:jo", Role: identity.Viewer}.Key(), nil
		}
		return gate.Authenticate(r)
	}
	d := &desk{t: t, dir: dir, store: s}
	d.page = New(Config{Gate: gate, Authenticate: authenticate, Owner: "token", User: "me", Origins: []string{"https://agents.example", "https://friend.example"}})
	d.h = d.page.Others(behind)
	return d
}

// add adds a device.
func (d *desk) add(name string, role identity.Role, lifetime time.Duration) (identity.Device, string) {
	d.t.Helper()
	device, credential, err := d.store.Add(d.t.Context(), name, identity.Grant{User: "me", Role: role, Lifetime: lifetime})
	if err != nil {
		d.t.Fatal(err)
	}
	return device, credential
}

// own are the headers of a request of the page.
var own = []string{"Origin", "http://127.0.0.1:7842", "Sec-Fetch-Site", "same-origin", "Content-Type", "application/json"}

func (d *desk) login(body string, head ...string) *http.Response {
	return do(d.h, local("POST", "/login", body, append(head, own...)...))
}

func (d *desk) decode(res *http.Response) (a answer) {
	d.t.Helper()
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		d.t.Error(err)
	}
	return a
}

// cookieOf returns the only cookie that an answer sets.
func (d *desk) cookieOf(res *http.Response) *http.Cookie {
	d.t.Helper()
	all := res.Cookies()
	if len(all) != 1 {
		d.t.Fatalf("%d: %d cookies are set", res.StatusCode, len(all))
	}
	return all[0]
}

// TestLogin: the three ways to become a device.
func TestLogin(t *testing.T) {
	d := newDesk(t)
	grant := identity.Grant{User: "jo", Role: identity.Prompter}
	code, err := d.store.NewTicket(t.Context(), "", grant)
	if err != nil {
		t.Fatal(err)
	}
	link, err := d.store.NewLink(t.Context(), identity.Grant{User: "me", Role: identity.Owner, Lifetime: time.Hour}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0"
	for _, tt := range []struct {
		name string
		body string
		want answer
	}{
		{"with the code", `{"code":"` + code.Code[:3] + " " + code.Code[3:] + `","name":"Jo's phone"}`, answer{User: "jo", Name: "Jo-s-phone", Role: identity.Prompter}},
		{"with a link", `{"ticket":"` + link.Ticket + `"}`, answer{User: "me", Name: "Firefox-on-Linux", Role: identity.Owner}},
		{"with the token", `{"token":"` + serverToken + `"}`, answer{User: "me", Name: "Firefox-on-Linux-2", Role: identity.Owner}},
	} {
		res := d.login(tt.body, "User-Agent", firefox)
		got := d.decode(res)
		c := d.cookieOf(res)
		p, err := d.store.Authenticate(t.Context(), c.Value)
		if err != nil || p.Device != got.Device || res.StatusCode != 200 {
			t.Fatalf("%s: %d %+v: %v", tt.name, res.StatusCode, got, err)
		}
		if (tt.want.User == "jo") != got.Expires.IsZero() {
			t.Errorf("%s: it expires %v", tt.name, got.Expires)
		}
		if strings.Contains(tt.name, "token") && time.Until(got.Expires) < Lifetime-time.Hour {
			t.Errorf("%s: it expires %v", tt.name, got.Expires)
		}
		got.Device, got.Expires = "", time.Time{}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestApproval: a browser with a ticket waits until it was approved.
func TestApproval(t *testing.T) {
	d := newDesk(t)
	ticket, err := d.store.NewTicket(t.Context(), "phone", identity.Grant{User: "me", Role: identity.Approver})
	if err != nil {
		t.Fatal(err)
	}
	body := `{"ticket":"` + ticket.Ticket + `","secret":"0123456789abcdef"}`
	for range 2 {
		res := d.login(body)
		if a := d.decode(res); res.StatusCode != 202 || a.State != "waiting" || res.Header.Get("Retry-After") == "" || len(res.Cookies()) > 0 {
			t.Errorf("%d %+v", res.StatusCode, a)
		}
	}
	if err := d.store.Approve(t.Context(), ticket.ID); err != nil {
		t.Fatal(err)
	}
	if res := d.login(strings.Replace(body, "cdef", "0000", 1)); res.StatusCode != 403 {
		t.Error("somebody else got it:", res.StatusCode)
	}
	if res := d.login(body); res.StatusCode != 200 || d.decode(res).Name != "phone" {
		t.Error(res.StatusCode)
	}
}

// TestLoginRefused: malformed requests to log in, and requests of other sites, are refused.
func TestLoginRefused(t *testing.T) {
	d := newDesk(t)
	_, credential := d.add("laptop", identity.Owner, 0)
	right := `{"token":"` + serverToken + `"}`
	json, here := []string{"Content-Type", "application/json"}, []string{"Sec-Fetch-Site", "same-origin"}
	with := func(all ...[]string) (head []string) {
		for _, h := range all {
			head = append(head, h...)
		}
		return head
	}
	for _, tt := range []struct {
		name, method, body string
		head               []string
		want               int
	}{
		{"right", "POST", right, own, 200},
		{"without Origin", "POST", right, with(json, here), 200},
		{"an older browser", "POST", right, with(json, []string{"Origin", "http://127.0.0.1:7842"}), 200},
		{"a program", "POST", right, json, 403},
		{"a page elsewhere", "POST", right, with(json, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}), 403},
		{"a page of another server here", "POST", right, with(json, []string{"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"}), 403},
		{"a page that is allowed", "POST", right, with(json, []string{"Origin", "https://friend.example", "Sec-Fetch-Site", "cross-site"}), 403},
		{"a form", "POST", right, with(here, []string{"Content-Type", "text/plain"}), 415},
		{"no type", "POST", right, here, 415},
		{"by a link", "GET", "", own, 405},
		{"nothing", "POST", "{}", own, 400},
		{"no JSON", "POST", "token", own, 400},
		{"two ways", "POST", `{"token":"a","code":"1"}`, own, 400},
		{"too much", "POST", `{"token":"` + strings.Repeat("a", maxBody) + `"}`, own, 413},
		{"another host", "POST", right, with([]string{"Host", "evil.example"}, json, here), 421},
		{"a wrong token", "POST", `{"token":"guess"}`, own, 403},
		{"the token of somebody in a team", "POST", `{"token":"of-a-team"}`, own, 403},
		{"the credential of a device", "POST", `{"token":"` + credential + `"}`, own, 403},
		{"a wrong code", "POST", `{"code":"000000"}`, own, 403},
		{"a wrong ticket", "POST", `{"ticket":"acpt_x","secret":"0123456789abcdef"}`, own, 403},
	} {
		res := do(d.h, local(tt.method, "/login", tt.body, tt.head...))
		text := body(t, res)
		if res.StatusCode != tt.want || tt.want != 200 && len(res.Cookies()) > 0 || strings.Contains(text, serverToken) {
			t.Errorf("%s: %d %s, want %d", tt.name, res.StatusCode, text, tt.want)
		}
		if res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Content-Security-Policy") != policy {
			t.Errorf("%s: %v", tt.name, res.Header)
		}
	}
}

// TestLoginThrottled: nobody guesses for long, and others are not kept out.
func TestLoginThrottled(t *testing.T) {
	d := newDesk(t)
	status := 0
	for n := range 11 {
		res := d.login(`{"token":"guess-` + strings.Repeat("x", n) + `"}`)
		if status = res.StatusCode; status == 429 && res.Header.Get("Retry-After") == "" {
			t.Error("for how long?")
		}
	}
	if status != 429 {
		t.Error("the 11th guess:", status)
	}
	if res := d.login(`{"token":"` + serverToken + `"}`); res.StatusCode != 429 {
		t.Error("the right one, after that:", res.StatusCode)
	}
	r := local("POST", "/login", `{"token":"`+serverToken+`"}`, own...)
	r.RemoteAddr = "127.0.0.2:9"
	if res := do(d.h, r); res.StatusCode != 200 {
		t.Error("another address:", res.StatusCode)
	}
}

// TestReplaced: a browser that logs in again is no longer what it was.
func TestReplaced(t *testing.T) {
	d := newDesk(t)
	former, credential := d.add("phone", identity.Viewer, 0)
	other, _ := d.add("laptop", identity.Viewer, 0)
	if res := d.login(`{"token":"guess"}`, "Cookie", "acp-7842="+credential); res.StatusCode != 403 {
		t.Fatal(res.StatusCode)
	}
	if _, err := d.store.Device(t.Context(), former.ID); err != nil {
		t.Error("a wrong token has revoked the device:", err)
	}
	if res := d.login(`{"token":"`+serverToken+`"}`, "Cookie", "acp-7842="+credential); res.StatusCode != 200 {
		t.Fatal(res.StatusCode)
	}
	if _, err := d.store.Device(t.Context(), former.ID); !errors.Is(err, identity.ErrNotFound) {
		t.Error("the former device is there:", err)
	}
	if _, err := d.store.Device(t.Context(), other.ID); err != nil {
		t.Error(err)
	}
}

// TestWhoami: the page learns who it is, and the browser keeps the cookie for longer.
func TestWhoami(t *testing.T) {
	d := newDesk(t)
	device, credential := d.add("phone", identity.Approver, 0)
	brief, short := d.add("tablet", identity.Viewer, 100*time.Hour)
	_, gone := d.add("gone", identity.Viewer, 0)
	if _, err := d.store.Revoke(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	who := answer{User: "me", Device: device.ID, Name: "phone", Role: identity.Approver}
	for _, tt := range []struct {
		name   string
		head   []string
		status int
		want   answer
		cookie int // Max-Age: 0 if none is set
	}{
		{"a device", append([]string{"Cookie", "acp-7842=" + credential}, own...), 200, who, int(longest / time.Second)},
		{"that expires", append([]string{"Cookie", "acp-7842=" + short}, own...), 200, answer{User: "me", Device: brief.ID, Name: "tablet", Role: identity.Viewer, Expires: brief.Expires}, 360000},
		{"that was revoked", append([]string{"Cookie", "acp-7842=" + gone}, own...), 401, answer{Error: "the token is wrong, was revoked or has expired"}, -1},
		{"nobody", own, 401, answer{Error: "the token is missing"}, 0},
		{"a cookie of another server", append([]string{"Cookie", "acp-1=" + credential}, own...), 401, answer{Error: "the token is missing"}, 0},
		{"a page elsewhere", []string{"Cookie", "acp-7842=" + credential, "Origin", "https://evil.example"}, 403, answer{Error: errForeign.Text}, 0},
		{"nobody says whose request it is", []string{"Cookie", "acp-7842=" + credential}, 403, answer{Error: errForeign.Text}, 0},
		{"a program with the token of the server", []string{"Authorization", "Bearer " + serverToken}, 200, answer{User: "me", Role: identity.Owner}, 0},
		{"a program with a credential", []string{"Authorization", "Bearer " + credential}, 200, who, 0},
		{"somebody in a team", []string{"Authorization", "Bearer of-a-team"}, 200, answer{User: "oidc:jo", Role: identity.Viewer}, 0},
	} {
		res := do(d.h, local("GET", "/whoami", "", tt.head...))
		if diff := cmp.Diff(tt.want, d.decode(res)); diff != "" || res.StatusCode != tt.status {
			t.Errorf("%s: %d %s", tt.name, res.StatusCode, diff)
		}
		age := 0
		for _, c := range res.Cookies() {
			age = c.MaxAge
		}
		if age > tt.cookie || age < tt.cookie-36000 || (age == 0) != (tt.cookie == 0) { // some time has passed
			t.Errorf("%s: the cookie lasts %d s", tt.name, age)
		}
	}
	if res := do(d.h, local("POST", "/whoami", "", own...)); res.StatusCode != 405 || res.Header.Get("Allow") != "GET" {
		t.Error(res.StatusCode)
	}
}

// TestLogout: the device is revoked, and the browser forgets everything of this server but no cookie of others.
func TestLogout(t *testing.T) {
	d := newDesk(t)
	device, credential := d.add("phone", identity.Viewer, 0)
	cookie := []string{"Cookie", "acp-7842=" + credential}
	for _, tt := range []struct {
		name, method string
		head         []string
		want         int
	}{
		{"by a link", "GET", append(own, cookie...), 405},
		{"a page elsewhere", "POST", append([]string{"Origin", "https://evil.example"}, cookie...), 403},
		{"a page of another server here", "POST", append([]string{"Sec-Fetch-Site", "same-site"}, cookie...), 403},
		{"a program", "POST", cookie, 403},
	} {
		if res := do(d.h, local(tt.method, "/logout", "", tt.head...)); res.StatusCode != tt.want || res.Header.Get("Clear-Site-Data") != "" || len(res.Cookies()) > 0 {
			t.Errorf("%s: %d %v", tt.name, res.StatusCode, res.Header)
		}
	}
	if _, err := d.store.Device(t.Context(), device.ID); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"the first time", "again"} {
		res := do(d.h, local("POST", "/logout", "", append(own, cookie...)...))
		c := d.cookieOf(res)
		if res.StatusCode != 204 || res.Header.Get("Clear-Site-Data") != `"cache", "storage"` || c.Name != "acp-7842" || c.MaxAge != -1 || c.Value != "" {
			t.Errorf("%s: %d %v", name, res.StatusCode, res.Header)
		}
		if _, err := d.store.Device(t.Context(), device.ID); !errors.Is(err, identity.ErrNotFound) {
			t.Errorf("%s: the device is there: %v", name, err)
		}
	}
	if res := do(d.h, local("POST", "/logout", "", own...)); res.StatusCode != 204 || res.Header.Get("Clear-Site-Data") == "" {
		t.Error("without a cookie:", res.StatusCode)
	}
	if err := audit.Read(d.dir, func(e audit.Entry) error {
		if e.Action != "device.revoke" || e.Device != "phone" || e.Detail != "logged out" {
			t.Errorf("%+v", e)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestUnavailable: a store that cannot be used is said to be so.
func TestUnavailable(t *testing.T) {
	d := newDesk(t)
	_, credential := d.add("phone", identity.Viewer, 0)
	var log bytes.Buffer
	d.page.cfg.Authenticate = func(*http.Request) (string, error) {
		return "", &acphttp.StatusError{Status: 503, Text: "not now", RetryAfter: 5 * time.Second}
	}
	res := do(d.h, local("GET", "/whoami", "", append(own, "Cookie", "acp-7842="+credential)...))
	if res.StatusCode != 503 || res.Header.Get("Retry-After") != "5" || len(res.Cookies()) > 0 {
		t.Error(res.StatusCode, res.Header, log.String())
	}
	if err := d.store.Close(); err != nil {
		t.Error(err)
	}
	res = do(d.h, local("POST", "/logout", "", append(own, "Cookie", "acp-7842="+credential)...))
	if res.StatusCode != 503 || res.Header.Get("Clear-Site-Data") == "" || d.cookieOf(res).MaxAge != -1 {
		t.Error(res.StatusCode, res.Header)
	}
}

// TestBrowser: what people call their browsers.
func TestBrowser(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15":                  "Safari on Mac",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile/15E148 Safari/604.1": "Chrome on iPhone",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0":          "Edge on Windows",
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36":                        "Chrome on Android",
		"Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0":                                                                 "Firefox on Linux",
		"curl/8": "browser", "": "browser",
	} {
		if got := browser(agent); got != want {
			t.Errorf("%s: %s", agent, got)
		}
	}
}

// FuzzLogin: whatever is sent, nobody gets in and nothing breaks.
func FuzzLogin(f *testing.F) {
	for _, seed := range []string{`{"token":"x"}`, `{"code":"123456"}`, `{"ticket":"acpt_x","secret":"y"}`, `{`, `[]`, `{"token":1}`, `{"name":"x"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := local("POST", "/login", text, own...)
		req, err := readLogin(nil, r)
		if said, ok := errors.AsType[*acphttp.StatusError](err); err != nil && (!ok || said.Status != 400 && said.Status != 413) {
			t.Error(err)
		}
		if proofs := req.Ticket != "" || req.Code != ""; err == nil && proofs == (req.Token != "") {
			t.Errorf("%+v", req)
		}
	})
}
