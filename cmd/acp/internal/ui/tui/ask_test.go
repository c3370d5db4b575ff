package tui

import (
	"testing"
	"time"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// TestPreselected: Enter allows once, wherever the agent offers that, or nothing; it never grants more.
func TestPreselected(t *testing.T) {
	option := func(kind acpv2.PermissionOptionKind, name string) acpv2.PermissionOption {
		return acpv2.PermissionOption{OptionID: acp.PermissionOptionID(name), Name: name, Kind: kind}
	}
	always := option(acpv2.PermissionOptionKindAllowAlways, "Always Allow in project: touch *")
	once := option(acpv2.PermissionOptionKindAllowOnce, "Allow")
	again := option(acpv2.PermissionOptionKindAllowOnce, "Allow differently")
	reject := option(acpv2.PermissionOptionKindRejectOnce, "Reject")
	for _, tt := range []struct {
		name    string
		options []acpv2.PermissionOption
		want    string // "" if Enter does nothing
		next    string // after a step down
	}{
		{"first", []acpv2.PermissionOption{once, always, reject}, "Allow", "Always Allow in project: touch *"},
		{"second", []acpv2.PermissionOption{always, once, reject}, "Allow", "Reject"},
		{"not offered", []acpv2.PermissionOption{always, reject}, "", "Always Allow in project: touch *"},
		{"twice", []acpv2.PermissionOption{once, again, reject}, "", "Allow"},
		{"only no", []acpv2.PermissionOption{reject}, "", "Reject"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, step := range []struct {
				keys []string
				want string
			}{{[]string{"enter"}, tt.want}, {[]string{"down", "enter"}, tt.next}} {
				r := newRig(t, 80, 24, nil).start()
				a := someAsk(2)
				a.req.Options = tt.options
				r.send(askMsg{a})
				for _, k := range step.keys {
					r.now = r.now.Add(2 * time.Second) // nobody types
					r.keys(k)
				}
				r.now = r.now.Add(2 * time.Second)
				r.send(tickMsg{})
				select {
				case id := <-a.answer:
					if string(id) != step.want {
						t.Errorf("%q has answered %q, want %q", step.keys, id, step.want)
					}
				default:
					if step.want != "" {
						t.Errorf("%q has not answered", step.keys)
					}
					r.wants("a key to choose")
				}
			}
		})
	}
}

// TestAskedBlindly: where it is not known what would be run, the dialog says so.
func TestAskedBlindly(t *testing.T) {
	r := newRig(t, 80, 24, nil).start()
	a := someAsk(0)
	a.req.Kind, a.req.Command, a.req.CommandUnknown = "execute", "", true
	r.send(askMsg{a})
	r.wants("It is not known what would run.")
}
