package tui

import (
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// TestSpeed: the speed stands beside the model, and nothing switches it on that the user has not asked for.
func TestSpeed(t *testing.T) {
	model := acp.SessionConfigOption{ConfigID: "model", Name: "Model", Category: acpv2.SessionConfigOptionCategoryModel,
		Kind: &acpv2.SessionConfigSelect{CurrentValue: "m1", Options: acpv2.SessionConfigSelectOptionList{{Value: "m1", Name: "Model One"}}}}
	fast := func(on bool) acp.SessionConfigOption {
		return acp.SessionConfigOption{ConfigID: "fast", Name: "Fast\x1b[2J", Category: acpv2.SessionConfigOptionCategorySpeed,
			Kind: &acpv2.SessionConfigBoolean{CurrentValue: on}}
	}
	tier := acp.SessionConfigOption{ConfigID: "tier", Name: "Tier", Category: acpv2.SessionConfigOptionCategorySpeed,
		Kind: &acpv2.SessionConfigSelect{CurrentValue: "slow", Options: acpv2.SessionConfigSelectOptionList{
			{Value: "slow", Name: "Relaxed"}, {Value: "quick", Name: "Turbo"},
		}}}
	for name, test := range map[string]struct {
		options []acp.SessionConfigOption
		want    string
	}{
		"off":  {[]acp.SessionConfigOption{fast(false), model}, "Model One"},
		"on":   {[]acp.SessionConfigOption{fast(true), model}, "Model One · Fast"},
		"tier": {[]acp.SessionConfigOption{model, tier}, "Model One · Relaxed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 100, 24, nil).start()
			r.talk.options = test.options
			r.wants("· " + test.want)
			lines, _ := r.m.draw()
			if status := lines[len(lines)-1]; strings.Contains(status, "Fast") != (name == "on") {
				t.Errorf("%q", status)
			}
			r.run(r.keys("shift+tab"))
			if len(r.talk.set) > 0 {
				t.Errorf("set: %v", r.talk.set)
			}
		})
	}
}
