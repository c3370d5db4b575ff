package acphost

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/goacp/acp/acpv2"
)

// TestPolicyWith holds that a policy that asks in another way is the same otherwise,
// shares what is remembered, and leaves the first one as it was.
func TestPolicyWith(t *testing.T) {
	p, err := NewPolicy(Rule{Name: "no", Effect: EffectDeny, Kinds: []string{"delete"}})
	if err != nil {
		t.Fatal(err)
	}
	p.Default, p.AskTimeout, p.Remember, p.MaxRemembered = EffectAsk, time.Hour, RememberForever, 7
	p.Commands = plainParser{}
	p.Resolve = func(string) (string, error) { return "", errors.New("no") }
	audited := 0
	p.Audit = func(Record) { audited++ }
	var who []string
	ask := func(name string) func(context.Context, Request) (acpv2.PermissionOptionID, error) {
		return func(_ context.Context, req Request) (acpv2.PermissionOptionID, error) {
			who = append(who, name)
			return req.AllowAlways(), nil
		}
	}
	p.Ask = ask("first")
	second := p.With(ask("second"))
	third := second.With(ask("third"))
	for i, f := range reflect.VisibleFields(reflect.TypeFor[Policy]()) {
		if a, b := reflect.ValueOf(p).Elem().Field(i), reflect.ValueOf(third).Elem().Field(i); f.IsExported() && a.IsZero() != b.IsZero() {
			t.Errorf("%s is not the same", f.Name)
		}
	}
	request := func(kind, title string) Request {
		return Request{Kind: kind, Title: title, Options: []acpv2.PermissionOption{
			{OptionID: "n", Kind: acpv2.PermissionOptionKindRejectOnce},
			{OptionID: "y", Kind: acpv2.PermissionOptionKindAllowOnce},
			{OptionID: "a", Kind: acpv2.PermissionOptionKindAllowAlways},
		}}
	}
	for _, step := range []struct {
		p     *Policy
		title string
		by    Source
	}{
		{second, "x", ByUser}, {p, "x", ByMemory}, {third, "x", ByMemory},
		{p, "y", ByUser}, {second, "y", ByMemory}, {third, "z", ByUser}, {p, "z", ByMemory},
	} {
		if d := step.p.Decide(t.Context(), request("fetch", step.title)); d.Effect != EffectAllow || d.By != step.by {
			t.Errorf("%s: %s by %s, want %s", step.title, d.Effect, d.By, step.by)
		}
	}
	if d := third.Decide(t.Context(), request("delete", "d")); d.By != ByRule || d.Effect != EffectDeny {
		t.Errorf("%s by %s", d.Effect, d.By)
	}
	if len(who) != 3 || who[0] != "second" || who[1] != "first" || who[2] != "third" || audited != 8 {
		t.Errorf("asked %q, audited %d", who, audited)
	}
	if n := len(second.Remembered()); n != 3 || len(p.Remembered()) != 3 {
		t.Errorf("%d and %d memories", n, len(p.Remembered()))
	}
	zero := new(Policy)
	if d := zero.With(ask("zero")).Decide(t.Context(), request("fetch", "x")); d.By != ByUser || zero.Ask != nil {
		t.Errorf("%s", d.By)
	}
}
