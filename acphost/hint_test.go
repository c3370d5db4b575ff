package acphost

import (
	"fmt"
	"testing"

	"github.com/goacp/acp/acpv2"
)

// TestAlwaysBehind: a rule with AllowAlways counts behind one without, which is where a user adds it; a rule that
// denies in between does not weaken that. Several answers that allow once are no reason to say that there is none.
func TestAlwaysBehind(t *testing.T) {
	rm := []string{"rm *"}
	plain, always := Rule{Effect: EffectAllow, Commands: rm}, Rule{Effect: EffectAllow, Commands: rm, AllowAlways: true}
	deny := Rule{Effect: EffectDeny, Commands: rm}
	only := func(kinds ...string) Request {
		req := Request{Kind: "execute", Command: "rm x"}
		for i, k := range kinds {
			req.Options = append(req.Options, acpv2.PermissionOption{OptionID: acpv2.PermissionOptionID(fmt.Sprint(i)), Name: k, Kind: acpv2.PermissionOptionKind(k)})
		}
		return req
	}
	for _, tt := range []struct {
		name   string
		rules  []Rule
		kinds  []string
		want   Effect
		reason string
	}{
		{"alone", []Rule{plain}, []string{"allow_always"}, EffectDeny, "the agent offers no answer that allows it once"},
		{"behind", []Rule{plain, always}, []string{"allow_always"}, EffectAllow, ""},
		{"behind a denial", []Rule{plain, deny, always}, []string{"allow_always"}, EffectDeny, "the agent offers no answer that allows it once"},
		{"several", []Rule{plain}, []string{"allow_once", "allow_once"}, EffectDeny, ReasonSeveral},
	} {
		p, err := NewPolicy(tt.rules...)
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Decide(t.Context(), only(tt.kinds...)); d.Effect != tt.want || d.Reason != tt.reason {
			t.Errorf("%s: %s, %q", tt.name, d.Effect, d.Reason)
		}
	}
}
