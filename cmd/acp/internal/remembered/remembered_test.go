package remembered

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "agents.json")
	m := New(path)
	now := time.Now()
	m.now = func() time.Time { return now }
	key := Key([]string{"agent", "--acp"})
	if Key([]string{"agent --acp"}) == key || Key([]string{"agent"}) == key {
		t.Error("keys of different commands are equal")
	}
	if got := m.Get(key); got != (Agent{}) {
		t.Errorf("known before: %+v", got)
	}
	if err := m.Put(key, Agent{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("nothing was written down")
	}
	if err := m.Put(key, Agent{Protocol: 1, Name: "a", Version: "2"}); err != nil {
		t.Fatal(err)
	}
	if got := New(path).Get(key); got.Protocol != 1 || got.Version != "2" {
		t.Errorf("got %+v", got)
	}
	now = now.Add(MaxAge + time.Minute)
	if got := m.Get(key); got != (Agent{}) {
		t.Errorf("remembered for too long: %+v", got)
	}
	for i := range MaxAgents + 10 {
		now = now.Add(time.Second)
		if err := m.Put(strconv.Itoa(i), Agent{Protocol: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(m.read()); n != MaxAgents {
		t.Errorf("%d agents, want %d", n, MaxAgents)
	}
	if m.Get("0") != (Agent{}) || m.Get(strconv.Itoa(MaxAgents+9)) == (Agent{}) {
		t.Error("not the oldest has made room")
	}
	if err := m.Put("20", Agent{}); err != nil || m.Get("20") != (Agent{}) {
		t.Error("not forgotten:", err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".agents-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestUnreadable holds that a file of anything knows nothing, and is replaced.
func TestUnreadable(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"k":{"protocol":"x"}}`} {
		path := filepath.Join(t.TempDir(), "agents.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m := New(path)
		if got := m.Get("k"); got != (Agent{}) {
			t.Errorf("%q: %+v", text, got)
		}
		if err := m.Put("k", Agent{Protocol: 1}); err != nil || m.Get("k").Protocol != 1 {
			t.Errorf("%q: %v", text, err)
		}
	}
	var none *Memory
	if err := none.Put("k", Agent{Protocol: 1}); err != nil || none.Get("k") != (Agent{}) {
		t.Error("nil remembers")
	}
}
