package conformance

import (
	"strings"
	"sync"
)

// A check is a place in the monitor that decides about a rule, or about one of
// either side.
type check int

// checkNames are the ids of the rules that checks decide about, those of either
// side with the word both for the side.
var checkNames = make([]string, 0, 512)

func decides(name string) check {
	checkNames = append(checkNames, name)
	return check(len(checkNames) - 1)
}

// bound is a check with its rules.
type bound struct {
	rules [2]*Rule // by side
	on    [3]uint8 // by version, 0 for not known yet: bits of sides it applies to
}

// bindings returns what each check decides about. It panics if a rule is not
// there, which tests rule out.
var bindings = sync.OnceValue(func() []bound {
	rules := builtin().byID
	out := make([]bound, len(checkNames))
	for c, name := range checkNames {
		side, rest, _ := strings.Cut(name, "/")
		for i, s := range []Side{Agent, Client} {
			if side != "both" && side != string(s) {
				continue
			}
			r := rules[string(s)+"/"+rest]
			if r == nil || !r.Observed {
				panic("conformance: no observed rule " + name)
			}
			out[c].rules[i] = r
			out[c].on[0] |= 1 << i
			for _, v := range r.Versions {
				out[c].on[v] |= 1 << i
			}
		}
	}
	return out
})
