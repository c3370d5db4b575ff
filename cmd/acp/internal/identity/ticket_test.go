package identity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ticket(t *testing.T, s *Store, name string) Ticket {
	t.Helper()
	tk, err := s.NewTicket(t.Context(), name, Grant{User: "me", Role: Prompter, Scope: Scope{Agents: []string{"demo"}}, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

func progress(t *testing.T, s *Store, tk Ticket) Progress {
	t.Helper()
	p, err := s.Progress(t.Context(), tk.ID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wrong returns a code that no ticket has.
func wrong(tks ...Ticket) string {
	for n := 0; ; n++ {
		code, same := fmt.Sprintf("%06d", n), false
		for _, tk := range tks {
			same = same || tk.Code == code
		}
		if !same {
			return code
		}
	}
}

const secret = "chosen by the device"

// TestRedeem: a code gives a device its credential once, with and without the ticket.
func TestRedeem(t *testing.T) {
	for _, withTicket := range []bool{false, true} {
		dir := t.TempDir()
		here, there := open(t, dir), open(t, dir)
		tk := ticket(t, here, "")
		c := Claim{Code: tk.Code, Name: "Jo's Phone!", Address: "192.0.2.1"}
		if withTicket {
			c.Ticket = tk.Ticket
		}
		d, credential, err := there.Redeem(t.Context(), c)
		want := Principal{Kind: KindDevice, User: "me", Device: d.ID, Name: "Jo-s-Phone", Role: Prompter, Scope: Scope{Agents: []string{"demo"}}, Expires: d.Created.Add(time.Hour)}
		if diff := cmp.Diff(want, d.Principal()); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if p, err := here.Authenticate(t.Context(), credential); err != nil || p.Key() != want.Key() {
			t.Error(p, err)
		}
		if p := progress(t, here, tk); p.State != TicketRedeemed || p.Device != d.ID {
			t.Error(p)
		}
		for _, again := range []Claim{c, {Code: tk.Code}, {Ticket: tk.Ticket, Secret: secret}} {
			if _, credential, err := there.Redeem(t.Context(), again); !errors.Is(err, ErrTicket) || credential != "" {
				t.Error("it was redeemed again", err)
			}
		}
	}
}

// TestTries: five wrong codes make a code void, whoever sends them; a wrong code without a ticket counts against all. A ticket
// ends after as many that come with it only: nobody guesses it, and strangers must not end all pairing.
func TestTries(t *testing.T) {
	s := open(t, t.TempDir())
	one, two, three := ticket(t, s, ""), ticket(t, s, ""), ticket(t, s, "")
	bad := wrong(one, two, three)
	for i := range MaxTries + 2 {
		if _, _, err := s.Redeem(t.Context(), Claim{Code: bad}); !errors.Is(err, ErrTicket) {
			t.Error(err)
		}
		if p := progress(t, s, one); p.Tries != min(i+1, MaxTries) || p.State != TicketOpen || p.Void != (i+1 >= MaxTries) {
			t.Error(p)
		}
	}
	if _, _, err := s.Redeem(t.Context(), Claim{Code: one.Code}); !errors.Is(err, ErrTicket) {
		t.Errorf("a code that is void: %v", err)
	}
	if _, _, err := s.Redeem(t.Context(), Claim{Ticket: one.Ticket, Code: one.Code}); err != nil {
		t.Errorf("a ticket with its code: %v", err)
	}
	if _, _, err := s.Redeem(t.Context(), Claim{Ticket: two.Ticket, Secret: secret}); !errors.Is(err, ErrWaiting) {
		t.Errorf("a ticket without a code: %v", err)
	}
	for range MaxTries {
		if _, _, err := s.Redeem(t.Context(), Claim{Ticket: three.Ticket, Code: bad}); !errors.Is(err, ErrTicket) {
			t.Error(err)
		}
	}
	if p := progress(t, s, three); p.State != TicketDead {
		t.Error(p)
	}
	if _, _, err := s.Redeem(t.Context(), Claim{Ticket: three.Ticket, Code: three.Code}); !errors.Is(err, ErrTicket) {
		t.Errorf("a dead ticket: %v", err)
	}
}

// TestLostAnswer: a claim that is repeated, because its answer was lost, gets a credential of the same device; but not once one was
// used, and not for another claimant.
func TestLostAnswer(t *testing.T) {
	s := open(t, t.TempDir())
	tk := ticket(t, s, "phone")
	c := Claim{Ticket: tk.Ticket, Code: tk.Code, Secret: secret}
	first, lost, err := s.Redeem(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []Claim{
		{Ticket: tk.Ticket, Code: tk.Code, Secret: secret + "x"}, {Ticket: tk.Ticket, Code: tk.Code}, {Ticket: tk.Ticket + "x", Secret: secret}, {Secret: secret, Code: "x"},
	} {
		if _, token, err := s.Redeem(t.Context(), other); err == nil || token != "" {
			t.Errorf("%+v: %v", other, err)
		}
	}
	second, token, err := s.Redeem(t.Context(), c)
	if err != nil || second.ID != first.ID || token == lost {
		t.Fatalf("%+v, %v", second, err)
	}
	if _, err := s.Authenticate(t.Context(), lost); err == nil {
		t.Error("the lost credential is valid")
	}
	if _, err := s.Authenticate(t.Context(), token); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Redeem(t.Context(), c); !errors.Is(err, ErrTicket) {
		t.Errorf("after it was used: %v", err)
	}
}

// TestMaker: tickets end with the device that has made them, and what a device has paired is known after it was revoked, can be
// revoked with it, and lasts no longer than it.
func TestMaker(t *testing.T) {
	s := open(t, t.TempDir())
	add := func(name, by string, life time.Duration) Device {
		d, _, err := s.Add(t.Context(), name, Grant{User: "ann", Role: Owner, By: by, Lifetime: life})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	thief := add("thief", "", time.Hour)
	left, err := s.NewTicket(t.Context(), "", Grant{User: "ann", Role: Owner, By: thief.ID})
	if err != nil {
		t.Fatal(err)
	}
	used, err := s.NewTicket(t.Context(), "child", Grant{User: "ann", Role: Owner, By: thief.ID})
	if err != nil {
		t.Fatal(err)
	}
	child, _, err := s.Redeem(t.Context(), Claim{Ticket: used.Ticket, Code: used.Code})
	if err != nil || child.Expires.IsZero() || child.Expires.After(thief.Expires) {
		t.Fatalf("%+v, %v", child, err)
	}
	add("grandchild", child.ID, 2*time.Hour)
	other := add("other", "", 0)
	if _, err := s.Revoke(t.Context(), "thief"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Redeem(t.Context(), Claim{Ticket: left.Ticket, Code: left.Code}); !errors.Is(err, ErrTicket) {
		t.Errorf("the ticket of a device that was revoked: %v", err)
	}
	if _, err := s.NewTicket(t.Context(), "", Grant{User: "ann", Role: Owner, By: thief.ID}); !errors.Is(err, ErrNotFound) {
		t.Errorf("it makes another one: %v", err)
	}
	names := func(list []Device, err error) string {
		var all []string
		for _, d := range list {
			all = append(all, d.Name)
		}
		slices.Sort(all)
		return strings.Join(all, " ") + fmt.Sprint(err)
	}
	if got := names(s.Paired(t.Context(), thief.ID)); got != "child grandchild<nil>" {
		t.Error(got)
	}
	if got := names(s.Paired(t.Context(), other.ID)); got != "<nil>" {
		t.Error(got)
	}
	if got := names(s.RevokePaired(t.Context(), thief.ID)); got != "child grandchild<nil>" {
		t.Error(got)
	}
	if got := names(s.Devices(t.Context())); got != "other<nil>" {
		t.Error(got)
	}
}

// TestApproval: a ticket alone is worth nothing until the person at the gateway approves it, and then
// only for the device that was shown.
func TestApproval(t *testing.T) {
	for _, approve := range []bool{true, false} {
		s := open(t, t.TempDir())
		tk := ticket(t, s, "phone")
		if err := s.Approve(t.Context(), tk.ID); !errors.Is(err, ErrNotFound) {
			t.Errorf("nobody has claimed it: %v", err)
		}
		mine := Claim{Ticket: tk.Ticket, Secret: secret, Name: "Phone", Address: "192.0.2.1"}
		for range 3 { // asking again changes nothing
			if _, _, err := s.Redeem(t.Context(), mine); !errors.Is(err, ErrWaiting) {
				t.Error(err)
			}
		}
		if diff := cmp.Diff(Progress{State: TicketClaimed, Name: "Phone", Address: "192.0.2.1"}, progress(t, s, tk)); diff != "" {
			t.Error(diff)
		}
		other := Claim{Ticket: tk.Ticket, Secret: strings.Repeat("x", 20)}
		if _, _, err := s.Redeem(t.Context(), other); !errors.Is(err, ErrTicket) {
			t.Error(err)
		}
		decide, want := s.Approve, error(nil)
		if !approve {
			decide, want = s.Deny, ErrDenied
		}
		if err := decide(t.Context(), tk.ID); err != nil {
			t.Error(err)
		}
		if _, _, err := s.Redeem(t.Context(), other); !errors.Is(err, ErrTicket) {
			t.Error(err)
		}
		d, _, err := s.Redeem(t.Context(), mine)
		if !errors.Is(err, want) || approve && d.Name != "phone" {
			t.Error(d, err)
		}
		if err := decide(t.Context(), tk.ID); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		if !approve { // nor with the code
			if _, _, err := s.Redeem(t.Context(), Claim{Code: tk.Code}); !errors.Is(err, ErrTicket) {
				t.Error(err)
			}
		}
	}
}

// TestTicketEnds: a ticket ends after two minutes, or when it is cancelled.
func TestTicketEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		early, late, gone := ticket(t, s, ""), ticket(t, s, ""), ticket(t, s, "")
		if err := s.Cancel(t.Context(), gone.ID); err != nil {
			t.Error(err)
		}
		if _, _, err := s.Redeem(t.Context(), Claim{Ticket: gone.Ticket, Code: gone.Code}); !errors.Is(err, ErrTicket) {
			t.Error(err)
		}
		time.Sleep(TicketLifetime - time.Nanosecond)
		if _, _, err := s.Redeem(t.Context(), Claim{Ticket: early.Ticket, Code: early.Code}); err != nil {
			t.Error(err)
		}
		if _, _, err := s.Redeem(t.Context(), Claim{Ticket: late.Ticket, Secret: secret}); !errors.Is(err, ErrWaiting) {
			t.Error(err)
		}
		time.Sleep(time.Nanosecond)
		if err := s.Approve(t.Context(), late.ID); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		for _, c := range []Claim{{Ticket: late.Ticket, Code: late.Code}, {Code: late.Code}, {Ticket: late.Ticket, Secret: secret}} {
			if _, _, err := s.Redeem(t.Context(), c); !errors.Is(err, ErrTicket) {
				t.Error(err)
			}
		}
		if _, err := s.Progress(t.Context(), late.ID); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
	})
}

// TestMaxTickets reaches the bounds.
func TestMaxTickets(t *testing.T) {
	s := open(t, t.TempDir())
	for range MaxTickets {
		ticket(t, s, "")
	}
	if _, err := s.NewTicket(t.Context(), "", Grant{User: "me", Role: Viewer}); !errors.Is(err, ErrTooMany) {
		t.Error(err)
	}
	if _, err := s.db.Exec(`UPDATE ticket SET state = 'dead'`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO ticket SELECT 'x' || i, x'', x'', 5, 'me', '', 'viewer', '{}', 0, 9223372036854775807, 'dead', x'', '', '', '' FROM n`, maxRecent-MaxTickets); err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewTicket(t.Context(), "", Grant{User: "me", Role: Viewer}); !errors.Is(err, ErrTooMany) {
		t.Error(err)
	}
}

// TestNames: a device without a name gets one that is free.
func TestNames(t *testing.T) {
	s := open(t, t.TempDir())
	for _, tt := range []struct{ says, want string }{
		{"", "device"}, {"", "device-2"}, {"device", "device-3"}, {"\x1b[31mred", "31mred"}, {"--all", "all"}, {"日本", "日本"}, {strings.Repeat("x", 100), strings.Repeat("x", maxName-8)},
	} {
		tk := ticket(t, s, "")
		d, _, err := s.Redeem(t.Context(), Claim{Ticket: tk.Ticket, Code: tk.Code, Name: tt.says})
		if err != nil || d.Name != tt.want {
			t.Errorf("%q: %q, %v, want %q", tt.says, d.Name, err, tt.want)
		}
	}
	if _, err := s.NewTicket(t.Context(), "device", Grant{User: "me", Role: Viewer}); !errors.Is(err, ErrName) {
		t.Error(err)
	}
	// The name was free when the ticket was made.
	tk := ticket(t, s, "late")
	add(t, s, "late", Grant{})
	if _, _, err := s.Redeem(t.Context(), Claim{Ticket: tk.Ticket, Code: tk.Code}); !errors.Is(err, ErrName) {
		t.Error(err)
	}
}

// TestTicketSecret: neither the ticket nor the code is in a file.
func TestTicketSecret(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	tk := ticket(t, s, "")
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(data), tk.Ticket[30:]) {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, c := range []Claim{{}, {Code: strings.Repeat("0", 1000)}, {Ticket: tk.Ticket}, {Ticket: tk.Ticket, Secret: "short"}, {Ticket: tk.Ticket[:len(tk.Ticket)-1] + "a", Secret: secret}, {Ticket: "x", Code: tk.Code}} {
		if _, _, err := s.Redeem(t.Context(), c); !errors.Is(err, ErrTicket) && c.Ticket[:len(c.Ticket)-1]+"a" != tk.Ticket {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestEndpoint(t *testing.T) {
	dir := t.TempDir()
	here, there := open(t, dir), open(t, dir)
	if e, err := here.Endpoint(t.Context()); err != nil || e != (Endpoint{}) {
		t.Error(e, err)
	}
	for _, want := range []Endpoint{{URL: "https://a/acp", Fingerprint: "ff"}, {URL: "https://b/acp"}} {
		if err := here.Announce(t.Context(), want); err != nil {
			t.Error(err)
		}
		if e, err := there.Endpoint(t.Context()); err != nil || e != want {
			t.Error(e, err)
		}
	}
}
