package acphost

import (
	"slices"

	"github.com/goacp/acp/acpv2"
)

// A Verdict is what the rules of a [Policy] alone say about a request. The zero
// Verdict means that no rule matches.
type Verdict struct {
	Effect Effect // "" if no rule matches
	Rule   string // the name of the rule
	// Certain is false if more knowledge of the request could change the
	// verdict: a rule may or may not match it. Effect is then EffectAsk, or
	// EffectDeny if the request is denied as far as it is known.
	Certain bool
}

// Judge returns what the rules say about a request. Unlike [Policy.Decide] it
// leaves out [Policy.Default], remembered answers, the options of the request and
// the user, and nothing is recorded. It is made for acts that nobody has asked
// about.
func (p *Policy) Judge(req Request) Verdict {
	p = p.grown()
	w := p.weigh(&req)
	switch {
	case w.rule == nil || w.effect == "":
		return Verdict{}
	case w.doubt:
		return Verdict{Effect: EffectAsk, Rule: w.rule.Name}
	}
	return Verdict{Effect: w.effect, Rule: w.rule.Name, Certain: w.effect != EffectDeny || p.settled(&req, w.rule)}
}

// settled reports whether a rule that denies a request would also deny it if more
// were known of it: then no rule before it that allows could match.
func (p *Policy) settled(req *Request, found *rule) bool {
	if !req.commandUnknown() && (len(req.Paths) == 0 || req.pathsKnown()) {
		return true
	}
	for i := range p.rules {
		switch r := &p.rules[i]; {
		case r == found:
			return true
		case r.Effect == EffectAllow:
			return false
		}
	}
	return false
}

// Restricts reports whether any rule denies or asks.
func (p *Policy) Restricts() bool {
	p = p.grown()
	for i := range p.rules {
		if p.rules[i].Effect != EffectAllow {
			return true
		}
	}
	return false
}

// RestrictsKind reports whether any rule that denies or asks can be about a tool
// of a kind: rules about commands are about the kind execute, and rules about
// paths about the kinds that touch files, unless they name others.
func (p *Policy) RestrictsKind(kind acpv2.ToolKind) bool {
	p = p.grown()
	for i := range p.rules {
		r := &p.rules[i]
		if r.Effect == EffectAllow || len(r.Kinds) > 0 && !slices.Contains(r.Kinds, string(kind)) {
			continue
		}
		about := true
		switch {
		case len(r.Commands)+len(r.CommandRegexps) > 0:
			about = kind == acpv2.ToolKindExecute
		case len(r.Paths) > 0:
			switch kind {
			case acpv2.ToolKindRead, acpv2.ToolKindEdit, acpv2.ToolKindDelete, acpv2.ToolKindMove, acpv2.ToolKindSearch:
			default:
				about = len(r.Kinds) > 0
			}
		}
		if about {
			return true
		}
	}
	return false
}
