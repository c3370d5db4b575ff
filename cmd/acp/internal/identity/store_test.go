package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
)

func TestRoles(t *testing.T) {
	for i, name := range []string{"viewer", "prompter", "approver", "owner"} {
		r, err := ParseRole(name)
		if err != nil || r != Viewer+Role(i) || r.String() != name {
			t.Errorf("%s: %v, %v", name, r, err)
		}
		p := Principal{Role: r}
		for other := None; other <= Owner; other++ {
			if p.May(other) != (other <= r) {
				t.Errorf("%v may be %v: %v", r, other, p.May(other))
			}
		}
	}
	for _, name := range []string{"", "none", "root", "Owner"} {
		if _, err := ParseRole(name); err == nil {
			t.Errorf("%q is a role", name)
		}
	}
	if got := Role(9).String(); got != "Role(9)" {
		t.Error(got)
	}
}

func TestScope(t *testing.T) {
	all, some := Scope{}, Scope{Agents: []string{"a"}, Sessions: []string{"s"}}
	if !all.Agent("x") || !all.Session("x") || !some.Agent("a") || some.Agent("b") || !some.Session("s") || some.Session("a") {
		t.Error("scopes")
	}
}

// TestKey: a principal survives its key, and only who is equal has an equal one.
func TestKey(t *testing.T) {
	p := Principal{Kind: KindDevice, User: "me", Device: "d", Name: "phone", Role: Viewer, Scope: Scope{Agents: []string{"a"}}}
	got, err := ParseKey(p.Key())
	if diff := cmp.Diff(p, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	empty := Principal{Scope: Scope{Agents: []string{}, Sessions: []string{}}}
	if empty.Key() != (Principal{}).Key() {
		t.Error("empty lists are not as none")
	}
	later := p
	later.Expires = time.Now()
	if later.Key() != p.Key() {
		t.Error("the key depends on the time")
	}
	for i, other := range []Principal{{}, {Kind: KindTeam, User: "me", Device: "d", Name: "phone", Role: Viewer, Scope: p.Scope}, {Kind: KindDevice, User: "me", Device: "d", Name: "phone", Role: Owner, Scope: p.Scope}, {Kind: KindDevice, User: "me", Device: "d", Name: "phone", Role: Viewer}} {
		if other.Key() == p.Key() {
			t.Error(i)
		}
	}
	for _, bad := range []string{"", "token", `{"role":"root"}`} {
		if _, err := ParseKey(bad); err == nil {
			t.Errorf("%q is a key", bad)
		}
	}
}

// TestCredential: a credential has 256 bits and is found by its public part; anything else is nobody's.
func TestCredential(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	d, credential := add(t, s, "phone", Grant{Scope: Scope{Agents: []string{"demo"}}})
	p, err := s.Authenticate(t.Context(), credential)
	if diff := cmp.Diff(d.Principal(), p); diff != "" || err != nil {
		t.Error(diff, err)
	}
	id, secret, ok := split(credentialPrefix, credential)
	if raw, err := letters.DecodeString(secret); !ok || id != d.ID || err != nil || len(raw) != 32 {
		t.Errorf("%s, %v, %d bytes, %v", id, ok, len(raw), err)
	}
	other, _ := add(t, s, "laptop", Grant{})
	flipped := []byte(credential)
	flipped[len(flipped)-2] ^= 1
	for name, token := range map[string]string{
		"nothing": "", "flipped": string(flipped), "short": credential[:len(credential)-1], "long": credential + "a",
		"another id": join(credentialPrefix, other.ID, secret), "unknown id": join(credentialPrefix, randomText(idBytes), secret),
		"a ticket": join(ticketPrefix, id, secret), "upper case": strings.ToUpper(credential), "space": credential + " ",
	} {
		if p, err := s.Authenticate(t.Context(), token); !errors.Is(err, ErrCredential) || p.User != "" {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	// The secret is in no file.
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(data), secret) {
			t.Errorf("%s: %v", file, err)
		}
		if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
}

// TestExpiry: a credential with an end is nobody's from then on, and its name is free.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		_, credential := add(t, s, "guest", Grant{Lifetime: time.Hour})
		time.Sleep(time.Hour - time.Nanosecond)
		if _, err := s.Authenticate(t.Context(), credential); err != nil {
			t.Error(err)
		}
		if _, _, err := s.Add(t.Context(), "guest", Grant{User: "me", Role: Viewer}); !errors.Is(err, ErrName) {
			t.Error(err)
		}
		time.Sleep(time.Nanosecond)
		if _, err := s.Authenticate(t.Context(), credential); !errors.Is(err, ErrCredential) {
			t.Error(err)
		}
		if _, err := s.NewTicket(t.Context(), "guest", Grant{User: "me", Role: Viewer}); err != nil {
			t.Error(err)
		}
		add(t, s, "guest", Grant{})
	})
}

// TestUsedConnected: a device is used as long as it is connected, to within a minute.
func TestUsedConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		g := &Gate{Store: s}
		_, credential := add(t, s, "phone", Grant{Lifetime: 10 * time.Minute})
		key, err := g.Authenticate(request("192.0.2.1:1", credential))
		if err != nil {
			t.Fatal(err)
		}
		serve := g.Serve(func(ctx context.Context, _ acp.Transport) error {
			for range 6 {
				time.Sleep(77 * time.Second)
				all, err := s.Devices(ctx)
				if err != nil || len(all) != 1 || time.Since(all[0].Used) > time.Minute {
					t.Errorf("used %v ago, %v", time.Since(all[0].Used), err)
				}
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if err := serve(withPrincipal(t, key), nil); !errors.Is(err, ErrRevoked) {
			t.Error(err)
		}
	})
}

// TestUsed: the last use is written at most once a minute.
func TestUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		d, credential := add(t, s, "phone", Grant{})
		used := func() time.Time {
			t.Helper()
			d, err := s.Device(t.Context(), d.ID)
			if err != nil {
				t.Fatal(err)
			}
			return d.Used
		}
		use := func() {
			t.Helper()
			if _, err := s.Authenticate(t.Context(), credential); err != nil {
				t.Fatal(err)
			}
		}
		if !used().IsZero() {
			t.Error("used before it was")
		}
		use()
		first := used()
		time.Sleep(59 * time.Second)
		use()
		if !used().Equal(first) {
			t.Error("written within a minute")
		}
		time.Sleep(time.Second)
		use()
		if got := used().Sub(first); got != time.Minute {
			t.Errorf("written after %v", got)
		}
	})
}

// TestAdd: what is refused.
func TestAdd(t *testing.T) {
	s := open(t, t.TempDir())
	add(t, s, "phone", Grant{})
	good := Grant{User: "me", Role: Viewer}
	for _, tt := range []struct {
		name   string
		device string
		g      Grant
		is     error
		want   string
	}{
		{"taken", "phone", good, ErrName, "phone"},
		{"taken by another user", "phone", Grant{User: "you", Role: Viewer}, ErrName, "phone"},
		{"no name", "", good, nil, "from 1 to 64 bytes"},
		{"a flag", "--all", good, nil, "does not begin with -"},
		{"an escape sequence", "\x1b[31m", good, nil, "letters, digits"},
		{"long", strings.Repeat("x", 65), good, nil, "from 1 to 64 bytes"},
		{"no role", "x", Grant{User: "me"}, nil, "needs a role"},
		{"role", "x", Grant{User: "me", Role: Owner + 1}, nil, "needs a role"},
		{"no user", "x", Grant{Role: Viewer}, nil, "user has from 1"},
		{"a team's user", "x", Grant{User: "oidc:me", Role: Viewer}, nil, "letters, digits"},
		{"lifetime", "x", Grant{User: "me", Role: Viewer, Lifetime: -1}, nil, "negative"},
		{"scope", "x", Grant{User: "me", Role: Viewer, Scope: Scope{Agents: make([]string, 65)}}, nil, "at most 64"},
		{"name in a scope", "x", Grant{User: "me", Role: Viewer, Scope: Scope{Sessions: []string{""}}}, nil, "from 1 to 256"},
	} {
		_, credential, err := s.Add(t.Context(), tt.device, tt.g)
		if err == nil || credential != "" || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestMaxDevices reaches the bound.
func TestMaxDevices(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.change(t.Context(), func(tx *sql.Tx) error {
		for i := range MaxDevices - 1 {
			if _, err := tx.Exec(`INSERT INTO device VALUES (?, x'', 'me', ?, 'viewer', '{}', 1, 0, 0)`, fmt.Sprint(i), fmt.Sprint("d", i)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	add(t, s, "last", Grant{})
	if _, _, err := s.Add(t.Context(), "more", Grant{User: "me", Role: Viewer}); !errors.Is(err, ErrTooMany) {
		t.Error(err)
	}
	if _, err := s.NewTicket(t.Context(), "", Grant{User: "me", Role: Viewer}); !errors.Is(err, ErrTooMany) {
		t.Error(err)
	}
}

// TestRevoke: the credential of a device that was revoked is nobody's, in every process.
func TestRevoke(t *testing.T) {
	dir := t.TempDir()
	here, there := open(t, dir), open(t, dir)
	d, credential := add(t, here, "phone", Grant{})
	_, kept := add(t, here, "laptop", Grant{})
	if _, err := there.Authenticate(t.Context(), credential); err != nil {
		t.Fatal(err)
	}
	got, err := there.Revoke(t.Context(), "phone")
	if err != nil || got.ID != d.ID {
		t.Error(got, err)
	}
	for _, s := range []*Store{here, there} {
		if _, err := s.Authenticate(t.Context(), credential); !errors.Is(err, ErrCredential) {
			t.Error(err)
		}
		if _, err := s.Authenticate(t.Context(), kept); err != nil {
			t.Error(err)
		}
	}
	if _, err := here.Revoke(t.Context(), "phone"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	ticket, err := here.NewTicket(t.Context(), "", Grant{User: "me", Role: Viewer})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := here.RevokeAll(t.Context()); err != nil || len(list) != 1 || list[0].Name != "laptop" {
		t.Error(list, err)
	}
	if _, _, err := here.Redeem(t.Context(), Claim{Code: ticket.Code}); !errors.Is(err, ErrTicket) {
		t.Errorf("a ticket from before was redeemed: %v", err)
	}
	if list, err := there.Devices(t.Context()); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
}

// TestTogether: a store is opened, made and written to by several users of it at once.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	var work sync.WaitGroup
	for n := range 6 {
		work.Go(func() {
			s, err := Open(t.Context(), dir, nil)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 5 {
				_, credential, err := s.Add(t.Context(), fmt.Sprintf("d%d.%d", n, i), Grant{User: "me", Role: Viewer})
				if err != nil {
					t.Error(err)
				}
				if _, err := s.Authenticate(t.Context(), credential); err != nil {
					t.Error(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if list, err := open(t, dir).Devices(t.Context()); err != nil || len(list) != 30 {
		t.Error(len(list), err)
	}
}

// FuzzDecoders: what others send or leave does not make this package panic, and what is accepted is the
// same when it is written again.
func FuzzDecoders(f *testing.F) {
	f.Add(Principal{Kind: KindTeam, User: "u", Role: Viewer, Scope: Scope{Agents: []string{"a"}}}.Key())
	f.Add("https://g.example/pair#t=x&f=ff")
	f.Add(join(credentialPrefix, randomText(idBytes), randomText(secretBytes)))
	f.Add("Jo's Phone")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParseKey(text); err == nil {
			if again, err := ParseKey(p.Key()); err != nil || again.Key() != p.Key() {
				t.Errorf("%q: %v", text, err)
			}
		}
		if e, ticket, err := ParseLink(text); err == nil {
			link, err := Link(e, ticket)
			if again, same, e2 := ParseLink(link); err != nil || e2 != nil || again != e || same != ticket {
				t.Errorf("%q: %v, %v", text, err, e2)
			}
		}
		if id, secret, ok := split(credentialPrefix, text); ok && join(credentialPrefix, id, secret) != text {
			t.Errorf("%q", text)
		}
		if name := cleanName(text); name != "" && checkName("device", name) != nil {
			t.Errorf("%q: %q", text, name)
		}
	})
}

// TestForeign: a file of another program or of a later version is left as it is.
func TestForeign(t *testing.T) {
	for _, pragma := range []string{`PRAGMA application_id = 1`, fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA user_version = 2`, storeID), `CREATE TABLE x (y)`} {
		dir := t.TempDir()
		db, err := sql.Open("sqlite", filepath.Join(dir, storeName))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(pragma); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), dir, nil)
		if pragma == `PRAGMA application_id = 1` && err == nil {
			t.Error("it was used")
		}
		if !errors.Is(err, ErrStore) {
			t.Errorf("%s: %v", pragma, err)
		}
		if err == nil {
			_ = s.Close()
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, storeName), []byte(strings.Repeat("not a database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(t.Context(), dir, nil); err == nil {
		t.Error("it was used")
		_ = s.Close()
	}
}

// TestDeleted: a store whose file was deleted accepts nobody.
func TestDeleted(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, credential := add(t, s, "phone", Grant{})
	if err := os.Remove(filepath.Join(dir, storeName)); err != nil {
		t.Skip(err) // Windows
	}
	if _, err := s.Authenticate(t.Context(), credential); !errors.Is(err, ErrStore) {
		t.Error(err)
	}
	if err := s.Announce(context.Background(), Endpoint{}); !errors.Is(err, ErrStore) {
		t.Error(err)
	}
	if _, err := s.Devices(t.Context()); !errors.Is(err, ErrStore) {
		t.Error(err)
	}
}

// BenchmarkAuthenticate is what every request of a device pays.
func BenchmarkAuthenticate(b *testing.B) {
	s, err := Open(b.Context(), b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var credential string
	for i := range 100 {
		if _, credential, err = s.Add(b.Context(), fmt.Sprint("d", i), Grant{User: "me", Role: Viewer}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := s.Authenticate(b.Context(), credential); err != nil {
			b.Fatal(err)
		}
	}
}
