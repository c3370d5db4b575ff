package acphost

import (
	"errors"
	"testing"

	"github.com/goacp/acp/acpv2"
)

// TestPolicyAdd: rules that are added count for later requests, in all policies of the family, after
// the rules that were there.
func TestPolicyAdd(t *testing.T) {
	p, err := NewPolicy(Rule{Name: "no", Effect: EffectDeny, Kinds: []string{"delete"}})
	if err != nil {
		t.Fatal(err)
	}
	second := p.With(nil)
	request := func(kind string) Request {
		return Request{Kind: kind, Title: "x", Options: []acpv2.PermissionOption{
			{OptionID: "n", Kind: acpv2.PermissionOptionKindRejectOnce},
			{OptionID: "y", Kind: acpv2.PermissionOptionKindAllowOnce},
		}}
	}
	want := func(p *Policy, kind string, effect Effect, by Source) {
		t.Helper()
		if d := p.Decide(t.Context(), request(kind)); d.Effect != effect || d.By != by {
			t.Errorf("%s: %s by %s, want %s by %s", kind, d.Effect, d.By, effect, by)
		}
	}
	want(p, "fetch", EffectDeny, ByNobody)
	if err := second.Add(Rule{Name: "yes", Effect: EffectAllow, Kinds: []string{"fetch", "delete"}}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Policy{p, second, second.With(nil)} {
		want(p, "fetch", EffectAllow, ByRule)
		want(p, "delete", EffectDeny, ByRule) // the rule before it denies
		want(p, "search", EffectDeny, ByNobody)
		if v := p.Judge(request("fetch")); v.Rule != "yes" {
			t.Errorf("judged by %q", v.Rule)
		}
	}
	if p.RestrictsKind("search") {
		t.Error("it restricts what no rule is about")
	}
	if err := p.Add(Rule{Effect: EffectAsk, Kinds: []string{"search"}}); err != nil || !second.RestrictsKind("search") || !second.Restricts() {
		t.Errorf("%v, or the added rule does not restrict", err)
	}
	if err := p.Add(Rule{Effect: EffectAllow, Kinds: []string{"other"}}, Rule{Effect: "maybe"}); err == nil {
		t.Error("a rule with an unknown effect is added")
	}
	want(p, "other", EffectDeny, ByNobody) // all or none
	for i := 2; i < MaxAdded; i++ {
		if err := p.Add(Rule{Effect: EffectAllow, Kinds: []string{"fetch"}}); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := p.Add(Rule{Effect: EffectAllow, Kinds: []string{"fetch"}}); !errors.Is(err, ErrTooManyRules) {
		t.Errorf("beyond the bound: %v", err)
	}
}
