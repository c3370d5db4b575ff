package identity

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSubscription: a device has one subscription, which ends with the device, however that ends.
func TestSubscription(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	add := func(name string, lifetime time.Duration) Device {
		t.Helper()
		d, _, err := s.Add(ctx, name, Grant{User: "me", Role: Approver, Lifetime: lifetime})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	ends := map[string]func(d Device) error{
		"revoked":      func(d Device) error { _, err := s.Revoke(ctx, d.Name); return err },
		"unsubscribed": func(d Device) error { return s.Unsubscribe(ctx, d.ID, "") },
		"gone":         func(d Device) error { return s.Unsubscribe(ctx, d.ID, "https://push.example/gone") },
		"expired": func(d Device) error {
			_, err := s.db.ExecContext(ctx, `UPDATE device SET expires = 1 WHERE id = ?`, d.ID)
			return err
		},
		"all": func(Device) error { _, err := s.RevokeAll(ctx); return err },
	}
	for name, end := range ends {
		d := add(name, 0)
		want := Subscription{Endpoint: "https://push.example/" + name, Public: []byte{4, 1}, Auth: []byte{2}, Title: true}
		for _, sub := range []Subscription{{Endpoint: "https://push.example/former", Public: []byte{}, Auth: []byte{}}, want} {
			if err := s.Subscribe(ctx, d.ID, sub); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Subscription(ctx, d.ID)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		if list, err := s.Subscribers(ctx); err != nil || len(list) != 1 || list[0].ID != d.ID {
			t.Errorf("%s: %v %v", name, list, err)
		}
		if err := end(d); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Subscription(ctx, d.ID); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		if list, err := s.Subscribers(ctx); err != nil || len(list) != 0 {
			t.Errorf("%s: %v %v", name, list, err)
		}
	}
	if err := s.Subscribe(ctx, "nobody", Subscription{}); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// TestFormerStore: a store of a program that knew no subscriptions has them from now on, and one that is removed by such a
// program is removed with its subscription.
func TestFormerStore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	d, _, err := s.Add(t.Context(), "phone", Grant{User: "me", Role: Approver})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.ExecContext(t.Context(), `DROP TABLE subscription; DROP TRIGGER IF EXISTS subscription_end`); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if err := s.Subscribe(t.Context(), d.ID, Subscription{Endpoint: "https://push.example/x", Public: []byte{}, Auth: []byte{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.ExecContext(t.Context(), `DELETE FROM device`); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := s.db.QueryRowContext(t.Context(), `SELECT count(*) FROM subscription`).Scan(&n); err != nil || n != 0 {
		t.Error(n, err)
	}
}

// TestSetting: a setting is made once, and not at all if that fails.
func TestSetting(t *testing.T) {
	s := open(t, t.TempDir())
	fails := errors.New("no")
	if _, err := s.Setting(t.Context(), "key", func() (string, error) { return "", fails }); !errors.Is(err, fails) {
		t.Error(err)
	}
	for _, value := range []string{"first", "second"} {
		if got, err := s.Setting(t.Context(), "key", func() (string, error) { return value, nil }); err != nil || got != "first" {
			t.Error(got, err)
		}
	}
}
