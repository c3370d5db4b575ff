package identity

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatch: what ends the rights of a device is noticed within a second, and nothing else is taken for
// it.
func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, here, there *Store, dir string)
		want bool
	}{
		{"revoked by another process", func(t *testing.T, _, there *Store, _ string) { revoke(t, there, "phone") }, true},
		{"revoked by this process", func(t *testing.T, here, _ *Store, _ string) { revoke(t, here, "phone") }, true},
		{"all revoked", func(t *testing.T, _, there *Store, _ string) {
			if _, err := there.RevokeAll(t.Context()); err != nil {
				t.Error(err)
			}
		}, true},
		{"other rights", func(t *testing.T, _, there *Store, _ string) {
			if _, err := there.db.Exec(`UPDATE device SET role = 'viewer' WHERE name = 'phone'`); err != nil {
				t.Error(err)
			}
		}, true},
		{"the file was deleted", func(t *testing.T, _, _ *Store, dir string) {
			if err := os.Remove(filepath.Join(dir, storeName)); err != nil {
				t.Skip(err)
			}
		}, true},
		{"another device was revoked", func(t *testing.T, _, there *Store, _ string) { revoke(t, there, "laptop") }, false},
		{"it was used", func(t *testing.T, _, there *Store, _ string) {
			if _, err := there.db.Exec(`UPDATE device SET used = 5 WHERE name = 'phone'`); err != nil {
				t.Error(err)
			}
		}, false},
		{"another one was added", func(t *testing.T, _, there *Store, _ string) { add(t, there, "tablet", Grant{}) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				here, there := open(t, dir), open(t, dir)
				d, _ := add(t, here, "phone", Grant{})
				add(t, here, "laptop", Grant{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended, err := here.Watch(ctx, d.Principal())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				select {
				case <-ended:
					t.Fatal("it ended too early")
				default:
				}
				tt.end(t, here, there, dir)
				begin := time.Now()
				select {
				case <-ended:
					if !tt.want || time.Since(begin) > time.Second {
						t.Errorf("ended after %v", time.Since(begin))
					}
				case <-time.After(10 * time.Second):
					if tt.want {
						t.Error("not noticed")
					}
				}
			})
		})
	}
}

func revoke(t *testing.T, s *Store, name string) {
	t.Helper()
	if _, err := s.Revoke(t.Context(), name); err != nil {
		t.Error(err)
	}
}

// TestWatchEnds: watches end with their context and with the store, and the goroutine with the last one.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		d, _ := add(t, s, "phone", Grant{Lifetime: time.Minute})
		p := d.Principal()
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			if _, err := s.Watch(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		running := func() (n int, goroutine bool) {
			s.watch.mu.Lock()
			defer s.watch.mu.Unlock()
			return len(s.watch.watched), s.watch.stop != nil
		}
		if n, on := running(); n != 3 || !on {
			t.Error(n, on)
		}
		cancel()
		synctest.Wait()
		if n, on := running(); n != 0 || on {
			t.Error(n, on)
		}
		// Again, until the credential expires.
		ended, err := s.Watch(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		<-ended
		if late := time.Since(begin) - time.Minute; late < 0 || late > time.Second {
			t.Error(late)
		}
		// A device that is gone has ended at once.
		revoke(t, s, "phone")
		if ended, err = s.Watch(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		<-ended
		// The end of the store notifies nobody, and nothing is watched afterwards.
		d, _ = add(t, s, "tablet", Grant{})
		if ended, err = s.Watch(t.Context(), d.Principal()); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-ended:
			t.Error("closing the store looks like a revocation")
		default:
		}
		if _, err := s.Watch(t.Context(), d.Principal()); !errors.Is(err, ErrStore) {
			t.Error(err)
		}
	})
}

// TestMaxWatches reaches the bound.
func TestMaxWatches(t *testing.T) {
	s := open(t, t.TempDir())
	d, _ := add(t, s, "phone", Grant{})
	for range maxWatches {
		s.watch.watched[new(watch)] = true
	}
	if _, err := s.Watch(t.Context(), d.Principal()); !errors.Is(err, ErrTooMany) {
		t.Error(err)
	}
}

// TestBlind: rights that cannot be checked for five seconds have ended.
func TestBlind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		here, there := open(t, dir), open(t, dir)
		d, _ := add(t, here, "phone", Grant{})
		ended, err := here.Watch(t.Context(), d.Principal())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := there.db.Exec(`DROP TABLE revision`); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		<-ended
		if took := time.Since(begin); took < 4*time.Second || took > 6*time.Second {
			t.Error(took)
		}
	})
}
