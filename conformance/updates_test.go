package conformance

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/updatetest"
)

// watched returns a monitor of a session that is at work, in which something was said,
// that has seen no case of a rule since, but for those that every update is.
func watched(t *testing.T, version string) *Monitor {
	t.Helper()
	p := &play{t: t, m: NewMonitor(MonitorConfig{})}
	play := func(lines ...string) {
		for _, line := range lines {
			p.line(line, false)
		}
	}
	play(version, "session", "turn")
	for _, seen := range p.m.seen {
		clear(seen)
	}
	play(`< update {"sessionUpdate":"_other"}`) // the cases that every update is
	for _, l := range p.log {
		t.Error(l)
	}
	return p.m
}

// noticed returns what a monitor knows that another does not: of sessions, and which rules
// had a case.
func noticed(before, after *Monitor) string {
	type knowledge struct {
		Sessions table[*session]
		More     connection
		Seen     map[string]bool
	}
	of := func(m *Monitor) knowledge {
		k := knowledge{m.sessions, m.more, map[string]bool{}}
		for c, sides := range m.seen[m.version] {
			if sides != 0 {
				k.Seen[checkNames[c]] = true
			}
		}
		return k
	}
	return cmp.Diff(of(before), of(after), cmp.Exporter(func(reflect.Type) bool { return true }))
}

// TestUpdates: a monitor looks at every update of either version, or it is listed here.
func TestUpdates(t *testing.T) {
	t.Run("v2", func(t *testing.T) {
		updatetest.Check(t, map[string]string{
			"compaction_update": "it needs no capability in version 2, and nothing else is demanded of it",
		}, func(t *testing.T, us []acpv2.SessionUpdate) string {
			m := watched(t, "v2")
			for _, u := range us {
				m.toldV2(&acpv2.UpdateSessionNotification{SessionID: "s1", Update: u})
			}
			return noticed(watched(t, "v2"), m)
		})
	})
	t.Run("v1", func(t *testing.T) {
		updatetest.CheckV1(t, nil, func(t *testing.T, us []acpv1.SessionUpdate) string {
			m := watched(t, "v1")
			for _, u := range us {
				m.toldV1(&acpv1.SessionNotification{SessionID: "s1", Update: u})
			}
			return noticed(watched(t, "v1"), m)
		})
	})
}
