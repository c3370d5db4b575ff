package identity

import (
	"testing"

	"github.com/goacp/acp/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// open returns a store that is closed with the test.
func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// add adds a device.
func add(t *testing.T, s *Store, name string, g Grant) (Device, string) {
	t.Helper()
	if g.User == "" {
		g.User = "me"
	}
	if g.Role == None {
		g.Role = Approver
	}
	d, credential, err := s.Add(t.Context(), name, g)
	if err != nil {
		t.Fatal(err)
	}
	return d, credential
}
