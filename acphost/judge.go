package acphost

// A verdict is what the rules say about a request.
type verdict struct {
	effect Effect
	by     Source
	rule   string
	always bool // “allow always” may be chosen
	reason string
	part   string
}

// judge asks the rules.
func (p *Policy) judge(req *Request) verdict {
	r, doubt := p.match(req)
	v := verdict{effect: p.Default, by: ByDefault}
	switch {
	case r != nil:
		v = verdict{effect: r.Effect, by: ByRule, rule: r.Name, always: r.AllowAlways}
	case v.effect == EffectAllow && !knownKind(req.Kind):
		v.effect = EffectAsk
	}
	if doubt != nil && v.effect != EffectDeny {
		v = verdict{effect: EffectAsk, by: ByRule, rule: doubt.Name}
	}
	return v
}

// match returns the first rule that matches, or nil, and the first before it of
// which that cannot be told.
func (p *Policy) match(req *Request) (found, doubt *rule) {
	for i := range p.rules {
		r := &p.rules[i]
		switch r.matches(req) {
		case matchYes:
			return r, doubt
		case matchMaybe:
			if doubt == nil {
				doubt = r
			}
		}
	}
	return nil, doubt
}
