package config

import (
	"fmt"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// AddRule adds a permission rule to those that a file of settings allows or denies, unless it is
// there already. A file of a project that is new or was trusted is trusted afterwards, because the
// user has just written to it; otherwise holds is false, and the rule has no effect until the user
// trusts the file. Errors about the rule have the exit status of wrong usage.
func (c *Config) AddRule(file string, effect acphost.Effect, rule string) (holds bool, err error) {
	if effect != acphost.EffectAllow && effect != acphost.EffectDeny {
		return false, exitcode.Errorf(exitcode.Usage, "rules of settings allow or deny, not %q", effect)
	}
	if _, err := ParseRule(rule); err != nil {
		return false, exitcode.With(exitcode.Usage, err)
	}
	e, err := OpenEdit(file)
	if err != nil {
		return false, err
	}
	// What was read is what counts, and what is written: another process may replace the file in between.
	if holds = file == c.UserFile || e.was == nil; !holds {
		if holds, err = c.Trusts(file, e.was); err != nil {
			return false, err
		}
	}
	if err := e.add(rule, "permissions", string(effect)); err != nil {
		return false, err
	}
	if err := e.Save(); err != nil {
		return false, err
	}
	if holds && file != c.UserFile {
		if err := c.TrustContent(map[string][]byte{file: []byte(e.Text())}); err != nil {
			return false, fmt.Errorf("the rule is written, but the file is not trusted: %w", err)
		}
	}
	return holds, nil
}

// add adds a value to a list, unless the list has it.
func (e *Edit) add(value string, key ...string) error {
	n, err := find(key)
	if err != nil {
		return exitcode.Errorf(exitcode.Usage, "key %q: %w", path(key), err)
	}
	var list []string
	if was := e.doc.value(key); was != nil {
		v, _, err := n.convert(was)
		if err != nil {
			return exitcode.Errorf(exitcode.Usage, "%s: key %q: %w", e.name, path(key), err)
		}
		list, _ = v.([]string)
	}
	for _, s := range list {
		if s == value {
			return nil
		}
	}
	return e.Set(append(list[:len(list):len(list)], value), key...)
}
