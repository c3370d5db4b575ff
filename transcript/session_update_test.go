package transcript

import (
	"testing"

	"github.com/goacp/acp/acpv2"
	"github.com/google/go-cmp/cmp"
)

// TestSessionUpdate: folding what Update returns of each field into a new conversation
// gives the same session.
func TestSessionUpdate(t *testing.T) {
	fields := []Field{FieldState, FieldUsage, FieldConfigOptions, FieldCommands, FieldInfo}
	var empty Session
	for _, f := range fields {
		_, state := empty.Update(f).(acpv2.StateUpdate)
		if u := empty.Update(f); (f == FieldState || f == FieldUsage) != (u == nil) || state {
			t.Errorf("of a session that reported nothing, %s is %v", f, u)
		}
	}
	if u := empty.Update("other"); u != nil {
		t.Errorf("of a field that does not exist: %v", u)
	}
	c := New(Config{})
	for _, u := range []acpv2.SessionUpdate{
		&acpv2.IdleStateUpdate{StopReason: acpv2.StopReasonEndTurn},
		&acpv2.UsageUpdate{Used: 3, Size: 9, Cost: acpv2.Set(acpv2.Cost{Amount: 1, Currency: "EUR"})},
		&acpv2.ConfigOptionUpdate{ConfigOptions: []acpv2.SessionConfigOption{}},
		&acpv2.AvailableCommandsUpdate{AvailableCommands: []acpv2.AvailableCommand{&acpv2.Command{Name: "plan", Description: "Plan"}}},
		&acpv2.SessionInfoUpdate{Title: acpv2.Set("Tests"), Meta: []byte(`{"a":1}`)},
	} {
		c.Apply(u)
	}
	want := c.Snapshot()
	d := New(Config{})
	for _, f := range fields {
		d.Apply(want.Session().Update(f))
	}
	a, err := want.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Snapshot().AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Error(diff)
	}
}
