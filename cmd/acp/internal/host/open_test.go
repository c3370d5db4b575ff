package host

import (
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/cmd/acp/internal/roster"
	"github.com/goacp/acp/cmd/acp/internal/store"
	"github.com/goacp/acp/transcript"
)

// openStore opens a store of its own for a test.
func openStore(t *testing.T, path string) *store.Store {
	t.Helper()
	s, damage, err := store.Open(t.Context(), store.Options{Path: path, Normal: true})
	if err != nil || damage != nil {
		t.Fatalf("Open: %v, %v", damage, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// config is that of a host of an agent in memory, in the given version.
func config(t *testing.T, version int, agent *acp.Agent) Config {
	t.Helper()
	return Config{
		Agent:   roster.Agent{Name: "fake", Builtin: true, Protocol: version},
		BuiltIn: agent,
		Cwd:     t.TempDir(),
		Connect: 20 * time.Second,
	}
}

func open(t *testing.T, cfg Config) *Host {
	t.Helper()
	h, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func versions(t *testing.T, f func(t *testing.T, version int)) {
	for _, v := range []int{1, 2} {
		t.Run(map[int]string{1: "v1", 2: "v2"}[v], func(t *testing.T) { f(t, v) })
	}
}

// messages are the texts of a conversation, each with its role.
func messages(s *transcript.Snapshot) (list []string) {
	for e := range s.Entries() {
		if m, ok := e.(*transcript.Message); ok {
			list = append(list, string(m.Role)+": "+m.Text())
		}
	}
	return list
}
