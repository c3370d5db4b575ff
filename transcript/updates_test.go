package transcript

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/registry"
	"github.com/goacp/acp/internal/updatetest"
)

// kept returns a conversation as JSON, which must have lost nothing.
func kept(t *testing.T, c *Conversation) string {
	t.Helper()
	s := c.Snapshot()
	if loss := s.Loss(); loss != (Loss{}) {
		t.Errorf("lost: %+v", loss)
	}
	data, err := s.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestUpdates: every update of either version changes an entry or a field.
func TestUpdates(t *testing.T) {
	aside := map[string]string{
		"prompt_suggestions_update": "is for the moment, and no part of what was said",
		"cursor_update":             "is for whoever is connected to the session",
	}
	aside1 := maps.Clone(aside)
	aside["replay_complete"] = "is for whoever is connected to the session"
	t.Run("v2", func(t *testing.T) {
		updatetest.Check(t, aside, func(t *testing.T, us []acpv2.SessionUpdate) string {
			c := New(Config{})
			for _, u := range us {
				if ch := c.Apply(u); ch.Op == OpNone && aside[kind(t, u)] == "" {
					t.Errorf("%T changes nothing", u)
				}
			}
			return kept(t, c)
		})
	})
	t.Run("v1", func(t *testing.T) {
		updatetest.CheckV1(t, aside1, func(t *testing.T, us []acpv1.SessionUpdate) string {
			c := New(Config{})
			for _, u := range us {
				c.ApplyV1(u)
			}
			return kept(t, c)
		})
	})
}

// kind returns the discriminator of an update.
func kind(t *testing.T, u acpv2.SessionUpdate) string {
	t.Helper()
	data, err := u.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ SessionUpdate string }
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v.SessionUpdate
}

// TestStates: every state that version 2 knows has a name here. One without a name would
// count as idle.
func TestStates(t *testing.T) {
	n := 0
	for _, name := range registry.Names("v2") {
		if !strings.HasSuffix(name, "StateUpdate") {
			continue
		}
		v, _ := registry.New("v2", name)
		u, ok := v.(acpv2.StateUpdate)
		if !ok {
			continue // the union
		}
		n++
		s := stateOf(u)
		if s.Foreground == "" {
			t.Errorf("%s has no name", name)
		}
		if got, want := s.brief().Foreground, s.Foreground; got != want {
			t.Errorf("%s: in brief %q, want %q", name, got, want)
		}
	}
	if n < 3 {
		t.Errorf("found %d states", n)
	}
}
