package acphost

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
	r, doubt := p.match(&req)
	switch {
	case doubt != nil && (r == nil || r.Effect != EffectDeny):
		return Verdict{Effect: EffectAsk, Rule: doubt.Name}
	case r == nil:
		return Verdict{}
	}
	return Verdict{Effect: r.Effect, Rule: r.Name, Certain: r.Effect != EffectDeny || p.settled(&req, r)}
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
	for i := range p.rules {
		if p.rules[i].Effect != EffectAllow {
			return true
		}
	}
	return false
}
