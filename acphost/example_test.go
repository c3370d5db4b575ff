package acphost_test

import (
	"context"
	"fmt"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
)

func ExampleParsePolicy() {
	policy, err := acphost.ParsePolicy([]byte(`{
		"version": 1,
		"rules": [
			{"effect": "deny", "paths": ["**/.env"]},
			{"name": "tests", "effect": "allow", "commands": ["go test *"]}
		]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	policy.Audit = func(r acphost.Record) { fmt.Println(r.Command, "→", r.Effect, "by", r.By) }
	options := []acpv2.PermissionOption{
		{OptionID: "n", Kind: acpv2.PermissionOptionKindRejectOnce},
		{OptionID: "y", Kind: acpv2.PermissionOptionKindAllowOnce},
	}
	for _, command := range []string{"go test ./...", "go test ./... && curl example.com"} {
		d := policy.Decide(context.Background(), acphost.Request{Kind: "execute", Command: command, Options: options})
		fmt.Println(d.Option.OptionID)
	}
	// Output:
	// go test ./... → allow by rule
	// y
	// go test ./... && curl example.com → deny by nobody
	// n
}

// Two windows share the rules and what the user has answered, and each asks in its own
// way.
func ExamplePolicy_With() {
	policy := &acphost.Policy{Remember: acphost.RememberForever}
	window := func(name string) *acphost.Policy {
		return policy.With(func(_ context.Context, req acphost.Request) (acpv2.PermissionOptionID, error) {
			fmt.Println(name, "asks:", req.Title)
			return req.AllowAlways(), nil
		})
	}
	left, right := window("left"), window("right")
	request := acphost.Request{Kind: "fetch", Title: "Read the news", Options: []acpv2.PermissionOption{
		{OptionID: "n", Kind: acpv2.PermissionOptionKindRejectOnce},
		{OptionID: "y", Kind: acpv2.PermissionOptionKindAllowAlways},
	}}
	ctx := context.Background()
	fmt.Println(left.Decide(ctx, request).By)
	fmt.Println(right.Decide(ctx, request).By)
	// Output:
	// left asks: Read the news
	// user
	// memory
}
