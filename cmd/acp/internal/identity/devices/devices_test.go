package devices

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/cmd/acp/internal/identity"
	"github.com/goacp/acp/cmd/acp/internal/identity/audit"
	"github.com/goacp/acp/internal/leaktest"
	"github.com/goacp/acp/jsonrpc"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A desk is a server of the user me with some devices.
type desk struct {
	*testing.T
	Methods
	dir     string
	devices map[string]identity.Device
	as      identity.Principal // who asks
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{T: t, dir: t.TempDir(), devices: make(map[string]identity.Device)}
	s, err := identity.Open(t.Context(), d.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	d.Methods = Methods{Store: s, Audit: audit.Open(d.dir), User: "me", Who: func(context.Context) identity.Principal { return d.as }}
	for _, add := range []struct {
		name, user string
		role       identity.Role
		scope      identity.Scope
	}{
		{"browser", "me", identity.Owner, identity.Scope{}}, {"phone", "me", identity.Approver, identity.Scope{}},
		{"kiosk", "me", identity.Owner, identity.Scope{Agents: []string{"gemini"}}},
		{"jo-browser", "jo", identity.Owner, identity.Scope{}}, {"jo-phone", "jo", identity.Viewer, identity.Scope{}},
	} {
		device, _, err := s.Add(t.Context(), add.name, identity.Grant{User: add.user, Role: add.role, Scope: add.scope})
		if err != nil {
			t.Fatal(err)
		}
		d.devices[add.name] = device
	}
	return d
}

// who is somebody by name: a device, or one of those who have none.
func (d *desk) who(name string) identity.Principal {
	switch name {
	case "token":
		return identity.Principal{Kind: identity.KindLocal, User: "me", Role: identity.Owner}
	case "jo on the socket":
		return identity.Principal{Kind: identity.KindLocal, User: "jo", Role: identity.Owner}
	case "team":
		return identity.Principal{Kind: identity.KindTeam, User: "oidc:me", Device: d.devices["phone"].ID, Role: identity.Owner}
	case "nobody":
		return identity.Principal{}
	}
	return d.devices[name].Principal()
}

// reason returns the reason of a failure, or "params" for parameters that are wrong, or "".
func reason(err error) string {
	if f, ok := errors.AsType[*jsonrpc.Failure](err); ok && f.Reason != "" {
		return f.Reason
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code == jsonrpc.CodeInvalidParams {
		return "params"
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// TestRoles: who sees, revokes and pairs which devices.
func TestRoles(t *testing.T) {
	all := "jo-browser jo-phone browser kiosk phone"
	for _, tt := range []struct {
		name, sees string
		pairs      bool
	}{
		{"browser", all, true}, {"token", all, true}, {"phone", "phone", false}, {"kiosk", "kiosk", false},
		{"jo-browser", "jo-browser jo-phone", true}, {"jo on the socket", "jo-browser jo-phone", true}, {"jo-phone", "jo-phone", false},
		{"team", "", false}, {"nobody", "", false},
	} {
		d := newDesk(t)
		d.as = d.who(tt.name)
		got, err := d.list(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, one := range got.Devices {
			names = append(names, one.Name)
			if one.This != (one.Name == tt.name) {
				t.Errorf("%s: %s is this: %v", tt.name, one.Name, one.This)
			}
		}
		if diff := cmp.Diff(tt.sees, strings.Join(names, " ")); diff != "" {
			t.Errorf("%s sees %s", tt.name, diff)
		}
		_, err = d.pair(t.Context(), &PairRequest{})
		if want := map[bool]string{false: "role"}[tt.pairs]; reason(err) != want {
			t.Errorf("%s pairs: %v", tt.name, err)
		}
		for name, device := range d.devices {
			_, err := d.revoke(t.Context(), &RevokeRequest{ID: device.ID})
			want := "params"
			if strings.Contains(" "+tt.sees+" ", " "+name+" ") {
				want = ""
			}
			if reason(err) != want {
				t.Errorf("%s revokes %s: %v", tt.name, name, err)
			}
			if _, err := d.Store.Device(t.Context(), device.ID); (err != nil) != (want == "") {
				t.Errorf("%s revokes %s: %v", tt.name, name, err)
			}
		}
	}
}

// TestPair: a ticket, what happens to it, and the device.
func TestPair(t *testing.T) {
	d := newDesk(t)
	if err := d.Store.Announce(t.Context(), identity.Endpoint{URL: "https://agents.example/acp"}); err != nil {
		t.Fatal(err)
	}
	d.as = d.who("browser")
	made, err := d.pair(t.Context(), &PairRequest{Role: "viewer", Name: "tablet", Agents: []string{"gemini"}, ExpiresIn: 3600})
	if err != nil {
		t.Fatal(err)
	}
	if made.State != "open" || len(made.Code) != 6 || made.Link != "https://agents.example/pair#t="+made.Ticket || made.Expires.IsZero() {
		t.Errorf("%+v", made)
	}
	ask := func(decide string) *PairAnswer {
		t.Helper()
		got, err := d.pair(t.Context(), &PairRequest{ID: made.ID, Decide: decide})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := ask(""); got.State != "open" || got.Code != "" || got.Ticket != "" {
		t.Errorf("%+v", got)
	}
	if got := ask("approve"); got.State != "open" {
		t.Errorf("there is nothing to approve: %+v", got)
	}
	claim := identity.Claim{Ticket: made.Ticket, Secret: "0123456789abcdef", Name: "Safari on iPad", Address: "192.0.2.1"}
	if _, _, err := d.Store.Redeem(t.Context(), claim); !errors.Is(err, identity.ErrWaiting) {
		t.Fatal(err)
	}
	if got := ask(""); got.State != "claimed" || got.Claimant != "Safari-on-iPad" || got.Address != "192.0.2.1" || got.Device != nil {
		t.Errorf("%+v", got)
	}
	for _, other := range []string{"jo-browser", "phone"} {
		d.as = d.who(other)
		if _, err := d.pair(t.Context(), &PairRequest{ID: made.ID, Decide: "approve"}); err == nil {
			t.Error(other, "may approve")
		}
	}
	d.as = d.who("browser")
	if got := ask("approve"); got.State != "approved" {
		t.Errorf("%+v", got)
	}
	device, _, err := d.Store.Redeem(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	want := identity.Device{User: "me", Name: "tablet", Role: identity.Viewer, Scope: identity.Scope{Agents: []string{"gemini"}}}
	got := ask("")
	if got.State != "redeemed" || got.Device == nil || got.Device.Expires.Sub(got.Device.Created) != time.Hour {
		t.Fatalf("%+v", got)
	}
	got.Device.ID, got.Device.Created, got.Device.Expires = "", time.Time{}, time.Time{}
	if diff := cmp.Diff(&want, got.Device); diff != "" {
		t.Error(diff)
	}
	if _, err := d.revoke(t.Context(), &RevokeRequest{ID: device.ID}); err != nil {
		t.Error(err)
	}
	if got := ask(""); got.State != "redeemed" || got.Device != nil {
		t.Errorf("%+v", got)
	}
	var log []string
	if err := audit.Read(d.dir, func(e audit.Entry) error {
		log = append(log, e.User+"/"+e.Device+" "+e.Action+" "+e.Detail)
		return nil
	}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"me/browser device.invite user me, role viewer", "me/browser device.revoke device tablet of me"}, log); diff != "" {
		t.Error(diff)
	}
}

// TestPairEnds: a ticket is denied or cancelled.
func TestPairEnds(t *testing.T) {
	d := newDesk(t)
	d.as = d.who("token")
	for _, tt := range []struct {
		decide, want string
		claimed      bool
	}{{"cancel", "ended", false}, {"cancel", "ended", true}, {"deny", "open", false}, {"deny", "denied", true}} {
		made, err := d.pair(t.Context(), &PairRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if tt.claimed {
			_, _, err = d.Store.Redeem(t.Context(), identity.Claim{Ticket: made.Ticket, Secret: "0123456789abcdef"})
		}
		if tt.claimed != errors.Is(err, identity.ErrWaiting) {
			t.Fatal(err)
		}
		got, err := d.pair(t.Context(), &PairRequest{ID: made.ID, Decide: tt.decide})
		if err != nil || got.State != tt.want {
			t.Errorf("%+v: %+v %v", tt, got, err)
		}
	}
}

// TestManyCancelled: tickets that are made and cancelled, however many, and by whomever, make nobody lose another one; and
// what is remembered is bounded.
func TestManyCancelled(t *testing.T) {
	d := newDesk(t)
	d.as = d.who("browser")
	mine, err := d.pair(t.Context(), &PairRequest{})
	if err != nil {
		t.Fatal(err)
	}
	d.as = d.who("jo-browser")
	for range 2 * maxMade {
		made, err := d.pair(t.Context(), &PairRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.pair(t.Context(), &PairRequest{ID: made.ID, Decide: "cancel"}); err != nil || got.State != stateEnded {
			t.Fatal(got, err)
		}
	}
	if n := len(d.made); n > maxMade {
		t.Errorf("%d tickets are remembered", n)
	}
	d.as = d.who("browser")
	if got, err := d.pair(t.Context(), &PairRequest{ID: mine.ID}); err != nil || got.State != "open" {
		t.Errorf("%+v, %v", got, err)
	}
	for i := range maxMade {
		d.made[fmt.Sprint(i)] = made{user: "me", expires: mine.Expires}
	}
	if _, err := d.pair(t.Context(), &PairRequest{}); reason(err) != "params" {
		t.Error("there is no bound:", err)
	}
	if got, err := d.pair(t.Context(), &PairRequest{ID: mine.ID}); err != nil || got.State != "open" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRefused: requests that are malformed, and tickets beyond the bound, are refused.
func TestRefused(t *testing.T) {
	d := newDesk(t)
	d.as = d.who("browser")
	for name, req := range map[string]*PairRequest{
		"a role": {Role: "king"}, "no role": {Role: "none"}, "a name": {Name: "a b"}, "a name that is taken": {Name: "phone"}, "a time": {ExpiresIn: -1},
		"a long time": {ExpiresIn: 1 << 62}, "a ticket": {ID: "x"}, "many agents": {Agents: make([]string, 65)}, "an agent": {Agents: []string{""}},
	} {
		if _, err := d.pair(t.Context(), req); reason(err) != "params" {
			t.Errorf("%s: %v", name, err)
		}
	}
	made, err := d.pair(t.Context(), &PairRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.pair(t.Context(), &PairRequest{ID: made.ID, Decide: "perhaps"}); reason(err) != "params" {
		t.Error(err)
	}
	for range identity.MaxTickets - 1 {
		if _, err := d.pair(t.Context(), &PairRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.pair(t.Context(), &PairRequest{}); reason(err) != "params" {
		t.Error("there is no bound:", err)
	}
	if _, err := d.revoke(t.Context(), &RevokeRequest{}); reason(err) != "params" {
		t.Error(err)
	}
	if err := d.Store.Close(); err != nil {
		t.Error(err)
	}
	if _, err := d.list(t.Context(), nil); reason(err) != "unavailable" {
		t.Error(err)
	}
	if _, err := d.revoke(t.Context(), &RevokeRequest{ID: made.ID}); reason(err) != "unavailable" {
		t.Error(err)
	}
	if _, err := d.pair(t.Context(), &PairRequest{}); reason(err) != "unavailable" {
		t.Error(err)
	}
}
