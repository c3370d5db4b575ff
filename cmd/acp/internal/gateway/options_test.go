package gateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// TestPassable: a value in force is among the values, whatever the agent says.
func TestPassable(t *testing.T) {
	one, two := acp.SessionConfigSelectOption{Value: "one", Name: "One"}, acp.SessionConfigSelectOption{Value: "two", Name: "two"}
	for name, test := range map[string]struct {
		options, want acp.SessionConfigSelectOptions
	}{
		"there":   {acp.SessionConfigSelectOptionList{one, two}, acp.SessionConfigSelectOptionList{one, two}},
		"missing": {acp.SessionConfigSelectOptionList{one}, acp.SessionConfigSelectOptionList{one, two}},
		"none":    {nil, acp.SessionConfigSelectOptionList{two}},
		"in a group": {
			acpv2.SessionConfigSelectGroupList{{GroupID: "g", Options: []acp.SessionConfigSelectOption{two}}},
			acpv2.SessionConfigSelectGroupList{{GroupID: "g", Options: []acp.SessionConfigSelectOption{two}}},
		},
		"in no group": {
			acpv2.SessionConfigSelectGroupList{{GroupID: "g", Options: []acp.SessionConfigSelectOption{one}}},
			acpv2.SessionConfigSelectGroupList{
				{GroupID: "g", Options: []acp.SessionConfigSelectOption{one}},
				{GroupID: "in-force", Name: "In force", Options: []acp.SessionConfigSelectOption{two}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := []acp.SessionConfigOption{
				{ConfigID: "model", Kind: &acp.SessionConfigSelect{CurrentValue: "two", Options: test.options}},
				{ConfigID: "fast", Kind: &acp.SessionConfigBoolean{}},
			}
			got := passable(given)
			if diff := cmp.Diff(test.want, got[0].Kind.(*acp.SessionConfigSelect).Options); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.options, given[0].Kind.(*acp.SessionConfigSelect).Options); diff != "" {
				t.Error("what was given has changed:", diff)
			}
			if got[1].ConfigID != "fast" {
				t.Error(got[1])
			}
		})
	}
}
