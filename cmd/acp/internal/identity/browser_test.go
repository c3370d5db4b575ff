package identity

import (
	"errors"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
)

// entries returns the actions that are in an audit log.
func entries(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := audit.Read(dir, func(e audit.Entry) error {
		all = append(all, e.Action+" "+e.Device+" "+e.Detail)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEnrol: a right secret makes a device with a name of its own, and wrong ones are throttled.
func TestEnrol(t *testing.T) {
	dir := t.TempDir()
	g := &Gate{Store: open(t, dir), Audit: audit.Open(dir)}
	isRight := func(s string) bool { return s == "sesame" }
	grant := Grant{User: "me", Role: Owner, Lifetime: time.Hour}
	var first Device
	for i, want := range []string{"Firefox-on-Linux", "Firefox-on-Linux-2"} {
		d, token, err := g.Enrol(request("192.0.2.1:1", ""), "sesame", isRight, "Firefox on Linux", grant)
		if err != nil || d.Name != want || d.Expires.IsZero() || d.Role != Owner {
			t.Fatal(d, err)
		}
		if p, err := g.Store.Authenticate(t.Context(), token); err != nil || p.Device != d.ID {
			t.Error(p, err)
		}
		if i == 0 {
			first = d
		}
	}
	if err := g.Leave(t.Context(), first.Principal(), "logged out"); err != nil {
		t.Error(err)
	}
	if err := g.Leave(t.Context(), first.Principal(), "logged out"); err != nil {
		t.Error("twice:", err)
	}
	if _, err := g.Store.Device(t.Context(), first.ID); !errors.Is(err, ErrNotFound) {
		t.Error("the device is there:", err)
	}
	if err := g.Leave(t.Context(), Principal{Kind: KindLocal, User: "me", Role: Owner}, ""); err != nil {
		t.Error("who has no device:", err)
	}
	want := "device.pair Firefox-on-Linux role owner, with the token of the server;device.pair Firefox-on-Linux-2 role owner, with the token of the server;device.revoke Firefox-on-Linux logged out"
	if got := strings.Join(entries(t, dir), ";"); got != want {
		t.Error(got)
	}
	if _, _, err := g.Enrol(request("192.0.2.1:1", ""), "sesame", isRight, "x", Grant{User: "me"}); statusOf(err) != http.StatusServiceUnavailable {
		t.Error("a device without a role:", err)
	}
	for n := range throttleBurst {
		if _, _, err := g.Enrol(request("192.0.2.1:1", ""), strings.Repeat("x", n+1), isRight, "x", grant); statusOf(err) != http.StatusForbidden {
			t.Error(n, err)
		}
	}
	if _, _, err := g.Enrol(request("192.0.2.1:1", ""), "sesame", isRight, "x", grant); statusOf(err) != http.StatusTooManyRequests {
		t.Error("guessing is not throttled:", err)
	}
	if _, _, err := g.Enrol(request("192.0.2.2:1", ""), "sesame", isRight, "x", grant); err != nil {
		t.Error("another address:", err)
	}
	if _, _, err := new(Gate).Enrol(request("192.0.2.1:1", ""), "sesame", isRight, "x", grant); statusOf(err) != http.StatusServiceUnavailable {
		t.Error("without a store:", err)
	}
}

// TestLinks: whoever has a link gets a device, once and for a while.
func TestLinks(t *testing.T) {
	s := open(t, t.TempDir())
	grant := Grant{User: "me", Role: Owner, Lifetime: time.Hour}
	link := func() Ticket {
		t.Helper()
		l, err := s.NewLink(t.Context(), grant, 10*time.Minute)
		if err != nil || l.Code != "" {
			t.Fatal(l, err)
		}
		return l
	}
	l := link()
	for n := range MaxTries + 1 { // a guess at the code of somebody else's ticket does not end it
		if _, _, err := s.Redeem(t.Context(), Claim{Code: strings.Repeat("1", n)}); !errors.Is(err, ErrTicket) {
			t.Error(err)
		}
	}
	if _, _, err := s.Redeem(t.Context(), Claim{Ticket: l.Ticket[:len(l.Ticket)-1] + "0", Secret: "0123456789abcdef"}); !errors.Is(err, ErrTicket) {
		t.Error("another ticket:", err)
	}
	d, token, err := s.Redeem(t.Context(), Claim{Ticket: l.Ticket, Name: "Safari"})
	if err != nil || d.Role != Owner || d.Name != "Safari" || d.Expires.IsZero() || !IsCredential(token) {
		t.Fatal(d, err)
	}
	if _, _, err := s.Redeem(t.Context(), Claim{Ticket: l.Ticket}); !errors.Is(err, ErrTicket) {
		t.Error("twice:", err)
	}
	all := []Ticket{link(), link(), link(), link(), link()}
	if _, err := s.NewTicket(t.Context(), "", grant); err != nil {
		t.Error("links are in the way of codes:", err)
	}
	if _, _, err := s.Redeem(t.Context(), Claim{Ticket: all[0].Ticket}); !errors.Is(err, ErrTicket) {
		t.Error("there is no bound:", err)
	}
	if err := s.Cancel(t.Context(), all[1].ID); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Redeem(t.Context(), Claim{Ticket: all[1].Ticket}); !errors.Is(err, ErrTicket) {
		t.Error("it was cancelled:", err)
	}
	if _, _, err := s.Redeem(t.Context(), Claim{Ticket: all[4].Ticket}); err != nil {
		t.Error(err)
	}
	for _, bad := range []time.Duration{0, -1, 2 * time.Hour} {
		if _, err := s.NewLink(t.Context(), grant, bad); err == nil {
			t.Error("valid for", bad)
		}
	}
	if _, err := s.NewLink(t.Context(), Grant{User: "me"}, time.Minute); err == nil {
		t.Error("without a role")
	}
}

// TestLinkExpires: after its time a link is worth nothing.
func TestLinkExpires(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "identity")
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.NewLink(t.Context(), Grant{User: "me", Role: Owner}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, _, err := s.Redeem(t.Context(), Claim{Ticket: l.Ticket}); !errors.Is(err, ErrTicket) {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestEncrypted: a proxy is believed if it is listed.
func TestEncrypted(t *testing.T) {
	g := &Gate{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, tt := range []struct {
		from, proto string
		want        bool
	}{{"10.1.1.1:1", "https", true}, {"10.1.1.1:1", "http", false}, {"10.1.1.1:1", "", false}, {"192.0.2.1:1", "https", false}, {"@", "https", false}} {
		if got := g.Encrypted(request(tt.from, "", "X-Forwarded-Proto", tt.proto)); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestPageURL: where the page is, if there is one.
func TestPageURL(t *testing.T) {
	for e, want := range map[Endpoint]string{
		{URL: "https://agents.example/acp", Page: true}: "https://agents.example/", {URL: "https://agents.example/acp"}: "", {URL: "unix:s", Page: true}: "", {}: "",
	} {
		if got := e.PageURL(); got != want {
			t.Errorf("%+v: %s", e, got)
		}
	}
}
