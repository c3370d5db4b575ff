package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
)

// Rules are the permission rules of settings and of their policy file, in the order in which they
// decide: rules that deny, then those of the file in its own order, then rules that allow.
// Therefore a setting that allows something weakens no rule that denies it, and the file is never
// loosened. Rules do not change, and may be used by any goroutine.
type Rules struct {
	rules  []sourced
	file   *acphost.Policy // nil if there is none, or it cannot be read
	preset string          // decides what no rule decides; "" leaves that to the file
	err    error           // the first one
}

// A sourced rule is a rule with its source, for messages.
type sourced struct {
	acphost.Rule
	where string
}

// ReadRules reads the rules of p. base is the directory of a policy file that is named without one.
// Rules that cannot be read are left out; [Rules.Policy] returns the error.
func ReadRules(p Permissions, base string) *Rules {
	r := &Rules{preset: p.Default}
	var ofFile []acphost.Rule
	if p.Policy != "" {
		name := p.Policy
		if !filepath.IsAbs(name) {
			name = filepath.Join(base, name)
		}
		var err error
		if r.file, ofFile, err = readPolicy(name); err != nil {
			r.err = exitcode.With(exitcode.Usage, err)
		}
	}
	r.add(p.Deny, acphost.EffectDeny)
	for _, rule := range ofFile {
		r.rules = append(r.rules, sourced{rule, rule.Name})
	}
	r.add(p.Allow, acphost.EffectAllow)
	return r
}

// add reads rules that are one line each.
func (r *Rules) add(list []string, effect acphost.Effect) {
	where := "permissions." + string(effect)
	for _, s := range list {
		rule, err := ParseRule(s)
		if err != nil {
			if r.err == nil {
				r.err = exitcode.Errorf(exitcode.Usage, "%s: %w", where, err)
			}
			continue
		}
		rule.Effect, rule.Name = effect, string(effect)+" "+clip(s)
		if effect != acphost.EffectAllow {
			rule.AllowAlways = false
		}
		r.rules = append(r.rules, sourced{rule, where})
	}
}

// Policy returns the policy of the rules. If no rule decides, the default of the settings does or,
// without one, that of the file. Errors have the exit status of wrong usage.
func (r *Rules) Policy() (*acphost.Policy, error) {
	if r.err != nil {
		return nil, r.err
	}
	rules := make([]acphost.Rule, len(r.rules))
	for i := range r.rules {
		rules[i] = r.rules[i].Rule
	}
	policy, err := acphost.NewPolicy(rules...)
	if err != nil {
		return nil, exitcode.With(exitcode.Usage, err)
	}
	policy.Commands = shellline.Parser{}
	if f := r.file; f != nil {
		policy.Default, policy.AskTimeout = f.Default, f.AskTimeout
		policy.Remember, policy.MaxRemembered = f.Remember, f.MaxRemembered
	}
	switch e := acphost.Effect(r.preset); e {
	case "":
	case acphost.EffectAllow, acphost.EffectAsk, acphost.EffectDeny:
		policy.Default = e
	default:
		return nil, exitcode.Errorf(exitcode.Usage, "permissions.default: %q is none of ask, allow, deny", r.preset)
	}
	return policy, nil
}

// readPolicy reads a policy file and its rules.
func readPolicy(name string) (*acphost.Policy, []acphost.Rule, error) {
	data, err := readFile(name)
	if _, ok := errors.AsType[*Error](err); ok {
		return nil, nil, fmt.Errorf("policy %w", err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("policy %s: %w", name, bare(err))
	}
	policy, err := acphost.ParsePolicy(data)
	if pe, ok := errors.AsType[*acphost.ParseError](err); ok {
		return nil, nil, fmt.Errorf("policy %s:%d:%d: %w", name, pe.Line, pe.Column, pe.Err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("policy %s: %w", name, err)
	}
	// The policy was checked: its rules are the members of this.
	var v struct {
		Rules []acphost.Rule `json:"rules"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, nil, fmt.Errorf("policy %s: %w", name, err)
	}
	for i := range v.Rules {
		if v.Rules[i].Name == "" {
			v.Rules[i].Name = fmt.Sprintf("%s rule %d", filepath.Base(name), i+1)
		}
	}
	return policy, v.Rules, nil
}
