package app

import (
	"fmt"
	"path/filepath"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/cmd/acp/internal/config"
	"github.com/goacp/acp/cmd/acp/internal/exitcode"
)

// A RuleScope says where a permission rule holds that the user writes.
type RuleScope int

// The scopes.
const (
	RuleNow     RuleScope = iota // until the program ends
	RuleProject                  // in the project, whose settings file has it
	RuleUser                     // everywhere: the user's settings file has it
)

// RuleFile returns the file that a rule of a scope is written to, or "" if it is written nowhere.
func (a *App) RuleFile(scope RuleScope) (string, error) {
	cfg, err := a.Config()
	if err != nil {
		return "", err
	}
	switch {
	case scope == RuleProject && cfg.ProjectFile != "":
		return cfg.ProjectFile, nil
	case scope == RuleProject:
		return filepath.Join(a.Cwd, config.ProjectFile), nil
	case scope == RuleUser && cfg.UserFile == "":
		return "", exitcode.Errorf(exitcode.Usage, "there is no place for settings: set HOME or XDG_CONFIG_HOME")
	case scope == RuleUser:
		return cfg.UserFile, nil
	}
	return "", nil
}

// AddRule adds a permission rule that counts from now on, and writes it where scope says. In every
// case a rule that denies comes first. said describes what is not as the user may expect, or is "".
func (a *App) AddRule(effect acphost.Effect, rule string, scope RuleScope) (said string, err error) {
	r, err := config.ParseRule(rule)
	if err != nil {
		return "", usage(err)
	}
	policy, err := a.Policy()
	if err != nil {
		return "", err
	}
	r.Effect, r.Name = effect, string(effect)+" "+rule
	if err := policy.Add(r); err != nil {
		return "", err
	}
	file, err := a.RuleFile(scope)
	if err != nil || file == "" {
		return "", err
	}
	cfg, err := a.Config()
	if err != nil {
		return "", err
	}
	holds, err := cfg.AddRule(file, effect, rule)
	if err != nil {
		return "", fmt.Errorf("writing the rule: %w", err)
	}
	if !holds {
		return fmt.Sprintf("the rule is in %s, but holds only until you leave: you do not trust that file; see acp config trust", file), nil
	}
	return "", nil
}
