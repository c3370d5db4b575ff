package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/goacp/acp/acphost"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/shellline"
)

// maxWarnings bounds what [Rules.Warnings] returns.
const maxWarnings = 20

// Warnings returns a line for each pattern that can never match, with the reason: a rule that
// allows a command with a wildcard which is always asked about, or that contains several commands;
// and a path that no file has. There are at most 20.
func (r *Rules) Warnings() (out []string) {
	warn := func(where, pattern, why string) {
		if why != "" && len(out) < maxWarnings {
			out = append(out, fmt.Sprintf("%s: %q never matches: %s", where, clip(pattern), why))
		}
	}
	for _, rule := range r.rules {
		if len(out) == maxWarnings {
			break
		}
		if rule.Effect == acphost.EffectAllow {
			for _, pattern := range rule.Commands {
				warn(rule.where, pattern, commandNever(pattern))
			}
		}
		for _, pattern := range slices.Concat(rule.Paths, rule.Cwd) {
			warn(rule.where, pattern, pathNever(pattern))
		}
	}
	return out
}

// samples are texts that are tried for a wildcard.
var samples = []string{"x", "", "-c x", "-e x", "--version", "x y", "x -c x", "a.x", "'x'", "1"}

// commandNever returns why a pattern with a wildcard allows no command, or "" if it allows one or
// that is uncertain. A pattern without a wildcard allows the line that is written the same.
func commandNever(pattern string) string {
	if !strings.ContainsAny(pattern, "*?") || strings.Contains(pattern, `\`) {
		return ""
	}
	policy, err := acphost.NewPolicy(acphost.Rule{Name: "it", Effect: acphost.EffectAllow, Commands: []string{pattern}})
	if err != nil {
		return ""
	}
	policy.Commands, policy.Default = shellline.Parser{}, acphost.EffectDeny
	once := []acpv2.PermissionOption{{OptionID: "once", Kind: acpv2.PermissionOptionKindAllowOnce}}
	for _, sample := range samples {
		line := strings.TrimSpace(strings.NewReplacer("*", sample, "?", "x").Replace(pattern))
		d := policy.Decide(context.Background(), acphost.Request{Kind: string(acpv2.ToolKindExecute), Command: line, Cwd: "/", Options: once})
		if line == "" || d.Effect == acphost.EffectAllow {
			return ""
		}
	}
	line := shellline.Parser{}.ParseCommand(strings.NewReplacer("*", "x", "?", "x").Replace(pattern))
	commands, files := 0, false
	for _, part := range line.Parts {
		files = files || len(part.Writes)+len(part.Reads) > 0
		if part.By == 0 && len(part.Words) > 0 {
			commands++
		}
	}
	switch {
	case line.Unsure != "":
		return line.Unsure + ", which only a rule without a wildcard allows"
	case commands > 1:
		return "it has several commands, and each is compared alone; give each a rule"
	case files:
		return "what a command reads or writes is decided by rules about paths"
	}
	for _, part := range line.Parts {
		for _, o := range part.Options {
			return o.Name + " " + o.Does + ", which a wildcard before it does not cover"
		}
	}
	return ""
}

// pathNever returns why no path matches a pattern, or "" if one may.
func pathNever(pattern string) string {
	slashed := strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "~/")
	switch {
	case pattern == "/":
		return ""
	case strings.HasSuffix(pattern, "/"):
		return "paths do not end with a slash; write " + strings.TrimRight(pattern, "/") + "/** for all below"
	case strings.Contains(slashed, "//") || strings.HasPrefix(slashed, "../") || strings.Contains("/"+slashed+"/", "/../") || strings.Contains("/"+slashed+"/", "/./"):
		return "paths are compared without empty names, . and .."
	}
	return ""
}
