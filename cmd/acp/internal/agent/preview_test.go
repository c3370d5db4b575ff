package agent

import (
	"errors"
	"slices"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/jsonrpc"
)

// TestPreview: the agent says how a new, an open or a saved session would begin, and opens none for that. A session begins with
// the values that the client wants.
func TestPreview(t *testing.T) {
	for _, memory := range []bool{false, true} {
		versions(t, func(t *testing.T, v int) {
			var change []func(*talk)
			if memory {
				change = append(change, inMemory)
			}
			k := start(t, v, change...)
			mode := func(id acp.SessionID) string {
				t.Helper()
				p, err := k.conn.SessionOptions(t.Context(), acp.OptionsQuery{Cwd: k.cwd, SessionID: id})
				if err != nil {
					t.Fatal(err)
				}
				if v == 2 && len(p.AvailableCommands) != len(commands()) {
					t.Errorf("%d commands", len(p.AvailableCommands))
				}
				i := slices.IndexFunc(p.ConfigOptions, func(o acp.SessionConfigOption) bool { return o.Category == acp.SessionConfigOptionCategoryMode })
				return string(p.ConfigOptions[i].Kind.(*acp.SessionConfigSelect).CurrentValue)
			}
			if got := mode(""); got != modeAsk {
				t.Errorf("a new session would be in mode %q", got)
			}
			if got := k.listed(""); len(got) > 1 {
				t.Errorf("listed %+v", got)
			}
			value := func(mode acp.SessionConfigValueID) []acp.InitialOption {
				return []acp.InitialOption{{ConfigID: optionMode, Value: &acpv2.SessionConfigOptionValueID{Value: mode}}}
			}
			s, err := k.conn.NewSession(t.Context(), acp.SessionConfig{Cwd: k.cwd, Options: value(modeAuto)})
			if err != nil {
				t.Fatal(err)
			}
			if got := mode(s.ID()); s.Mode() != modeAuto || got != modeAuto {
				t.Errorf("mode %q, and %q is said", s.Mode(), got)
			}
			k.session = s
			k.tell("/read main.go")
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := mode(s.ID()); got != modeAuto {
				t.Errorf("a saved session would be in mode %q", got)
			}
			if _, open := k.conn.Session(s.ID()); open {
				t.Error("it is open")
			}
			for _, id := range []acp.SessionID{"nope", "../x"} {
				if _, err := k.conn.SessionOptions(t.Context(), acp.OptionsQuery{Cwd: k.cwd, SessionID: id}); !errors.Is(err, jsonrpc.ErrResourceNotFound) {
					t.Errorf("of the session %q: %v", id, err)
				}
			}
		})
	}
}
